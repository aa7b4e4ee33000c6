"""Who may append: only a machine whose own ledger says so, about this very folder and log."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, get_args

import msgspec
import pytest

from sojourn.core.ledger_record import (
    LedgerRecord,
    LedgerState,
    LedgerTip,
    PendingClaim,
    first_record,
)
from sojourn.core.migration_records import (
    Activation,
    Arriving,
    Moves,
    Outgoing,
    Slot,
    Ticket,
    Tombstone,
)
from sojourn.core.tenure import (
    CLAIMABLE,
    FORCED_ONLY,
    FORCED_STEP,
    MAX_EPOCH,
    Evidence,
    LookCode,
    MayLook,
    MayRun,
    admit,
    claimed_record,
    reasons,
)
from sojourn.errors import LimitError
from sojourn.ids import (
    BlobId,
    CapsuleId,
    Epoch,
    EventId,
    Incarnation,
    MachineId,
    MoveId,
)

HERE, THERE = "/capsules/here", "/capsules/there"
CAPSULE, OTHER = CapsuleId("c" * 64), CapsuleId("d" * 64)
LAST, ANOTHER = EventId("1" * 64), EventId("2" * 64)

HELD = LedgerRecord(
    capsule=CAPSULE,
    incarnation=Incarnation("a" * 32),
    state="HOLDER",
    epoch=Epoch(5),
    floor=Epoch(6),
    folder=HERE,
    workspace="/work",
    tip=LedgerTip(length=100, last=LAST),
)
RECORDS: dict[str, LedgerRecord | None] = {
    "held": HELD,
    "missing": None,
    "none": msgspec.structs.replace(HELD, state="NONE"),
    "copied": msgspec.structs.replace(HELD, state="SUSPECT", reason="ledger_copied"),
    "suspect": msgspec.structs.replace(HELD, state="SUSPECT", reason="newer_epoch"),
    "of another capsule": msgspec.structs.replace(HELD, capsule=OTHER),
}
OUT = Outgoing(
    move=MoveId("0" * 32),
    epoch=Epoch(7),
    target=MachineId("e" * 64),
    address="there",
    root=BlobId("f" * 64),
    last=LAST,
)
TICKET = Ticket(
    move=OUT.move,
    epoch=OUT.epoch,
    source=MachineId("d" * 64),
    target=OUT.target,
    life="1" * 32,
    boot="2" * 32,
    root=OUT.root,
    last=LAST,
    nonce="3" * 32,
)
DOUBTED = msgspec.structs.replace(OUT, ticket=TICKET)
SLOT = Slot(
    move=OUT.move,
    epoch=OUT.epoch,
    source=TICKET.source,
    landing="/landing",
    folder="/f",
    workspace="/w",
    root=OUT.root,
    last=LAST,
)
WENT = Tombstone(move=OUT.move, epoch=OUT.epoch, target=OUT.target, address="there")


def moving(state: LedgerState, **parts: Any) -> LedgerRecord:
    return msgspec.structs.replace(HELD, state=state, moves=Moves(life="1" * 32, **parts))


MOVING: dict[str, tuple[LedgerRecord, LookCode]] = {
    "frozen": (moving("FROZEN", outgoing=OUT), "frozen"),
    "in doubt": (moving("IN_DOUBT", outgoing=DOUBTED), "in_doubt"),
    "moved away": (moving("RETIRED", went=WENT), "moved_away"),
    "coming back": (moving("RETIRED", went=WENT, slot=SLOT), "arriving"),
    "arriving": (moving("NONE", slot=SLOT), "arriving"),
    "frozen, nothing else known": (msgspec.structs.replace(HELD, state="FROZEN"), "frozen"),
    "in doubt, nothing else known": (msgspec.structs.replace(HELD, state="IN_DOUBT"), "in_doubt"),
    "away, nothing else known": (msgspec.structs.replace(HELD, state="RETIRED"), "moved_away"),
}
PLACES = {"same": (HERE, False), "moved": (THERE, False), "copied": (THERE, True)}
LOGS = {
    "as it was": (100, LAST),
    "longer": (150, LAST),
    "shorter": (90, LAST),
    "replaced": (150, ANOTHER),
}
EPOCHS = {"same": Epoch(5), "newer": Epoch(6), "far newer": Epoch(9)}
GOOD = Evidence(
    capsule=CAPSULE, folder=HERE, record=HELD, length=100, at_tip=LAST, highest_epoch=Epoch(5)
)
FLAGS: tuple[dict[str, object], ...] = (
    {"mine": True},
    {"read_only_format": True},
    {"damage": "nul_bytes"},
    {"equivocation": True},
    {"divergence": True},
    {"network": "nfs4"},
)
HARMLESS = {"mine"}


@dataclass(frozen=True)
class Case:
    """One point of the whole space of evidence, by names."""

    record: str
    failure: str | None
    place: str
    log: str
    epoch: str
    flags: frozenset[str]

    @property
    def evidence(self) -> Evidence:
        folder, old_folder = PLACES[self.place]
        length, at_tip = LOGS[self.log]
        flags: dict[str, Any] = {}
        for flag in FLAGS:
            if flag.keys() <= self.flags:
                flags.update(flag)
        return Evidence(
            capsule=CAPSULE,
            folder=folder,
            record=RECORDS[self.record],
            ledger_failure=self.failure,
            old_folder=old_folder,
            length=length,
            at_tip=at_tip,
            highest_epoch=EPOCHS[self.epoch],
            **flags,
        )

    @property
    def is_good(self) -> bool:
        """Written without a look at the code: everything must be as it should be."""
        return (
            self.record == "held"
            and self.failure is None
            and self.place in ("same", "moved")
            and self.log in ("as it was", "longer")
            and self.epoch == "same"
            and self.flags <= HARMLESS
        )


def space() -> Iterator[Case]:
    names = [next(iter(flag)) for flag in FLAGS]
    switches = [
        frozenset(name for name, on in zip(names, chosen, strict=True) if on)
        for chosen in product((False, True), repeat=len(names))
    ]
    failures = (None, "ledger_damaged", "ledger_unsupported")
    for point in product(RECORDS, failures, PLACES, LOGS, EPOCHS, switches):
        yield Case(*point)


@cache
def walked() -> list[tuple[Case, tuple[MayLook, ...]]]:
    """The whole space, with every reason against running."""
    return [(case, tuple(reasons(case.evidence))) for case in space()]


def test_only_the_one_good_family_of_evidence_may_run() -> None:
    good = [case for case, found in walked() if not found]
    assert good == [case for case, _ in walked() if case.is_good]
    assert len(good) == 2 * 2 * 2


def test_whoever_may_run_does_so_at_this_folder() -> None:
    for case, found in walked():
        if not found:
            folder = PLACES[case.place][0]
            wanted = MayRun(
                record=msgspec.structs.replace(HELD, folder=folder), moved=case.place == "moved"
            )
            assert admit(case.evidence) == wanted


def test_a_newer_epoch_is_remembered_whatever_else_is_wrong() -> None:
    """Since the folder may be rolled back and look innocent again."""
    for case, found in walked():
        known = {"held": 5, "suspect": 6}.get(case.record)
        newer = known is not None and EPOCHS[case.epoch] > known
        if newer and case.record in ("held", "suspect"):
            remembered = found[-1].remember
            assert {reason.remember for reason in found} == {remembered}
            assert remembered is not None, case
            assert (remembered.state, remembered.reason) == ("SUSPECT", "newer_epoch")
            assert remembered.floor == max(HELD.floor, EPOCHS[case.epoch])
            assert isinstance(admit(replace(GOOD, record=remembered)), MayLook)
        elif case.record in ("held", "missing", "copied", "of another capsule"):
            assert not [reason for reason in found if reason.remember is not None], case


ONE_FAULT: list[tuple[dict[str, object], LookCode, bool]] = [
    ({"read_only_format": True}, "format_newer", False),
    ({"ledger_failure": "ledger_damaged", "record": None}, "ledger_damaged", True),
    ({"ledger_failure": "ledger_unsupported", "record": None}, "ledger_unsupported", False),
    ({"record": None}, "not_held_here", False),
    ({"record": None, "mine": True}, "not_held_here", False),
    ({"record": RECORDS["none"]}, "not_held_here", False),
    ({"record": RECORDS["of another capsule"]}, "not_held_here", False),
    ({"record": RECORDS["copied"]}, "ledger_copied", True),
    *(({"record": record}, code, False) for record, code in MOVING.values()),
    ({"record": RECORDS["suspect"]}, "suspect", True),
    ({"highest_epoch": Epoch(6)}, "newer_epoch", True),
    ({"folder": THERE, "old_folder": True}, "copied", False),
    ({"length": 99, "at_tip": None}, "rolled_back", True),
    ({"at_tip": ANOTHER}, "rolled_back", True),
    ({"length": 200, "at_tip": None}, "rolled_back", True),
    ({"begun": False}, "rolled_back", True),
    ({"damage": "nul_bytes"}, "damaged", True),
    ({"equivocation": True}, "equivocation", True),
    ({"divergence": True}, "divergence", True),
    ({"network": "nfs4"}, "network_folder", False),
]


@pytest.mark.parametrize(("fault", "code", "suspect"), ONE_FAULT)
def test_each_fault_alone_has_its_name_and_says_what_to_do(
    fault: dict[str, object], code: LookCode, suspect: bool
) -> None:
    assert isinstance(admit(GOOD), MayRun)
    evidence = replace(GOOD, **fault)
    found = list(reasons(evidence))
    assert [reason.code for reason in found] == [code]
    assert admit(evidence) == found[0]
    assert found[0].suspect is suspect
    for text in (found[0].message, found[0].hint):
        assert text.endswith(".")
        assert text[0].isupper()
    ways = ("`sojourn claim`", "`sojourn claim --forced`", "`sojourn adopt`")
    assert any(way in found[0].hint for way in ways) == (code in CLAIMABLE)
    assert (ways[1] in found[0].hint) == (code in FORCED_ONLY)


def test_every_reason_has_a_case_here() -> None:
    assert {code for _, code, _ in ONE_FAULT} == set(get_args(LookCode))


def test_reasons_come_in_the_order_of_their_list() -> None:
    order = get_args(LookCode)
    for case, found in walked():
        codes = [reason.code for reason in found]
        assert codes == sorted(codes, key=order.index), case


def test_opening_goes_by_the_gravest_reason() -> None:
    for case, found in walked()[::7]:
        admission = admit(case.evidence)
        assert admission == found[0] if found else isinstance(admission, MayRun)


def test_a_new_capsule_may_run_before_the_ledger_saw_its_log() -> None:
    """The record is saved first, so its tip is that of an empty log."""
    record = first_record(
        capsule=CAPSULE, incarnation=HELD.incarnation, folder=HERE, workspace="/work"
    )
    for length in (0, 500):
        evidence = replace(GOOD, record=record, length=length, at_tip=None, highest_epoch=Epoch(1))
        assert admit(evidence) == MayRun(record=record, moved=False)


def test_a_machine_that_lost_its_state_is_told_so() -> None:
    found = {mine: admit(replace(GOOD, record=None, mine=mine)) for mine in (False, True)}
    assert found[True] != found[False]
    assert isinstance(found[True], MayLook)
    assert "SOJOURN_HOME" in found[True].hint


def test_a_copied_record_hides_no_move() -> None:
    """So that nobody who goes on after a restored backup makes two holders of one."""
    for record, code in MOVING.values():
        copied = msgspec.structs.replace(record, state="SUSPECT", reason="ledger_copied")
        found = [reason.code for reason in reasons(replace(GOOD, record=copied))]
        wanted = ["ledger_copied"] if record.travels is None else ["ledger_copied", code]
        assert found == wanted


def test_a_newer_epoch_hides_no_move() -> None:
    for record, _ in MOVING.values():
        found = list(reasons(replace(GOOD, record=record, highest_epoch=Epoch(9))))
        remembered = found[0].remember
        assert remembered is not None
        if record.state != "NONE":
            assert remembered == msgspec.structs.replace(record, floor=Epoch(9))
        assert remembered.moves == record.moves


def test_the_event_of_an_arrival_may_still_be_missing_from_the_log() -> None:
    arrived = Arriving(move=OUT.move, epoch=Epoch(5), source=TICKET.source, goes_on=LAST)
    record = moving("HOLDER", arrived=arrived)
    assert isinstance(admit(replace(GOOD, record=record, begun=False)), MayRun)
    shorter = replace(GOOD, record=record, begun=False, length=99, at_tip=None)
    assert [reason.code for reason in reasons(shorter)] == ["rolled_back"]


def test_a_claim_keeps_what_was_promised_to_other_machines() -> None:
    activation = Activation(move=OUT.move, epoch=Epoch(4), source=TICKET.source)
    record = moving("RETIRED", went=WENT, slot=SLOT, activations=(activation,))
    made = claimed_record(replace(GOOD, record=record), CLAIM, incarnation=NEW, workspace="/new")
    assert made.moves == Moves(life="1" * 32, activations=(activation,))


CLAIM = PendingClaim(how="claim", by="user")
NEW = Incarnation("b" * 32)


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize(("log", "floor"), [(5, 6), (9, 6), (6, 6)])
def test_a_claim_takes_an_epoch_above_all_that_is_known(log: int, floor: int, forced: bool) -> None:
    record = msgspec.structs.replace(HELD, floor=Epoch(floor))
    evidence = replace(GOOD, record=record, highest_epoch=Epoch(log))
    claim = msgspec.structs.replace(CLAIM, forced=forced)
    made = claimed_record(evidence, claim, incarnation=NEW, workspace="/new")
    step = FORCED_STEP if forced else 1
    assert (made.epoch, made.floor) == (max(log, floor) + step,) * 2
    assert (made.state, made.incarnation, made.claim) == ("HOLDER", NEW, claim)
    assert (made.folder, made.workspace, made.tip) == (HERE, "/new", LedgerTip())


@pytest.mark.parametrize("code", sorted(CLAIMABLE))
def test_a_claim_that_died_may_be_finished_by_running(code: LookCode) -> None:
    """Its record is the authority, whether its first event is in the log or not."""
    fault = next(fault for fault, name, _ in ONE_FAULT if name == code)
    if code in ("equivocation", "divergence"):
        fault = {}  # what a claim settles there is for the reader to say
    found = replace(GOOD, **fault)
    record = claimed_record(found, CLAIM, incarnation=NEW, workspace="/new")
    for begun in (False, True):
        evidence = replace(
            found, record=record, ledger_failure=None, begun=begun, mine=True, folder=HERE
        )
        assert admit(evidence) == MayRun(record=record, moved=False)


def test_an_epoch_that_nobody_can_be_above_is_not_claimed() -> None:
    evidence = replace(GOOD, highest_epoch=Epoch(MAX_EPOCH))
    with pytest.raises(LimitError) as refused:
        claimed_record(evidence, CLAIM, incarnation=NEW, workspace="/new")
    assert refused.value.code == "epoch_limit"
