"""Runs programs on this host, unconfined, and leaves none of them behind.

A program has a process group of its own. It is started only when its number is recorded, so a
worker that dies at any moment leaves either nothing or something that the next one finds
(docs/tools.md#processes).
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from sojourn.errors import CallError, HeldElsewhereError, UsageError
from sojourn.ids import CallKey, CapsuleId
from sojourn.ports import Ran
from sojourn.sandboxes.marks import (
    is_marked,
    mark_limit,
    marked_environment,
    passed_environment,
)
from sojourn.sandboxes.pipes import Drain, Feed, exit_of, when_exited
from sojourn.sandboxes.processes import (
    HAS_PROC,
    Grip,
    Process,
    end_all,
    everyone,
    own_line,
    start_of,
    with_descendants,
)
from sojourn.sandboxes.records import RunRecord, RunRecords

SETTLE_SECONDS: Final = 0.2
"""How long after a program's end others may need to end by themselves, as in `> >(tee x)`."""

GRACE_SECONDS: Final = 2.0
"""Between asking a program to end and ending it."""

REAP_SECONDS: Final = 1.0

# The first line of the input opens the gate; a worker that dies before closes the pipe instead.
GATE: Final = ("/bin/sh", "-c", 'IFS= read -r _ || exit 125; exec "$@"', "sojourn-gate")
OPEN: Final = b"go\n"


class HostSandbox:
    """Programs of one capsule's calls; `runs` is a folder of the machine's state.

    Of `environment` (this process's by default) programs see the names in `marks.PASSED`, those
    that begin with LC_, and `allow`.

    Raises: UsageError `secret_allowed`.
    """

    def __init__(
        self,
        *,
        capsule: CapsuleId,
        runs: Path,
        boot: str,
        environment: Mapping[str, str] | None = None,
        allow: Sequence[str] = (),
    ) -> None:
        self._capsule = capsule
        self._boot = boot
        self._records = RunRecords(runs)
        given = os.environ if environment is None else environment
        self._environment = passed_environment(given, allow)
        self._running: set[CallKey] = set()

    async def run(
        self,
        command: Sequence[str],
        *,
        key: CallKey,
        cwd: str,
        environment: Mapping[str, str],
        stdin: bytes = b"",
        seconds: float,
        on_output: Callable[[bytes], None],
    ) -> Ran:
        """Run to the end, output and errors in one stream; then nothing of it is alive.

        At the end, when time is up and when cancelled, what still runs is asked to end (TERM), and
        after `GRACE_SECONDS` ended (KILL), double forks and their like included.

        Raises: StorageError when it could not be recorded, CallError `not_started`; in both cases
        nothing ran.
        """
        if key in self._running:
            raise UsageError("this call runs already", code="call_running")
        marks = marked_environment(self._capsule, key)
        program = _Program(command, cwd, {**self._environment, **environment, **marks}, on_output)
        self._running.add(key)
        try:
            self._admit(program, key)
            program.feed.start(OPEN + stdin)
            in_time = await program.ended_in(seconds)
        except BaseException:
            program.feed.close()
            await self._end(program, key, settle=False)
            raise
        else:
            background = await self._end(program, key, settle=in_time)
            program.drain.rest()
        finally:
            program.close()
            self._running.discard(key)
        return Ran(status=program.status if in_time else None, ended=background)

    def _admit(self, program: "_Program", key: CallKey) -> None:
        """Mark and record the process that waits at the gate.

        Raises: StorageError.
        """
        pid = program.child.pid
        mark_limit(pid, self._capsule, key)
        start = start_of(pid)
        program.since = int(start) if start.isdigit() else 0
        self._records.write(
            RunRecord(boot=self._boot, call=key, capsule=self._capsule, pid=pid, start=start)
        )

    async def _end(self, program: "_Program", key: CallKey, *, settle: bool) -> int:
        """End what is alive of the call; how many processes that were, the program aside."""
        pid = program.child.pid

        def alive() -> list[Process]:
            return self._of_call(pid, key, program.since)

        found = alive()
        try:
            if found and settle:
                await _gone(found, SETTLE_SECONDS)
                found = alive()
            background = sum(one.pid != pid for one in found)
            if found:
                await _gone(found, GRACE_SECONDS, signal.SIGTERM)
        finally:
            # Not awaited: when a second cancellation comes, everything is ended all the same.
            if not HAS_PROC:
                _kill_group(pid)
            elif found:
                end_all(alive, child=pid)
            if program.reaped():
                self._records.remove(key)
        return background

    def _of_call(self, pid: int, key: CallKey, since: int) -> list[Process]:
        if not HAS_PROC:
            return []
        among = everyone()
        found = [
            one
            for one in among
            if one.start >= since and (one.sid == pid or is_marked(one.pid, self._capsule, key))
        ]
        return self._unspared(found, among)

    def _unspared(self, found: list[Process], among: list[Process]) -> list[Process]:
        """With all that descends from them; never this process, nor those that it runs under.

        If it was itself started by a call, its own programs look like that call's.
        """
        line = own_line(among)
        own = [one for one in among if one.pid == os.getpid() and is_marked(one.pid, self._capsule)]
        spared = line | {one.pid for one in with_descendants(own, among)}
        kept = [one for one in found if one.pid not in spared]
        return [one for one in with_descendants(kept, among) if one.pid not in spared]

    def end_left_behind(self) -> tuple[int, ...]:
        """End at once every process that calls of this capsule left on this host; their pids.

        To be called with the capsule's lock held and before the first call. Only a process group is
        found where there is no /proc.

        Raises: HeldElsewhereError `call_alive` when an unfinished call has a process that may not
        be ended by this user; UsageError while calls run here.
        """
        if self._running:
            raise UsageError("calls of this capsule are running here", code="call_running")
        records = self._records.of(self._capsule)
        if not HAS_PROC:
            ended = {one.pid for one in records if one.start and start_of(one.pid) == one.start}
            for pid in ended:
                _kill_group(pid)
        else:
            ended, alive = end_all(lambda: self._left_behind(records))
            self._refuse_alive(alive, records)
        for record in records:
            self._records.remove(record.call)
        return tuple(sorted(ended))

    def _left_behind(self, records: list[RunRecord]) -> list[Process]:
        among = everyone()
        leaders = {one.pid: one for one in among}

        def recorded(one: Process, record: RunRecord) -> bool:
            """While a session lives its leader's number is not given to another process."""
            leader = leaders.get(record.pid)
            return (
                record.boot == self._boot
                and one.sid == record.pid
                and one.start >= int(record.start or 0)
                and (leader is None or str(leader.start) == record.start)
            )

        found = [
            one
            for one in among
            if is_marked(one.pid, self._capsule) or any(recorded(one, each) for each in records)
        ]
        return self._unspared(found, among)

    def _refuse_alive(self, alive: set[int], records: list[RunRecord]) -> None:
        """A finished call's process that this user may not end was told of; it blocks nothing."""
        blocking = sorted(
            pid
            for pid in alive
            if any(is_marked(pid, self._capsule, record.call) for record in records)
        )
        if blocking:
            named = ", ".join(map(str, blocking))
            raise HeldElsewhereError(
                f"a call that was never finished still has processes: {named}",
                code="call_alive",
                state="Nothing was started. They could not be ended: they belong to another user.",
                hint=f"End them, then try again: sudo kill -9 {named.replace(',', '')}",
            )


