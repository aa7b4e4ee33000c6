"""Runs a piece of durable work and ends it at each of its operations, one after the other.

After every end it is checked what the next process finds: when only the process died, and on every
disk that a power cut may leave.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from sojourn.errors import StorageError
from sojourn.testing.disk import Died, Fault, RecordingDisk

Act: TypeAlias = Callable[[RecordingDisk, list[str]], None]
"""The work; it names in the list what was acknowledged, right after it was."""

Check: TypeAlias = Callable[[RecordingDisk, list[str]], None]
"""Raises when a disk that was found does not hold what was acknowledged, or cannot go on."""

DEATHS: Final = (None,)
ERRORS: Final = (errno.EIO, errno.ENOSPC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """How many ends there were, and how many disks were checked after them."""

    ends: int
    disks: int


def end_everywhere(
    start: RecordingDisk,
    act: Act,
    check: Check,
    *,
    errors: tuple[int | None, ...] = (*DEATHS, *ERRORS),
) -> Tried:
    """Run `act` from `start` once for each operation and each way to end there.

    Raises: what `check` raises, with a note that says where the end was.
    """
    ends = disks = 0
    for error in errors:
        for torn in (False, True):
            for disk, done in _ends(start, act, error, torn):
                ends += 1
                disks += _check_all(disk, done, check, error)
    return Tried(ends=ends, disks=disks)


def _ends(
    start: RecordingDisk, act: Act, error: int | None, torn: bool
) -> Iterator[tuple[RecordingDisk, list[str]]]:
    at = 0
    while True:
        at += 1
        disk = start.copy(fault=Fault(at=at, error=error, torn=torn))
        done: list[str] = []
        with suppress(Died, StorageError):
            act(disk, done)
        yield disk, done
        if len(disk.operations) < at:
            return


def _check_all(disk: RecordingDisk, done: list[str], check: Check, error: int | None) -> int:
    count = 0
    for kind, found in _after(disk):
        count += 1
        try:
            check(found, done)
        except Exception as failure:
            last = disk.operations[-1] if disk.operations else "nothing"
            way = "death" if error is None else errno.errorcode[error]
            failure.add_note(
                f"{way} at operation {len(disk.operations)}, {last}; then {kind}; "
                f"acknowledged: {done}; found: {sorted(found.tree())}"
            )
            raise
    return count


def _after(disk: RecordingDisk) -> Iterator[tuple[str, RecordingDisk]]:
    yield "the next process", disk.after_kill()
    for found in disk.after_power_cut():
        yield "a power cut", found
