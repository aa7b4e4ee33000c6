"""The ways to keep a workspace that benchmarks/snapshot.py compares, and the workspace itself."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from _env import clean_environment
from _report import note

from sojourn import Machine
from sojourn.format.failures import stops_running

OURS = "sojourn"
COPY = "cp -a + sync"
WALK = "walk with stat"
FOLDER_FILES = 100
SMALLEST, LARGEST = 200, 6000


@dataclass(kw_only=True)
class Workspace:
    """A folder of small files and some large ones, the same for all of one round."""

    root: Path
    small: int
    large: int
    size: int
    pause: float

    def make(self) -> None:
        """Fill it with files of random bytes, so that nothing can be compressed."""
        chance = random.Random(7)
        for number in range(self.small):
            folder = self.root / f"d{number // FOLDER_FILES:04d}"
            folder.mkdir(parents=True, exist_ok=True)
            data = chance.randbytes(chance.randint(SMALLEST, LARGEST))
            (folder / f"f{number:05d}").write_bytes(data)
        for number in range(self.large):
            with open(self.root / f"large{number}", "wb") as file:
                left = self.size
                while left > 0:
                    file.write(chance.randbytes(min(left, 1 << 20)))
                    left -= 1 << 20
        os.sync()

    def change(self, turn: int) -> None:
        """Change ten small files."""
        for number in range(10):
            place = number * (self.small // 10)
            path = self.root / f"d{place // FOLDER_FILES:04d}" / f"f{place:05d}"
            path.write_bytes(f"changed in turn {turn}".encode() * 50)

    def touched_long_ago(self) -> None:
        """Wait until no file's time is within the grain of a clock of whole seconds."""
        os.sync()
        time.sleep(self.pause)


@dataclass(kw_only=True)
class Contender:
    """One way to keep a workspace; each step is done anew by `work`, None where it has none."""

    name: str
    work: dict[str, Callable[[], None]]
    kept: object = None
    seconds: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)

    def do(self, step: str) -> None:
        act = self.work.get(step)
        if act is None:
            return
        note(f"{self.name}: {step}")
        began, used = time.perf_counter(), _processor_seconds()
        act()
        self.seconds.setdefault(step, []).append(time.perf_counter() - began)
        self.processor.setdefault(step, []).append(_processor_seconds() - used)

    def take(self, other: Contender) -> None:
        """Count what another round found."""
        for step in other.seconds:
            self.seconds.setdefault(step, []).extend(other.seconds[step])
            self.processor.setdefault(step, []).extend(other.processor[step])


def median(times: dict[str, list[float]], step: str) -> float | None:
    """Return the median of a step, None where there is none."""
    return statistics.median(times[step]) if step in times else None


def ratio(mine: dict[str, list[float]], theirs: dict[str, list[float]], step: str) -> float | None:
    """Return the median of the ratios of what was done in turn."""
    if not mine.get(step) or not theirs.get(step):
        return None
    return statistics.median(a / b for a, b in zip(mine[step], theirs[step], strict=True))


def _processor_seconds() -> float:
    """Return what this process and those that it waited for have used, kernel included."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


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

        hold = agent.workspace.keeper.hold
        listed = agent.workspace.list_at(hold.snapshots.current)
        extract(machine.ports, capsule, listed, str(place / "back"), gone=hold.gone)

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
