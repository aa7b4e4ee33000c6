"""Making a capsule's folder from another one: staged beside its place, then renamed.

Nothing of it is under its name until all of it is durable (docs/protocol.md#fork). Blobs are
copied and checked, never linked: people may edit files, and a second name would be edited too.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256

from sojourn.errors import FencedError, FormatError, StoppedError
from sojourn.format import layout
from sojourn.format.filling import Filling
from sojourn.ids import BlobId
from sojourn.ports_workspace import Progress, Stop
from sojourn.store.create import TAKEN, exists, new_staging
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable, chunks, durable_write, maker_of, write_whole
from sojourn.store.system import process_start


class FolderMaker:
    """The `Maker` port for folders, given absolute and resolved."""

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        is_alive: Callable[[int], bool] = lambda pid: bool(process_start(pid)),
    ) -> None:
        self._disk = disk or OsDisk()
        self._is_alive = is_alive

    def stage(
        self,
        folder: str,
        filling: Filling,
        *,
        progress: Progress | None = None,
        stop: Stop | None = None,
    ) -> str:
        """See `drive.machine.Maker`."""
        self.check_free(folder)
        Durable(self._disk).make_folder(os.path.dirname(folder))
        with durable_write(folder):
            staged = new_staging(self._disk, folder)
            try:
                self._fill(staged, filling, progress or _unheard, stop or _never)
                # The ledger will speak of it: so its name must be there to be found and removed.
                self._disk.sync_folder(os.path.dirname(folder))
            except BaseException:
                with suppress(OSError):
                    self._remove(staged)
                raise
        return staged

    def place(self, staged: str, folder: str) -> None:
        """See `drive.machine.Maker`."""
        with durable_write(folder):
            try:
                self._disk.rename(staged, folder)
            except OSError as failure:
                if failure.errno not in TAKEN:
                    raise
                raise exists(folder) from failure
            self._disk.sync_folder(os.path.dirname(folder))

    def drop(self, staged: str) -> bool:
        """See `drive.machine.Maker`."""
        with durable_write(staged):
            if self._disk.stat_path(staged) is None:
                return False
            self._remove(staged)
            self._disk.sync_folder(os.path.dirname(staged))
        return True

    def settle(self, folder: str) -> None:
        """See `drive.machine.Maker`."""
        with durable_write(folder):
            if not self._disk.sync_all(folder):
                self._sync_each(folder)
            self._disk.sync_folder(folder)
            self._disk.sync_folder(os.path.dirname(folder))

    def left_behind(self, folder: str) -> tuple[str, ...]:
        """See `drive.machine.Maker`."""
        above, name = os.path.split(folder)
        with durable_write(folder):
            entries = self._disk.list(above)
        found = ((entry, maker_of(entry)) for entry, kind in entries if kind == "folder")
        return tuple(
            f"{above}/{entry}"
            for entry, maker in found
            if maker is not None and maker[0] == name and not self._is_alive(maker[1])
        )

    def check_free(self, folder: str) -> None:
        """Nothing, when a capsule can be put there. Raises: UsageError `exists`."""
        with durable_write(folder):
            found = self._disk.stat_path(folder)
            if found is not None and (found.kind != "folder" or self._disk.list(folder)):
                raise exists(folder)

    def _fill(self, staged: str, filling: Filling, progress: Progress, stop: Stop) -> None:
        for name in layout.FOLDERS:
            self._disk.make_folder(f"{staged}/{name}")
        self._copy_log(staged, filling)
        for blob in filling.blobs:
            self._copy_blob(filling.source, staged, blob, progress, stop)
            progress(1, 0)
        for blob, data in filling.kept.items():
            if blob not in filling.blobs:
                self._write(f"{staged}/{layout.blob_path(blob)}", (data,))
        for name, data in sorted(filling.files.items()):
            self._make_folders(staged, name)
            self._write(f"{staged}/{name}", (data,))
        if not self._disk.sync_all(staged):
            self._sync_each(staged)
        for name in (*layout.FOLDERS, ""):
            self._disk.sync_folder(f"{staged}/{name}".rstrip("/"))

    def _make_folders(self, staged: str, name: str) -> None:
        """The folders on the way to a file of `environment/`."""
        parts = name.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = f"{staged}/{'/'.join(parts[:count])}"
            if self._disk.stat_path(folder) is None:
                self._disk.make_folder(folder)

    def _copy_log(self, staged: str, filling: Filling) -> None:
        digest = sha256()

        def pieces() -> Iterator[bytes]:
            handle = self._disk.open(f"{filling.source}/{layout.TIMELINE}", "read")
            try:
                for piece in chunks(self._disk, handle, 0, filling.length):
                    digest.update(piece)
                    yield piece
            finally:
                self._disk.close(handle)
            yield filling.added

        self._write(f"{staged}/{layout.TIMELINE}", pieces())
        if digest.hexdigest() != filling.digest:
            raise FencedError(
                "the log was changed while it was copied",
                code="log_changed",
                state="Nothing was made.",
                hint="Run the same command again.",
            )

    def _copy_blob(
        self, source: str, staged: str, blob: BlobId, progress: Progress, stop: Stop
    ) -> None:
        name = layout.blob_path(blob)
        digest = sha256()
        try:
            handle = self._disk.open(f"{source}/{name}", "read")
        except FileNotFoundError:
            message = f"the blob {blob} is missing"
            raise FormatError(message, code="blob_missing", file=name) from None

        def pieces() -> Iterator[bytes]:
            for piece in chunks(self._disk, handle):
                if stop():
                    raise StoppedError("the copying was stopped", state="Nothing was made.")
                progress(0, len(piece))
                digest.update(piece)
                yield piece

        try:
            self._write(f"{staged}/{name}", pieces())
        finally:
            self._disk.close(handle)
        if digest.hexdigest() != blob:
            message = f"the blob {blob} holds other bytes than its name says"
            raise FormatError(message, code="blob_altered", file=name)

    def _write(self, path: str, pieces: Iterator[bytes] | tuple[bytes, ...]) -> None:
        handle = self._disk.open(path, "create")
        try:
            for piece in pieces:
                if piece:
                    write_whole(self._disk, handle, piece)
        finally:
            self._disk.close(handle)

    def _sync_each(self, folder: str) -> None:
        for name, kind in self._disk.list(folder):
            if kind == "folder":
                self._sync_each(f"{folder}/{name}")
                self._disk.sync_folder(f"{folder}/{name}")
                continue
            handle = self._disk.open(f"{folder}/{name}", "append")
            try:
                self._disk.sync(handle)
            finally:
                self._disk.close(handle)

    def _remove(self, folder: str) -> None:
        for name, kind in self._disk.list(folder):
            if kind == "folder":
                self._remove(f"{folder}/{name}")
            else:
                self._disk.unlink(f"{folder}/{name}")
        self._disk.remove_folder(folder)


def _unheard(_files: int, _octets: int) -> None:
    """Nobody asked to be told."""


def _never() -> bool:
    return False
