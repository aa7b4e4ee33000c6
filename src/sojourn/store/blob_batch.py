"""Many blobs at once, also such that are longer than memory: one sync for all of them.

docs/protocol.md#write-discipline. Each blob's bytes are hashed as they are written. Until `commit`
nothing has the name of a blob, and a batch that fails before that leaves nothing behind.
"""

from collections import deque
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
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
    is_hole,
    open_temporary,
    read_whole,
    storage_error,
    write_whole,
)

SYNC_EACH: Final = 4
"""Up to so many new blobs are synced one by one; more are synced with their file system."""


THREAD_FROM: Final = 64
"""From so many new blobs on a thread writes them."""

GROUP: Final = 64
GROUPS: Final = 4
"""Blobs that are given to the thread at once, and how many groups of them may wait."""

LIST_FROM: Final = 64
"""From so many blobs on one look at all names is cheaper than one for each."""


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
        self._waiting: list[tuple[BlobId, bytes]] = []
        self._writing: deque[Future[None]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._stopped = False
        for path in (f"{folder}/artifacts", self._folder):
            found = disk.stat_path(path)
            if found is not None and found.kind != "folder":
                raise FormatError(f"{path} is not a folder", code="path_unsafe", file=layout.BLOBS)

    @property
    def known(self) -> frozenset[BlobId]:
        """Every blob that was added and may be kept."""
        return frozenset(self._known)

    def add(self, data: bytes) -> BlobId:
        """Take these bytes, unless the blob is there already.

        Many are written by a thread while the next ones are read. Raises: StorageError, maybe of
        an earlier blob.
        """
        blob = BlobId(sha256(data).hexdigest())
        try:
            if self._is_new(blob) and not self._is_there(blob, data):
                self._take(blob, data)
        except OSError as failure:
            raise storage_error(failure, f"{self._folder}/{blob}") from failure
        return blob

    def _take(self, blob: BlobId, data: bytes) -> None:
        if len(self._made) < THREAD_FROM:
            self._write(blob, data)
            return
        with self._lock:
            self._waiting.append((blob, data))
            if len(self._waiting) < GROUP:
                return
            group, self._waiting = self._waiting, []
        self._pool = self._pool or ThreadPoolExecutor(1)
        self._writing.append(self._pool.submit(self._write_each, group))
        if len(self._writing) > GROUPS:
            self._writing.popleft().result()

    def _write_each(self, group: list[tuple[BlobId, bytes]]) -> None:
        for blob, data in group:
            if self._stopped:
                return
            self._write(blob, data)

    def _write(self, blob: BlobId, data: bytes) -> None:
        path = f"{self._folder}/{blob}"
        temporary, handle = open_temporary(self._disk, path)
        self._made.append((temporary, path))
        try:
            write_whole(self._disk, handle, data)
        finally:
            self._disk.close(handle)

    def _write_rest(self) -> None:
        """Write what waits; all is written on return."""
        group, self._waiting = self._waiting, []
        while self._writing:
            self._writing.popleft().result()
        self._write_each(group)
        self._end_thread()

    def _end_thread(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def add_stream(self, data: Iterable[bytes]) -> tuple[BlobId, int]:
        """Write bytes as they come; the blob's name and size. Raises: StorageError.

        A piece of zeros takes no space on the disk, where its file system can have holes.
        """
        with durable_write(self._folder):
            temporary, handle = open_temporary(self._disk, f"{self._folder}/stream")
            try:
                blob, size = self._fill(handle, data)
            except BaseException:
                self._drop(temporary)
                raise
            finally:
                self._disk.close(handle)
            path = f"{self._folder}/{blob}"
            if self._is_new(blob) and not self._is_there_long(blob, path, size):
                self._made.append((temporary, path))
            else:
                self._drop(temporary)
        return blob, size

    def _fill(self, handle: int, data: Iterable[bytes]) -> tuple[BlobId, int]:
        digest, size, hole = sha256(), 0, False
        for piece in data:
            digest.update(piece)
            before, hole = hole, is_hole(piece)
            if not hole:
                self._end_hole(handle, size, hole=before)
                write_whole(self._disk, handle, piece)
            size += len(piece)
        self._end_hole(handle, size, hole=hole)
        return BlobId(digest.hexdigest()), size

    def _end_hole(self, handle: int, size: int, *, hole: bool) -> None:
        if hole:
            self._disk.truncate(handle, size)

    def commit(self) -> None:
        """Every blob that was added is durable on return, under its name.

        One that was there already may have been left by a process that died before its name was
        durable, so names are synced in any case. Raises: StorageError.
        """
        if not self._known:
            return
        with durable_write(self._folder):
            self._write_rest()
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
        self._stopped = True
        self._end_thread()
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

    def _is_there(self, blob: BlobId, data: bytes) -> bool:
        """Whether the blob lies there whole; a file with other bytes is no blob."""
        if self._there is None and len(self._known) >= LIST_FROM:
            # Nobody else writes here now.
            self._there = frozenset(name for name, _ in self._disk.list(self._folder))
        if self._there is not None and blob not in self._there:
            return False
        path = f"{self._folder}/{blob}"
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
