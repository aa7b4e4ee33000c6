"""The unchanged process, killed at every call that writes, syncs, renames or unlinks.

strace delivers SIGKILL at the Nth such call; a run without it says how many there are. After each
kill the agent goes on in a new process, and what must hold then is checked from outside.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults.kill_requests import refused_requests
from sojourn import Machine
from sojourn.format.event import Event, Input, ModelOutcome, ToolIntent, ToolOutcome

HERE = Path(__file__).parent
STRACE = shutil.which("strace")
SYSCALLS = (
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "fsync",
    "fdatasync",
    "syncfs",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "ftruncate",
    "truncate",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "symlink",
    "symlinkat",
)
SLICES = 4
KILLED = 137

pytestmark = pytest.mark.skipif(STRACE is None, reason="strace is not installed")


@dataclass
class World:
    """A folder of its own, and the process in it."""

    folder: Path
    fault: str | None = None

    def __post_init__(self) -> None:
        self.folder.mkdir()
        shutil.copy(HERE / "kill_script.json", self.folder / "script.json")

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {
            **kept,
            "SOJOURN_HOME": str(self.folder / "state"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(HERE),
        }

    def run(self, *options: str, trace: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        faulty = ("--fault", self.fault) if self.fault else ()
        command = [*trace, sys.executable, str(HERE / "kill_agent.py"), *options, *faulty]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def events(self) -> list[Event]:
        machine = Machine(self.environment)
        look = machine.look(machine.find(str(self.folder / "capsule")))
        return list(look.events_of())

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def workspace(self) -> dict[str, str]:
        root = self.folder / "workspace"
        return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}

    def documents(self) -> dict[str, object]:
        changes = [
            change
            for event in self.events()
            if isinstance(event.body, ToolOutcome)
            for change in event.body.documents
        ]
        return {change.name: json.loads(str(change.value)) for change in changes}

    def left_alive(self) -> list[str]:
        """Processes of this world's calls that still run."""
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                environment = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                inside = os.path.realpath(entry / "cwd").startswith(str(self.folder))
                command = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            here = f"SOJOURN_HOME={self.folder}/state".encode()
            called = b"SOJOURN_CALL=" in environment and here in environment
            if state != "Z" and (inside or called):
                found.append(command)
        return found


def traced(
    syscall: str, *, kill_at: int | None, log: Path, paths: tuple[Path, ...] = ()
) -> tuple[str, ...]:
    """strace before the process: only counting, or killing at the Nth call of this kind.

    Threads are followed only with `paths`: strace counts each thread for itself, so calls of the
    tools' threads are told from the main one's by the files that they touch.
    """
    inject = () if kill_at is None else ("-e", f"inject={syscall}:signal=SIGKILL:when={kill_at}")
    chosen = tuple(word for path in paths for word in ("-P", str(path)))
    follow = ("-f",) if paths else ()
    return (str(STRACE), "-o", str(log), *follow, *chosen, "-e", f"trace={syscall}", *inject)


def calls_of(log: Path, syscall: str) -> int:
    """How often the trace shows the call."""
    pattern = re.compile(rf"^(\d+ +)?{syscall}\(")
    return sum(1 for line in log.read_text().splitlines() if pattern.match(line))


