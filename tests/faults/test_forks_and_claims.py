"""Wherever a fork or a claim ends, nothing happened or the same command completes it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from faults import forks_and_claims
from faults.faulty_disks import NoFileSync, NoFolderSync
from faults.forks_and_claims import DiskWithWorkspace
from sojourn.drive import fork as forking
from sojourn.drive import refill
from sojourn.drive.machine import Ports
from sojourn.drive.refill import Remaining
from sojourn.errors import SojournError
from sojourn.store.making import FolderMaker
from sojourn.store.workspace_put_back import PutBack
from sojourn.testing.disk import Died, Fault, RecordingDisk
from sojourn.testing.power import DEATHS, Act, Check, end_everywhere


@dataclass(frozen=True)
class Sequence:
    """Where it starts, what it does, and what must hold after any end of it."""

    start: Callable[[], DiskWithWorkspace]
    act: Act
    check: Check


SEQUENCES: Mapping[str, Sequence] = {
    "fork": Sequence(
        forks_and_claims.with_a_capsule,
        forks_and_claims.fork,
        forks_and_claims.fork_is_whole_or_made_again,
    ),
    "claim": Sequence(
        forks_and_claims.with_a_capsule,
        forks_and_claims.claim,
        forks_and_claims.claim_is_none_or_goes_on,
    ),
    "claim of a copy": Sequence(
        forks_and_claims.with_a_copy, forks_and_claims.claim, forks_and_claims.claim_of_a_copy
    ),
}


def deaths(sequence: Sequence) -> int:
    """End the work at each operation by the death of its process alone; how many there were."""
    start, at = sequence.start(), 0
    while True:
        at += 1
        disk, done = start.copy(fault=Fault(at=at)), list[str]()
        with suppress(Died):
            sequence.act(disk, done)
        sequence.check(disk.after_kill(), done)
        if len(disk.operations) < at:
            return at


@pytest.mark.parametrize("name", SEQUENCES)
def test_it_is_whole_or_nothing_wherever_its_process_dies(name: str) -> None:
    assert deaths(SEQUENCES[name]) > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", SEQUENCES)
def test_it_is_whole_or_nothing_wherever_the_power_is_cut(name: str) -> None:
    sequence = SEQUENCES[name]
    tried = end_everywhere(sequence.start(), sequence.act, sequence.check, errors=DEATHS)
    assert tried.disks > 2 * tried.ends


def no_settling(patch: pytest.MonkeyPatch) -> Sequence:
    """What was copied here is believed to be on the disk."""
    patch.setattr(FolderMaker, "settle", lambda *_: None)
    return SEQUENCES["claim of a copy"]


def ledger_last(patch: pytest.MonkeyPatch) -> Sequence:
    """The fork is under its name before this machine knows that it holds it."""

    def place(ports: Ports, staged: str, record: Any) -> None:
        with ports.lock.acquire(record.capsule):
            ports.maker.place(staged, record.folder)
            ports.ledger.save(record)

    patch.setattr(forking, "_place_held", place)
    return SEQUENCES["fork"]


def no_sweep(patch: pytest.MonkeyPatch) -> Sequence:
    """What a dead fork left stays."""
    patch.setattr(forking, "sweep_half_made", lambda *_: None)
    return SEQUENCES["fork"]


def forgotten_claim(patch: pytest.MonkeyPatch) -> Sequence:
    """The record says that this machine holds it, and not what is still to be done."""
    from sojourn.core import tenure
    from sojourn.drive import claim as claiming

    def plain(*args: Any, **options: Any) -> Any:
        import msgspec

        return msgspec.structs.replace(tenure.claimed_record(*args, **options), claim=None)

    patch.setattr(claiming, "claimed_record", plain)
    return SEQUENCES["claim"]


def nothing_filled(patch: pytest.MonkeyPatch) -> Sequence:
    """The event is written, and the workspace stays as it was."""

    async def none(*_: Any, **__: Any) -> None:
        return

    patch.setattr(refill, "carry_out", none)
    return SEQUENCES["fork"]


def told_twice(patch: pytest.MonkeyPatch) -> Sequence:
    """A claim that goes on does not look whether it said already what the workspace is."""
    patch.setattr(Remaining, "is_restored_by", lambda *_: False)
    return SEQUENCES["claim"]


PLANTS = [ledger_last, no_sweep, forgotten_claim, nothing_filled, told_twice]


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_fault_is_found_by_deaths(
    plant: Callable[[pytest.MonkeyPatch], Sequence], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises((AssertionError, SojournError)):
        deaths(plant(monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("disk", [NoFileSync, NoFolderSync])
@pytest.mark.parametrize("name", ["fork", "claim"])
def test_a_disk_that_does_not_sync_is_found(disk: type[RecordingDisk], name: str) -> None:
    sequence = SEQUENCES[name]
    kind = type("Faulty", (disk, DiskWithWorkspace), {})
    start = sequence.start().turned_into(kind)
    with pytest.raises((AssertionError, SojournError, KeyError)):
        end_everywhere(start, sequence.act, sequence.check, errors=DEATHS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fork", "claim"])
def test_a_workspace_that_is_not_synced_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PutBack, "_sync", lambda *_: None)
    sequence = SEQUENCES[name]
    with pytest.raises((AssertionError, SojournError)):
        end_everywhere(sequence.start(), sequence.act, sequence.check, errors=DEATHS)


def test_a_claim_that_believes_an_unsynced_copy_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sequence = no_settling(monkeypatch)
    with pytest.raises((AssertionError, SojournError, KeyError)):
        end_everywhere(sequence.start(), sequence.act, sequence.check, errors=DEATHS)
