"""Faults on demand: what a strict server does wrong at a chosen request."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

FailKind: TypeAlias = Literal[
    "rate_limited",
    "server_error",
    "overloaded",
    "gateway_page",
    "too_large",
    "window",
    "quota",
    "key_wrong",
    "forbidden",
]
"""Errors that the real APIs answer with: 429; 500; 529 or 503; 502 with a page of HTML instead of
JSON; 413; a prompt longer than the context window; no credit left; 401; 403."""
FAIL_KINDS: Final[tuple[FailKind, ...]] = get_args(FailKind)


class Gate:
    """Holds a stream until a test lets it go on.

    Works from any thread and from any event loop. `reached` is set once the stream stands at the
    gate.
    """

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._lock = threading.Lock()
        self._open = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        """Let every stream go on, now and later."""
        with self._lock:
            self._open = True
            waiting, self._waiting = self._waiting, []
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def wait(self) -> None:
        """Return once the gate is open."""
        event = asyncio.Event()
        with self._lock:
            if self._open:
                event.set()
            self._waiting.append((asyncio.get_running_loop(), event))
        self.reached.set()
        await event.wait()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fail:
    """An error instead of a reply; `retry_after` is the header's text (seconds, or a date)."""

    kind: FailKind
    retry_after: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """The connection breaks after this many bytes of the body; None: before the status line."""

    after_bytes: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """The stream ends cleanly after this many events, without the API's own last words."""

    after_events: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Hold:
    """The stream stands still after this many events until the gate is opened."""

    gate: Gate
    after_events: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Garbage:
    """An event that is not JSON comes after this many events."""

    after_events: int
    text: str = 'data: {"type": "content_blo'


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamError:
    """After this many events the stream says that the request failed, and ends."""

    after_events: int
    kind: FailKind = "overloaded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trickle:
    """The body arrives in writes of this many bytes, whatever the borders of its events."""

    size: int


Fault: TypeAlias = Fail | Cut | End | Hold | Garbage | StreamError | Trickle
Faults: TypeAlias = Mapping[int, Fault] | Callable[[int], Fault | None]
"""Which request (counted from 1) meets which fault."""


def fault_at(faults: Faults, number: int) -> Fault | None:
    """The fault of one request, if it has any."""
    return faults(number) if callable(faults) else faults.get(number)


@dataclass(frozen=True, slots=True)
class Break:
    """A step of a body: the connection is cut here."""


Step: TypeAlias = bytes | Gate | Break
"""What a server does next while it writes a body."""


def steps(events: list[bytes], fault: Fault | None, error_event: bytes) -> list[Step]:
    """The body's events with the fault worked in; `error_event` is the API's error in a stream."""
    match fault:
        case None | Fail():
            return list(events)
        case Cut(after_bytes=size):
            return [b"".join(events)[: size or 0], Break()]
        case End(after_events=count):
            return list(events[:count])
        case Hold(gate=gate, after_events=count):
            return [*events[:count], gate, *events[count:]]
        case Garbage(after_events=count, text=text):
            return [*events[:count], text.encode() + b"\n\n", *events[count:]]
        case StreamError(after_events=count):
            return [*events[:count], error_event]
        case Trickle(size=size):
            body = b"".join(events)
            return [body[start : start + size] for start in range(0, len(body), size)]
