"""Exporting a capsule as it was at an event (docs/protocol.md#carrying)."""

import os

from sojourn.agent.aftermath import Target, of_export, telling
from sojourn.agent.machine import Machine
from sojourn.agent.places import Place, check_name
from sojourn.agent.trust import refuse_secrets
from sojourn.agent.writing import Exported, Progress, Wanted, prepared, write_sealed
from sojourn.drive import export
from sojourn.drive.fork import fork_capsule
from sojourn.drive.observe import Observer, Unwatched
from sojourn.ids import EventId
from sojourn.store.files import FolderFiles
from sojourn.store.staging import Staging


async def export_at(
    machine: Machine,
    place: Place,
    wanted: Wanted,
    *,
    at: EventId,
    observer: Observer | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write a fork at an event as an archive; the capsule itself is only read.

    The fork is held nowhere. It is made in a private folder of the state folder, which is gone
    afterwards. `wanted.purpose` is `fork`.

    Raises: NotFoundError `event_missing`, `key_missing`; UsageError `exists`, `fork_too_early`;
    FormatError; StorageError.
    """
    recipients = prepared(wanted)
    observer = observer or Unwatched()
    name = check_name(f"{place.name[:50]}-fork")
    more = export.parting(
        machine.look(place).events_of(), at, without_workspace=wanted.without_workspace
    )
    target = Target(wanted.file)
    with telling(lambda: of_export(target)):
        staging = Staging(machine.state.capsules)
        try:
            staging.sweep(machine.ports.maker)
            folder = f"{staging.folder}/{name}"
            await fork_capsule(
                machine.ports,
                place.folder,
                folder,
                name=name,
                at=at,
                home=None,
                more=more,
                observer=observer,
            )
            files = FolderFiles(folder)
            made = export.seal_forked(
                machine.ports.store_at(folder),
                files,
                check=lambda blobs: refuse_secrets(
                    folder, blobs, accepted=wanted.accept, note=observer.note
                ),
            )
            return write_sealed(wanted, made, files, recipients=recipients, progress=progress)
        finally:
            staging.discard()


def default_file(place: Place, ending: str) -> str:
    """Where the archive goes when nobody says so."""
    return os.path.abspath(f"{place.name[:50]}-fork{ending}")
