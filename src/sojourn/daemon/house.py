"""What the daemon's answers are made with, and how much of it is in use."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sojourn.agent import Machine
from sojourn.daemon.door import Door
from sojourn.daemon.meeting import Meeting
from sojourn.daemon.refusal import Refused
from sojourn.errors import SojournError
from sojourn.peers.book import Book
from sojourn.peers.limits import FOLLOWERS, REQUESTS, STREAMS
from sojourn.ports_link import Certificate, Identity
from sojourn.ports_move import Receiver


class Slots:
    """So many at once; another one is turned away, since a queue would only hide it."""

    def __init__(self, count: int) -> None:
        self._free = count

    @contextmanager
    def one(self) -> Generator[None]:
        """Taken within. Raises: Refused `busy`."""
        if not self._free:
            raise Refused("busy", "this machine does as much as it can at once", hint="Try later.")
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


@dataclass(slots=True, kw_only=True)
class House:
    """One start of the daemon; `boot` is its nonce.

    `failed` is set by a durable write whose outcome is unknown: the daemon ends then without
    another word, and its next start reads what the disk holds (docs/link.md#failures).
    """

    machine: Machine
    identity: Identity
    certificate: Certificate
    book: Book
    door: Door
    receiver: Receiver
    boot: str
    stop: asyncio.Event
    meeting: Meeting
    failed: SojournError | None = None
    requests: Slots = field(default_factory=lambda: Slots(REQUESTS))
    streams: Slots = field(default_factory=lambda: Slots(STREAMS))
    followers: Slots = field(default_factory=lambda: Slots(FOLLOWERS))

    def fail(self, failure: SojournError) -> None:
        """Nothing may be answered any more."""
        self.failed = failure
        self.stop.set()
