"""A model behind HTTP: one streaming client for every provider (docs/models.md#calls)."""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from sojourn.errors import CallError
from sojourn.format.event import Issuer
from sojourn.ids import CallKey
from sojourn.models.answer import Answer, BrokenOff, Cut, Malformed
from sojourn.models.failures import Failures
from sojourn.models.limits import LIMITS, Limits
from sojourn.models.providers import Place
from sojourn.models.retry import Tries, retry_after, wanted
from sojourn.models.said import read_refusal
from sojourn.models.sse import EventTooLong
from sojourn.models.wire import Sending, trouble
from sojourn.ports import Randomness, ServerEvent, WallClock
from sojourn.render.profile import Profile
from sojourn.render.request import render_bytes

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

log = logging.getLogger(__name__)

ANTHROPIC_VERSION: Final = "2023-06-01"
SEND_BYTES: Final = 64 * 1024
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class HttpModel:
    """One model of one provider, over one connection that is used again while it is warm."""

    def __init__(
        self,
        *,
        issuer: Issuer,
        profile: Profile,
        place: Place,
        clock: WallClock,
        randomness: Randomness,
        limits: Limits = LIMITS,
    ) -> None:
        self._issuer = issuer
        self._profile = profile
        self._place = place
        self._clock = clock
        self._randomness = randomness
        self._limits = limits
        self._failures = Failures(place=place, model=issuer.model, limit=limits.message_characters)
        self._client: AsyncClient | None = None

    def __repr__(self) -> str:
        return f"HttpModel({self._issuer.provider}/{self._issuer.model})"

    @property
    def issuer(self) -> Issuer:
        return self._issuer

    @property
    def profile(self) -> Profile:
        return self._profile

    async def stream(
        self, payload: Mapping[str, object], *, key: CallKey
    ) -> AsyncGenerator[ServerEvent]:
        """Send the request and yield the answer's events; tried again only before the first one.

        Raises: CallError with a code of docs/models.md#failures.
        """
        body = render_bytes(payload)
        tries = Tries(clock=self._clock, randomness=self._randomness, limits=self._limits)
        while not tries.over:
            async with contextlib.aclosing(self._attempt(body, key, tries)) as events:
                async for event in events:
                    yield event
            if not tries.over:
                await self._clock.wait(tries.pause)

    async def aclose(self) -> None:
        """Close the connection; the model opens a new one when it is used again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _attempt(
        self, body: bytes, key: CallKey, tries: Tries
    ) -> AsyncGenerator[ServerEvent]:
        """Send once; a failure after which it is tried again ends this quietly."""
        try:
            async with contextlib.aclosing(self._send(body, key)) as events:
                async for event in events:
                    tries.begun = True
                    yield event
            tries.over = True
        except CallError as failure:
            tries.failed(failure)
            log.info("model call: %s, tried again in %.1f s", failure.code, tries.pause)

    async def _send(self, body: bytes, key: CallKey) -> AsyncGenerator[ServerEvent]:
        """Send once and yield what comes."""
        sending = Sending()
        client = self._open()
        request = client.build_request(
            "POST",
            self._place.url,
            content=_pieces(body),
            headers={**self._headers(key), "Content-Length": str(len(body))},
            extensions={"trace": sending.note},
        )
        with self._troubles(sending):
            response = await client.send(request, stream=True)
        answer = Answer(self._profile.dialect, event_bytes=self._limits.event_bytes)
        try:
            await self._check(response)
            async with (
                contextlib.aclosing(self._chunks(response, answer, sending)) as chunks,
                contextlib.aclosing(answer.events(chunks)) as events,
            ):
                async for event in events:
                    yield event
        except (BrokenOff, Cut, EventTooLong, Malformed) as error:
            raise self._judged(error) from None
        finally:
            await response.aclose()

    def _headers(self, key: CallKey) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "Idempotency-Key": key,
            "User-Agent": "sojourn",
        }
        if self._profile.dialect == "anthropic":
            headers["anthropic-version"] = ANTHROPIC_VERSION
        if self._place.key is not None:
            name, value = self._place.key.header()
            headers[name] = value
        return headers

    def _open(self) -> "AsyncClient":
        if self._client is not None:
            return self._client
        import httpx2

        limits = self._limits
        try:
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(limits.idle_seconds, connect=limits.connect_seconds),
                limits=httpx2.Limits(keepalive_expiry=limits.keep_alive_seconds),
                mounts=dict.fromkeys(f"all://{host}" for host in LOOPBACK),
                verify=_trust(self._place.url),
            )
        except (ImportError, ValueError, OSError) as error:
            raise self._failures.make(
                "unreachable",
                "the proxy or the certificates that the environment names cannot be used",
                hint=f"{error}. Look at HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and SSL_CERT_FILE.",
                retry=False,
            ) from None
        return self._client

    async def _check(self, response: "Response") -> None:
        """Raise unless this is a stream of events."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        status = response.status_code
        if status == 200 and kind == "text/event-stream":
            return
        body = await self._read_refusal(response)
        said = read_refusal(body)
        if status == 200 and kind == "application/json" and b'"error"' in body:
            raise self._failures.broken_off(said, begun=False)
        if 200 <= status < 300:
            raise self._failures.make(
                "stream_malformed",
                f"it sent {kind or 'something of no named kind'}, not a stream of events",
                retry=False,
                may_have_happened=True,
            )
        headers: Mapping[str, str] = response.headers
        raise self._failures.refused(
            said,
            status=status,
            retry_after=retry_after(headers, now=self._clock.now()),
            retry=wanted(headers),
            request=headers.get("request-id") or headers.get("x-request-id") or "",
        )

    async def _read_refusal(self, response: "Response") -> bytes:
        """The start of a body that is no stream; one that breaks off is read as far as it goes."""
        from httpx2 import HTTPError

        body = b""
        chunks = response.aiter_bytes()
        limit = self._limits.refusal_bytes
        with contextlib.suppress(HTTPError, OSError):
            async with asyncio.timeout(self._limits.refusal_seconds):
                while len(body) < limit and (chunk := await anext(chunks, b"")):
                    body += chunk
        await chunks.aclose()
        return body[:limit]

    async def _chunks(
        self, response: "Response", answer: Answer, sending: Sending
    ) -> AsyncGenerator[bytes]:
        """The body's bytes; whatever goes wrong behind a finished reply ends them quietly."""
        size = 0
        async with contextlib.aclosing(response.aiter_bytes()) as body:
            while chunk := await self._next(body, answer, sending):
                size += len(chunk)
                if size > self._limits.stream_bytes:
                    raise Malformed("it does not end")
                yield chunk

    async def _next(self, body: AsyncGenerator[bytes], answer: Answer, sending: Sending) -> bytes:
        """The next bytes, empty at the end; behind a whole reply it is not waited for long."""
        wait = self._limits.tail_seconds if answer.over else None
        try:
            with self._troubles(sending):
                async with asyncio.timeout(wait):
                    return await anext(body, b"")
        except TimeoutError:
            return b""
        except CallError:
            if answer.whole():
                return b""
            raise

    @contextlib.contextmanager
    def _troubles(self, sending: Sending) -> Generator[None]:
        """Turns what the client raises into failures."""
        from httpx2 import HTTPError

        try:
            yield
        except TimeoutError:
            raise
        except (HTTPError, OSError) as error:
            raise trouble(error, sending, self._failures, self._limits) from None

    def _judged(self, error: Exception) -> CallError:
        """The failure that a judgement of the answer stands for."""
        match error:
            case BrokenOff():
                return self._failures.broken_off(error.said, begun=error.begun)
            case Cut():
                return self._failures.make("stream_cut", may_have_happened=True)
            case EventTooLong():
                detail = "an event of it is too long"
            case _:
                detail = str(error)
        return self._failures.make("stream_malformed", detail, may_have_happened=True)


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    """The body in pieces: the client sees only at the next write that a connection is gone."""
    for start in range(0, len(body), SEND_BYTES):
        yield body[start : start + SEND_BYTES]


def _trust(url: str) -> ssl.SSLContext | bool:
    """Whose certificates count; to read those takes long, and plain loopback needs none."""
    parts = urlsplit(url)
    plain = parts.scheme == "http" and parts.netloc.rpartition(":")[0] in LOOPBACK
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True
