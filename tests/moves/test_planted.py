"""What the faults of this folder are for: a rule that is left out must be missed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moves.harness import (
    Fault,
    Link,
    Two,
    attempt,
    judge,
    prepared,
    recovered,
    two_in,
)
from moves.mortal import MortalDisk
from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration_messages import Activate, Resolve, WasCancelled
from sojourn.drive import crossing, opening
from sojourn.drive.receiving import MoveReceiver
from sojourn.errors import SojournError
from sojourn.store import arriving
from sojourn.store.arriving import FolderLanding
from sojourn.store.ledger import FileLedger

Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("planted") / "two")


def without_doubt(patch: Patch) -> None:
    """The point of no return is not written down."""
    save = FileLedger.save

    def forgetful(self: FileLedger, record: LedgerRecord) -> None:
        if record.state != "IN_DOUBT":
            save(self, record)

    patch.setattr(FileLedger, "save", forgetful)


def answers_before_it_is_durable(patch: Patch) -> None:
    """The target says that it has the capsule, and does not write that down."""
    save = FileLedger.save

    def forgetful(self: FileLedger, record: LedgerRecord) -> None:
        moves = record.travels
        if moves is None or moves.arrived is None:
            save(self, record)

    patch.setattr(FileLedger, "save", forgetful)


def reads_where_it_should_fence(patch: Patch) -> None:
    """The question whether a move was activated is answered with no, whatever was committed."""
    answer = MoveReceiver.answer

    async def lying(self: MoveReceiver, message: Any, **rest: Any) -> Any:
        if isinstance(message, Resolve):
            return WasCancelled()
        return await answer(self, message, **rest)

    patch.setattr(MoveReceiver, "answer", lying)


def never_thaws(patch: Patch) -> None:
    """A move whose mover died stays frozen."""
    for module in (opening, crossing):
        patch.setattr(module, "thaw", lambda *_: None, raising=False)
    from sojourn.core import migration_source

    patch.setattr(migration_source, "woke", migration_source.again)


def forgets_what_it_placed(patch: Patch) -> None:
    """What was put into its place is not found again when the move is dropped."""
    patch.setattr(arriving, "load_places", lambda *_: None)


def leaves_landings(patch: Patch) -> None:
    """What arrives and never becomes anything is not removed."""
    patch.setattr(MoveReceiver, "_tidy", lambda *_: None)
    patch.setattr(FolderLanding, "drop", lambda *_: None)


def goes_on_while_it_asks(patch: Patch) -> None:
    """A source that got no answer runs its agent again."""
    write = crossing.write

    def hasty(ports: Any, capsule: Any, given: Any) -> Any:
        from sojourn.core.migration_values import Lost
        from sojourn.core.migration_values import Ready as Said

        record = ports.ledger.load(capsule)
        if isinstance(given, Lost) and isinstance(given.message, Activate):
            import msgspec

            held = msgspec.structs.replace(record, state="HOLDER")
            ports.ledger.save(held)
            return Said(record=held)
        return write(ports, capsule, given)

    patch.setattr(crossing, "write", hasty)


@dataclass(frozen=True)
class Planted:
    """A rule that is left out, and the trouble in which that must show."""

    plant: Callable[[Patch], None]
    faults: tuple[Fault, ...] = ()
    deaths: tuple[tuple[str, int], ...] = ()


AROUND = tuple(range(60, 78))
LATE = tuple(range(105, 143, 2))
LOST = Fault(kind="activate", how="after")

PLANTED = (
    Planted(without_doubt, (LOST,)),
    Planted(answers_before_it_is_durable, (LOST, Fault())),
    Planted(reads_where_it_should_fence, (LOST,)),
    Planted(never_thaws, deaths=tuple(("a", at) for at in AROUND)),
    Planted(forgets_what_it_placed, deaths=tuple(("b", at) for at in LATE)),
    Planted(leaves_landings, (Fault(kind="prepare", how="before"),)),
    Planted(goes_on_while_it_asks, (LOST,)),
)


def shows(planted: Planted, template: Path) -> bool:
    """Whether one of the troubles ends as none may."""
    for trouble in (*planted.faults, *planted.deaths):
        two = two_in(template)
        fault = trouble if isinstance(trouble, Fault) else Fault()
        if not isinstance(trouble, Fault):
            two.disks[trouble[0]] = MortalDisk(trouble[1])
        try:
            end_of(two, fault)
            judge(two)
        except (AssertionError, SojournError, KeyError):
            return True
    return False


def end_of(two: Two, fault: Fault) -> None:
    fault = Fault(kind=fault.kind, how=fault.how, alter=fault.alter, cut=fault.cut)

    async def inside() -> None:
        await attempt(two, Link(two, "a", "b", fault))
        await recovered(two)

    asyncio.run(inside())


@pytest.mark.parametrize("planted", PLANTED[:3], ids=lambda one: one.plant.__name__)
def test_a_rule_that_is_left_out_is_missed(
    planted: Planted, template: Path, monkeypatch: Patch
) -> None:
    planted.plant(monkeypatch)
    assert shows(planted, template)


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED[3:], ids=lambda one: one.plant.__name__)
def test_every_rule_that_is_left_out_is_missed(
    planted: Planted, template: Path, monkeypatch: Patch
) -> None:
    planted.plant(monkeypatch)
    assert shows(planted, template)
