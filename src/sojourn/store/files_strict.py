"""A capsule's folder for whoever must know of every byte that could not be read."""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

from sojourn.format import layout
from sojourn.store.durable import reading
from sojourn.store.files import CHUNK

_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class StrictFiles:
    """The files of a folder, given absolute: what `FolderFiles` passes over is an error here."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def paths(self) -> list[str]:
        """Every file but the blobs, and links and the like.

        Raises: StorageError, with the path in the capsule as its file, for a folder.
        """
        return list(self._below(""))

    def blobs(self) -> list[str]:
        """The names in the folder of blobs. Raises: StorageError."""
        return [name for name, _ in self._listed(layout.BLOBS)]

    def chunks(self, path: str) -> Iterator[bytes]:
        """A file's bytes in pieces of at most 1 MiB.

        Raises: StorageError when it is no regular file, or cannot be read to its end.
        """
        with reading(path), self._open(path) as handle:
            while data := os.read(handle, CHUNK):
                yield data

    def _below(self, folder: str) -> Iterator[str]:
        for name, is_folder in self._listed(folder):
            path = f"{folder}/{name}" if folder else name
            if path == layout.BLOBS or layout.is_temporary(path):
                continue
            if is_folder:
                yield from self._below(path)
            else:
                yield path

    def _listed(self, folder: str) -> list[tuple[str, bool]]:
        with reading(folder or "."), os.scandir(os.path.join(self._folder, folder)) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]

    @contextmanager
    def _open(self, path: str) -> Generator[int]:
        handle = os.open(os.path.join(self._folder, path), _FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError("it is no regular file")
            yield handle
        finally:
            os.close(handle)
