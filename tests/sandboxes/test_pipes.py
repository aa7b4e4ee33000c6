"""The ends of pipes that the event loop watches."""

import asyncio
import os

import pytest

from sojourn.sandboxes.pipes import Drain, Feed


def test_what_is_in_the_pipe_at_the_end_is_taken() -> None:
    async def drained() -> list[bytes]:
        reading, writing = os.pipe()
        taken: list[bytes] = []
        drain = Drain(reading, taken.append, asyncio.get_running_loop().create_future())
        os.write(writing, b"last words")
        drain.rest()
        os.close(writing)
        drain.rest()
        drain.close()
        return taken

    assert asyncio.run(drained()) == [b"last words"]


def test_what_the_receiver_raised_is_raised_at_the_end_again() -> None:
    async def drained() -> None:
        reading, writing = os.pipe()
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def refuse(_: bytes) -> None:
            raise IndexError

        drain = Drain(reading, refuse, end)
        os.write(writing, b"x")
        os.close(writing)
        with pytest.raises(IndexError):
            await end
        try:
            drain.rest()
        finally:
            drain.close()

    with pytest.raises(IndexError):
        asyncio.run(drained())


def test_input_that_nobody_reads_is_dropped() -> None:
    async def fed() -> None:
        reading, writing = os.pipe()
        feed = Feed(writing)
        feed.start(b"x" * 1_000_000)
        os.close(reading)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        feed.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(writing)

    asyncio.run(fed())
