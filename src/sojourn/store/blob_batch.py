"""Many blobs at once, also such that are longer than memory: one sync for all of them.

docs/protocol.md#write-discipline. Each blob's bytes are hashed as they are written. Until `commit`
nothing has the name of a blob, and a batch that fails before that leaves nothing behind.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from hashlib import sha256
from threading import Lock
from typing import Final

from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.ids import BlobId
from sojourn.store.disk import Disk
from sojourn.store.durable import (
    chunks,
    durable_write,
    open_temporary,
    read_whole,
    storage_error,
    write_whole,
)

SYNC_EACH: Final = 4
"""Up to so many new blobs are synced one by one; more are synced with their file system."""


class BlobBatch:
    """New blobs of the capsule in `folder`, given absolute; `add` may be called from any thread.

    Those of `without` are named and never kept: they were redacted.
    """

    def __init__(self, folder: str, disk: Disk, *, without: Collection[BlobId] = ()) -> None:
        self._without = without
        self._folder = f"{folder}/{layout.BLOBS}"
        self._disk = disk
        self._made: list[tuple[str, str]] = []
        self._there: frozenset[str] | None = None
        self._known: set[BlobId] = set()
        self._lock = Lock()
        for path in (f"{folder}/artifacts", self._folder):
            found = disk.stat_path(path)
            if found is not None and found.kind != "folder":
                raise FormatError(f"{path} is not a folder", code="path_unsafe", file=layout.BLOBS)

    @property
    def known(self) -> frozenset[BlobId]:
        """Every blob that was added and may be kept."""
        return frozenset(self._known)

    def add(self, data: bytes) -> BlobId:
        """Write these bytes, unless the blob is there already. Raises: StorageError."""
        blob = BlobId(sha256(data).hexdigest())
        path = f"{self._folder}/{blob}"
        try:
            if self._is_new(blob) and not self._is_there(blob, path, data):
                self._write(path, data)
        except OSError as failure:
            raise storage_error(failure, path) from failure
        return blob

    def _write(self, path: str, data: bytes) -> None:
        temporary, handle = open_temporary(self._disk, path)
        self._made.append((temporary, path))
        try:
            write_whole(self._disk, handle, data)
        finally:
            self._disk.close(handle)

    def add_stream(self, data: Iterable[bytes]) -> tuple[BlobId, int]:
        """Write bytes as they come; the blob's name and size. Raises: StorageError."""
        digest, size = sha256(), 0
        with durable_write(self._folder):
            temporary, handle = open_temporary(self._disk, f"{self._folder}/stream")
            try:
                for piece in data:
                    digest.update(piece)
                    write_whole(self._disk, handle, piece)
                    size += len(piece)
            except BaseException:
                self._drop(temporary)
                raise
            finally:
                self._disk.close(handle)
            blob = BlobId(digest.hexdigest())
            path = f"{self._folder}/{blob}"
            if self._is_new(blob) and not self._is_there_long(blob, path, size):
                self._made.append((temporary, path))
            else:
                self._drop(temporary)
        return blob, size

    def commit(self) -> None:
        """Every blob that was added is durable on return, under its name.

        One that was there already may have been left by a process that died before its name was
        durable, so names are synced in any case. Raises: StorageError.
        """
        if not self._known:
            return
        with durable_write(self._folder):
            each = len(self._made) <= SYNC_EACH
            if each or not self._disk.sync_all(self._folder):
                for temporary, _ in self._made:
                    self._sync(temporary)
            for temporary, path in self._made:
                self._disk.rename(temporary, path)
            self._disk.sync_folder(self._folder)
        self._made.clear()

    def drop(self) -> None:
        """Leave nothing behind of what was not committed."""
        for temporary, _ in self._made:
            self._drop(temporary)
        self._made.clear()
        self._known.clear()

    def _is_new(self, blob: BlobId) -> bool:
        if blob in self._without:
            return False
        with self._lock:
            if blob in self._known:
                return False
            self._known.add(blob)
        return True

    def _is_there(self, blob: BlobId, path: str, data: bytes) -> bool:
        """Whether the blob lies there whole; a file with other bytes is no blob."""
        if self._there is None:
            # One look at all names is cheaper than one for each; nobody else writes here now.
            self._there = frozenset(name for name, _ in self._disk.list(self._folder))
        if blob not in self._there:
            return False
        found = self._disk.stat_path(path)
        if found is None or found.kind != "file" or found.size != len(data):
            return False
        return read_whole(self._disk, path) == data

    def _is_there_long(self, blob: BlobId, path: str, size: int) -> bool:
        found = self._disk.stat_path(path)
        if found is None or found.kind != "file" or found.size != size:
            return False
        digest, handle = sha256(), self._disk.open(path, "read")
        try:
            for piece in chunks(self._disk, handle):
                digest.update(piece)
        finally:
            self._disk.close(handle)
        return digest.hexdigest() == blob

    def _sync(self, path: str) -> None:
        handle = self._disk.open(path, "append")
        try:
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)

    def _drop(self, path: str) -> None:
        with suppress(OSError):
            self._disk.unlink(path)
