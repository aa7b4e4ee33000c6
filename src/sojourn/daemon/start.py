"""Starting the daemon when it is needed: detached, so that it outlives whoever needed it."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from typing import Final

from sojourn.agent import Machine
from sojourn.agent.links import socket_of
from sojourn.errors import PeerError
from sojourn.peers.near import connected
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable

START_SECONDS: Final = 20.0
PAUSE: Final = 0.02
LOG: Final = "daemon.log"
LOG_BYTES: Final = 1 << 20
"""Bytes of its log above which the next start begins a new one."""


def connect(machine: Machine) -> socket.socket:
    """A connection to the machine's daemon, which is started when none runs.

    Raises: PeerError `daemon_failed`, with the end of what it said; UsageError `path_too_long`.
    """
    end = time.monotonic() + START_SECONDS
    found = _reach(machine)
    while found is None:
        _start(machine)
        found = _reach(machine)
        if found is None and time.monotonic() > end:
            raise _failed(machine)
        if found is None:
            # Another process starts one right now: it has the lock, and no socket yet.
            time.sleep(PAUSE)
    return found


def ensure(machine: Machine) -> str:
    """The path of the socket of the machine's daemon, which runs on return.

    Raises: as `connect`.
    """
    connect(machine).close()
    return socket_of(machine)


def _reach(machine: Machine) -> socket.socket | None:
    try:
        return connected(socket_of(machine))
    except (FileNotFoundError, ConnectionError):
        return None


def _start(machine: Machine) -> None:
    """Return when it serves, or has ended: it holds the writing end of a pipe until then."""
    Durable(OsDisk()).make_folder(machine.home)
    listening, ready = os.pipe()
    try:
        with _log(machine) as log:
            subprocess.Popen(
                (sys.executable, "-m", "sojourn", "serve", "--ready-fd", str(ready)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(machine),
                cwd="/",
                pass_fds=(ready,),
                start_new_session=True,
            )
        os.close(ready)
        ready = -1
        with contextlib.suppress(OSError):
            os.read(listening, 1)
    finally:
        os.close(listening)
        if ready >= 0:
            os.close(ready)


def _environment(machine: Machine) -> dict[str, str]:
    """Without what belongs to the one connection by which it was started."""
    kept = {name: text for name, text in machine.environment.items() if name[:4] != "SSH_"}
    return {**kept, "SOJOURN_HOME": machine.home}


@contextlib.contextmanager
def _log(machine: Machine) -> Generator[int]:
    path = f"{machine.home}/{LOG}"
    with contextlib.suppress(OSError):
        if os.stat(path).st_size > LOG_BYTES:
            os.replace(path, f"{path}.old")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _failed(machine: Machine) -> PeerError:
    path, said = f"{machine.home}/{LOG}", ""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.stat(path).st_size - 2000))
        said = file.read().decode("utf-8", "replace").strip()
    return PeerError(
        "the daemon of this machine does not start",
        code="daemon_failed",
        state=said,
        hint=f"`sojourn serve` shows why; its log is {path}.",
    )
