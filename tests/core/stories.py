"""Builds logs for the tests of `core`: bodies become events, and both folds go along."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from sojourn.core.strands import ChainKey
from sojourn.core.turn import (
    CallModel,
    CallTool,
    Ended,
    Heard,
    Here,
    Next,
    Ready,
    StepInput,
    Take,
    step,
)
from sojourn.core.turn_state import TurnState, evolve
from sojourn.core.turn_states import TurnStates
from sojourn.core.view import Transcript
from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Claimed, Forked
from sojourn.format.event import (
    KIND_OF,
    AnyBody,
    CallStatus,
    Configured,
    Created,
    Event,
    Failure,
    Header,
    Input,
    Issuer,
    ModelOutcome,
    ReplayRule,
    Stop,
    ToolOutcome,
    ToolSpec,
    Unknown,
)
from sojourn.format.parts import CallPart, TextPart
from sojourn.ids import (
    CallKey,
    Clock,
    Epoch,
    EventId,
    Incarnation,
    MachineId,
    RequestId,
    RunnerId,
    Seq,
    TurnId,
)

ISSUER: Final = Issuer(provider="scripted", api="scripted", scope="", model="m")
RULES: Final[dict[str, ReplayRule]] = {
    "safe": "safe",
    "keyed": "keyed",
    "report": "report",
    "ask": "ask",
}


class Story:
    """One log, its turn state and its transcript; `first` runs turns unless `by` says another."""

    def __init__(self, *, limit: int = 100) -> None:
        self.state = TurnState()
        self.transcript = Transcript()
        self.limit = limit
        self.rules = dict(RULES)
        self.bodies: list[AnyBody | Unknown | None] = []
        self.events: list[Event] = []
        self.machine, self.epoch, self.seq = "0", 1, 0
        self.add(Created(name="a", write=1, read=1))
        specs = tuple(
            ToolSpec(name=name, description="", schema="{}", replay=rule, verify_with=("read",))
            for name, rule in RULES.items()
        )
        self.configured = self.add(Configured(model="scripted/m", system="be kind", tools=specs))

    def add(self, body: AnyBody | Unknown | None, kind: str = "") -> EventId:
        """Append it and fold it."""
        named = kind or ("" if body is None or isinstance(body, Unknown) else KIND_OF[type(body)])
        data = b"" if body is None else msgspec.json.encode(body)
        clock = Clock(max((event.header.clock for event in self.events), default=0) + 1)
        place = f"{self.machine} {self.seq} {clock} {self.state.last} {named} "
        event_id = EventId(sha256(place.encode() + data).hexdigest())
        header = Header(
            batch=Seq(self.seq),
            body="",
            clock=clock,
            epoch=Epoch(self.epoch),
            incarnation=Incarnation(self.machine * 32),
            kind=named,
            machine=MachineId(self.machine * 64),
            prev=self.state.last if self.seq else None,
            seq=Seq(self.seq),
            time="2000-01-01T00:00:00.000Z",
        )
        event = Event(id=event_id, header=header, body=body)
        self.seq += 1
        self.bodies.append(body)
        self.events.append(event)
        self.state = evolve(self.state, event)
        self.transcript.apply(event)
        return event_id

    @property
    def chain(self) -> ChainKey:
        return (MachineId(self.machine * 64), Incarnation(self.machine * 32))

    def copied(self) -> "Story":
        """Another copy of the log, whose machine is cloned and goes on in the same chain."""
        copy = object.__new__(Story)
        vars(copy).update(vars(self))
        copy.bodies, copy.events = list(self.bodies), list(self.events)
        copy.transcript = told(copy.events, own=self.chain)
        return copy

    def claimed(self, machine: str, *, epoch: int, continues: EventId | None = None) -> "Story":
        """A copy of the log that another machine (one hex digit) goes on with, from that head."""
        copy = self.copied()
        states = states_of(self.events)
        heads = heads_of_log(self.events)
        named = tuple(head for head in heads if head.id == continues)
        copy.state = states.taken_over(named or heads)
        capsule = copy.state.capsule
        assert capsule is not None
        copy.machine, copy.epoch, copy.seq = machine, epoch, 0
        copy.transcript.own = copy.chain
        copy.add(Claimed(capsule=capsule, how="claim", by="you", heads=heads, continues=continues))
        return copy

    def forked(self, machine: str, *, epoch: int) -> "Story":
        """Another capsule, made of this one's log."""
        copy = self.copied()
        copy.machine, copy.epoch, copy.seq = machine, epoch, 0
        copy.transcript.own = copy.chain
        parent, heads = self.state.capsule, heads_of_log(self.events)
        assert parent is not None
        copy.add(Forked(parent=parent, name="fork", nonce="0" * 32, heads=heads))
        return copy

    def merged(self, *others: "Story") -> "Story":
        """This copy with the events of others, as the file would hold them."""
        copy = self.copied()
        events = {event.id: event for story in (self, *others) for event in story.events}
        copy.events = sorted(events.values(), key=place_of)
        copy.transcript = told(copy.events, own=self.chain)
        copy.state = states_of(copy.events).state(self.chain)
        return copy

    def here(self, by: str, boot: str = "boot") -> Here:
        return Here(
            runner=RunnerId(by),
            boot=boot,
            configured=self.configured,
            issuer=ISSUER,
            heads=(),
            rules=self.rules,
            max_model_calls=self.limit,
        )

    def give(self, given: StepInput, by: str = "first", boot: str = "boot") -> Ready:
        """Ask the machine and append what it says."""
        ready = step(self.state, given, self.here(by, boot))
        for record in ready.records:
            self.add(record)
        return ready

    def next(self, by: str = "first") -> Ready:
        return self.give(Next(), by)

    def hear(self, text: str = "hello", request: str | None = None) -> EventId:
        said = Input(
            request=RequestId(request or text), author="user", parts=(TextPart(text=text),)
        )
        self.give(Heard(input=said))
        assert self.state.last is not None
        return self.state.last

    def take(self, by: str = "first", *, person: bool = True) -> Ready:
        return self.give(Take(person=person), by)

    def model(self, by: str = "first") -> CallModel:
        """The machine must ask the model now."""
        effect = self.next(by).effect
        assert isinstance(effect, CallModel), effect
        return effect

    def tool(self, by: str = "first") -> CallTool:
        """The machine must call a tool now."""
        effect = self.next(by).effect
        assert isinstance(effect, CallTool), effect
        return effect

    def reply(
        self,
        effect: CallModel,
        *tools: str,
        by: str = "first",
        status: CallStatus = "done",
        stop: Stop | None = None,
    ) -> EventId:
        """The model's call ends; a reply without tools rests. The outcome's event."""
        outcome = ModelOutcome(
            turn=self.turn,
            call=effect.key,
            status=status,
            issuer=ISSUER,
            parts=(TextPart(text="well"), *(CallPart(tool=tool, args="{}") for tool in tools)),
            stop=stop or ("calls" if tools else "rest"),
            failure=None if status == "done" else Failure(code="bad", message="bad"),
        )
        before = len(self.bodies)
        self.give(Ended(outcome=outcome), by)
        assert outcome in self.bodies[before:]
        assert self.state.last is not None
        return self.state.last

    def end(
        self, effect: CallTool, text: str = "ok", by: str = "first", status: CallStatus = "done"
    ) -> Ready:
        """The tool's call ends."""
        return self.give(Ended(outcome=self.outcome(effect.key, text, status)), by)

    def outcome(self, key: CallKey, text: str = "ok", status: CallStatus = "done") -> ToolOutcome:
        failure = None if status == "done" else Failure(code="bad", message="bad")
        parts = (TextPart(text=text),)
        return ToolOutcome(turn=self.turn, call=key, status=status, parts=parts, failure=failure)

    @property
    def turn(self) -> TurnId:
        assert self.state.turn is not None
        return self.state.turn

    def kinds(self, start: int = 2) -> list[str]:
        """The names of the events after the first two."""
        named = (body for body in self.bodies[start:] if body is not None)
        return [body.kind if isinstance(body, Unknown) else KIND_OF[type(body)] for body in named]


