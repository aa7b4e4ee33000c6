"""The work that every contender does, and the meter that times it.

Standard library only, since each contender's script imports it from its own environment.

A step is one model call and one tool call with their results: a reply of 1 KiB (text and the
arguments of one tool call) and a result of 1 KiB. Both functions return at once, so all the time
between two model calls is the contender's own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import string
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

TEXT_BYTES = 768
ARGUMENT_BYTES = 256
RESULT_BYTES = 1024
CONTENT_BYTES = TEXT_BYTES + ARGUMENT_BYTES + RESULT_BYTES
"""Content of one step, in bytes: what any durable record has to hold."""

TOOL_NAME = "lookup"
PROMPT = "Look the numbers up, one after the other."

_FILL = "".join(random.Random(1).choices(string.ascii_letters + string.digits + " ", k=2048))
_DISK_CHECK_EVERY = 100


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One model reply: text and the source text of one tool call's arguments."""

    text: str
    arguments: str


def reply_of(step: int) -> Reply:
    """Return the model's reply at a step, `TEXT_BYTES` and `ARGUMENT_BYTES` long."""
    mark = f"{step:08d} "
    frame = len('{"query":""}')
    argument = (mark + _FILL)[: ARGUMENT_BYTES - frame]
    return Reply(text=(mark + _FILL)[:TEXT_BYTES], arguments=f'{{"query":"{argument}"}}')


def result_of(step: int) -> str:
    """Return the tool's result at a step, `RESULT_BYTES` long."""
    return (f"{step:08d} " + _FILL)[:RESULT_BYTES]


def folder_bytes(folder: Path) -> int:
    """Return the sum of the sizes of all files below a folder, in bytes."""
    total = 0
    for entry in folder.rglob("*"):
        try:
            total += entry.lstat().st_size if not entry.is_dir() else 0
        except FileNotFoundError:  # a journal may go while we look
            continue
    return total


class Meter:
    """Takes the time at each model call and says when the run is over.

    Step i lasts from model call i to model call i+1, so n steps need n+1 calls. The run is over
    when the steps are done, or at the limit of time or disk, which the result then names.
    """

    def __init__(self, *, steps: int, seconds: float, megabytes: float, folder: Path) -> None:
        self._steps = steps
        self._seconds = seconds
        self._megabytes = megabytes
        self._folder = folder
        self._marks: list[int] = []
        self._cpu: list[int] = []
        self._capped: str | None = None

    def another_step(self) -> bool:
        """Note that the model was called, and return whether it should ask for a tool."""
        self._marks.append(time.perf_counter_ns())
        self._cpu.append(time.process_time_ns())
        done = len(self._marks) - 1
        if done >= self._steps:
            return False
        if (self._marks[-1] - self._marks[0]) / 1e9 > self._seconds:
            self._capped = f"{self._seconds:g} s"
        elif done and done % _DISK_CHECK_EVERY == 0 and self._disk_is_full():
            self._capped = f"{self._megabytes:g} MB"
        return self._capped is None

    def _disk_is_full(self) -> bool:
        return folder_bytes(self._folder) / 1e6 > self._megabytes

    def result(self) -> dict[str, object]:
        """Return what was measured: steps done, seconds in all, microseconds a step.

        `cpu_us` is the mean of this process's own processor time, kernel included.
        """
        lasted = [
            (after - before) / 1e3
            for before, after in zip(self._marks, self._marks[1:], strict=False)
        ]
        tenth = max(1, len(lasted) // 10)
        return {
            "steps": len(lasted),
            "total_s": sum(lasted) / 1e6,
            "median_us": statistics.median(lasted),
            "mean_us": statistics.fmean(lasted),
            "cpu_us": (self._cpu[-1] - self._cpu[0]) / 1e3 / len(lasted),
            "first_tenth_us": statistics.median(lasted[:tenth]),
            "last_tenth_us": statistics.median(lasted[-tenth:]),
            "capped": self._capped,
        }


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the benchmark asks of a contender's script."""

    verb: str
    folder: Path
    steps: int
    seconds: float
    megabytes: float
    log_bytes: int

    def line_bytes(self, line: int) -> int:
        """Return the bytes of a line, from 0, of two a step which together are `log_bytes`."""
        size, rest = divmod(self.log_bytes, 2 * self.steps)
        return size + (line < rest)

    def meter(self) -> Meter:
        """Return a meter with this order's limits."""
        return Meter(
            steps=self.steps, seconds=self.seconds, megabytes=self.megabytes, folder=self.folder
        )


def read_order(arguments: list[str] | None = None) -> Order:
    """Parse a contender's command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["run", "load", "render"])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--megabytes", type=float, default=4000.0)
    parser.add_argument("--log-bytes", type=int, help="what a log of these steps takes")
    found = parser.parse_args(arguments)
    return Order(
        verb=found.verb,
        folder=found.folder,
        steps=found.steps,
        seconds=found.seconds,
        megabytes=found.megabytes,
        log_bytes=found.log_bytes or found.steps * CONTENT_BYTES,
    )


def say(measured: dict[str, object]) -> None:
    """Print one line of JSON, which is all that the benchmark reads."""
    sys.stdout.write(json.dumps(measured) + "\n")
    sys.stdout.flush()


def die(measured: dict[str, object]) -> NoReturn:
    """Print the result and end at once, as a process that is killed in a model call does."""
    say(measured)
    os._exit(0)


class Stopwatch:
    """Times a load: from the opening of the store until the model is asked again."""

    def __init__(self, *, imported_ms: float) -> None:
        self._imported_ms = imported_ms
        self._began = time.perf_counter_ns()
        self._ready: dict[str, object] | None = None

    def ready(self, *, steps: int) -> None:
        """Note that the state is back, with so many whole steps in it (only the first counts)."""
        if self._ready is not None:
            return
        self._ready = {
            "steps": steps,
            "load_ms": (time.perf_counter_ns() - self._began) / 1e6,
            "import_ms": self._imported_ms,
        }

    def result(self) -> dict[str, object]:
        """Return what was measured.

        Raises:
            RuntimeError: the state never came back.
        """
        if self._ready is None:
            raise RuntimeError("the model was never asked again")
        return self._ready


def main(
    began: float,
    *,
    run: Callable[[Order], None],
    load: Callable[[Order, Stopwatch], Mapping[str, object] | None],
    render: Callable[[Order], None] | None = None,
) -> None:
    """Carry out the order; `began` is `time.perf_counter()` from before the heavy imports.

    `load` may return more to say than the time that it took.
    """
    imported_ms = (time.perf_counter() - began) * 1e3
    order = read_order()
    order.folder.mkdir(parents=True, exist_ok=True)
    if order.verb == "run":
        run(order)
        return
    if order.verb == "render":
        if render is None:
            raise RuntimeError("nothing to render")
        render(order)
        return
    watch = Stopwatch(imported_ms=imported_ms)
    more = load(order, watch)
    say({**watch.result(), **(more or {})})
