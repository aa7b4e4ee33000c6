"""Merging two copies of a capsule for real, and everything that is refused."""

import asyncio
import shutil
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest

from agent.elsewhere import elsewhere
from agent.stage import Stage
from sojourn import tool
from sojourn.agent.merging import chart, difference, merge
from sojourn.core.tenure import MayLook, MayRun
from sojourn.drive.merge import Merged
from sojourn.errors import FormatError, HeldElsewhereError, SojournError, UsageError
from sojourn.format import manifest
from sojourn.format.event import Input, Memory, ToolOutcome
from sojourn.format.joining import join
from sojourn.format.parts import TextPart
from sojourn.format.timeline_write import Chain, write
from sojourn.ids import BlobId, Clock, RequestId, Seq

SAY = [{"text": "well"}, {"text": "well"}, {"text": "well"}, {"text": "well"}]


def merged(stage: Stage, other: Path, **options: Any) -> Merged:
    return asyncio.run(merge(stage.machine, stage.make(), str(other), **options))


def two(tmp_path: Path, *, here: int = 1, there: int = 1) -> tuple[Stage, Stage]:
    """A capsule after one turn, and its copy on another machine; then turns on each."""
    (tmp_path / "here").mkdir()
    stage = Stage(tmp_path / "here", SAY)
    stage.run("first")
    other = elsewhere(stage, tmp_path / "there")
    for number in range(here):
        stage.run(f"here {number}")
    for number in range(there):
        other.run(f"there {number}")
    return stage, other


def inputs(stage: Stage) -> list[str]:
    bodies: list[Input] = stage.bodies(Input)
    return [part.text for body in bodies for part in body.parts if isinstance(part, TextPart)]


