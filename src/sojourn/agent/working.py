"""Taking the turns that wait on a machine, and keeping the queue of them right."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sojourn.agent.places import Place, known_places, place_at
from sojourn.drive.observe import Observer
from sojourn.drive.worker import Taken, Worker
from sojourn.errors import SojournError
from sojourn.ids import CapsuleId
from sojourn.ports import Job

if TYPE_CHECKING:
    from sojourn.agent.machine import Machine


async def work(
    machine: "Machine",
    *,
    watch: bool,
    observer_for: Callable[[Place], Observer],
    stop: asyncio.Event,
    failed: Callable[[Place, SojournError], None],
    places: Sequence[Place] = (),
) -> int:
    """Run turns whose worker is gone, until idle or `stop` (`watch`); returns their number.

    A capsule that somebody asks for is left alone meanwhile.
    """
    ports = machine.ports
    only = {place.capsule for place in places}

    async def take(job: Job) -> Taken:
        place = place_at(ports, job.folder)
        async with machine.hold(place, observer=observer_for(place)) as agent:
            stopping = asyncio.ensure_future(stop.wait())
            stopping.add_done_callback(lambda _: agent.leave() if stop.is_set() else None)
            try:
                report = await agent.take()
            finally:
                stopping.cancel()
            if report.hint:
                agent.note(report.hint)
        if report.reason in ("left", "released"):
            return "left"
        return "took" if report.model_calls else "nothing"

    def wanted(capsule: CapsuleId) -> bool:
        return (not only or capsule in only) and ports.release.asked(capsule) is None

    worker = Worker(
        ports=ports,
        name=machine.worker,
        take=take,
        failed=lambda job, error: failed(place_at(ports, job.folder), error),
        wanted=wanted,
    )
    return await worker.run(watch=watch, stop=stop)


def rebuild_queue(machine: "Machine", *, lost: bool) -> None:
    """One job for each waiting capsule and, when the queue was `lost`, for each open turn."""
    ports = machine.ports
    queued = {job.capsule for job in ports.queue.jobs()}
    for place in known_places(ports):
        if not place.capsule or place.capsule in queued:
            continue
        waits = bool(ports.inbox.items(place.capsule))
        if waits or (lost and machine.look(place).state.turn is not None):
            ports.queue.put(place.capsule, place.folder)
