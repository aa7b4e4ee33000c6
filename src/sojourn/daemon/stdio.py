"""`serve --stdio`: a pipe between stdin and stdout and the machine's daemon, as bytes."""

import os
import socket
import threading
from typing import Final

from sojourn.agent import Machine
from sojourn.daemon.start import connect

PIECE: Final = 256 * 1024


def pipe(machine: Machine) -> None:
    """Until one side ends; the daemon is started when none runs, and goes on afterwards.

    Raises: as `connect`.
    """
    with connect(machine) as made:
        threading.Thread(target=_upstream, args=(made,), daemon=True).start()
        _downstream(made)


def _upstream(made: socket.socket) -> None:
    """stdin to the daemon."""
    try:
        while data := os.read(0, PIECE):
            made.sendall(data)
    except OSError:
        pass
    _end(made)


def _downstream(made: socket.socket) -> None:
    """The daemon to stdout."""
    try:
        while data := made.recv(PIECE):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
    except OSError:
        return


def _end(made: socket.socket) -> None:
    try:
        made.shutdown(socket.SHUT_WR)
    except OSError:
        return
