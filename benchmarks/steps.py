"""What a durable step costs: the framework's own time for one model call and one tool call.

In one run, interleaved, medians over repetitions, against the limit (the same number of bytes
written and synced raw) and against peers. benchmarks/README.md says what each figure means.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from _contend import (
    CONTENT_BYTES,
    SUBJECT,
    Contender,
    ContenderFailedError,
    Limits,
    contenders,
    measure,
    measure_rendering,
    syncs_per_step,
)
from _env import (
    PeersAbsentError,
    drop_run_folder,
    load_average,
    machine_line,
    peers_python,
    run_folder,
)
from _figures import (
    ALLOWED_BYTES,
    LIMIT,
    OURS,
    Found,
    cap_of,
    frame_bytes,
    growth_rows,
    middle,
    paired,
    render_rows,
    size_rows,
    sync_rows,
)
from _report import note, put, put_rows, put_table

BENCH = "steps"
TRACED_STEPS = (50, 250)
LIGHT_ROUNDS = 3
"""A cheap contender runs so often for each run of a dear one, for a steadier ratio."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one call of this script does."""

    sizes: tuple[int, ...]
    repetitions: int
    seconds: float
    megabytes: float
    only: frozenset[str]
    traced: bool


def read_plan() -> Plan:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 and 1,000 steps, once")
    parser.add_argument(
        "--repetitions", type=int, help="runs of each (3), cheap ones three times as many"
    )
    parser.add_argument("--seconds", type=float, default=90.0, help="limit of one run's steps")
    parser.add_argument("--megabytes", type=float, default=4000.0, help="limit of one run's disk")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of steps")
    parser.add_argument("--only", nargs="+", default=[], help="names of rows to run, with raw")
    parser.add_argument("--no-syncs", action="store_true", help="do not count syncs")
    found = parser.parse_args()
    sizes = found.sizes or ([100, 1000] if found.quick else [100, 1000, 5000])
    return Plan(
        sizes=tuple(sorted(sizes)),
        repetitions=found.repetitions or (1 if found.quick else 3),
        seconds=found.seconds,
        megabytes=found.megabytes,
        only=frozenset(found.only),
        traced=not found.no_syncs,
    )


def gather(plan: Plan, found: Found) -> list[Contender]:
    """Return the contenders to run, and note which are absent."""
    python: Path | None = None
    if not plan.only or plan.only & {"dbos", "langgraph", "langgraph-delta"}:
        try:
            python = peers_python()
        except PeersAbsentError as error:
            found.absent.append(f"dbos, langgraph, langgraph-delta: not installed: {error}")
    if not SUBJECT.exists():
        found.absent.append(f"{OURS}: there is no benchmarks/{SUBJECT.name}")
    running = contenders(python)
    if plan.only:
        running = [one for one in running if one.name in plan.only | {LIMIT}]
    return running


def raw_step_bytes(plan: Plan, size: int, folder: Path, found: Found) -> float:
    """Return what the subject appends to its log in a step, from a first run of so many steps."""
    limits = Limits(seconds=plan.seconds, megabytes=plan.megabytes, step_bytes=ALLOWED_BYTES)
    ours = next((one for one in contenders(None) if one.name == OURS), None)
    if ours is None or found.lost(OURS):
        return ALLOWED_BYTES
    note(f"{OURS}, {size} steps, for the size of its log")
    try:
        sample = measure(ours, folder=folder / f"first-{size}", steps=size, limits=limits)
        if not sample.capped:
            place = folder / f"first-{size}"
            found.renderings[size] = measure_rendering(
                ours, folder=place, steps=size, limits=limits
            )
    except ContenderFailedError as error:
        found.absent.append(str(error))
        return ALLOWED_BYTES
    return sample.log_bytes / sample.steps


def run_all(
    running: list[Contender], plan: Plan, megabytes: float, *, folder: Path, found: Found
) -> Limits:
    """Run every contender at every size, each round in another order; returns the last limits."""
    limits = Limits(seconds=plan.seconds, megabytes=megabytes, step_bytes=ALLOWED_BYTES)
    for size in plan.sizes:
        limits = replace(limits, step_bytes=raw_step_bytes(plan, size, folder, found))
        for round_number in range(plan.repetitions * LIGHT_ROUNDS):
            turn = round_number % len(running)
            due = [one for one in running if one.light or round_number % LIGHT_ROUNDS == 0]
            for one in sorted(due, key=lambda one: (running.index(one) - turn) % len(running)):
                run_one(one, size, round_number, limits, folder=folder, found=found)
    return limits


def run_one(
    one: Contender, size: int, round_number: int, limits: Limits, *, folder: Path, found: Found
) -> None:
    """Run one round, unless a limit or a failure already said that it cannot end well."""
    if found.lost(one.name) or found.stopped(one.name, size) or not one.runs_at(size):
        return
    note(f"{one.name}, {size} steps, round {round_number + 1}")
    place = folder / f"{one.name}-{size}-{round_number}"
    try:
        sample = measure(one, folder=place, steps=size, limits=limits)
    except ContenderFailedError as error:
        found.absent.append(str(error))
        return
    found.samples.setdefault((one.name, size), {})[round_number] = sample


def trace_all(running: Iterable[Contender], limits: Limits, *, folder: Path, found: Found) -> None:
    """Count every contender's syncs in short runs of their own, which are not timed."""
    for one in running:
        note(f"{one.name}, syncs")
        try:
            place = folder / f"{one.name}-syncs"
            found.syncs[one.name] = syncs_per_step(
                one, folder=place, steps=TRACED_STEPS, limits=limits
            )
        except ContenderFailedError as error:
            found.absent.append(f"syncs of {one.name}: {error}")


