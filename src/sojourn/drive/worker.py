"""Takes turns from the queue whose worker is gone (docs/protocol.md#queue)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sojourn.drive.machine import Ports
from sojourn.errors import SojournError
from sojourn.ids import CapsuleId
from sojourn.ports import Job

Taken: TypeAlias = Literal["took", "nothing", "left"]
"""What became of a job: a turn was run until it rested, there was none, or it was left open."""

HELD_SECONDS = 0.5
"""How soon a capsule that another process holds is looked at again, while watching."""

ELSEWHERE = ("held_elsewhere", "frozen", "in_doubt")
"""A job of a capsule that another process holds, or that is being moved, waits in silence."""

FAILED_SECONDS = 30.0
"""How soon a job that could not be run is tried again, while watching."""


@dataclass(slots=True, kw_only=True)
class Worker:
    """Runs jobs; `take` runs the open turn of a job's capsule, and says whether there was one.

    `failed` is told of a job that could not be run; the job stays in the queue.
    """

    ports: Ports
    name: str
    take: Callable[[Job], Awaitable[Taken]]
    failed: Callable[[Job, SojournError], None]
    wanted: Callable[[CapsuleId], bool]
    _later: dict[CapsuleId, float] = field(default_factory=dict[CapsuleId, float])

    async def run(self, *, watch: bool, stop: asyncio.Event) -> int:
        """Run until the queue holds nothing that can be run here, or until `stop`; turns run."""
        turns = 0
        while not stop.is_set():
            job = self._next(watch=watch)
            if job is not None:
                turns += await self._run(job)
            elif watch:
                await self._wait(stop)
            else:
                break
        return turns

    def _next(self, *, watch: bool) -> Job | None:
        now = self.ports.clock.monotonic()
        for job in self.ports.queue.jobs():
            not_before = self._later.get(job.capsule)
            passed = not_before is not None and (not watch or now < not_before)
            if passed or not self.wanted(job.capsule):
                continue
            leased = self.ports.queue.lease(job.capsule, self.name, is_free=self._is_free)
            if leased is not None:
                return leased
            self._later[job.capsule] = now + HELD_SECONDS
        return None

    def _is_free(self, capsule: CapsuleId) -> bool:
        return self.ports.lock.holder(capsule) is None

    async def _run(self, job: Job) -> int:
        try:
            took = await self.take(job)
        except SojournError as error:
            held = error.code in ELSEWHERE
            seconds = HELD_SECONDS if held else FAILED_SECONDS
            self._later[job.capsule] = self.ports.clock.monotonic() + seconds
            if error.code == "moved_away":
                # Its turn goes on at the machine that has it now.
                self.ports.queue.ack(job)
            elif not held:
                self.failed(job, error)
            return 0
        if took == "left":
            return 1
        self.ports.queue.ack(job)
        self._later.pop(job.capsule, None)
        return int(took == "took")

    async def _wait(self, stop: asyncio.Event) -> None:
        """Until the queue changes, `stop` is set, or it is time to look at locks again."""
        waiting = asyncio.ensure_future(self.ports.queue.wait_for_change(HELD_SECONDS))
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        stopping.cancel()
        await asyncio.wait((waiting, stopping))
