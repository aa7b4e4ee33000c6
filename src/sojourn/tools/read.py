"""The tool `read`: lines of a text file of the workspace."""

import codecs
import os
from collections.abc import Generator
from typing import Annotated, BinaryIO, Final, NamedTuple

from msgspec import Meta

from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.beneath import Spot, spot
from sojourn.tools.declare import tool
from sojourn.tools.output import TO_MODEL, text_result

SCANNED: Final = 64 * 1024 * 1024
"""Bytes of one file that are read to find and count lines."""

LINE_CHARACTERS: Final = 2000
BINARY_BYTES: Final = 8192
"""A file is binary when a NUL is among its first bytes."""

_LINE_BYTES: Final = LINE_CHARACTERS * 4
_HEADER_ROOM: Final = 1024


@tool(replay="safe", name="read")
def read_file(
    path: Annotated[str, Meta(description="Path relative to the workspace.")],
    context: ToolContext,
    start: Annotated[int, Meta(ge=1, description="First line to show, from 1.")] = 1,
    lines: Annotated[int, Meta(ge=1, description="How many lines at most.")] = 1000,
) -> ToolResult:
    """Read a text file of the workspace.

    The first line of the answer names the file and the lines shown; the text follows as it is.
    Long files come in pieces: ask again with `start`.
    """
    with spot(context.workspace, path) as found, os.fdopen(found.open_file(), "rb") as file:
        beginning = file.read(BINARY_BYTES)
        if b"\x00" in beginning:
            size = os.fstat(file.fileno()).st_size
            return text_result(
                f"{found.shown}: a binary file of {size:,} bytes; only text can be read",
                failed=True,
                code="binary",
            )
        file.seek(0)
        return _shown(found, _Window(start, lines).take(file))


class _Line(NamedTuple):
    """A line's first bytes without its end, and its size with it."""

    head: bytes
    size: int
    end: bytes


def _lines(file: BinaryIO) -> Generator[_Line]:
    """Lines end at 0x0A alone; a long one is not kept whole."""
    head, size, scanned = b"", 0, 0
    while scanned < SCANNED and (piece := file.readline(_LINE_BYTES)):
        scanned += len(piece)
        head = head or piece
        size += len(piece)
        if piece.endswith(b"\n"):
            # Of a long line only the last piece knows how it ends.
            end = b"\r\n" if piece.endswith(b"\r\n") else b"\n"
            yield _Line(head.removesuffix(end), size, end)
            head, size = b"", 0
    if size:
        yield _Line(head, size, b"")


class _Window:
    """The lines asked for, as far as one answer holds them, and how many there are in all."""

    def __init__(self, start: int, lines: int) -> None:
        self.start = start
        self._wanted = lines
        self.text: list[str] = []
        self.notes: dict[str, None] = {}
        self.total = 0
        self.whole = True
        self._room = TO_MODEL - _HEADER_ROOM

    def take(self, file: BinaryIO) -> "_Window":
        last: _Line | None = None
        for last in _lines(file):
            self.total += 1
            if self.start <= self.total < self.start + self._wanted:
                self._add(last)
        self.whole = not file.read(1)
        if last is not None and not last.end and self.whole:
            self.notes["no newline at the end of the file"] = None
        return self

    def _add(self, line: _Line) -> None:
        text = self._decoded(line)
        self._room -= len(text.encode()) + 1
        if self._room < 0 and self.text:
            # What follows must not be shown either, or a line would be missing between.
            self._wanted = 0
            return
        self.text.append(text)

    def _decoded(self, line: _Line) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        cut = len(line.head) + len(line.end) < line.size
        text = decoder.decode(line.head, final=not cut)
        if "\N{REPLACEMENT CHARACTER}" in text and b"\xef\xbf\xbd" not in line.head:
            self.notes["bytes that are not UTF-8 are shown as \N{REPLACEMENT CHARACTER}"] = None
        if line.end == b"\r\n":
            self.notes["lines end in CR LF, shown as LF"] = None
        if cut or len(text) > LINE_CHARACTERS:
            shown = f"line {self.total} is cut, it has {line.size:,} bytes"
            self.notes[shown] = None
            text = text[:LINE_CHARACTERS]
        return text


def _shown(found: Spot, window: _Window) -> ToolResult:
    more = "" if window.whole else f"more than the {SCANNED // 1024 // 1024} MiB looked at: "
    if not window.total:
        return text_result(f"[{found.shown}: empty]")
    if not window.text:
        return text_result(
            f"{found.shown}: there is no line {window.start}; it has {more}{window.total:,} lines",
            failed=True,
            code="no_line",
        )
    last = window.start + len(window.text) - 1
    span = f"lines {window.start}-{last} of {more}{window.total:,}"
    notes = list(window.notes)
    header = "; ".join([span, *notes[:5], *(["..."] if len(notes) > 5 else [])])
    return text_result(f"[{found.shown}: {header}]\n" + "\n".join(window.text))
