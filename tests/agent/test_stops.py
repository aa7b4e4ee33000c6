"""Stops and cancellations: they end a call, and nothing else."""

import asyncio
from pathlib import Path

import pytest

from agent.stage import Stage
from sojourn import Agent, tool
from sojourn.format.event import (
    Event,
    ModelIntent,
    ToolIntent,
    ToolOutcome,
)


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
    stage = Stage(tmp_path, [{"text": "Hello."}])

    def cancel(_: Agent, event: Event) -> None:
        task = asyncio.current_task()
        if isinstance(event.body, ModelIntent) and task is not None:
            task.cancel()

    with pytest.raises(asyncio.CancelledError):
        stage.run(each=cancel)
    assert stage.verify() == []


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
