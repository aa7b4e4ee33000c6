"""What snapshots of a workspace cost, against copying it and against what people use for it.

benchmarks/README.md says what each row is.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from _env import drop_run_folder, load_average, machine_line, run_folder
from _keeping import (
    COPY,
    OURS,
    WALK,
    Contender,
    Workspace,
    borg,
    command_line,
    copying,
    git,
    median,
    ours,
    ratio,
    restic,
    rsync,
    walk,
)
from _report import Row, note, put, put_rows, put_table

BENCH = "snapshot"
STEPS = ("first", "unchanged", "10 changed", "restore", "verify")
REPEATED = {"unchanged": 3}
"""Steps that are so short that one of them says little."""

GOAL_FIRST, GOAL_UNCHANGED = 1.5, 1.3


Peer = Callable[[Path, Workspace], Contender]
PEERS: Mapping[str, Peer] = {"rsync": rsync, "git": git, "restic": restic, "borg": borg}


def contenders(
    folder: Path, workspace: Workspace, peers: Mapping[str, Peer], absent: list[str]
) -> list[Contender]:
    """Everybody of one round, each with a folder of its own."""

    def place(name: str) -> Path:
        own = folder / name
        own.mkdir(parents=True)
        return own

    found = [ours(place("ours"), workspace), command_line(place("command"), workspace)]
    found += [walk(workspace), copying(place("copy"), workspace)]
    for name, make in peers.items():
        if shutil.which(name) is None:
            absent.append(name)
        else:
            found.append(make(place(name), workspace))
    return found


def measure(
    folder: Path, workspace: Workspace, rounds: int, peers: Mapping[str, Peer]
) -> tuple[list[Contender], list[str]]:
    """Every step by everybody, in rounds of changing order; nothing is deleted meanwhile."""
    totals: dict[str, Contender] = {}
    absent: list[str] = []
    for number in range(rounds):
        here = contenders(folder / f"round{number}", workspace, peers, absent)
        turn = number % len(here)
        here = here[turn:] + here[:turn]
        for step in STEPS:
            if step == "10 changed":
                workspace.change(number)
            workspace.touched_long_ago()
            for one in here * REPEATED.get(step, 1):
                one.do(step)
        for one in here:
            totals.setdefault(one.name, Contender(name=one.name, work={})).take(one)
    return list(totals.values()), sorted(set(absent))


def rows(found: list[Contender]) -> list[Row]:
    """Our own steps against each of the others, with the goals; theirs to compare with."""
    by_name = {one.name: one for one in found}
    mine, made = by_name[OURS], list[Row]()
    goals = {("first", COPY): GOAL_FIRST, ("unchanged", WALK): GOAL_UNCHANGED}
    for step in STEPS:
        for name in ("git", "borg", "restic"):
            if (step, name) != ("unchanged", "git"):
                goals[step, name] = 1.0
        for one in found:
            seconds, used = median(one.seconds, step), median(one.processor, step)
            if seconds is None or used is None:
                continue
            made.append(Row(row=f"{one.name} {step}", value=seconds, unit="s"))
            made.append(Row(row=f"{one.name} {step} processor", value=used, unit="s"))
            against = ratio(mine.seconds, one.seconds, step)
            if one is not mine and against is not None:
                made.append(
                    Row(
                        row=f"{OURS} {step} against {one.name}",
                        value=median(mine.seconds, step) or 0.0,
                        unit="s",
                        against=one.name,
                        ratio=against,
                        goal=goals.get((step, one.name)),
                    )
                )
    return made


def tables(found: list[Contender], absent: list[str], workspace: Workspace) -> None:
    """Print seconds of each step, and how many times ours theirs are; then the processor's."""
    put_table(
        f"{workspace.small:,} small files and {workspace.large} of "
        f"{workspace.size / 1e6:.0f} MB: seconds (ours / theirs)",
        ("", *STEPS),
        lines([(one.name, one.seconds) for one in found]),
    )
    put_table(
        "the same in seconds of the processor",
        ("", *STEPS),
        lines([(one.name, one.processor) for one in found]),
    )
    if absent:
        put(f"not installed here, so absent: {', '.join(absent)}")


def lines(found: list[tuple[str, dict[str, list[float]]]]) -> list[tuple[str, ...]]:
    """Return a line a contender, ours the standard."""
    (mine,) = (times for name, times in found if name == OURS)
    made: list[tuple[str, ...]] = []
    for name, times in found:
        cells = [name]
        for step in STEPS:
            seconds, share = median(times, step), ratio(mine, times, step)
            shown = "-" if seconds is None else f"{seconds:.2f}"
            cells.append(shown if share is None or name == OURS else f"{shown} ({share:.2f})")
        made.append(tuple(cells))
    return made


def main() -> int:
    """Run the benchmark; 0 whether or not goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 files, two of 20 MB, once")
    parser.add_argument("--small", type=int, help="small files (20,000)")
    parser.add_argument("--megabytes", type=int, help="size of each large file (500)")
    parser.add_argument("--rounds", type=int, help="rounds (3)")
    parser.add_argument("--no-peers", action="store_true", help="leave other programs out")
    parser.add_argument("--pause", type=float, default=2.5, help="seconds between steps (2.5)")
    given = parser.parse_args()
    small = given.small or (2000 if given.quick else 20_000)
    megabytes = given.megabytes or (20 if given.quick else 500)
    rounds = given.rounds or (1 if given.quick else 3)
    began, load = time.monotonic(), load_average()
    folder = run_folder(BENCH)
    try:
        put(machine_line(folder))
        workspace = Workspace(
            root=folder / "workspace",
            small=small,
            large=2,
            size=megabytes * 1_000_000,
            pause=given.pause,
        )
        note("making the workspace")
        workspace.make()
        peers = {} if given.no_peers else PEERS
        found, absent = measure(folder, workspace, rounds, peers)
        tables(found, absent, workspace)
        put_rows(BENCH, rows(found))
    finally:
        drop_run_folder(folder)
    note(
        f"{time.monotonic() - began:.0f} s; load average {load:.1f} before, "
        f"{load_average():.1f} after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
