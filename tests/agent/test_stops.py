"""How a run ends before the agent rests: pauses, stops, cancellations."""

import asyncio
from pathlib import Path

import pytest

from agent.stage import Stage
from sojourn import Agent, tool
from sojourn.format.event import Event, ModelIntent, ToolIntent, ToolOutcome, TurnPaused

TALK = [{"text": "Hello."}]
TWO_CALLS = [
    {"calls": [{"tool": "todo", "args": {"items": [{"text": "a"}]}}, {"tool": "list", "args": {}}]},
    {"text": "Done."},
]


def test_a_pause_lets_the_running_call_end_first(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TWO_CALLS)

    def pause(agent: Agent, event: Event) -> None:
        if isinstance(event.body, ToolIntent):
            agent.pause()

    assert stage.run(each=pause).reason == "paused"
    assert stage.kinds()[-2:] == ["tool_outcome", "turn_paused"]
    assert stage.take().reason == "paused"
    assert stage.resume().reason == "rest"
    assert stage.model_calls() == 2


def test_a_pause_during_the_last_reply_is_a_rest(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    report = stage.run(each=lambda agent, _: agent.pause())
    assert report.reason == "rest"


def test_a_stopped_tool_call_is_unknown_and_the_turn_waits(tmp_path: Path) -> None:
    shell = {"tool": "shell", "args": {"command": "touch begun; sleep 60"}}
    stage = Stage(tmp_path, [{"calls": [shell]}, {"text": "I see."}])

    place = stage.make()

    async def inside() -> str:
        async with stage.machine.hold(place) as agent:
            running = asyncio.ensure_future(agent.run("go"))
            while not (tmp_path / "workspace/begun").exists():
                await asyncio.sleep(0.01)
            agent.stop()
            return (await running).reason

    assert asyncio.run(inside()) == "paused"
    (outcome,) = stage.bodies(ToolOutcome)
    assert (outcome.status, outcome.failure.code) == ("unknown", "stopped")
    assert stage.resume().text == "I see."


def test_a_cancelled_run_leaves_a_paused_turn_and_passes_the_cancellation_on(
    tmp_path: Path,
) -> None:
    shell = {"tool": "shell", "args": {"command": "touch begun; sleep 60"}}
    stage = Stage(tmp_path, [{"calls": [shell]}, {"text": "I see."}])

    place = stage.make()

    async def inside() -> None:
        async with stage.machine.hold(place) as agent:
            running = asyncio.ensure_future(agent.run("go"))
            while not (tmp_path / "workspace/begun").exists():
                await asyncio.sleep(0.01)
            running.cancel()
            await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(inside())
    assert [body.reason for body in stage.bodies(TurnPaused)] == ["stopped"]
    assert stage.verify() == []


def test_a_stop_that_comes_too_late_for_its_call_only_pauses_the_turn(tmp_path: Path) -> None:
    held: list[Agent] = []

    @tool(replay="safe")
    async def stopping() -> str:
        """Ask for a stop and end before it can be met."""
        held[0].stop()
        return "done"

    call = {"tool": "stopping", "args": {}}
    stage = Stage(tmp_path, [{"calls": [call, call]}, {"text": "I see."}])
    place = stage.make()

    async def inside() -> tuple[str, int]:
        async with stage.machine.hold(place, tools=[stopping]) as agent:
            held.append(agent)
            report = await agent.run("go")
            await asyncio.sleep(0)
            task = asyncio.current_task()
            return report.reason, -1 if task is None else task.cancelling()

    assert asyncio.run(inside()) == ("paused", 0)
    (outcome,) = stage.bodies(ToolOutcome)
    assert outcome.status == "done"


def test_a_stop_ends_the_call_and_nothing_of_its_caller(tmp_path: Path) -> None:
    held: list[Agent] = []

    @tool(replay="safe")
    async def waiting() -> str:
        """Wait for the stop, without end."""
        asyncio.get_running_loop().call_soon(held[0].stop)
        await asyncio.Event().wait()
        return "never"

    stage = Stage(tmp_path, [{"calls": [{"tool": "waiting", "args": {}}]}, {"text": "I see."}])
    place = stage.make()

    async def inside() -> tuple[str, int]:
        async with stage.machine.hold(place, tools=[waiting]) as agent, asyncio.timeout(60):
            held.append(agent)
            report = await agent.run("go")
            task = asyncio.current_task()
            return report.reason, -1 if task is None else task.cancelling()

    assert asyncio.run(inside()) == ("paused", 0)
    (outcome,) = stage.bodies(ToolOutcome)
    assert (outcome.status, outcome.failure.code) == ("unknown", "stopped")


def test_a_cancelled_run_that_only_has_to_end_passes_the_cancellation_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)

    def cancel(_: Agent, event: Event) -> None:
        task = asyncio.current_task()
        if isinstance(event.body, ModelIntent) and task is not None:
            task.cancel()

    with pytest.raises(asyncio.CancelledError):
        stage.run(each=cancel)
    assert stage.verify() == []


def test_a_cancellation_between_two_calls_pauses_the_turn_there(tmp_path: Path) -> None:
    @tool(replay="safe")
    async def quick() -> str:
        """Answer at once."""
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().call_soon(task.cancel)
        return "done"

    call = {"calls": [{"tool": "quick", "args": {}}]}
    stage = Stage(tmp_path, [call, {"text": "Done."}], tools=[quick])
    with pytest.raises(asyncio.CancelledError):
        stage.run()
    assert stage.kinds()[-2:] == ["tool_outcome", "turn_paused"]


def test_others_get_their_time_though_no_call_ever_waits(tmp_path: Path) -> None:
    @tool(replay="safe")
    async def quick() -> str:
        """Answer at once."""
        return "done"

    call = {"calls": [{"tool": "quick", "args": {}}]}
    stage = Stage(tmp_path, [call, call, {"text": "Done."}], tools=[quick])

    def pause(agent: Agent, event: Event) -> None:
        if isinstance(event.body, ToolIntent):
            asyncio.get_running_loop().call_soon(agent.pause)

    assert stage.run(each=pause).reason == "paused"
    assert stage.kinds()[-2:] == ["tool_outcome", "turn_paused"]
    assert len(stage.bodies(ToolIntent)) == 1
