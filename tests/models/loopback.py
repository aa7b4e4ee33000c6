"""What the tests of models share: a clock and dice that are arguments, servers that misbehave."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace

from sojourn.ids import CallKey
from sojourn.models.choose import AnyModel, open_model
from sojourn.models.limits import LIMITS, Limits
from sojourn.ports import ServerEvent

KEY = CallKey("ab" * 32)
SECRET = "sk-ant-Secret_0123456789-abcdef"
CHAT: Mapping[str, object] = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [{"role": "user", "content": "hi"}],
}
MESSAGES: Mapping[str, object] = {
    "model": "m",
    "stream": True,
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hi"}],
}
QUICK = replace(LIMITS, idle_seconds=0.2, tail_seconds=0.2, refusal_seconds=0.2)

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Clock:
    """Waits without waiting, and keeps how long it was asked to."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.seconds = 1000.0

    def now(self) -> str:
        return "2026-11-30T12:00:00.000Z"

    def monotonic(self) -> float:
        return self.seconds

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


class Dice:
    """Always the same bytes."""

    def __init__(self, byte: int = 255) -> None:
        self.byte = byte

    def token(self, size: int) -> bytes:
        return bytes([self.byte]) * size


def model_at(
    url: str,
    name: str = "openai-compatible/m",
    *,
    clock: Clock | None = None,
    limits: Limits = QUICK,
    **environment: str,
) -> AnyModel:
    """A model of this name at a loopback URL, with a key."""
    variables = {"SOJOURN_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url}
    variables |= {"SOJOURN_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}
    return open_model(
        name,
        environment={**variables, **environment},
        clock=clock or Clock(),
        randomness=Dice(),
        limits=limits,
    )


async def collect(model: AnyModel, payload: Mapping[str, object] = CHAT) -> list[ServerEvent]:
    """Every event of one call; the connection is left as it is."""
    async with contextlib.aclosing(model.stream(payload, key=KEY)) as events:
        return [event async for event in events]


async def once(model: AnyModel, payload: Mapping[str, object] = CHAT) -> list[ServerEvent]:
    """Every event of one call; the model is closed after it."""
    async with contextlib.aclosing(model):
        return await collect(model, payload)


@contextlib.asynccontextmanager
async def served(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL of a loopback server that treats each connection so; it waits for all of them."""
    running: set[asyncio.Task[None]] = set()

    async def treat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await handler(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a cancelled task would be reported by asyncio itself
        finally:
            running.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(treat, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for _ in range(10):  # who connected and left at once is let in before the door closes
            await asyncio.sleep(0)
        server.close()
        for task in tuple(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> tuple[dict[str, str], bytes]:
    """Headers (lower case, the first line as `:`) and body of one request."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers = {":": first}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers, await reader.readexactly(int(headers.get("content-length", "0")))


def saying(*answers: bytes, seen: list[dict[str, str]] | None = None) -> Handler:
    """Give these raw answers in turn, one a connection, the last one again and again."""
    left = list(answers)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers, _ = await read_request(reader)
        if seen is not None:
            seen.append(headers)
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    return handle


def http(status: int, body: bytes | str = b"", **headers: str) -> bytes:
    """A whole HTTP answer."""
    data = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Said"]
    lines += [f"{name}: {value}" for name, value in named.items()]
    lines += [f"content-length: {len(data)}", "connection: close", "", ""]
    return "\r\n".join(lines).encode() + data


def stream(body: bytes) -> bytes:
    """An HTTP answer that is a stream of events and ends with the connection."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    return head + body
