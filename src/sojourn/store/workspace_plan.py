"""What putting a snapshot back would do, and what stands in its way; changes nothing.

docs/format.md#snapshots: nothing is touched but what the list before or the list to be holds. The
file that says what is ignored is never removed, else the next snapshot would take what it hides.
"""

import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.format.blob import check
from sojourn.format.snapshot import Entry, Snapshot, folders
from sojourn.ids import BlobId
from sojourn.ports_workspace import NOTHING, Conflict, Plan
from sojourn.store.disk import Disk
from sojourn.store.durable import read_whole
from sojourn.store.workspace_folders import FILE_FLAGS, Reach
from sojourn.store.workspace_known import Rows, holds, row_at
from sojourn.store.workspace_rules import OWN
from sojourn.store.workspace_walk import escaped

LONGEST_TARGET: Final = 4096
"""Bytes of a link's target, as Linux has it."""

MOST_LINKS: Final = 40
"""Links on the way of one target, as Linux has it."""

CHUNK: Final = 1 << 20

FOREIGN: Final = "something that no snapshot holds lies there"
MODIFIED: Final = "it changed since the snapshot before"
UNKNOWN: Final = b"/\0"
"""Stands for a target that is gone: no other link may lead through it."""

OUTSIDE: Final = "its target leads out of the workspace"
CIRCLE: Final = f"its target goes round in a circle, or through more than {MOST_LINKS} links"
FULL: Final = "a folder lies there that holds something else"


