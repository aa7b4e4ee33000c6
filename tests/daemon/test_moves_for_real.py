"""An agent moves between two machines that are processes of their own, by each of three ways."""

import json
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from daemon.daemons import Process, acquaint, end_daemon, machine, process, sojourn
from daemon.sshd import SSHD, sshd

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path]:
    """The other machine's state folder; its daemon is ended."""
    place = tmp_path / "there"
    yield place
    end_daemon(place)


def reach(tmp_path: Path, home: Path, way: str, ends: ExitStack) -> tuple[str, dict[str, str]]:
    """How the other machine is named from here, and what the environment says for that."""
    if way == "ssh":
        far = ends.enter_context(sshd(tmp_path / "sshd", home))
        return far.address, {"SOJOURN_SSH": far.ssh}
    listen = ("--listen", "127.0.0.1:0") if way == "tls" else ()
    there: Process = ends.enter_context(process(home, *listen))
    if way == "unix":
        return there.near, {}
    here, other = machine(tmp_path / "here"), machine(home)
    acquaint(here, other, name="there", address=there.far)
    acquaint(other, here, name="here")
    return "there", {}


@pytest.mark.parametrize("way", ["unix", "tls", "ssh"])
def test_an_agent_moves_with_its_files_and_goes_on(tmp_path: Path, home: Path, way: str) -> None:
    if way == "ssh" and SSHD is None:
        pytest.skip("no sshd here: install openssh-server")
    here = tmp_path / "here"
    assert sojourn(here, "init", "-n", "box", "-m", "echo").returncode == 0
    workspace = next((here / "workspaces").iterdir())
    (workspace / "notes.txt").write_text("kept\n" * 100_000)
    with ExitStack() as ends:
        where, extra = reach(tmp_path, home, way, ends)
        moved = sojourn(here, "move", "box", where, extra=extra)
        assert moved.returncode == 0, moved.stdout + moved.stderr
        arrived = next((home / "workspaces").iterdir())
        assert (arrived / "notes.txt").read_text() == "kept\n" * 100_000
        sent = sojourn(here, "send", "box", "go on", "--remote", where, extra=extra)
        assert sent.returncode == 0, sent.stderr
        log = sojourn(here, "log", "box", "--json", "--remote", where, extra=extra)
        kinds = [json.loads(line)["event"]["kind"] for line in log.stdout.splitlines()]
        assert kinds[:1] == ["created"]
        assert "sealed" in kinds
        assert sojourn(here, "run", "box", "not here").returncode == 5
    assert sojourn(home, "verify", "box").returncode == 0


def test_a_machine_that_may_not_move_here_is_refused_and_its_agent_goes_on(
    tmp_path: Path, home: Path
) -> None:
    here, me, other = tmp_path / "here", machine(tmp_path / "here"), machine(home)
    assert sojourn(here, "init", "-n", "box", "-m", "echo").returncode == 0
    with process(home, "--listen", "127.0.0.1:0") as there:
        acquaint(me, other, name="there", address=there.far)
        acquaint(other, me, name="here", rights=("look", "send"))
        moved = sojourn(here, "move", "box", "there", "--json")
        assert moved.returncode == 8, moved.stdout
        assert "not_allowed" in moved.stdout
        assert sojourn(here, "run", "box", "still here").returncode == 0
