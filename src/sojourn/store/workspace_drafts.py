"""Half-made files of a workspace, in one folder below it, and their way to where they belong.

A folder that is not there yet is made whole and moved as one; every other file is moved alone
(docs/format.md#snapshots).
"""

import errno
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

from sojourn.format import layout
from sojourn.store.workspace_folders import Reach, open_folder

DRAFTS: Final = f"{layout.TEMPORARY_PREFIX}restore"
"""The folder in which files are made; what an earlier run left there is removed."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TAKEN: Final = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


class Drafts:
    """What is made for the open workspace `reach`; the folder is gone afterwards."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._whole: dict[str, str] = {}
        self._alone: list[tuple[str, str]] = []
        self._links: list[tuple[str, str]] = []
        self._tops: dict[str, str | None] = {"": None}
        self._names = 0

    def __enter__(self) -> Self:
        self._sweep()
        os.mkdir(DRAFTS, 0o700, dir_fd=self._reach.root)
        self._inside = Reach(DRAFTS, inside=self._reach.root)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._inside.close()
        self._sweep()

    def make_file(self, path: str, mode: int) -> int:
        """A handle to write what shall lie at `path`."""
        folder, _, name = path.rpartition("/")
        top = self._top(folder)
        if top is None:
            here = self._name()
            self._alone.append((here, path))
            return os.open(here, _NEW, mode, dir_fd=self._inside.root)
        if top not in self._whole:
            self._whole[top] = self._name()
        inside = self._inside.at(self._whole[top] + folder[len(top) :], make=True)
        return os.open(name, _NEW, mode, dir_fd=inside)

    def make_link(self, path: str, target: bytes) -> None:
        """Make the link that shall lie at `path`."""
        here = self._name()
        self._links.append((here, path))
        os.symlink(target, here, dir_fd=self._inside.root)

    def alone(self) -> Iterator[str]:
        """The paths that are moved alone."""
        return (path for _, path in (*self._alone, *self._links))

    def move(self) -> None:
        """Everything to its place, links last."""
        for top, here in self._whole.items():
            try:
                self._rename(here, top)
            except OSError as failure:
                # Somebody made the folder meanwhile.
                if failure.errno not in _TAKEN:
                    raise
                self._move_each(here, top)
        for here, path in (*self._alone, *self._links):
            self._rename(here, path)

    def _top(self, folder: str) -> str | None:
        """The first folder on the way to this one that is not there; None when all are."""
        if folder not in self._tops:
            top = self._top(folder.rpartition("/")[0])
            if top is None and self._reach.stat(folder) is None:
                top = folder
            self._tops[folder] = top
        return self._tops[folder]

    def _name(self) -> str:
        self._names += 1
        return str(self._names)

    def _rename(self, here: str, path: str) -> None:
        folder, _, name = path.rpartition("/")
        inside = self._reach.at(folder, make=True)
        above, _, last = here.rpartition("/")
        os.rename(last, name, src_dir_fd=self._inside.at(above), dst_dir_fd=inside)

    def _move_each(self, here: str, path: str) -> None:
        with os.scandir(self._inside.at(here)) as listed:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed]
        for name, is_folder in entries:
            move = self._move_each if is_folder else self._rename
            move(f"{here}/{name}", f"{path}/{name}")

    def _sweep(self) -> None:
        try:
            handle = open_folder(DRAFTS, inside=self._reach.root)
        except FileNotFoundError:
            return
        try:
            _empty(handle)
        finally:
            os.close(handle)
        os.rmdir(DRAFTS, dir_fd=self._reach.root)


def _empty(folder: int) -> None:
    """Remove everything below an open folder, never through a link."""
    with os.scandir(folder) as listed:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed]
    for name, is_folder in entries:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        handle = open_folder(name, inside=folder)
        try:
            _empty(handle)
        finally:
            os.close(handle)
        os.rmdir(name, dir_fd=folder)
