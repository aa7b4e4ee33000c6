"""A log as a path in a tree: each place is made once, with what is folded and judged up to there.

Two worlds with the same log hold the same object, so comparing logs is comparing identities, and
`evolve`, the judge and the transcript see each log once however many worlds it is part of.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from model.cores import Core
from model.judge import By, Judge
from model.shown import Shown
from sojourn.format.event import (
    KIND_OF,
    AnyBody,
    Configured,
    Created,
    Event,
    Header,
    Issuer,
    Options,
    ToolSpec,
)
from sojourn.ids import Clock, Epoch, EventId, Incarnation, MachineId, Seq

ISSUER = Issuer(provider="scripted", api="scripted", scope="", model="m")
NOBODY = By(runner="", person=False, rules=())

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a log is judged by: the machine, and the limit of model calls a turn."""

    core: Core
    limit: int


class Log:
    """One log: its last event and the log before it."""

    __slots__ = (
        "_made",
        "_next",
        "before",
        "by",
        "depth",
        "event",
        "faults",
        "judge",
        "shown",
        "state",
    )

    def __init__(self, terms: Terms, before: "Log | None", event: Event, by: By) -> None:
        self.before = before
        self.event = event
        self.by = by
        self._next: dict[tuple[EventId, By], Log] = {}
        self._made: dict[tuple[str, bytes, By], Log] = {}
        judge = Judge(terms.limit) if before is None else before.judge
        shown = Shown.empty(terms.core) if before is None else before.shown
        state: Any = terms.core.turn_state.TurnState() if before is None else before.state
        self.depth: int = 1 if before is None else before.depth + 1
        self.state: Any = terms.core.turn_state.evolve(state, event)
        self.judge, faults = judge.after(event, by)
        self.shown, unseen = shown.after(event, self.judge)
        self.faults = (*faults, *unseen)

    def then(self, terms: Terms, body: AnyBody, by: By) -> "Log":
        """The log with one more event, whose id follows from all before it."""
        data = _encode(body)
        key = (KIND_OF[type(body)], data, by)
        found = self._made.get(key)
        if found is None:
            event = event_of(body, data, self.event.id, self.depth)
            found = self._made[key] = self.with_event(terms, event, by)
        return found

    def with_event(self, terms: Terms, event: Event, by: By) -> "Log":
        """The log with an event that somebody made, perhaps for another log."""
        found = self._next.get((event.id, by))
        if found is None:
            found = self._next[event.id, by] = Log(terms, self, event, by)
        return found

    def since(self, before: "Log") -> tuple["Log", ...]:
        """The logs from the one after `before` up to this one."""
        found: list[Log] = []
        log = self
        while log is not before and log.before is not None:
            found.append(log)
            log = log.before
        return tuple(reversed(found))

    def events(self) -> Iterator[Event]:
        """From the first to the last."""
        if self.before is not None:
            yield from self.before.events()
        yield self.event


def event_of(body: AnyBody, data: bytes, before: EventId | None, seq: int) -> Event:
    """A real event; nothing but its place and its content `data` decides its id."""
    kind = KIND_OF[type(body)]
    digest = sha256(f"{before} {kind} ".encode() + data).hexdigest()
    header = Header(
        batch=Seq(seq),
        body="",
        clock=Clock(seq + 1),
        epoch=Epoch(1),
        incarnation=Incarnation("0" * 32),
        kind=kind,
        machine=MachineId("0" * 64),
        prev=before,
        seq=Seq(seq),
        time="2000-01-01T00:00:00.000Z",
    )
    return Event(id=EventId(digest), header=header, body=body)


def first_log(terms: Terms, tools: tuple[str, ...]) -> Log:
    """A capsule that was made and configured, and has heard nothing."""
    created = Created(name="a", write=1, read=1)
    specs = tuple(
        ToolSpec(name=name, description="", schema="{}", replay="report", verify_with=("look",))
        for name in tools
    )
    configured = Configured(model="scripted/m", system="", tools=specs, options=Options())
    log = Log(terms, None, event_of(created, b"", None, 0), NOBODY)
    return log.then(terms, configured, NOBODY)
