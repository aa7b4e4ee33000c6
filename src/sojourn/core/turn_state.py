"""The state of a turn, folded from the log: all that the next step depends on.

docs/protocol.md#turns is the specification; `core/turn.py` decides.
"""

from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from sojourn.format.capsule_kinds import Activated, Claimed, Forked
from sojourn.format.event import (
    Created,
    Event,
    Input,
    Issuer,
    ModelIntent,
    ModelOutcome,
    ReplayRule,
    Settled,
    ToolIntent,
    ToolOutcome,
    TurnEnded,
    TurnPaused,
    TurnTaken,
)
from sojourn.format.parts import CallPart
from sojourn.ids import CallKey, CapsuleId, EventId, RunnerId, TurnId, call_key

CallState: TypeAlias = Literal["asked", "started", "done", "failed", "unknown", "again"]


class OpenCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call of the last reply: `again` when a person decided on one more attempt."""

    key: CallKey
    index: int
    tool: str
    state: CallState = "asked"
    recorded: ReplayRule | None = None
    attempt: int = 0
    runner: RunnerId | None = None

    @property
    def finished(self) -> bool:
        """No effect of this call may start any more."""
        return self.state in ("done", "failed", "unknown")


class TurnState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that the next step depends on, folded from the log.

    `unseen` are inputs that no model call has been asked about; `model` the open model call;
    `model_calls` counts the calls of this turn, `stalled` its last ones that brought no reply;
    `question` is the call a person must decide about.
    """

    capsule: CapsuleId | None = None
    last: EventId | None = None
    turn: TurnId | None = None
    runner: RunnerId | None = None
    paused: str | None = None
    question: CallKey | None = None
    unseen: tuple[EventId, ...] = ()
    model: CallKey | None = None
    model_issuer: Issuer | None = None
    model_runner: RunnerId | None = None
    stalled: int = 0
    model_calls: int = 0
    reply: EventId | None = None
    calls: tuple[OpenCall, ...] = ()
    answered: bool = False

    def call(self, key: CallKey) -> OpenCall | None:
        """The call of the last reply with that key."""
        return next((call for call in self.calls if call.key == key), None)


def evolve(state: TurnState, event: Event) -> TurnState:
    """The state after one more event of the log; events it does not know change only `last`."""
    body, last = event.body, event.id
    # What comes with every step stands first: a long log is folded much quicker so.
    match body:
        case ToolOutcome():
            return _put(state, last, body.call, state_=body.status)
        case ToolIntent():
            return _put(
                state,
                last,
                body.call,
                state_="started",
                recorded=body.replay,
                attempt=body.attempt,
                runner=body.runner,
            )
        case ModelOutcome():
            return _replied(state, last, body)
        case ModelIntent():
            return replace(
                state,
                last=last,
                model=body.call,
                model_issuer=body.issuer,
                model_runner=body.runner,
                model_calls=state.model_calls + 1,
                unseen=(),
                answered=False,
            )
        case Created() | Forked():
            return replace(state, last=last, capsule=CapsuleId(last))
        case Claimed() | Activated():
            return replace(state, last=last, capsule=body.capsule)
        case Input():
            return replace(state, last=last, unseen=(*state.unseen, last))
        case TurnTaken():
            return _taken(state, last, body)
        case Settled():
            return _decided(state, last, body)
        case TurnPaused():
            return replace(state, last=last, paused=body.reason, question=body.call)
        case TurnEnded():
            return _ended(state, last)
        case None:
            return _bodiless(state, event)
        case _:
            return replace(state, last=last)


def _bodiless(state: TurnState, event: Event) -> TurnState:
    """An event whose body is gone does what its kind alone says (docs/format.md#redaction)."""
    last = event.id
    match event.header.kind:
        case "input":
            return replace(state, last=last, unseen=(*state.unseen, last))
        case "model_outcome":
            return replace(state, last=last, model=None, model_issuer=None, model_runner=None)
        case "tool_outcome":
            started = next((call.key for call in state.calls if call.state == "started"), None)
            if started is None:
                return replace(state, last=last)
            return _put(state, last, started, state_="done")
        case "turn_ended":
            return _ended(state, last)
        case _:
            return replace(state, last=last)


def _ended(state: TurnState, last: EventId) -> TurnState:
    return replace(
        state,
        last=last,
        turn=None,
        runner=None,
        paused=None,
        question=None,
        calls=(),
        model_calls=0,
    )


def _taken(state: TurnState, last: EventId, body: TurnTaken) -> TurnState:
    fresh = state.turn is None
    waits = state.question is not None
    return replace(
        state,
        last=last,
        turn=body.turn,
        runner=body.runner,
        paused=state.paused if waits else None,
        stalled=0 if fresh or (state.paused and not waits) else state.stalled,
        model_calls=0 if fresh else state.model_calls,
        answered=False if fresh else state.answered,
    )


def _replied(state: TurnState, last: EventId, body: ModelOutcome) -> TurnState:
    if body.status != "done" or state.capsule is None:
        return replace(
            state,
            last=last,
            model=None,
            model_issuer=None,
            model_runner=None,
            answered=False,
            stalled=state.stalled + 1,
        )
    calls: list[OpenCall] = []
    for part in body.parts:
        if isinstance(part, CallPart):
            index = len(calls)
            key = call_key(capsule=state.capsule, requested_by=last, index=index)
            calls.append(OpenCall(key=key, index=index, tool=part.tool))
    rests = not calls and body.stop != "paused"
    return replace(
        state,
        last=last,
        model=None,
        model_issuer=None,
        model_runner=None,
        reply=last,
        calls=tuple(calls),
        answered=rests,
        stalled=0,
    )


def _put(
    state: TurnState,
    last: EventId,
    key: CallKey,
    *,
    state_: CallState,
    recorded: ReplayRule | None = None,
    attempt: int | None = None,
    runner: RunnerId | None = None,
) -> TurnState:
    for at, call in enumerate(state.calls):
        if call.key == key:
            changed = replace(
                call,
                state=state_,
                recorded=recorded or call.recorded,
                attempt=call.attempt if attempt is None else attempt,
                runner=runner or call.runner,
            )
            calls = (*state.calls[:at], changed, *state.calls[at + 1 :])
            return replace(state, last=last, calls=calls)
    return replace(state, last=last)


def _decided(state: TurnState, last: EventId, body: Settled) -> TurnState:
    if state.question != body.call:
        return replace(state, last=last)
    state = replace(state, last=last, paused=None, question=None)
    match body.decision:
        case "retry":
            return _put(state, last, body.call, state_="again")
        case "done" | "failed":
            return _put(state, last, body.call, state_=body.decision)
        case "skip":
            return state
        case _:
            assert_never(body.decision)
