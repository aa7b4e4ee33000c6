"""A worker is killed in the middle of a call; the next one ends what it left, and only that."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from sojourn.errors import HeldElsewhereError
from sojourn.ids import CallKey, CapsuleId
from sojourn.sandboxes import processes
from sojourn.sandboxes.host import HostSandbox
from sojourn.sandboxes.marks import is_marked
from sojourn.sandboxes.processes import Process, everyone, start_of
from sojourn.sandboxes.records import RunRecord, RunRecords

KEY = CallKey("5e" * 32)

WORKER = """
import asyncio, sys
from pathlib import Path
from sojourn.sandboxes import host

capsule, runs, script, fault = sys.argv[1:]
if fault:
    def die(*_): __import__("os").kill(__import__("os").getpid(), 9)
    place = {"before": (host, "mark_limit"), "recording": (host.RunRecords, "write")}[fault]
    setattr(*place, die)
sandbox = host.HostSandbox(capsule=capsule, runs=Path(runs), boot="boot")

def show(data):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()

asyncio.run(sandbox.run(
    ("/bin/sh", "-c", script), key="5e" * 32, cwd="/", environment={}, seconds=600, on_output=show
))
"""


@pytest.fixture
def capsule() -> CapsuleId:
    return CapsuleId(os.urandom(32).hex())


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def next_one(capsule: CapsuleId, runs: Path) -> HostSandbox:
    return HostSandbox(capsule=capsule, runs=runs, boot="boot")


@contextmanager
def worker(
    capsule: CapsuleId, runs: Path, script: str, fault: str = ""
) -> Generator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", WORKER, capsule, str(runs), script, fault]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def killed_when_it_says(word: str, capsule: CapsuleId, runs: Path, script: str) -> list[str]:
    """Start a worker whose call runs the script, kill it when the script has said the word."""
    said: list[str] = []
    with worker(capsule, runs, script) as started:
        if started.stdout is None:
            raise AssertionError
        for line in started.stdout:
            said.append(line.strip())
            if said[-1] == word:
                break
        started.kill()
    return said


def marked(capsule: CapsuleId) -> list[int]:
    return [one.pid for one in everyone() if is_marked(one.pid, capsule)]


def gone(pid: int) -> bool:
    return processes.process(pid) is None


SLEEP = "/bin/sleep 1000"
LEFT = {
    "foreground": f"echo $$; echo go; {SLEEP}",
    "double fork": f"(setsid sh -c 'echo $$; echo go; exec {SLEEP}' &); {SLEEP}",
    "empty environment": f"(setsid env -i /bin/sh -c 'echo $$; echo go; exec {SLEEP}' &); {SLEEP}",
    "ignores TERM": f"trap '' TERM HUP INT; echo $$; echo go; while :; do {SLEEP}; done",
    "stopped": "echo $$; echo go; kill -STOP $$",
    "leader gone": f"(echo $$; echo go; {SLEEP}) & exec /bin/sh -c 'kill -9 $$'",
    "forks on and on": "echo $$; echo go; while :; do (/bin/true &); done",
}


@pytest.mark.parametrize("script", LEFT.values(), ids=LEFT.keys())
def test_the_next_worker_ends_what_a_killed_one_left(
    script: str, capsule: CapsuleId, runs: Path, next_one: HostSandbox
) -> None:
    said = killed_when_it_says("go", capsule, runs, script)
    ended = next_one.end_left_behind()
    assert ended or script == LEFT["leader gone"]
    assert gone(int(said[0]))
    assert not marked(capsule)
    assert list(runs.iterdir()) == []
    assert next_one.end_left_behind() == ()


def test_a_program_without_marks_is_known_by_its_recorded_group(
    capsule: CapsuleId, runs: Path, next_one: HostSandbox
) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True) as child:
        record(runs, capsule, child.pid, start_of(child.pid))
        assert next_one.end_left_behind() == (child.pid,)
        assert gone(child.pid)
        # As under an init of a container, the dead that were handed to us are not left as zombies.
        with pytest.raises(ChildProcessError):
            os.waitpid(child.pid, os.WNOHANG)


@pytest.mark.parametrize("fault", ["before", "recording"])
def test_a_worker_that_dies_before_it_recorded_leaves_nothing_running(
    fault: str, capsule: CapsuleId, runs: Path, tmp_path: Path
) -> None:
    with worker(capsule, runs, f"touch {tmp_path}/ran", fault) as started:
        # The end of the pipe comes when all who could write to it, the child too, are gone.
        if started.stdout is None:
            raise AssertionError
        assert started.stdout.read() == ""
        assert started.wait() == -signal.SIGKILL
    until_gone(lambda: marked(capsule))
    assert not (tmp_path / "ran").exists()


def until_gone(find: Callable[[], list[int]]) -> None:
    """The child's own pipes are not ours, so its exit is waited for on its descriptor."""
    for pid in find():
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        exited = poll.poll(10_000)
        os.close(descriptor)
        assert exited, f"{pid} still runs"


