"""Ctrl-C: once pauses at a safe point, twice stops the running call, three times ends the run."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from sojourn.cli.voice import Painted, Voice

PAUSING = "pausing after this call; Ctrl-C again stops it now"
STOPPING = "stopping the call; its outcome will be unknown"
ENDING = "ending; what was durable stays"


@contextmanager
def interruptible(
    voice: Voice,
    *,
    pause: Callable[[], None],
    stop: Callable[[], None],
    leave: Callable[[], None],
) -> Generator[None]:
    """Within, SIGINT pauses and then stops; SIGTERM and SIGHUP leave the turn to whoever is next.

    `pause`, `stop` and `leave` are called in the event loop.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    pressed = 0

    def interrupted() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            voice.talk(Painted(PAUSING, "warn"))
            pause()
        elif pressed == 2:
            voice.talk(Painted(STOPPING, "warn"))
            stop()
        elif task is not None:
            voice.talk(Painted(ENDING, "warn"))
            task.cancel()

    for number, act in (
        (signal.SIGINT, interrupted),
        (signal.SIGTERM, leave),
        (signal.SIGHUP, leave),
    ):
        loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
