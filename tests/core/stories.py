"""Builds logs for the tests of `core`: bodies become events, and both folds go along."""

from hashlib import sha256
from typing import Final

import msgspec

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
from sojourn.core.view import Transcript
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
        self.add(Created(name="a", write=1, read=1))
        specs = tuple(
            ToolSpec(name=name, description="", schema="{}", replay=rule, verify_with=("read",))
            for name, rule in RULES.items()
        )
        self.configured = self.add(Configured(model="scripted/m", system="be kind", tools=specs))

    def add(self, body: AnyBody | Unknown | None, kind: str = "") -> EventId:
        """Append it and fold it."""
        seq = len(self.bodies)
        named = kind or ("" if body is None or isinstance(body, Unknown) else KIND_OF[type(body)])
        data = b"" if body is None else msgspec.json.encode(body)
        event_id = EventId(sha256(f"{self.state.last} {named} ".encode() + data).hexdigest())
        header = Header(
            batch=Seq(seq),
            body="",
            clock=Clock(seq + 1),
            epoch=Epoch(1),
            incarnation=Incarnation("0" * 32),
            kind=named,
            machine=MachineId("0" * 64),
            prev=self.state.last,
            seq=Seq(seq),
            time="2000-01-01T00:00:00.000Z",
        )
        event = Event(id=event_id, header=header, body=body)
        self.bodies.append(body)
        self.state = evolve(self.state, event)
        self.transcript.apply(event)
        return event_id

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


def started(*tools: str, limit: int = 100) -> Story:
    """A turn whose model asked for these tools; with none, the model rests."""
    story = Story(limit=limit)
    story.hear()
    story.take()
    story.reply(story.model(), *tools)
    return story
