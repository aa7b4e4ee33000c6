"""Sections of a Markdown text, so that one can be replaced without touching the others.

A section is a heading (`#` to `######`) with everything below it up to the next heading of its
rank or a higher one. Lines inside a fence of three or more backticks or tildes are no headings.
"""

import re
from dataclasses import dataclass
from typing import Final

from sojourn.errors import UsageError

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
NEW_RANK: Final = 2
"""The rank of a section that is added."""


@dataclass(frozen=True, slots=True)
class Section:
    """One heading: its words, its rank from 1, and where its text lies in the lines."""

    title: str
    rank: int
    first: int
    end: int


def sections(text: str) -> tuple[Section, ...]:
    """Every section in the order of the headings; deeper ones lie inside others."""
    lines = _LINE.findall(text)
    headings, _ = _headings(lines)
    found: list[Section] = []
    for place, (at, rank, title) in enumerate(headings):
        later = (other for other, other_rank, _ in headings[place + 1 :] if other_rank <= rank)
        found.append(Section(title, rank, at + 1, next(later, len(lines))))
    return tuple(found)


def with_section(text: str, title: str, content: str) -> str:
    """The text with this content in the first section of that title; added at the end if new.

    Doing it twice is doing it once. An empty content takes the section away. Every other byte stays
    as it is, but for the end of the line before a new section.

    Raises: UsageError `section_title`, `section_content`.
    """
    title = title.strip()
    lines = _LINE.findall(text)
    found = next((one for one in sections(text) if one.title == title), None)
    rank = NEW_RANK if found is None else found.rank
    if not title or _HEADING.fullmatch(f"# {title}") is None or _title(f"# {title}") != title:
        raise UsageError("a title is one line of words", code="section_title")
    body = _content(content, rank)
    if found is None and not body:
        return text
    if found is None and _headings(lines)[1]:
        raise UsageError("the text before leaves a fence of code open", code="section_content")
    if found is None:
        return _ended(text) + (f"\n## {title}\n\n{body}" if text else f"## {title}\n\n{body}")
    before, after = lines[: found.first], lines[found.end :]
    if not body:
        return "".join([*before[:-1], *after])
    before[-1] = _ended(before[-1])
    return "".join([*before, "\n", body, *(["\n"] if after else []), *after])


def section_text(text: str, title: str) -> str:
    """The content of the first section of that title, empty when there is none."""
    lines = _LINE.findall(text)
    found = next((one for one in sections(text) if one.title == title.strip()), None)
    return "" if found is None else "".join(lines[found.first : found.end]).strip("\r\n")


def _content(content: str, rank: int) -> str:
    """The content with one end of line; it must not reach out of its section."""
    body = content.strip("\r\n")
    headings, open_fence = _headings(_LINE.findall(body))
    if open_fence:
        raise UsageError("the text leaves a fence of code open", code="section_content")
    if any(other <= rank for _, other, _ in headings):
        raise UsageError(
            f"the text holds a heading of rank {rank} or higher, which would begin a section of "
            f"its own; use `{'#' * min(rank + 1, 6)}` for headings inside it",
            code="section_content",
        )
    return _ended(body)


def _headings(lines: list[str]) -> tuple[list[tuple[int, int, str]], bool]:
    """The place, rank and title of each heading, and whether a fence is open at the end."""
    found: list[tuple[int, int, str]] = []
    fence = ""
    for at, line in enumerate(lines):
        marks = _FENCE.fullmatch(line.rstrip("\r\n"))
        if fence:
            closes = marks is not None and marks[1].startswith(fence) and not marks[2].strip()
            fence = "" if closes else fence
        elif marks is not None and not (marks[1][0] == "`" and "`" in marks[2]):
            fence = marks[1]
        elif (heading := _HEADING.fullmatch(line.rstrip("\r\n"))) is not None:
            found.append((at, len(heading[1]), (heading[2] or "").strip()))
    return found, bool(fence)


def _title(line: str) -> str:
    heading = _HEADING.fullmatch(line)
    return "" if heading is None else (heading[2] or "").strip()


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"
