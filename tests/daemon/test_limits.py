"""What takes too long, too much or too many is cut off, and harms nobody else."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from daemon.daemons import check, piece, running
from daemon.strangers import CHECK, CONTENTS, request_text, stranger
from sojourn.agent.links import socket_of
from sojourn.daemon import gate, origin
from sojourn.daemon.house import Slots
from sojourn.daemon.refusal import Refused
from sojourn.peers.frames import Packer
from sojourn.peers.limits import HEADERS
from sojourn.peers.signing import (
    STREAMED,
)


def test_a_stream_that_is_cut_keeps_what_came_whole_and_harms_nobody(tmp_path: Path) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            frame = Packer(compress=False).frames(piece(b"whole"))
            asked = replace(other.asked("POST", CONTENTS), body=STREAMED)
            reader, writer = await asyncio.open_unix_connection(socket_of(other.here.machine))
            writer.write(request_text(other, asked, length=1000) + frame + frame[:20])
            await writer.drain()
            await other.here.fake.kept.wait()
            writer.close()
            await writer.wait_closed()
            assert await reader.read() == b""
            body = msgspec.json.encode(check())
            assert (await other.say(other.asked("POST", CHECK, body), body)).status == 200
            assert other.here.fake.contents == {piece(b"whole").digest: b"whole"}

    asyncio.run(both())


def test_headers_that_do_not_end_are_cut_off(tmp_path: Path) -> None:
    async def both() -> None:
        async with stranger(tmp_path) as other:
            reader, writer = await asyncio.open_unix_connection(socket_of(other.here.machine))
            writer.write(b"GET /v1/hello HTTP/1.1\r\nx: " + b"a" * (HEADERS + 70_000))
            assert (await reader.read()).startswith(b"HTTP/1.1 400")
            writer.close()

    asyncio.run(both())


@pytest.mark.parametrize("begun", [b"", b"GET /v1/hello HTTP/1.1\r\nho"])
def test_a_request_whose_headers_take_too_long_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(origin, "HEADERS_SECONDS", 0.05)

    async def both() -> None:
        async with stranger(tmp_path) as other:
            reader, writer = await asyncio.open_unix_connection(socket_of(other.here.machine))
            writer.write(begun)
            async with asyncio.timeout(20):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(both())


@pytest.mark.parametrize("target", [CHECK, CONTENTS])
def test_a_body_that_takes_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(gate, "BODY_SECONDS", 0.05)

    async def both() -> None:
        async with stranger(tmp_path) as other:
            asked = other.asked("POST", target)
            if target == CONTENTS:
                asked = replace(asked, body=STREAMED)
            reader, writer = await asyncio.open_unix_connection(socket_of(other.here.machine))
            writer.write(request_text(other, asked, length=1000) + b"{")
            async with asyncio.timeout(20):
                assert (await reader.readline()).startswith(b"HTTP/1.1 408")
            writer.close()

    asyncio.run(both())


def test_only_so_many_connections_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "CONNECTIONS", 2)
    monkeypatch.setattr(origin, "HEADERS_SECONDS", 3600.0)

    async def both() -> None:
        async with running(tmp_path / "a") as here:
            path = socket_of(here.machine)
            kept = [await asyncio.open_unix_connection(path) for _ in range(2)]
            reader, writer = await asyncio.open_unix_connection(path)
            async with asyncio.timeout(20):
                assert await reader.read() == b""
            for _, one in (*kept, (reader, writer)):
                one.close()

    asyncio.run(both())


def test_one_more_than_there_are_slots_is_turned_away() -> None:
    slots = Slots(1)
    with slots.one():
        with pytest.raises(Refused) as caught, slots.one():
            raise AssertionError
        assert caught.value.fault.code == "busy"
    with slots.one():
        pass
