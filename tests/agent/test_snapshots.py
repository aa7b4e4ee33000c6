"""Snapshots while an agent lives: at the end of each turn, on request, after a crash."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from agent.stage import Stage, killed_in_call
from sojourn import Agent
from sojourn.core.view import Notice
from sojourn.errors import FormatError, NotFoundError, UsageError
from sojourn.format import layout, snapshot
from sojourn.format.capsule_kinds import Restored, Snapshotted
from sojourn.format.event import Event, ToolIntent, TurnEnded

WRITES = [
    {"name": "a", "calls": [{"tool": "write", "args": {"path": "one.txt", "content": "1"}}]},
    {"name": "b", "text": "Written."},
    {"name": "c", "calls": [{"tool": "write", "args": {"path": "two.txt", "content": "2"}}]},
    {"name": "d", "text": "Written, too."},
    {"name": "e", "text": "Nothing to do."},
]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, WRITES)


def workspace(stage: Stage) -> Path:
    return stage.folder / "workspace"


def held(
    stage: Stage,
    act: Callable[[Agent], Coroutine[Any, Any, Any]],
    **environment: str,
) -> Any:
    """Hold the capsule as a new process would, and act."""
    stage.environment.update(environment)
    place = stage.make()

    async def inside() -> Any:
        async with stage.machine.hold(place, tools=stage.tools) as agent:
            return await act(agent)

    return asyncio.run(inside())


def taken(stage: Stage) -> list[Event]:
    return [event for event in stage.events() if isinstance(event.body, Snapshotted)]


def listed(stage: Stage) -> list[str]:
    data = (stage.capsule / layout.SNAPSHOT).read_bytes()
    return [entry.path for entry in snapshot.load(data).entries]


def test_a_turn_ends_with_a_snapshot_of_what_it_changed(stage: Stage) -> None:
    stage.run()
    assert stage.kinds()[-2:] == ["snapshot", "turn_ended"]
    assert listed(stage) == ["one.txt"]
    stage.run()
    assert listed(stage) == ["one.txt", "two.txt"]
    first, second = taken(stage)
    assert isinstance(second.body, Snapshotted)
    assert second.body.parent == first.id
    assert "one.txt" not in str(second.body.delta)
    assert stage.verify() == []


def test_a_turn_that_changes_no_file_takes_no_snapshot(stage: Stage) -> None:
    for _ in range(3):
        stage.run()
    assert len(taken(stage)) == 2
    assert stage.kinds()[-2:] == ["model_outcome", "turn_ended"]
    before = stage.timeline().read_bytes()
    held(stage, lambda agent: agent.workspace.snapshot())
    assert stage.timeline().read_bytes() == before


def test_a_snapshot_shares_its_append_with_the_end_of_the_turn(stage: Stage) -> None:
    stage.run()
    ended = next(event for event in stage.events() if isinstance(event.body, TurnEnded))
    assert taken(stage)[0].header.batch == ended.header.batch


DIES = """
from sojourn.store.log import LogFile
real = LogFile.append
def torn(self, expected, data):
    if b'"kind":"turn_ended"' in data:
        lines = data.splitlines(keepends=True)[:{kept}]
        if lines:
            real(self, expected, b"".join(lines))
        die()
    real(self, expected, data)
