"""One walk over a workspace: what is as it was, and what must be read (docs/format.md#snapshots).

Folders are opened by their handles and links are never followed. Names that no snapshot can hold
are listed; none of them stops the walk.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sojourn.format import paths
from sojourn.format.capsule_kinds import LeftOut
from sojourn.format.layout import TEMPORARY_PREFIX
from sojourn.store.workspace_folders import open_folder
from sojourn.store.workspace_known import STAT, Row, Rows, holds
from sojourn.store.workspace_rules import GIT, OWN, Rules, rules_of

CHANGED: Final = "it changed each time it was read"

_SPECIAL: Final = (
    (stat.S_ISSOCK, "it is a socket"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISCHR, "it is a device"),
    (stat.S_ISBLK, "it is a device"),
)


_NOTHING: Final[Mapping[str, Row]] = {}


class Unread(NamedTuple):
    """A file or link whose content must be read."""

    path: str
    found: os.stat_result


@dataclass(slots=True)
class Walk:
    """What a walk found: names by folder that are the `same` as their rows, and the rest."""

    same: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    unread: list[Unread] = field(default_factory=list[Unread])
    empty: list[str] = field(default_factory=list[str])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])


class _Level(NamedTuple):
    """An open folder on the way down; `path` ends in `/`, or is empty for the root."""

    handle: int
    path: str
    rules: Rules | None
    fresh: bool
    below: Iterator[str]
    kept: list[str]


class Walker:
    """Walks a folder once; `rows` are what earlier readings know."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._walk = Walk()

    def walk(self, root: str) -> Walk:
        """Everything below `root`. Raises: OSError when the root itself cannot be read."""
        levels = [self._enter(open_folder(root), "", None, fresh=False)]
        try:
            while levels:
                level = levels[-1]
                name = next(level.below, None)
                if name is not None:
                    self._descend(levels, level, name)
                    continue
                levels.pop()
                self._leave(level)
                if levels:
                    levels[-1].kept.append(level.path)
        finally:
            for level in levels:
                os.close(level.handle)
        return self._walk

    def _descend(self, levels: list[_Level], level: _Level, name: str) -> None:
        path = level.path + name
        try:
            handle = open_folder(name, inside=level.handle)
        except FileNotFoundError:
            return
        except OSError as failure:
            moved = failure.errno in (errno.ELOOP, errno.ENOTDIR)
            self._leave_out(path, CHANGED if moved else unreadable(failure))
            return
        try:
            levels.append(self._enter(handle, path + "/", level.rules, fresh=level.fresh))
        except OSError as failure:
            os.close(handle)
            self._leave_out(path, unreadable(failure))

    def _enter(self, handle: int, path: str, above: Rules | None, *, fresh: bool) -> _Level:
        """List an open folder; its own folders are what is left to descend into."""
        with os.scandir(handle) as listed:
            entries = {entry.name: entry for entry in listed}
        known = self._rows.get(path, _NOTHING)
        rules = above
        special = [name for name in (OWN, GIT) if name in entries]
        if special:
            rules, own = rules_of(above, path, special, handle)
            fresh = fresh or (own and self._changed(entries, special, known))
        elif OWN in known or GIT in known:
            fresh = True
        # While rules may be others, what is known says nothing about what they name.
        trusted = _NOTHING if fresh else known
        below: list[str] = []
        kept: list[str] = []
        same: list[str] = []
        for name, entry in entries.items():
            if entry.is_dir(follow_symlinks=False):
                below.append(name)
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as failure:
                self._leave_out(path + name, unreadable(failure))
                continue
            row = trusted.get(name)
            # As `holds` says; written out, since this is asked of every file each time.
            if row is not None and row.key == STAT(found):
                same.append(name)
            elif self._take(path, name, found, rules):
                kept.append(name)
        if same:
            self._walk.same.setdefault(path, []).extend(same)
            kept.append(path)
        names = [name for name in below if self._wanted(path + name, name, rules, folder=True)]
        return _Level(handle, path, rules, fresh, iter(names), kept)

    def _changed(
        self,
        entries: Mapping[str, "os.DirEntry[str]"],
        special: list[str],
        known: Mapping[str, Row],
    ) -> bool:
        """Whether an ignore file of this folder is not the one of the last reading."""
        for name in special:
            row = known.get(name)
            if row is None or not holds(row, entries[name].stat(follow_symlinks=False)):
                return True
        return False

    def _wanted(self, path: str, name: str, rules: Rules | None, *, folder: bool) -> bool:
        if name.startswith(TEMPORARY_PREFIX):
            return False
        if rules is not None and rules.ignores(path, folder=folder):
            return False
        reason = paths.unsafe(path)
        if reason is not None:
            self._leave_out(path, reason)
        return reason is None

    def _take(self, folder: str, name: str, found: os.stat_result, rules: Rules | None) -> bool:
        """Note a path that must be read, or is as it was; False when no snapshot holds it."""
        path = folder + name
        if not self._wanted(path, name, rules, folder=False):
            return False
        for is_kind, reason in _SPECIAL:
            if is_kind(found.st_mode):
                self._leave_out(path, reason)
                return False
        row = self._rows.get(folder, _NOTHING).get(name)
        if row is not None and holds(row, found):
            self._walk.same.setdefault(folder, []).append(name)
        else:
            self._walk.unread.append(Unread(path, found))
        return True

    def _leave(self, level: _Level) -> None:
        """Close a folder; it is an entry of its own when nothing in it is one."""
        os.close(level.handle)
        if level.kept or not level.path:
            return
        path = level.path[:-1]
        folder, slash, name = path.rpartition("/")
        row = self._rows.get(folder + slash, _NOTHING).get(name)
        if row is not None and stat.S_ISDIR(row.mode):
            self._walk.same.setdefault(folder + slash, []).append(name)
        else:
            self._walk.empty.append(path)

    def _leave_out(self, path: str, reason: str) -> None:
        self._walk.left_out.append(LeftOut(path=escaped(path), reason=reason))


def unreadable(failure: OSError) -> str:
    """Why something is left out that the kernel did not let us read."""
    return f"it cannot be read ({errno.errorcode.get(failure.errno or 0, 'unknown error')})"


def escaped(path: str) -> str:
    """The path as text: what is not UTF-8, and control characters, as `\\xNN`."""
    data = path.encode("utf-8", "surrogateescape")
    text = data.decode("utf-8", "backslashreplace")
    return "".join(
        f"\\x{ord(letter):02x}" if ord(letter) < 32 or 127 <= ord(letter) < 160 else letter
        for letter in text
    )
