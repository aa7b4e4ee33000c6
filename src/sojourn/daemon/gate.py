"""From a request of HTTP to a checked call and back: limits, signatures, answers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from sojourn.daemon.door import Caller, Need
from sojourn.daemon.house import House, Slots
from sojourn.daemon.origin import Origin
from sojourn.daemon.refusal import Refused, fault_of
from sojourn.errors import PeerError, SojournError
from sojourn.peers.limits import BODY_SECONDS, SMALL, STREAM
from sojourn.peers.shapes import Fault, Refusal
from sojourn.peers.signing import STREAMED, Asked, answer_headers, digest, read_asked

log = logging.getLogger(__name__)

JSON: Final = "application/json"
FRAMES: Final = "application/octet-stream"
LINES: Final = "application/jsonl"

Slot: TypeAlias = Literal["requests", "streams", "followers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that was let in; `path` are the parts of its path, `asks` its body or query."""

    house: House
    caller: Caller
    path: Mapping[str, str]
    asks: object
    stream: AsyncIterator[bytes]


Act: TypeAlias = Callable[[Call], Awaitable[object]]
"""Gives the struct to answer with, or an `AsyncGenerator` of bytes for a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One path: what it is for, who may ask it, what it takes and gives.

    `asks` is the struct of the body, `query` that of the query; `gives` that of the answer.
    `streamed`: the body is frames; `lines`: the answer is lines.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    summary: str
    need: Need
    act: Act
    asks: object = None
    query: type[msgspec.Struct] | None = None
    gives: object = None
    limit: int = SMALL
    slot: Slot = "requests"
    streamed: bool = False
    lines: bool = False
    to_anyone: bool = False


class Gate:
    """Serves one endpoint."""

    def __init__(self, house: House, endpoint: Endpoint) -> None:
        self._house = house
        self._endpoint = endpoint

    async def answer(self, request: Request) -> Response:
        """The signed answer, whatever happens; but none after a failed durable write."""
        asked = read_asked(request.method, target_of(request), request.headers)
        try:
            with ExitStack() as held:
                held.enter_context(self._slots().one())
                done = await self._done(request, asked)
                if self._endpoint.lines:
                    return self._lines(asked, done, held.pop_all())
                return self._answer(asked, 200, done)
        except Refused as refused:
            return self._answer(asked, refused.status, Refusal(error=refused.fault))
        except SojournError as failure:
            if failure is self._house.failed:
                raise
            status, fault = fault_of(failure)
            return self._answer(asked, status, Refusal(error=fault))
        except ClientDisconnect:
            raise
        except Exception as failure:
            log.exception("%s %s", request.method, self._endpoint.path)
            words = f"{type(failure).__name__}: this is a defect of sojourn"
            refusal = Refusal(error=Fault(code="unexpected", message=words))
            return self._answer(asked, 500, refusal)

    async def _done(self, request: Request, asked: Asked | None) -> object:
        endpoint, house = self._endpoint, self._house
        data = b"" if endpoint.streamed else await _body(request, endpoint.limit)
        caller = house.door.admit(
            asked,
            request.headers,
            cast(Origin, request.state.origin),
            need=endpoint.need,
            body=STREAMED if endpoint.streamed else digest(data),
            to_anyone=endpoint.to_anyone,
        )
        call = Call(
            house=house,
            caller=caller,
            path=cast(Mapping[str, str], request.path_params),
            asks=self._asks(request, data),
            stream=_stream(request),
        )
        return await endpoint.act(call)

    def _asks(self, request: Request, data: bytes) -> object:
        endpoint = self._endpoint
        try:
            if endpoint.query is not None:
                query = dict(request.query_params)
                return msgspec.convert(query, endpoint.query, strict=False)
            if endpoint.asks is not None:
                wanted = cast(type[msgspec.Struct], endpoint.asks)
                return msgspec.json.decode(data, type=wanted)
        except (msgspec.MsgspecError, UnicodeDecodeError) as failure:
            raise Refused("malformed", str(failure), state="Nothing was done.") from None
        return data

    def _answer(self, asked: Asked | None, status: int, value: object) -> Response:
        data = value if isinstance(value, bytes) else msgspec.json.encode(value)
        headers = self._headers(asked, status, digest(data))
        return Response(data, status_code=status, headers=headers, media_type=JSON)

    def _lines(self, asked: Asked | None, value: object, held: ExitStack) -> Response:
        headers = self._headers(asked, 200, STREAMED)
        return _Lines(cast(AsyncGenerator[bytes], value), headers, held)

    def _slots(self) -> Slots:
        match self._endpoint.slot:
            case "requests":
                return self._house.requests
            case "streams":
                return self._house.streams
            case "followers":
                return self._house.followers

    def _headers(self, asked: Asked | None, status: int, body: str) -> dict[str, str]:
        house = self._house
        return answer_headers(
            asked, status=status, boot=house.boot, body=body, identity=house.identity
        )


class _Lines(StreamingResponse):
    """Lines as they come; the slot is free again however it ends."""

    def __init__(
        self, lines: AsyncGenerator[bytes], headers: Mapping[str, str], held: ExitStack
    ) -> None:
        super().__init__(lines, headers=headers, media_type=LINES)
        self._lines = lines
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._held.close()
            await self._lines.aclose()


def target_of(request: Request) -> str:
    """Path and query as they were sent: what was signed."""
    path = cast(bytes, request.scope.get("raw_path") or b"").decode("ascii", "replace")
    query = cast(bytes, request.scope["query_string"]).decode("ascii", "replace")
    return f"{path}?{query}" if query else path


async def _body(request: Request, limit: int) -> bytes:
    """The whole body. Raises: Refused `too_large`, `too_slow`."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _all(request, limit)
    except TimeoutError:
        raise Refused("too_slow", "the body took too long to come") from None


async def _all(request: Request, limit: int) -> bytes:
    parts, size = list[bytes](), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise Refused("too_large", f"the body is longer than {limit:,} bytes")
        parts.append(chunk)
    return b"".join(parts)


async def _stream(request: Request) -> AsyncIterator[bytes]:
    """The body's chunks. Raises: PeerError `bad_frames` when it is cut or too long; Refused."""
    size, chunks = 0, request.stream()
    while (chunk := await _next(chunks)) is not None:
        size += len(chunk)
        if size > STREAM:
            raise Refused("too_large", f"the body is longer than {STREAM:,} bytes")
        yield chunk


async def _next(chunks: AsyncGenerator[bytes]) -> bytes | None:
    """The next chunk, None at the end. Raises: as `_stream`."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await anext(chunks, None)
    except TimeoutError:
        raise Refused("too_slow", "the next piece took too long to come") from None
    except ClientDisconnect:
        raise PeerError("the contents were cut", code="bad_frames") from None
