"""What is refused, before anything is accepted or decided, and what is left for others."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.stage import Stage, killed_in_call
from agent.test_recovery import CALL_THEN_SAY, DYING
from sojourn.agent import Unwatched
from sojourn.errors import FormatError, LimitError, NotFoundError, SojournError, UsageError
from sojourn.format.event import Input, Settled, TurnPaused

TALK = [{"text": "Hello."}]


class Notes(Unwatched):
    """Keeps what the runtime says to people."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def test_a_message_is_not_accepted_when_the_workspace_is_gone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()
    shutil.rmtree(tmp_path / "workspace")
    with pytest.raises(NotFoundError):
        stage.run()
    assert stage.machine.look(place).waiting == 0


def test_a_message_is_not_accepted_when_the_queue_cannot_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sojourn.errors import StorageError
    from sojourn.queues.sqlite import SqliteQueue

    stage = Stage(tmp_path, TALK)
    place = stage.make()

    def failing(*_: object) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(SqliteQueue, "put", failing)
    with pytest.raises(StorageError):
        asyncio.run(stage.machine.send(place, "go"))
    assert stage.machine.look(place).waiting == 0


def test_a_worker_leaves_an_agent_alone_whose_tools_are_not_here(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule="report"))
    before = len(stage.events())
    with pytest.raises(UsageError) as refused:
        stage.take()
    assert refused.value.code == "tools_missing"
    assert len(stage.events()) == before


def test_a_retry_is_not_used_up_when_the_tool_is_not_here(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule="ask"))
    assert stage.resume().reason == "decision"
    with pytest.raises(UsageError) as refused:
        stage.resume("retry")
    assert refused.value.code == "tools_missing"
    assert stage.bodies(Settled) == []


def test_a_memory_that_is_too_long_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.make()
    memory = stage.capsule / "memory/working_memory.md"
    memory.write_text("x" * 300_000)
    with pytest.raises(LimitError) as refused:
        stage.run()
    assert refused.value.code == "memory_too_long"
    assert memory.stat().st_size == 300_000


def test_a_file_of_the_inbox_that_is_no_message_is_kept_and_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()
    asyncio.run(stage.machine.send(place, "go"))
    (message,) = (tmp_path / "state/inbox" / place.capsule).glob("*.json")
    message.write_bytes(message.read_bytes()[:20])
    assert len(stage.machine.look(place).refused) == 1
    notes = Notes()

    async def inside() -> None:
        async with stage.machine.hold(place, observer=notes):
            pass

    asyncio.run(inside())
    assert any("no message that can be read" in said for said in notes.said)
    assert len(stage.machine.look(place).refused) == 1


@pytest.mark.parametrize("name", ["memory/working_memory.md", "artifacts/snapshot.json"])
@pytest.mark.parametrize("odd", ["link", "pipe", "folder"])
def test_what_blocks_running_is_named_by_verify(name: str, odd: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.make()
    path = stage.capsule / name
    path.unlink()
    if odd == "link":
        path.symlink_to("/dev/null")
    elif odd == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(SojournError):
        stage.run()
    assert "path_unsafe" in stage.verify()


@pytest.mark.parametrize("garbage", [b"\xff\x00\xfe", b"", b"a" * 500])
def test_an_unreadable_last_used_file_is_ignored(garbage: bytes, tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()
    (tmp_path / "state/last-used").write_bytes(garbage)
    assert stage.machine.find(str(stage.capsule)) == place


def test_a_turn_that_was_left_is_taken_by_the_next_worker(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"calls": [{"tool": "list", "args": {}}]}, {"text": "Done."}])
    report = stage.run(each=lambda agent, _: agent.leave())
    assert report.reason == "left"
    assert stage.bodies(TurnPaused) == []
    assert [job.capsule for job in stage.machine.jobs()] == [stage.make().capsule]
    assert stage.take().text == "Done."
    assert stage.machine.jobs() == ()


def test_the_text_of_a_report_is_of_this_run_only(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Never.", "fail": "overloaded"}])
    assert stage.run("a").text == "One."
    report = stage.run("b")
    assert (report.reason, report.text) == ("model", "")


@pytest.mark.parametrize("model", ["nosuch/model", "scripted/none.json"])
def test_a_model_that_can_never_be_asked_is_refused_at_once(model: Any, tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    with pytest.raises(SojournError):
        asyncio.run(stage.machine.create(str(stage.capsule), model=model))
    assert not stage.capsule.exists()


def test_a_capsule_that_was_moved_away_is_named_in_the_error(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.make()
    stage.capsule.rename(tmp_path / "elsewhere")
    with pytest.raises(NotFoundError) as refused:
        stage.machine.find("capsule")
    assert str(stage.capsule) in refused.value.state


def test_a_failed_decision_changes_no_input(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    with pytest.raises(UsageError):
        stage.resume("skip")
    assert stage.bodies(Input) == []


@pytest.mark.parametrize(
    "name", ["artifacts/snapshot.json", "memory/vector_index/index.json", "environment/spec.json"]
)
def test_a_file_that_the_log_gives_is_made_again(name: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.make()
    before = (stage.capsule / name).read_bytes()
    (stage.capsule / name).unlink()
    stage.run()
    assert (stage.capsule / name).read_bytes() == before
    assert stage.verify() == []


def test_one_held_agent_runs_once_at_a_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"calls": [{"tool": "list", "args": {}}]}, {"text": "Done."}])
    place = stage.make()

    async def inside() -> list[Any]:
        async with stage.machine.hold(place) as agent:
            runs = (agent.run("a"), agent.run("b"))
            return await asyncio.gather(*runs, return_exceptions=True)

    first, second = asyncio.run(inside())
    assert first.text == "Done."
    assert isinstance(second, UsageError)
    assert second.code == "runs_already"
    assert len(stage.bodies(Input)) == 1
    assert stage.machine.look(place).waiting == 0


def test_a_spec_that_is_none_is_refused_with_its_line_and_left_as_it_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.make()
    spec = stage.capsule / "environment/spec.json"
    bad = '{\n"format": "sojourn.environment/1",\n"env": {"API_KEY": "x"}\n}\n'
    spec.write_text(bad)
    with pytest.raises(FormatError) as refused:
        stage.run()
    assert refused.value.code == "variable_refused"
    assert (refused.value.file, refused.value.line) == ("environment/spec.json", 3)
    assert spec.read_text() == bad
    assert stage.kinds() == []


def test_a_stray_file_with_an_odd_name_is_left_alone_and_named_by_verify(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Two."}])
    stage.make()
    (stage.capsule / "Grüße aus der Ferne.txt").write_text("hello")
    assert stage.run("a").text == "One."
    assert stage.run("b").text == "Two."
    assert "file_unlisted" in stage.verify()


def test_a_file_of_the_environment_with_an_odd_name_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.make()
    odd = stage.capsule / "environment/größe.lock"
    odd.write_text("x")
    with pytest.raises(FormatError) as refused:
        stage.run()
    assert refused.value.code == "path_unsafe"
    odd.unlink()
    assert stage.run().text == "Hello."
