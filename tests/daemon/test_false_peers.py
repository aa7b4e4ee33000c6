"""Answers that must not be believed: unsigned, of another machine, to another request, changed."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from daemon.daemons import check, machine, running
from sojourn.agent.links import identity_of, open_peer, socket_of
from sojourn.errors import PeerError

Change = Callable[[list[bytes]], bytes]
"""Of all answers so far, the last one as it shall arrive."""


@asynccontextmanager
async def between(folder: Path, change: Change) -> AsyncGenerator[str]:
    """Somebody between the two, on another socket, who may change every answer but the first."""
    answers: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(socket_of(here.machine))
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                back.write(head + await reader.readexactly(length(head)))
                answer = await there.readuntil(b"\r\n\r\n")
                answer += await there.readexactly(length(answer))
                answers.append(answer)
                writer.write(answers[0] if len(answers) == 1 else change(answers))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for one in (back, writer):
                one.close()
                await one.wait_closed()
            gone.set()

    gone = asyncio.Event()
    async with running(folder / "a") as here:
        path = f"{folder}/between.sock"
        server = await asyncio.start_unix_server(serve, path)
        try:
            yield f"unix://{path}"
        finally:
            server.close()
            await gone.wait()


def length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def untouched(answers: list[bytes]) -> bytes:
    return answers[-1]


def unsigned(answers: list[bytes]) -> bytes:
    return answers[-1].replace(b"sojourn-signature", b"something-else-xx")


def changed(answers: list[bytes]) -> bytes:
    return answers[-1].replace(b'"log":0', b'"log":7')


def another_status(answers: list[bytes]) -> bytes:
    return answers[-1].replace(b"200 OK", b"409 OK")


def of_another_request(answers: list[bytes]) -> bytes:
    return answers[0]


def of_the_same_request_earlier(answers: list[bytes]) -> bytes:
    return answers[1]


def not_http(_answers: list[bytes]) -> bytes:
    return b"Welcome to this host!\r\n\r\n"


def ask(folder: Path, change: Change) -> PeerError | None:
    async def both() -> PeerError | None:
        async with between(folder, change) as where, open_peer(machine(folder / "b"), where) as one:
            try:
                await one.ask(check())
            except PeerError as failure:
                return failure
        return None

    return asyncio.run(both())


def test_what_only_passes_between_two_is_believed(tmp_path: Path) -> None:
    """What the others differ from."""
    assert ask(tmp_path, untouched) is None


@pytest.mark.parametrize("change", [unsigned, changed, another_status, of_another_request])
def test_a_changed_answer_is_not_believed(tmp_path: Path, change: Change) -> None:
    failure = ask(tmp_path, change)
    assert failure is not None
    assert failure.code == "peer_answer"
    assert failure.may_have_arrived


def test_an_earlier_answer_to_the_same_question_is_not_believed(tmp_path: Path) -> None:
    async def both() -> None:
        where = between(tmp_path, of_the_same_request_earlier)
        async with where as address, open_peer(machine(tmp_path / "b"), address) as one:
            await one.ask(check())
            with pytest.raises(PeerError) as caught:
                await one.ask(check())
            assert caught.value.code == "peer_answer"

    asyncio.run(both())


def test_what_is_no_answer_at_all_is_named(tmp_path: Path) -> None:
    failure = ask(tmp_path, not_http)
    assert failure is not None
    assert failure.code == "peer_unreachable"
    assert failure.may_have_arrived


def test_the_first_answer_of_another_machine_is_not_believed(tmp_path: Path) -> None:
    async def both() -> None:
        expected = identity_of(machine(tmp_path / "c")).machine
        async with between(tmp_path, untouched) as where:
            with pytest.raises(PeerError) as caught:
                async with open_peer(machine(tmp_path / "b"), where, expected=expected):
                    raise AssertionError
            assert caught.value.code == "wrong_machine"

    asyncio.run(both())
