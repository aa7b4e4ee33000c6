"""After a merge the snapshots of both sides stand side by side, and are named."""

import asyncio
from pathlib import Path

import pytest

from agent.elsewhere import elsewhere
from agent.stage import Stage
from sojourn.agent.merging import merge
from sojourn.agent.sides import snapshots_side_by_side
from sojourn.format.capsule_kinds import Snapshotted

SAY = [{"text": "well"}] * 6


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Stage, Stage]:
    """A capsule and its copy on another machine, each with a snapshot of its own."""
    (tmp_path / "here").mkdir()
    stage = Stage(tmp_path / "here", SAY)
    write(stage, "before")
    stage.run("first")
    other = elsewhere(stage, tmp_path / "there")
    write(stage, "at home")
    stage.run("here")
    write(other, "away")
    other.run("there")
    return stage, other


def write(stage: Stage, text: str) -> None:
    (stage.folder / "workspace" / "note.txt").write_text(text)


def merged(stage: Stage, other: Stage) -> None:
    asyncio.run(merge(stage.machine, stage.make(), str(other.capsule)))


def named(stage: Stage) -> list[tuple[str, bool]]:
    found = snapshots_side_by_side(stage.machine.look(stage.make()))
    return [(one.event, one.own) for one in found]


def last_snapshot(stage: Stage) -> str:
    return [event.id for event in stage.events() if isinstance(event.body, Snapshotted)][-1]


def test_of_each_side_the_last_snapshot_is_named_until_one_is_taken_after_both(
    sides: tuple[Stage, Stage],
) -> None:
    stage, other = sides
    mine, theirs = last_snapshot(stage), last_snapshot(other)
    assert named(stage) == named(other) == []
    merged(stage, other)
    assert sorted(named(stage)) == sorted([(mine, True), (theirs, False)])
    assert named(stage)[-1][0] == last_snapshot(stage)
    write(stage, "after both")
    stage.run("go on")
    assert named(stage) == []


def test_each_number_is_that_of_the_event(sides: tuple[Stage, Stage]) -> None:
    stage, other = sides
    merged(stage, other)
    look = stage.machine.look(stage.make())
    numbers = {event.id: number for number, event in look.numbered()}
    found = snapshots_side_by_side(look)
    assert [one.number for one in found] == [numbers[one.event] for one in found]


def test_a_copy_that_was_taken_over_goes_on_from_the_snapshot_before(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    stage = Stage(tmp_path / "here", SAY)
    write(stage, "before")
    stage.run("first")
    other = elsewhere(stage, tmp_path / "there")
    write(other, "away")
    other.run("there")
    assert named(other) == []
