"""JSON source text: what is read, what is refused, and that nothing is lost on the way."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.render.source import (
    MAX_DEPTH,
    SourceError,
    is_whole,
    mend,
    mend_value,
    plain_object,
    read,
    read_object,
    whole_value,
    write,
)

any_text = st.text(alphabet=st.characters(), max_size=12)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@given(value=values)
def test_what_is_written_is_read_back(value: object) -> None:
    source = write(value)
    assert source.isascii()
    assert read(source) == value


@pytest.mark.parametrize(
    "source",
    ["", "NaN", "[Infinity]", "1e999", "-1e999", "{", '{"a":1}x', "'a'", '"a\nb"', "\ufeff{}"],
)
def test_what_is_no_json_or_has_no_number_is_refused(source: str) -> None:
    with pytest.raises(SourceError):
        read(source)
    assert read_object(source) is None


def test_depth_is_bounded_by_its_own_limit_not_by_the_interpreter() -> None:
    assert read(nested(MAX_DEPTH)) is not None
    for depth in (MAX_DEPTH + 1, 5_000, 200_000):
        with pytest.raises(SourceError):
            read(nested(depth))
    wide = "[" + ",".join(["[]"] * (2 * MAX_DEPTH)) + "]"
    assert read(wide) == [[]] * (2 * MAX_DEPTH)
    assert read_object(f'{{"a":{nested(MAX_DEPTH)}}}') is None
    assert read_object(f'{{"a":{wide}}}') is not None


@pytest.mark.parametrize("source", ["[]", "1", '"x"', "null", "true"])
def test_only_an_object_is_an_object(source: str) -> None:
    assert read_object(source) is None


def test_the_fast_way_and_the_slow_way_read_the_same() -> None:
    for source in ('{"a":1,"a":2}', '{"n":123456789012345678901234567890}', '{"f":1e5,"z":-0.0}'):
        assert plain_object(source) == json.loads(source) == read_object(source)
    assert plain_object('{"a":"\\ud800"}') is None
    assert read_object('{"a":"\\ud800"}') == {"a": "\ud800"}


def test_halves_are_joined_and_a_lone_one_is_replaced() -> None:
    assert mend("a\ud83d\ude00b") == "a😀b"
    assert mend("\ude00\ud83d") == "\ufffd\ufffd"
    assert mend_value({"\ud800": ["\udc00", {"x": "ok"}]}) == {"\ufffd": ["\ufffd", {"x": "ok"}]}
    assert not whole_value({"a": ["\ud800"]})
    assert not whole_value({"\ud800": 1})
    assert whole_value({"a": ["x", 1, None]})


@given(text=any_text)
def test_mended_text_is_whole_and_whole_text_is_left_alone(text: str) -> None:
    assert is_whole(mend(text))
    assert mend(mend(text)) == mend(text)
    if is_whole(text):
        assert mend(text) is text
