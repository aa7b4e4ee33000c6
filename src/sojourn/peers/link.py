"""Requests to one machine: each is signed, and only a signed answer of that machine counts."""

import contextlib
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from typing import Final, TypeVar

import httpcore2
import msgspec

from sojourn.errors import PeerError
from sojourn.ids import MachineId
from sojourn.peers.connect import Connector, NotThere, WrongMachine
from sojourn.peers.limits import (
    ANSWER,
    ANSWER_SECONDS,
    BEAT_SECONDS,
    BODY_SECONDS,
    IDLE_SECONDS,
    LINE,
    PROTOCOL,
    SMALL,
)
from sojourn.peers.places import Ssh, Way
from sojourn.peers.shapes import Hello, Refusal
from sojourn.peers.signing import (
    ANYONE,
    STREAMED,
    Asked,
    ask_headers,
    digest,
    is_signed,
    read_answered,
)
from sojourn.ports_link import Identity

T = TypeVar("T")

NO_COMMAND: Final = 127
"""What a shell says of a program that is not there."""

CONNECTIONS: Final = 4

NEVER_DONE: Final = frozenset(
    {"busy", "not_allowed", "not_paired", "no_such_path", "pairing_closed", "replayed"}
    | {"signature_wrong", "stale_boot", "too_large", "too_slow", "unsigned", "wrong_machine"}
)
"""Refusals that say that nothing was looked at."""