LogFile.append = torn
stage.run()
"""


@pytest.mark.parametrize(
    ("kept", "more"),
    [
        (0, ["turn_taken", "snapshot", "turn_ended"]),
        (1, ["snapshot", "turn_taken", "turn_ended"]),
    ],
)
def test_a_death_around_the_snapshot_of_a_turn_is_harmless(
    stage: Stage, kept: int, more: list[str]
) -> None:
    killed_in_call(stage, DIES.format(kept=kept))
    assert stage.machine.look(stage.make()).state.turn is not None
    calls = stage.model_calls()
    report = stage.resume()
    assert (report.reason, stage.model_calls()) == ("rest", calls)
    assert stage.kinds()[-3:] == more
    assert len(taken(stage)) == 1
    assert listed(stage) == ["one.txt"]
    assert stage.verify() == []


def test_a_workspace_that_is_gone_at_the_end_of_a_turn_ends_no_turn(stage: Stage) -> None:
    def move(_agent: Agent, event: Event) -> None:
        if event.header.kind == "tool_outcome":
            workspace(stage).rename(stage.folder / "moved")

    assert stage.run(each=move).reason == "rest"
    assert stage.kinds()[-1] == "turn_ended"
    assert taken(stage) == []


def test_snapshot_json_is_made_again_when_it_is_gone_or_is_another(stage: Stage) -> None:
    stage.run()
    path = stage.capsule / layout.SNAPSHOT
    right = path.read_bytes()
    for wrong in (None, b"", snapshot.encode(snapshot.EMPTY), right.replace(b"one", b"two")):
        path.unlink() if wrong is None else path.write_bytes(wrong)
        held(stage, lambda agent: asyncio.sleep(0, agent))
        assert path.read_bytes() == right
    assert stage.verify() == []


def test_a_snapshot_json_that_cannot_be_made_again_stops_nothing(stage: Stage) -> None:
    stage.run()
    stage.run()
    broken = taken(stage)[0]
    (stage.capsule / layout.SNAPSHOT).unlink()
    assert isinstance(broken.body, Snapshotted)
    lost = stage.capsule / layout.BLOBS / _digest_of(stage, "one.txt")
    lost.unlink()
    held(stage, lambda agent: asyncio.sleep(0, agent))
    assert listed(stage) == ["one.txt", "two.txt"]
    assert stage.verify() == ["blob_missing"]


def _digest_of(stage: Stage, path: str) -> str:
    fold = stage.machine.look(stage.make()).folded.snapshots
    store = stage.machine.look(stage.make()).store
    found = fold.list_at(fold.current, lambda ref: store.read_blob(ref.sha256))
    return next(str(entry.sha256) for entry in found.entries if entry.path == path)


def test_an_earlier_snapshot_is_put_back_and_the_model_is_told_what_it_lacks(
    stage: Stage,
) -> None:
    stage.run()
    stage.run()
    first = taken(stage)[0].id
    workspace(stage).joinpath("by-hand").write_text("not in any snapshot yet")
    put = held(stage, lambda agent: agent.workspace.restore(first))
    assert sorted(os.listdir(workspace(stage))) == ["one.txt"]
    assert stage.kinds()[-3:] == ["snapshot", "restored", "snapshot"]
    assert "by-hand" in str(taken(stage)[-2].body.delta)
    body = stage.bodies(Restored)[0]
    calls = [intent.call for intent in stage.bodies(ToolIntent)]
    assert (body.snapshot, body.why, body.missing) == (first, "asked", (calls[1],))
    assert put.missing == (calls[1],)
    notices = [
        entry
        for entry in stage.machine.look(stage.make()).transcript.entries
        if isinstance(entry, Notice)
    ]
    assert "two.txt" in notices[-1].text
    assert "one.txt" not in notices[-1].text
    assert stage.verify() == []


def test_a_snapshot_that_was_taken_after_a_restore_lacks_what_the_restore_lacked(
    stage: Stage,
) -> None:
    stage.run()
    stage.run()
    first, second = (event.id for event in taken(stage))
    held(stage, lambda agent: agent.workspace.restore(first))
    third = taken(stage)[-1].id
    held(stage, lambda agent: agent.workspace.restore(second))
    assert stage.bodies(Restored)[-1].missing == ()
    held(stage, lambda agent: agent.workspace.restore(third))
    assert len(stage.bodies(Restored)[-1].missing) == 1


def test_putting_back_what_is_there_already_writes_nothing(stage: Stage) -> None:
    stage.run()
    before = stage.timeline().read_bytes()
    held(stage, lambda agent: agent.workspace.restore(taken(stage)[0].id))
    assert stage.timeline().read_bytes() == before


def test_what_no_snapshot_holds_is_refused_before_anything_changes(stage: Stage) -> None:
    workspace(stage).joinpath(".sojournignore").write_text("/one.txt\n")
    stage.run()
    workspace(stage).joinpath(".sojournignore").write_text("")
    held(stage, lambda agent: agent.workspace.snapshot())
    with_one = taken(stage)[-1].id
    workspace(stage).joinpath(".sojournignore").write_text("/one.txt\n")
    workspace(stage).joinpath("one.txt").write_text("mine, and ignored")
    with pytest.raises(UsageError) as caught:
        held(stage, lambda agent: agent.workspace.restore(with_one))
    assert caught.value.code == "restore_conflict"
    assert "one.txt" in caught.value.message
    assert workspace(stage).joinpath("one.txt").read_text() == "mine, and ignored"
    assert stage.bodies(Restored) == []


def test_only_a_snapshot_can_be_put_back(stage: Stage) -> None:
    stage.run()
    other = next(event.id for event in stage.events() if event.header.kind == "input")
    with pytest.raises(NotFoundError) as caught:
        held(stage, lambda agent: agent.workspace.restore(other))
    assert caught.value.code == "no_snapshot"


def test_a_lost_content_stops_it_before_the_first_change(stage: Stage) -> None:
    stage.run()
    first = taken(stage)[0].id
    (stage.capsule / layout.BLOBS / _digest_of(stage, "one.txt")).unlink()
    workspace(stage).joinpath("one.txt").unlink()
    with pytest.raises(FormatError) as caught:
        held(stage, lambda agent: agent.workspace.restore(first))
    assert caught.value.code == "blob_missing"
    assert os.listdir(workspace(stage)) == []


def test_a_capsule_that_lost_blobs_gets_them_again_from_the_workspace(stage: Stage) -> None:
    """What the state folder knows of a file is no proof that this capsule holds its content."""
    stage.run()
    workspace(stage).joinpath("copy.txt").write_text("1")
    (stage.capsule / layout.BLOBS / _digest_of(stage, "one.txt")).unlink()
    workspace(stage).joinpath("one.txt").rename(workspace(stage) / "moved.txt")
    held(stage, lambda agent: agent.workspace.snapshot())
    assert stage.verify() == []


def test_names_that_hold_a_secret_are_left_out(stage: Stage) -> None:
    workspace(stage).joinpath("sk-very-secret-value").write_text("x")
    workspace(stage).joinpath("plain").write_text("x")
    found = held(
        stage, lambda agent: agent.workspace.snapshot(), OPENAI_API_KEY="sk-very-secret-value"
    )
    assert [one.reason for one in found.left_out] == ["its name holds the value of a secret"]
    assert listed(stage) == ["plain"]
    assert b"sk-very-secret-value" not in stage.timeline().read_bytes()


def test_files_that_nobody_snapshotted_are_in_the_snapshot_of_the_next_turn(stage: Stage) -> None:
    workspace(stage).joinpath("left.txt").write_text("left")
    stage.run()
    assert listed(stage) == ["left.txt", "one.txt"]
