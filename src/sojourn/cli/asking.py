"""A question of the agent to the person at the terminal."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from sojourn.cli.clean import clean
from sojourn.cli.voice import Painted, Voice


def asker(voice: Voice) -> Callable[[str], Awaitable[str]] | None:
    """Asks at the terminal; None when nobody sits there, and the tool then says so."""
    if voice.settings.json or not voice.err.terminal or not sys.stdin.isatty():
        return None

    async def ask(question: str) -> str:
        voice.err.put(Painted("? ", "alarm"), Painted(clean(question), "bold"), "\n> ")
        return await typed_line(sys.stdin.fileno())

    return ask


async def typed_line(descriptor: int) -> str:
    """The next line from a terminal, without its end; a cancelled wait takes nothing from it.

    Raises: EOFError when the person ended the input.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()
    kept = bytearray()

    def readable() -> None:
        piece = os.read(descriptor, 4096)
        kept.extend(piece)
        if (not piece or kept.endswith(b"\n")) and not answer.done():
            answer.set_result(bytes(kept))

    loop.add_reader(descriptor, readable)
    try:
        line = await answer
    finally:
        loop.remove_reader(descriptor)
    if not line:
        raise EOFError
    return line.decode("utf-8", "replace").rstrip("\r\n")
