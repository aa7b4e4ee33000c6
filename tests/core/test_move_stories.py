"""Migrations in plain text do what their files say."""

from pathlib import Path

import pytest

from core.move_stories import SCRIPTS, told

FILES = sorted(SCRIPTS.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_migration_goes_as_it_is_told(path: Path) -> None:
    text = path.read_text("utf-8")
    assert told(text) == text, "if this is meant: PYTHONPATH=tests python -m core.move_stories"


def test_a_story_that_is_told_wrong_is_found() -> None:
    text = FILES[0].read_text("utf-8")
    wrong = text.replace("writes    FROZEN", "writes    HOLDER", 1)
    assert wrong != text
    assert told(wrong) != wrong


@pytest.mark.parametrize("line", ["> A jumps", "> A hears prepare m9"])
def test_a_line_that_cannot_be_is_an_error(line: str) -> None:
    with pytest.raises(LookupError):
        told(line)
