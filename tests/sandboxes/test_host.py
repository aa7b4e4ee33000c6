"""Real programs on this host: what they see, how they end, and that nothing of them stays."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.errors import CallError, StorageError, UsageError
from sojourn.ids import CallKey, CapsuleId
from sojourn.ports import Ran
from sojourn.sandboxes.host import HostSandbox
from sojourn.sandboxes.marks import is_marked
from sojourn.sandboxes.processes import everyone, process

KEY = CallKey("5e" * 32)
OTHER = CallKey("07" * 32)


@pytest.fixture
def capsule() -> CapsuleId:
    """Another one in each test, since marks are looked for on the whole host."""
    return CapsuleId(os.urandom(32).hex())


@pytest.fixture
def sandbox(tmp_path: Path, capsule: CapsuleId) -> HostSandbox:
    return HostSandbox(capsule=capsule, runs=tmp_path / "runs", boot="boot")


def marked(capsule: CapsuleId) -> list[int]:
    return [one.pid for one in everyone() if is_marked(one.pid, capsule)]


async def start(
    sandbox: HostSandbox,
    script: str,
    *,
    seconds: float = 60,
    stdin: bytes = b"",
    on_output: Callable[[bytes], None] = lambda _: None,
    environment: dict[str, str] | None = None,
    cwd: str = "/",
) -> Ran:
    return await sandbox.run(
        ("/bin/sh", "-c", script),
        key=KEY,
        cwd=cwd,
        environment=environment or {},
        stdin=stdin,
        seconds=seconds,
        on_output=on_output,
    )


def run(sandbox: HostSandbox, script: str, **more: object) -> tuple[Ran, bytes]:
    pieces: list[bytes] = []
    started = start(sandbox, script, on_output=pieces.append, **more)
    ran = asyncio.run(started)
    return ran, b"".join(pieces)


def test_output_and_errors_come_in_order_with_the_status(sandbox: HostSandbox) -> None:
    ran, output = run(sandbox, "echo a; echo b >&2; echo c; exit 3")
    assert (ran, output) == (Ran(status=3), b"a\nb\nc\n")


def test_a_signal_is_told_as_a_shell_tells_it(sandbox: HostSandbox) -> None:
    assert run(sandbox, "kill -9 $$")[0].status == 128 + 9


def test_the_input_begins_behind_the_gate(sandbox: HostSandbox) -> None:
    given = b"first\nsecond" + b"x" * 300_000
    ran, output = run(sandbox, "cat", stdin=given)
    assert (ran.status, output) == (0, given)
    assert run(sandbox, "cat") == (Ran(status=0), b"")


def test_a_program_that_does_not_read_its_input_is_no_failure(sandbox: HostSandbox) -> None:
    assert run(sandbox, "exec 0<&-; echo done", stdin=b"x" * 300_000) == (Ran(status=0), b"done\n")


def test_only_allowed_variables_and_the_marks_are_seen(tmp_path: Path, capsule: CapsuleId) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/h",
        "LC_TIME": "C",
        "LC_API_KEY": "x",
        "OPENAI_API_KEY": "sk-1",
        "SSH_AUTH_SOCK": "/s",
        "PYTHONPATH": "/p",
        "MINE": "m",
    }
    sandbox = HostSandbox(
        capsule=capsule, runs=tmp_path, boot="b", environment=environment, allow=["MINE"]
    )
    _, output = run(sandbox, "exec env", environment={"GIVEN": "g"})
    # What the shell that keeps the gate adds by itself is no secret.
    own = (b"PWD=", b"_=", b"SHLVL=", b"OLDPWD=")
    assert {line for line in output.splitlines() if not line.startswith(own)} == {
        b"PATH=/usr/bin:/bin",
        b"HOME=/h",
        b"LC_TIME=C",
        b"MINE=m",
        b"GIVEN=g",
        b"SOJOURN_CALL=" + KEY.encode(),
        b"SOJOURN_CAPSULE=" + capsule.encode(),
    }


def test_a_secret_cannot_be_allowed(tmp_path: Path, capsule: CapsuleId) -> None:
    with pytest.raises(UsageError) as refused:
        HostSandbox(capsule=capsule, runs=tmp_path, boot="b", allow=["GITHUB_TOKEN"])
    assert refused.value.code == "secret_allowed"


def test_a_missing_folder_or_an_odd_command_starts_nothing(
    sandbox: HostSandbox, tmp_path: Path
) -> None:
    for script, cwd in (("true", str(tmp_path / "gone")), ("a\0b", "/"), ("x" * 3_000_000, "/")):
        with pytest.raises(CallError) as failed:
            run(sandbox, script, cwd=cwd)
        assert failed.value.code == "not_started"
        assert not failed.value.may_have_happened


def test_time_ends_the_whole_group(sandbox: HostSandbox, capsule: CapsuleId) -> None:
    ran, output = run(sandbox, "sleep 1000 | sleep 1000 & echo a; sleep 1000; echo b", seconds=0.5)
    assert (ran.status, output) == (None, b"a\n")
    assert not marked(capsule)


def test_a_program_is_asked_to_end_before_it_is_ended(sandbox: HostSandbox) -> None:
    script = "trap 'echo asked; exit' TERM; echo ready; while :; do sleep 0.05; done"
    words = run(sandbox, script, seconds=1)[1].split()
    # The shell may say that its `sleep` was ended too.
    assert (words[0], words[-1]) == (b"ready", b"asked")


def test_a_program_that_will_not_end_is_ended(sandbox: HostSandbox, capsule: CapsuleId) -> None:
    ran, _ = run(sandbox, "trap '' TERM; while :; do sleep 1000; done", seconds=0.2)
    assert ran.status is None
    assert not marked(capsule)


ESCAPES = {
    "background": "sleep 1000 & sleep 1000 &",
    "session of its own": "setsid sleep 1000 & setsid sleep 1000 &",
    "double fork": "(setsid sh -c 'sleep 1000 & sleep 1000 &' &);",
    "empty environment": "(setsid env -i /bin/sleep 1000 &); (setsid env -i /bin/sleep 1000 &);",
}


@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES.keys())
def test_what_still_runs_at_the_end_is_ended_and_counted(
    script: str, sandbox: HostSandbox, capsule: CapsuleId
) -> None:
    # The pause lets the double forks get away before their parent ends.
    ran, _ = run(sandbox, f"{script} sleep 0.3; exit 4")
    assert ran == Ran(status=4, ended=2)
    assert not marked(capsule)


def test_what_ends_by_itself_right_after_is_let_end(sandbox: HostSandbox, tmp_path: Path) -> None:
    ran, _ = run(sandbox, "(sleep 0.05; echo end > late) &", cwd=str(tmp_path))
    assert ran == Ran(status=0)
    assert (tmp_path / "late").read_text() == "end\n"


def test_other_calls_of_the_capsule_are_left_alone(sandbox: HostSandbox) -> None:
    async def both() -> list[Ran]:
        slow = sandbox.run(
            ("/bin/sh", "-c", "sleep 0.7; exit 5"),
            key=OTHER,
            cwd="/",
            environment={},
            seconds=60,
            on_output=lambda _: None,
        )
        return await asyncio.gather(slow, start(sandbox, "sleep 1000 & exit 6"))

    assert asyncio.run(both()) == [Ran(status=5), Ran(status=6, ended=1)]


async def cancelled_once_it_speaks(
    sandbox: HostSandbox, script: str, *, again: bool = False
) -> None:
    spoke = asyncio.Event()
    task = asyncio.create_task(start(sandbox, script, on_output=lambda _: spoke.set()))
    await spoke.wait()
    task.cancel()
    if again:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
    await task


@pytest.mark.parametrize("again", [False, True])
def test_cancellation_ends_everything_before_it_goes_on(
    again: bool, sandbox: HostSandbox, capsule: CapsuleId
) -> None:
    script = "trap '' TERM; setsid sleep 1000 & echo go; while :; do sleep 1000; done"
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_once_it_speaks(sandbox, script, again=again))
    assert not marked(capsule)


def test_what_the_receiver_of_output_raises_ends_everything(
    sandbox: HostSandbox, capsule: CapsuleId
) -> None:
    def refuse(_: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(start(sandbox, "echo a; sleep 1000", on_output=refuse))
    assert not marked(capsule)


def test_output_of_a_program_that_is_already_gone_is_whole(sandbox: HostSandbox) -> None:
    _, output = run(sandbox, f"{sys.executable} -c \"print('x' * 60000, end='')\"")
    assert len(output) == 60_000
    _, output = run(sandbox, "yes | head -c 5000000")
    assert len(output) == 5_000_000


def test_a_run_is_recorded_while_it_runs_and_not_longer(
    sandbox: HostSandbox, tmp_path: Path
) -> None:
    record = tmp_path / "runs" / f"{KEY}.json"
    _, output = run(sandbox, f"cat {record}; echo; echo $$")
    assert f'"pid":{output.split()[-1].decode()},'.encode() in output
    assert list((tmp_path / "runs").iterdir()) == []


def test_what_cannot_be_recorded_does_not_run(tmp_path: Path, capsule: CapsuleId) -> None:
    runs = tmp_path / "runs"
    runs.write_text("a file is in the way")
    sandbox = HostSandbox(capsule=capsule, runs=runs, boot="boot")
    with pytest.raises(StorageError):
        run(sandbox, f"touch {tmp_path}/ran")
    assert not (tmp_path / "ran").exists()
    assert not marked(capsule)


def test_one_call_does_not_run_twice_at_a_time(sandbox: HostSandbox) -> None:
    async def twice() -> None:
        first = asyncio.create_task(start(sandbox, "sleep 0.5"))
        await asyncio.sleep(0)
        with pytest.raises(UsageError):
            await start(sandbox, "true")
        with pytest.raises(UsageError):
            sandbox.end_left_behind()
        await first

    asyncio.run(twice())


def test_no_descriptor_and_no_zombie_is_left(sandbox: HostSandbox) -> None:
    run(sandbox, "true")
    before = sorted(os.listdir("/proc/self/fd"))
    for script in ("true", "sleep 1000 & true", "kill -9 $$"):
        run(sandbox, script)
    assert sorted(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_the_process_of_the_tests_is_one_of_everyone() -> None:
    own = process(os.getpid())
    assert own is not None
    assert own.pid in {one.pid for one in everyone()}
    assert own.parent == os.getppid()
    assert process(2**22 + 1) is None