def record(runs: Path, capsule: CapsuleId, pid: int, start: str, boot: str = "boot") -> None:
    RunRecords(runs).write(RunRecord(boot=boot, call=KEY, capsule=capsule, pid=pid, start=start))


@pytest.mark.parametrize("boot", ["boot", "another"])
def test_another_process_of_a_recorded_number_is_left_alone(
    boot: str, capsule: CapsuleId, runs: Path, next_one: HostSandbox
) -> None:
    with subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True) as child:
        own = start_of(child.pid)
        start = own if boot == "another" else str(int(own) - 1)
        record(runs, capsule, child.pid, start, boot)
        assert next_one.end_left_behind() == ()
        assert child.poll() is None
        child.kill()
    assert list(runs.iterdir()) == []


def test_another_capsules_processes_and_records_are_left_alone(
    runs: Path, next_one: HostSandbox
) -> None:
    other = CapsuleId(os.urandom(32).hex())
    environment = {"SOJOURN_CAPSULE": other, "SOJOURN_CALL": KEY}
    with subprocess.Popen(["/bin/sleep", "1000"], env=environment) as child:
        record(runs, other, child.pid, start_of(child.pid))
        assert next_one.end_left_behind() == ()
        assert child.poll() is None
        child.kill()
    assert len(list(runs.iterdir())) == 1


def test_a_worker_started_by_a_call_ends_neither_itself_nor_those_above(
    capsule: CapsuleId, runs: Path
) -> None:
    inner = (
        "from pathlib import Path; from sojourn.sandboxes.host import HostSandbox;"
        f" print(HostSandbox(capsule={capsule!r}, runs=Path({str(runs)!r}), boot='boot')"
        ".end_left_behind())"
    )
    script = f'/bin/sleep 1000 & echo $!; {sys.executable} -c "{inner}"; echo alive'
    environment = {**os.environ, "SOJOURN_CAPSULE": capsule, "SOJOURN_CALL": KEY}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    sleeper, ended, alive = done.stdout.splitlines()
    assert (ended, alive) == (f"({sleeper},)", "alive")


def test_records_that_were_never_finished_are_passed_over(
    runs: Path, next_one: HostSandbox
) -> None:
    assert next_one.end_left_behind() == ()
    runs.mkdir()
    (runs / "half.json").write_text('{"boot":')
    (runs / "half.tmp").write_bytes(b"")
    assert next_one.end_left_behind() == ()


class Refusing(processes.Grip):
    """A process of another user, which the kernel does not let this one end."""

    def signal(self, number: int) -> None:
        self.refused = number > 0


@pytest.mark.parametrize("finished", [False, True])
def test_a_process_that_may_not_be_ended_blocks_only_if_its_call_was_not_finished(
    finished: bool,
    capsule: CapsuleId,
    runs: Path,
    next_one: HostSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "Grip", Refusing)
    environment = {"SOJOURN_CAPSULE": capsule, "SOJOURN_CALL": KEY}
    with subprocess.Popen(["/bin/sleep", "1000"], env=environment) as child:
        if finished:
            assert next_one.end_left_behind() == ()
        else:
            record(runs, capsule, child.pid, start_of(child.pid))
            with pytest.raises(HeldElsewhereError, match=str(child.pid)) as held:
                next_one.end_left_behind()
            assert held.value.code == "call_alive"
            assert len(list(runs.iterdir())) == 1
        child.kill()


def test_a_name_with_odd_letters_does_not_hide_a_process(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([str(odd), "1000"]) as child:
        found = processes.process(child.pid)
        child.kill()
        assert found == Process(child.pid, os.getpid(), os.getpgrp(), os.getsid(0), found.start)


def test_a_record_is_whole_or_not_there(runs: Path, capsule: CapsuleId) -> None:
    record(runs, capsule, 1, "2")
    (only,) = runs.iterdir()
    assert msgspec.json.decode(only.read_bytes(), type=RunRecord).pid == 1
    assert only.name == f"{KEY}.json"
    assert [one.start for one in RunRecords(runs).of(capsule)] == ["2"]
