"""What becomes of a capsule that a process let go of because another one moves it."""

from dataclasses import dataclass
from typing import Literal

from sojourn.agent.machine import Machine
from sojourn.agent.places import Place, record_of

LOOK = 0.1
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """`back`: it may run here again; else it went to, or may be at, the machine at `address`."""

    what: Literal["back", "moved_away", "in_doubt"]
    address: str = ""


async def fate_of(machine: Machine, place: Place) -> Fate:
    """Wait until the move is over, or until nobody is left to carry it on.

    Raises: StorageError.
    """
    ports = machine.ports
    while True:
        record = record_of(ports, place.capsule)
        moving = ports.release.asked(place.capsule) is not None
        held = ports.lock.holder(place.capsule) is not None
        if record is None or not (moving or held):
            break
        if record.state == "RETIRED":
            break
        await ports.clock.wait(LOOK)
    moves = None if record is None else record.travels
    if record is not None and record.state == "RETIRED" and moves is not None:
        went = moves.went
        return Fate(what="moved_away", address="" if went is None else went.address)
    if record is not None and record.state == "IN_DOUBT" and record.outgoing is not None:
        return Fate(what="in_doubt", address=record.outgoing.address)
    return Fate(what="back")
