"""A private folder beside a target, filled with an archive's members, then renamed or removed.

Nothing outside it is written, whatever the archive says (docs/format.md#archive). Its name is that
of a half-made file, so it is never taken for a capsule.
"""

import os
import shutil
from collections.abc import Iterable
from typing import Final, Protocol

from sojourn.errors import StorageError, UsageError
from sojourn.format import layout
from sojourn.format.archive import Member
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable, durable_write, temporary_names, write_whole

STAGED: Final = "an archive"
"""What such a folder is the half-made form of; no capsule has this name."""

KEPT_FREE: Final = 64 << 20
"""Bytes of the disk that an import leaves free."""


class _Sweeper(Protocol):
    def left_behind(self, folder: str) -> tuple[str, ...]: ...

    def drop(self, staged: str) -> bool: ...


class Staging:
    """The folder, mode 0700, for a capsule that shall lie in the folder `parent` (absolute).

    Raises: StorageError.
    """

    def __init__(self, parent: str, *, disk: Disk | None = None) -> None:
        self._disk = disk or OsDisk()
        self._handle: int | None = None
        self._parent = parent
        Durable(self._disk).make_folder(parent)
        with durable_write(parent):
            self.folder = self._made()
            self._room = shutil.disk_usage(self.folder).free - KEPT_FREE

    def sweep(self, maker: "_Sweeper") -> None:
        """Remove the folders beside it that others left when they died. Raises: StorageError."""
        for left in maker.left_behind(f"{self._parent}/{STAGED}"):
            maker.drop(left)

    def fill(self, items: Iterable[Member | bytes]) -> int:
        """Write the members, as `archive.read` gives them; how many bytes they have.

        Raises: StorageError `disk_full` before a member for which there is no room, and others;
        whatever reading the items raises.
        """
        total = 0
        with durable_write(self.folder):
            for name in layout.FOLDERS:
                self._disk.make_folder(f"{self.folder}/{name}")
            try:
                for item in items:
                    total += self._take(item)
            finally:
                self._close()
        return total

    def keep(self, target: str) -> None:
        """The folder is `target` in the same parent, durable on return.

        Raises: UsageError `exists`; StorageError.
        """
        if os.path.lexists(target):
            raise exists(target)
        with durable_write(target):
            if not self._disk.sync_all(self.folder):
                self._sync_each()
            self._disk.rename(self.folder, target)
            self._disk.sync_folder(self._parent)

    def discard(self) -> None:
        """Remove the folder and all that was put there."""
        self._close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _made(self) -> str:
        for folder in temporary_names(f"{self._parent}/{STAGED}"):
            try:
                self._disk.make_folder(folder)
            except FileExistsError:
                continue
            return folder
        raise StorageError("no free name", code="storage_failed")

    def _take(self, item: Member | bytes) -> int:
        if isinstance(item, bytes):
            if self._handle is not None:
                write_whole(self._disk, self._handle, item)
            return 0
        self._close()
        self._room -= item.size
        if self._room < 0:
            raise StorageError(
                f"there is no room for {item.path}, of {item.size:,} bytes: "
                f"{KEPT_FREE >> 20} MiB of the disk stay free",
                code="disk_full",
                state="Nothing was kept.",
                hint="Make room, then try again.",
                file=self._parent,
            )
        above = self.folder
        for part in item.path.split("/")[:-1]:
            above = f"{above}/{part}"
            if self._disk.stat_path(above) is None:
                self._disk.make_folder(above)
        self._handle = self._disk.open(f"{self.folder}/{item.path}", "create")
        return item.size

    def _close(self) -> None:
        if self._handle is not None:
            self._disk.close(self._handle)
            self._handle = None

    def _sync_each(self) -> None:
        """Where a whole file system cannot be synced: each file, then each folder."""
        for folder, _, names in os.walk(self.folder, topdown=False):
            for name in names:
                handle = self._disk.open(f"{folder}/{name}", "append")
                try:
                    self._disk.sync(handle)
                finally:
                    self._disk.close(handle)
            self._disk.sync_folder(folder)


def exists(target: str) -> UsageError:
    """The error for a place that is taken."""
    return UsageError(
        f"{target} is there already",
        code="exists",
        state="Nothing was imported.",
        hint="Choose another name or folder with --as.",
    )
