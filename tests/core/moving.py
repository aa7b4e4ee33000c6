"""Records and messages of one move from A to B, for the tests of its machine."""

from typing import Any

import msgspec

from sojourn.core.ledger_record import LedgerRecord, first_record
from sojourn.core.migration import step
from sojourn.core.migration_messages import (
    Activate,
    Message,
    Offer,
    Prepare,
    Prepared,
    Problem,
    Propose,
    Refused,
)
from sojourn.core.migration_records import Ticket
from sojourn.core.migration_values import (
    Answered,
    Asked,
    Begin,
    Checked,
    Here,
    Ready,
    Reply,
)
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId, Incarnation, MachineId, MoveId

CAPSULE = CapsuleId("c" * 64)
A, B, C = (MachineId(letter * 64) for letter in "abc")
MOVE, OTHER = MoveId("1" * 32), MoveId("2" * 32)
OFFER = Offer(
    root=BlobId("d" * 64),
    last=EventId("e" * 64),
    name="box",
    files=3,
    size=1000,
    log=700,
    label="attic",
    final=True,
)
HELD = first_record(
    capsule=CAPSULE,
    incarnation=Incarnation("0" * 32),
    folder="/c",
    workspace="/w",
    epoch=Epoch(5),
)
GREEN, RED = (Problem(what="room", ok=ok) for ok in (True, False))


def at(machine: MachineId, *, boot: str = "boot", found: int = 0, fresh: str = "x") -> Here:
    return Here(machine=machine, capsule=CAPSULE, boot=boot, fresh=fresh, found=Epoch(found))


def asked(message: Message, sender: MachineId = A) -> Asked:
    return Asked(message=message, sender=sender, landing="/landing", folder="/f", workspace="/work")


def propose(epoch: int = 6, move: MoveId = MOVE, **changes: Any) -> Propose:
    offer = msgspec.structs.replace(OFFER, **changes)
    return Propose(capsule=CAPSULE, move=move, epoch=Epoch(epoch), offer=offer)


def begun(record: LedgerRecord = HELD, move: MoveId = MOVE) -> Ready:
    return step(record, Begin(move=move, target=B, address="b", offer=OFFER), at(A))


def receiving(record: LedgerRecord | None = None) -> LedgerRecord:
    after = step(record, asked(propose()), at(B)).record
    assert after is not None
    return after


def prepared() -> tuple[LedgerRecord, Ticket]:
    ready = step(receiving(), Checked(move=MOVE, problems=(GREEN,)), at(B))
    assert ready.record is not None
    answer = the_answer(ready)
    assert isinstance(answer, Prepared)
    return ready.record, answer.ticket


def doubtful() -> tuple[LedgerRecord, Ticket]:
    _, ticket = prepared()
    given = Answered(
        message=Prepare(capsule=CAPSULE, move=MOVE), answer=Prepared(ticket=ticket), by=B
    )
    after = step(begun().record, given, at(A)).record
    assert after is not None
    assert after.state == "IN_DOUBT"
    return after, ticket


def activated() -> LedgerRecord:
    record, ticket = prepared()
    message = Activate(capsule=CAPSULE, move=MOVE, ticket=ticket)
    after = step(record, asked(message), at(B)).record
    assert after is not None
    assert after.state == "HOLDER"
    return after


def the_answer(ready: Ready) -> Any:
    [reply] = [effect for effect in ready.effects if isinstance(effect, Reply)]
    return reply.answer


def code(ready: Ready) -> str:
    answer = the_answer(ready)
    assert isinstance(answer, Refused)
    return answer.code


def retold(record: LedgerRecord | None, **changes: Any) -> LedgerRecord:
    assert record is not None
    return msgspec.structs.replace(record, **changes)
