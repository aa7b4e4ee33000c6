"""What snapshots of a workspace cost, against copying it and against what people use for it.

benchmarks/README.md says what each row is.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from _env import clean_environment, drop_run_folder, load_average, machine_line, run_folder
from _report import Row, note, put, put_rows, put_table
from _workspace import Workspace

from sojourn import Machine
from sojourn.format.failures import stops_running

BENCH = "snapshot"
OURS = "sojourn"
COPY = "cp -a + sync"
WALK = "walk with stat"
STEPS = ("first", "unchanged", "10 changed", "restore", "verify")
GOAL_FIRST, GOAL_UNCHANGED = 1.5, 1.3


@dataclass(kw_only=True)
class Contender:
    """One way to keep a workspace; each step is done anew by `work`, None where it has none."""

    name: str
    work: dict[str, Callable[[], None]]
    kept: object = None
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def do(self, step: str) -> None:
        act = self.work.get(step)
        if act is None:
            return
        note(f"{self.name}: {step}")
        began = time.perf_counter()
        act()
        self.seconds.setdefault(step, []).append(time.perf_counter() - began)

    def median(self, step: str) -> float | None:
        return statistics.median(self.seconds[step]) if step in self.seconds else None


def run(*command: str, cwd: Path | None = None, **variables: str) -> None:
    """Run a command to its end, without a word."""
    environment = clean_environment() | variables
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-400:]}")


def ours(place: Path, workspace: Workspace) -> Contender:
    """sojourn in this process: the capsule is held, as while an agent runs."""
    machine = Machine(clean_environment() | {"SOJOURN_HOME": str(place / "state")})
    loop = asyncio.new_event_loop()
    made = machine.create(str(place / "capsule"), workspace=str(workspace.root))
    capsule = loop.run_until_complete(made)
    holding = machine.hold(capsule)
    agent = loop.run_until_complete(holding.__aenter__())

    def take() -> None:
        loop.run_until_complete(agent.workspace.snapshot())

    def restore() -> None:
        from sojourn.agent.workspace import extract

        current = agent.workspace.keeper.hold.snapshots.current
        extract(machine.ports, capsule, agent.workspace.list_at(current), str(place / "back"))

    def verify() -> None:
        found = [one for one in machine.verify(capsule) if stops_running(one.code)]
        if found:
            raise RuntimeError(str(found[0]))

    steps = {"first": take, "unchanged": take, "10 changed": take, "restore": restore}
    # What holds the capsule lives as long as what is measured.
    return Contender(name=OURS, work={**steps, "verify": verify}, kept=holding)


def command_line(place: Path, workspace: Workspace) -> Contender:
    """sojourn as a command: a process each time, which opens and checks the capsule, too."""
    home = str(place / "state")
    capsule = str(place / "capsule")
    program = [sys.executable, "-m", "sojourn"]
    words = ["init", capsule, "--workspace", str(workspace.root)]
    run(*program, *words, SOJOURN_HOME=home)

    def say(*rest: str) -> None:
        run(*program, *rest, SOJOURN_HOME=home)

    def take() -> None:
        say("snapshot", "take", capsule)

    def restore() -> None:
        say("snapshot", "restore", capsule, "5", "--to", str(place / "back"))

    steps = {"first": take, "unchanged": take, "10 changed": take, "restore": restore}
    return Contender(
        name="sojourn command", work={**steps, "verify": lambda: say("verify", capsule)}
    )


def walk(workspace: Workspace) -> Contender:
    """The least that any way must do that looks at every file."""

    def visit(folder: str) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    visit(entry.path)

    return Contender(name=WALK, work={"unchanged": lambda: visit(str(workspace.root))})


def copying(place: Path, workspace: Workspace) -> Contender:
    """A durable copy: cp -a, then syncing the file system that it lies on."""

    def copy() -> None:
        run("cp", "-a", str(workspace.root), str(place / "copy"))
        run("sync", "-f", str(place))

    return Contender(name=COPY, work={"first": copy})


def rsync(place: Path, workspace: Workspace) -> Contender:
    source, target = f"{workspace.root}/", f"{place / 'copy'}/"

    def copy() -> None:
        run("rsync", "-a", "--delete", source, target)
        run("sync", "-f", str(place))

    def restore() -> None:
        run("rsync", "-a", target, f"{place / 'back'}/")
        run("sync", "-f", str(place))

    def verify() -> None:
        run("rsync", "-anc", "--delete", source, target)

    steps = {"first": copy, "unchanged": copy, "10 changed": copy, "restore": restore}
    return Contender(name="rsync", work={**steps, "verify": verify})


def git(place: Path, workspace: Workspace) -> Contender:
    where = ("git", f"--git-dir={place / 'repo'}", f"--work-tree={workspace.root}")
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0")
    durable = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=batch")
    run("git", "init", "-q", "--bare", str(place / "repo"))
    run(*where, "config", "core.bare", "false")

    def commit() -> None:
        run(*where, *settings, *durable, "add", "-A")
        run(*where, *settings, *durable, "commit", "-q", "--allow-empty", "-m", "x")

    def restore() -> None:
        (place / "back").mkdir()
        other = ("git", f"--git-dir={place / 'repo'}", f"--work-tree={place / 'back'}")
        run(*other, "checkout", "-q", "-f", "HEAD", "--", ".")
        run("sync", "-f", str(place))

    steps = {"first": commit, "10 changed": commit, "restore": restore}
    return Contender(
        name="git",
        work={
            **steps,
            "unchanged": lambda: run(*where, "status", "--porcelain"),
            "verify": lambda: run(*where, "fsck", "--full"),
        },
    )


def restic(place: Path, workspace: Workspace) -> Contender:
    repository = str(place / "repo")
    words = ("restic", "--no-cache", "-q", "-r", repository)
    secret = {"RESTIC_PASSWORD": "x"}
    run(*words, "init", **secret)

    def back_up() -> None:
        run(*words, "backup", str(workspace.root), **secret)

    steps = {"first": back_up, "unchanged": back_up, "10 changed": back_up}
    return Contender(
        name="restic",
        work={
            **steps,
            "restore": lambda: run(
                *words, "restore", "latest", "--target", str(place / "back"), **secret
            ),
            "verify": lambda: run(*words, "check", "--read-data", **secret),
        },
    )


def borg(place: Path, workspace: Workspace) -> Contender:
    repository = str(place / "repo")
    own = {"BORG_BASE_DIR": str(place / "own"), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    run("borg", "init", "-e", "none", repository, **own)
    made = iter(range(100))

    def create() -> None:
        name = f"{repository}::{next(made)}"
        run("borg", "create", "-C", "none", name, ".", cwd=workspace.root, **own)

    def extract() -> None:
        (place / "back").mkdir()
        run("borg", "extract", f"{repository}::0", cwd=place / "back", **own)

    steps = {"first": create, "unchanged": create, "10 changed": create, "restore": extract}
    check = ("borg", "check", "--verify-data", repository)
    return Contender(name="borg", work={**steps, "verify": lambda: run(*check, **own)})


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
            for one in here:
                one.do(step)
        for one in here:
            total = totals.setdefault(one.name, Contender(name=one.name, work={}))
            for step, seconds in one.seconds.items():
                total.seconds.setdefault(step, []).extend(seconds)
    return list(totals.values()), sorted(set(absent))


def ratio(one: Contender, other: Contender, step: str) -> float | None:
    """The median of the ratios within the rounds."""
    mine, theirs = one.seconds.get(step), other.seconds.get(step)
    if not mine or not theirs:
        return None
    return statistics.median(a / b for a, b in zip(mine, theirs, strict=True))


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
            seconds = one.median(step)
            if seconds is None:
                continue
            made.append(Row(row=f"{one.name} {step}", value=seconds, unit="s"))
            against = ratio(mine, one, step)
            if one is not mine and against is not None:
                made.append(
                    Row(
                        row=f"{OURS} {step} against {one.name}",
                        value=mine.median(step) or 0.0,
                        unit="s",
                        against=one.name,
                        ratio=against,
                        goal=goals.get((step, one.name)),
                    )
                )
    return made


def table(found: list[Contender], absent: list[str], workspace: Workspace) -> None:
    """Seconds of each step, and how many times ours theirs are."""
    by_name = {one.name: one for one in found}
    lines: list[tuple[str, ...]] = []
    for one in found:
        cells = [one.name]
        for step in STEPS:
            seconds, times = one.median(step), ratio(by_name[OURS], one, step)
            shown = "-" if seconds is None else f"{seconds:.2f}"
            cells.append(shown if times is None or one.name == OURS else f"{shown} ({times:.2f})")
        lines.append(tuple(cells))
    title = (
        f"{workspace.small:,} small files and {workspace.large} of "
        f"{workspace.size / 1e6:.0f} MB: seconds (ours / theirs)"
    )
    put_table(title, ("", *STEPS), lines)
    if absent:
        put(f"not installed here, so absent: {', '.join(absent)}")


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
        table(found, absent, workspace)
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
