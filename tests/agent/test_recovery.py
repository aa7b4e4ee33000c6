"""What happens after a process was killed inside a call, and after files were changed."""

import asyncio
import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.stage import Stage, killed_in_call
from sojourn import ToolContext, tool
from sojourn.errors import FormatError, HeldElsewhereError, SojournError, StorageError, UsageError
from sojourn.format.event import (
    Cut,
    EnvironmentChanged,
    Input,
    Memory,
    ModelOutcome,
    Settled,
    ToolIntent,
    ToolOutcome,
    TurnTaken,
)
from sojourn.store.disk import OsDisk

CALL_THEN_SAY = [{"calls": [{"tool": "act", "args": {}}]}, {"text": "I know."}]
DYING = """
@tool(replay={rule!r})
async def act(context: ToolContext) -> str:
    "Acts, and dies before it can say so."
    with open(stage.folder / "effects", "a") as file:
        file.write(context.key + "\\n")
    die()
stage.tools = [act]
stage.run()
"""


def acting(rule: Any, folder: Path) -> Any:
    """The same tool in good health."""

    @tool(replay=rule, name="act")
    async def act(context: ToolContext) -> str:
        """Acts."""
        with (folder / "effects").open("a") as file:
            file.write(context.key + "\n")
        return "acted"

    return act


def effects(folder: Path) -> list[str]:
    return (folder / "effects").read_text().splitlines()


@pytest.mark.parametrize("rule", ["safe", "keyed"])
def test_a_safe_or_keyed_call_runs_again_with_the_same_key(rule: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule=rule))
    stage.tools = [acting(rule, tmp_path)]
    assert stage.resume().text == "I know."
    assert len(effects(tmp_path)) == 2
    assert len(set(effects(tmp_path))) == 1
    assert [body.attempt for body in stage.bodies(ToolIntent)] == [1, 2]
    assert [body.status for body in stage.bodies(ToolOutcome)] == ["done"]
    assert stage.model_calls() == 2


def test_a_report_call_is_not_run_again_and_the_model_is_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule="report"))
    stage.tools = [acting("report", tmp_path)]
    assert stage.resume().text == "I know."
    assert len(effects(tmp_path)) == 1
    assert [body.status for body in stage.bodies(ToolOutcome)] == ["unknown"]
    assert "may have" in json.dumps(context_of(stage))


@pytest.mark.parametrize(
    ("then", "now"), [("safe", "report"), ("report", "safe"), ("safe", None), ("keyed", "ask")]
)
def test_the_stricter_of_then_and_now_counts(then: str, now: str | None, tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule=then))
    stage.tools = [] if now is None else [acting(now, tmp_path)]
    report = stage.resume()
    assert report.reason == ("decision" if now == "ask" else "rest")
    assert len(effects(tmp_path)) == 1


@pytest.mark.parametrize(
    ("decision", "runs", "status"), [("retry", 2, "done"), ("skip", 1, None), ("done", 1, None)]
)
def test_a_person_decides_about_an_ask_call(
    decision: Any, runs: int, status: str | None, tmp_path: Path
) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule="ask"))
    stage.tools = [acting("ask", tmp_path)]
    asked = stage.resume()
    assert asked.reason == "decision"
    assert asked.question is not None
    assert asked.question.tool == "act"
    assert stage.take().reason == "decision"
    assert stage.resume().reason == "decision"
    report = stage.resume(decision, "I saw it done.")
    assert report.text == "I know."
    assert len(effects(tmp_path)) == runs
    assert [body.decision for body in stage.bodies(Settled)] == [decision]
    assert ("I saw it done." in json.dumps(context_of(stage))) == (decision == "done")
    outcomes = [body.status for body in stage.bodies(ToolOutcome)]
    assert outcomes == (["unknown"] if status is None else ["unknown", status])


def test_a_decision_that_nobody_asked_for_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"calls": [{"tool": "list", "args": {}}]}, {"text": "."}])
    stage.run(each=lambda agent, _: agent.pause())
    with pytest.raises(UsageError) as refused:
        stage.resume("retry")
    assert refused.value.code == "no_question"


def test_an_interrupted_model_call_is_asked_again_and_said_to_be_unknown(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "At last.", "wait_for": "go-on"}])
    dying = """
from sojourn.format.event import ModelIntent
stage.run(each=lambda agent, event: die() if isinstance(event.body, ModelIntent) else None)
"""
    killed_in_call(stage, dying)
    (tmp_path / "go-on").touch()
    assert stage.resume().text == "At last."
    assert [body.status for body in stage.bodies(ModelOutcome)] == ["unknown", "done"]


def test_a_worker_takes_over_a_turn_whose_process_was_killed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule="safe"))
    stage.tools = [acting("safe", tmp_path)]
    assert stage.take().text == "I know."
    runners = {body.runner for body in stage.bodies(TurnTaken)}
    assert len(runners) == 2


