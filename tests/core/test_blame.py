"""Who wrote each line."""

from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.blame import blame

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=5).map("\n".join)


def test_a_line_that_stays_keeps_the_edit_that_wrote_it() -> None:
    edits = [(1, "one\ntwo\n"), (2, "zero\none\ntwo\n"), (3, "zero\none\n2\n")]
    assert blame(edits) == [(2, "zero"), (1, "one"), (3, "2")]


def test_a_line_that_was_gone_and_came_back_is_of_the_edit_that_brought_it_back() -> None:
    assert blame([(1, "a\n"), (2, ""), (3, "a\n")]) == [(3, "a")]


def test_nothing_is_written_by_nobody() -> None:
    assert blame([]) == []
    assert blame([(1, "")]) == []


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_the_lines_are_those_of_the_last_text(texts: list[str]) -> None:
    found = blame(enumerate(texts))
    lines = texts[-1].split("\n")
    assert [line for _, line in found] == (lines[:-1] if lines[-1] == "" else lines)
    for edit, line in found:
        assert line in texts[edit].split("\n")
