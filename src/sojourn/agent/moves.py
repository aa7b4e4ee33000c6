"""Moving capsules from and to this install: the drivers with this machine's ports."""

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from sojourn.agent.fitness import judge
from sojourn.agent.places import Place, is_capsule
from sojourn.drive.crossing import Watcher
from sojourn.drive.moving import Moved, Mover
from sojourn.drive.observe import Observer, Unwatched
from sojourn.drive.reading import Folded, read_manifest
from sojourn.drive.receiving import MoveReceiver
from sojourn.errors import NotFoundError, SojournError
from sojourn.ids import CapsuleId, Epoch, MoveId
from sojourn.ports import Store
from sojourn.ports_move import Peer

if TYPE_CHECKING:
    from sojourn.agent.machine import Machine
    from sojourn.core.migration_messages import Problem

GRACE = 10.0
"""Seconds that a running call may go on, unless the caller says otherwise."""


async def move(
    machine: "Machine",
    place: Place,
    peer: Peer,
    *,
    grace: float = GRACE,
    label: str = "",
    dry: bool = False,
    watcher: Watcher,
    observer: Observer | None = None,
    stop: asyncio.Event | None = None,
) -> Moved:
    """Move the capsule to the machine of `peer`, where its agent goes on with the same turn.

    With `dry` it is only looked whether it could. Raises: as `Mover.run`.
    """
    from sojourn.store.files import FolderFiles

    if place.workspace is None:
        raise NotFoundError(
            f"this machine knows no workspace of {place.name}",
            code="no_workspace",
            state="Nothing was changed.",
            hint="Only the machine that holds a capsule can move it.",
        )
    mover = Mover(
        ports=machine.ports,
        peer=peer,
        capsule=place.capsule,
        folder=place.folder,
        workspace=place.workspace,
        files=FolderFiles(place.folder),
        grace=grace,
        label=label,
        watcher=watcher,
        observer=observer or Unwatched(),
        stop=stop or asyncio.Event(),
        move=MoveId(machine.ports.randomness.token(16).hex()),
    )
    return await mover.run(dry=dry)


def receiver(
    machine: "Machine", boot: str, *, doubtful: Callable[[CapsuleId], None] | None = None
) -> MoveReceiver:
    """What other machines speak to; `boot` is the nonce of this start of the daemon."""

    async def fit(folded: Folded, store: Store) -> "tuple[Problem, ...]":
        return await judge(machine, folded, store)

    return MoveReceiver(
        ports=machine.ports,
        boot=boot,
        judge=fit,
        found=lambda capsule: highest_epoch(machine, capsule),
        doubtful=doubtful or (lambda _: None),
    )


def highest_epoch(machine: "Machine", capsule: CapsuleId) -> Epoch:
    """The highest epoch that folders of the capsule in the default place name; 0 for none."""
    highest, above = 0, machine.state.capsules
    for name in os.listdir(above) if os.path.isdir(above) else ():
        folder = f"{above}/{name}"
        if not is_capsule(folder):
            continue
        try:
            found = read_manifest(machine.ports.store_at(folder))
        except SojournError:
            continue
        if found.capsule == capsule:
            highest = max(highest, found.epoch)
    return Epoch(highest)
