"""What a merge costs, in time and memory, against `sort -u` and `git merge-file --union`.

benchmarks/README.md says what each row is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path

import msgspec
from _env import HERE, clean_environment, drop_run_folder, load_average, machine_line, run_folder
from _log import ISSUER, make, timeline
from _merging import chunks
from _report import Row, note, put, put_rows, put_table

from sojourn.format.capsule_kinds import Claimed
from sojourn.format.event import (
    AnyBody,
    Event,
    Input,
    ModelIntent,
    ModelOutcome,
    TurnEnded,
    TurnTaken,
)
from sojourn.format.parts import BlobRef, TextPart
from sojourn.format.timeline_read import Reader
from sojourn.format.timeline_write import Chain, write
from sojourn.ids import (
    CapsuleId,
    Epoch,
    EventId,
    Incarnation,
    MachineId,
    RequestId,
    RunnerId,
    Seq,
    TurnId,
    call_key,
)

BENCH = "merge"
PEER = "sort -u"
GOAL_SHARED = 1.0
GOAL_MEGABYTES = 60.0
TEXT = "a message of some length, as people write them. " * 10
MERGING = str(HERE / "_merging.py")
POLL = 0.01
TIME = "2026-01-01T00:00:00.000Z"


@dataclass(frozen=True, kw_only=True)
class Logs:
    """Two logs and what both begin with; `events` is the number of both together."""

    base: Path
    ours: Path
    theirs: Path
    events: int


@dataclass(kw_only=True)
class Measured:
    """Wall and processor seconds of one way, and the most memory it took, in MB."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: float = 0.0


def no_blob(ref: BlobRef) -> bytes | None:
    """Refuse: the logs that are made name no blob."""
    raise RuntimeError(f"the log that was made names a blob: {ref.sha256}")


def continue_log(path: Path, chain: Chain, capsule: CapsuleId, events: int) -> None:
    """Append so many events of short turns to a log."""
    with path.open("ab") as file:
        for data in islice(_turns(chain, capsule), events):
            file.write(data)


def _turns(chain: Chain, capsule: CapsuleId) -> Iterator[bytes]:
    """Yield one event after the other, without end."""
    while True:
        for body in _turn_of(chain, capsule):
            salt = sha256(f"{chain.epoch} {chain.seq}".encode()).hexdigest()[:22]
            batch = write((body,), chain=chain, time=TIME, salts=(salt,))
            chain = batch.chain
            yield batch.data


def _turn_of(chain: Chain, capsule: CapsuleId) -> tuple[AnyBody, ...]:
    """Return the events of one turn without calls."""
    call = call_key(capsule=capsule, requested_by=chain.head or EventId(""), index=0)
    turn = TurnId(call)
    said = (TextPart(text=TEXT),)
    runner = RunnerId("5" * 32)
    return (
        Input(request=RequestId(f"{chain.epoch} {chain.seq}"), author="user", parts=said),
        TurnTaken(turn=turn, runner=runner, boot="boot"),
        ModelIntent(turn=turn, call=call, runner=runner, configured=turn, issuer=ISSUER),
        ModelOutcome(turn=turn, call=call, status="done", issuer=ISSUER, parts=said, stop="rest"),
        TurnEnded(turn=turn, reason="rest"),
    )


def two_logs(folder: Path, *, shared: int, tail: int) -> Logs:
    """Make a log with about `shared` events, and two that went on from it by `tail` events."""
    made = make(folder / "made", events=shared)
    paths = [folder / name for name in ("base", "ours", "theirs")]
    for path in paths:
        shutil.copyfile(timeline(folder / "made"), path)
    reader = Reader(read_blob=no_blob)
    first = next(item for piece in chunks(paths[0]) for item in reader.feed(piece))
    for piece in list(chunks(paths[0]))[1:]:
        reader.feed(piece)
    ending = reader.finish(same_boot=True)
    if not isinstance(first, Event):
        raise TypeError("the log that was made is not sound")
    own = ending.chains[0]
    chain = Chain(
        machine=own.machine,
        incarnation=own.incarnation,
        epoch=own.epoch,
        seq=Seq(own.seq + 1),
        head=own.id,
        clock=ending.clock,
    )
    capsule = CapsuleId(first.id)
    continue_log(paths[1], chain, capsule, tail)
    other = msgspec.structs.replace(
        chain,
        machine=MachineId("7" * 64),
        incarnation=Incarnation("7" * 32),
        epoch=Epoch(1001),
        seq=Seq(0),
        head=None,
    )
    claimed = Claimed(capsule=capsule, how="claim", by="you", heads=ending.heads)
    batch = write((claimed,), chain=other, time=TIME, salts=("s" * 22,))
    with paths[2].open("ab") as file:
        file.write(batch.data)
    continue_log(paths[2], batch.chain, capsule, tail - 1)
    return Logs(base=paths[0], ours=paths[1], theirs=paths[2], events=made.events + 2 * tail)


