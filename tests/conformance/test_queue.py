"""The queue in SQLite keeps the rules of a queue; and the rules find queues that break them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.ids import CapsuleId
from sojourn.ports import Job
from sojourn.queues.sqlite import SqliteQueue
from sojourn.store.system import OsClock
from sojourn.testing.conformance import queue as suite
from sojourn.testing.conformance.queue import QUEUE_RULES, QueueRule


def run_rule(rule: QueueRule, path: Path, kind: type[SqliteQueue] = SqliteQueue) -> None:
    opened: list[SqliteQueue] = []

    def open_queue() -> SqliteQueue:
        opened.append(kind(str(path / "queue.sqlite3"), clock=OsClock()))
        return opened[-1]

    try:
        asyncio.run(rule(open_queue))
    finally:
        for queue in opened:
            queue.close()


@pytest.mark.parametrize("rule", QUEUE_RULES)
def test_the_queue_keeps_the_rules(rule: QueueRule, tmp_path: Path) -> None:
    run_rule(rule, tmp_path)


class ForEverybody(SqliteQueue):
    """Gives a job to whoever asks."""

    def lease(
        self, capsule: CapsuleId, worker: str, *, is_free: Callable[[CapsuleId], bool]
    ) -> Job | None:
        del is_free
        return super().lease(capsule, worker, is_free=lambda _: True)


class ForNobodyElse(SqliteQueue):
    """Never takes a job from the dead."""

    def lease(
        self, capsule: CapsuleId, worker: str, *, is_free: Callable[[CapsuleId], bool]
    ) -> Job | None:
        del is_free
        return super().lease(capsule, worker, is_free=lambda _: False)


class Eager(SqliteQueue):
    """Removes a job whatever happened since."""

    def ack(self, job: Job) -> None:
        for current in self.jobs():
            if current.capsule == job.capsule:
                super().ack(current)


class Sleepy(SqliteQueue):
    """Sleeps on."""

    async def wait_for_change(self, seconds: float) -> bool:
        del seconds
        return False


class Restless(SqliteQueue):
    """Wakes for nothing."""

    async def wait_for_change(self, seconds: float) -> bool:
        del seconds
        return True


class OneFolder(SqliteQueue):
    """Keeps the first folder for ever."""

    def put(self, capsule: CapsuleId, folder: str) -> None:
        known = {job.capsule: job.folder for job in self.jobs()}
        super().put(capsule, known.get(capsule, folder))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (ForEverybody, suite.gives_a_job_to_one_worker),
        (ForNobodyElse, suite.lets_a_dead_workers_job_be_taken_over),
        (Eager, suite.lets_a_dead_workers_job_be_taken_over),
        (Eager, suite.loses_no_wake_up),
        (Sleepy, suite.wakes_who_waits),
        (Restless, suite.wakes_who_waits),
        (OneFolder, suite.keeps_one_job_a_capsule),
    ],
)
def test_the_rules_find_a_broken_queue(
    broken: type[SqliteQueue], rule: QueueRule, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError):
        run_rule(rule, tmp_path, broken)
