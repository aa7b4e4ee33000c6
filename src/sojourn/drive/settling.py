"""Brings earlier moves of a capsule to their end: asks, tells and forwards what is still open.

docs/moving.md#settling. It may be done at any time, by any process, and as often as one likes.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_values import Again, Decided
from sojourn.drive.crossing import Crossing, Phase, forget_job, write
from sojourn.drive.forwarding import forward
from sojourn.drive.machine import Ports
from sojourn.drive.opening import thaw
from sojourn.ids import CapsuleId, MachineId
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
    for told in moves.cancelled:
        found.append(Pending(what="tells", to=told.target, address=told.address))
    went = moves.went
    if record.state == "RETIRED" and went is not None and ports.inbox.items(record.capsule):
        found.append(Pending(what="forwards", to=went.target, address=went.address))
    return tuple(dict.fromkeys(found))


async def settle(ports: Ports, peer: Peer, capsule: CapsuleId, folder: str) -> LedgerRecord | None:
    """Do what is pending with the machine of `peer`; the record as it is then.

    Raises: HeldElsewhereError while another process has the capsule; StorageError.
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
    """A move whose mover is gone ends, before the point of no return.

    Raises: HeldElsewhereError while the mover lives; SojournError for a record that is damaged.
    """
    with ports.lock.acquire(capsule):
        thaw(ports, capsule)
    return ports.ledger.load(capsule)


class _Silent:
    """Nobody watches."""

    def phase(self, phase: Phase) -> None: ...

    def sent(self, size: int) -> None: ...
