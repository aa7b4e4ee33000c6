"""What it costs to move an agent by ssh, against copying its workspace by ssh.

benchmarks/README.md says what each row is.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from _env import drop_run_folder, load_average, machine_line, run_folder
from _loopback import Side, two_sides
from _report import Row, note, put, put_rows, put_table

BENCH, NAME = "move", "busy"
OURS, RSYNC, TAR = "sojourn", "rsync", "tar | zstd | ssh"
STEPS = ("first", "1 % changed")
SMALL, SMALL_BYTES, LARGE = 2000, 2000, 200
GOAL_FIRST, GOAL_FROZEN_MS, GOAL_SIZE = 1.0, 1000.0, 1.5

BUSY = {
    "steps": [
        {
            "name": "act",
            "text": "Again.",
            "calls": [
                {"tool": "shell", "args": {"command": "sleep 0.2; date +%N >> diary.txt"}},
                {"tool": "write", "args": {"path": "last.txt", "content": "again"}},
            ],
            "next": "act",
            "if_unknown": "act",
        }
    ]
}


def fill(root: Path, size: int, seed: int) -> None:
    """Small files, and large ones that are random by turns and text by turns."""
    dice = random.Random(seed)
    words = [dice.randbytes(dice.randint(2, 9)).hex() for _ in range(3000)]
    each = (size - SMALL * SMALL_BYTES) // LARGE
    for number in range(SMALL):
        folder = root / f"d{number // 100:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number:04d}").write_bytes(dice.randbytes(SMALL_BYTES))
    for number in range(LARGE):
        (root / f"large{number:03d}").write_bytes(_large(dice, words, each, text=number % 2 == 1))


def _large(dice: random.Random, words: list[str], size: int, *, text: bool) -> bytes:
    if not text:
        return dice.randbytes(size)
    piece = " ".join(dice.choices(words, k=20_000)).encode()
    return (piece * (size // len(piece) + 1))[:size]


def change(root: Path, seed: int) -> None:
    """One in a hundred of the large files gets other bytes, and so do some small ones."""
    dice = random.Random(f"changed {seed}")
    for path in sorted(root.glob("large*"))[:: LARGE // 2]:
        path.write_bytes(dice.randbytes(path.stat().st_size))
    for number in range(0, SMALL, 100):
        (root / f"d{number // 100:03d}" / f"f{number:04d}").write_bytes(dice.randbytes(SMALL_BYTES))


@dataclass(kw_only=True)
class Contender:
    """One way to bring a workspace over; `work` has what each step does."""

    name: str
    work: dict[str, Callable[[], None]]
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def do(self, step: str) -> None:
        note(f"{self.name}: {step}")
        began = time.perf_counter()
        self.work[step]()
        self.seconds.setdefault(step, []).append(time.perf_counter() - began)


def shell(command: str) -> None:
    """Run a pipeline. Raises: RuntimeError when any part of it failed."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr[-400:]}")


def ours(here: Side, there: Side, name: str, root: Path) -> Contender:
    """The whole of `sojourn move`; the second one is the way back, to where an old state is."""
    here.sojourn("init", "-n", name, "-m", "echo", "--workspace", str(root))

    def back() -> None:
        there.sojourn("move", name, here.address)

    return Contender(
        name=OURS,
        work={"first": lambda: _none(here.sojourn("move", name, there.address)), STEPS[1]: back},
    )


def _none(_: object) -> None:
    return None


def rsync(there: Side, root: Path, target: Path) -> Contender:
    """Files with their times, then a sync of the far disk: a move, too, is durable when it ends."""
    ssh, host = shlex.join(there.ssh()[:-1]), there.ssh()[-1]
    to = shlex.quote(f"{host}:{target}/")
    copy = f"rsync -a --delete -e {shlex.quote(ssh)} {shlex.quote(str(root))}/ {to}"
    both = f"{copy} && {ssh} {host} sync -f {target}"
    return Contender(name=RSYNC, work=dict.fromkeys(STEPS, lambda: shell(both)))


