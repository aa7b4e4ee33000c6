"""A real pseudo-terminal with sojourn in it, typed at and read like a person's."""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from cli.running import Place

SECONDS = 30.0
CONTROL_C, CONTROL_D = "\x03", "\x04"


class Terminal:
    """A command line of bash with this terminal as its own; it is ended on leaving."""

    def __init__(self, place: Place, command: str, **environment: str) -> None:
        self.seen = ""
        self._end, inner = os.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=place.folder,
            env={**place.environment, "TERM": "xterm", **environment},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)

    def wait_for(self, pattern: str) -> None:
        """Read until the pattern was seen."""
        self._read_until(lambda: re.search(pattern, self.seen) is not None, pattern)

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def end(self) -> int:
        """Read all that is still said; the exit code."""
        self._read_until(lambda: False, "the end")
        return self.process.wait(SECONDS)

    def _read_until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not reached():
            ready, _, _ = select.select([self._end], [], [], 0.2)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what!r} was not seen in {self.seen!r}")
            if ready and not self._read():
                if what == "the end":
                    return
                raise EOFError(f"{what!r} was not seen in {self.seen!r}")

    def _read(self) -> bool:
        """Take what is there; False at the end, which Linux tells as an error."""
        try:
            piece = os.read(self._end, 65536)
        except OSError:
            return False
        self.seen += piece.decode("utf-8", "replace")
        return bool(piece)


def wait_until(reached: Callable[[], bool]) -> None:
    """Look again and again until it is so; the thing itself is waited for, not a time."""
    deadline = time.monotonic() + SECONDS
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen")
        select.select([], [], [], 0.02)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
