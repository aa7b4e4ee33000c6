"""A move as the machine that has the capsule sees it (docs/moving.md#source).

Before the point of no return every failure cancels. The point is IN_DOUBT, durable before the first
byte of `activate`; from then on only the target's word, or a person's, ends the move.
"""

from typing import Final

import msgspec

from sojourn.core.ledger_record import LedgerRecord, PendingClaim
from sojourn.core.migration_messages import (
    Abort,
    Activate,
    Committed,
    Noted,
    Prepare,
    Prepared,
    Propose,
    Refused,
    Resolve,
    Retired,
    Standing,
    Wanted,
    WasCancelled,
    Who,
)
from sojourn.core.migration_promises import MAX_EPOCH_JUMP, derived, moves_of
from sojourn.core.migration_records import Cancelled, Moves, Outgoing, Ticket, Tombstone
from sojourn.core.migration_values import (
    Answered,
    Begin,
    Decided,
    Effect,
    Gone,
    GoOn,
    Here,
    Lost,
    Ready,
    Send,
    Tell,
)
from sojourn.core.tenure import FORCED_STEP, MAX_EPOCH
from sojourn.errors import LimitError, MigrationError
from sojourn.ids import Epoch, Incarnation

MAX_CANCELLED: Final = 32
"""Cancelled moves whose targets are still told; more are forgotten, which costs a target room."""


def begin(record: LedgerRecord | None, given: Begin, here: Here) -> Ready:
    """HOLDER becomes FROZEN at a fresh epoch, and the offer goes out.

    Raises: MigrationError for a capsule that is not held here, or moves already; LimitError.
    """
    if record is None or record.state != "HOLDER":
        raise _cannot_begin(record)
    if given.target == here.machine:
        raise MigrationError(
            "the capsule is on that machine already",
            code="same_machine",
            state="Nothing was changed; the agent goes on here.",
            hint="Name another machine.",
        )
    epoch = Epoch(record.floor + 1)
    if epoch > MAX_EPOCH:
        raise LimitError(
            f"epoch {record.floor} has none above it",
            code="epoch_limit",
            state="Nothing was changed; the agent goes on here.",
            hint="Nobody raises an epoch that far: the log was made to mislead. Fork it instead.",
        )
    outgoing = Outgoing(
        move=given.move,
        epoch=epoch,
        target=given.target,
        address=given.address,
        root=given.offer.root,
        last=given.offer.last,
    )
    moves = msgspec.structs.replace(moves_of(record, here), outgoing=outgoing, slot=None)
    frozen = msgspec.structs.replace(record, state="FROZEN", floor=epoch, moves=moves)
    propose = Propose(capsule=record.capsule, move=given.move, epoch=epoch, offer=given.offer)
    return Ready(
        record=frozen, effects=(Tell(message=propose, to=given.target, address=given.address),)
    )


def answered(record: LedgerRecord | None, given: Answered, here: Here) -> Ready:
    """What an answer changes; one that is of another machine or another move changes nothing."""
    if record is None:
        return Ready(record=record)
    if isinstance(given.message, Abort):
        return _abort_answered(record, given)
    if isinstance(given.message, Who):
        return _standing(record, given)
    outgoing = record.outgoing
    if (
        outgoing is None
        or given.message.capsule != record.capsule
        or given.message.move != outgoing.move
        or given.by != outgoing.target
    ):
        return Ready(record=record)
    if record.state == "FROZEN":
        return _before_doubt(record, outgoing, given, here)
    if record.state == "IN_DOUBT" and outgoing.ticket is not None:
        return _in_doubt(record, outgoing, outgoing.ticket, given)
    return Ready(record=record)


def lost(record: LedgerRecord | None, given: Lost) -> Ready:
    """No answer: before the point of no return it cancels, after it the fencing question is put."""
    outgoing = None if record is None else record.outgoing
    if record is None or outgoing is None or given.message.move != outgoing.move:
        return Ready(record=record)
    if record.state == "FROZEN":
        return cancel(record)
    if record.state == "IN_DOUBT" and isinstance(given.message, Activate):
        return Ready(record=record, effects=_questions(record))
    return Ready(record=record)


