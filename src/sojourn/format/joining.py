"""Joins two edits of one text, section by section (docs/format.md#memory)."""

from itertools import count
from typing import Final, TypeAlias

Name: TypeAlias = tuple[str, int]
"""A section's first line, and how many sections before it begin with the same one."""

BLANK: Final = " \t\n\r"
NO_LINE: Final = ""
"""Stands for the first line of what comes before every section."""

AGAIN: Final = "Another edit of this part:"
"""Stands between two texts that are both kept."""


def join(old: str, first: str, second: str) -> str:
    """Both edits of `old`: what only one of them changed is taken from it, the rest is kept twice.

    A text that is not known is the empty one.
    """
    before, ours, theirs = sections(old), sections(first), sections(second)
    joined = (
        _joined(name, before.get(name), ours.get(name), theirs.get(name))
        for name in _order(ours, theirs)
    )
    return "\n\n".join(text for text in joined if text is not None) + "\n"


def sections(text: str) -> dict[Name, str]:
    """The sections of a text in their order, each without white space at its ends.

    One begins at each line that begins with `#`.
    """
    found: dict[Name, str] = {}
    lines: list[str] = []
    for line in (*text.split("\n"), "#"):
        if line.startswith("#"):
            section = "\n".join(lines).strip(BLANK)
            if section:
                found[_name(section, found)] = section
            lines = []
        lines.append(line)
    return found


def _name(section: str, found: dict[Name, str]) -> Name:
    line = section.partition("\n")[0].rstrip(BLANK) if section.startswith("#") else NO_LINE
    return next((line, number) for number in count() if (line, number) not in found)


def _order(ours: dict[Name, str], theirs: dict[Name, str]) -> list[Name]:
    """Those of the first text as they stand there; each other one after what it follows."""
    top = (NO_LINE, 0)
    order, last = [top, *(name for name in ours if name != top)], top
    for name in theirs:
        if name not in order:
            order.insert(order.index(last) + 1, name)
        last = name
    return order


def _joined(name: Name, before: str | None, first: str | None, second: str | None) -> str | None:
    if first == second or second == before:
        return first
    if first == before or first is None:
        return second
    if second is None:
        return first
    parts = (name[0], _below(name, first), AGAIN, _below(name, second))
    return "\n\n".join(part for part in parts if part)


def _below(name: Name, section: str) -> str:
    """A section without its first line, unless it begins without one."""
    if name[0] == NO_LINE:
        return section
    return section.partition("\n")[2].strip(BLANK)