def files(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_two_copies_become_one_that_is_sound_and_runs_on(tmp_path: Path) -> None:
    stage, other = two(tmp_path, here=2, there=2)
    found = merged(stage, other.capsule)
    assert (found.done, found.stopped, found.notes) == (True, None, 1)
    assert [len(part.turns) for part in found.comparison.theirs] == [2]
    assert [len(part.turns) for part in found.comparison.ours] == [2]
    assert stage.verify() == []
    assert sorted(inputs(stage)) == ["first", "here 0", "here 1", "there 0", "there 1"]
    stage.run("after")
    assert stage.verify() == []
    look = stage.machine.look(stage.make())
    assert isinstance(look.admission, MayRun)
    assert stage.events()[-1].header.epoch == 1002
    assert look.folded.manifest is not None
    assert look.folded.manifest.epoch == 1002


def test_whichever_copy_is_merged_into_the_log_is_the_same(tmp_path: Path) -> None:
    stage, other = two(tmp_path)
    before = tmp_path / "before"
    shutil.copytree(stage.capsule, before)
    merged(stage, other.capsule)
    merged(other, before)
    assert stage.timeline().read_bytes() == other.timeline().read_bytes()
    assert other.verify() == []
    assert not merged(stage, other.capsule).done


def test_equal_copies_and_older_ones_leave_nothing_to_do(tmp_path: Path) -> None:
    stage, _ = two(tmp_path, there=0)
    shutil.copytree(stage.capsule, tmp_path / "copy")
    before = files(stage.capsule)
    found = merged(stage, tmp_path / "copy")
    assert (found.done, found.comparison.theirs, found.comparison.ours) == (False, [], [])
    stage.run("more")
    found = merged(stage, tmp_path / "copy")
    assert (found.done, found.comparison.theirs) == (False, [])
    assert (
        before["memory/timeline_events.jsonl"]
        == files(tmp_path / "copy")["memory/timeline_events.jsonl"]
    )


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    stage, other = two(tmp_path, here=1, there=3)
    before, state = files(stage.capsule), files(stage.folder / "state" / "ledger")
    dry = merged(stage, other.capsule, dry_run=True)
    assert files(stage.capsule) == before
    assert files(stage.folder / "state" / "ledger") == state
    assert dry.comparison == merged(stage, other.capsule).comparison


def test_blobs_come_along_and_an_altered_one_stops_everything(tmp_path: Path) -> None:
    stage, other = two(tmp_path, there=0)
    other.run("long " * 5000)
    (blob,) = set(files(other.capsule)) - set(files(stage.capsule))
    before, good = files(stage.capsule), (other.capsule / blob).read_bytes()
    (other.capsule / blob).write_bytes(good[:-1] + b"x")
    with pytest.raises(FormatError) as refused:
        merged(stage, other.capsule)
    assert refused.value.code == "blob_altered"
    assert files(stage.capsule) == before
    (other.capsule / blob).write_bytes(good)
    assert merged(stage, other.capsule).blobs == 1
    assert (stage.capsule / blob).read_bytes() == good
    assert stage.verify() == []


def test_two_edits_of_the_notes_are_both_kept_and_neither_is_an_edit_by_hand(
    tmp_path: Path,
) -> None:
    stage, other = two(tmp_path, here=0, there=0)
    for one, text in ((stage, "mine\n"), (other, "yours\n")):
        (one.capsule / "memory/working_memory.md").write_text(text)
        one.run("look")
    found = merged(stage, other.capsule)
    assert found.notes == 2
    notes = (stage.capsule / "memory/working_memory.md").read_text()
    assert notes in (join("", "mine", "yours"), join("", "yours", "mine"))
    assert len(stage.bodies(Memory)) == 3
    stage.run("go on")
    assert len(stage.bodies(Memory)) == 3
    assert stage.verify() == []


def test_an_edit_by_hand_that_waits_is_taken_in_before_the_merge(tmp_path: Path) -> None:
    stage, other = two(tmp_path)
    (stage.capsule / "memory/working_memory.md").write_text("by hand\n")
    merged(stage, other.capsule)
    assert (stage.capsule / "memory/working_memory.md").read_text() == "by hand\n"
    assert [body.text for body in stage.bodies(Memory)][-1] == "by hand\n"


def test_the_environment_of_the_copy_that_is_merged_into_stays(tmp_path: Path) -> None:
    stage, other = two(tmp_path)
    spec = other.capsule / "environment/spec.json"
    spec.write_text('{"format": "sojourn.environment/1", "env": {"A": "b"}}\n')
    other.run("look")
    mine = (stage.capsule / "environment/spec.json").read_bytes()
    merged(stage, other.capsule)
    kinds = len(stage.events())
    stage.run("go on")
    assert (stage.capsule / "environment/spec.json").read_bytes() == mine
    assert "environment_changed" not in [e.header.kind for e in stage.events()[kinds:]]


@tool(replay="report")
async def stopping() -> str:
    """Acts."""
    return "acted"


def test_an_open_turn_is_refused_and_a_paused_one_goes_on_after(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    steps = [{"calls": [{"tool": "stopping", "args": {}}]}, {"text": "done"}, {"text": "well"}]
    stage = Stage(tmp_path / "here", steps, tools=[stopping])
    stage.make()
    other = elsewhere(stage, tmp_path / "there")
    other.rewrite(SAY)
    other.run("there")
    stage.run("go", each=lambda agent, event: _leave(agent, event.header.kind))
    with pytest.raises(UsageError) as refused:
        merged(stage, other.capsule)
    assert refused.value.code == "turn_open"
    assert stage.resume(pausing=True).reason == "paused"
    merged(stage, other.capsule)
    assert stage.resume().reason == "rest"
    outcomes = [body.call for body in stage.bodies(ToolOutcome)]
    assert len(outcomes) == len(set(outcomes))
    assert stage.verify() == []


def _leave(agent: Any, kind: str) -> None:
    if kind == "tool_intent":
        agent.leave()


def test_a_capsule_of_another_origin_is_refused(tmp_path: Path) -> None:
    stage, _ = two(tmp_path)
    (tmp_path / "third").mkdir()
    third = Stage(tmp_path / "third", SAY)
    third.make()
    before = files(stage.capsule)
    for dry_run in (True, False):
        with pytest.raises(UsageError) as refused:
            merged(stage, third.capsule, dry_run=dry_run)
        assert refused.value.code == "other_lineage"
    assert files(stage.capsule) == before


def test_a_copy_that_is_not_held_here_takes_nothing_in(tmp_path: Path) -> None:
    stage, other = two(tmp_path)
    with pytest.raises(HeldElsewhereError) as refused:
        asyncio.run(
            merge(stage.machine, stage.machine.find(str(other.capsule)), str(stage.capsule))
        )
    assert refused.value.code in ("copied", "newer_epoch")


def test_a_capsule_that_runs_here_is_not_merged_into(tmp_path: Path) -> None:
    stage, other = two(tmp_path)
    found: list[str] = []

    def meanwhile(_agent: Any, _event: Any) -> None:
        if not found:
            thread = Thread(target=lambda: found.append(_refused(stage, other)))
            thread.start()
            thread.join()

    stage.run("more", each=meanwhile)
    assert found == ["held_elsewhere"]


def _refused(stage: Stage, other: Stage) -> str:
    try:
        merged(stage, other.capsule)
    except SojournError as error:
        return error.code
    return "merged"


def test_a_damaged_copy_is_refused_with_its_line(tmp_path: Path) -> None:
    stage, other = two(tmp_path)
    log = other.timeline().read_bytes()
    other.timeline().write_bytes(log.replace(b"there 0", b"there 9", 1))
    before = files(stage.capsule)
    with pytest.raises(FormatError) as refused:
        merged(stage, other.capsule)
    assert refused.value.line
    assert str(other.capsule) in str(refused.value.file)
    assert files(stage.capsule) == before


def test_a_capsule_is_not_merged_into_itself(tmp_path: Path) -> None:
    stage, _ = two(tmp_path)
    (tmp_path / "link").symlink_to(stage.capsule)
    for same in (stage.capsule, tmp_path / "link"):
        with pytest.raises(UsageError) as refused:
            merged(stage, same)
        assert refused.value.code == "same_folder"


def test_both_sides_of_a_cloned_machine_are_kept_and_running_stops(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    stage = Stage(tmp_path / "here", SAY)
    stage.run("first")
    clone = tmp_path / "clone"
    shutil.copytree(stage.capsule, clone)
    lines = len(stage.events())
    tail = _other_side(stage, clone)
    stage.run("here")
    found = merged(stage, clone)
    assert (found.done, found.stopped) == (True, "equivocation")
    (two_sides,) = found.comparison.equivocations
    assert (two_sides.seq, two_sides.theirs) == (lines, tail)
    sides = {event.id for event in stage.events() if event.header.seq == lines}
    assert sides == {two_sides.ours, two_sides.theirs}
    assert stage.verify() == ["equivocation"]
    admission = stage.machine.look(stage.make()).admission
    assert isinstance(admission, MayLook)
    assert admission.code == "equivocation"


def _other_side(stage: Stage, clone: Path) -> str:
    """One more event at the end of the clone, of the same chain."""
    last = stage.events()[-1]
    chain = Chain(
        machine=last.header.machine,
        incarnation=last.header.incarnation,
        epoch=last.header.epoch,
        seq=Seq(last.header.seq + 1),
        head=last.id,
        clock=Clock(last.header.clock),
    )
    said = Input(request=RequestId("clone"), author="user", parts=(TextPart(text="clone"),))
    batch = write((said,), chain=chain, time="2026-01-02T03:04:05.678Z", salts=("s" * 22,))
    log = (clone / "memory/timeline_events.jsonl").read_bytes() + batch.data
    (clone / "memory/timeline_events.jsonl").write_bytes(log)
    found = manifest.load((clone / "manifest.json").read_bytes())
    head = msgspec.structs.replace(found.timeline.heads[0], id=batch.events[0].id, seq=chain.seq)
    mark = manifest.TimelineMark(
        heads=(head,), length=len(log), sha256=BlobId(sha256(log).hexdigest())
    )
    written = manifest.encode(msgspec.structs.replace(found, timeline=mark))
    (clone / "manifest.json").write_bytes(written)
    return batch.events[0].id


def test_a_difference_names_events_notes_and_files_of_both(tmp_path: Path) -> None:
    stage, other = two(tmp_path, here=2, there=1)
    (other.capsule / "memory/working_memory.md").write_text("theirs\n")
    other.run("look")
    entry = b'{"path":"a","sha256":"%s","size":1,"type":"file"}' % (b"0" * 64)
    (other.capsule / "artifacts/snapshot.json").write_bytes(
        b'{"entries":[' + entry + b'],"format":"sojourn.snapshot/1"}\n'
    )
    machine = stage.machine
    places = [machine.find(str(one.capsule)) for one in (stage, other)]
    found = difference(machine, *places)
    assert [len(part.turns) for part in found.comparison.ours] == [2]
    assert [len(part.turns) for part in found.comparison.theirs] == [2]
    assert found.notes == ("# Working memory\n", "theirs\n")
    assert (found.changed, found.ours, found.theirs) == ((), (), ("a",))
    back = difference(machine, *reversed(places))
    assert (back.comparison.ours, back.comparison.theirs) == (
        found.comparison.theirs,
        found.comparison.ours,
    )
    same = difference(machine, places[0], places[0])
    assert same.comparison.shared == len(stage.events())


def test_the_chart_of_a_merged_capsule_has_both_machines(tmp_path: Path) -> None:
    stage, other = two(tmp_path, here=1, there=2)
    merged(stage, other.capsule)
    made = chart(stage.machine.look(stage.make()))
    assert [strand.epoch for strand in made.strands] == [1, 1001]
    assert [row.said for row in made.rows if row.kind == "turn" and row.strand == 1] == [
        "there 0",
        "there 1",
    ]


def test_a_copy_of_a_merged_capsule_shows_the_turn_of_its_holder(tmp_path: Path) -> None:
    """Whoever only looks reads the holder's own strand from the manifest."""
    stage, other = two(tmp_path)
    other.run("more", each=lambda agent, event: _leave_at(agent, event.header.kind))
    assert other.machine.look(other.make()).state.turn is not None
    merged(stage, other.capsule)
    shutil.copytree(stage.capsule, tmp_path / "copy")
    look = stage.machine.look(stage.machine.find(str(tmp_path / "copy")))
    assert look.state.turn is None
    assert isinstance(look.admission, MayLook)


def _leave_at(agent: Any, kind: str) -> None:
    if kind == "model_intent":
        agent.leave()
