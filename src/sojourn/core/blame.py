"""Which edit wrote each line of a text (docs/cli.md: `memory show --blame`)."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import TypeVar

Edit = TypeVar("Edit")


def blame(edits: Iterable[tuple[Edit, str]]) -> list[tuple[Edit, str]]:
    """The last text's lines, each with the edit after which it stood there for good.

    `edits` are the whole texts in their order. Lines end at a line feed; a line that moved counts
    as new where it moved to.
    """
    known: list[tuple[Edit, str]] = []
    for edit, text in edits:
        before, after = [line for _, line in known], text.split("\n")
        if after[-1] == "":
            after.pop()
        merged: list[tuple[Edit, str]] = []
        for tag, start, end, new_start, new_end in SequenceMatcher(
            None, before, after, autojunk=False
        ).get_opcodes():
            if tag == "equal":
                merged += known[start:end]
            else:
                merged += [(edit, line) for line in after[new_start:new_end]]
        known = merged
    return known
