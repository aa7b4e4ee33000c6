"""Forked at import, exported at an event, merged from an archive: carrying in one step."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from agent.arriving import SAYS, elsewhere, export, new_key, take, tree
from agent.carried import events_in, forked, run_in, sound
from agent.stage import Stage
from agent.test_refusals import Notes
from sojourn import Machine
from sojourn.agent.archives import export_capsule
from sojourn.agent.arrive import Arrival, Imported, import_as_new
from sojourn.agent.export_at import export_at
from sojourn.agent.merging import merge_archive
from sojourn.agent.taking_over import claim
from sojourn.agent.writing import Exported, Wanted
from sojourn.core.tenure import MayRun
from sojourn.drive.merge import Merged
from sojourn.errors import FormatError, NotFoundError, UsageError
from sojourn.format.capsule_kinds import Forked, Restored, Sealed
from sojourn.format.event import ToolOutcome, TurnEnded
from sojourn.ids import EventId

WRITES = [
    {"name": "a", "calls": [{"tool": "write", "args": {"path": "a.txt", "content": "1\n"}}]},
    {"name": "b", "text": "One."},
    {"name": "c", "calls": [{"tool": "write", "args": {"path": "a.txt", "content": "2\n"}}]},
    {"name": "d", "text": "Two."},
    {"name": "e", "text": "Three."},
]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, SAYS)
    made.run("hello")
    return made


def as_new(machine: Machine, file: Path, **options: Any) -> Imported:
    options.setdefault("accept", lambda _: True)
    return asyncio.run(import_as_new(machine, str(file), observer=Notes(), **options))


def at(stage: Stage, event: EventId, name: str = "early.tar", **options: Any) -> Exported:
    wanted = Wanted(file=str(stage.folder / name), purpose="fork", **options)
    return asyncio.run(export_at(stage.machine, stage.make(), wanted, at=event))


def merged(stage: Stage, file: Path, **options: Any) -> tuple[Merged, Arrival]:
    return asyncio.run(merge_archive(stage.machine, stage.make(), str(file), **options))


@pytest.mark.parametrize("purpose", ["backup", "share", "fork"])
def test_what_is_forked_at_import_runs_and_the_original_is_not_known(
    stage: Stage, purpose: str
) -> None:
    last = stage.events()[-1].id
    if purpose == "fork":
        at(stage, last, "box.tar")
    else:
        export(stage, purpose=purpose)
    machine = elsewhere(stage.folder)
    done = as_new(machine, stage.folder / "box.tar", name="mine")
    assert done.place is not None and done.forked is not None
    original = done.arrival.found.manifest.capsule
    assert done.place.capsule == done.forked.capsule != original
    assert machine.ports.ledger.load(original) is None
    assert os.listdir(machine.state.capsules) == ["mine"]
    assert isinstance(machine.look(done.place).admission, MayRun)
    sound(machine, done.place.folder)
    assert run_in(stage, machine, done.place.folder) == "Answer 1."
    sound(machine, done.place.folder)


@pytest.mark.parametrize("new", [True, False])
def test_an_archive_without_its_workspace_can_be_taken_over(tmp_path: Path, new: bool) -> None:
    stage = Stage(tmp_path, WRITES)
    stage.run("go")
    export(stage, without_workspace=True)
    machine = elsewhere(tmp_path)
    if new:
        place = as_new(machine, tmp_path / "box.tar", name="mine").place
        assert place is not None
    else:
        taken = take(machine, tmp_path / "box.tar").place
        assert taken is not None
        asyncio.run(claim(machine, taken, agreed=lambda _: True))
        place = machine.find(taken.folder)
    restored = [e.body for e in machine.look(place).events_of() if isinstance(e.body, Restored)]
    assert [(body.snapshot, len(body.missing)) for body in restored] == [(None, 1)]
    assert os.listdir(place.workspace or "") == []
    sound(machine, place.folder)


def test_it_is_forked_beside_the_one_that_is_here(stage: Stage) -> None:
    file = export(stage)
    first = as_new(stage.machine, file)
    second = as_new(stage.machine, file)
    names = [done.place.name for done in (first, second) if done.place is not None]
    assert names == ["capsule-fork", "capsule-fork-2"]
    assert stage.run("again").reason == "rest"


def test_one_that_is_declined_or_has_no_place_leaves_nothing(stage: Stage) -> None:
    file, machine = export(stage), elsewhere(stage.folder)
    assert as_new(machine, file, accept=lambda _: False).place is None
    as_new(machine, file, name="mine")
    before = tree(Path(machine.home))
    with pytest.raises(UsageError) as refused:
        as_new(machine, file, name="mine")
    assert refused.value.code == "exists"
    assert tree(Path(machine.home)) == before


def test_a_damaged_archive_is_not_forked(stage: Stage) -> None:
    file, machine = export(stage), elsewhere(stage.folder)
    data = bytearray(file.read_bytes())
    data[data.index(b"hello")] ^= 1
    file.write_bytes(data)
    with pytest.raises(FormatError):
        as_new(machine, file)
    assert os.listdir(machine.state.capsules) == []


def test_what_an_import_left_that_died_is_removed_by_the_next(stage: Stage) -> None:
    file, machine = export(stage), elsewhere(stage.folder)
    capsules = Path(machine.state.capsules)
    dead, live = (
        capsules / f".sojourn-an archive.{pid}.0.tmp" for pid in (2**22 + 1, os.getppid())
    )
    for folder in (dead, live):
        (folder / "memory").mkdir(parents=True)
    take(machine, file, name="mine")
    assert sorted(os.listdir(capsules)) == [live.name, "mine"]


def test_an_export_at_an_event_is_a_fork_that_leaves_the_capsule_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, WRITES)
    stage.run("first")
    result = next(event for event in stage.events() if isinstance(event.body, ToolOutcome))
    stage.run("second")
    before = tree(stage.folder)
    made = at(stage, result.id)
    after = tree(stage.folder)
    assert {path for path in after if after[path] != before.get(path)} == {"early.tar"}
    assert made.manifest.seal is not None and made.manifest.seal.purpose == "fork"
    machine = elsewhere(tmp_path)
    done = take(machine, tmp_path / "early.tar", name="early")
    assert done.place is not None
    sound(machine, done.place.folder)
    *_, begun, ended, restored, sealed = events_in(machine, done.place.folder)
    assert isinstance(begun.body, Forked) and begun.body.parent == stage.make().capsule
    assert [head.id for head in begun.body.heads] == [result.id]
    assert isinstance(ended.body, TurnEnded) and ended.body.reason == "set_aside"
    assert isinstance(restored.body, Restored)
    assert (restored.body.why, restored.body.snapshot) == ("fork", None)
    assert restored.body.missing == (result.body.call,)
    assert isinstance(sealed.body, Sealed) and sealed.body.purpose == "fork"
    assert not isinstance(machine.look(done.place).admission, MayRun)


def test_a_likely_secret_and_a_wrong_event_stop_the_export_at_an_event(tmp_path: Path) -> None:
    stage = Stage(tmp_path, SAYS)
    stage.run("the key is AKIA" + "Q7RZ4M2XW5TB3YNK")
    last = stage.events()[-1].id
    with pytest.raises(FormatError) as refused:
        at(stage, last)
    assert refused.value.code == "secrets_found"
    with pytest.raises(NotFoundError):
        at(stage, EventId("0" * 64))
    assert not (tmp_path / "early.tar").exists()
    assert os.listdir(stage.machine.state.capsules) == []


def taken_on(stage: Stage, file: Path) -> tuple[Machine, Path]:
    """The archive claimed on another machine, run there, and exported again."""
    machine = elsewhere(stage.folder)
    place = take(machine, file, name="mine").place
    assert place is not None
    asyncio.run(claim(machine, place, agreed=lambda _: True))
    run_in(stage, machine, place.folder, "meanwhile")
    theirs = stage.folder / "theirs.tar"
    asyncio.run(export_capsule(machine, place, Wanted(file=str(theirs))))
    return machine, theirs


def test_an_archive_is_merged_and_nothing_else_is_kept_of_it(stage: Stage) -> None:
    _, theirs = taken_on(stage, export(stage))
    stage.run("at home")
    planned, _ = merged(stage, theirs, dry_run=True)
    assert not planned.done and planned.comparison.concurrent
    found, arrival = merged(stage, theirs)
    assert found.done and arrival.found.manifest.capsule == found.capsule
    assert not merged(stage, theirs)[0].comparison.theirs
    assert os.listdir(stage.machine.state.capsules) == []
    sound(stage.machine, stage.capsule)
    assert stage.run("on").reason == "rest"


def test_an_archive_that_is_damaged_or_of_another_capsule_is_not_merged(stage: Stage) -> None:
    other = (
        Stage(stage.folder / "other", SAYS) if (stage.folder / "other").mkdir() is None else stage
    )
    other.run("hello")
    before = tree(stage.capsule)
    with pytest.raises(UsageError) as refused:
        merged(stage, export(other))
    assert refused.value.code == "other_lineage"
    _, theirs = taken_on(stage, export(stage))
    sealed = tree(stage.capsule)
    data = bytearray(theirs.read_bytes())
    data[data.index(b"meanwhile")] ^= 1
    theirs.write_bytes(data)
    with pytest.raises(FormatError):
        merged(stage, theirs)
    assert tree(stage.capsule) == sealed and before.keys() <= sealed.keys()
    assert os.listdir(stage.machine.state.capsules) == []


def test_an_archive_that_lost_its_signature_is_not_merged(stage: Stage) -> None:
    key = new_key(stage.folder, "key")
    machine = elsewhere(stage.folder)
    taken = take(machine, export(stage, sign=str(key))).place
    assert taken is not None
    asyncio.run(claim(machine, taken, agreed=lambda _: True))
    stage.rewrite([{"text": "More."}])
    plain = export(stage, "plain.tar")
    before = tree(Path(taken.folder))
    with pytest.raises(FormatError) as refused:
        asyncio.run(merge_archive(machine, machine.find(taken.folder), str(plain)))
    assert refused.value.code == "signature_stripped"
    assert tree(Path(taken.folder)) == before


def test_a_fork_that_is_carried_is_merged_into_its_parent(stage: Stage) -> None:
    made = forked(stage, stage.make(), name="second")
    run_in(stage, stage.machine, made.folder, "over there")
    file = stage.folder / "second.tar"
    place = stage.machine.find(made.folder)
    asyncio.run(export_capsule(stage.machine, place, Wanted(file=str(file))))
    found, _ = merged(stage, file)
    assert found.done and found.other == made.capsule
    sound(stage.machine, stage.capsule)
