"""The state of a turn, folded from the log: all that the next step depends on.

docs/protocol.md#turns is the specification; `core/turn.py` decides.
"""

from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from sojourn.format.capsule_kinds import Claimed, Forked
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


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
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


class TurnState(msgspec.Struct, frozen=True, kw_only=True):
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
    state = replace(state, last=event.id)
    body = event.body
    match body:
        case Created():
            return replace(state, capsule=CapsuleId(event.id))
        case Forked():
            return replace(state, capsule=CapsuleId(event.id))
        case Claimed():
            return replace(state, capsule=body.capsule)
        case Input():
            return replace(state, unseen=(*state.unseen, event.id))
        case TurnTaken():
            return _taken(state, body)
        case ModelIntent():
            return replace(
                state,
                model=body.call,
                model_issuer=body.issuer,
                model_runner=body.runner,
                model_calls=state.model_calls + 1,
                unseen=(),
                answered=False,
            )
        case ModelOutcome():
            return _replied(state, event.id, body)
        case ToolIntent():
            return _put(
                state,
                body.call,
                state_="started",
                recorded=body.replay,
                attempt=body.attempt,
                runner=body.runner,
            )
        case ToolOutcome():
            return _put(state, body.call, state_=body.status)
        case Settled():
            return _decided(state, body)
        case TurnPaused():
            return replace(state, paused=body.reason, question=body.call)
        case TurnEnded():
            return replace(
                state, turn=None, runner=None, paused=None, question=None, calls=(), model_calls=0
            )
        case _:
            return state


def _taken(state: TurnState, body: TurnTaken) -> TurnState:
    fresh = state.turn is None
    waits = state.question is not None
    return replace(
        state,
        turn=body.turn,
        runner=body.runner,
        paused=state.paused if waits else None,
        stalled=0 if fresh or (state.paused and not waits) else state.stalled,
        model_calls=0 if fresh else state.model_calls,
        answered=False if fresh else state.answered,
    )


def _replied(state: TurnState, event: EventId, body: ModelOutcome) -> TurnState:
    state = replace(state, model=None, model_issuer=None, model_runner=None, answered=False)
    if body.status != "done" or state.capsule is None:
        return replace(state, stalled=state.stalled + 1)
    asked = [part for part in body.parts if isinstance(part, CallPart)]
    calls = tuple(
        OpenCall(
            key=call_key(capsule=state.capsule, requested_by=event, index=index),
            index=index,
            tool=part.tool,
        )
        for index, part in enumerate(asked)
    )
    rests = not calls and body.stop != "paused"
    return replace(state, reply=event, calls=calls, answered=rests, stalled=0)


def _put(
    state: TurnState,
    key: CallKey,
    *,
    state_: CallState,
    recorded: ReplayRule | None = None,
    attempt: int | None = None,
    runner: RunnerId | None = None,
) -> TurnState:
    calls = tuple(
        replace(
            call,
            state=state_,
            recorded=recorded or call.recorded,
            attempt=call.attempt if attempt is None else attempt,
            runner=runner or call.runner,
        )
        if call.key == key
        else call
        for call in state.calls
    )
    return replace(state, calls=calls)


def _decided(state: TurnState, body: Settled) -> TurnState:
    if state.question != body.call:
        return state
    state = replace(state, paused=None, question=None)
    match body.decision:
        case "retry":
            return _put(state, body.call, state_="again")
        case "done" | "failed":
            return _put(state, body.call, state_=body.decision)
        case "skip":
            return state
        case _:
            assert_never(body.decision)
