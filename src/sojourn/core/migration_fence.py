"""What a target says of moves that are over, and how it makes one impossible.

docs/moving.md#fence is the specification.
"""

from typing import Final

import msgspec

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_messages import (
    Abort,
    Answer,
    Committed,
    Noted,
    Resolve,
    Standing,
    Unknown,
    WasCancelled,
    Who,
)
from sojourn.core.migration_promises import (
    MAX_EPOCH_JUMP,
    dropped_slot,
    is_activated,
    may_arrive,
    moves_of,
    promised,
    refused,
    replied,
    with_moves,
)
from sojourn.core.migration_records import Moves
from sojourn.core.migration_values import Asked, Disowned, Here, Ready, Reply, Sweep
from sojourn.errors import MigrationError
from sojourn.ids import Epoch, MoveId

MAX_ACTIVATIONS: Final = 1000
"""Moves that are remembered although their sources know how they ended."""


def disowned(record: LedgerRecord | None, given: Disowned, here: Here) -> Ready:
    """A person's word for a memory that was lost: the move was not activated here, and never is.

    Raises: MigrationError `activated_here` when the record says that it was, or holds the capsule;
    `epoch_jump` for an epoch that no such move can have had.
    """
    moves = moves_of(record, here)
    if is_activated(moves, given.move) or (record is not None and not may_arrive(record)):
        raise MigrationError(
            "this machine has the capsule, or had it by this very move",
            code="activated_here",
            state="Nothing was changed.",
            hint="`sojourn status` says what is known here.",
        )
    floor = here.found if record is None else record.floor
    if given.epoch > floor + MAX_EPOCH_JUMP:
        raise MigrationError(
            f"epoch {given.epoch} is far above {floor}, the highest that is known here",
            code="epoch_jump",
            state="Nothing was changed.",
            hint="Give the move's epoch as the other machine says it.",
        )
    slot = moves.slot if moves.slot is not None and moves.slot.move == given.move else None
    after = promised(record, given.epoch, here)
    known = moves_of(after, here)
    if given.move not in known.disowned:
        known = msgspec.structs.replace(known, disowned=(*known.disowned, given.move))
    if slot is not None:
        known = msgspec.structs.replace(known, slot=None)
    effects = () if slot is None else (Sweep(slot=slot),)
    return Ready(record=with_moves(after, known), effects=effects)


def resolve(record: LedgerRecord | None, given: Asked, message: Resolve, here: Here) -> Ready:
    """The fencing question: from what was committed, never from what the machine is now."""
    ticket = message.ticket
    if given.sender != ticket.source or here.machine != ticket.target:
        return refused(record, "not_yours", "this move is of other machines")
    if ticket.move != message.move or ticket.epoch != message.epoch:
        return refused(record, "other_offer", "the ticket is of another move")
    moves = moves_of(record, here)
    if is_activated(moves, message.move):
        return replied(record, Committed())
    if moves.life != ticket.life or record is None or record.copied:
        return replied(record, _by_other_life(record, moves, message))
    return _fenced(record, message.move, message.epoch, WasCancelled(), here)


def _by_other_life(record: LedgerRecord | None, moves: Moves, message: Resolve) -> Answer:
    """What can be said of a promise that this memory does not hold."""
    if record is None or record.copied:
        return Unknown()
    if message.move in moves.disowned:
        return WasCancelled()
    if record.state not in ("NONE", "SUSPECT") and record.epoch >= message.epoch:
        # Held here since, at no lower epoch: the source must never go on, whatever became of this.
        return Committed()
    return Unknown()


def abort(record: LedgerRecord | None, given: Asked, message: Abort, here: Here) -> Ready:
    """The source gave the move up; what came of it goes, and it is never activated."""
    moves = moves_of(record, here)
    if is_activated(moves, message.move):
        return replied(record, Committed())
    slot = moves.slot
    if slot is not None and slot.move == message.move and slot.source != given.sender:
        return refused(record, "not_yours", "this move is of another machine")
    if record is not None and record.copied:
        return refused(record, "suspect", "this machine's record of the capsule is a copy")
    floor = here.found if record is None else record.floor
    if message.epoch > floor + MAX_EPOCH_JUMP:
        return refused(record, "epoch_jump", f"epoch {message.epoch} is far above {floor}")
    return _fenced(record, message.move, message.epoch, Noted(), here)


def _fenced(
    record: LedgerRecord | None, move: MoveId, epoch: Epoch, answer: Answer, here: Here
) -> Ready:
    """Make it impossible for ever that this move is activated, then say so."""
    after = promised(record, epoch, here)
    slot = after.slot
    if slot is None or slot.move != move:
        return Ready(record=after, effects=(Reply(answer=answer),))
    dropped = dropped_slot(after, slot)
    return Ready(record=dropped, effects=(Sweep(slot=slot), Reply(answer=answer)))


def retired(record: LedgerRecord | None, given: Asked) -> Ready:
    """The source knows; its activation may be forgotten once there are very many."""
    known = None if record is None else record.travels
    if record is None or known is None or len(known.activations) <= MAX_ACTIVATIONS:
        return replied(record, Noted())
    kept = tuple(
        one
        for one in known.activations
        if one.move != given.message.move or one.source != given.sender
    )
    after = with_moves(record, msgspec.structs.replace(known, activations=kept))
    return replied(after, Noted())


def who(record: LedgerRecord | None, message: Who, here: Here) -> Ready:
    """Whoever asks may begin to run, so what is prepared here must not be activated under him."""
    moves = moves_of(record, here)
    held = record is not None and record.state not in ("NONE", "SUSPECT")
    highest = [one.epoch for one in moves.activations]
    if record is not None and held:
        highest.append(record.epoch)
    standing = Standing(
        activated=max(highest, default=Epoch(0)),
        state="NONE" if record is None else record.state,
        machine=here.machine,
    )
    slot = moves.slot
    if record is None or slot is None or record.copied:
        return replied(record, standing)
    epoch = message.epoch if message.epoch <= record.floor + MAX_EPOCH_JUMP else record.floor
    dropped = dropped_slot(promised(record, epoch, here), slot)
    return Ready(record=dropped, effects=(Sweep(slot=slot), Reply(answer=standing)))
