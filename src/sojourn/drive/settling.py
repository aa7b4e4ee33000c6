"""Brings earlier moves of a capsule to their end: asks, tells and forwards what is still open.

docs/moving.md#settling. It may be done at any time, by any process, and as often as one likes.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration import step
from sojourn.core.migration_values import Again, Decided, Disowned, Expired, Ready, Sweep
from sojourn.drive.crossing import Crossing, Phase, forget_job, write
from sojourn.drive.forwarding import forward
from sojourn.drive.machine import Ports
from sojourn.drive.opening import here_of, thaw
from sojourn.errors import FormatError, MigrationError
from sojourn.ids import CapsuleId, Epoch, MachineId, MoveId
from sojourn.ports_move import Peer

Open: TypeAlias = Literal["asks", "tells", "forwards"]
"""A doubt to ask about, a cancelled move to tell of, messages to send on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Something that is still to be said to a machine, which was last reached at `address`."""

    what: Open
    to: MachineId
    address: str


def pending(ports: Ports, record: LedgerRecord) -> tuple[Pending, ...]:
    """What is open of earlier moves, one item for each machine and matter."""
    moves, found = record.travels, list[Pending]()
    if moves is None:
        return ()
    doubt = moves.outgoing
    if record.state == "IN_DOUBT" and doubt is not None:
        found.append(Pending(what="asks", to=doubt.target, address=doubt.address))
    if record.state == "FROZEN" and doubt is not None and ports.lock.holder(record.capsule) is None:
        # Its mover died: the next who takes the lock cancels the move, and the target is told.
        found.append(Pending(what="tells", to=doubt.target, address=doubt.address))
    for told in moves.cancelled:
        found.append(Pending(what="tells", to=told.target, address=told.address))
    went = moves.went
    if record.state == "RETIRED" and went is not None and ports.inbox.items(record.capsule):
        found.append(Pending(what="forwards", to=went.target, address=went.address))
    return tuple(dict.fromkeys(found))


async def settle(ports: Ports, peer: Peer, capsule: CapsuleId, folder: str) -> LedgerRecord | None:
    """Do what is pending with the machine of `peer`; the record as it is then.

    Raises: HeldElsewhereError while another process has the capsule; MigrationError
    `target_forgot` when that machine lost its memory of the move; StorageError.
    """
    with ports.lock.acquire(capsule):
        thaw(ports, capsule)
        crossing = Crossing(
            ports=ports,
            peer=peer,
            capsule=capsule,
            folder=folder,
            watcher=_Silent(),
            stop=asyncio.Event(),
        )
        await crossing.decide(Again())
        record = ports.ledger.load(capsule)
    went = None if record is None or record.travels is None else record.travels.went
    if record is not None and record.state == "RETIRED":
        if went is not None and went.target == peer.machine:
            await forward(ports, peer, capsule, went.move)
        forget_job(ports, capsule)
    if crossing.forgotten and record is not None and record.state == "IN_DOUBT":
        raise _forgot(record)
    return record


def decide(
    ports: Ports, capsule: CapsuleId, *, how: Literal["resume", "retire"], by: str
) -> LedgerRecord | None:
    """A person ends a doubt that no machine could settle (docs/moving.md#persons).

    Raises: MigrationError `not_in_doubt`; HeldElsewhereError; StorageError.
    """
    with ports.lock.acquire(capsule):
        write(ports, capsule, Decided(how=how, by=by))
    record = ports.ledger.load(capsule)
    if record is not None and record.state == "RETIRED":
        forget_job(ports, capsule)
    return record


def abort(ports: Ports, capsule: CapsuleId) -> LedgerRecord | None:
    """A move whose mover is gone ends before the point of no return, and so does one that arrives.

    Raises: HeldElsewhereError while the mover lives; SojournError for a record that is damaged.
    """
    with ports.lock.acquire(capsule):
        thaw(ports, capsule)
        record = ports.ledger.load(capsule)
        if record is not None and record.slot is not None:
            _sweep(ports, write(ports, capsule, Expired(move=record.slot.move)))
    return ports.ledger.load(capsule)


def disown(
    ports: Ports, capsule: CapsuleId, *, move: MoveId, epoch: Epoch, found: Epoch
) -> LedgerRecord | None:
    """A person says that a move of which the memory was lost was not activated here.

    `found` is the highest epoch that folders of the capsule name here. What came by the move goes
    (docs/moving.md#persons). Raises: HeldElsewhereError; MigrationError; StorageError.
    """
    with ports.lock.acquire(capsule):
        try:
            record = ports.ledger.recover(capsule)
        except FormatError:
            record = None
        here = replace(here_of(ports, capsule), found=found)
        ready = step(record, Disowned(move=move, epoch=epoch), here)
        if ready.record is not None and ready.record != record:
            ports.ledger.save(ready.record)
        _sweep(ports, ready)
        ports.landing.drop(ports.landing.at(capsule, move))
    return ports.ledger.load(capsule)


def _sweep(ports: Ports, ready: Ready) -> None:
    """Remove what a dropped slot names."""
    for effect in ready.effects:
        if isinstance(effect, Sweep):
            ports.landing.drop(effect.slot.landing)


def _forgot(record: LedgerRecord) -> MigrationError:
    """The error of a doubt that only a person at the target can settle."""
    doubt = record.outgoing
    if doubt is None:
        raise RuntimeError("a doubt without its move")
    token = f"{doubt.move}@{doubt.epoch}"
    return MigrationError(
        f"{doubt.address or doubt.target[:8]} lost its memory of this move",
        code="target_forgot",
        state="Nobody runs the agent until a person says whether it took over there.",
        hint="Look there. If it did not take over:  "
        f"sojourn move abort {record.capsule} --disown {token}",
    )


class _Silent:
    """Nobody watches."""

    def phase(self, phase: Phase) -> None: ...

    def sent(self, size: int) -> None: ...
