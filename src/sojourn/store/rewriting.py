"""Another log in the place of a capsule's log, and blobs taken away (docs/protocol.md#rewrite).

Everything is streamed: a log is never whole in memory.
"""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress

from sojourn.errors import StorageError
from sojourn.format import layout
from sojourn.ids import BlobId
from sojourn.store.disk import Disk
from sojourn.store.durable import durable_write, open_temporary, write_whole


class FolderRewriter:
    """The `Rewriter` port for a folder, given absolute; only under the capsule's lock."""

    def __init__(self, folder: str, *, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk
        self._staged: str | None = None

    def stage(self, pieces: Iterable[bytes]) -> None:
        """Write a log beside the log, durable on return. Raises: StorageError."""
        path = f"{self._folder}/{layout.TIMELINE}"
        with durable_write(path):
            self._staged, handle = open_temporary(self._disk, path)
            try:
                for piece in pieces:
                    write_whole(self._disk, handle, piece)
                self._disk.sync(handle)
            finally:
                self._disk.close(handle)

    def install(self) -> None:
        """Put the staged log in the place of the log, durable on return. Raises: StorageError."""
        path, staged = f"{self._folder}/{layout.TIMELINE}", self._staged
        if staged is None:
            raise StorageError("no log was staged", code="storage_failed", file=path)
        with durable_write(path):
            self._disk.rename(staged, path)
            self._staged = None
            self._disk.sync_folder(os.path.dirname(path))

    def discard(self, blobs: Collection[BlobId]) -> int:
        """Remove these blobs, durable on return; how many were there. Raises: StorageError."""
        folder = f"{self._folder}/{layout.BLOBS}"
        with durable_write(folder):
            kinds = dict(self._disk.list(folder)) if blobs else {}
            names = [name for name in sorted(blobs) if layout.is_blob_name(name)]
            there = [name for name in names if kinds.get(name) == "file"]
            for name in there:
                self._disk.unlink(f"{folder}/{name}")
            if there:
                self._disk.sync_folder(folder)
        return len(there)

    def drop(self) -> None:
        """Leave nothing behind of what was staged and not installed."""
        if self._staged is not None:
            with suppress(OSError):
                self._disk.unlink(self._staged)
            self._staged = None
