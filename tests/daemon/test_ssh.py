"""By ssh nothing is set up on the other side but sojourn: a real sshd, a real ssh."""

import asyncio
import os
from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest

from daemon.daemons import CAPSULE, MOVE, answered, check, end_daemon, machine, piece, sojourn
from daemon.sshd import SSHD, Sshd, sshd
from sojourn.agent import Machine
from sojourn.agent.links import identity_of, open_peer
from sojourn.core.migration_messages import Refused, Wanted
from sojourn.errors import PeerError
from sojourn.peers.near import connected
from sojourn.ports_move import Piece

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SSHD is None, reason="no sshd here: install openssh-server"),
]


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path]:
    """The other machine's state folder; its daemon is ended."""
    place = tmp_path / "there"
    yield place
    end_daemon(place)


def here(tmp_path: Path, far: Sshd) -> Machine:
    """This machine, whose ssh knows that sshd."""
    made = machine(tmp_path / "here")
    made.environment.update(SOJOURN_SSH=far.ssh, HOME=str(tmp_path))
    return made


def test_a_daemon_is_started_by_ssh_and_answers_and_goes_on(tmp_path: Path, home: Path) -> None:
    async def both(far: Sshd) -> None:
        async with open_peer(here(tmp_path, far), far.address) as peer:
            first = peer.hello
            assert isinstance(await peer.ask(check()), Wanted | Refused)
        async with open_peer(here(tmp_path, far), far.address) as peer:
            assert peer.hello.boot == first.boot
            assert peer.machine == identity_of(machine(home)).machine

    with sshd(tmp_path / "sshd", home) as far:
        asyncio.run(both(far))
        connected(str(home / "daemon.sock")).close()


def test_the_commands_go_by_ssh(tmp_path: Path, home: Path) -> None:
    assert sojourn(home, "init", "-n", "box", "-m", "echo").returncode == 0
    with sshd(tmp_path / "sshd", home) as far:
        extra = {"SOJOURN_SSH": far.ssh}
        folder = tmp_path / "here"
        added = sojourn(folder, "remote", "add", "there", far.address, "--json", extra=extra)
        assert added.returncode == 0, added.stdout + added.stderr
        listed = sojourn(folder, "ps", "-a", "--remote", "there", "--json", extra=extra)
        assert '"name":"box"' in listed.stdout
        log = sojourn(folder, "log", "box", "--remote", "there", "--oneline", extra=extra)
        assert "created" in log.stdout.splitlines()[0]


async def stream(size: int) -> AsyncIterator[Piece]:
    data = os.urandom(65_536)
    for _ in range(size // len(data)):
        yield piece(data)


def test_a_link_that_is_cut_in_the_middle_is_said_so(tmp_path: Path, home: Path) -> None:
    async def cut(far: Sshd) -> PeerError:
        async def pieces() -> AsyncIterator[Piece]:
            async for part in stream(16 * 1024 * 1024):
                yield part
                _end_children(far)

        async with open_peer(here(tmp_path, far), far.address) as peer:
            with pytest.raises(PeerError) as caught:
                await peer.send(CAPSULE, MOVE, pieces())
            return caught.value

    with sshd(tmp_path / "sshd", home) as far:
        failure = asyncio.run(cut(far))
        assert failure.code == "peer_unreachable"
        assert failure.may_have_arrived


def _end_children(far: Sshd) -> None:
    """End the sshd processes of the connections."""
    pid = far.program.pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        os.kill(int(child), 9)


@pytest.mark.parametrize(
    ("command", "code", "word"),
    [
        ("#!/bin/sh\nexec no-such-program-here\n", "peer_without_sojourn", "not installed"),
        ("#!/bin/sh\necho trouble of its own >&2; exit 3\n", "peer_unreachable", "of its own"),
        ("#!/bin/sh\necho Welcome to this host\n", "peer_unreachable", ""),
    ],
)
def test_what_is_wrong_at_the_other_side_is_told(
    tmp_path: Path, home: Path, command: str, code: str, word: str
) -> None:
    async def reach(far: Sshd) -> PeerError:
        with pytest.raises(PeerError) as caught:
            async with open_peer(here(tmp_path, far), far.address):
                raise AssertionError
        return caught.value

    with sshd(tmp_path / "sshd", home, command=command) as far:
        failure = asyncio.run(reach(far))
        assert failure.code == code
        assert word in failure.message


def test_a_host_that_does_not_answer_is_said_so(tmp_path: Path, home: Path) -> None:
    with sshd(tmp_path / "sshd", home) as far:
        far.program.terminate()
        far.program.wait(30)
        done = sojourn(
            tmp_path / "here",
            "ps",
            "--remote",
            far.address,
            "--json",
            extra={"SOJOURN_SSH": far.ssh},
        )
        error = answered(done)["error"]
        assert done.returncode == 8
        assert "refused" in error["message"].lower()
