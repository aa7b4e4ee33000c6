"""Searches the files of a workspace; run as a process of its own, since a pattern may never end.

`re` holds the interpreter while it matches and some patterns take exponential time, so no watchdog
in the same process could stop it. The process reads one request from its input, writes one answer,
and the kernel ends it when its time is up or its parent is gone (docs/tools.md#search).

Imports the standard library and `sojourn` modules that do the same.
"""

import ctypes
import fnmatch
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from typing import Final

from sojourn.tools.beneath import PathRefused, Spot, spot
from sojourn.tools.walk import Entry, printable, walk

FILE_BYTES: Final = 16 * 1024 * 1024
"""Larger files are passed over."""

LINE_CHARACTERS: Final = 2000
"""Characters of a line that are searched."""

SHOWN_CHARACTERS: Final = 300
MATCHES: Final = 500
DEPTH: Final = 40
BINARY_BYTES: Final = 8192
PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to search where; `glob` holds for a name or, with a `/` in it, for a whole path."""

    workspace: str
    path: str
    pattern: str
    literal: bool
    ignore_case: bool
    glob: str
    hidden: bool
    seconds: int


@dataclass(kw_only=True)
class Answer:
    """Lines found, as (path, line from 1, text), and what was passed over; `refused` says why."""

    found: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    files: int = 0
    binary: int = 0
    large: int = 0
    unread: int = 0
    cut_lines: int = 0
    more: bool = False
    refused: str = ""
    code: str = ""


def search(request: Request) -> Answer:
    """The answer to a request; a path or pattern that cannot be used is a refusal in it."""
    answer = Answer()
    try:
        flags = re.IGNORECASE if request.ignore_case else 0
        text = re.escape(request.pattern) if request.literal else request.pattern
        pattern = re.compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        answer.refused, answer.code = (
            f"the pattern is no regular expression: {error}",
            "bad_pattern",
        )
        return answer
    try:
        with spot(request.workspace, request.path) as start:
            _search_files(start, request, pattern, answer)
    except PathRefused as error:
        answer.refused, answer.code = error.message, error.code
    return answer


def _search_files(
    start: Spot, request: Request, pattern: "re.Pattern[str]", answer: Answer
) -> None:
    for path, opened in _files(start, request, answer):
        _search_file(path, opened, pattern, answer)
        if answer.more:
            return


def _files(start: Spot, request: Request, answer: Answer) -> Generator[tuple[str, int]]:
    """Each regular file to search with an open descriptor, closed when the next is asked for."""
    found = start.stat()
    if found is not None and not stat.S_ISDIR(found.st_mode):
        opened = start.open_file()
        try:
            yield start.shown, opened
        finally:
            os.close(opened)
        return
    for entry in walk(start, depth=DEPTH, hidden=request.hidden):
        if stat.S_ISREG(entry.mode) and _named(entry, request.glob):
            yield from _opened(entry, answer)


def _opened(entry: Entry, answer: Answer) -> Generator[tuple[str, int]]:
    try:
        opened = Spot(entry.folder, entry.name, entry.path).open_file()
    except PathRefused:
        answer.unread += 1
        return
    try:
        yield entry.path, opened
    finally:
        os.close(opened)


def _named(entry: Entry, glob: str) -> bool:
    """As in .gitignore, `**/` stands for any folders or none."""
    if not glob:
        return True
    if "/" not in glob:
        return fnmatch.fnmatchcase(entry.name, glob)
    return bool(re.fullmatch(_glob_pattern(glob), entry.path))


def _glob_pattern(glob: str) -> str:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    stands = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(stands.get(piece, re.escape(piece)) for piece in pieces)


def _search_file(path: str, opened: int, pattern: "re.Pattern[str]", answer: Answer) -> None:
    if os.fstat(opened).st_size > FILE_BYTES:
        answer.large += 1
        return
    with os.fdopen(opened, "rb", closefd=False) as file:
        data = file.read(FILE_BYTES)
    if b"\x00" in data[:BINARY_BYTES]:
        answer.binary += 1
        return
    answer.files += 1
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        answer.cut_lines += len(line) > LINE_CHARACTERS
        match = pattern.search(line.removesuffix("\r")[:LINE_CHARACTERS])
        if match is None:
            continue
        if len(answer.found) == MATCHES:
            answer.more = True
            return
        answer.found.append((printable(path), number, _around(line, match.start())))


def _around(line: str, place: int) -> str:
    """The line, or the piece of a long one in which the match begins."""
    line = line.removesuffix("\r")
    if len(line) <= SHOWN_CHARACTERS:
        return line
    start = max(0, min(place - SHOWN_CHARACTERS // 3, len(line) - SHOWN_CHARACTERS))
    piece = line[start : start + SHOWN_CHARACTERS]
    return ("..." if start else "") + piece + ("..." if start + len(piece) < len(line) else "")


def main() -> None:
    """Answer the request on standard input; never outlive the time it names, or the parent."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    request = Request(**json.load(sys.stdin))
    # The default action of the signal ends the process, whatever Python is doing.
    signal.alarm(request.seconds + 1)
    if os.getppid() != parent:
        return
    json.dump(asdict(search(request)), sys.stdout)
