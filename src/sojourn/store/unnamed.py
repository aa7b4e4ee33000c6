"""Removes blobs that nothing names, by folder handles alone (docs/protocol.md#gc).

No link is followed, and a file goes only when its name is that of a blob, its bytes are that blob's
and it is old enough. Nothing else in the folder is touched, whoever put it there.
"""

import os
import stat
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.ids import BlobId
from sojourn.store.durable import durable_write, reading

CHUNK: Final = 1 << 20
"""Bytes read at once."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class OldBlob:
    """A file that has the name of a blob; `size` in bytes, `age` in seconds."""

    name: BlobId
    size: int
    age: float


class FolderBlobs:
    """The blobs of the capsule in a folder, given absolute; `now` is in seconds of the epoch."""

    def __init__(self, folder: str, *, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now

    def old(self, seconds: float) -> tuple[OldBlob, ...]:
        """Files with the name of a blob that nobody wrote to for so long, sorted by name.

        Raises: FormatError `path_unsafe` when a folder on the way is a link; StorageError.
        """
        found: list[OldBlob] = []
        with self._blobs() as folder, reading(self._folder):
            for name in sorted(os.listdir(folder)):
                one = self._plain(folder, name)
                if one is not None and one.age >= seconds:
                    found.append(one)
        return tuple(found)

    def remove(self, names: Iterable[BlobId], *, seconds: float) -> tuple[OldBlob, ...]:
        """Remove those that are blobs by name and bytes, and still as old; what was removed.

        Raises: as `old`.
        """
        gone: list[OldBlob] = []
        with self._blobs() as folder, durable_write(self._folder):
            for name in names:
                one = self._plain(folder, name)
                if one is None or one.age < seconds or self._digest(folder, name) != name:
                    continue
                os.unlink(name, dir_fd=folder)
                gone.append(one)
            if gone:
                os.fsync(folder)
        return tuple(gone)

    @contextmanager
    def _blobs(self) -> Generator[int]:
        handles: list[int] = []
        try:
            with reading(self._folder):
                handles.append(os.open(self._folder, _FOLDER))
                for part in layout.BLOBS.split("/"):
                    handles.append(self._open(handles[-1], part))
            yield handles[-1]
        finally:
            for handle in handles:
                os.close(handle)

    def _open(self, folder: int, part: str) -> int:
        try:
            return os.open(part, _FOLDER, dir_fd=folder)
        except NotADirectoryError as error:
            raise FormatError(
                f"{part} is not a folder", code="path_unsafe", file=layout.BLOBS
            ) from error

    def _plain(self, folder: int, name: str) -> OldBlob | None:
        if not layout.is_blob_name(name):
            return None
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        return OldBlob(name=BlobId(name), size=found.st_size, age=self._now() - found.st_mtime)

    def _digest(self, folder: int, name: str) -> str:
        digest = sha256()
        with open(os.open(name, _FILE, dir_fd=folder), "rb") as file:
            while data := file.read(CHUNK):
                digest.update(data)
        return digest.hexdigest()
