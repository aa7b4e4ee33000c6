"""A capsule in a folder: the log by appending, everything else whole or not at all.

docs/protocol.md#store. Blobs before the log, the log before the manifest. After a failed write
nothing is known any more, so this store refuses everything until another one is made.
"""

import errno
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from sojourn.errors import FencedError, FormatError, StorageError, UsageError
from sojourn.format import layout
from sojourn.ids import BlobId, Epoch
from sojourn.ports import Tip
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import (
    Durable,
    open_temporary,
    read_whole,
    reading,
    storage_error,
    write_whole,
)
from sojourn.store.log import LogFile, fenced

SYNC_EACH: Final = 4
"""Up to so many new blobs are synced one by one; more are synced with their file system."""

LONGEST: Final = max(
    layout.MAX_MANIFEST, layout.MAX_SNAPSHOT, layout.MAX_INDEX, layout.MAX_SPEC, layout.MAX_MEMORY
)
"""Bytes of the longest file that any reader of a capsule accepts, log and blobs apart."""

NO_EPOCH: Final = Epoch(0)
"""Below every epoch."""

_NO_FILE: Final = (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO)
"""How the kernel says that a name is not that of a regular file."""


class FolderStore:
    """The `Store` port for a folder, given absolute and resolved; nothing is opened yet.

    An epoch below `epoch`, or below one that was appended, is refused.
    """

    def __init__(self, folder: str, *, disk: Disk | None = None, epoch: Epoch = NO_EPOCH) -> None:
        self._folder = folder
        self._disk = disk or OsDisk()
        self._files = Durable(self._disk)
        self._epoch = epoch
        self._log = LogFile(self._disk, self._path(layout.TIMELINE))
        self._local = False
        self._kept: set[BlobId] = set()
        self._stopped: StorageError | None = None

    def size(self) -> int:
        """Length of the log in bytes, 0 where there is none."""
        self._check()
        with self._reading(layout.TIMELINE):
            return self._log.size()

    def read_log(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The log's bytes from `start` to `end`, in pieces of at most 64 KiB.

        Raises: StorageError; FormatError `path_unsafe`.
        """
        self._check()
        self._plain(layout.TIMELINE)
        with self._reading(layout.TIMELINE):
            yield from self._log.read(start, end)

    async def append(self, *, epoch: Epoch, expected: Tip, data: bytes) -> None:
        """Add whole lines in one write and one sync, durable on return.

        Raises: FencedError `stale_epoch`, `stale_head` or `log_changed`, nothing written;
        StorageError when the write failed: its outcome is unknown and the store refuses the rest.
        """
        self._check()
        if epoch < self._epoch:
            raise fenced("stale_epoch", f"epoch {epoch} is older than {self._epoch}")
        if not data.endswith(b"\n"):
            raise FormatError("only whole lines are appended", code="line_unfinished")
        if not self._local:
            self.check_local()
            self._plain(layout.TIMELINE)
            self._local = True
        with self._writing(layout.TIMELINE):
            self._log.append(expected, data)
        self._epoch = epoch

    async def settle_log(self, *, start: int, length: int) -> None:
        """Cut the log to `length`, write its bytes from `start` again in place, sync.

        What is read after a crash may never have reached the disk, and a second sync of it may
        say yes and do nothing (docs/protocol.md#write-discipline). The names that lead to the
        log are synced too. Raises: FencedError `log_changed` when it is shorter; StorageError.
        """
        self._check()
        self._plain(layout.TIMELINE)
        with self._writing(layout.TIMELINE):
            above = (self._path(os.path.dirname(layout.TIMELINE)), self._folder)
            folders = (*above, os.path.dirname(self._folder))
            self._log.settle(start=start, length=length, folders=folders)

    def has_blob(self, blob: BlobId) -> bool:
        """Whether a file of that name is there; its bytes are checked when it is read."""
        self._check()
        name = layout.blob_path(blob)
        with self._reading(name):
            found = self._disk.stat_path(self._path(name))
        return found is not None and found.kind == "file"

    def read_blob(self, blob: BlobId) -> bytes:
        """The verified bytes.

        Raises: FormatError `blob_missing` or `blob_altered`; StorageError.
        """
        name = layout.blob_path(blob)
        data = self._read(name)
        if data is None:
            raise FormatError(f"the blob {blob} is missing", code="blob_missing", file=name)
        if sha256(data).hexdigest() != blob:
            message = f"the blob {blob} holds other bytes than its name says"
            raise FormatError(message, code="blob_altered", file=name)
        return data

    async def put_blobs(self, blobs: Mapping[BlobId, bytes]) -> None:
        """Keep blobs that are not there yet, durable on return; equal ones are not written.

        One that is there with other bytes is no blob and is replaced. An equal one may have been
        left by a process that died before its name was durable, so names are synced in any case.
        Raises: StorageError.
        """
        self._check()
        wanted = {blob: data for blob, data in blobs.items() if blob not in self._kept}
        for blob, data in wanted.items():
            if sha256(data).hexdigest() != blob:
                raise FormatError(f"these are not the bytes of {blob}", code="blob_altered")
        if not wanted:
            return
        self._plain(f"{layout.BLOBS}/")
        with self._writing(layout.BLOBS):
            new = {blob: data for blob, data in wanted.items() if self._stored(blob) != data}
            self._write_blobs(new)
            self._disk.sync_folder(self._path(layout.BLOBS))
        self._kept.update(wanted)

    def read_file(self, name: str) -> bytes | None:
        """Bytes of a capsule file such as `manifest.json`, None when absent.

        Of one above every limit only so much is read that its reader refuses it (`too_long`).
        Raises: FormatError `path_unsafe` for a link or a folder; StorageError.
        """
        return self._read(name, limit=LONGEST + 1)

    async def replace_file(self, name: str, data: bytes) -> None:
        """Replace it atomically, durable on return. Raises: StorageError."""
        self._check()
        self._plain(name)
        with self._writing(name):
            self._files.replace(self._path(name), data)

    async def remove_file(self, name: str) -> None:
        """Remove it when it is there, durable on return. Raises: StorageError."""
        self._check()
        self._plain(name)
        with self._writing(name):
            if self._disk.stat_path(self._path(name)) is not None:
                self._disk.unlink(self._path(name))
                self._disk.sync_folder(os.path.dirname(self._path(name)))

    def file_names(self) -> tuple[str, ...]:
        """Every file of the capsule but blobs, as POSIX relative paths, sorted.

        Links and whatever else is no regular file are named too, so that they can be refused.
        """
        self._check()
        with reading(self._folder):
            return tuple(sorted(self._names("")))

    def sweep(self) -> None:
        """Remove what killed writers left half-made; only under the capsule's lock."""
        self._check()
        folders = {os.path.dirname(name) for name in self.file_names()}
        for folder in sorted(folders | {"", layout.BLOBS}):
            self._files.sweep(self._path(folder))

    def check_local(self) -> None:
        """Nothing, when the folder is on a local file system.

        Raises: UsageError `network_folder`.
        """
        kind = self._disk.network(self._folder)
        if kind is not None:
            raise UsageError(
                f"{self._folder} lies on a network file system ({kind}), "
                "where locks and syncs promise too little to run a capsule",
                code="network_folder",
                state="Nothing was changed.",
                hint="Move the folder to a local disk.",
                exit_code=6,
            )

    def close(self) -> None:
        """Let go of the log; the store may be used again."""
        self._log.close()

    def _read(self, name: str, *, limit: int | None = None) -> bytes | None:
        self._check()
        self._plain(name)
        with self._reading(name):
            return read_whole(self._disk, self._path(name), limit=limit)

    def _stored(self, blob: BlobId) -> bytes | None:
        try:
            return read_whole(self._disk, self._path(layout.blob_path(blob)))
        except OSError as failure:
            if failure.errno in _NO_FILE:
                return None
            raise

    def _write_blobs(self, blobs: Mapping[BlobId, bytes]) -> None:
        each = len(blobs) <= SYNC_EACH
        made: list[tuple[str, str]] = []
        for blob, data in blobs.items():
            path = self._path(layout.blob_path(blob))
            temporary, handle = open_temporary(self._disk, path)
            made.append((temporary, path))
            try:
                write_whole(self._disk, handle, data)
                if each:
                    self._disk.sync(handle)
            finally:
                self._disk.close(handle)
        if made and not each and not self._disk.sync_all(self._folder):
            self._sync_each(temporary for temporary, _ in made)
        for temporary, path in made:
            self._disk.rename(temporary, path)

    def _sync_each(self, paths: Iterator[str]) -> None:
        for path in paths:
            handle = self._disk.open(path, "append")
            try:
                self._disk.sync(handle)
            finally:
                self._disk.close(handle)

    def _names(self, folder: str) -> Iterator[str]:
        for name, kind in self._disk.list(self._path(folder)):
            path = f"{folder}/{name}" if folder else name
            if layout.is_temporary(name) or path == layout.BLOBS:
                continue
            if kind == "folder":
                yield from self._names(path)
            else:
                yield path

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if name else self._folder

    def _plain(self, name: str) -> None:
        """Guard: `name` lies in the capsule, and every folder on its way is a real one."""
        *folders, last = name.split("/")
        if last in (".", ".."):
            raise FormatError(f"{name} is not a file of a capsule", code="path_unsafe", file=name)
        for count, part in enumerate(folders, start=1):
            above = "/".join(folders[:count])
            found = None if part in ("", ".", "..") else self._disk.stat_path(self._path(above))
            if part in ("", ".", "..") or (found is not None and found.kind != "folder"):
                raise FormatError(f"{above} is not a folder", code="path_unsafe", file=above)

    def _check(self) -> None:
        if self._stopped is not None:
            raise StorageError(
                "an earlier write to this capsule failed, so nothing more is done through it",
                code="store_stopped",
                state=self._stopped.message,
                hint="Open the capsule again; what is on the disk counts.",
                file=self._folder,
            )

    @contextmanager
    def _reading(self, name: str) -> Generator[None]:
        with reading(self._path(name)):
            try:
                yield
            except OSError as failure:
                if failure.errno not in _NO_FILE:
                    raise
                message = f"{name} is not a regular file"
                raise FormatError(message, code="path_unsafe", file=name) from failure

    def _writing(self, name: str) -> "_Writing":
        return _Writing(self, self._path(name))

    def stop(self, why: StorageError) -> None:
        """Refuse everything from now on."""
        self._stopped = why


class _Writing:
    """Whatever fails inside, or is interrupted, stops the store; a refusal does not."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: FolderStore, path: str) -> None:
        self._store = store
        self._path = path

    def __enter__(self) -> None:
        """Nothing is written yet."""

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: object
    ) -> None:
        match failure:
            case None | FencedError():
                return
            case StorageError():
                self._store.stop(failure)
            case OSError():
                stopped = storage_error(failure, self._path)
                self._store.stop(stopped)
                raise stopped from failure
            case _:
                interrupted = OSError(errno.EINTR, "interrupted")
                self._store.stop(storage_error(interrupted, self._path))
