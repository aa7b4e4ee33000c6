"""A capsule, a scripted model and what is needed to run an agent for real in a test."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sojourn import Agent, Machine, Report
from sojourn.agent import Place, Unwatched
from sojourn.format.event import AnyBody, Event

Steps = Sequence[dict[str, Any]]
KINDS_OF_A_NEW_CAPSULE = ("created", "environment_changed", "memory", "configured")


@dataclass
class Stage:
    """One folder with everything in it; `steps` is the model's script."""

    folder: Path
    steps: Steps
    tools: Sequence[Any] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rewrite(self.steps)
        (self.folder / "workspace").mkdir(exist_ok=True)

    def rewrite(self, steps: Steps) -> None:
        """Give the model another script."""
        script = {"ledger": "ledger.jsonl", "steps": list(steps)}
        (self.folder / "script.json").write_text(json.dumps(script))

    @property
    def machine(self) -> Machine:
        """This machine, opened anew each time as a new process would."""
        return Machine(
            {
                "PATH": os.environ["PATH"],
                "SOJOURN_HOME": str(self.folder / "state"),
                **self.environment,
            }
        )

    @property
    def model(self) -> str:
        return f"scripted/{self.folder / 'script.json'}"

    @property
    def capsule(self) -> Path:
        return self.folder / "capsule"

    def make(self) -> Place:
        """The capsule, made first when it is not there."""
        if self.capsule.exists():
            return self.machine.find(str(self.capsule))
        return asyncio.run(
            self.machine.create(
                str(self.capsule), model=self.model, workspace=str(self.folder / "workspace")
            )
        )

    def run(
        self,
        text: str | None = "go",
        *,
        each: Callable[[Agent, Event], None] | None = None,
        **options: Any,
    ) -> Report:
        """Send `text` and run; `each` sees every durable event and may interfere."""
        return self._do(lambda agent: agent.run(text, **options), each)

    def resume(self, *args: Any, pausing: bool = False, **options: Any) -> Report:
        """Go on with the open turn, as a new process would; `pausing`: to the next safe point."""

        def go_on(agent: Agent) -> Any:
            if pausing:
                agent.pause()
            return agent.resume(*args, **options)

        return self._do(go_on, None)

    def take(self) -> Report:
        """Run what waits, as a worker does."""
        return self._do(lambda agent: agent.take(), None)

    def _do(self, action: Callable[[Agent], Any], each: Any) -> Report:
        place = self.make()

        async def inside() -> Report:
            watcher = _Watcher(each)
            async with self.machine.hold(place, tools=self.tools, observer=watcher) as agent:
                watcher.agent = agent
                report: Report = await action(agent)
                return report

        return asyncio.run(inside())

    def events(self) -> list[Event]:
        return list(self.machine.look(self.make()).events_of())

    def kinds(self) -> list[str]:
        """The kinds of all events but those of a new capsule."""
        return [event.header.kind for event in self.events()][len(KINDS_OF_A_NEW_CAPSULE) :]

    def bodies(self, *kinds: type[AnyBody]) -> list[Any]:
        return [event.body for event in self.events() if isinstance(event.body, kinds)]

    def verify(self) -> list[str]:
        return [found.code for found in self.machine.verify(self.make())]

    def model_calls(self) -> int:
        """Calls that the model itself counted, outside the agent."""
        ledger = self.folder / "ledger.jsonl"
        return len(ledger.read_text().splitlines()) if ledger.exists() else 0

    def timeline(self) -> Path:
        return self.capsule / "memory/timeline_events.jsonl"


class _Watcher(Unwatched):
    def __init__(self, each: Any) -> None:
        self.agent: Agent | None = None
        self._each = each

    def event(self, event: Event) -> None:
        if self._each is not None and self.agent is not None:
            self._each(self.agent, event)


def killed_in_call(stage: Stage, code: str) -> None:
    """Run `code` in a process that kills itself; it finds `stage_run(tools)` ready to call."""
    stage.make()
    program = f"""
import os, signal, sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from pathlib import Path
from stage import Stage
from sojourn import ToolContext, tool
stage = Stage(Path({str(stage.folder)!r}), {list(stage.steps)!r})
def die():
    os.kill(os.getpid(), signal.SIGKILL)
{code}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    if done.returncode != -signal.SIGKILL:
        raise AssertionError(f"it was not killed: {done.stderr.decode()}")
