"""Finds processes on this host and ends them for good."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

HAS_PROC: Final = os.path.exists("/proc/self/stat")
KILL_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """One living process; `start` tells it from a later one with the same number.

    `sid` is the number of the leader of its terminal session, which it keeps unless it leaves that.
    """

    pid: int
    parent: int
    group: int
    sid: int
    start: int


def process(pid: int) -> Process | None:
    """The process of that number, None when there is none or it has exited (zombies too)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The command's name, in parentheses, may hold anything, parentheses too.
    fields = stat[stat.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X", b"x"):
        return None
    parent, group, sid = map(int, fields[1:4])
    return Process(pid, parent, group, sid, int(fields[19]))


def everyone() -> list[Process]:
    """Every living process that this one may see."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [found for pid in pids if (found := process(pid)) is not None]


def with_descendants(found: Iterable[Process], among: list[Process]) -> list[Process]:
    """Those found and all that descend from them."""
    family = {one.pid: one for one in found}
    grown = True
    while grown:
        more = [one for one in among if one.parent in family and one.pid not in family]
        family.update((one.pid, one) for one in more)
        grown = bool(more)
    return list(family.values())


def own_line(among: list[Process]) -> set[int]:
    """The numbers of this process and of all above it."""
    parents = {one.pid: one.parent for one in among}
    line = {pid := os.getpid()}
    while (pid := parents.get(pid, 0)) and pid not in line:
        line.add(pid)
    return line


class Grip:
    """A sure hold on a process: what is signalled is never another of the same number."""

    def __init__(self, target: Process) -> None:
        self.target = target
        self.refused = False
        try:
            self.fd = os.pidfd_open(target.pid)
        except OSError:
            self.fd = -1
        now = process(target.pid)
        if now is None or now.start != target.start:
            self.close()

    def signal(self, number: int) -> None:
        """Send it, unless the process is gone."""
        if self.fd < 0:
            return
        try:
            signal.pidfd_send_signal(self.fd, number)
        except PermissionError:
            self.refused = True
        except ProcessLookupError:
            self.close()

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def end_all(find: Callable[[], list[Process]], *, child: int = 0) -> tuple[set[int], set[int]]:
    """Kill what `find` finds until it finds no more: (the ended, those that cannot be).

    `child` is reaped by the caller; other children of this process, which only an init gets, here.
    """
    until = time.monotonic() + KILL_SECONDS
    ended: set[int] = set()
    alive: set[int] = set()
    while found := [one for one in find() if one.pid not in alive]:
        grips = [Grip(one) for one in found]
        for grip in grips:
            grip.signal(signal.SIGKILL)
        alive |= {grip.target.pid for grip in grips if grip.refused}
        _wait([grip for grip in grips if not grip.refused], until)
        for grip in grips:
            grip.close()
        ended |= {one.pid for one in found} - alive
        if time.monotonic() > until:
            still = {one.pid for one in find()}
            return ended - still, still
        _reap(found, child)
    return ended, alive


def _wait(grips: list[Grip], until: float) -> None:
    """Until all have exited; the kernel says so on the descriptors."""
    poll = select.poll()
    waiting = {grip.fd for grip in grips if grip.fd >= 0}
    for fd in waiting:
        poll.register(fd, select.POLLIN)
    while waiting and (left := until - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000):
            poll.unregister(fd)
            waiting.discard(fd)


def _reap(found: list[Process], child: int) -> None:
    for one in found:
        if one.parent == os.getpid() and one.pid != child:
            with suppress(ChildProcessError):
                os.waitpid(one.pid, os.WNOHANG)


def start_of(pid: int) -> str:
    """When a process started, in words that differ for another of the same number."""
    if HAS_PROC:
        found = process(pid)
        return "" if found is None else str(found.start)
    asked = ["/bin/ps", "-o", "lstart=", "-p", str(pid)]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