class Planner:
    """Plans for one open workspace; `rows` say how ours were when they were last read.

    `gone` says of contents that are not there why they are not.
    """

    def __init__(
        self,
        reach: Reach,
        rows: Rows,
        capsule: str,
        disk: Disk,
        *,
        gone: Mapping[BlobId, str] = NOTHING,
    ) -> None:
        self._gone = gone
        self._reach = reach
        self._rows = rows
        self._capsule = capsule
        self._disk = disk
        self._conflicts: list[Conflict] = []
        self._folders: dict[str, bool] = {"": True}

    def plan(self, before: Snapshot, wanted: Snapshot) -> Plan:
        """What makes the folder `wanted`, where `before` is what is ours in it."""
        ours = {entry.path: entry for entry in before.entries}
        as_wanted = {
            entry.path
            for entry in wanted.entries
            if ours.get(entry.path) == entry and self._is_as_known(entry)
        }
        refused = [
            one
            for one in (*self._refused(wanted), *self._without_content(wanted))
            if one.path not in as_wanted
        ]
        theirs = {entry.path for entry in wanted.entries} - {one.path for one in refused}
        bare = _bare(wanted)
        remove = tuple(
            entry
            for entry in before.entries
            if (entry.path not in theirs or (entry.path in bare and entry.type != "directory"))
            and entry.path != OWN
            and self._is_still_ours(entry)
        )
        removed = {entry.path for entry in remove}
        make = [
            entry
            for entry in wanted.entries
            if entry.path in theirs
            and entry.path not in as_wanted
            and self._may_be_made(entry, ours, removed)
        ]
        return Plan(
            make=tuple(entry for entry in make if entry.type != "symlink"),
            links=tuple(entry for entry in make if entry.type == "symlink"),
            remove=remove,
            refused=tuple(refused),
            conflicts=tuple(self._conflicts),
            folders=frozenset(folders(theirs) | bare),
        )

    def _is_still_ours(self, entry: Entry) -> bool:
        """Whether there is something to remove; what somebody changed is a conflict."""
        found = self._reach.stat(entry.path)
        if found is None:
            return False
        if entry.type == "directory":
            return stat.S_ISDIR(found.st_mode)
        if not self._holds(entry, found):
            self._conflict(entry.path, MODIFIED)
        return True

    def _is_as_known(self, entry: Entry) -> bool:
        found = self._reach.stat(entry.path)
        if found is None:
            return False
        if entry.type == "directory":
            return stat.S_ISDIR(found.st_mode)
        return self._holds(entry, found)

    def _may_be_made(self, entry: Entry, ours: Mapping[str, Entry], removed: set[str]) -> bool:
        """Whether it must be made; what stands in its way is a conflict."""
        if not self._is_folder(entry.path.rpartition("/")[0], removed):
            return True
        found = self._reach.stat(entry.path)
        if found is None:
            return True
        if stat.S_ISDIR(found.st_mode):
            if entry.type == "directory":
                return False
            if not self._only_ours(entry.path, removed):
                self._conflict(entry.path, FULL)
            return True
        old = ours.get(entry.path)
        if old is not None and self._holds(old, found):
            return True
        if self._is_equal(entry, found):
            return False
        self._conflict(entry.path, FOREIGN if old is None else MODIFIED)
        return True

    def _is_folder(self, path: str, removed: set[str]) -> bool:
        """Whether a folder is there; what stands in its way is a conflict, said once."""
        if path not in self._folders:
            above = self._is_folder(path.rpartition("/")[0], removed)
            found = self._reach.stat(path) if above else None
            self._folders[path] = found is not None and stat.S_ISDIR(found.st_mode)
            if found is not None and not self._folders[path] and path not in removed:
                self._conflict(path, FOREIGN)
        return self._folders[path]

    def _holds(self, entry: Entry, found: os.stat_result) -> bool:
        """Whether a path is as the list before says: by its stat key, else by its content."""
        row = row_at(self._rows, entry.path)
        if row is not None and row.sha256 == entry.sha256 and holds(row, found):
            return True
        return self._is_equal(entry, found)

    def _is_equal(self, entry: Entry, found: os.stat_result) -> bool:
        """Whether what lies there is just what the entry says, by its bytes."""
        folder, _, name = entry.path.rpartition("/")
        if stat.S_ISLNK(found.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=self._reach.at(folder)))
            return entry.type == "symlink" and sha256(target).hexdigest() == entry.sha256
        kind = "executable" if found.st_mode & stat.S_IXUSR else "file"
        if not stat.S_ISREG(found.st_mode) or (kind, found.st_size) != (entry.type, entry.size):
            return False
        digest = sha256()
        handle = os.open(name, FILE_FLAGS, dir_fd=self._reach.at(folder))
        try:
            while data := os.read(handle, CHUNK):
                digest.update(data)
        finally:
            os.close(handle)
        return digest.hexdigest() == entry.sha256

    def _only_ours(self, path: str, removed: set[str]) -> bool:
        """Whether nothing would be left in a folder once ours is removed from it."""
        with os.scandir(self._reach.at(path)) as listed:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed]
        return all(
            self._only_ours(f"{path}/{name}", removed) if is_folder else f"{path}/{name}" in removed
            for name, is_folder in entries
        )

    def _conflict(self, path: str, reason: str) -> None:
        conflict = Conflict(path=escaped(path), reason=reason)
        if conflict not in self._conflicts:
            self._conflicts.append(conflict)

    def _without_content(self, wanted: Snapshot) -> list[Conflict]:
        """What cannot be made, since its content is gone; what lies there just so is left."""
        return [
            Conflict(path=entry.path, reason=self._gone[entry.sha256])
            for entry in wanted.entries
            if entry.sha256 is not None
            and entry.sha256 in self._gone
            and not self._is_as_known(entry)
        ]

    def _refused(self, wanted: Snapshot) -> list[Conflict]:
        """Links that would lead out of the workspace, or nowhere, with the reason."""
        targets = {
            entry.path: self._target(entry) for entry in wanted.entries if entry.type == "symlink"
        }
        known = {path.encode(): target for path, target in targets.items()}
        return [
            Conflict(path=path, reason=reason)
            for path, target in targets.items()
            if target != UNKNOWN and (reason := why_refused(path, target, known)) is not None
        ]

    def _target(self, entry: Entry) -> bytes:
        name = BlobId(entry.sha256 or "")
        if name in self._gone:
            return UNKNOWN
        path = f"{self._capsule}/{layout.blob_path(name)}"
        data = read_whole(self._disk, path, limit=LONGEST_TARGET + 1)
        target = check(name, data, size=entry.size)
        if not 0 < len(target) <= LONGEST_TARGET or b"\0" in target:
            raise FormatError(
                f"{entry.path} is no target of a link",
                code="snapshot_malformed",
                file=layout.blob_path(name),
            )
        return target


def _bare(listed: Snapshot) -> set[str]:
    """The empty folders of a list."""
    return {entry.path for entry in listed.entries if entry.type == "directory"}


def why_refused(path: str, target: bytes, links: Mapping[bytes, bytes]) -> str | None:
    """Why a link at `path` leads to no place below the root, through any other of `links`.

    None when it does. An absolute target never does, nor one that goes round in a circle.
    """
    where = path.encode().split(b"/")[:-1]
    ahead = target.split(b"/")[::-1]
    if target.startswith(b"/"):
        return OUTSIDE
    followed = 0
    while ahead:
        part = ahead.pop()
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not where:
                return OUTSIDE
            where.pop()
            continue
        where.append(part)
        further = links.get(b"/".join(where))
        if further is None:
            continue
        followed += 1
        if followed > MOST_LINKS:
            return CIRCLE
        if further.startswith(b"/"):
            return OUTSIDE
        where.pop()
        ahead += further.split(b"/")[::-1]
    return None
