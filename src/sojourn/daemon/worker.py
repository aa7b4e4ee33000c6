"""The process that runs agents for the daemon: their code never runs in the daemon itself."""

import asyncio
import logging
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

log = logging.getLogger(__name__)

FIRST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 60.0
"""How long it is waited until a worker that ended is started again; doubled each time."""

SOUND_SECONDS: Final = 30.0
"""A worker that ran this long is started again at once."""

LEAVE_SECONDS: Final = 20.0
"""How long a worker may take to leave its turns at a safe point."""


class WorkerProcess:
    """Keeps one worker going; it ends by itself when this process is gone (its stdin ends)."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; the worker has left its turns then."""
        pause = FIRST_SECONDS
        loop = asyncio.get_running_loop()
        while not stop.is_set():
            begun = loop.time()
            await self._once(stop)
            if stop.is_set():
                return
            pause = FIRST_SECONDS if loop.time() - begun > SOUND_SECONDS else pause * 2
            log.warning("the worker ended; the next one starts in %.0f s", pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(pause, LONGEST_SECONDS)):
                    await stop.wait()

    async def _once(self, stop: asyncio.Event) -> None:
        program = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=self._environment,
            # Ctrl-C at the daemon's terminal is not for the agents: it would pause their turns.
            start_new_session=True,
        )
        ended = asyncio.ensure_future(program.wait())
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                program.send_signal(signal.SIGTERM)
                await asyncio.wait((ended,), timeout=LEAVE_SECONDS)
        finally:
            stopped.cancel()
            if program.returncode is None:
                with suppress(ProcessLookupError):
                    program.kill()
            await ended
