"""The sockets that the daemon listens on, made by itself: a unix socket, and TLS if asked for."""

import os
import socket
from typing import Final

from sojourn.errors import UsageError
from sojourn.peers.near import short_path

BACKLOG: Final = 128


def near_socket(path: str) -> socket.socket:
    """The machine's own socket, for this account alone; only under the daemon's lock.

    Raises: UsageError `path_too_long`; OSError.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(path) as short:
            if os.path.lexists(path):
                os.unlink(path)
            before = os.umask(0o177)
            try:
                made.bind(short)
            finally:
                os.umask(before)
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def far_socket(listen: str) -> socket.socket:
    """A socket at `HOST:PORT`; an empty host is every address of the machine.

    Raises: UsageError `listen_refused`.
    """
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise _refused(listen, "it is not HOST:PORT")
    try:
        found = socket.getaddrinfo(
            host or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
    except OSError as failure:
        raise _refused(listen, failure.strerror or str(failure)) from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError as failure:
        made.close()
        raise _refused(listen, failure.strerror or str(failure)) from None
    return made


def _refused(listen: str, why: str) -> UsageError:
    return UsageError(
        f"the daemon cannot listen on {listen}: {why}",
        code="listen_refused",
        state="Nothing was started.",
        hint="Give --listen HOST:PORT, for instance --listen 0.0.0.0:7477.",
    )
