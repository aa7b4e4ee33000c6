"""Runs one contender's script in its own process, and reads what it measured.

Each script obeys `peers/workload.py`: `run` works until the meter ends the process in the middle
of a model call; `load`, in a fresh process, goes on from what is on disk.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from _env import HERE, PEERS, clean_environment

sys.path.insert(0, str(PEERS))

from workload import CONTENT_BYTES as CONTENT_BYTES
from workload import folder_bytes

SUBJECT = HERE / "_subject.py"
SYNCS = ("fsync", "fdatasync", "syncfs", "sync", "msync", "sync_file_range")
_CALL = re.compile(r"\b(" + "|".join(SYNCS) + r")\(")
_GRACE_SECONDS = 60.0
_LOAD_SECONDS = 180.0


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A row of the benchmark: its name, its script, and the interpreter that runs it.

    A `light` one starts and ends fast, so it is run more often. One whose time grows with the
    square of the steps may name the `most_steps` that it is run with.
    """

    name: str
    script: Path
    python: Path
    options: tuple[str, ...] = ()
    light: bool = False
    most_steps: int | None = None

    def runs_at(self, steps: int) -> bool:
        """Whether it is run with so many steps."""
        return self.most_steps is None or steps <= self.most_steps


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a single run may take: seconds in its steps, megabytes on disk, bytes of a raw step."""

    seconds: float
    megabytes: float
    step_bytes: float


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One repetition of one contender at one number of steps.

    `disk_bytes` is taken after the state was loaded, the turn ended and the store closed.
    `log_bytes` is what the run appended to its log, where a contender says so, else 0. `events`,
    `timeline_bytes` and `content_bytes` (all bodies without their salt) are of the whole log.
    """

    steps: int
    total_s: float
    median_us: float
    mean_us: float
    cpu_us: float
    first_tenth_us: float
    last_tenth_us: float
    capped: str | None
    load_ms: float
    import_ms: float
    disk_bytes: int
    log_bytes: int
    events: int
    timeline_bytes: int
    content_bytes: int


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """How long the making of one request takes, and that of its bytes, medians in ms."""

    render_ms: float
    encode_ms: float
    request_bytes: int


class ContenderFailedError(Exception):
    """A contender's process failed or gave a wrong answer; the message says how."""


def contenders(peers_python: Path | None) -> list[Contender]:
    """Return all contenders there are; the subject stands next to the limit it is held against."""
    here = Path(sys.executable)
    found = [Contender(name="raw", script=PEERS / "raw.py", python=here, light=True)]
    if SUBJECT.exists():
        found.append(Contender(name="sojourn", script=SUBJECT, python=here, light=True))
        found.append(
            Contender(
                name="sojourn-render",
                script=SUBJECT,
                python=here,
                options=("--render",),
                most_steps=1000,
            )
        )
    found.append(Contender(name="sqlite", script=PEERS / "sqlite_wal.py", python=here, light=True))
    if peers_python is None:
        return found
    graph = PEERS / "langgraph_sqlite.py"
    return [
        *found,
        Contender(name="dbos", script=PEERS / "dbos_sqlite.py", python=peers_python),
        Contender(name="langgraph-delta", script=graph, python=peers_python, options=("--delta",)),
        Contender(name="langgraph", script=graph, python=peers_python),
    ]


def _command(
    contender: Contender, verb: str, *, folder: Path, steps: int, limits: Limits
) -> list[str]:
    return [
        str(contender.python),
        str(contender.script),
        *contender.options,
        verb,
        *("--folder", str(folder)),
        *("--steps", str(steps)),
        *("--seconds", str(limits.seconds)),
        *("--megabytes", str(limits.megabytes)),
        *("--log-bytes", str(round(limits.step_bytes * steps))),
    ]


def _answer(contender: Contender, command: Sequence[str], seconds: float) -> dict[str, object]:
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env=clean_environment(),
            cwd=HERE,
        )
    except subprocess.TimeoutExpired as error:
        raise ContenderFailedError(f"{contender.name}: no answer in {seconds:g} s") from error
    lines = ended.stdout.strip().splitlines()
    if ended.returncode != 0 or not lines:
        said = ended.stderr.strip()[-600:]
        raise ContenderFailedError(f"{contender.name}: exit {ended.returncode}: {said}")
    answer: dict[str, object] = json.loads(lines[-1])
    return answer


