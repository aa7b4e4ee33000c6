"""The write discipline: a file is whole, on the disk, and under its name, or the old one is there.

docs/protocol.md#write-discipline. A failed durable write has an unknown outcome: whoever asked
answers nothing, lets go of the capsule and reads again what the disk holds.
"""

import errno
import itertools
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from sojourn.errors import StorageError
from sojourn.format.layout import TEMPORARY_PREFIX
from sojourn.store.disk import Disk

CHUNK: Final = 1 << 16
"""Bytes read at once: few enough to stay in the processor's cache while they are looked at."""

_ZEROS: Final = bytes(4096)
_TEMPORARY: Final = re.compile(r"\.sojourn-(?P<name>.+)\.(?P<pid>[0-9]+)\.[0-9]+\.tmp")
_REASONS: Final[dict[int, tuple[str, str, str]]] = {
    errno.ENOSPC: ("disk_full", "the disk is full", "Make room, then try again."),
    errno.EDQUOT: ("disk_full", "the disk quota is used up", "Make room, then try again."),
    errno.EFBIG: ("disk_full", "a limit of file sizes was passed", "Raise the limit (ulimit -f)."),
    errno.EIO: (
        "io_error",
        "the disk reported an input/output error",
        "Look at the disk's health.",
    ),
    errno.EROFS: ("read_only", "the file system is read-only", "Make it writable, then try again."),
    errno.EACCES: ("not_allowed", "that is not permitted", "Mend the permissions."),
    errno.EPERM: ("not_allowed", "that is not permitted", "Mend the permissions."),
}


def storage_error(failure: OSError, path: str, *, done: str = "written") -> StorageError:
    """The error for a file that could not be `done` (written, read), with the kernel's reason."""
    number = failure.errno or 0
    name = errno.errorcode.get(number, str(number))
    code, words, hint = _REASONS.get(
        number, ("storage_failed", os.strerror(number) if number else str(failure), "")
    )
    state = (
        "The outcome of this write is unknown; what is on the disk counts when it is read again."
    )
    return StorageError(
        f"{os.path.basename(path)} could not be {done}: {words}{f' ({name})' if number else ''}.",
        code=code,
        state=state if done == "written" else "Nothing was changed.",
        hint=hint,
        file=path,
    )


class Doing:
    """Any OSError inside is a StorageError: `path` could not be `done`.

    Not a generator's: one is entered with every append, and that would cost three times as much.
    """

    __slots__ = ("_done", "_path")

    def __init__(self, path: str, done: str) -> None:
        self._path = path
        self._done = done

    def __enter__(self) -> None:
        """Nothing is done yet."""

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: object
    ) -> None:
        if isinstance(failure, OSError):
            raise storage_error(failure, self._path, done=self._done) from failure


def durable_write(path: str) -> Doing:
    """Any OSError inside is a StorageError: `path` could not be written."""
    return Doing(path, "written")


def reading(path: str) -> Doing:
    """Any OSError inside is a StorageError: `path` could not be read."""
    return Doing(path, "read")


def write_whole(disk: Disk, handle: int, data: bytes) -> None:
    """Add all of `data`, going on after short writes."""
    done = disk.write(handle, data)
    while done < len(data):
        written = disk.write(handle, data[done:])
        if written == 0:
            raise OSError(errno.EIO, "nothing was written")
        done += written


def is_hole(data: bytes) -> bool:
    """Whether a piece need not be written: as long as a block at least, and all zeros."""
    return len(data) >= len(_ZEROS) and data.startswith(_ZEROS) and not data.strip(b"\0")


def write_whole_at(disk: Disk, handle: int, data: bytes, offset: int) -> None:
    """Write all of `data` from `offset` on, going on after short writes."""
    done = 0
    while done < len(data):
        written = disk.write_at(handle, data[done:], offset + done)
        if written == 0:
            raise OSError(errno.EIO, "nothing was written")
        done += written


def read_whole(disk: Disk, path: str, *, limit: int | None = None) -> bytes | None:
    """All bytes of a file, or the first `limit`; None when nothing is there."""
    try:
        handle = disk.open(path, "read")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return b"".join(chunks(disk, handle, 0, limit))
    finally:
        disk.close(handle)