def cancel(record: LedgerRecord | None, *, floor: int = 0) -> Ready:
    """FROZEN becomes HOLDER at the old epoch; the target is told when it can be.

    Nothing where nothing moves. Raises: MigrationError `in_doubt` after the point of no return.
    """
    if record is None or record.outgoing is None:
        return Ready(record=record)
    outgoing = record.outgoing
    if record.state == "IN_DOUBT":
        raise MigrationError(
            "the move is past the point of no return",
            code="in_doubt",
            state="The capsule is frozen here until the other machine says whether it has it.",
            hint="It settles itself once that machine answers; `sojourn move status` shows it.",
        )
    if record.state != "FROZEN":
        return Ready(record=record)
    known = floor if floor <= record.floor + MAX_EPOCH_JUMP else 0
    held = msgspec.structs.replace(
        record,
        state="HOLDER",
        floor=Epoch(max(record.floor, known)),
        moves=_with_cancelled(record, outgoing),
    )
    return Ready(record=held, effects=(GoOn(), _abort(held, outgoing)))


def woke(record: LedgerRecord | None) -> Ready:
    """A frozen move whose mover died is cancelled, never gone on with; a doubt is asked about."""
    if record is not None and record.state == "FROZEN":
        return cancel(record)
    return again(record)


def again(record: LedgerRecord | None) -> Ready:
    """Ask again what is in doubt, and tell again what was cancelled."""
    if record is None:
        return Ready(record=record)
    moves = record.travels
    told = () if moves is None else tuple(_abort(record, one) for one in moves.cancelled)
    return Ready(record=record, effects=(*_questions(record), *told))


def decided(record: LedgerRecord | None, given: Decided, here: Here) -> Ready:
    """A person ends a doubt: this machine goes on at a far higher epoch, or is retired.

    A copied record that was in the middle of a move is in doubt, too.

    Raises: MigrationError `not_in_doubt` when there is none; LimitError `epoch_limit`.
    """
    outgoing = None if record is None else record.outgoing
    doubtful = record is not None and (record.state == "IN_DOUBT" or record.copied)
    if record is None or outgoing is None or not doubtful:
        raise MigrationError(
            "no move of this capsule is in doubt here",
            code="not_in_doubt",
            state="Nothing was changed.",
            hint="`sojourn move status` shows what is under way.",
        )
    if given.how == "retire":
        return _retire(record, outgoing)
    epoch = Epoch(record.floor + FORCED_STEP)
    if epoch > MAX_EPOCH:
        raise LimitError("no epoch is left to go on at", code="epoch_limit")
    claim = PendingClaim(
        how="claim", by=given.by, forced=True, reason=f"move {outgoing.move} was in doubt"
    )
    held = msgspec.structs.replace(
        record,
        state="HOLDER",
        incarnation=Incarnation(derived(here, "incarnation")),
        epoch=epoch,
        floor=epoch,
        reason="",
        claim=claim,
        moves=_with_cancelled(record, outgoing),
    )
    return Ready(record=held, effects=(GoOn(), _abort(held, outgoing)))


def _before_doubt(record: LedgerRecord, outgoing: Outgoing, given: Answered, here: Here) -> Ready:
    message, answer = given.message, given.answer
    to, address = outgoing.target, outgoing.address
    if isinstance(message, Propose) and isinstance(answer, Wanted):
        prepare = Prepare(capsule=record.capsule, move=outgoing.move)
        send = Send(wanted=answer, to=to, address=address, message=message)
        return Ready(record=record, effects=(send, Tell(message=prepare, to=to, address=address)))
    if isinstance(message, Prepare) and isinstance(answer, Prepared):
        if not _fits(answer.ticket, outgoing, here):
            return cancel(record)
        return _doubt(record, outgoing, answer.ticket)
    return cancel(record, floor=answer.floor if isinstance(answer, Refused) else 0)


def _fits(ticket: Ticket, outgoing: Outgoing, here: Here) -> bool:
    """Whether the promise is about this very move."""
    return (
        ticket.move == outgoing.move
        and ticket.epoch == outgoing.epoch
        and ticket.source == here.machine
        and ticket.target == outgoing.target
        and ticket.root == outgoing.root
        and ticket.last == outgoing.last
    )


def _doubt(record: LedgerRecord, outgoing: Outgoing, ticket: Ticket) -> Ready:
    """The point of no return."""
    doubtful = msgspec.structs.replace(outgoing, ticket=ticket)
    moves = msgspec.structs.replace(_moves(record), outgoing=doubtful)
    after = msgspec.structs.replace(record, state="IN_DOUBT", moves=moves)
    activate = Activate(capsule=record.capsule, move=outgoing.move, ticket=ticket)
    tell = Tell(message=activate, to=outgoing.target, address=outgoing.address)
    return Ready(record=after, effects=(tell,))


