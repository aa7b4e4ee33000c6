"""What answers, silence and people change in a move, and what they must not change."""

from typing import Any

import msgspec
import pytest

from core.moving import (
    CAPSULE,
    HELD,
    MOVE,
    OTHER,
    A,
    B,
    C,
    activated,
    asked,
    at,
    begun,
    code,
    doubtful,
    prepared,
    propose,
    receiving,
    retold,
    the_answer,
)
from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration import step
from sojourn.core.migration_fence import MAX_ACTIVATIONS
from sojourn.core.migration_messages import (
    Abort,
    Activate,
    Committed,
    Forward,
    Noted,
    NotPrepared,
    Prepare,
    Prepared,
    Refused,
    Resolve,
    Retired,
    Standing,
    Unknown,
    WasCancelled,
    Who,
)
from sojourn.core.migration_promises import MAX_EPOCH_JUMP
from sojourn.core.migration_records import Activation, Moves, Slot
from sojourn.core.migration_source import MAX_CANCELLED
from sojourn.core.migration_values import (
    Again,
    Answered,
    Booted,
    Cancel,
    Checked,
    Decided,
    Disowned,
    Expired,
    Given,
    Lost,
    Ready,
    Sweep,
    Take,
    Tell,
    Verify,
    Woke,
)
from sojourn.core.tenure import FORCED_STEP, MAX_EPOCH
from sojourn.errors import LimitError, MigrationError
from sojourn.ids import CapsuleId, Epoch, EventId, MoveId


@pytest.mark.parametrize(
    "answer",
    [Refused(code="x", message="x"), Unknown(), NotPrepared(), Noted(), WasCancelled()],
    ids=lambda answer: type(answer).__name__,
)
def test_no_answer_to_activate_but_committed_ends_the_doubt(answer: Any) -> None:
    record, ticket = doubtful()
    message = Activate(capsule=CAPSULE, move=MOVE, ticket=ticket)
    ready = step(record, Answered(message=message, answer=answer, by=B), at(A))
    assert ready.record is record
    assert [type(e.message) for e in ready.effects if isinstance(e, Tell)] == [Resolve]


@pytest.mark.parametrize("change", ["by", "move", "ticket", "capsule"])
def test_an_answer_of_another_machine_or_move_or_ticket_does_not_count(change: str) -> None:
    record, ticket = doubtful()
    message = Resolve(capsule=CAPSULE, move=MOVE, epoch=Epoch(6), ticket=ticket)
    changed: dict[str, Any] = {
        "by": message,
        "move": msgspec.structs.replace(message, move=OTHER),
        "ticket": msgspec.structs.replace(
            message, ticket=msgspec.structs.replace(ticket, nonce="9" * 32)
        ),
        "capsule": msgspec.structs.replace(message, capsule=CapsuleId("f" * 64)),
    }
    by = C if change == "by" else B
    for answer in (Committed(), WasCancelled()):
        given = Answered(message=changed[change], answer=answer, by=by)
        assert step(record, given, at(A)).record is record
        right = step(record, Answered(message=message, answer=answer, by=B), at(A)).record
        assert retold(right).state in ("RETIRED", "HOLDER")


def test_a_promise_of_something_else_cancels() -> None:
    _, ticket = prepared()
    message = Prepare(capsule=CAPSULE, move=MOVE)
    for change in ({"last": EventId("9" * 64)}, {"target": C}, {"epoch": Epoch(7)}):
        wrong = Prepared(ticket=msgspec.structs.replace(ticket, **change))
        after = step(begun().record, Answered(message=message, answer=wrong, by=B), at(A))
        assert retold(after.record).state == "HOLDER"


def test_a_source_takes_a_higher_floor_from_a_refusal_but_not_any() -> None:
    frozen = begun().record
    for floor, wanted in ((40, 40), (6 + MAX_EPOCH_JUMP, 6 + MAX_EPOCH_JUMP), (MAX_EPOCH, 6)):
        refused = Refused(code="stale_epoch", message="x", floor=Epoch(floor))
        after = retold(
            step(frozen, Answered(message=propose(), answer=refused, by=B), at(A)).record
        )
        assert (after.state, after.epoch, after.floor) == ("HOLDER", 5, wanted)