def chunks(disk: Disk, handle: int, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The bytes from `start` to `end` (or the end) in pieces of at most `CHUNK`."""
    place = start
    while end is None or place < end:
        size = CHUNK if end is None else min(CHUNK, end - place)
        data = disk.read_at(handle, size, place)
        if not data:
            return
        yield data
        place += len(data)


def temporary_of(name: str) -> str | None:
    """The name for which `name` is a half-made file of ours, None when it is none."""
    found = _TEMPORARY.fullmatch(name)
    return None if found is None else found["name"]


def maker_of(name: str) -> tuple[str, int] | None:
    """The name for which `name` is half-made, and its maker's pid; None when it is not ours."""
    found = _TEMPORARY.fullmatch(name)
    return None if found is None else (found["name"], int(found["pid"]))


def temporary_names(path: str) -> Iterator[str]:
    """Paths for the half-made form of `path`, in the same folder, one after the other."""
    folder, _, name = path.rpartition("/")
    for count in itertools.count():
        yield f"{folder}/{TEMPORARY_PREFIX}{name}.{os.getpid()}.{count}.tmp"


def open_temporary(disk: Disk, path: str) -> tuple[str, int]:
    """A new half-made file for `path` and its handle, open to be filled."""
    for temporary in temporary_names(path):
        try:
            return temporary, disk.open(temporary, "create")
        except FileExistsError:
            continue
    raise FileExistsError(errno.EEXIST, "no free name", path)


class Durable:
    """Whole small files under the write discipline; the `Files` port."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._durable: set[str] = set()

    def read(self, path: str) -> bytes | None:
        """All bytes of a file; None when nothing is there. Raises: StorageError."""
        with reading(path):
            return read_whole(self.disk, path)

    def replace(self, path: str, data: bytes) -> None:
        """The file holds `data`, durable on return; at every moment it is the old or the new one.

        Raises: StorageError; then it is the old or the new one, and not known which.
        """
        self.replace_stamped(path, lambda _birth: data)

    def replace_stamped(self, path: str, make: Callable[[str | None], bytes]) -> None:
        """As `replace`, the bytes made from the birth time of the file that will hold them."""
        with durable_write(path):
            temporary = self._half_made(path, make)
            try:
                self.disk.rename(temporary, path)
            except OSError:
                self._drop(temporary)
                raise
            self.disk.sync_folder(os.path.dirname(path))

    def create(self, path: str, data: bytes) -> bool:
        """Make the file with `data`, whole and durable; False when the name is taken already.

        What is there then is durable too on return. Raises: StorageError.
        """
        with durable_write(path):
            temporary = self._half_made(path, lambda _birth: data)
            try:
                made = self._link(temporary, path)
            finally:
                self._drop(temporary)
            self.disk.sync_folder(os.path.dirname(path))
        return made

    def make_folder(self, path: str) -> None:
        """The folder is there with its parents, each durable; what exists stays as it is.

        Whoever made an existing one may have died before it was durable, so its name is synced
        too, once. Raises: StorageError.
        """
        with durable_write(path):
            self._make_folder(path)

    def set_aside(self, path: str) -> str | None:
        """Rename a file that cannot be used to `<path>.damaged-N`; its new path, None if gone."""
        with durable_write(path):
            if self.disk.stat_path(path) is None:
                return None
            count = 1
            while self.disk.stat_path(f"{path}.damaged-{count}") is not None:
                count += 1
            self.disk.rename(path, f"{path}.damaged-{count}")
            self.disk.sync_folder(os.path.dirname(path))
        return f"{path}.damaged-{count}"

    def sweep(self, folder: str, name: str | None = None) -> None:
        """Remove what killed writers left half-made (for `name` only, when given).

        Only while nobody else writes these files. Raises: StorageError.
        """
        with durable_write(folder):
            for entry, kind in self.disk.list(folder):
                left = temporary_of(entry)
                if kind == "file" and left is not None and name in (None, left):
                    self._drop(f"{folder}/{entry}")

    def _half_made(self, path: str, make: Callable[[str | None], bytes]) -> str:
        """The path of a synced file beside `path` that holds what it shall hold."""
        temporary, handle = open_temporary(self.disk, path)
        try:
            write_whole(self.disk, handle, make(self.disk.birth(handle)))
            self.disk.sync(handle)
        except BaseException:
            self._drop(temporary)
            raise
        finally:
            self.disk.close(handle)
        return temporary

    def _link(self, temporary: str, path: str) -> bool:
        try:
            self.disk.link(temporary, path)
        except FileExistsError:
            return False
        return True

    def _drop(self, path: str) -> None:
        with suppress(OSError):
            self.disk.unlink(path)

    def _make_folder(self, path: str) -> None:
        if path in self._durable:
            return
        parent = os.path.dirname(path)
        if self.disk.stat_path(path) is None:
            self._make_folder(parent)
            with suppress(FileExistsError):
                self.disk.make_folder(path)
            self.disk.sync_folder(parent)
        elif parent != path:
            with suppress(PermissionError):
                self.disk.sync_folder(parent)
        self._durable.add(path)
