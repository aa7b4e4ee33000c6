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
        pid = os.getpid()
        asked = _Asked(boot=self._boot, grace=grace, pid=pid, start=process_start(pid))
        self._files.make_folder(self._folder)
        self._files.replace(self._path(capsule), encode(asked) + b"\n")

    def asked(self, capsule: CapsuleId) -> float | None:
        """See `ports_move.Release`. Raises: StorageError."""
        path = self._path(capsule)
        with reading(path):
            if self._disk.stat_path(path) is None:
                return None
            data = read_whole(self._disk, path, limit=LIMIT)
        try:
            found = None if data is None else msgspec.convert(load(data, what=path), _Asked)
        except (FormatError, msgspec.ValidationError):
            return None
        if found is None or found.boot != self._boot or process_start(found.pid) != found.start:
            return None
        return found.grace

    def withdraw(self, capsule: CapsuleId) -> None:
        """See `ports_move.Release`. Raises: StorageError."""
        path = self._path(capsule)
        with durable_write(path):
            if self._disk.stat_path(path) is not None:
                self._disk.unlink(path)

    def _path(self, capsule: CapsuleId) -> str:
        return f"{self._folder}/{capsule}"
