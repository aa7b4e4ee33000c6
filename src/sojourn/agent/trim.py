"""What takes something away from a capsule: redaction, repair, and removal of unnamed blobs."""

from dataclasses import dataclass

from sojourn.agent.machine import Machine
from sojourn.agent.places import Place
from sojourn.drive.observe import Observer, Unwatched
from sojourn.drive.opening import hold_capsule
from sojourn.drive.redact import RedactedBody, redact_event
from sojourn.drive.redact_files import RedactedFiles, Wanted, redact_files
from sojourn.drive.repair import RepairReport, repair_capsule
from sojourn.drive.unnamed import unnamed
from sojourn.ids import EventId
from sojourn.store.unnamed import FolderBlobs, OldBlob


async def redact(
    machine: Machine,
    place: Place,
    event: EventId,
    *,
    reason: str,
    by: str = "user",
    observer: Observer | None = None,
) -> RedactedBody:
    """Take the body of an event away for good, and the blobs that only it named.

    Raises: UsageError `turn_open`, `redact_refused`; NotFoundError; as `Machine.hold`.
    """
    return await redact_event(
        machine.ports,
        place.folder,
        event,
        reason=machine.ports.mask.text(reason),
        by=by,
        observer=observer or Unwatched(),
    )


async def redact_file(
    machine: Machine,
    place: Place,
    wanted: Wanted,
    *,
    reason: str,
    by: str = "user",
    observer: Observer | None = None,
) -> RedactedFiles:
    """Take contents of files out of every snapshot for good; the workspace itself is left alone.

    Raises: UsageError `turn_open`, `redact_refused`; NotFoundError `content_missing`; as
    `Machine.hold`.
    """
    return await redact_files(
        machine.ports,
        place.folder,
        wanted,
        reason=machine.ports.mask.text(reason),
        by=by,
        observer=observer or Unwatched(),
    )


async def repair(
    machine: Machine, place: Place, *, dry_run: bool = False, observer: Observer | None = None
) -> RepairReport:
    """Set aside what cannot be read, and record it, so that the agent can go on.

    Raises: FormatError `repair_refused`; HeldElsewhereError; StorageError.
    """
    watching = observer or Unwatched()
    return await repair_capsule(machine.ports, place.folder, dry_run=dry_run, observer=watching)


DAY = 86_400.0
"""Seconds of a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Blobs that nothing names and that are old enough; `removed` when they are gone."""

    blobs: tuple[OldBlob, ...]
    removed: bool


async def collect(
    machine: Machine, place: Place, *, prune: bool = False, grace_days: float = 14.0
) -> Cleaned:
    """Find blobs that nothing names, and remove them with `prune`; only the holder may.

    Raises: as `Machine.hold`; FormatError `path_unsafe`; StorageError.
    """
    folder, seconds = FolderBlobs(place.folder), grace_days * DAY
    if not prune:
        return Cleaned(blobs=_unnamed(machine, place, folder, seconds), removed=False)
    async with hold_capsule(machine.ports, place.folder, observer=Unwatched()):
        names = (one.name for one in _unnamed(machine, place, folder, seconds))
        return Cleaned(blobs=folder.remove(names, seconds=seconds), removed=True)


def _unnamed(
    machine: Machine, place: Place, folder: FolderBlobs, seconds: float
) -> tuple[OldBlob, ...]:
    old = folder.old(seconds)
    names = set(unnamed(machine.ports.store_at(place.folder), (one.name for one in old)))
    return tuple(one for one in old if one.name in names)