class Link:
    """A machine at an address; the first request asks who is there.

    `expected` is the machine that must answer, None to take whoever does; `token` gives random
    bytes. `key` is the other machine's, in base64, once it answered.
    """

    def __init__(
        self,
        way: Way,
        connector: Connector,
        *,
        identity: Identity,
        expected: MachineId | None,
        token: Callable[[int], bytes],
    ) -> None:
        self.way = way
        self._connector = connector
        self._identity = identity
        self._machine = expected
        self._token = token
        self._hello: Hello | None = None
        self.key = ""
        self._pool = httpcore2.AsyncConnectionPool(
            network_backend=connector,
            max_connections=CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS / 2,
        )

    @property
    def seen(self) -> bytes:
        """The certificate that the other side showed, in DER; empty without TLS."""
        return self._connector.seen

    async def hello(self, *, again: bool = False) -> Hello:
        """Who is there, asked once for each start of it.

        Raises: PeerError, also `peer_too_old`, `peer_too_new`, `wrong_machine`.
        """
        if self._hello is None or again:
            asked = self._asked("GET", "/v1/hello", digest(b""), anyone=True)
            hello = await self._told(asked, b"", Hello, ANSWER_SECONDS)
            if hello.protocol != PROTOCOL:
                raise self._other_version(hello)
            self._machine = hello.machine
            self._hello = hello
        return self._hello

    async def call(
        self,
        method: str,
        target: str,
        answer: type[T],
        body: object = None,
        *,
        seconds: float = ANSWER_SECONDS,
    ) -> T:
        """Send a small request and read the answer; a restart of the other side is no failure.

        Raises: PeerError.
        """
        data = b"" if body is None else msgspec.json.encode(body)
        await self.hello()
        asked = self._asked(method, target, digest(data))
        try:
            return await self._told(asked, data, answer, seconds)
        except PeerError as failure:
            if failure.code != "stale_boot":
                raise
        await self.hello(again=True)
        asked = self._asked(method, target, digest(data))
        return await self._told(asked, data, answer, seconds)

    async def pour(self, target: str, answer: type[T], body: AsyncIterator[bytes]) -> T:
        """Send a stream whose parts prove themselves. Raises: PeerError."""
        await self.hello()
        asked = self._asked("POST", target, STREAMED)
        return await self._told(asked, body, answer, ANSWER_SECONDS)

    async def lines(self, target: str) -> AsyncGenerator[bytes]:
        """The lines of a stream, each with its end; an empty one only says that it goes on.

        Raises: PeerError.
        """
        await self.hello(again=True)
        asked = self._asked("GET", target, digest(b""))
        with self._troubles(begun=True):
            async with self._sent(asked, b"", 3 * BEAT_SECONDS) as (response, headers):
                await self._check(asked, response, headers, streamed=True)
                async for line in _lines(response):
                    yield line

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def _asked(self, method: str, target: str, body: str, *, anyone: bool = False) -> Asked:
        known = None if anyone else self._hello
        return Asked(
            method=method,
            target=target,
            key=b64encode(self._identity.public).decode(),
            to=ANYONE if known is None else known.machine,
            boot=ANYONE if known is None else known.boot,
            nonce=self._token(16).hex(),
            body=body,
        )

    async def _told(
        self, asked: Asked, body: bytes | AsyncIterator[bytes], answer: type[T], seconds: float
    ) -> T:
        with self._troubles(begun=True):
            async with self._sent(asked, body, seconds) as (response, headers):
                data = await self._check(asked, response, headers, streamed=False)
        try:
            return msgspec.json.decode(data, type=answer)
        except msgspec.MsgspecError as failure:
            raise self._bad(f"it says something else than was asked for ({failure})") from None

    @contextlib.asynccontextmanager
    async def _sent(
        self, asked: Asked, body: bytes | AsyncIterator[bytes], seconds: float
    ) -> AsyncGenerator[tuple[httpcore2.Response, Mapping[str, str]]]:
        headers = {"host": "peer", **ask_headers(asked, self._identity)}
        if isinstance(body, bytes):
            headers["content-length"] = str(len(body))
        else:
            headers["transfer-encoding"] = "chunked"
        times = {"connect": None, "read": seconds, "write": 2 * BODY_SECONDS, "pool": None}
        request = self._pool.stream(
            asked.method,
            f"http://peer{asked.target}",
            headers=list(headers.items()),
            content=body,
            extensions={"timeout": times},
        )
        async with request as response:
            pairs = ((name.decode().lower(), text.decode()) for name, text in response.headers)
            yield response, dict(pairs)

    async def _check(
        self,
        asked: Asked,
        response: httpcore2.Response,
        headers: Mapping[str, str],
        *,
        streamed: bool,
    ) -> bytes:
        """The body of an answer that is the right machine's; empty for one that streams.

        Raises: PeerError for every other one, and for a refusal.
        """
        answered = read_answered(asked, response.status, headers)
        if answered is None or not is_signed(answered, headers, self._identity):
            raise self._bad("its answer is not signed, so it may be anybody's")
        if self._machine is not None and answered.machine != self._machine:
            raise self._wrong(answered.machine)
        self.key = answered.key
        refused = response.status != 200
        if streamed and not refused:
            return b""
        data = await _whole(response, SMALL if refused else ANSWER)
        if data is None or digest(data) != answered.body:
            raise self._bad("its answer was changed on the way, or is too long")
        if refused:
            raise self._refused(response.status, data)
        return data

    def _refused(self, status: int, data: bytes) -> PeerError:
        try:
            fault = msgspec.json.decode(data, type=Refusal).error
        except msgspec.MsgspecError:
            return self._bad(f"it answered {status} without a reason")
        return PeerError(
            f"{self.way} refused: {fault.message}",
            code=fault.code,
            state=fault.state,
            hint=fault.hint,
            may_have_arrived=fault.code not in NEVER_DONE,
        )

    @contextlib.contextmanager
    def _troubles(self, *, begun: bool) -> Generator[None]:
        """What the client raises, as errors of this link."""
        try:
            yield
        except PeerError:
            raise
        except WrongMachine:
            raise self._wrong(None) from None
        except NotThere as failure:
            raise self._no_program(failure, begun) from None
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as failure:
            raise self._unreachable(str(failure), arrived=False) from None
        except (
            httpcore2.NetworkError,
            httpcore2.TimeoutException,
            httpcore2.ProtocolError,
        ) as failure:
            words = str(failure) or type(failure).__name__
            raise self._unreachable(words, arrived=begun) from None

    def _unreachable(self, words: str, *, arrived: bool) -> PeerError:
        hint = "Look whether it runs there: `sojourn serve`."
        if "CERTIFICATE" in words.upper() or "UNKNOWN_CA" in words.upper():
            hint = "The other side does not let this machine in: `sojourn pair` introduces the two."
        if isinstance(self.way, Ssh):
            hint = f"Look whether `ssh {self.way.host} sojourn version` works."
        return PeerError(
            f"{self.way} cannot be reached: {words}",
            state="It is not known whether the request was read." if arrived else "",
            hint=hint,
            may_have_arrived=arrived,
        )

    def _no_program(self, failure: NotThere, begun: bool) -> PeerError:
        if failure.code == NO_COMMAND:
            return PeerError(
                f"sojourn is not installed at {self.way}, or not on the PATH of ssh there",
                code="peer_without_sojourn",
                state="Nothing was sent.",
                hint="Install it there, so that `ssh HOST sojourn version` answers.",
            )
        return self._unreachable(str(failure), arrived=begun and self._hello is not None)

    def _wrong(self, machine: MachineId | None) -> PeerError:
        who = "" if machine is None else f" (machine {machine[:12]})"
        return PeerError(
            f"another machine than the known one answers at {self.way}{who}",
            code="wrong_machine",
            state="Nothing that it says was believed.",
            hint="If the machine was set up anew: `sojourn remote rm` it and introduce it again.",
        )

    def _other_version(self, hello: Hello) -> PeerError:
        old = hello.protocol < PROTOCOL
        return PeerError(
            f"{self.way} runs sojourn {hello.version}, which speaks version {hello.protocol} of "
            f"the link; this one speaks {PROTOCOL}",
            code="peer_too_old" if old else "peer_too_new",
            state="Nothing was sent.",
            hint="Install a newer sojourn there." if old else "Install a newer sojourn here.",
        )

    def _bad(self, what: str) -> PeerError:
        return PeerError(
            f"{self.way} answered badly: {what}",
            code="peer_answer",
            state="It is not known whether the request was done.",
            may_have_arrived=True,
        )


async def _chunks(response: httpcore2.Response) -> AsyncGenerator[bytes]:
    async for chunk in response.aiter_stream():
        yield chunk


async def _whole(response: httpcore2.Response, limit: int) -> bytes | None:
    """The body, None when it is longer than `limit`."""
    parts, size = list[bytes](), 0
    async with contextlib.aclosing(_chunks(response)) as chunks:
        async for chunk in chunks:
            size += len(chunk)
            if size > limit:
                return None
            parts.append(chunk)
    return b"".join(parts)


async def _lines(response: httpcore2.Response) -> AsyncGenerator[bytes]:
    """Whole lines, each with its end. Raises: PeerError `peer_answer` for one without an end."""
    kept = b""
    async for chunk in _chunks(response):
        *whole, kept = (kept + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if len(kept) > LINE:
            raise PeerError("a line of the log is too long", code="peer_answer")
