"""What the target of a move does beyond what the model visits: bounds, strangers, contents."""

from typing import Any

import msgspec
import pytest

from core.moving import (
    CAPSULE,
    GREEN,
    HELD,
    MOVE,
    OFFER,
    OTHER,
    RED,
    A,
    B,
    C,
    activated,
    asked,
    at,
    code,
    doubtful,
    prepared,
    propose,
    receiving,
    retold,
    the_answer,
)
from sojourn.core.ledger_record import LedgerRecord, LedgerTip
from sojourn.core.migration import step
from sojourn.core.migration_messages import (
    Abort,
    Activate,
    Check,
    Message,
    Noted,
    NotPrepared,
    Prepare,
    Prepared,
    Propose,
    Refused,
    Resolve,
    WasCancelled,
)
from sojourn.core.migration_promises import MAX_EPOCH_JUMP
from sojourn.core.migration_records import Moves
from sojourn.core.migration_target import refusal_of_contents
from sojourn.core.migration_values import (
    Begin,
    Booted,
    Checked,
    Open,
    Sweep,
    Tell,
    Want,
)
from sojourn.core.tenure import MAX_EPOCH
from sojourn.errors import MigrationError
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId


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