def test_a_cancelled_move_leaves_the_source_as_it_was() -> None:
    after = retold(step(begun().record, Cancel(), at(A)).record)
    assert after == retold(HELD, floor=Epoch(6), moves=after.moves)
    assert step(HELD, Cancel(), at(A)).record is HELD
    assert step(None, Cancel(), at(A)).record is None


def test_silence_about_an_old_move_changes_nothing() -> None:
    frozen = begun().record
    old = Lost(message=propose(5, OTHER))
    assert step(frozen, old, at(A)).record is frozen


def test_only_so_many_cancelled_moves_are_remembered() -> None:
    record: LedgerRecord = HELD
    for number in range(MAX_CANCELLED + 5):
        frozen = begun(record, MoveId(f"{number:032}")).record
        record = retold(step(frozen, Cancel(), at(A)).record)
    known = record.travels
    assert known is not None
    assert len(known.cancelled) == MAX_CANCELLED
    assert len(step(record, Again(), at(A)).effects) == MAX_CANCELLED


def test_the_numbers_of_moves_come_to_an_end_with_a_name() -> None:
    last = retold(HELD, floor=Epoch(MAX_EPOCH))
    with pytest.raises(LimitError) as limit:
        begun(last)
    assert limit.value.code == "epoch_limit"
    record, _ = doubtful()
    with pytest.raises(LimitError) as limit:
        step(retold(record, floor=Epoch(MAX_EPOCH)), Decided(how="resume", by="user"), at(A))
    assert limit.value.code == "epoch_limit"


def test_a_persons_word_ends_a_doubt_as_a_forced_claim() -> None:
    record, _ = doubtful()
    after = retold(step(record, Decided(how="resume", by="user"), at(A)).record)
    assert (after.state, after.epoch, after.floor) == ("HOLDER", *(6 + FORCED_STEP,) * 2)
    assert after.incarnation != record.incarnation
    assert after.claim is not None
    assert (after.claim.forced, after.claim.by) == (True, "user")
    for nothing in (HELD, begun().record, None):
        with pytest.raises(MigrationError) as refused:
            step(nothing, Decided(how="retire", by="user"), at(A))
        assert refused.value.code == "not_in_doubt"


def test_a_copied_record_in_the_middle_of_a_move_is_settled_by_a_person_alone() -> None:
    for record in (begun().record, doubtful()[0]):
        copied = retold(record, state="SUSPECT", reason="ledger_copied")
        others: tuple[Given, ...] = (Woke(), Again(), Cancel(), Booted(), Expired(move=MOVE))
        for given in others:
            assert step(copied, given, at(A)) == Ready(record=copied)
        after = retold(step(copied, Decided(how="retire", by="user"), at(A)).record)
        assert (after.state, after.reason) == ("RETIRED", "")


def test_a_copied_record_promises_and_knows_nothing_but_what_it_committed() -> None:
    record, ticket = prepared()
    copied = retold(record, state="SUSPECT", reason="ledger_copied")
    question = Resolve(capsule=CAPSULE, move=MOVE, epoch=Epoch(6), ticket=ticket)
    ready = step(copied, asked(question), at(B))
    assert (the_answer(ready), ready.record) == (Unknown(), copied)
    abort = Abort(capsule=CAPSULE, move=MOVE, epoch=Epoch(6))
    assert code(step(copied, asked(abort), at(B))) == "suspect"
    assert code(step(copied, Checked(move=MOVE, problems=()), at(B))) == "not_proposed"
    held = retold(activated(), state="SUSPECT", reason="ledger_copied")
    assert the_answer(step(held, asked(question), at(B))) == Committed()


def test_a_move_that_was_activated_here_cannot_be_disowned() -> None:
    for record in (activated(), retold(activated(), state="RETIRED")):
        with pytest.raises(MigrationError) as refused:
            step(record, Disowned(move=MOVE, epoch=Epoch(6)), at(B))
        assert refused.value.code == "activated_here"


def test_disowning_drops_what_was_arriving_by_the_move() -> None:
    ready = step(receiving(), Disowned(move=MOVE, epoch=Epoch(9)), at(B))
    after = retold(ready.record)
    assert (after.slot, after.floor) == (None, 9)
    assert [type(effect) for effect in ready.effects] == [Sweep]