def test_a_torn_tail_is_cut_kept_and_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule="report"))
    with stage.timeline().open("ab") as file:
        file.write(b'{"body":{"half')
    assert stage.verify() == ["torn_tail"]
    assert stage.resume().reason == "rest"
    (cut,) = stage.bodies(Cut)
    blob = stage.capsule / "artifacts/blobs" / cut.blob.sha256
    assert blob.read_bytes() == b'{"body":{"half'
    assert stage.verify() == []


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda data: data.replace(b'"go"', b'"no"', 1), "body_altered"),
        (lambda data: data[:200] + bytes(100) + data[300:], "nul_bytes"),
        (lambda data: data.replace(b"}\n{", b"}{", 1), "glued_lines"),
    ],
)
def test_damage_is_named_and_stops_running_but_not_looking(
    damage: Any, code: str, tmp_path: Path
) -> None:
    stage = Stage(tmp_path, [{"text": "One."}])
    stage.run()
    before = damage(stage.timeline().read_bytes())
    stage.timeline().write_bytes(before)
    with pytest.raises(FormatError):
        stage.run("again")
    assert code in stage.verify()
    assert stage.machine.look(stage.make()).events > 0
    assert stage.timeline().read_bytes() == before


def test_a_copied_capsule_opens_for_reading_and_says_why_it_does_not_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}])
    stage.run()
    shutil.copytree(stage.capsule, tmp_path / "copy")
    machine = stage.machine
    place = machine.find(str(tmp_path / "copy"))
    assert machine.look(place).events == 9
    with pytest.raises(HeldElsewhereError) as refused:
        asyncio.run(open_and_close(stage, place))
    assert refused.value.code == "copied"
    assert stage.run("still here").reason in ("rest", "model")


async def open_and_close(stage: Stage, place: Any) -> None:
    async with stage.machine.hold(place):
        pass


def test_a_capsule_that_was_moved_in_its_file_system_goes_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Two."}])
    stage.run()
    stage.capsule.rename(tmp_path / "elsewhere")
    place = stage.machine.find(str(tmp_path / "elsewhere"))

    async def inside() -> str:
        async with stage.machine.hold(place) as agent:
            return (await agent.run("go")).text

    assert asyncio.run(inside()) == "Two."


def test_a_capsule_that_was_rolled_back_does_not_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Two."}])
    stage.run()
    shutil.copytree(stage.capsule, tmp_path / "backup")
    stage.run("again")
    shutil.rmtree(stage.capsule)
    shutil.copytree(tmp_path / "backup", stage.capsule)
    with pytest.raises(SojournError) as refused:
        stage.run("more")
    assert refused.value.code == "rolled_back"


def test_another_machine_may_look_and_not_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}])
    stage.run()
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(HeldElsewhereError) as refused:
        stage.run("again")
    assert refused.value.code == "not_held_here"


def test_a_hand_edit_of_the_memory_is_an_event_and_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Two."}])
    stage.run()
    (stage.capsule / "memory/working_memory.md").write_text("# Mine\n")
    stage.run("again")
    edit = stage.bodies(Memory)[-1]
    assert (edit.origin, edit.text) == ("hand", "# Mine\n")
    assert "# Mine" in json.dumps(context_of(stage))
    assert stage.verify() == []


def test_a_stale_memory_is_written_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Two."}, {"text": "Three."}])
    memory = stage.capsule / "memory/working_memory.md"
    stage.run()
    first = memory.read_text()
    memory.write_text("# Mine\n")
    stage.run("again")
    memory.write_text(first)
    stage.run("more")
    assert memory.read_text() == "# Mine\n"
    assert [body.origin for body in stage.bodies(Memory)] == ["created", "hand"]


def test_a_change_of_the_environment_is_an_event(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Two."}])
    stage.run()
    spec = stage.capsule / "environment/spec.json"
    spec.write_text(json.dumps({"format": "sojourn.environment/1", "env": {"LANG": "C"}}))
    (stage.capsule / "environment/uv.lock").write_text("lock")
    stage.run("again")
    changed = stage.bodies(EnvironmentChanged)[-1]
    assert [file.path for file in changed.files] == ["environment/spec.json", "environment/uv.lock"]
    assert stage.verify() == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_failed_write_stops_the_turn_with_memory_and_disk_equal(
    operation: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, [{"calls": [{"tool": "list", "args": {}}]}, {"text": "Done."}])
    stage.make()
    good = getattr(OsDisk, operation)
    left = [6]

    def failing(self: OsDisk, *args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        return good(self, *args, **options)

    monkeypatch.setattr(OsDisk, operation, failing)
    with pytest.raises(StorageError):
        stage.run()
    monkeypatch.setattr(OsDisk, operation, good)
    assert stage.verify() in ([], ["torn_tail"])
    assert stage.run(None).reason in ("rest", "idle")
    if not stage.bodies(Input):
        assert stage.run().reason == "rest"
    assert stage.verify() == []


def context_of(stage: Stage) -> object:
    place = stage.make()

    async def inside() -> object:
        async with stage.machine.hold(place, tools=stage.tools) as agent:
            return agent.context().payload

    return asyncio.run(inside())
