"""How a run ended, and what is counted for it."""

from dataclasses import dataclass
from typing import Literal

from sojourn.core.turn import Rest
from sojourn.core.turn_state import TurnState
from sojourn.drive.observe import Observer
from sojourn.errors import CallError
from sojourn.format.event import Event, Failure, ModelOutcome, TurnEnded, TurnPaused, Usage
from sojourn.ids import CallKey, CapsuleId, RequestId, TurnId
from sojourn.render import Delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A message that is durable and will reach the agent once.

    `already` when it was there before, sent under the same request id.
    """

    request: RequestId
    capsule: CapsuleId
    already: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call that may have happened and that a person must decide about."""

    call: CallKey
    tool: str
    args: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a run ended; `text` is the last reply's visible text, `usage` this run's tokens.

    `state` and `hint` say of a failed model call what things are like now and what to do next.
    """

    reason: Literal["rest", "limit", "paused", "left", "released", "decision", "model", "idle"]
    text: str
    turn: TurnId | None
    model_calls: int
    usage: Usage
    failure: Failure | None = None
    question: Question | None = None
    state: str = ""
    hint: str = ""


class Tally:
    """Counts what a run did, keeps its last failure, and hands everything on to who watches."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.outcomes: list[ModelOutcome] = []
        self.ended: TurnEnded | TurnPaused | None = None
        self.error: CallError | None = None

    def event(self, event: Event) -> None:
        match event.body:
            case ModelOutcome() as outcome:
                self.outcomes.append(outcome)
            case TurnEnded() | TurnPaused() as ended:
                self.ended = ended
            case _:
                pass
        self._observer.event(event)

    def failed(self, error: CallError) -> None:
        """A model call failed; its outcome will be an event."""
        self.error = error

    def delta(self, delta: Delta) -> None:
        self._observer.delta(delta)

    def output(self, tool: str, data: bytes) -> None:
        self._observer.output(tool, data)

    def note(self, text: str) -> None:
        self._observer.note(text)


def reason_of(
    rest: Rest, tally: Tally, state: TurnState
) -> Literal["rest", "limit", "paused", "left", "released", "decision", "model", "idle"]:
    """The reason of a report, from where the machine rests and what the run wrote."""
    if rest.reason == "left":
        return "left"
    if state.question is not None:
        return "decision"
    if state.paused is not None:
        return "model" if state.paused == "model" else "paused"
    if isinstance(tally.ended, TurnEnded):
        return "limit" if tally.ended.reason == "limit" else "rest"
    return "idle" if rest.reason == "idle" else "paused"
