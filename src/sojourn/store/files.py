"""A capsule's folder as bytes to verify: reads in pieces, follows no link, changes nothing."""

import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from sojourn.format import layout

CHUNK: Final = 1 << 20
"""Bytes read at once of files that are only hashed."""

LOG_CHUNK: Final = 1 << 16
"""Of the log: few enough to stay in the processor's cache while they are looked at."""


class FolderFiles:
    """The `CapsuleFiles` of docs/format.md#verification for a folder, given absolute."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

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
        """The names in the folder of blobs."""
        try:
            return os.listdir(self._path(layout.BLOBS))
        except OSError:
            return []

    def blob_sizes(self) -> dict[str, int]:
        """Names of regular files in the folder of blobs, and their sizes."""
        if self._led_away(f"{layout.BLOBS}/"):
            return {}
        try:
            with os.scandir(self._path(layout.BLOBS)) as entries:
                plain = (one for one in entries if one.is_file(follow_symlinks=False))
                return {one.name: one.stat(follow_symlinks=False).st_size for one in plain}
        except OSError:
            return {}

    def read(self, path: str, limit: int) -> bytes | None:
        """The first `limit` + 1 bytes of a file, None when there is none."""
        pieces: list[bytes] = []
        left = limit + 1
        with self._open(path) as handle:
            if handle is None:
                return None
            while left and (data := os.read(handle, min(left, CHUNK))):
                pieces.append(data)
                left -= len(data)
        return b"".join(pieces)

    def size(self, path: str) -> int | None:
        """The size of a file, None when there is none."""
        with self._open(path) as handle:
            return None if handle is None else os.fstat(handle).st_size

    def digest(self, path: str) -> str | None:
        """The sha256 of a file's bytes, None when there is none."""
        if self.size(path) is None:
            return None
        digest = sha256()
        for chunk in self.chunks(path):
            digest.update(chunk)
        return digest.hexdigest()

    def chunks(self, path: str, size: int = CHUNK, *, start: int = 0) -> Iterator[bytes]:
        """A file's bytes from `start` on in pieces, none when there is no file."""
        with self._open(path) as handle:
            if handle is not None and start:
                os.lseek(handle, start, os.SEEK_SET)
            while handle is not None and (data := os.read(handle, size)):
                yield data

    @contextmanager
    def _open(self, path: str) -> Generator[int | None]:
        """A descriptor of a regular file, None where there is none or a link is on the way."""
        handle: int | None = None
        if not self._led_away(path):
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                handle = os.open(self._path(path), flags)
            except OSError:
                handle = None
        try:
            regular = handle is not None and stat.S_ISREG(os.fstat(handle).st_mode)
            yield handle if regular else None
        finally:
            if handle is not None:
                os.close(handle)

    def _led_away(self, path: str) -> bool:
        folders = path.split("/")[:-1]
        above = ("/".join(folders[: count + 1]) for count in range(len(folders)))
        return any(os.path.islink(self._path(folder)) for folder in above)

    def _is_link(self, folder: str, name: str) -> bool:
        return os.path.islink(os.path.join(folder, name))

    def _path(self, path: str) -> str:
        return os.path.join(self._folder, path)

    def _join(self, inside: str, name: str) -> str:
        return name if inside == "." else f"{inside}/{name}"
