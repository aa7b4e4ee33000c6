"""The three ends of a program that the event loop watches: its input, its output, its exit."""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

PIECE: Final = 64 * 1024
REST: Final = 1024 * 1024
"""Bytes taken from a pipe after the end: as much as it can hold."""


class Feed:
    """Writes bytes to a pipe as it takes them, then closes it."""

    def __init__(self, fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._left = memoryview(b"")
        os.set_blocking(fd, False)

    def start(self, data: bytes) -> None:
        self._left = memoryview(data)
        self._loop.add_writer(self._fd, self._write)
        self._write()

    def _write(self) -> None:
        try:
            self._left = self._left[os.write(self._fd, self._left[:PIECE]) :]
        except BlockingIOError:
            return
        except OSError:
            # The program does not read any more, which is its right.
            self.close()
        if not self._left:
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
        self._fd = -1


class Drain:
    """Hands on what comes out of a pipe; what the receiver raises ends the waiting for `end`."""

    def __init__(
        self, fd: int, on_output: Callable[[bytes], None], end: "asyncio.Future[None]"
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._on_output = on_output
        self._end = end
        self._error: Exception | None = None
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            if not self._take():
                self._loop.remove_reader(self._fd)
        except BlockingIOError:
            return
        except Exception as error:
            self._loop.remove_reader(self._fd)
            self._error = error
            if not self._end.done():
                self._end.set_exception(error)

    def _take(self) -> int:
        data = os.read(self._fd, PIECE)
        if data:
            self._on_output(data)
        return len(data)

    def rest(self) -> None:
        """What is still in the pipe; a process that got away may keep it open for ever.

        Raises: what the receiver raised.
        """
        if self._error is not None:
            raise self._error
        taken = 0
        with suppress(BlockingIOError):
            while taken < REST and (more := self._take()):
                taken += more

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
        self._fd = -1


def when_exited(
    child: "subprocess.Popen[bytes]", end: "asyncio.Future[None]"
) -> Callable[[], None]:
    """Resolve `end` when the child has exited; what is returned stops the watching."""
    loop = asyncio.get_running_loop()

    def settle() -> None:
        if not end.done():
            end.set_result(None)

    try:
        fd = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        threading.Thread(target=_wait, args=(child, loop, settle), daemon=True).start()
        return lambda: None

    def exited() -> None:
        loop.remove_reader(fd)
        settle()

    def stop() -> None:
        loop.remove_reader(fd)
        os.close(fd)

    loop.add_reader(fd, exited)
    return stop


def _wait(
    child: "subprocess.Popen[bytes]", loop: asyncio.AbstractEventLoop, settle: Callable[[], None]
) -> None:
    """Where the kernel has no descriptors for processes."""
    child.wait()
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)


async def exit_of(fds: list[int], seconds: float) -> None:
    """Return when the processes behind the descriptors have exited, or after that long."""
    loop = asyncio.get_running_loop()
    for fd in fds:
        gone: asyncio.Future[None] = loop.create_future()
        loop.add_reader(fd, lambda gone=gone: gone.done() or gone.set_result(None))
        began = loop.time()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await gone
        except TimeoutError:
            return
        finally:
            loop.remove_reader(fd)
        seconds -= loop.time() - began
