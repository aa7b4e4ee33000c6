"""Workspaces for tests: a folder, a capsule's blobs, and what lies where."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.format import layout, snapshot
from sojourn.format.snapshot import Entry, Snapshot
from sojourn.ports_workspace import Plan, Taken
from sojourn.store.workspace import FolderWorkspace


class Time:
    """A clock that says what it is told, first a minute after now: files are then old enough."""

    def __init__(self) -> None:
        import time

        self.offset = 60_000_000_000
        self._time = time.time_ns

    def stand_at(self, when: int) -> None:
        """Say this time, in nanoseconds, and `offset` more."""
        self._time = lambda: when

    def __call__(self) -> int:
        return self._time() + self.offset


@dataclass
class Place:
    """A folder with a workspace and a capsule's folder of blobs."""

    folder: Path
    clock: Time = field(default_factory=Time)

    def __post_init__(self) -> None:
        (self.folder / "capsule" / layout.BLOBS).mkdir(parents=True, exist_ok=True)
        self.root.mkdir(exist_ok=True)

    @property
    def root(self) -> Path:
        return self.folder / "workspace"

    @property
    def stats(self) -> Path:
        return self.folder / "stats"

    def blobs(self) -> dict[str, bytes]:
        found = (self.folder / "capsule" / layout.BLOBS).iterdir()
        return {path.name: path.read_bytes() for path in found}

    def workspace(self, root: Path | None = None) -> FolderWorkspace:
        """As a new process opens it."""
        return FolderWorkspace(
            path=str(root or self.root),
            capsule=str(self.folder / "capsule"),
            stats=str(self.stats),
            now=self.clock,
        )

    def take(self) -> Taken:
        workspace = self.workspace()
        workspace.survey()
        taken = workspace.read()
        workspace.remember()
        return taken

    def restore(self, before: Snapshot, wanted: Snapshot, root: Path | None = None) -> Plan:
        workspace = self.workspace(root)
        plan = workspace.plan(before, wanted)
        if not plan.conflicts:
            workspace.put_back(plan)
        return plan

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def tree(root: Path) -> dict[str, str]:
    """Every path with what it is, for comparing whole folders."""
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(root):
        for name in (*names, *folders):
            path = Path(folder, name)
            found[path.relative_to(root).as_posix()] = _what(path)
    return found


def _what(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    if path.is_dir():
        return "folder"
    return f"{'x' if os.access(path, os.X_OK) else '-'} {path.read_bytes()!r}"


def entries(listed: Snapshot) -> dict[str, Entry]:
    return {entry.path: entry for entry in listed.entries}


def paths(listed: Snapshot) -> list[str]:
    return [entry.path for entry in listed.entries]


EMPTY = snapshot.EMPTY
