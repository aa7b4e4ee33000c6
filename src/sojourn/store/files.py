"""A capsule's folder as bytes to verify: reads in pieces, follows no link, changes nothing."""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from sojourn.format import layout
from sojourn.store.digesting import CHUNK, Digester, digest_of, read_ahead

LOG_CHUNK: Final = 1 << 16
"""Of the log: few enough to stay in the processor's cache while they are looked at."""

AHEAD: Final = 32
"""Files that are open before they are read, so that a disk has something to do."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


_Waiting = tuple[str, int, int]
"""A path, its open handle and its size."""


class _Folder:
    """An open folder, closed with its last use."""

    __slots__ = ("handle",)

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __del__(self) -> None:
        os.close(self.handle)


class FolderFiles:
    """The `CapsuleFiles` of docs/format.md#verification for a folder, given absolute.

    Folders that were found are kept open, so each file is looked up once and through no link.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open_folders: dict[str, _Folder] = {}

    def log(self) -> Iterable[bytes] | None:
        """The log in chunks of 64 KiB, None when there is none."""
        if self.size(layout.TIMELINE) is None:
            return None
        return self.chunks(layout.TIMELINE, LOG_CHUNK)

    def paths(self) -> Iterable[str]:
        """Every file but the blobs; links and the like are named too, and read as absent."""
        for folder, folders, names in os.walk(self._folder):
            inside = os.path.relpath(folder, self._folder)
            folders[:] = [name for name in folders if self._join(inside, name) != layout.BLOBS]
            for name in (*names, *(one for one in folders if self._is_link(folder, one))):
                path = self._join(inside, name)
                if not layout.is_temporary(path):
                    yield path

    def odd(self) -> Iterator[str]:
        """Paths where something else than a regular file is: a link, a pipe, a folder."""
        for path in sorted(self.paths()):
            if not stat.S_ISREG(os.lstat(self._path(path)).st_mode):
                yield path
        for path in layout.FIXED_FILES:
            if os.path.isdir(self._path(path)) and not os.path.islink(self._path(path)):
                yield path

    def blobs(self) -> Iterable[str]:
        """The names in the folder of blobs, in the order in which they probably lie on the disk."""
        try:
            with os.scandir(self._path(layout.BLOBS)) as listed:
                found = [(entry.inode(), entry.name) for entry in listed]
        except OSError:
            return []
        return [name for _, name in sorted(found)]

    def blob_sizes(self) -> dict[str, int]:
        """Names of regular files in the folder of blobs, and their sizes."""
        inside = self._inside(layout.BLOBS)
        if inside is None:
            return {}
        try:
            with os.scandir(inside) as entries:
                plain = (one for one in entries if one.is_file(follow_symlinks=False))
                return {one.name: one.stat(follow_symlinks=False).st_size for one in plain}
        except OSError:
            return {}

    def read(self, path: str, limit: int) -> bytes | None:
        """The first `limit` + 1 bytes of a file, None when there is none."""
        opened = self._open(path)
        if opened is None:
            return None
        handle, _ = opened
        pieces: list[bytes] = []
        left = limit + 1
        try:
            while left and (data := os.read(handle, min(left, CHUNK))):
                pieces.append(data)
                left -= len(data)
        finally:
            os.close(handle)
        return b"".join(pieces)

    def size(self, path: str) -> int | None:
        """The size of a file, None when there is none."""
        folder, _, name = path.rpartition("/")
        inside = self._inside(folder)
        if inside is None:
            return None
        try:
            found = os.stat(name, dir_fd=inside, follow_symlinks=False)
        except OSError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def digest(self, path: str) -> str | None:
        """The sha256 of a file's bytes, None when there is none or it cannot be read."""
        ((_, digest),) = self.digests((path,))
        return digest

    def digests(self, paths: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        """The same of many files, in any order: long ones by threads, the others meanwhile."""
        waiting: deque[_Waiting] = deque()
        with Digester[str]() as long:
            try:
                yield from self._digests(paths, waiting, long)
            finally:
                for _, handle, _ in waiting:
                    os.close(handle)

    def _digests(
        self, paths: Iterable[str], waiting: deque[_Waiting], long: Digester[str]
    ) -> Iterator[tuple[str, str | None]]:
        for path in paths:
            opened = self._open(path)
            if opened is None:
                yield path, None
                continue
            handle, size = opened
            if long.takes(size):
                yield from long.add(path, handle)
                continue
            read_ahead(handle)
            waiting.append((path, handle, size))
            if len(waiting) > AHEAD:
                yield self._first(waiting)
        while waiting:
            yield self._first(waiting)
        yield from long.rest()

    def chunks(self, path: str, size: int = CHUNK, *, start: int = 0) -> Iterator[bytes]:
        """A file's bytes from `start` on in pieces, none when there is no file."""
        opened = self._open(path)
        if opened is None:
            return
        handle, _ = opened
        try:
            if start:
                os.lseek(handle, start, os.SEEK_SET)
            while data := os.read(handle, size):
                yield data
        finally:
            os.close(handle)

    def _first(self, waiting: deque[_Waiting]) -> tuple[str, str | None]:
        path, handle, size = waiting.popleft()
        try:
            return path, digest_of(handle, size)
        finally:
            os.close(handle)

    def _open(self, path: str) -> tuple[int, int] | None:
        """A regular file's handle and size, None where there is none or a link is on the way."""
        folder, _, name = path.rpartition("/")
        inside = self._inside(folder)
        if inside is None:
            return None
        try:
            handle = os.open(name, _FILE, dir_fd=inside)
        except OSError:
            return None
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            os.close(handle)
            return None
        return handle, found.st_size

    def _inside(self, folder: str) -> int | None:
        """The handle of a folder, None where there is none or a link is on the way."""
        known = self._open_folders.get(folder)
        if known is not None:
            return known.handle
        above, _, name = folder.rpartition("/")
        try:
            if folder:
                inside = self._inside(above)
                handle = None if inside is None else os.open(name, _FOLDER, dir_fd=inside)
            else:
                # The capsule itself may be reached through links.
                handle = os.open(self._folder, _FOLDER & ~os.O_NOFOLLOW)
        except OSError:
            handle = None
        if handle is None:
            return None
        self._open_folders[folder] = _Folder(handle)
        return handle

    def _is_link(self, folder: str, name: str) -> bool:
        return os.path.islink(os.path.join(folder, name))

    def _path(self, path: str) -> str:
        return os.path.join(self._folder, path)

    def _join(self, inside: str, name: str) -> str:
        return name if inside == "." else f"{inside}/{name}"