def place_of(event: Event) -> tuple[int, str, str, int, str]:
    """By what a log is sorted."""
    header = event.header
    return (header.clock, header.machine, header.incarnation, header.seq, event.id)


def told(events: Iterable[Event], *, own: ChainKey | None = None) -> Transcript:
    """The transcript of a log, read anew."""
    transcript = Transcript()
    for event in events:
        transcript.apply(event)
    transcript.own = own
    return transcript


def states_of(events: Sequence[Event]) -> TurnStates:
    """The turn states of a log, read anew, and again where that is needed."""
    states = TurnStates()
    for event in events:
        states.apply(event)
    if not states.missing:
        return states
    again = TurnStates(states.missing)
    for event in events:
        again.apply(event)
    assert not again.missing
    return again


def heads_of_log(events: Iterable[Event]) -> tuple[Head, ...]:
    """The last event of each chain, of each of its sides."""
    events = list(events)
    continued = {event.header.prev for event in events}
    return tuple(
        Head(
            machine=event.header.machine,
            incarnation=event.header.incarnation,
            seq=event.header.seq,
            id=event.id,
        )
        for event in events
        if event.id not in continued
    )


def started(*tools: str, limit: int = 100) -> Story:
    """A turn whose model asked for these tools; with none, the model rests."""
    story = Story(limit=limit)
    story.hear()
    story.take()
    story.reply(story.model(), *tools)
    return story
