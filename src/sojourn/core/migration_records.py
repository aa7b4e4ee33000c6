"""What a machine writes down of moves: parts of its ledger record of one capsule.

docs/moving.md is the specification. Each change of them is one atomic write of the record.
"""

import msgspec

from sojourn.format.parts import Count, Digest
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
    that holds what has arrived so far. None of them is authority. `log` is the timeline's length in
    bytes, `left_out` are paths whose contents did not come, `label` is the offer's.
    """

    move: MoveId
    epoch: Epoch
    source: MachineId
    landing: str
    folder: str
    workspace: str
    root: Digest
    last: EventId
    log: Count = 0
    label: str = ""
    left_out: tuple[str, ...] = ()
    ticket: Ticket | None = None


class Arriving(msgspec.Struct, frozen=True, kw_only=True):
    """What the `activated` event says that the next opening appends, unless it is in the log.

    `goes_on` is the last event of the source.
    """

    move: MoveId
    epoch: Epoch
    source: MachineId
    goes_on: EventId
    label: str = ""
    left_out: tuple[str, ...] = ()


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """A move that this machine committed; kept, since its source may ask much later."""

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
    promises: a target that lost it never says that a move did not happen (docs/moving.md#life).
    `arrived` is set from the activation until its event is in the log. `disowned` are moves of
    which a person said, after a loss of memory, that they were not activated here.
    """

    life: str
    outgoing: Outgoing | None = None
    slot: Slot | None = None
    activations: tuple[Activation, ...] = ()
    cancelled: tuple[Cancelled, ...] = ()
    went: Tombstone | None = None
    arrived: Arriving | None = None
    disowned: tuple[MoveId, ...] = ()
