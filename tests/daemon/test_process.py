"""The daemon as a process: one a machine, started when it is needed, stopped cleanly."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Generator
from itertools import takewhile
from pathlib import Path

import pytest

from daemon.daemons import answered, end_daemon, environment, process, sojourn
from sojourn.daemon.sockets import far_socket
from sojourn.daemon.start import LOG
from sojourn.errors import UsageError
from sojourn.peers.near import connected, short_path


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    """A state folder; a daemon that a command started there is ended."""
    place = tmp_path / "state"
    yield place
    end_daemon(place)


def near(folder: Path) -> str:
    return f"unix://{folder}/daemon.sock"


def test_the_socket_is_for_this_account_alone(folder: Path) -> None:
    with process(folder, "--no-work"):
        found = (folder / "daemon.sock").stat()
        assert stat.S_ISSOCK(found.st_mode)
        assert stat.S_IMODE(found.st_mode) & 0o077 == 0
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(folder: Path, number: int) -> None:
    with process(folder, "--no-work") as running:
        assert running.end(number) == 0
        assert not (folder / "daemon.sock").exists()


def test_a_second_start_says_who_runs(folder: Path) -> None:
    with process(folder, "--no-work") as running:
        done = sojourn(folder, "serve", "--json")
        error = answered(done)["error"]
        assert done.returncode == 5
        assert isinstance(error, dict)
        assert error["code"] == "daemon_runs"
        assert f"pid {running.program.pid} " in str(error["message"])


@pytest.mark.slow
def test_after_a_kill_the_next_start_serves(folder: Path) -> None:
    with process(folder, "--no-work") as running:
        running.end(signal.SIGKILL)
        assert (folder / "daemon.sock").exists()
    with process(folder, "--no-work") as again:
        assert again.said["boot"] != running.said["boot"]
        assert sojourn(folder, "remote", "test", near(folder)).returncode == 0


def test_a_command_that_needs_it_starts_it_and_it_goes_on(folder: Path) -> None:
    first = sojourn(folder, "remote", "test", near(folder), "--json")
    assert first.returncode == 0, first.stdout + first.stderr
    connected(str(folder / "daemon.sock")).close()
    assert (folder / LOG).stat().st_mode & 0o077 == 0
    second = sojourn(folder, "remote", "test", near(folder), "--json")
    assert answered(second)["machine"] == answered(first)["machine"]


@pytest.mark.slow
def test_two_commands_that_need_it_at_once_start_one(folder: Path) -> None:
    programs = [
        subprocess.Popen(
            [sys.executable, "-m", "sojourn", "remote", "test", near(folder), "--json"],
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    said = [program.communicate(timeout=120) for program in programs]
    assert [program.returncode for program in programs] == [0, 0, 0], said


@pytest.mark.slow
def test_what_keeps_it_from_starting_is_told(folder: Path) -> None:
    folder.mkdir()
    (folder / "machine.json").write_text('{"host":null,"machine":"' + "0" * 64 + '"}')
    (folder / "machine_key").write_text("no key")
    done = sojourn(folder, "serve", "--json")
    assert answered(done)["error"]["code"] == "machine_key_damaged"


@pytest.mark.slow
def test_stdio_is_a_pipe_to_the_one_daemon(folder: Path) -> None:
    request = "GET /v1/openapi.json HTTP/1.1\r\nhost: peer\r\nconnection: close\r\n\r\n"
    with process(folder, "--no-work") as running:
        done = _piped(folder, request)
        head, _, body = done.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 200")
        assert json.loads(body)["info"]["title"] == "sojourn daemon"
        assert running.program.poll() is None


def _piped(folder: Path, request: str) -> str:
    """What comes back through `serve --stdio` until the daemon closes the connection."""
    with subprocess.Popen(
        [sys.executable, "-m", "sojourn", "serve", "--stdio"],
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(request.encode())
        program.stdin.flush()
        said = program.stdout.read().decode()
    assert program.returncode == 0
    return said


def test_stdio_starts_the_daemon_which_outlives_it(folder: Path) -> None:
    request = "GET /v1/other HTTP/1.1\r\nhost: peer\r\nconnection: close\r\n\r\n"
    assert "no_such_path" in _piped(folder, request)
    connected(str(folder / "daemon.sock")).close()


@pytest.mark.slow
def test_a_socket_whose_path_is_too_long_works_too(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30) / "state"
    folder.mkdir(parents=True)
    with process(folder, "--no-work"):
        done = sojourn(folder, "remote", "test", near(folder))
        assert done.returncode == 0, done.stderr


def test_a_short_path_is_used_as_it_is(tmp_path: Path) -> None:
    with short_path("/short.sock") as path:
        assert path == "/short.sock"
    long = tmp_path / ("x" * 120)
    long.mkdir()
    with short_path(f"{long}/a.sock") as path:
        assert len(path) < 100
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path)
    assert (long / "a.sock").exists()


@pytest.mark.parametrize("listen", ["nowhere", "127.0.0.1:99999", "127.0.0.1:x"])
def test_a_place_to_listen_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(UsageError) as caught:
        far_socket(listen)
    assert caught.value.code == "listen_refused"


@pytest.mark.slow
def test_its_worker_takes_a_message_that_is_left_for_an_agent(folder: Path) -> None:
    assert sojourn(folder, "init", "-n", "box", "-m", "echo").returncode == 0
    with process(folder) as running:
        there = ("--remote", near(folder))
        sent = sojourn(folder, "send", "box", "hello there", *there)
        assert sent.returncode == 0, sent.stderr
        with subprocess.Popen(
            (sys.executable, "-m", "sojourn", "log", "box", "-f", "--json", *there),
            env=environment(folder),
            stdout=subprocess.PIPE,
            text=True,
        ) as follower:
            assert follower.stdout is not None
            events = (json.loads(line)["event"]["kind"] for line in follower.stdout)
            kinds = list(takewhile(lambda kind: kind != "turn_ended", events))
            follower.terminate()
        assert "model_outcome" in kinds
        assert running.end() == 0


@pytest.mark.slow
def test_its_worker_ends_with_it_even_when_it_is_killed(folder: Path) -> None:
    with process(folder) as running:
        pid = running.program.pid
        worker = _child(pid)
        # Else Ctrl-C at the daemon's terminal would pause the turns of the agents.
        assert os.getpgid(worker) != os.getpgid(pid)
        handle = os.pidfd_open(worker)
        running.end(signal.SIGKILL)
    import select

    assert select.select([handle], [], [], 60)[0]
    os.close(handle)


def _child(pid: int) -> int:
    """The first child process, once it runs its own program."""
    while True:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if b"\0serve\0" not in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