def _number(answer: Mapping[str, object], key: str) -> float:
    value = answer.get(key, 0)
    if not isinstance(value, (int, float)):
        raise ContenderFailedError(f"{key} is no number: {value!r}")
    return float(value)


def measure(contender: Contender, *, folder: Path, steps: int, limits: Limits) -> Sample:
    """Run the steps, load the state again in a fresh process, and weigh what is on disk.

    Raises:
        ContenderFailedError: a process failed, or what it loaded is not what was run.
    """
    run = _command(contender, "run", folder=folder, steps=steps, limits=limits)
    ran = _answer(contender, run, limits.seconds + _GRACE_SECONDS)
    load = _command(contender, "load", folder=folder, steps=steps, limits=limits)
    loaded = _answer(contender, load, _LOAD_SECONDS)
    if loaded["steps"] != ran["steps"]:
        raise ContenderFailedError(
            f"{contender.name}: {ran['steps']} steps were run, {loaded['steps']} came back"
        )
    capped = ran["capped"]
    return Sample(
        steps=int(_number(ran, "steps")),
        total_s=_number(ran, "total_s"),
        median_us=_number(ran, "median_us"),
        mean_us=_number(ran, "mean_us"),
        cpu_us=_number(ran, "cpu_us"),
        first_tenth_us=_number(ran, "first_tenth_us"),
        last_tenth_us=_number(ran, "last_tenth_us"),
        capped=None if capped is None else str(capped),
        load_ms=_number(loaded, "load_ms"),
        import_ms=_number(loaded, "import_ms"),
        disk_bytes=folder_bytes(folder),
        log_bytes=int(_number(ran, "log_bytes")),
        events=int(_number(loaded, "events")),
        timeline_bytes=int(_number(loaded, "timeline_bytes")),
        content_bytes=int(_number(loaded, "content_bytes")),
    )


def measure_rendering(
    contender: Contender, *, folder: Path, steps: int, limits: Limits
) -> Rendering:
    """Render in a fresh process the request of what an earlier run left in the folder.

    Raises:
        ContenderFailedError: the process failed, or the folder holds other steps.
    """
    command = _command(contender, "render", folder=folder, steps=steps, limits=limits)
    answer = _answer(contender, command, _LOAD_SECONDS)
    if answer["steps"] != steps:
        raise ContenderFailedError(f"{contender.name}: {answer['steps']} steps were rendered")
    return Rendering(
        render_ms=_number(answer, "render_ms"),
        encode_ms=_number(answer, "encode_ms"),
        request_bytes=int(_number(answer, "request_bytes")),
    )


def _count_syncs(contender: Contender, *, folder: Path, steps: int, limits: Limits) -> Counter[str]:
    folder.mkdir(parents=True)
    trace = folder / "trace"
    strace = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=" + ",".join(SYNCS)]
    run = _command(contender, "run", folder=folder / "data", steps=steps, limits=limits)
    answer = _answer(contender, [*strace, *run], limits.seconds + _GRACE_SECONDS)
    if answer["steps"] != steps:
        raise ContenderFailedError(f"{contender.name}: stopped early under strace")
    return Counter(_CALL.findall(trace.read_text()))


def syncs_per_step(
    contender: Contender, *, folder: Path, steps: tuple[int, int], limits: Limits
) -> dict[str, float]:
    """Return the syncs of one step by system call, without those of opening and starting.

    Two runs of different length are traced; their difference holds the steps alone.

    Raises:
        ContenderFailedError: strace is missing or may not trace, or the process failed.
    """
    if shutil.which("strace") is None:
        raise ContenderFailedError("strace is not installed")
    few, many = steps
    first = _count_syncs(contender, folder=folder / "few", steps=few, limits=limits)
    second = _count_syncs(contender, folder=folder / "many", steps=many, limits=limits)
    return {
        call: (second[call] - first[call]) / (many - few)
        for call in SYNCS
        if second[call] != first[call]
    }