def test_who_asks_is_told_of_activations_and_nothing_prepared_stays() -> None:
    record, _ = prepared()
    ready = step(record, asked(Who(capsule=CAPSULE, move=MOVE, epoch=Epoch(5)), C), at(B))
    assert the_answer(ready) == Standing(activated=Epoch(0), state="NONE", machine=B)
    assert retold(ready.record).slot is None
    for state in ("HOLDER", "RETIRED"):
        held = retold(activated(), state=state)
        ready = step(held, asked(Who(capsule=CAPSULE, move=MOVE, epoch=Epoch(5)), C), at(B))
        assert the_answer(ready).activated == 6
        assert ready.record is held


@pytest.mark.parametrize(("activated_epoch", "state"), [(5, "HOLDER"), (6, "SUSPECT")])
def test_a_holder_that_hears_of_a_higher_epoch_stops(activated_epoch: int, state: str) -> None:
    answer = Standing(activated=Epoch(activated_epoch), state="HOLDER", machine=B)
    message = Who(capsule=CAPSULE, move=MOVE, epoch=Epoch(5))
    after = retold(step(HELD, Answered(message=message, answer=answer, by=B), at(A)).record)
    assert after.state == state


def test_a_holder_that_hears_that_its_cancelled_move_was_committed_stops() -> None:
    """It cannot be, unless a disk was rolled back; then two must not go on."""
    held = step(begun().record, Cancel(), at(A)).record
    message = Abort(capsule=CAPSULE, move=MOVE, epoch=Epoch(6))
    given = Answered(message=message, answer=Committed(), by=B)
    assert retold(step(held, given, at(A)).record).state == "SUSPECT"


def test_messages_are_forwarded_by_the_machine_that_the_capsule_came_from() -> None:
    message = Forward(capsule=CAPSULE, move=MOVE, items=())
    record = activated()
    assert step(record, asked(message), at(B)).effects == (Take(message=message),)
    assert code(step(record, asked(message, C), at(B))) == "not_yours"
    assert code(step(receiving(), asked(message), at(B))) == "not_yours"


def test_very_many_activations_are_forgotten_once_their_sources_know() -> None:
    many = tuple(
        Activation(move=MoveId(f"{number:032}"), epoch=Epoch(number + 1), source=A)
        for number in range(MAX_ACTIVATIONS + 1)
    )
    record = retold(HELD, moves=Moves(life="l" * 32, activations=many))
    message = Retired(capsule=CAPSULE, move=many[7].move)
    after = retold(step(record, asked(message), at(B)).record)
    assert after.travels is not None
    assert after.travels.activations == (*many[:7], *many[8:])
    assert step(record, asked(message, C), at(B)).record == record
    few = retold(HELD, moves=Moves(life="l" * 32, activations=many[1:]))
    assert step(few, asked(message), at(B)).record is few


def test_what_arrives_may_be_dropped_at_any_time_and_only_that() -> None:
    record, _ = prepared()
    assert step(record, Expired(move=OTHER), at(B)).record is record
    ready = step(record, Expired(move=MOVE), at(B))
    slot = record.slot
    assert isinstance(slot, Slot)
    assert ready.effects == (Sweep(slot=slot),)
    assert retold(ready.record).slot is None


def test_a_record_that_does_not_change_is_the_very_same() -> None:
    record, ticket = prepared()
    held = activated()
    again = Activate(capsule=CAPSULE, move=MOVE, ticket=ticket)
    question = Resolve(capsule=CAPSULE, move=MOVE, epoch=Epoch(6), ticket=ticket)
    abort = Abort(capsule=CAPSULE, move=MOVE, epoch=Epoch(6))
    for message in (again, question, abort):
        ready = step(held, asked(message), at(B, boot="next"))
        assert (ready.record, the_answer(ready)) == (held, Committed())
        assert ready.record is held
    assert isinstance(
        step(receiving(), asked(Prepare(capsule=CAPSULE, move=MOVE)), at(B)).effects[0], Verify
    )
    assert step(record, Woke(), at(B)).record is record