def tar(there: Side, root: Path, target: Path) -> Contender:
    """Everything each time."""
    ssh = shlex.join(there.ssh())
    far = shlex.quote(f"zstd -dcq | tar -x -C {target} && sync -f {target}")
    both = f"tar -c -C {shlex.quote(str(root))} . | zstd -cq -3 | {ssh} {far}"
    return Contender(name=TAR, work=dict.fromkeys(STEPS, lambda: shell(both)))


def speed(here: Side, there: Side, folder: Path, size: int, rounds: int) -> list[Contender]:
    """Every step by everybody, in rounds of changing order, each with a workspace of its own."""
    totals: dict[str, Contender] = {}
    for number in range(rounds):
        place = folder / f"round{number}"
        roots = {name: place / name for name in ("ours", "rsync", "tar")}
        for root in roots.values():
            root.mkdir(parents=True)
            fill(root, size, number)
        targets = {name: place / f"{name}-there" for name in ("rsync", "tar")}
        for target in targets.values():
            target.mkdir()
        name = f"box{number}"
        found = [
            ours(here, there, name, roots["ours"]),
            rsync(there, roots["rsync"], targets["rsync"]),
            tar(there, roots["tar"], targets["tar"]),
        ]
        found = found[number % 3 :] + found[: number % 3]
        _all_do(found, "first")
        for root in (workspace_of(there, name), roots["rsync"], roots["tar"]):
            change(root, number)
        _all_do(found, STEPS[1])
        compare(workspace_of(here, name), roots["rsync"])
        compare(targets["rsync"], roots["rsync"])
        for one in found:
            total = totals.setdefault(one.name, Contender(name=one.name, work={}))
            for step, seconds in one.seconds.items():
                total.seconds.setdefault(step, []).extend(seconds)
        shutil.rmtree(place)
    return [totals[name] for name in (OURS, RSYNC, TAR)]


def _all_do(found: list[Contender], step: str) -> None:
    """One step by everybody, once the disk is quiet."""
    shell("sync; sleep 2.5")
    for one in found:
        one.do(step)


def workspace_of(side: Side, name: str) -> Path:
    """Where the agent of that name works on that side."""
    return Path(side.sojourn("status", name)["capsule"]["workspace"])


def compare(one: Path, other: Path) -> None:
    """A move that lost something was not quick. Raises: RuntimeError."""
    done = subprocess.run(
        ["diff", "-rq", str(one), str(other)], capture_output=True, text=True, check=False
    )
    if done.stdout or done.stderr:
        raise RuntimeError(f"not the same: {done.stdout[:400]}{done.stderr[:400]}")


@dataclass(kw_only=True)
class Frozen:
    """Milliseconds in which nobody could run the agent, and bytes sent meanwhile, a move each."""

    size: int
    milliseconds: list[float] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    phases: list[dict[str, int]] = field(default_factory=list)


def frozen(folder: Path, sizes: list[int], moves: int) -> list[Frozen]:
    """Agents in the middle of a turn go there and back, the large and the small one by turns.

    Each has two machines of its own, since a worker takes one turn at a time.
    """
    script = folder / "busy.json"
    script.write_text(json.dumps(BUSY))
    found = [Frozen(size=size) for size in sizes]
    with ExitStack() as stack:
        pairs = [stack.enter_context(two_sides(folder / f"sides{size}")) for size in sizes]
        for one, (here, there) in zip(found, pairs, strict=True):
            root = folder / f"busy{one.size}"
            root.mkdir()
            fill(root, one.size, one.size)
            words = ("-n", NAME, "-m", f"scripted/{script}", "--workspace", str(root))
            made = here.sojourn("init", *words)["capsule"]
            for side in (here, there):
                (side.home / "scripts").mkdir(parents=True, exist_ok=True)
                (side.home / "scripts" / made["id"]).write_text(str(script))
            here.sojourn("send", NAME, "Begin.")
            here.sojourn("remote", "test", f"unix://{here.home}/daemon.sock")
        for number in range(moves):
            for one, sides in zip(found, pairs, strict=True):
                source, target = sides[number % 2], sides[(number + 1) % 2]
                note(f"move {number + 1} of an agent of {_mb(one)} that works")
                _works(source, NAME)
                answer = source.sojourn("move", NAME, target.address)
                one.milliseconds.append(answer["frozen_milliseconds"])
                one.sent.append(answer["bytes_frozen"])
                one.phases.append({p["phase"]: p["milliseconds"] for p in answer["phases"]})
    return found


