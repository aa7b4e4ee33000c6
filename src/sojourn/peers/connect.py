"""Connections to another machine's daemon: a unix socket, a program's pipe, or TLS."""

import asyncio
import contextlib
import os
import signal
import socket
import ssl
from collections.abc import Iterable
from typing import Any, Final

from httpcore2 import (
    AsyncNetworkBackend,
    AsyncNetworkStream,
    ConnectError,
    ConnectTimeout,
    ReadError,
    ReadTimeout,
    WriteError,
    WriteTimeout,
)

from sojourn.peers.limits import CHUNK, CONNECT_SECONDS, DEAD_SECONDS, SSH_SECONDS
from sojourn.peers.near import connected
from sojourn.peers.pins import client_context, shown
from sojourn.peers.places import Near, Ssh, Tls, Way
from sojourn.ports_link import Certificate

COMMAND: Final = "sojourn serve --stdio"
"""What the other side's account runs."""

SAID: Final = 2000
"""Bytes of ssh's own words that are kept for the error."""

_LINUX_USER_TIMEOUT: Final = 18


class WrongMachine(ConnectError):
    """Something else than the expected machine is at the address."""


class Connector(AsyncNetworkBackend):
    """Opens connections one way; `pin` is the sha256 of the certificate that TLS must show.

    Without a pin any certificate is taken, and `seen` is what it was: for pairing only.
    """

    def __init__(
        self,
        way: Way,
        *,
        pin: str = "",
        own: Certificate | None = None,
        ssh: tuple[str, ...] = ("ssh",),
        command: str = COMMAND,
    ) -> None:
        self._way = way
        self._pin = pin
        self._own = own
        self._ssh = ssh
        self._command = command
        self._context: ssl.SSLContext | None = None
        self.seen = b""

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - as httpcore calls it
        port: int,  # noqa: ARG002 - as httpcore calls it
        timeout: float | None = None,  # noqa: ARG002 - as httpcore calls it
        local_address: str | None = None,  # noqa: ARG002 - as httpcore calls it
        socket_options: Iterable[object] | None = None,  # noqa: ARG002 - as httpcore calls it
    ) -> AsyncNetworkStream:
        """A connection; where to is known, so what is given here does not matter."""
        seconds = SSH_SECONDS if isinstance(self._way, Ssh) else CONNECT_SECONDS
        try:
            async with asyncio.timeout(seconds):
                return await self._connect()
        except TimeoutError:
            raise ConnectTimeout(f"no answer within {seconds:.0f} s") from None
        except ssl.SSLError as failure:
            raise ConnectError(f"TLS: {failure.reason or failure}") from failure
        except OSError as failure:
            raise ConnectError(failure.strerror or str(failure)) from failure

    async def sleep(self, seconds: float) -> None:
        """Wait between two tries."""
        await asyncio.sleep(seconds)

    async def _connect(self) -> AsyncNetworkStream:
        match self._way:
            case Near(path=path):
                made = connected(path)
                made.setblocking(False)
                reader, writer = await asyncio.open_unix_connection(sock=made, limit=CHUNK)
                return _Stream(reader, writer)
            case Ssh() as way:
                return await self._run(way)
            case Tls(host=host, port=port):
                return await self._tls(host, port)

    async def _tls(self, host: str, port: int) -> "_Stream":
        if self._context is None:
            self._context = client_context(self._own)
        reader, writer = await asyncio.open_connection(
            host, port, ssl=self._context, limit=CHUNK, ssl_handshake_timeout=CONNECT_SECONDS
        )
        stream = _Stream(reader, writer)
        der, digest = shown(writer.get_extra_info("ssl_object"))
        if self._pin and digest != self._pin:
            await stream.aclose()
            raise WrongMachine("the certificate is not the one that was pinned")
        self.seen = der
        _watch(writer.get_extra_info("socket"))
        return stream

    async def _run(self, way: Ssh) -> "_Stream":
        """A pipe through ssh; a broken link is noticed by ssh itself."""
        options = ["-T", "-o", f"ServerAliveInterval={DEAD_SECONDS // 3}"]
        options += ["-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=30"]
        if way.port is not None:
            options += ["-p", str(way.port)]
        target = f"{way.user}@{way.host}" if way.user else way.host
        program = await asyncio.create_subprocess_exec(
            *self._ssh,
            *options,
            "--",
            target,
            self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=CHUNK,
            start_new_session=False,
        )
        if program.stdin is None or program.stdout is None or program.stderr is None:
            raise OSError("ssh has no pipes")
        return _Pipe(program.stdout, program.stdin, program, program.stderr)


class _Stream(AsyncNetworkStream):
    """A connection as the HTTP client wants it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as failure:
            raise ReadTimeout("no answer in time") from failure
        except OSError as failure:
            raise ReadError(_words(failure)) from failure

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as failure:
            raise WriteTimeout("the other side takes nothing") from failure
        except (OSError, RuntimeError) as failure:
            raise WriteError(_words(failure)) from failure

    async def aclose(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                await self._writer.wait_closed()

    def get_extra_info(self, info: str) -> Any:
        """Whether the other side closed it or says something unasked: then it is not used again."""
        if info == "is_readable":
            return self._reader.at_eof() or bool(getattr(self._reader, "_buffer", b""))
        return None


class _Pipe(_Stream):
    """A program's stdin and stdout; what it says on stderr explains why it ended."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        program: asyncio.subprocess.Process,
        errors: asyncio.StreamReader,
    ) -> None:
        super().__init__(reader, writer)
        self._program = program
        self._said = bytearray()
        self._listening = asyncio.ensure_future(self._listen(errors))

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await super().read(max_bytes, timeout)
        if not data:
            await self._explain()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await super().write(buffer, timeout)
        except WriteError:
            await self._explain()
            raise

    async def aclose(self) -> None:
        await super().aclose()
        try:
            async with asyncio.timeout(2):
                await self._program.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._program.send_signal(signal.SIGKILL)
            await self._program.wait()
        self._listening.cancel()

    async def _listen(self, errors: asyncio.StreamReader) -> None:
        while data := await errors.read(4096):
            self._said = (self._said + data)[-SAID:]

    async def _explain(self) -> None:
        """Raise with what the program said when it failed before anything came."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                code = await self._program.wait()
                await asyncio.wait((self._listening,))
                if code:
                    words = self._said.decode("utf-8", "replace").strip()
                    raise NotThere(words or f"ssh ended with code {code}", code=code)


class NotThere(ReadError):
    """The program that should connect ended; 127 says that sojourn is not there."""

    def __init__(self, words: str, *, code: int) -> None:
        super().__init__(words)
        self.code = code


def _words(failure: BaseException) -> str:
    if isinstance(failure, ssl.SSLError):
        return f"TLS: {failure.reason or failure}"
    return str(getattr(failure, "strerror", "") or failure or type(failure).__name__)


def _watch(connection: socket.socket | None) -> None:
    """A link that was cut without a word is noticed after `DEAD_SECONDS`."""
    if connection is None:
        return
    third = max(1, DEAD_SECONDS // 3)
    wanted = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", third), ("TCP_KEEPINTVL", third), ("TCP_KEEPCNT", 2)):
        number = getattr(socket, name, None)
        if number is not None:
            wanted.append((socket.IPPROTO_TCP, number, value))
    if os.uname().sysname == "Linux":
        wanted.append((socket.IPPROTO_TCP, _LINUX_USER_TIMEOUT, DEAD_SECONDS * 1000))
    for level, option, value in wanted:
        with contextlib.suppress(OSError):
            connection.setsockopt(level, option, value)