def _in_doubt(record: LedgerRecord, outgoing: Outgoing, ticket: Ticket, given: Answered) -> Ready:
    message, answer = given.message, given.answer
    if not isinstance(message, Activate | Resolve) or message.ticket != ticket:
        return Ready(record=record)
    if isinstance(answer, Committed):
        return _retire(record, outgoing)
    if isinstance(message, Activate):
        return Ready(record=record, effects=_questions(record))
    if isinstance(answer, WasCancelled):
        moves = msgspec.structs.replace(_moves(record), outgoing=None)
        held = msgspec.structs.replace(record, state="HOLDER", moves=moves)
        return Ready(record=held, effects=(GoOn(),))
    return Ready(record=record)


def _retire(record: LedgerRecord, outgoing: Outgoing) -> Ready:
    went = Tombstone(
        move=outgoing.move,
        epoch=outgoing.epoch,
        target=outgoing.target,
        address=outgoing.address,
    )
    moves = msgspec.structs.replace(_moves(record), outgoing=None, went=went)
    after = msgspec.structs.replace(record, state="RETIRED", reason="", moves=moves)
    retired = Retired(capsule=record.capsule, move=outgoing.move)
    tell = Tell(message=retired, to=outgoing.target, address=outgoing.address)
    return Ready(record=after, effects=(tell, Gone(tombstone=went)))


def _questions(record: LedgerRecord) -> tuple[Effect, ...]:
    """The fencing question, when there is a doubt."""
    outgoing = record.outgoing
    if record.state != "IN_DOUBT" or outgoing is None or outgoing.ticket is None:
        return ()
    resolve = Resolve(
        capsule=record.capsule, move=outgoing.move, epoch=outgoing.epoch, ticket=outgoing.ticket
    )
    return (Tell(message=resolve, to=outgoing.target, address=outgoing.address),)


def _abort_answered(record: LedgerRecord, given: Answered) -> Ready:
    """A cancelled move whose target was told is forgotten."""
    moves = record.travels
    cancelled = () if moves is None else moves.cancelled
    told = next((one for one in cancelled if one.move == given.message.move), None)
    if moves is None or told is None or given.by != told.target:
        return Ready(record=record)
    if not isinstance(given.answer, Noted | Committed):
        return Ready(record=record)
    left = tuple(one for one in moves.cancelled if one != told)
    after = msgspec.structs.replace(record, moves=msgspec.structs.replace(moves, cancelled=left))
    if isinstance(given.answer, Committed):
        return _outrun(after, told.epoch)
    return Ready(record=after)


def _standing(record: LedgerRecord, given: Answered) -> Ready:
    if isinstance(given.answer, Standing):
        return _outrun(record, given.answer.activated)
    return Ready(record=record)


def _outrun(record: LedgerRecord, activated: Epoch) -> Ready:
    """A holder that hears of a higher epoch which was activated stops."""
    if record.state != "HOLDER" or activated <= record.epoch:
        return Ready(record=record)
    floor = Epoch(max(record.floor, activated))
    stopped = msgspec.structs.replace(record, state="SUSPECT", reason="newer_epoch", floor=floor)
    return Ready(record=stopped)


def _with_cancelled(record: LedgerRecord, outgoing: Outgoing) -> Moves:
    moves = _moves(record)
    entry = Cancelled(
        move=outgoing.move,
        epoch=outgoing.epoch,
        target=outgoing.target,
        address=outgoing.address,
    )
    cancelled = (*moves.cancelled, entry)[-MAX_CANCELLED:]
    return msgspec.structs.replace(moves, outgoing=None, cancelled=cancelled)


def _abort(record: LedgerRecord, move: Outgoing | Cancelled) -> Tell:
    abort = Abort(capsule=record.capsule, move=move.move, epoch=move.epoch)
    return Tell(message=abort, to=move.target, address=move.address)


def _moves(record: LedgerRecord) -> Moves:
    """What a record that takes part in a move always has."""
    known = record.travels
    if known is None:
        raise ValueError("a record of a move without its moves")
    return known


def _cannot_begin(record: LedgerRecord | None) -> MigrationError:
    state = None if record is None else record.state
    if state == "FROZEN" or state == "IN_DOUBT":
        return MigrationError(
            "the capsule is being moved already",
            code="moving_already",
            state="That move goes on; nothing was changed.",
            hint="`sojourn move status` shows it.",
        )
    return MigrationError(
        "this machine does not hold the capsule, so it cannot move it",
        code="not_held_here",
        state="Nothing was changed.",
        hint="Move it from the machine that holds it; `sojourn status` says what is known here.",
    )
