"""Asking a process that holds a capsule to let go of it: one small file a capsule.

docs/protocol.md#release. A file whose writer is gone asks for nothing, so that a mover that died
never keeps an agent from running.
"""

import os

import msgspec

from sojourn.errors import FormatError
from sojourn.format.canon import encode, load
from sojourn.ids import CapsuleId
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable, durable_write, read_whole, reading
from sojourn.store.system import process_start

LIMIT = 512
"""Bytes of a request."""


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """`pid` and `start` name the process that asks, in the boot `boot`."""

    boot: str
    grace: float
    pid: int
    start: str


class FileRelease:
    """The `Release` port in a folder, given absolute; `boot` is the id of the running boot."""

    def __init__(self, folder: str, *, boot: str, disk: Disk | None = None) -> None:
        self._folder = folder
        self._boot = boot
        self._disk = disk or OsDisk()
        self._files = Durable(self._disk)

    def ask(self, capsule: CapsuleId, *, grace: float) -> None:
        """See `ports_move.Release`. Raises: StorageError."""
        self._sign(self._path(capsule), grace)

    def asked(self, capsule: CapsuleId) -> float | None:
        """See `ports_move.Release`. Raises: StorageError."""
        found = self._found(self._path(capsule))
        return found.grace if found is not None and self._lives(found) else None

    def asker(self, capsule: CapsuleId) -> int | None:
        """See `ports_move.Release`. Raises: StorageError."""
        found = self._found(self._path(capsule))
        return found.pid if found is not None and self._lives(found) else None

    def withdraw(self, capsule: CapsuleId) -> None:
        """See `ports_move.Release`. Raises: StorageError."""
        self._remove(self._path(capsule))

    def begin_reading(self, capsule: CapsuleId) -> None:
        """See `ports_move.Release`. Raises: StorageError."""
        self._sign(f"{self._path(capsule)}.reading", 0.0)

    def end_reading(self, capsule: CapsuleId) -> None:
        """See `ports_move.Release`. Raises: StorageError."""
        self._remove(f"{self._path(capsule)}.reading")

    def died_reading(self, capsule: CapsuleId) -> bool:
        """See `ports_move.Release`. Raises: StorageError."""
        found = self._found(f"{self._path(capsule)}.reading")
        return found is not None and not self._lives(found)

    def _sign(self, path: str, grace: float) -> None:
        pid = os.getpid()
        asked = _Asked(boot=self._boot, grace=grace, pid=pid, start=process_start(pid))
        self._files.make_folder(self._folder)
        self._files.sweep(self._folder, os.path.basename(path))
        self._files.replace(path, encode(asked) + b"\n")

    def _found(self, path: str) -> _Asked | None:
        with reading(path):
            if self._disk.stat_path(path) is None:
                return None
            data = read_whole(self._disk, path, limit=LIMIT)
        try:
            return None if data is None else msgspec.convert(load(data, what=path), _Asked)
        except (FormatError, msgspec.ValidationError):
            return None

    def _lives(self, found: _Asked) -> bool:
        return found.boot == self._boot and process_start(found.pid) == found.start

    def _remove(self, path: str) -> None:
        with durable_write(path):
            if self._disk.stat_path(path) is not None:
                self._disk.unlink(path)

    def _path(self, capsule: CapsuleId) -> str:
        return f"{self._folder}/{capsule}"
