"""What every queue must do, as rules to run on it.

Each rule gets a function that opens the queue anew, as another process would; the queue is the
rule's own and empty at first. Every rule raises AssertionError with what is wrong.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from sojourn.ids import CapsuleId
from sojourn.ports import Job, Queue
from sojourn.testing.conformance.demands import demand, demand_equal

OpenQueue: TypeAlias = Callable[[], Queue]
QueueRule: TypeAlias = Callable[[OpenQueue], Awaitable[None]]

ONE: Final = CapsuleId("1" * 64)
TWO: Final = CapsuleId("2" * 64)

_SOON: Final = 0.05
_LONG: Final = 30.0


def _free(capsule: CapsuleId) -> bool:
    del capsule
    return True


def _busy(capsule: CapsuleId) -> bool:
    del capsule
    return False


def leased(queue: Queue, worker: str, *, free: bool = False) -> Job:
    """The job of the first capsule, taken by a worker.

    Raises: AssertionError when it is not to be had.
    """
    job = queue.lease(ONE, worker, is_free=_free if free else _busy)
    if job is None:
        raise AssertionError(f"{worker} did not get the job")
    return job


async def keeps_one_job_a_capsule(open_queue: OpenQueue) -> None:
    """Putting again is no second job; the folder is where the capsule was seen last."""
    for folder in ("/a", "/a", "/b"):
        open_queue().put(ONE, folder)
    open_queue().put(TWO, "/c")
    jobs = {job.capsule: job.folder for job in open_queue().jobs()}
    demand_equal(jobs, {ONE: "/b", TWO: "/c"}, "the jobs")
    demand_equal(len(open_queue().jobs()), 2, "the number of jobs")


async def gives_a_job_to_one_worker(open_queue: OpenQueue) -> None:
    """And to the same one again; there is nothing to take where nothing was put."""
    queue = open_queue()
    demand_equal(queue.lease(ONE, "w1", is_free=_free), None, "a job that nobody put")
    queue.put(ONE, "/a")
    demand_equal(leased(queue, "w1").worker, "w1", "the worker")
    demand_equal(leased(queue, "w1").folder, "/a", "the folder")
    demand_equal(open_queue().lease(ONE, "w2", is_free=_busy), None, "a job at work elsewhere")


async def lets_a_dead_workers_job_be_taken_over(open_queue: OpenQueue) -> None:
    """At once, when the capsule's lock is free; the dead one's word counts no more."""
    queue = open_queue()
    queue.put(ONE, "/a")
    old = leased(queue, "w1")
    new = leased(open_queue(), "w2", free=True)
    queue.ack(old)
    demand_equal([job.worker for job in queue.jobs()], ["w2"], "the workers of the jobs")
    queue.ack(new)
    demand_equal(queue.jobs(), (), "the jobs")


async def forgets_a_job_that_was_done(open_queue: OpenQueue) -> None:
    """And only that one."""
    queue = open_queue()
    queue.put(ONE, "/a")
    queue.put(TWO, "/b")
    queue.ack(leased(queue, "w1"))
    demand_equal([job.capsule for job in open_queue().jobs()], [TWO], "the jobs")


async def loses_no_wake_up(open_queue: OpenQueue) -> None:
    """What is put while a worker is at work is done after it."""
    queue = open_queue()
    queue.put(ONE, "/a")
    job = leased(queue, "w1")
    open_queue().put(ONE, "/a")
    queue.ack(job)
    demand_equal([job.worker for job in open_queue().jobs()], [None], "the workers of the jobs")
    queue.ack(leased(open_queue(), "w2"))
    demand_equal(open_queue().jobs(), (), "the jobs")


async def wakes_who_waits(open_queue: OpenQueue) -> None:
    """By a job that another process puts; and not without any change."""
    queue = open_queue()
    demand(not await queue.wait_for_change(_SOON), "woken by nothing")
    waiting = asyncio.create_task(queue.wait_for_change(_LONG))
    await asyncio.sleep(0)
    open_queue().put(ONE, "/a")
    async with asyncio.timeout(_LONG):
        demand(await waiting, "not woken by a job")


QUEUE_RULES: Final[tuple[QueueRule, ...]] = (
    keeps_one_job_a_capsule,
    gives_a_job_to_one_worker,
    lets_a_dead_workers_job_be_taken_over,
    forgets_a_job_that_was_done,
    loses_no_wake_up,
    wakes_who_waits,
)
