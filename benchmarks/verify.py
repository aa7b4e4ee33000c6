"""What strict verification costs: in time against parsing the same lines, and in memory.

benchmarks/README.md says what each row is.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from _env import clean_environment, drop_run_folder, load_average, machine_line, run_folder
from _log import Made, capsule_in, machine_in, make, timeline
from _report import Row, note, put, put_rows, put_table

from sojourn.format.parts import BlobRef
from sojourn.format.timeline_read import Damage, Reader

BENCH = "verify"
LIMIT = "msgspec alone"
GOAL_TIME = 6.0
GOAL_MEGABYTES = 100.0
CHUNK = 1 << 16
MEMORY = "--memory-of"


@dataclass(kw_only=True)
class Timed:
    """Seconds of one way to read the log, by the wall's clock and the processor's."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def against(self, limit: Timed) -> float:
        """Return the median ratio to what was measured in the same round."""
        return statistics.median(
            ours / theirs for ours, theirs in zip(self.wall, limit.wall, strict=True)
        )

    def cpu_against(self, limit: Timed) -> float:
        """Return the same in processor time, which a busy machine changes less."""
        return statistics.median(
            ours / theirs for ours, theirs in zip(self.cpu, limit.cpu, strict=True)
        )


def parse(lines: Iterable[bytes]) -> int:
    """Decode every line to plain values, and check nothing."""
    decode = msgspec.json.decode
    number = 0
    for line in lines:
        decode(line)
        number += 1
    return number


def read_strictly(chunks: Iterable[bytes]) -> int:
    """Read, check and count the log's events."""
    reader = Reader(read_blob=_no_blob)
    number = 0
    for chunk in chunks:
        items = reader.feed(chunk)
        number += len(items)
    ending = reader.finish(same_boot=True)
    items = [*ending.rest, *ending.damages]
    if any(isinstance(item, Damage) for item in items) or ending.torn is not None:
        raise RuntimeError("the log that was made is not sound")
    return number + len(ending.rest)


def _no_blob(ref: BlobRef) -> bytes | None:
    raise RuntimeError(f"the log that was made names a blob: {ref.sha256}")


def look(folder: Path) -> int:
    """Open the capsule for looking: read, check and fold all of it."""
    found = machine_in(folder).look(capsule_in(folder))
    if found.damages or found.torn:
        raise RuntimeError("the capsule that was made is not sound")
    return found.events


def check(folder: Path) -> int:
    """Verify the capsule whole."""
    findings = list(machine_in(folder).verify(capsule_in(folder)))
    if findings:
        raise RuntimeError(f"the capsule that was made is not sound: {findings[0]}")
    return len(findings)


def time_all(folder: Path, *, events: int, rounds: int) -> dict[str, Timed]:
    """Read the same log in every way, each round in another order."""
    data = timeline(folder).read_bytes()
    lines = data.splitlines()
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    ways: dict[str, Callable[[], int]] = {
        LIMIT: lambda: parse(lines),
        "reader": lambda: read_strictly(chunks),
        "look": lambda: look(folder),
        "verify": lambda: events + check(folder),
    }
    timed = {name: Timed() for name in ways}
    for number in range(rounds):
        names = list(ways)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            note(f"{name}, {events} events, round {number + 1}")
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            found = ways[name]()
            timed[name].wall.append(time.perf_counter() - wall)
            timed[name].cpu.append(time.process_time() - cpu)
            if found != events:
                raise RuntimeError(f"{name}: {found} events of {events}")
    return timed


def time_rows(timed: dict[str, Timed], made: Made) -> list[Row]:
    """Print the table, and return the rows, of all ways to read the log."""
    limit = timed[LIMIT]
    rows: list[Row] = []
    lines: list[tuple[str, ...]] = []
    for name, one in timed.items():
        seconds = statistics.median(one.wall)
        ratio = None if name == LIMIT else one.against(limit)
        lines.append(
            (
                name,
                f"{seconds:.2f}",
                f"{seconds / made.events * 1e6:.1f}",
                f"{made.size / seconds / 1e6:.0f}",
                "-" if ratio is None else f"{ratio:.2f}",
                "-" if ratio is None else f"{one.cpu_against(limit):.2f}",
            )
        )
        rows.append(
            Row(
                row=f"{name} {made.events} events",
                value=seconds,
                unit="s",
                against=None if ratio is None else LIMIT,
                ratio=ratio,
                goal=None if ratio is None else GOAL_TIME,
            )
        )
    title = f"{made.events:,} events, {made.size / 1e6:.0f} MB"
    put_table(title, ("", "s", "us an event", "MB/s", "x msgspec", "same, processor"), lines)
    return rows


def resident(name: str) -> float:
    """Return a figure of this process's memory in MB: `VmRSS` now, `VmHWM` at its highest.

    It is read from /proc: what getrusage says of a child includes the parent that started it.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"the kernel does not tell {name}")


def say_memory(folder: Path) -> None:
    """Verify the capsule in this process alone, and print what that took."""
    before, began = resident("VmRSS"), time.perf_counter()
    check(folder)
    seconds = time.perf_counter() - began
    put(json.dumps({"seconds": seconds, "before": before, "peak": resident("VmHWM")}))


def memory_rows(folder: Path, made: Made) -> list[Row]:
    """Verify the capsule in a fresh process; print the table and return the rows."""
    note(f"verify, {made.size / 1e6:.0f} MB, memory")
    ended = subprocess.run(
        [sys.executable, __file__, MEMORY, str(folder)],
        check=True,
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    answer = json.loads(ended.stdout)
    peak, seconds = answer["peak"], answer["seconds"]
    size = f"{made.size / 1e6:.0f} MB"
    cells = (f"{answer['before']:.0f}", f"{peak:.0f}", f"{seconds:.1f}")
    names = ("", "MB before", "MB at most", "s", "MB/s")
    put_table(
        "memory of a process that verifies a capsule",
        names,
        [(f"{size}, {made.events:,} events", *cells, f"{made.size / seconds / 1e6:.0f}")],
    )
    return [
        Row(row=f"memory {size}", value=peak, unit="MB", goal=GOAL_MEGABYTES),
        Row(row=f"speed {size}", value=made.size / seconds / 1e6, unit="MB/s"),
    ]


def main() -> int:
    """Run the benchmark; 0 whether or not goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, and 50 MB for the memory")
    parser.add_argument("--events", type=int, default=100_000, help="events that are timed")
    parser.add_argument("--rounds", type=int, help="rounds of each way to read (5)")
    parser.add_argument("--megabytes", type=int, help="size of the log for the memory (1,000)")
    parser.add_argument(MEMORY, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory_of is not None:
        say_memory(given.memory_of)
        return 0
    megabytes = given.megabytes or (50 if given.quick else 1000)
    rounds = given.rounds or (1 if given.quick else 5)
    began, load = time.monotonic(), load_average()
    folder = run_folder(BENCH)
    try:
        put(machine_line(folder))
        note(f"making a log of {given.events} events")
        made = make(folder / "timed", events=given.events)
        rows = time_rows(time_all(folder / "timed", events=made.events, rounds=rounds), made)
        note(f"making a log of {megabytes} MB")
        large = make(folder / "large", size=megabytes * 1_000_000)
        rows += memory_rows(folder / "large", large)
        put_rows(BENCH, rows)
    finally:
        drop_run_folder(folder)
    note(
        f"{time.monotonic() - began:.0f} s; load average {load:.1f} before, "
        f"{load_average():.1f} after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
