"""What the machine of a move does beyond what the model visits: bounds, strangers, contents."""

from typing import Any

import msgspec
import pytest

from sojourn.core.ledger_record import LedgerRecord, LedgerTip, first_record
from sojourn.core.migration import step
from sojourn.core.migration_fence import MAX_ACTIVATIONS
from sojourn.core.migration_messages import (
    Abort,
    Activate,
    Check,
    Committed,
    Forward,
    Message,
    Noted,
    NotPrepared,
    Offer,
    Prepare,
    Prepared,
    Problem,
    Propose,
    Refused,
    Resolve,
    Retired,
    Standing,
    Unknown,
    WasCancelled,
    Who,
)
from sojourn.core.migration_promises import MAX_EPOCH_JUMP
from sojourn.core.migration_records import Activation, Moves, Slot, Ticket
from sojourn.core.migration_source import MAX_CANCELLED
from sojourn.core.migration_target import refusal_of_contents
from sojourn.core.migration_values import (
    Again,
    Answered,
    Asked,
    Begin,
    Booted,
    Cancel,
    Checked,
    Decided,
    Disowned,
    Expired,
    Given,
    Here,
    Lost,
    Open,
    Ready,
    Reply,
    Sweep,
    Take,
    Tell,
    Verify,
    Want,
    Woke,
)
from sojourn.core.tenure import FORCED_STEP, MAX_EPOCH
from sojourn.errors import LimitError, MigrationError
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


def test_a_target_that_holds_nothing_makes_a_record_of_what_it_promises() -> None:
    record = receiving()
    assert (record.state, record.epoch, record.floor, record.folder) == ("NONE", 0, 6, "")
    slot = record.slot
    assert slot is not None
    assert (slot.landing, slot.folder, slot.workspace) == ("/landing", "/f", "/work")
    assert (slot.source, slot.root, slot.log, slot.label) == (A, OFFER.root, 700, "attic")


def test_an_activation_is_a_new_chain_at_the_log_that_was_verified() -> None:
    record = activated()
    assert (record.epoch, record.floor) == (6, 6)
    assert (record.folder, record.workspace) == ("/f", "/work")
    assert record.incarnation != HELD.incarnation
    assert record.tip == LedgerTip(length=700, last=OFFER.last)
    arrived = record.travels and record.travels.arrived
    assert arrived is not None
    assert (arrived.goes_on, arrived.label, arrived.source) == (OFFER.last, "attic", A)


def test_where_things_really_are_and_what_was_left_out_is_known_with_the_promise() -> None:
    given = Checked(
        move=MOVE, problems=(GREEN,), left_out=("big",), folder="/f-2", workspace="/work-2"
    )
    slot = retold(step(receiving(), given, at(B)).record).slot
    assert slot is not None
    assert (slot.folder, slot.workspace, slot.left_out) == ("/f-2", "/work-2", ("big",))


def test_an_activation_whose_opening_died_is_opened_by_the_next_start() -> None:
    assert step(activated(), Booted(), at(B)).effects == (Open(move=MOVE),)
    assert step(HELD, Booted(), at(A)).effects == ()


def test_checking_changes_no_record() -> None:
    message = Check(capsule=CAPSULE, move=MOVE, offer=msgspec.structs.replace(OFFER, final=False))
    for record in (None, receiving()):
        ready = step(record, asked(message), at(B))
        assert ready.record is record
        assert ready.effects == (Want(message=message),)
    assert code(step(HELD, asked(message), at(B))) == "holder"


@pytest.mark.parametrize(
    ("message", "record", "found", "wanted"),
    [
        (propose(5), None, 5, "stale_epoch"),
        (propose(6), None, 5, ""),
        (propose(6), HELD, 0, "holder"),
        (propose(5 + MAX_EPOCH_JUMP), None, 5, ""),
        (propose(6 + MAX_EPOCH_JUMP), None, 5, "epoch_jump"),
        (propose(final=False), None, 0, "not_frozen"),
        (propose(6, OTHER), receiving(), 0, "stale_epoch"),
        (propose(7, OTHER), receiving(), 0, ""),
        (propose(6, root=BlobId("f" * 64)), receiving(), 0, "other_offer"),
        (propose(6), prepared()[0], 0, "sealed"),
        (propose(6), retold(HELD, state="SUSPECT"), 0, "suspect"),
    ],
)
def test_a_proposal_is_taken_only_above_the_floor_and_where_nothing_is_held(
    message: Propose, record: LedgerRecord | None, found: int, wanted: str
) -> None:
    ready = step(record, asked(message), at(B, found=found))
    if wanted:
        assert code(ready) == wanted
        assert ready.record is record
    else:
        assert ready.effects[-1] == Want(message=message)


def test_a_machine_does_not_propose_to_itself() -> None:
    assert code(step(None, asked(propose(), B), at(B))) == "not_frozen"
    with pytest.raises(MigrationError) as refused:
        step(HELD, Begin(move=MOVE, target=A, address="", offer=OFFER), at(A))
    assert refused.value.code == "same_machine"


def test_a_second_source_finds_the_slot_taken() -> None:
    record = receiving()
    assert code(step(record, asked(propose(7, OTHER), C), at(B))) == "busy"


def test_the_same_source_may_try_again_and_what_came_before_is_removed() -> None:
    record = receiving()
    message = propose(7, OTHER)
    ready = step(record, asked(message), at(B))
    assert ready.effects == (
        Sweep(slot=retold(record).slot or pytest.fail()),
        Want(message=message),
    )
    slot = retold(ready.record).slot
    assert slot is not None
    assert slot.move == OTHER


