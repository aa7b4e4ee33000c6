"""Brings the moves of this install to their end: over the links to the machines that took part."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sojourn.agent.links import open_peer
from sojourn.agent.machine import Machine
from sojourn.agent.places import record_of
from sojourn.core.ledger_record import LedgerRecord
from sojourn.drive.settling import Pending, abort, pending, settle
from sojourn.errors import HeldElsewhereError, SojournError
from sojourn.ids import CapsuleId

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 300.0
"""How long it is waited before the same is tried again; doubled each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What came of asking: the record now, what is still open, and why it could not be settled."""

    capsule: CapsuleId
    record: LedgerRecord | None
    open: tuple[Pending, ...]
    failures: tuple[SojournError, ...]


async def settle_capsule(machine: Machine, capsule: CapsuleId) -> Settled:
    """Say to every machine what is still to be said of moves of this capsule."""
    failures: list[SojournError] = []
    record = record_of(machine.ports, capsule)
    if record is not None and record.state == "FROZEN":
        with suppress(HeldElsewhereError):
            record = abort(machine.ports, capsule)
    for matter in () if record is None else pending(machine.ports, record):
        try:
            async with open_peer(machine, matter.address, expected=matter.to) as peer:
                record = await settle(
                    machine.ports, peer, capsule, "" if record is None else record.folder
                )
        except SojournError as error:
            failures.append(error)
    record = record_of(machine.ports, capsule)
    left = () if record is None else pending(machine.ports, record)
    return Settled(capsule=capsule, record=record, open=left, failures=tuple(failures))


async def settle_on(
    machine: Machine, stop: asyncio.Event, failed: Callable[[SojournError], None]
) -> None:
    """Until `stop`: settle whatever is open, again and again with longer and longer pauses."""
    pauses: dict[CapsuleId, float] = {}
    due: dict[CapsuleId, float] = {}
    while not stop.is_set():
        now = machine.ports.clock.monotonic()
        for capsule in machine.ports.ledger.capsules():
            record = record_of(machine.ports, capsule)
            if record is None or not pending(machine.ports, record):
                pauses.pop(capsule, None)
                due.pop(capsule, None)
                continue
            if now < due.get(capsule, 0.0):
                continue
            found = await settle_capsule(machine, capsule)
            for error in found.failures:
                failed(error)
            pause = min(2 * pauses.get(capsule, FIRST_SECONDS / 2), LONGEST_SECONDS)
            pauses[capsule] = pause
            due[capsule] = machine.ports.clock.monotonic() + pause
        waiting = asyncio.ensure_future(stop.wait())
        await asyncio.wait((waiting,), timeout=FIRST_SECONDS)
        waiting.cancel()