def _works(side: Side, name: str) -> None:
    """Wait until its log grows there; a turn that came to its limit is followed by another one.

    Raises: RuntimeError.
    """
    end, first = time.monotonic() + 120, side.sojourn("status", name)["events"]
    while time.monotonic() < end:
        now = side.sojourn("status", name)
        if now["standing"] == "resting":
            side.sojourn("send", name, "Go on.")
        elif now["events"] > first + 4:
            return
        time.sleep(0.2)
    raise RuntimeError(f"{name} does not work")


def rows(found: list[Contender], still: list[Frozen]) -> list[Row]:
    """Our steps against the others, and the time frozen against its limit and the small one's."""
    mine, made = found[0], list[Row]()
    for step in STEPS:
        middle = statistics.median(mine.seconds[step])
        made.append(Row(row=f"{OURS} {step}", value=middle, unit="s"))
        for other in found[1:]:
            pairs = zip(mine.seconds[step], other.seconds[step], strict=True)
            made.append(
                Row(
                    row=f"{OURS} {step} against {other.name}",
                    value=middle,
                    unit="s",
                    against=other.name,
                    ratio=statistics.median(a / b for a, b in pairs),
                    goal=GOAL_FIRST if (step, other.name) == ("first", RSYNC) else None,
                )
            )
    large, small = still
    middle = statistics.median(large.milliseconds)
    made.append(Row(row=f"frozen {_mb(large)}", value=middle, unit="ms", goal=GOAL_FROZEN_MS))
    pairs = zip(large.milliseconds, small.milliseconds, strict=True)
    made.append(
        Row(
            row=f"frozen {_mb(large)} against {_mb(small)}",
            value=middle,
            unit="ms",
            against=_mb(small),
            ratio=statistics.median(a / b for a, b in pairs),
            goal=GOAL_SIZE,
        )
    )
    return made


def _mb(one: Frozen) -> str:
    return f"{one.size / 1e6:.0f} MB"


def tables(found: list[Contender], still: list[Frozen], size: int) -> None:
    """Seconds of each step; time frozen by size."""
    lines = [
        (one.name, *(f"{statistics.median(one.seconds[step]):.2f}" for step in STEPS))
        for one in found
    ]
    put_table(
        f"a workspace of {size / 1e6:.0f} MB brought over by ssh: seconds", ("", *STEPS), lines
    )
    put_table(
        "an agent moved in the middle of a turn: milliseconds frozen",
        ("", "median", "least", "most", "KB sent"),
        [
            (
                _mb(one),
                f"{statistics.median(one.milliseconds):.0f}",
                f"{min(one.milliseconds):.0f}",
                f"{max(one.milliseconds):.0f}",
                f"{statistics.median(one.sent) / 1000:.0f}",
            )
            for one in still
        ],
    )


def main() -> int:
    """Run the benchmark; 0 whether or not goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 MB, once, two moves frozen")
    parser.add_argument("--megabytes", type=int, help="size of the workspace (1,000)")
    parser.add_argument("--rounds", type=int, help="rounds (3)")
    parser.add_argument("--moves", type=int, help="moves in the middle of a turn (6)")
    given = parser.parse_args()
    size = 1_000_000 * (given.megabytes or (100 if given.quick else 1000))
    rounds = given.rounds or (1 if given.quick else 3)
    moves = given.moves or (2 if given.quick else 6)
    for name in ("rsync", "zstd", "tar", "ssh"):
        if shutil.which(name) is None:
            note(f"not run: {name} is not installed")
            return 1
    began, load = time.monotonic(), load_average()
    folder = run_folder(BENCH)
    try:
        put(machine_line(folder))
        with two_sides(folder / "sides") as (here, there):
            found = speed(here, there, folder, size, rounds)
        still = frozen(folder, [size, 10_000_000], moves)
        tables(found, still, size)
        put_rows(BENCH, rows(found, still))
    finally:
        drop_run_folder(folder)
    note(
        f"{time.monotonic() - began:.0f} s; load average {load:.1f} before, "
        f"{load_average():.1f} after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