def test_one_in_doubt_who_is_proposed_to_by_the_target_asks_it_first() -> None:
    record, _ = doubtful()
    ready = step(record, asked(propose(9, OTHER), B), at(A))
    assert code(ready) == "in_doubt"
    told = [effect.message for effect in ready.effects if isinstance(effect, Tell)]
    assert [type(message) for message in told] == [Resolve]
    assert code(step(record, asked(propose(9, OTHER), C), at(A))) == "in_doubt"


def test_contents_are_taken_from_the_source_alone_and_until_they_were_verified() -> None:
    assert refusal_of_contents(None, MOVE, A) is None
    assert refusal_of_contents(receiving(), MOVE, A) is None
    assert refusal_of_contents(receiving(), OTHER, C) is None
    for record, sender, wanted in ((receiving(), C, "not_yours"), (prepared()[0], A, "sealed")):
        refused = refusal_of_contents(record, MOVE, sender)
        assert refused is not None
        assert refused.code == wanted


def test_a_red_item_drops_the_slot_and_says_which() -> None:
    record = receiving()
    ready = step(record, Checked(move=MOVE, problems=(GREEN, RED)), at(B))
    assert the_answer(ready).checklist == (GREEN, RED)
    assert code(ready) == "not_ready"
    after = retold(ready.record)
    assert (after.slot, after.floor) == (None, 6)
    assert isinstance(ready.effects[0], Sweep)


def test_a_promise_is_given_again_as_it_was_but_not_after_a_start() -> None:
    record, ticket = prepared()
    message = Prepare(capsule=CAPSULE, move=MOVE)
    for given in (asked(message), Checked(move=MOVE, problems=(RED,))):
        ready = step(record, given, at(B, fresh="other"))
        assert ready.record is record
        assert the_answer(ready) == Prepared(ticket=ticket)
        assert code(step(record, given, at(B, boot="next"))) == "not_proposed"


@pytest.mark.parametrize(
    "change",
    [
        {"boot": "next"},
        {"life": "9" * 32},
        {"nonce": "9" * 32},
        {"epoch": Epoch(7)},
        {"last": EventId("9" * 64)},
        {"root": BlobId("9" * 64)},
    ],
    ids=str,
)
def test_only_the_very_ticket_activates(change: dict[str, Any]) -> None:
    record, ticket = prepared()
    message = Activate(capsule=CAPSULE, move=MOVE, ticket=msgspec.structs.replace(ticket, **change))
    ready = step(record, asked(message), at(B))
    assert the_answer(ready) == NotPrepared()
    assert ready.record is record


def test_only_the_source_activates_and_only_for_the_start_that_promised() -> None:
    record, ticket = prepared()
    message = Activate(capsule=CAPSULE, move=MOVE, ticket=ticket)
    assert the_answer(step(record, asked(message, C), at(B))) == NotPrepared()
    assert the_answer(step(record, asked(message), at(B, boot="next"))) == NotPrepared()
    assert the_answer(step(None, asked(message), at(B))) == NotPrepared()
    suspect = retold(record, state="SUSPECT")
    assert the_answer(step(suspect, asked(message), at(B))) == NotPrepared()


@pytest.mark.parametrize("message", ["resolve", "abort", "prepare"])
def test_a_stranger_is_told_nothing_and_changes_nothing(message: str) -> None:
    record, ticket = prepared()
    said: dict[str, Message] = {
        "resolve": Resolve(capsule=CAPSULE, move=MOVE, epoch=Epoch(6), ticket=ticket),
        "abort": Abort(capsule=CAPSULE, move=MOVE, epoch=Epoch(6)),
        "prepare": Prepare(capsule=CAPSULE, move=MOVE),
    }
    ready = step(record, asked(said[message], C), at(B))
    assert isinstance(the_answer(ready), Refused)
    assert ready.record is record


def test_a_message_about_another_capsule_is_refused() -> None:
    message = msgspec.structs.replace(propose(), capsule=CapsuleId("f" * 64))
    assert code(step(None, asked(message), at(B))) == "other_capsule"


def test_a_ticket_that_is_of_another_move_settles_nothing() -> None:
    record, ticket = prepared()
    for change in ({"move": OTHER}, {"epoch": Epoch(9)}):
        message = Resolve(capsule=CAPSULE, move=MOVE, epoch=Epoch(6), ticket=ticket)
        wrong = msgspec.structs.replace(message, **change)
        assert code(step(record, asked(wrong), at(B))) == "other_offer"


def test_the_fence_raises_the_floor_also_for_what_never_came() -> None:
    record, ticket = prepared()
    low = retold(record, floor=Epoch(3), moves=Moves(life=ticket.life))
    message = Resolve(capsule=CAPSULE, move=MOVE, epoch=Epoch(6), ticket=ticket)
    ready = step(low, asked(message), at(B))
    assert the_answer(ready) == WasCancelled()
    assert retold(ready.record).floor == 6
    ready = step(None, asked(Abort(capsule=CAPSULE, move=MOVE, epoch=Epoch(6))), at(B))
    assert the_answer(ready) == Noted()
    assert code(step(ready.record, asked(propose()), at(B))) == "stale_epoch"


def test_an_abort_cannot_use_up_the_numbers() -> None:
    message = Abort(capsule=CAPSULE, move=MOVE, epoch=Epoch(MAX_EPOCH))
    assert code(step(None, asked(message), at(B))) == "epoch_jump"


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