def faults_of(world: World, killed: subprocess.CompletedProcess[str], whole: World) -> list[str]:
    """Everything that is not as it must be, after the agent went on in a new process."""
    options = ("--no-send",) if "accepted" in killed.stdout else ()
    again = world.run(*options)
    if again.returncode or "verified []" not in again.stdout:
        return [f"it did not go on: {again.returncode} {again.stdout} {again.stderr}"]
    found = [f"still alive: {command}" for command in world.left_alive()]
    events = world.events()
    inputs = [event for event in events if isinstance(event.body, Input)]
    if len(inputs) != 1:
        found.append(f"{len(inputs)} inputs of one message")
    effects = Counter(line.split()[1] for line in world.lines("effects/log"))
    launched = [line.split()[1] for line in world.lines("effects/log") if line.startswith("launch")]
    intents = Counter(e.body.call for e in events if isinstance(e.body, ToolIntent))
    outcomes = Counter(e.body.call for e in events if isinstance(e.body, ToolOutcome))
    found += [f"launched twice: {key}" for key, times in Counter(launched).items() if times > 1]
    found += [f"more effects than intents: {k}" for k, n in effects.items() if n > intents[k]]
    found += [f"{n} outcomes of {key}" for key, n in outcomes.items() if n != 1]
    found += [f"no outcome of {key}" for key in intents if key not in outcomes]
    asked = Counter(json.loads(line)["call"] for line in world.lines("model-calls.jsonl"))
    done = [
        e.body.call for e in events if isinstance(e.body, ModelOutcome) and e.body.status == "done"
    ]
    found += [
        f"a finished model call was made {asked[key]} times" for key in done if asked[key] != 1
    ]
    found += [
        f"unlogged model call {key}"
        for key in asked
        if key not in {e.body.call for e in events if isinstance(e.body, ModelOutcome)}
    ]
    if (world.workspace(), world.documents()) != (whole.workspace(), whole.documents()):
        found.append(f"another workspace or documents: {world.workspace()} {world.documents()}")
    if (
        len(world.lines("effects/launched")) != 1
        or len(list((world.folder / "effects/charged").iterdir())) != 1
    ):
        found.append("an effect is missing or doubled")
    return found + refused_requests(events)


def sweep(
    tmp_path: Path,
    syscall: str,
    *,
    part: int = 0,
    parts: int = 1,
    fault: str | None = None,
    workspace: bool = False,
    to_first: bool = False,
) -> tuple[int, int, list[str]]:
    """Kill at each Nth call of this kind: how many there are, how many were hit, what failed."""
    whole = World(tmp_path / "whole")
    log = tmp_path / "trace"
    paths = (whole.folder / "workspace", *_files(whole)) if workspace else ()
    ran = whole.run(trace=traced(syscall, kill_at=None, log=log, paths=paths))
    assert ran.returncode == 0, ran.stderr
    assert "verified []" in ran.stdout
    total = calls_of(log, syscall)
    hit, failures = 0, []
    wanted = range(1 + part, total + 1, parts)
    for number in wanted:
        world = World(tmp_path / f"{syscall}-{number}", fault=fault)
        paths = (world.folder / "workspace", *_files(world)) if workspace else ()
        killed = world.run(trace=traced(syscall, kill_at=number, log=log, paths=paths))
        hit += killed.returncode in (-9, KILLED)
        failures += [f"{syscall} {number}: {one}" for one in faults_of(world, killed, whole)]
        shutil.rmtree(world.folder)
        if to_first and failures:
            break
    return len(wanted), hit, failures


def _files(world: World) -> tuple[Path, ...]:
    root = world.folder / "workspace"
    return root / "notes.txt", root / ".sojourn-draft.tmp"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
@pytest.mark.parametrize("syscall", SYSCALLS)
def test_a_kill_at_any_call_that_writes_loses_and_repeats_nothing(
    syscall: str, part: int, tmp_path: Path
) -> None:
    total, hit, failures = sweep(tmp_path, syscall, part=part, parts=SLICES)
    assert failures == []
    assert hit >= total, f"{hit} kills for {total} calls"


@pytest.mark.slow
@pytest.mark.parametrize("syscall", SYSCALLS)
def test_a_kill_while_a_tool_writes_to_the_workspace_loses_and_repeats_nothing(
    syscall: str, tmp_path: Path
) -> None:
    total, hit, failures = sweep(tmp_path, syscall, workspace=True)
    assert failures == []
    assert hit >= total, f"{hit} kills for {total} calls"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "syscall"),
    [
        ("call_before_intent", "write"),
        ("early_acknowledgement", "linkat"),
        ("cut_acknowledged_line", "fdatasync"),
        ("forgotten_call", "write"),
    ],
)
def test_the_sweep_finds_a_planted_fault(fault: str, syscall: str, tmp_path: Path) -> None:
    _, _, failures = sweep(tmp_path, syscall, fault=fault, to_first=True)
    assert failures, f"{fault} was not noticed"
