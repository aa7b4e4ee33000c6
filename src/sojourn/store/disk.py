"""The few primitive file operations that everything durable goes through, and the real ones.

`Disk` is a Protocol so that tests can put a recording file system below the very code that runs
(docs/protocol.md#write-discipline). Paths are absolute. Primitives raise `OSError` as the kernel
says it; `store/durable.py` makes writes of them that are whole and durable, or a StorageError.
"""

import errno
import fcntl
import os
import stat
import sys
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from sojourn.store.kernel import birth_of, sync_file_system
from sojourn.store.mounts import network_type

OpenMode: TypeAlias = Literal["read", "append", "create", "update", "lock"]
"""`create` is append to a file that must not exist; `update` writes in place; `lock` makes it."""

Kind: TypeAlias = Literal["file", "folder", "link", "other"]

_FLAGS: Final[dict[OpenMode, int]] = {
    "read": os.O_RDONLY,
    "append": os.O_WRONLY | os.O_APPEND,
    "create": os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL,
    "update": os.O_RDWR,
    "lock": os.O_RDWR | os.O_CREAT,
}

_KINDS: Final[dict[int, Kind]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
}


class FileStat(msgspec.Struct, frozen=True, gc=False):
    """What kind of thing a path or handle is, its size in bytes, and which one it is.

    `changed` is when its bytes, or the names in it, changed last: nanoseconds of wall time, whole
    seconds (or 0) where the file system keeps no more.
    """

    kind: Kind
    size: int
    device: int
    inode: int
    changed: int

    def same(self, other: "FileStat | None") -> bool:
        """Whether both are one and the same file."""
        return other is not None and self.inode == other.inode and self.device == other.device


class Disk(Protocol):
    """A file system: handles are small integers, closed on exec and mode 0600 when made."""

    def open(self, path: str, mode: OpenMode) -> int:
        """Open a regular file, never through a link as its last part."""
        ...

    def close(self, handle: int) -> None: ...

    def write(self, handle: int, data: bytes) -> int:
        """Add at the end (`append`, `create`); how many bytes were written, maybe fewer."""
        ...

    def write_at(self, handle: int, data: bytes, offset: int) -> int: ...

    def read_at(self, handle: int, size: int, offset: int) -> bytes: ...

    def truncate(self, handle: int, length: int) -> None: ...

    def sync(self, handle: int) -> None:
        """The file's bytes and length are on the disk when this returns."""
        ...

    def sync_data(self, handle: int) -> None:
        """As `sync`, without what only concerns times."""
        ...

    def sync_folder(self, path: str) -> None:
        """The folder's names are on the disk when this returns."""
        ...

    def sync_all(self, path: str) -> bool:
        """Everything of the path's file system is on the disk; False where that cannot be asked."""
        ...

    def rename(self, old: str, new: str) -> None: ...

    def link(self, old: str, new: str) -> None:
        """A second name for a file; FileExistsError when it is taken."""
        ...

    def unlink(self, path: str) -> None: ...

    def make_folder(self, path: str) -> None:
        """Mode 0700; FileExistsError when the name is taken."""
        ...

    def remove_folder(self, path: str) -> None: ...

    def stat(self, handle: int) -> FileStat: ...

    def stat_path(self, path: str) -> FileStat | None:
        """Of the path itself, not of what a link names; None when nothing is there."""
        ...

    def birth(self, handle: int) -> str | None:
        """When the file was made, as the file system says it; None where it does not."""
        ...

    def list(self, path: str) -> tuple[tuple[str, Kind], ...]:
        """Names and kinds in a folder, sorted; empty when there is no folder."""
        ...

    def lock(self, handle: int, *, shared: bool = False, wait: bool = False) -> bool:
        """Lock the open file until it is closed or the process dies; False when held elsewhere."""
        ...

    def unlock(self, handle: int) -> None: ...

    def network(self, path: str) -> str | None:
        """The type of the network file system that the path is on, None when it is local."""
        ...


class OsDisk:
    """The real file system."""

    def open(self, path: str, mode: OpenMode) -> int:
        # A pipe that lies where a file should be must not keep anybody waiting.
        flags = _FLAGS[mode] | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(path, flags, 0o600)
        if mode != "create" and not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "not a regular file", path)
        return handle

    def close(self, handle: int) -> None:
        os.close(handle)

    def write(self, handle: int, data: bytes) -> int:
        return os.write(handle, data)

    def write_at(self, handle: int, data: bytes, offset: int) -> int:
        return os.pwrite(handle, data, offset)

    def read_at(self, handle: int, size: int, offset: int) -> bytes:
        return os.pread(handle, size, offset)

    def truncate(self, handle: int, length: int) -> None:
        os.ftruncate(handle, length)

    def sync(self, handle: int) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        else:
            os.fsync(handle)

    def sync_data(self, handle: int) -> None:
        if sys.platform == "darwin":
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(handle)

    def sync_folder(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(handle)
        finally:
            os.close(handle)

    def sync_all(self, path: str) -> bool:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return sync_file_system(handle)
        finally:
            os.close(handle)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def link(self, old: str, new: str) -> None:
        os.link(old, new, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_folder(self, path: str) -> None:
        os.mkdir(path, 0o700)

    def remove_folder(self, path: str) -> None:
        os.rmdir(path)

    def stat(self, handle: int) -> FileStat:
        return _file_stat(os.fstat(handle))

    def stat_path(self, path: str) -> FileStat | None:
        try:
            return _file_stat(os.lstat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def birth(self, handle: int) -> str | None:
        return birth_of(handle)

    def list(self, path: str) -> tuple[tuple[str, Kind], ...]:
        try:
            with os.scandir(path) as entries:
                return tuple(sorted([(entry.name, _entry_kind(entry)) for entry in entries]))
        except FileNotFoundError:
            return ()

    def lock(self, handle: int, *, shared: bool = False, wait: bool = False) -> bool:
        flags = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(handle, flags if wait else flags | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(self, handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

    def network(self, path: str) -> str | None:
        return network_type(path)


def _file_stat(found: os.stat_result) -> FileStat:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return FileStat(kind, found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns)


def _entry_kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "link" if entry.is_symlink() else "other"
