"""The unix socket of a machine's daemon, whose path may be longer than the kernel takes."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from sojourn.errors import UsageError

NAME: Final = "daemon.sock"
LONGEST: Final = 100
"""Bytes of a socket's path that every kernel takes."""


@contextmanager
def short_path(path: str) -> Generator[str]:
    """A path of the same socket that is short enough; good within.

    Raises: UsageError `path_too_long` where the kernel offers no way around; OSError.
    """
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    if not os.path.isdir("/proc/self/fd"):
        raise UsageError(
            f"the path of the socket {path} is too long for a socket",
            code="path_too_long",
            state="Nothing was done.",
            hint="Let SOJOURN_HOME name a folder with a shorter path.",
        )
    folder, name = os.path.split(path)
    handle = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)


def connected(path: str) -> socket.socket:
    """A socket that is connected to the one at `path`; it blocks. Raises: OSError, UsageError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(path) as short:
            made.connect(short)
    except BaseException:
        made.close()
        raise
    return made
