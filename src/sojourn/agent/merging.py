"""Two copies of a capsule: what each has that the other lacks, and one made of both."""

import os

from sojourn.agent.machine import Machine
from sojourn.agent.places import Place, place_at
from sojourn.drive.merge import Merged, merge_capsules
from sojourn.drive.observe import Observer, Unwatched


async def merge(
    machine: Machine,
    place: Place,
    other: str,
    *,
    dry_run: bool = False,
    observer: Observer | None = None,
) -> Merged:
    """Take into the capsule all that the one in folder `other` has (docs/protocol.md#merge).

    Raises: NotFoundError `no_capsule`; as `drive.merge.merge_capsules`.
    """
    there = place_at(machine.ports, os.path.realpath(other))
    return await merge_capsules(
        machine.ports,
        place.folder,
        there.folder,
        dry_run=dry_run,
        observer=observer or Unwatched(),
    )
