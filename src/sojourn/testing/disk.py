"""A file system in memory that records what is durable, and can die or fail at any operation.

It stands where the real disk stands, below the code that is shipped. `after_kill` is what the next
process finds when only this one died; `after_power_cut` is everything that may be found when the
power failed (docs/protocol.md#write-discipline).
"""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeVar

from sojourn.store.disk import FileStat, Kind, OpenMode
from sojourn.testing.disk_model import (
    Cut,
    Entry,
    File,
    Folder,
    Write,
    after_power_cut,
    copied,
    walk,
)

_Disk = TypeVar("_Disk", bound="RecordingDisk")

LIMIT: Final = 40
"""How many disks are tried after one power cut when there may be more."""


class Died(BaseException):
    """The process is gone; nothing after this runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens at the operation number `at` (from 1): death, or an error.

    A `torn` write does half of its work first.
    """

    at: int
    error: int | None = None
    torn: bool = False


@dataclass(slots=True)
class _Handle:
    file: File
    path: str
    append: bool


class RecordingDisk:
    """The `Disk` of tests. `operations` tells every change that was asked for, in order."""

    def __init__(
        self, root: Folder | None = None, *, fault: Fault | None = None, first: int = 2
    ) -> None:
        self._root = root or Folder(1)
        self._fault = fault
        self._dead = False
        self._handles: dict[int, _Handle] = {}
        self._locks: dict[int, dict[int, Literal["shared", "whole"]]] = {}
        self._next = first
        self.operations: list[str] = []

    def copy(self, *, fault: Fault | None = None) -> Self:
        """The same caches and the same disk, no open files, for a new process."""
        return type(self)(copied(self._root), fault=fault, first=self._next)

    def turned_into(self, kind: type[_Disk]) -> _Disk:
        """The same caches and the same disk behind operations of another kind."""
        return kind(copied(self._root), first=self._next)

    def after_kill(self) -> Self:
        """What the next process finds when only this one died."""
        return self.copy()

    def after_power_cut(self, *, limit: int = LIMIT) -> Iterator[Self]:
        """Disks that may be found when the power fails now: all, up to `limit`."""
        for root in after_power_cut(self._root, limit=limit):
            yield type(self)(root, first=self._next)

    def file(self, path: str) -> File:
        """What is known of one file."""
        folder, name = self._place(path)
        found = self._entry(folder, name, path)
        if isinstance(found, Folder):
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        return found

    def tree(self) -> dict[str, bytes]:
        """Every file that processes see, by its path."""
        return dict(_tree(self._root, ""))

    def open(self, path: str, mode: OpenMode) -> int:
        folder, name = self._place(path)
        found = folder.cache.get(name)
        if found is not None and mode == "create":
            raise FileExistsError(errno.EEXIST, "exists", path)
        if isinstance(found, Folder):
            raise OSError(errno.EINVAL if mode == "read" else errno.EISDIR, "is a folder", path)
        if found is None and mode not in ("create", "lock"):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if found is None:
            self._step("create", path)
            found = File(self._number())
            folder.change({name: found})
        handle = self._number()
        self._handles[handle] = _Handle(found, path, mode in ("append", "create"))
        return handle

    def close(self, handle: int) -> None:
        self.unlock(handle)
        del self._handles[handle]

    def write(self, handle: int, data: bytes) -> int:
        opened = self._handles[handle]
        return self._write(opened, data, len(opened.file.cache))

    def write_at(self, handle: int, data: bytes, offset: int) -> int:
        return self._write(self._handles[handle], data, offset)

    def read_at(self, handle: int, size: int, offset: int) -> bytes:
        return self._handles[handle].file.cache[offset : offset + size]

    def truncate(self, handle: int, length: int) -> None:
        opened = self._handles[handle]
        self._step("truncate", opened.path)
        opened.file.change(Cut(length))

    def sync(self, handle: int) -> None:
        opened = self._handles[handle]
        try:
            self._step("sync", opened.path)
        except OSError:
            opened.file.fail_sync()
            raise
        opened.file.sync()

    def sync_data(self, handle: int) -> None:
        self.sync(handle)

    def sync_folder(self, path: str) -> None:
        folder = self._folder(path)
        try:
            self._step("sync folder", path)
        except OSError:
            folder.fail_sync()
            raise
        folder.sync()

    def sync_all(self, path: str) -> bool:
        everything = list(walk(self._root))
        try:
            self._step("sync all", path)
        except OSError:
            for entry in everything:
                entry.fail_sync()
            raise
        for entry in everything:
            entry.sync()
        return True

    def rename(self, old: str, new: str) -> None:
        source, name = self._place(old)
        target, new_name = self._place(new)
        entry = self._entry(source, name, old)
        there = target.cache.get(new_name)
        if there is entry:
            return
        if isinstance(there, Folder) and isinstance(entry, File):
            raise IsADirectoryError(errno.EISDIR, "is a folder", new)
        if isinstance(there, Folder) and there.cache:
            raise OSError(errno.ENOTEMPTY, "not empty", new)
        self._step("rename", new)
        if source is target:
            source.change({name: None, new_name: entry})
        else:
            target.change({new_name: entry})
            source.change({name: None})

    def link(self, old: str, new: str) -> None:
        source, name = self._place(old)
        entry = self._entry(source, name, old)
        target, new_name = self._place(new)
        if new_name in target.cache:
            raise FileExistsError(errno.EEXIST, "exists", new)
        self._step("link", new)
        target.change({new_name: entry})

    def unlink(self, path: str) -> None:
        folder, name = self._place(path)
        if isinstance(self._entry(folder, name, path), Folder):
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        self._step("unlink", path)
        folder.change({name: None})

    def make_folder(self, path: str) -> None:
        folder, name = self._place(path)
        if name in folder.cache:
            raise FileExistsError(errno.EEXIST, "exists", path)
        self._step("make folder", path)
        folder.change({name: Folder(self._number())})

    def remove_folder(self, path: str) -> None:
        folder, name = self._place(path)
        if self._folder(path).cache:
            raise OSError(errno.ENOTEMPTY, "not empty", path)
        self._step("remove folder", path)
        folder.change({name: None})

    def stat(self, handle: int) -> FileStat:
        return _stat(self._handles[handle].file)

    def stat_path(self, path: str) -> FileStat | None:
        if path == "/":
            return _stat(self._root)
        try:
            folder, name = self._place(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        found = folder.cache.get(name)
        return None if found is None else _stat(found)

    def birth(self, handle: int) -> str | None:
        return f"0.{self._handles[handle].file.number:09d}"

    def list(self, path: str) -> tuple[tuple[str, Kind], ...]:
        try:
            folder = self._folder(path)
        except FileNotFoundError:
            return ()
        return tuple(sorted((name, _kind(entry)) for name, entry in folder.cache.items()))

    def lock(self, handle: int, *, shared: bool = False, wait: bool = False) -> bool:
        holders = self._locks.setdefault(self._handles[handle].file.number, {})
        others = {kind for holder, kind in holders.items() if holder != handle}
        if "whole" in others or (others and not shared):
            if wait:
                raise RuntimeError("this would wait for ever")
            return False
        holders[handle] = "shared" if shared else "whole"
        return True

    def unlock(self, handle: int) -> None:
        self._locks.get(self._handles[handle].file.number, {}).pop(handle, None)

    def network(self, path: str) -> str | None:
        del path
        return None

    def _write(self, opened: _Handle, data: bytes, offset: int) -> int:
        try:
            self._step("write", opened.path)
        except (OSError, Died):
            if self._fault is not None and self._fault.torn:
                opened.file.change(Write(offset, data[: len(data) // 2]))
            raise
        opened.file.change(Write(offset, data))
        return len(data)

    def _step(self, what: str, path: str) -> None:
        if self._dead:
            raise Died("a process that is gone does nothing more, not even in its clean-up")
        self.operations.append(f"{what} {os.path.basename(path)}")
        fault = self._fault
        if fault is None or len(self.operations) != fault.at:
            return
        if fault.error is None:
            self._dead = True
            raise Died(self.operations[-1])
        raise OSError(fault.error, os.strerror(fault.error), path)

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, name = os.path.split(path)
        return self._folder(parent), name

    def _folder(self, path: str) -> Folder:
        folder = self._root
        for part in path.split("/"):
            found = folder.cache.get(part) if part else folder
            if found is None:
                raise FileNotFoundError(errno.ENOENT, "no such folder", path)
            if isinstance(found, File):
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
            folder = found
        return folder

    def _entry(self, folder: Folder, name: str, path: str) -> Entry:
        found = folder.cache.get(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found


def _stat(entry: Entry) -> FileStat:
    size = len(entry.cache) if isinstance(entry, File) else 0
    return FileStat(_kind(entry), size, 1, entry.number, 0)


def _kind(entry: Entry) -> Kind:
    return "file" if isinstance(entry, File) else "folder"


def _tree(folder: Folder, path: str) -> Iterator[tuple[str, bytes]]:
    for name, entry in folder.cache.items():
        if isinstance(entry, Folder):
            yield from _tree(entry, f"{path}/{name}")
        else:
            yield f"{path}/{name}", entry.cache
