"""Opens what a tool's path names, and never anything outside the workspace.

Each part of a path is opened by itself, from the folder that was opened before it, and without
following links; a link is read and walked in the same way. So no exchange of a folder for a link,
at whatever moment, leads out (docs/tools.md#paths).

Imports the standard library and `sojourn.errors` alone, since the search runs it in a process of
its own.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from sojourn.errors import UsageError

LINKS: Final = 40
"""Links followed in one path, as in the kernel."""
PART_BYTES: Final = 255
PATH_BYTES: Final = 1024

DRAFT: Final = ".sojourn-draft.tmp"
"""Where a file's new bytes are written first, in the folder of the file; never listed.

One name a folder, so that what a killed process left is replaced by the next write there.
"""

_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class PathRefused(UsageError):
    """The path is none that tools may use; nothing was opened or changed."""

    default_code = "path_refused"


class Spot:
    """A name in an open folder: what a path leads to, whether it exists or not.

    `name` is "." for the workspace itself. `shown` is the path without `.` parts.
    """

    def __init__(self, folder: int, name: str, shown: str) -> None:
        self.folder = folder
        self.name = name
        self.shown = shown

    def stat(self) -> os.stat_result | None:
        """What is there, None when nothing is."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self) -> int:
        """A descriptor to read the regular file that is there.

        Raises: PathRefused when there is none, or it is something else.
        """
        found = self.stat()
        if found is None:
            raise PathRefused(f"{self.shown}: no such file", code="no_file")
        _refuse_odd(found, self.shown)
        try:
            opened = os.open(self.name, _READ, dir_fd=self.folder)
        except OSError as error:
            raise _named(error, self.shown) from error
        # What was looked at may have been replaced since; what is open may not.
        try:
            _refuse_odd(os.fstat(opened), self.shown)
        except PathRefused:
            os.close(opened)
            raise
        return opened

    def open_folder(self) -> int:
        """A descriptor to list the folder that is there.

        Raises: PathRefused when there is none.
        """
        try:
            return os.open(
                self.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW,
                dir_fd=self.folder,
            )  # fmt: skip
        except OSError as error:
            raise _named(error, self.shown) from error


@contextmanager
def spot(workspace: str, path: str, *, make_folders: bool = False) -> Generator[Spot]:
    """Where `path` leads, its links followed as long as they stay in the workspace.

    `make_folders` makes the folders on the way that are missing, durably.

    Raises: PathRefused, which names the path.
    """
    parts = checked_parts(path)
    walk = _Walk(workspace, path, make_folders)
    try:
        yield walk.to(parts)
    finally:
        walk.close()


def checked_parts(path: str) -> list[str]:
    """The path's parts without `.`; empty for the workspace itself.

    Raises: PathRefused when it is absolute, goes up, or has a name that a capsule cannot keep.
    """
    shown = repr(path) if not path.isprintable() else path or "the path"
    if not path:
        raise PathRefused("the path is empty; the workspace itself is `.`")
    if path.startswith("/"):
        raise PathRefused(f"{shown}: absolute; give a path relative to the workspace")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise PathRefused(f"{shown}: goes up with `..`; only paths in the workspace are allowed")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        raise PathRefused(f"{shown}: has a control character in it")
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        raise PathRefused(f"{shown}: is not valid Unicode") from None
    if max(sizes, default=0) > PART_BYTES or sum(sizes) + len(sizes) > PATH_BYTES:
        raise PathRefused(
            f"{shown}: too long; at most {PART_BYTES} bytes a part and {PATH_BYTES} in all"
        )
    return parts


class _Walk:
    """The folders open on the way down; the last one is where the walk stands."""

    def __init__(self, workspace: str, path: str, make_folders: bool) -> None:
        self._path = path
        self._make_folders = make_folders
        self._links = 0
        try:
            self._open = [os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        except OSError as error:
            raise PathRefused(
                "the workspace folder cannot be opened", code="workspace_missing"
            ) from error

    def close(self) -> None:
        for folder in self._open:
            os.close(folder)

    def to(self, parts: list[str]) -> Spot:
        """Walk all parts but the last, and that too where it is a link."""
        left, shown = parts[::-1], "/".join(parts) or "."
        while left:
            part = left.pop()
            if part == "..":
                self._up()
            elif (target := self._link(part)) is not None:
                left += target
            elif left:
                self._down(part)
            else:
                return Spot(self._open[-1], part, shown)
        return Spot(self._open[-1], ".", shown)

    def _up(self) -> None:
        """Only a link's target has `..`; the folder above is the one that the walk came from."""
        if len(self._open) == 1:
            raise PathRefused(f"{self._path}: a link leads out of the workspace")
        os.close(self._open.pop())

    def _down(self, part: str) -> None:
        try:
            folder = os.open(part, _FOLDER, dir_fd=self._open[-1])
        except FileNotFoundError as error:
            if not self._make_folders:
                raise _named(error, self._path) from error
            folder = self._make(part)
        except OSError as error:
            raise _named(error, self._path) from error
        self._open.append(folder)

    def _make(self, part: str) -> int:
        above = self._open[-1]
        try:
            os.mkdir(part, dir_fd=above)
            sync_folder(above)
            return os.open(part, _FOLDER, dir_fd=above)
        except OSError as error:
            raise _named(error, self._path) from error

    def _link(self, part: str) -> list[str] | None:
        """The parts of the link's target, last first; None when it is no link."""
        try:
            target = os.readlink(part, dir_fd=self._open[-1])
        except OSError:
            return None
        self._links += 1
        if self._links > LINKS:
            raise PathRefused(f"{self._path}: more than {LINKS} links")
        if target.startswith("/"):
            raise PathRefused(f"{self._path}: a link leads out of the workspace")
        return [step for step in reversed(target.split("/")) if step not in ("", ".")]


def sync_folder(folder: int) -> None:
    """Make the names in an open folder durable; the descriptor may be one for walking only."""
    listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(listed)
    finally:
        os.close(listed)


def kind_of(mode: int) -> str:
    """What the mode says that something is, in a word."""
    kinds = (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "folder"),
        (stat.S_ISLNK, "link"),
        (stat.S_ISFIFO, "named pipe"),
        (stat.S_ISSOCK, "socket"),
    )
    return next((word for test, word in kinds if test(mode)), "device")


def _refuse_odd(found: os.stat_result, shown: str) -> None:
    """Reading a pipe or a device would wait for ever, or do something."""
    if stat.S_ISDIR(found.st_mode):
        raise PathRefused(f"{shown}: is a folder", code="is_folder")
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"{shown}: is a {kind_of(found.st_mode)}, not a regular file")


def _named(error: OSError, shown: str) -> PathRefused:
    """The error with the path in it; a link here was put there while the walk went on."""
    words = {
        errno.ENOENT: ("no such file or folder", "no_file"),
        errno.ENOTDIR: ("a part of it is not a folder", "not_folder"),
        errno.ELOOP: ("it was replaced by a link just now", "path_refused"),
        errno.EACCES: ("permission denied", "permission"),
        errno.ENXIO: ("is not a regular file", "path_refused"),
    }
    text, code = words.get(error.errno or 0, (os.strerror(error.errno or 0), "path_refused"))
    return PathRefused(f"{shown}: {text}", code=code)
