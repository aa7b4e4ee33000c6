"""What a machine writes down of moves: parts of its ledger record of one capsule.

docs/protocol.md#moving is the specification. Each change of them is one atomic write of the record.
"""

import msgspec

from sojourn.format.parts import Digest
from sojourn.ids import Epoch, EventId, MachineId, MoveId


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """A target's promise to activate one move, bound to one life and one start of that target.

    `life` is that of the target's record, `boot` the nonce of its daemon's start; `root` the sha256
    of the sealed manifest and `last` the last event of the log that was prepared.
    """

    move: MoveId
    epoch: Epoch
    source: MachineId
    target: MachineId
    life: str
    boot: str
    root: Digest
    last: EventId
    nonce: str


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A move that this machine began: while FROZEN without a ticket, while IN_DOUBT with one.

    `address` is where `target` was reached. `folder` and `workspace` stay those of the record.
    """

    move: MoveId
    epoch: Epoch
    target: MachineId
    address: str
    root: Digest
    last: EventId
    ticket: Ticket | None = None


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A move that is arriving here; nothing is promised until there is a ticket.

    `folder` and `workspace` are where capsule and workspace will be live; `landing` is the folder
    that holds what has arrived so far. None of them is authority.
    """

    move: MoveId
    epoch: Epoch
    source: MachineId
    landing: str
    folder: str
    workspace: str
    root: Digest
    last: EventId
    ticket: Ticket | None = None


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """A move that this machine committed; kept for ever, since its source may ask much later."""

    move: MoveId
    epoch: Epoch
    source: MachineId


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """A move that this machine cancelled as its source, and whose target is still to be told."""

    move: MoveId
    epoch: Epoch
    target: MachineId
    address: str


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """Where the capsule went from here."""

    move: MoveId
    epoch: Epoch
    target: MachineId
    address: str


class Moves(msgspec.Struct, frozen=True, kw_only=True):
    """All of it; absent from a record of a capsule that never moved.

    `life` is a random value made with the record's file, so that it is lost together with the
    promises: a target that lost it never says that a move did not happen (docs/protocol.md#life).
    """

    life: str
    outgoing: Outgoing | None = None
    slot: Slot | None = None
    activations: tuple[Activation, ...] = ()
    cancelled: tuple[Cancelled, ...] = ()
    went: Tombstone | None = None