def measure(command: Sequence[str], out: Path | None, measured: Measured) -> None:
    """Run one command to its end; its memory is read from /proc while it runs."""
    environment = clean_environment() | {"LC_ALL": "C"}
    stdout = subprocess.DEVNULL if out is None else out.open("wb")
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=stdout, env=environment)
    while True:
        measured.peak = max(measured.peak, _peak_of(process.pid))
        done, status, used = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        time.sleep(POLL)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    measured.wall.append(time.perf_counter() - began)
    measured.cpu.append(used.ru_utime + used.ru_stime)


def _peak_of(pid: int) -> float:
    """Return the most memory that a process had so far, in MB; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    found = (int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))
    return next(found, 0.0)


def ways(logs: Logs, out: Path) -> dict[str, tuple[list[str], Path | None]]:
    """Name every way to make one log of two: its command, and where its output goes."""
    ours, theirs, base = str(logs.ours), str(logs.theirs), str(logs.base)
    return {
        "sojourn": ([sys.executable, MERGING, "merge", ours, theirs, str(out)], None),
        PEER: (["sort", "-u", "-o", str(out), ours, theirs], None),
        "git merge-file": (["git", "merge-file", "-p", "--union", ours, base, theirs], out),
    }


def time_all(logs: Logs, folder: Path, *, rounds: int, peers: bool) -> dict[str, Measured]:
    """Run each way in turn, each round in another order, and check that no event is lost."""
    out = folder / "out"
    found = {
        name: one for name, one in ways(logs, out).items() if peers or name != "git merge-file"
    }
    measured = {name: Measured() for name in found}
    for number in range(rounds):
        names = list(found)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            note(f"{name}, {logs.events} events, round {number + 1}")
            command, stdout = found[name]
            out.unlink(missing_ok=True)
            measure(command, stdout, measured[name])
            lines = sum(piece.count(b"\n") for piece in chunks(out))
            if name != "git merge-file" and lines != logs.events:
                raise RuntimeError(f"{name}: {lines} lines of {logs.events}")
    measure(found["sojourn"][0], None, Measured())
    return measured


def rows_of(title: str, measured: dict[str, Measured], *, goal: float | None) -> list[Row]:
    """Print the table, and return the rows, of all ways."""
    limit, rows, lines = measured[PEER], list[Row](), list[tuple[str, ...]]()
    for name, one in measured.items():
        pairs = zip(one.wall, limit.wall, strict=True)
        ratio = None if name == PEER else statistics.median(a / b for a, b in pairs)
        seconds = statistics.median(one.wall)
        shown = "-" if ratio is None else f"{ratio:.2f}"
        cpu = statistics.median(one.cpu)
        lines.append((name, f"{seconds:.2f}", f"{cpu:.2f}", shown, f"{one.peak:.0f}"))
        ours = name == "sojourn"
        rows.append(
            Row(
                row=f"{title}, {name}",
                value=seconds,
                unit="s",
                against=None if ratio is None else PEER,
                ratio=ratio,
                goal=goal if ours else None,
            )
        )
        rows.append(
            Row(
                row=f"{title}, {name}, memory",
                value=one.peak,
                unit="MB",
                goal=GOAL_MEGABYTES if ours else None,
            )
        )
    put_table(title, ("", "s", "s processor", f"x {PEER}", "MB at most"), lines)
    return rows


def load_rows(title: str, out: Path, events: int) -> list[Row]:
    """Load the merged log in a fresh process; print and return what that took."""
    measured = Measured()
    note(f"loading {events} events")
    measure([sys.executable, MERGING, "load", str(out)], None, measured)
    seconds = measured.wall[0]
    cells = (f"{seconds:.1f}", f"{seconds / events * 1e6:.1f}", f"{measured.peak:.0f}")
    put_table(f"{title}, loaded", ("", "s", "us an event", "MB at most"), [("sojourn", *cells)])
    return [
        Row(row=f"{title}, load", value=seconds, unit="s"),
        Row(row=f"{title}, load, memory", value=measured.peak, unit="MB"),
    ]


def main() -> int:
    """Run the benchmark; 0 whether or not goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 events, one round")
    parser.add_argument("--events", type=int, help="events of both logs together (1,000,000)")
    parser.add_argument("--rounds", type=int, help="rounds of each way (3)")
    parser.add_argument("--no-git", action="store_true", help="leave git out: it takes gigabytes")
    given = parser.parse_args()
    events = given.events or (100_000 if given.quick else 1_000_000)
    rounds = given.rounds or (1 if given.quick else 3)
    began, before, rows = time.monotonic(), load_average(), list[Row]()
    folder = run_folder(BENCH)
    try:
        put(machine_line(folder))
        for title, shared, goal in (
            ("shared prefix", events * 9 // 10, GOAL_SHARED),
            ("disjoint", 1, None),
        ):
            part = folder / title.replace(" ", "-")
            part.mkdir()
            note(f"making two logs, {title}")
            logs = two_logs(part, shared=shared, tail=(events - shared) // 2)
            measured = time_all(logs, part, rounds=rounds, peers=not given.no_git)
            rows += rows_of(title, measured, goal=goal)
            rows += load_rows(title, part / "out", logs.events)
        put_rows(BENCH, rows)
    finally:
        drop_run_folder(folder)
    note(
        f"{time.monotonic() - began:.0f} s; load average {before:.1f} before, "
        f"{load_average():.1f} after"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