def put_size(size: int, running: list[Contender], found: Found) -> None:
    """Print the table of one number of steps."""
    names = ("", "ms a step", "least", "most", "mean", "cpu", "x raw", "load ms", "import", "runs")
    lines: list[tuple[str, ...]] = []
    remarks: list[str] = []
    for one in running:
        ours = found.at(one.name, size)
        if not ours:
            if found.stopped(one.name, size):
                remarks.append(f"  {one.name}: not run, stopped by its limit at fewer steps")
            elif not one.runs_at(size):
                remarks.append(f"  {one.name}: not run with more than {one.most_steps:,} steps")
            continue
        ratio = paired(ours, found.at(LIMIT, size), lambda sample: sample.median_us)
        medians = [sample.median_us / 1e3 for sample in ours.values()]
        cap = cap_of(ours)
        lines.append(
            (
                one.name + (" *" if cap else ""),
                f"{statistics.median(medians):.3f}",
                f"{min(medians):.3f}",
                f"{max(medians):.3f}",
                f"{middle(ours, lambda sample: sample.mean_us / 1e3):.3f}",
                f"{middle(ours, lambda sample: sample.cpu_us / 1e3):.3f}",
                "-" if ratio is None else f"{ratio:.2f}",
                f"{middle(ours, lambda sample: sample.load_ms):.1f}",
                f"{middle(ours, lambda sample: sample.import_ms):.0f}",
                str(len(ours)),
            )
        )
        if cap:
            remarks.append(f"  * {one.name}: {cap}; its figures are of those steps")
    put_table(f"{size:,} steps", names, lines)
    for remark in remarks:
        put(remark)


def put_disk(size: int, running: list[Contender], found: Found) -> None:
    """Print what lies on the disk after one number of steps."""
    lines: list[tuple[str, ...]] = []
    for one in running:
        ours = found.at(one.name, size)
        if ours:
            frame = middle(ours, frame_bytes) if next(iter(ours.values())).events else None
            log = middle(ours, lambda sample: sample.log_bytes)
            lines.append(
                (
                    one.name,
                    f"{middle(ours, lambda sample: sample.disk_bytes / 1e6):.2f}",
                    f"{middle(ours, lambda sample: sample.disk_bytes / sample.steps):,.0f}",
                    f"{log:,.0f}" if log else "-",
                    "-" if frame is None else f"{frame:.1f}",
                )
            )
    names = ("", "MB", "bytes a step", "of them appended", "frame of an event")
    put_table(f"on the disk after {size:,} steps", names, lines)


def put_renderings(found: Found) -> None:
    """Print what the making of one request takes."""
    lines = [
        (
            f"{size:,} steps",
            f"{one.render_ms:.2f}",
            f"{one.encode_ms:.2f}",
            f"{one.request_bytes / 1e6:.2f}",
            f"{one.render_ms * 1e3 / size:.1f}",
        )
        for size, one in sorted(found.renderings.items())
    ]
    names = ("", "ms a request", "json.dumps", "MB", "us a step")
    put_table("rendering alone: one request with the whole log in it", names, lines)


def put_growth(running: list[Contender], plan: Plan, found: Found) -> None:
    """Print growth laws and syncs."""
    lines: list[tuple[str, ...]] = []
    for one in running:
        rows = {row.row.split(" ")[0]: row for row in growth_rows(one.name, plan.sizes, found)}
        slope, tail = rows.get("growth"), rows.get("last")
        calls = found.syncs.get(one.name)
        lines.append(
            (
                one.name,
                "-" if slope is None else f"{slope.value:.2f}",
                "-" if tail is None or tail.ratio is None else f"{tail.ratio:.2f}",
                "-" if calls is None else f"{sum(calls.values()):.2f}",
                "-"
                if calls is None
                else ", ".join(f"{call} {count:.2f}" for call, count in calls.items()),
            )
        )
    names = ("", "total ~ steps^", "last/first tenth", "syncs a step", "by call")
    put_table("growth, and syncs counted with strace", names, lines)


def report(running: list[Contender], plan: Plan, found: Found) -> None:
    """Print the tables, what is absent, and every row."""
    for size in plan.sizes:
        put_size(size, running, found)
        put_disk(size, running, found)
    if found.renderings:
        put_renderings(found)
    put_growth(running, plan, found)
    for line in found.absent:
        put(f"absent: {line}")
    rows = [
        row for size in plan.sizes for one in running for row in size_rows(one.name, size, found)
    ]
    for one in running:
        rows += growth_rows(one.name, plan.sizes, found) + sync_rows(one.name, found)
    rows += render_rows(found)
    put_rows(BENCH, rows)


def main() -> int:
    """Run the plan; 1 if a contender failed, else 0, goals met or not."""
    plan = read_plan()
    found = Found()
    began, load = time.monotonic(), load_average()
    running = gather(plan, found)
    expected = len(found.absent)
    folder = run_folder(BENCH)
    try:
        free = shutil.disk_usage(folder).free / 1e6
        megabytes = min(plan.megabytes, free / 10)
        put(machine_line(folder))
        put(
            f"a step: {CONTENT_BYTES} bytes of content; a run may take {plan.seconds:g} s and "
            f"{megabytes:g} MB"
        )
        limits = run_all(running, plan, megabytes, folder=folder, found=found)
        if plan.traced:
            trace_all(running, limits, folder=folder, found=found)
        report(running, plan, found)
    finally:
        drop_run_folder(folder)
    note(
        f"{time.monotonic() - began:.0f} s; load average {load:.1f} before, "
        f"{load_average():.1f} after"
    )
    # Syncs can only be counted where strace is there and may trace.
    failures = [line for line in found.absent[expected:] if not line.startswith("syncs ")]
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
