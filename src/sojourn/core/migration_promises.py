"""What both sides of a move read from a record, and how a promise gets into it.

docs/moving.md#records says what the parts are for.
"""

from hashlib import sha256
from typing import Final

import msgspec

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_messages import Answer, Refused
from sojourn.core.migration_records import Moves, Slot
from sojourn.core.migration_values import Here, Ready, Reply
from sojourn.ids import Epoch, Incarnation, MoveId

MAX_EPOCH_JUMP: Final = 1 << 20
"""How far above what is known here an epoch may be, so that nobody makes the numbers run out."""


def derived(here: Here, what: str) -> str:
    """32 hex digits of this step's randomness, others for each `what`."""
    return sha256(f"sojourn.move/1 {what} {here.fresh}".encode()).hexdigest()[:32]


def moves_of(record: LedgerRecord | None, here: Here) -> Moves:
    """What the record says of moves; a new life where it says nothing."""
    known = None if record is None else record.travels
    return Moves(life=derived(here, "life")) if known is None else known


def may_arrive(record: LedgerRecord) -> bool:
    """Whether a move of the capsule to this machine may begin, or become an activation."""
    return record.state in ("NONE", "RETIRED")


def is_activated(moves: Moves, move: MoveId) -> bool:
    """Whether this machine committed the move, whatever became of the capsule since."""
    return any(one.move == move for one in moves.activations)


def promised(record: LedgerRecord | None, epoch: Epoch, here: Here) -> LedgerRecord:
    """The record with a floor of at least `epoch`; the very same when it has that."""
    if record is None:
        record = LedgerRecord(
            capsule=here.capsule,
            incarnation=Incarnation(derived(here, "incarnation")),
            state="NONE",
            epoch=Epoch(0),
            floor=here.found,
            folder="",
            workspace="",
        )
    floor = Epoch(max(record.floor, epoch))
    return record if floor == record.floor else msgspec.structs.replace(record, floor=floor)


def with_moves(record: LedgerRecord, moves: Moves) -> LedgerRecord:
    """The record with these moves; the very same when they are its own."""
    return record if record.travels == moves else msgspec.structs.replace(record, moves=moves)


def dropped_slot(record: LedgerRecord, slot: Slot) -> LedgerRecord:
    """The record without the slot; what it promised can then never be activated."""
    known = record.travels
    if known is None or known.slot != slot:
        return record
    return with_moves(record, msgspec.structs.replace(known, slot=None))


def replied(record: LedgerRecord | None, answer: Answer) -> Ready:
    """This record, and this answer alone."""
    return Ready(record=record, effects=(Reply(answer=answer),))


def refused(record: LedgerRecord | None, code: str, message: str) -> Ready:
    """No, and nothing is written."""
    return replied(record, Refused(code=code, message=message))