class _Program:
    """A started child that waits at the gate, its pipes, and a future of its end.

    `since` is when it started, in the kernel's ticks, 0 until that is known.
    """

    def __init__(
        self,
        command: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None],
    ) -> None:
        self.since = 0
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        input_end, feed_end = os.pipe()
        drain_end, output_end = os.pipe()
        try:
            self.child = subprocess.Popen(
                (*GATE, *command),
                cwd=cwd,
                env=environment,
                stdin=input_end,
                stdout=output_end,
                stderr=output_end,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(feed_end)
            os.close(drain_end)
            raise CallError(f"the program was not started: {error}", code="not_started") from error
        finally:
            os.close(input_end)
            os.close(output_end)
        self.feed = Feed(feed_end)
        self.drain = Drain(drain_end, on_output, self.end)
        self._stop_watching = when_exited(self.child, self.end)

    async def ended_in(self, seconds: float) -> bool:
        """Whether the child has exited before the time was up.

        Raises: what the receiver of its output raised.
        """
        await asyncio.wait({self.end}, timeout=seconds)
        if not self.end.done():
            return False
        self.end.result()
        return True

    def reaped(self) -> bool:
        """Whether it is gone; a program that became another user's (sudo) may not be ended."""
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(REAP_SECONDS)
        return self.child.returncode is not None

    @property
    def status(self) -> int:
        """As a shell has it."""
        code = self.child.wait()
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        self._stop_watching()
        self.feed.close()
        self.drain.close()
        if self.end.done() and not self.end.cancelled():
            # Looked at, so that nobody is told of it once more.
            self.end.exception()


async def _gone(found: list[Process], seconds: float, number: int = 0) -> None:
    """Send the signal, if one is given, and wait until they have exited or time is up."""
    grips = [Grip(one) for one in found]
    try:
        if number:
            for grip in grips:
                grip.signal(number)
        await exit_of([grip.fd for grip in grips if grip.fd >= 0], seconds)
    finally:
        for grip in grips:
            grip.close()


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
