"""sojourn itself: an agent in a capsule, with a model and a tool that answer at once.

Without options a request is one constant, so what is measured is intents, outcomes, folding, looks
at queue and inbox, appends and syncs. `--render` renders the whole log at each model call, as a
real run does. The third verb, `render`, times the rendering of a capsule's log alone.
"""

# ruff: noqa: E402 - the clock starts before anything is imported

from __future__ import annotations

import sys
import time

BEGAN = time.perf_counter()

import asyncio
import json
import statistics
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path

import msgspec

from sojourn import Agent, Machine, tool
from sojourn.agent import Place
from sojourn.core.view import Prompt
from sojourn.drive import perform
from sojourn.drive.hold import Hold
from sojourn.format.event import Issuer, Options, ToolOutcome
from sojourn.ids import BlobId, CallKey
from sojourn.ports import ServerEvent
from sojourn.render import Kept, Rendered, ReplyReader, Target, dialect
from sojourn.render.profile import profile_for
from sojourn.render.request import Constraints, render_bytes

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from workload import (
    PROMPT,
    TOOL_NAME,
    Order,
    Stopwatch,
    die,
    main,
    reply_of,
    result_of,
    say,
)

RENDER = "--render" in sys.argv
if RENDER:
    sys.argv.remove("--render")

LEAST_RENDERS = 5
RENDER_SECONDS = 3.0


@tool(replay="safe", name=TOOL_NAME)
async def lookup(query: str) -> str:
    """Look a number up."""
    return result_of(int(query[:8]))


class LocalModel:
    """Answers at once: `asked` gives the step to call the tool for, None for the last reply."""

    issuer = Issuer(provider="scripted", api="openai_chat", scope="default", model="local")
    profile = profile_for("scripted", "local")

    def __init__(self, asked: Callable[[], int | None]) -> None:
        self._asked = asked

    async def stream(
        self, payload: Mapping[str, object], *, key: CallKey
    ) -> AsyncGenerator[ServerEvent, None]:
        del payload, key
        step = self._asked()
        if step is None:
            yield _chunk({"content": "Done."}, "stop")
            return
        reply = reply_of(step)
        function = {"name": TOOL_NAME, "arguments": reply.arguments}
        call = {"index": 0, "id": f"c{step}", "function": function}
        yield _chunk({"content": reply.text, "tool_calls": [call]}, "tool_calls")

    async def aclose(self) -> None:
        return None


def _chunk(delta: dict[str, object], finish: str) -> ServerEvent:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    data = msgspec.json.encode({"model": "local", "choices": [choice]})
    return ServerEvent(event="", data=data.decode())


class LocalMachine(Machine):
    """A machine whose models are all the local one."""

    def __init__(self, folder: Path, model: LocalModel) -> None:
        super().__init__({"SOJOURN_HOME": str(folder / "state")})
        self._model = model

    def model(self, name: str) -> LocalModel:
        del name
        return self._model


class ConstantDialect:
    """Reads replies as the dialect does and renders nothing."""

    _rendered = Rendered(
        payload={"model": "local", "messages": []},
        constraints=Constraints(thinking_allowed=True, needs_tools=True),
        losses=(),
    )

    def __init__(self, name: str) -> None:
        self._dialect = dialect(name)

    def reader(self) -> ReplyReader:
        return self._dialect.reader()

    def render(
        self, prompt: Prompt, target: Target, blobs: Mapping[BlobId, bytes], *, kept: Kept
    ) -> Rendered:
        del prompt, target, blobs, kept
        return self._rendered


def leave_rendering_out() -> None:
    """Let every request be one constant: neither the prompt nor the request is made."""
    nothing = Prompt(system="", tools=(), options=Options(), memory="", entries=())

    def no_prompt(self: Hold) -> tuple[Prompt, Mapping[BlobId, bytes]]:
        del self
        return nothing, {}

    Hold.prompt = no_prompt
    perform.dialect = ConstantDialect


def timeline(folder: Path) -> Path:
    return folder / "capsule/memory/timeline_events.jsonl"


def contents(folder: Path) -> dict[str, object]:
    """Return the log's events and bytes, and the bytes of all bodies without their salt."""
    events = size = bare = 0
    with timeline(folder).open("rb") as file:
        for line in file:
            body = json.loads(line)["body"]
            del body["salt"]
            text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
            bare += len(text.encode())
            size += len(line)
            events += 1
    return {"events": events, "timeline_bytes": size, "content_bytes": bare}


async def go(
    machine: Machine, place: Place, text: str | None, opened: Callable[[Agent], None] | None = None
) -> None:
    async with machine.hold(place, tools=[lookup]) as agent:
        if opened is not None:
            opened(agent)
        await agent.run(text, max_model_calls=10**9)


def run(order: Order) -> None:
    """Run until the meter ends the process in the middle of a model call."""
    if not RENDER:
        leave_rendering_out()
    meter, log = order.meter(), timeline(order.folder)
    step, start = -1, 0

    def asked() -> int | None:
        nonlocal step, start
        step += 1
        start = start or log.stat().st_size
        if not meter.another_step():
            die({**meter.result(), "log_bytes": log.stat().st_size - start})
        return step

    machine = LocalMachine(order.folder, LocalModel(asked))

    async def whole() -> None:
        capsule = str(order.folder / "capsule")
        await go(machine, await machine.create(capsule, model="ollama/local"), PROMPT)

    asyncio.run(whole())


def load(order: Order, watch: Stopwatch) -> dict[str, object]:
    """Open in a fresh process; the state is back when the model is asked again."""
    if not RENDER:
        leave_rendering_out()
    steps = 0

    def asked() -> int | None:
        watch.ready(steps=steps)
        return None

    def opened(agent: Agent) -> None:
        nonlocal steps
        steps = agent.state.model_calls - 1

    machine = LocalMachine(order.folder, LocalModel(asked))
    place = machine.find(str(order.folder / "capsule"))
    asyncio.run(go(machine, place, None, opened))
    outcomes = sum(isinstance(event.body, ToolOutcome) for event in machine.look(place).events_of())
    if outcomes != steps:
        raise RuntimeError(f"{outcomes} outcomes in the log, {steps} steps")
    return contents(order.folder)


def render(order: Order) -> None:
    """Time the making of a request from a folded log, and of its bytes, without any call."""
    machine = LocalMachine(order.folder, LocalModel(lambda: None))
    look = machine.look(machine.find(str(order.folder / "capsule")))
    target = Target(issuer=LocalModel.issuer, profile=LocalModel.profile)
    requests: list[float] = []
    encodings: list[float] = []
    size, began = 0, time.perf_counter()
    while len(requests) < LEAST_RENDERS or (
        len(requests) < 100 and time.perf_counter() - began < RENDER_SECONDS
    ):
        before = time.perf_counter()
        rendered = look.context(target)
        made = time.perf_counter()
        size = len(render_bytes(rendered.payload))
        encodings.append(time.perf_counter() - made)
        requests.append(made - before)
    say(
        {
            "steps": sum(isinstance(event.body, ToolOutcome) for event in look.events_of()),
            "render_ms": statistics.median(requests) * 1e3,
            "encode_ms": statistics.median(encodings) * 1e3,
            "request_bytes": size,
            "renders": len(requests),
        }
    )


if __name__ == "__main__":
    main(BEGAN, run=run, load=load, render=render)
