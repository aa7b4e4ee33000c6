"""Walks the folders of a workspace in order, following no link, within limits.

Imports the standard library and `sojourn` modules that do the same, since the search runs it in a
process of its own.
"""

import os
import stat
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from sojourn.tools.beneath import DRAFT, Spot

ENTRIES: Final = 20_000
"""Entries of one folder that are looked at."""

NEVER_ENTERED: Final = frozenset({".git"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something in a folder: `path` relative to the workspace, `depth` from 1.

    `folder` is the descriptor of the folder that it is in, open while the walk stands at it;
    `left_out` counts entries of this folder (`mode` of a folder) that were too many to look at.
    """

    path: str
    name: str
    depth: int
    mode: int
    size: int
    folder: int
    left_out: int = 0


def walk(start: Spot, *, depth: int, hidden: bool) -> Generator[Entry]:
    """Every entry below, sorted by the bytes of its name, a folder before what it holds.

    Hidden entries (names that begin with a dot) only when asked for, `.git` is never entered, and
    a folder that cannot be opened is passed over.
    """
    prefix = "" if start.shown == "." else f"{start.shown}/"
    top = start.open_folder()
    try:
        yield from _below(top, prefix, 1, depth, hidden)
    finally:
        os.close(top)


def _below(folder: int, prefix: str, level: int, depth: int, hidden: bool) -> Generator[Entry]:
    names, left_out = _names(folder, hidden)
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            # Gone since the folder was read.
            continue
        path = prefix + name
        yield Entry(
            path=path,
            name=name,
            depth=level,
            mode=found.st_mode,
            size=found.st_size,
            folder=folder,
        )
        if stat.S_ISDIR(found.st_mode) and level < depth and name not in NEVER_ENTERED:
            yield from _inside(folder, name, path, level, depth, hidden)
    if left_out:
        yield Entry(
            path=prefix or ".",
            name="",
            depth=level,
            mode=stat.S_IFDIR,
            size=0,
            folder=folder,
            left_out=left_out,
        )


def _inside(
    folder: int, name: str, path: str, level: int, depth: int, hidden: bool
) -> Generator[Entry]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        inner = os.open(name, flags, dir_fd=folder)
    except OSError:
        return
    try:
        yield from _below(inner, f"{path}/", level + 1, depth, hidden)
    finally:
        os.close(inner)


def _names(folder: int, hidden: bool) -> tuple[list[str], int]:
    """The folder's names, and how many more there are than may be looked at."""
    names: list[str] = []
    left_out = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            wanted = hidden or not entry.name.startswith(".")
            if wanted and not entry.name.startswith(DRAFT):
                left_out += len(names) >= ENTRIES
                names += [entry.name] if len(names) < ENTRIES else []
    return sorted(names, key=os.fsencode), left_out


def printable(path: str) -> str:
    """The path itself; one with odd bytes or control characters as a quoted string that says so."""
    sound = os.fsencode(path).decode(errors="replace")
    if sound == path and path.isprintable():
        return path
    return f"{sound!r} [unusual name]"
