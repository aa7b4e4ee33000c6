"""Brings another capsule's blobs and the merged log into a folder (docs/protocol.md#merge).

Everything is streamed: neither a blob nor a log is ever whole in memory.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.ids import BlobId
from sojourn.store.disk import Disk
from sojourn.store.durable import chunks, durable_write, open_temporary, reading, write_whole
from sojourn.store.rewriting import FolderRewriter

AT_ONCE: Final = 256
"""How many new blobs share one sync."""


class FolderMerger(FolderRewriter):
    """The `Merger` port for two folders, both given absolute; only under the capsule's lock."""

    def __init__(self, folder: str, source: str, *, disk: Disk) -> None:
        super().__init__(folder, disk=disk)
        self._source = source

    def lacking(self, without: Collection[BlobId]) -> tuple[BlobId, ...]:
        """Blobs that the source has and the folder lacks, but for those, sorted."""
        with reading(self._source):
            there, here = (
                {name for name, kind in self._disk.list(path) if kind == "file"}
                for path in (f"{self._source}/{layout.BLOBS}", f"{self._folder}/{layout.BLOBS}")
            )
        wanted = {name for name in there - here if layout.is_blob_name(name)}
        return tuple(sorted(BlobId(name) for name in wanted.difference(without)))

    def copy(self, blobs: Collection[BlobId], *, progress: Callable[[int, int], None]) -> None:
        """Copy blobs, durable on return; `progress` is told how many of all are done.

        What an earlier merge copied before it died is durable then, too. Raises: FormatError
        `blob_altered` when one of the source is none; StorageError.
        """
        names = sorted(blobs)
        for start in range(0, len(names), AT_ONCE):
            progress(start, len(names))
            self._copy_some(names[start : start + AT_ONCE])
        with durable_write(f"{self._folder}/{layout.BLOBS}"):
            self._disk.sync_folder(f"{self._folder}/{layout.BLOBS}")
        progress(len(names), len(names))

    def staged(self) -> Iterator[bytes]:
        """The bytes of the staged log, as they lie there."""
        path = self._staged
        if path is None:
            return
        with reading(path):
            handle = self._disk.open(path, "read")
            try:
                yield from chunks(self._disk, handle)
            finally:
                self._disk.close(handle)

    def _copy_some(self, names: Iterable[BlobId]) -> None:
        made: list[tuple[str, str]] = []
        with durable_write(f"{self._folder}/{layout.BLOBS}"):
            try:
                for name in names:
                    made.append(self._copied(name))
                for temporary, path in made:
                    self._disk.rename(temporary, path)
            except BaseException:
                self._drop_all(made)
                raise

    def _copied(self, name: BlobId) -> tuple[str, str]:
        """A half-made file with the blob's bytes, synced, and the path it is for."""
        path, digest = f"{self._folder}/{layout.blob_path(name)}", sha256()
        source = self._disk.open(f"{self._source}/{layout.blob_path(name)}", "read")
        try:
            temporary, handle = open_temporary(self._disk, path)
            try:
                for piece in chunks(self._disk, source):
                    digest.update(piece)
                    write_whole(self._disk, handle, piece)
                self._disk.sync(handle)
            finally:
                self._disk.close(handle)
        finally:
            self._disk.close(source)
        if digest.hexdigest() != name:
            self._drop_all([(temporary, path)])
            message = f"the blob {name} of the other capsule holds other bytes than its name says"
            raise FormatError(message, code="blob_altered", file=layout.blob_path(name))
        return temporary, path

    def _drop_all(self, made: Iterable[tuple[str, str]]) -> None:
        for temporary, _ in made:
            with suppress(OSError):
                self._disk.unlink(temporary)
