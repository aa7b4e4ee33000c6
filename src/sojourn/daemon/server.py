"""Runs the app on the daemon's sockets until it is told to stop."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from starlette.applications import Starlette
from uvicorn.config import Config
from uvicorn.server import ServerState

from sojourn.daemon.origin import Connection
from sojourn.peers.limits import CONNECT_SECONDS, HEADERS, IDLE_SECONDS

GRACE_SECONDS: Final = 5.0
"""How long requests that run may go on when the daemon stops."""


class Server:
    """The connections of one app; `fresh` is called at the beginning of each TLS handshake."""

    def __init__(self, app: Starlette) -> None:
        self._config = Config(
            app,
            http=Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_SECONDS),
            h11_max_incomplete_event_size=HEADERS,
        )
        self._config.load()
        self._state = ServerState()
        self._servers: list[asyncio.Server] = []

    async def listen(
        self,
        made: socket.socket,
        *,
        tls: ssl.SSLContext | None = None,
        fresh: Callable[[], None] | None = None,
    ) -> None:
        """Take connections on a socket that listens already."""
        if tls is not None and fresh is not None:
            tls.sni_callback = lambda _tls, _name, _context: fresh()
        loop = asyncio.get_running_loop()
        seconds = None if tls is None else CONNECT_SECONDS
        server = await loop.create_server(
            self._connection, sock=made, ssl=tls, ssl_handshake_timeout=seconds
        )
        self._servers.append(server)

    async def close(self) -> None:
        """No new connections; what runs may end, within `GRACE_SECONDS`."""
        for server in self._servers:
            server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=GRACE_SECONDS)
        for task in set(self._state.tasks):
            task.cancel()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=1)
        for connection in list(self._state.connections):
            with suppress(RuntimeError):
                connection.transport.abort()

    def _connection(self) -> Connection:
        loop = asyncio.get_running_loop()
        return Connection(self._config, self._state, {}, loop)
