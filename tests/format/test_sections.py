"""Sections of the notes: one changes, the others stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import UsageError
from sojourn.format.sections import sections, with_section

LINES = st.sampled_from(
    ["# A", "## B", "### C", "## B ##", "text", "", "```", "~~~~", "#no", "    # code", "#", "- x"]
)
TEXTS = st.lists(LINES, max_size=8).map("\n".join)
TITLES = st.sampled_from(["A", "B", "C", "New", "é: 1"])

NOTES = "intro\n\n# A\n\none\n\n## B\n\ntwo\n\n# D\n\nthree\n"


def titles(text: str) -> list[tuple[str, int]]:
    return [(one.title, one.rank) for one in sections(text)]


def test_a_section_ends_before_the_next_heading_of_its_rank_or_a_higher_one() -> None:
    lines = NOTES.splitlines()
    found = {one.title: lines[one.first : one.end] for one in sections(NOTES)}
    assert found["A"] == ["", "one", "", "## B", "", "two", ""]
    assert found["B"] == ["", "two", ""]
    assert found["D"] == ["", "three"]


def test_only_the_named_section_changes() -> None:
    assert with_section(NOTES, "B", "new") == NOTES.replace("two", "new")
    assert with_section(NOTES, "D", "new\n\n## E\n\nx") == NOTES.replace(
        "three", "new\n\n## E\n\nx"
    )


def test_a_new_section_is_added_at_the_end() -> None:
    assert with_section("", "Plan", "a") == "## Plan\n\na\n"
    assert with_section("x", "Plan", "a") == "x\n\n## Plan\n\na\n"


def test_an_empty_content_takes_the_section_away() -> None:
    assert with_section(NOTES, "A", "") == "intro\n\n# D\n\nthree\n"


def test_what_looks_like_a_heading_in_a_fence_is_none() -> None:
    text = "# A\n\n```\n# B\n```\n\n~~~ x\n# C\n~~~\n"
    assert titles(text) == [("A", 1)]
    assert titles("````\n```\n# A\n````\n# B\n") == [("B", 1)]


@given(TEXTS, TITLES, st.sampled_from(["", "one", "one\n\n#### deep", "- a\n- b\n"]))
def test_doing_it_twice_is_doing_it_once(text: str, title: str, content: str) -> None:
    try:
        once = with_section(text, title, content)
    except UsageError:
        return
    if content:
        assert with_section(once, title, content) == once


@given(TEXTS, TITLES)
def test_other_sections_keep_their_text(text: str, title: str) -> None:
    try:
        after = with_section(text, title, "new")
    except UsageError:
        return
    before = titles(text)
    if title not in dict(before):
        assert titles(after) == [*before, (title, 2)]


@pytest.mark.parametrize("title", ["", "a\nb", " ", "x #"])
def test_a_title_that_would_not_be_found_again_is_refused(title: str) -> None:
    with pytest.raises(UsageError):
        with_section(NOTES, title, "x")


@pytest.mark.parametrize("content", ["# X", "x\n\n## X", "```\nopen"])
def test_a_content_that_would_reach_out_of_its_section_is_refused(content: str) -> None:
    with pytest.raises(UsageError):
        with_section(NOTES, "B", content)
