"""One canonical encoder, one strict loader."""

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import FormatError
from sojourn.format import canon
from sojourn.format.layout import MAX_DEPTH, MAX_INT

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-MAX_INT, MAX_INT) | st.floats(-MAX_INT, MAX_INT, allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)


@given(JSON)
def test_the_encoder_agrees_with_rfc_8785(value: Any) -> None:
    assert canon.encode(value) == rfc8785.dumps(value)


@given(JSON)
def test_what_is_encoded_is_loaded_again(value: Any) -> None:
    assert canon.load(canon.encode(value), what="x") == value


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_the_loader_takes_any_layout_and_escapes(value: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert canon.load(text.encode(), what="x") == value


@given(JSON, st.integers(0, 10**6), st.integers(0, 255))
def test_a_changed_byte_never_crashes_the_loader(value: Any, at: int, byte: int) -> None:
    data = bytearray(canon.encode([value]))
    data[at % len(data)] = byte
    try:
        again = canon.load(bytes(data), what="x")
    except FormatError:
        return
    # What the loader takes, every strict parser takes, and it can be written again.
    assert canon.load(canon.encode(again), what="x") == again


@given(st.one_of(JSON, st.integers(), st.floats()), st.integers(0, 10**6), st.integers(0, 255))
def test_the_quick_way_and_the_slow_one_take_the_same(value: Any, at: int, byte: int) -> None:
    data = bytearray(json.dumps([value], ensure_ascii=False, separators=(",", ":")).encode())
    for text in (bytes(data), canon.quick([value]), _with_byte(data, at, byte)):
        if not text.startswith(b"\xef"):
            # White space before the text keeps it from the quick way.
            assert _result(text) == _result(b" " + text)


def _with_byte(data: bytearray, at: int, byte: int) -> bytes:
    data[at % len(data)] = byte
    return bytes(data)


def _result(data: bytes) -> str:
    try:
        return repr(canon.load(data, what="x"))
    except FormatError as error:
        return error.code


def code_of(data: bytes) -> str:
    with pytest.raises(FormatError) as caught:
        canon.load(data, what="x")
    with pytest.raises(FormatError) as again:
        canon.load(data, what="x", line=7)
    assert (caught.value.line, again.value.line) == (1, 7)
    assert caught.value.code == again.value.code
    return caught.value.code


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xff\xfe{\x00}\x00", "not_utf8"),
        (b'"\xed\xa0\xbd"', "not_utf8"),
        (b"\xef\xbb\xbf{}", "bom"),
        (b"[" * 65 + b"]" * 65, "too_deep"),
        (b"[" * 100_000, "too_deep"),
        (b"", "not_json"),
        (b"{}{}", "not_json"),
        (b'"a\nb"', "not_json"),
        (b"[-Infinity]", "not_json"),
        (b"[1,]", "not_json"),
        (b"[01]", "not_json"),
        (b"[9007199254740992]", "number_out_of_range"),
        (b"[-9007199254740992]", "number_out_of_range"),
        (b"[9007199254740991.5]", "number_out_of_range"),
        (b"[1e999]", "number_out_of_range"),
        (b"[" + b"1" * 5000 + b"]", "number_out_of_range"),
        (b'["\\ud83d"]', "lone_surrogate"),
        (b'{"\\udc00":1}', "lone_surrogate"),
        (b'{"a":{"b":1,"b":1}}', "duplicate_key"),
        (b'{"a":1,"\\u0061":2}', "duplicate_key"),
    ],
)
def test_what_is_not_strict_is_refused_by_name(data: bytes, code: str) -> None:
    assert code_of(data) == code


def test_the_first_failure_of_the_list_is_named() -> None:
    assert code_of(b'{"a":1,"a":"\\ud83d","b":1e999,}') == "not_json"
    assert code_of(b'{"a":1,"a":"\\ud83d","b":1e999}') == "number_out_of_range"
    assert code_of(b'{"a":1,"a":"\\ud83d"}') == "lone_surrogate"


def test_a_limit_counts_bytes() -> None:
    assert canon.load(b'"ab"', what="x", limit=4) == "ab"
    with pytest.raises(FormatError) as caught:
        canon.load(b'"ab"', what="x", limit=3)
    assert (caught.value.code, caught.value.line) == ("too_long", 1)


@pytest.mark.parametrize(
    "number", ["9007199254740991", "-9007199254740991.0", "9.007199254740991e15"]
)
def test_the_largest_numbers_pass(number: str) -> None:
    assert canon.load(number.encode(), what="x") == float(number)


def test_keys_are_sorted_by_utf_16() -> None:
    value = {"\uff5e": 1, "\U0001f600": [1, 2], "a": {"b": None}}
    assert canon.encode(value) == rfc8785.dumps(value)
    assert list(json.loads(canon.encode(value))) == ["a", "\U0001f600", "\uff5e"]


def test_nesting_of_the_limit_passes() -> None:
    data = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert canon.encode(canon.load(data, what="x")) == data


def test_the_line_is_the_one_where_reading_stopped() -> None:
    with pytest.raises(FormatError) as caught:
        canon.load(b'{\n "a": 1,\n "b": x\n}', what="environment/spec.json")
    assert (caught.value.file, caught.value.line) == ("environment/spec.json", 3)


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), 1e16, float("inf"), float("nan"), [0, {"a": 2**60}]]
)
def test_the_encoder_refuses_numbers_that_readers_would_refuse(value: object) -> None:
    with pytest.raises(FormatError, match="2\\^53"):
        canon.encode(value)


@pytest.mark.parametrize("value", ["\ud83d", {"\udc00": 1}, ["a", ("\ud83d\ude00",)]])
def test_the_encoder_refuses_lone_surrogates(value: object) -> None:
    with pytest.raises(FormatError) as caught:
        canon.encode(value)
    assert caught.value.code == "lone_surrogate"


@pytest.mark.parametrize("value", [b"bytes", {1: 2}, [object()]])
def test_the_encoder_refuses_what_has_no_json(value: object) -> None:
    with pytest.raises((FormatError, TypeError)):
        canon.encode(value)


@given(st.text(st.characters(), max_size=30))
def test_cleaned_text_can_be_written_and_clean_text_stays(text: str) -> None:
    cleaned, lone = canon.clean_text(text)
    assert cleaned.encode().decode() == cleaned
    assert canon.clean_text(cleaned) == (cleaned, False)
    assert lone == ("\ufffd" in cleaned and cleaned.count("\ufffd") > text.count("\ufffd"))


def test_halves_that_meet_become_their_character() -> None:
    assert canon.clean_text("a\ud83d\ude00b") == ("a\U0001f600b", False)
    assert canon.clean_text("a\ude00\ud83db") == ("a\ufffd\ufffdb", True)
