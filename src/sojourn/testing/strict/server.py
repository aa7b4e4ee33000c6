"""The strict server: a loopback HTTP server that refuses what the real providers refuse."""

import asyncio
import contextlib
import os
import threading
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from sojourn.testing.strict.answers import Answer, Recorded, Setup, answer
from sojourn.testing.strict.anthropic.api import MessagesApi
from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.api import Api
from sojourn.testing.strict.faults import Break, Faults, Gate
from sojourn.testing.strict.http11 import (
    LAST_CHUNK,
    MAX_HEAD,
    BrokenRequest,
    HttpRequest,
    chunk,
    read_request,
    response_head,
)
from sojourn.testing.strict.openai_chat.api import ChatApi
from sojourn.testing.strict.openai_chat.hosts import HOSTS, HostRules
from sojourn.testing.strict.reply import Replies, to_json, turn_of
from sojourn.testing.strict.shape import is_object

_LOOPBACK: Final = "127.0.0.1"


class StrictServer:
    """Serves the Messages and the Chat Completions API on a free loopback port.

    An asynchronous context manager; `serve_in_thread` runs it beside synchronous code. `url` has no
    path: an Anthropic client takes it as it is, an OpenAI client with `/v1`.

    replies: what the model says, see `Replies`. faults: which request meets which fault. api: which
    of the two it speaks. host, rules: how strict it is. keys, models: those accepted, None for any.
    log: a file that gets one line a request before its answer is sent, so that counts outlive the
    client; with_payloads: whether those lines hold the bodies too.
    """

    def __init__(
        self,
        *,
        replies: Replies = (),
        faults: Faults | None = None,
        api: Literal["anthropic", "openai", "both"] = "both",
        host: str | HostRules = "openai",
        rules: AnthropicRules | None = None,
        keys: Iterable[str] | None = None,
        models: Iterable[str] | None = None,
        idempotency_header: str = "idempotency-key",
        log: Path | str | None = None,
        with_payloads: bool = False,
        port: int = 0,
    ) -> None:
        messages = MessagesApi(rules or AnthropicRules())
        chat = ChatApi(host if isinstance(host, HostRules) else HOSTS[host])
        routes: dict[str, Api] = {}
        if api != "openai":
            routes["/v1/messages"] = messages
        if api != "anthropic":
            routes |= {"/v1/chat/completions": chat, "/chat/completions": chat}
        self._setup = Setup(
            routes=routes,
            replies=replies,
            faults=faults or {},
            keys=None if keys is None else frozenset(keys),
            models=None if models is None else frozenset(models),
            key_header=idempotency_header.lower(),
        )
        self._log = None if log is None else Path(log)
        self._log_file: int | None = None
        self._with_payloads = with_payloads
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None
        self._next = 1
        self.requests: list[Recorded] = []
        """Every request in the order of arrival."""
        self.counts: Counter[str] = Counter()
        """How often each idempotency key came."""

    @property
    def url(self) -> str:
        """Where it listens.

        Raises: RuntimeError when it does not.
        """
        if self._server is None:
            raise RuntimeError("the strict server is not running")
        return f"http://{_LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"

    @property
    def refusals(self) -> list[Recorded]:
        """The requests that a rule refused."""
        return [one for one in self.requests if one.verdict == "refused"]

    async def __aenter__(self) -> Self:
        if self._log is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._log_file = os.open(self._log, flags, 0o644)
        self._server = await asyncio.start_server(
            self._serve, _LOOPBACK, self._port, limit=MAX_HEAD
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None
        if self._log_file is not None:
            os.close(self._log_file)
            self._log_file = None
        if self._failure is not None and error is None:
            raise self._failure

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
        try:
            while (request := await read_request(reader, writer)) is not None:
                await _write(writer, self._answer(request))
        except (BrokenRequest, ConnectionError, _Broken):
            pass
        except asyncio.CancelledError:  # the server stops; asyncio would log it as an error
            pass
        except Exception as error:  # kept for the test that runs the server
            self._failure = error
        finally:
            if task is not None:
                self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _answer(self, request: HttpRequest) -> Answer:
        found, record = answer(request, self._next, self._setup)
        self._next += record.number > 0
        self.requests.append(record)
        if record.idempotency_key is not None:
            self.counts[record.idempotency_key] += 1
        if self._log_file is not None:
            os.write(self._log_file, _line(record, with_payload=self._with_payloads))
        return found


class _Broken(Exception):
    """A fault cut the connection."""


async def _write(writer: asyncio.StreamWriter, found: Answer) -> None:
    if found.silent:
        writer.transport.abort()
        raise _Broken
    chunked = "content-length" not in found.headers
    writer.write(response_head(found.status, found.headers))
    for step in found.steps:
        if isinstance(step, Gate):
            await writer.drain()
            await step.wait()
        elif isinstance(step, Break):
            await writer.drain()
            raise _Broken
        elif step:
            writer.write(chunk(step) if chunked else step)
            await writer.drain()
    if chunked:
        writer.write(LAST_CHUNK)
    await writer.drain()


def _line(record: Recorded, *, with_payload: bool) -> bytes:
    """One line of the log: what came, and what came of it."""
    payload = record.payload if is_object(record.payload) else {}
    value: dict[str, object] = {
        "number": record.number,
        "api": record.api,
        "path": record.path,
        "verdict": record.verdict,
        "rule": record.refusal.rule if record.refusal else None,
        "message": record.refusal.message if record.refusal else record.problem,
        "fault": type(record.fault).__name__ if record.fault else None,
        "key": record.idempotency_key,
        "turn": turn_of(payload),
        "stream": payload.get("stream") is True,
        "body": record.digest,
    }
    if with_payload:
        value["payload"] = record.payload
    return to_json(value) + b"\n"


@contextlib.contextmanager
def serve_in_thread(server: StrictServer) -> Generator[StrictServer]:
    """Run the server in a thread with an event loop of its own, for synchronous tests.

    Raises: what the server raised while it started or answered.
    """
    started = threading.Event()
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    failure: list[BaseException] = []

    async def serve() -> None:
        ended = asyncio.Event()
        async with server:
            stop.append((asyncio.get_running_loop(), ended))
            started.set()
            await ended.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # raised again in the thread that asked for the server
            failure.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=run, name="strict-server", daemon=True)
    thread.start()
    started.wait()
    try:
        if not failure:
            yield server
    finally:
        for loop, ended in stop:
            if not loop.is_closed():
                loop.call_soon_threadsafe(ended.set)
        thread.join()
    if failure:
        raise failure[0]
