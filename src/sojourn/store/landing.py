"""Contents that come from other machines: whole ones by their sha256, and parts that go on later.

`<state>/cache/sha256` is never authority: what was not verified by this process is hashed again
before anything is made of it (docs/moving.md#landing). Nothing is synced before `settle`. Several
threads may use a cache: a content under way is one's at a time, and a whole one never changes.
"""

import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Protocol

from sojourn.errors import MigrationError
from sojourn.format import layout
from sojourn.ids import BlobId
from sojourn.ports_move import Piece
from sojourn.store.disk import Disk
from sojourn.store.durable import Durable, chunks, durable_write, read_whole, reading, write_whole

KEPT_FREE: Final = 64 << 20
"""Bytes of the disk that what arrives leaves free."""

EMPTY: Final = BlobId(sha256(b"").hexdigest())

MOST_OPEN: Final = 64
"""Contents that may be under way at once."""


class Hash(Protocol):
    """A running hash."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


@dataclass(slots=True)
class _Part:
    """A content under way: its open file, how much of it is there, and the hash of that."""

    handle: int
    length: int
    digest: Hash = field(default_factory=sha256)


class Cache:
    """Contents in one folder, given absolute."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._files = Durable(disk)
        self._verified: dict[BlobId, int] = {}
        self._parts: dict[BlobId, _Part] = {}
        self._lock = threading.RLock()

    def have(self, digest: BlobId, size: int) -> int:
        """How many bytes of a content are here; `size` only when all are, and are the right ones.

        Raises: StorageError.
        """
        if self._verified.get(digest) == size:
            # Whoever opened an earlier arrival may have taken it away since.
            with reading(self._path(digest)):
                if self._disk.stat_path(self._path(digest)) is not None:
                    return size
            self._verified.pop(digest, None)
        if size == 0 and digest == EMPTY:
            self.keep(b"")
            return 0
        with reading(self._path(digest)):
            if self._is_whole(digest, size):
                return size
        with self._lock:
            part = self._open(digest, make=False)
            if part is None:
                return 0
            if part.length < size:
                return part.length
            self._forget(digest)
            return 0

    def take(self, piece: Piece) -> bool:
        """Keep bytes of a content; whether it is whole now.

        What is here already is passed over. Raises: MigrationError `content_gap`,
        `content_altered`, `too_many_contents`; StorageError.
        """
        with self._lock:
            return self._take(piece)

    def _take(self, piece: Piece) -> bool:
        if self._verified.get(piece.digest) == piece.size == self.have(piece.digest, piece.size):
            return True
        self._files.make_folder(self._folder)
        part = self._open(piece.digest, make=True)
        if part is None:
            raise MigrationError(
                f"more than {MOST_OPEN} contents are under way at once", code="too_many_contents"
            )
        data = fresh(piece, part.length)
        with durable_write(self._path(piece.digest)):
            if data:
                write_whole(self._disk, part.handle, data)
        part.digest.update(data)
        part.length += len(data)
        if part.length < piece.size:
            return False
        return self._finish(piece.digest, part, piece.size)

    def keep(self, data: bytes) -> BlobId:
        """Keep bytes that were made here."""
        digest = BlobId(sha256(data).hexdigest())
        self.take(Piece(digest=digest, size=len(data), offset=0, data=data))
        return digest

    def borrow(self, folder: str, blobs: Mapping[BlobId, int]) -> None:
        """Have these contents, as far as they lie as blobs of the capsule in `folder`, unaltered.

        They are copied, since that folder is a person's to edit. Raises: StorageError.
        """
        for blob, size in blobs.items():
            if self.have(blob, size) == size:
                continue
            path = f"{folder}/{layout.blob_path(blob)}"
            found = self._disk.stat_path(path)
            if found is None or found.kind != "file" or found.size != size:
                continue
            self._forget(blob)
            place = 0
            try:
                for data in self._chunks(path):
                    self.take(Piece(digest=blob, size=size, offset=place, data=data))
                    place += len(data)
            except MigrationError:
                continue

    def read(self, digest: BlobId, limit: int) -> bytes | None:
        """A whole content of at most `limit` bytes, else None. Raises: StorageError."""
        with reading(self._path(digest)):
            found = self._disk.stat_path(self._path(digest))
        if found is None or found.size > limit or self.have(digest, found.size) != found.size:
            return None
        with reading(self._path(digest)):
            return read_whole(self._disk, self._path(digest))

    def link(self, digest: BlobId, path: str) -> None:
        """A second name for a content that is here. Raises: StorageError."""
        with durable_write(path):
            self._disk.link(self._path(digest), path)

    def forget(self, digest: BlobId) -> None:
        """A content that is live somewhere has no second name here. Raises: StorageError."""
        with self._lock, durable_write(self._path(digest)):
            self._verified.pop(digest, None)
            if self._disk.stat_path(self._path(digest)) is not None:
                self._disk.unlink(self._path(digest))

    def tidy(self, seconds: float) -> None:
        """Remove what came so long ago, by the file system's clock. Raises: StorageError."""
        before = time.time_ns() - int(seconds * 1e9)
        with durable_write(self._folder):
            for name, _ in self._disk.list(self._folder):
                found = self._disk.stat_path(f"{self._folder}/{name}")
                if found is not None and found.changed < before:
                    self._disk.unlink(f"{self._folder}/{name}")

    def room(self) -> int:
        """Bytes that may still come. Raises: StorageError."""
        folder: str = self._folder
        while not os.path.isdir(folder) and folder != "/":
            folder = os.path.dirname(folder)
        with reading(folder):
            return shutil.disk_usage(folder).free - KEPT_FREE

    def close(self) -> None:
        """Let go of what is open; parts stay."""
        with self._lock:
            for part in self._parts.values():
                self._disk.close(part.handle)
            self._parts.clear()

    def _is_whole(self, digest: BlobId, size: int) -> bool:
        path = self._path(digest)
        found = self._disk.stat_path(path)
        if found is None:
            return False
        running = sha256()
        if found.kind == "file" and found.size == size:
            for data in self._chunks(path):
                running.update(data)
            if running.hexdigest() == digest:
                self._verified[digest] = size
                return True
        self._disk.unlink(path)
        return False

    def _open(self, digest: BlobId, *, make: bool) -> _Part | None:
        part = self._parts.get(digest)
        if part is not None:
            return part
        path = f"{self._path(digest)}.part"
        with durable_write(path):
            there = self._disk.stat_path(path) is not None
            if (not there and not make) or len(self._parts) >= MOST_OPEN:
                return None
            part = _Part(self._disk.open(path, "append" if there else "create"), 0)
            self._parts[digest] = part
            for data in self._chunks(path) if there else ():
                part.digest.update(data)
                part.length += len(data)
        return part

    def _finish(self, digest: BlobId, part: _Part, size: int) -> bool:
        if part.length != size or part.digest.hexdigest() != digest:
            self._forget(digest)
            raise MigrationError(
                f"the content {digest} came with other bytes than its name says",
                code="content_altered",
                state="It was not kept.",
                hint="Send it again.",
            )
        with durable_write(self._path(digest)):
            self._disk.close(self._parts.pop(digest).handle)
            self._disk.rename(f"{self._path(digest)}.part", self._path(digest))
        self._verified[digest] = size
        return True

    def _forget(self, digest: BlobId) -> None:
        """What is under way of a content is not there any more."""
        path = f"{self._path(digest)}.part"
        with self._lock, durable_write(path):
            part = self._parts.pop(digest, None)
            if part is not None:
                self._disk.close(part.handle)
            if self._disk.stat_path(path) is not None:
                self._disk.unlink(path)

    def _chunks(self, path: str) -> Iterator[bytes]:
        handle = self._disk.open(path, "read")
        try:
            yield from chunks(self._disk, handle)
        finally:
            self._disk.close(handle)

    def _path(self, digest: BlobId) -> str:
        return f"{self._folder}/{digest}"


def fresh(piece: Piece, length: int) -> bytes:
    """The bytes of a piece that come after the first `length` of its content.

    Raises: MigrationError `content_gap` when bytes before it are lacking, or it is too long.
    """
    end = piece.offset + len(piece.data)
    if piece.offset > length or end > piece.size:
        raise MigrationError(
            f"bytes of {piece.digest} from {piece.offset} came where {length} are here",
            code="content_gap",
            state="They were not kept.",
            hint="Ask what is lacking, then send that.",
        )
    return piece.data[length - piece.offset :] if piece.offset < length else piece.data
