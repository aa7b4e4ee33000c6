"""The ranking: nearest vectors, passages with the words, and both together."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.recall import (
    CANDIDATES,
    Having,
    covering,
    fuse,
    nearest,
    snippet,
    words_of,
)


def vector(*numbers: int) -> bytes:
    return struct.pack(f"{len(numbers)}b", *numbers)


def test_the_vector_of_the_same_direction_comes_first_whatever_its_length() -> None:
    rows = vector(0, 9) + vector(1, 1) + vector(100, 100) + vector(-5, -5)
    found = nearest(vector(3, 3), rows)
    assert [near.number for near in found] == [1, 2, 0]
    assert found[0].cosine == found[1].cosine == 1.0


def test_what_has_no_direction_is_near_to_nothing() -> None:
    assert nearest(vector(0, 0), vector(1, 1)) == []
    assert nearest(vector(1, 1), vector(0, 0)) == []
    assert nearest(vector(1, 1), b"") == []


def test_the_extremes_of_a_signed_byte_are_summed_without_loss() -> None:
    asked, other = bytes([0x81] * 256), bytes([0x80] * 256)
    (near,) = nearest(asked, other)
    assert near.cosine == 1.0


def test_no_more_than_wanted_are_given() -> None:
    assert len(nearest(vector(1), vector(1) * 500)) == CANDIDATES
    assert [near.number for near in nearest(vector(1), vector(1) * 9, most=3)] == [0, 1, 2]


def test_what_both_lists_hold_is_before_what_one_holds() -> None:
    assert [number for number, _ in fuse([1, 2, 3], [4, 3, 5])] == [3, 1, 4, 2, 5]


@given(st.lists(st.integers(0, 50), unique=True), st.lists(st.integers(0, 50), unique=True))
def test_a_fusion_holds_everything_once_and_does_not_depend_on_chance(
    one: list[int], other: list[int]
) -> None:
    fused = fuse(one, other)
    assert sorted(number for number, _ in fused) == sorted({*one, *other})
    assert fused == fuse(other, one)
    assert [score for _, score in fused] == sorted((s for _, s in fused), reverse=True)


def test_a_passage_with_common_words_alone_is_not_ranked_by_words() -> None:
    having = {
        "the": Having(90, frozenset({1, 2})),
        "deadlock": Having(1, frozenset({2})),
    }
    assert covering([1, 2], having, total=100) == [2]


def test_a_word_that_no_passage_has_counts_against_the_others() -> None:
    having = {"build": Having(20, frozenset({1})), "zzyzx": Having(0, frozenset())}
    assert covering([1], having, total=100) == []


def test_words_that_all_passages_have_tell_nothing() -> None:
    assert covering([1], {"a": Having(1, frozenset({1}))}, total=0) == []


def test_the_words_of_a_question_are_cut_out_of_any_text() -> None:
    assert words_of('Why "load_config" (NOT x) load?') == ("why", "load", "config", "not", "x")
    assert len(words_of(" ".join(map(str, range(99))))) == 32


def test_a_snippet_shows_the_stretch_with_the_words() -> None:
    text = "filler " * 100 + "the deadlock came from two locks " + "filler " * 100
    shown = snippet(text, ("deadlock", "locks"), length=100)
    assert "deadlock" in shown
    assert "locks" in shown
    assert len(shown) <= 100
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_a_snippet_of_a_short_text_is_the_text_on_one_line() -> None:
    assert snippet("a\n  b\tc", ("b",)) == "a b c"


@given(st.text(max_size=400), st.text(max_size=20), st.integers(20, 120))
def test_a_snippet_is_never_longer_than_allowed(text: str, question: str, length: int) -> None:
    assert len(snippet(text, words_of(question), length=length)) <= length
