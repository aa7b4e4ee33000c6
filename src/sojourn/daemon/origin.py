"""Connections: who is at the other end as the kernel and TLS say, and how slow it may be.

No ASGI server tells its app of the peer's certificate or account, so this class of connections puts
them into the scope (`state["origin"]`).
"""

import asyncio
import socket
import ssl
import struct
from dataclasses import dataclass
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from sojourn.peers.limits import CONNECTIONS, HEADERS_SECONDS, STREAM
from sojourn.peers.pins import shown

_CREDENTIALS: Final = struct.Struct("3i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The other end: `near` over the unix socket, with the account `uid` where it is known.

    `pin` is the sha256 of the certificate that was shown by TLS, empty for none.
    """

    near: bool
    uid: int | None = None
    pin: str = ""


class Connection(H11Protocol):
    """One connection; headers have a time, all together have a number."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._fresh = True
        self._slow: asyncio.TimerHandle | None = None
        self._spilt = 0
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self.app_state = {**self.app_state, "origin": _origin(transport)}
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self.conn.our_state is h11.DONE:
            # It was answered already; what still comes of its body is thrown away, up to a limit.
            self._spilt += len(data)
            if self._spilt > STREAM:
                self.transport.abort()
                return
        else:
            self._spilt = 0
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """While the headers of a begun request are not whole, the time runs."""
        idle = self.conn.their_state is h11.IDLE
        self._fresh = self._fresh and idle
        if idle and (self._fresh or self.conn.trailing_data[0]):
            if self._slow is None:
                loop = asyncio.get_running_loop()
                self._slow = loop.call_later(HEADERS_SECONDS, self.transport.abort)
        else:
            self._calm()

    def _calm(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None


def _origin(transport: asyncio.Transport) -> Origin:
    tls = cast(ssl.SSLObject | None, transport.get_extra_info("ssl_object"))
    if tls is not None:
        return Origin(near=False, pin=shown(tls)[1])
    made: Any = transport.get_extra_info("socket")
    if made is None or made.family != socket.AF_UNIX:
        return Origin(near=False)
    return Origin(near=True, uid=_account(made))


def _account(made: socket.socket) -> int | None:
    """The account of the process that connected, where the kernel says it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    data = made.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(data)[1]
