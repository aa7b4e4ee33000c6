"""What is recorded of a running call, so that a later worker finds what a dead one left."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from sojourn.errors import StorageError
from sojourn.ids import CallKey, CapsuleId


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One process group: `pid` is its leader's, `start` tells it from a later process.

    Numbers of processes mean something only while the boot id is the same.
    """

    boot: str
    call: CallKey
    capsule: CapsuleId
    pid: int
    start: str


class RunRecords:
    """The records in a folder of the machine's state, one file a call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, record: RunRecord) -> None:
        """Durable on return.

        Raises: StorageError, and then no record is there.
        """
        place = self._place(record.call)
        draft = place.with_suffix(".tmp")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(record, order="sorted"))
                file.flush()
                os.fsync(file.fileno())
            draft.rename(place)
            self._sync()
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
                place.unlink(missing_ok=True)
            raise StorageError(
                f"a program was not started: its record could not be written: {error.strerror}"
            ) from error

    def remove(self, call: CallKey) -> None:
        """Not synced: a record that comes back names a process that is gone."""
        with suppress(OSError):
            self._place(call).unlink(missing_ok=True)

    def of(self, capsule: CapsuleId) -> list[RunRecord]:
        """Every readable record of the capsule; a file that was never finished tells nothing."""
        found: list[RunRecord] = []
        for place in sorted(self._folder.glob("*.json")):
            with suppress(OSError, msgspec.MsgspecError):
                record = msgspec.json.decode(place.read_bytes(), type=RunRecord)
                found += [record] if record.capsule == capsule else []
        return found

    def _place(self, call: CallKey) -> Path:
        return self._folder / f"{call}.json"

    def _sync(self) -> None:
        opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
