"""The machine of a turn: what to record next, and which effect may then be performed.

`step(state, input, here)` answers what to append and, once that is durable, what to do; the state
is `core/turn_state.py`'s fold. Nothing here touches anything. docs/protocol.md#turns is the
specification, and docs/replay.md says what may be done with a call that may have happened.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from sojourn.core.replay import FORGOTTEN, INTERRUPTED, TOO_OFTEN, AfterCrash, after_crash, stricter
from sojourn.core.turn_state import OpenCall, TurnState
from sojourn.errors import FencedError, UsageError
from sojourn.format.body import Head
from sojourn.format.event import (
    AnyBody,
    Failure,
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
from sojourn.format.parts import ContentPart
from sojourn.ids import CallKey, EventId, RunnerId, TurnId, call_key

MAX_STALLED: Final = 5
"""Model calls in a row without a reply, after which the turn waits for a person (T9)."""

MAX_ATTEMPTS: Final = 5
"""Starts of one call that no process survived, after which it is not run again by itself (T9)."""


class Here(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the step is taken: the runner, its boot, the model it would ask, today's rules."""

    runner: RunnerId
    boot: str
    configured: EventId
    issuer: Issuer
    heads: tuple[Head, ...]
    rules: Mapping[str, ReplayRule]
    max_model_calls: int


class Take(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Somebody wants the turn run here; `person` when one asked, so a pause is over."""

    person: bool


class Heard(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message of the inbox."""

    input: Input


class Next(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nothing new: what follows from the log."""


class Ended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call came to its end, well or not."""

    outcome: ModelOutcome | ToolOutcome


class Pause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A person wants the turn to stop at this safe point."""


class Decide(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A person's answer to the question about a call whose outcome is unknown."""

    decision: Literal["done", "failed", "retry", "skip"]
    by: str
    parts: tuple[ContentPart, ...] = ()


StepInput: TypeAlias = Take | Heard | Next | Ended | Pause | Decide


class CallModel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Effect: send the request; its end comes back as `Ended`."""

    key: CallKey


class CallTool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Effect: call the tool that part `index` of `reply` asks for."""

    key: CallKey
    reply: EventId
    index: int
    tool: str
    attempt: int


class Rest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Effect: nothing is left to do here; the job is acknowledged unless the turn was `left`."""

    reason: Literal["idle", "paused", "question", "left"]


Effect: TypeAlias = CallModel | CallTool | Rest


class Ready(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """First append `records` and make them durable, then perform `effect`.

    Without an effect the machine wants to be asked again with `Next`; records may then wait and
    share one write with those that follow.
    """

    records: tuple[AnyBody, ...] = ()
    effect: Effect | None = None


def step(state: TurnState, given: StepInput, here: Here) -> Ready:
    """What to append, and what may be done once it is durable.

    Raises: FencedError when the turn was taken by another runner; UsageError for a decision that
    nobody asked for.
    """
    match given:
        case Take():
            return _take(state, given, here)
        case Heard():
            return Ready(records=(given.input,))
        case Ended():
            return _ended(state, given.outcome, here)
        case Pause():
            return _pause(state, here)
        case Decide():
            return _decide(state, given, here)
        case Next():
            return _next(state, here)
        case _:
            assert_never(given)


def _take(state: TurnState, given: Take, here: Here) -> Ready:
    if state.turn is None:
        if not state.unseen:
            return Ready(effect=Rest(reason="idle"))
        return Ready(records=(_taking(TurnId(state.unseen[0]), here),))
    if state.paused is not None and not given.person:
        return Ready(effect=Rest(reason="paused"))
    return Ready(records=(_taking(state.turn, here),))


def _taking(turn: TurnId, here: Here) -> TurnTaken:
    return TurnTaken(turn=turn, runner=here.runner, boot=here.boot, heads=here.heads)


def _own_turn(state: TurnState, here: Here) -> TurnId:
    """The open turn, which this runner must have taken (docs/protocol.md#fence)."""
    if state.turn is None or state.runner != here.runner:
        raise FencedError(
            "another runner has taken this turn",
            code="turn_taken",
            state="Nothing was written by this process.",
            hint="Look at `sojourn status`; the other runner goes on with the turn.",
        )
    return state.turn


def _ended(state: TurnState, outcome: ModelOutcome | ToolOutcome, here: Here) -> Ready:
    turn = _own_turn(state, here)
    match outcome:
        case ModelOutcome():
            if state.model != outcome.call or state.model_runner != here.runner:
                raise FencedError("the model call is not open here", code="call_not_open")
            if outcome.status == "failed":
                return Ready(records=(outcome, TurnPaused(turn=turn, reason="model")))
        case ToolOutcome():
            call = state.call(outcome.call)
            if call is None or call.state != "started" or call.runner != here.runner:
                raise FencedError("the tool call is not open here", code="call_not_open")
            if outcome.status == "unknown" and _rule(call, here) == "ask":
                return _ask_person(turn, call, outcome)
        case _:
            assert_never(outcome)
    return Ready(records=(outcome,))


def _pause(state: TurnState, here: Here) -> Ready:
    turn = _own_turn(state, here)
    if state.paused is not None:
        return Ready(effect=Rest(reason="paused"))
    return Ready(records=(TurnPaused(turn=turn, reason="stopped"),))


def _decide(state: TurnState, given: Decide, here: Here) -> Ready:
    turn = _own_turn(state, here)
    if state.question is None:
        raise UsageError(
            "no call waits for a decision",
            code="no_question",
            state="Nothing was changed.",
            hint="Use `sojourn resume` without a decision.",
        )
    settled = Settled(call=state.question, decision=given.decision, by=given.by, parts=given.parts)
    return Ready(records=(*_missing_outcome(state, turn, here), settled))


def _next(state: TurnState, here: Here) -> Ready:
    """What follows from the log alone; one record at a time, so that ids are known."""
    if state.turn is None:
        if not state.unseen:
            return Ready(effect=Rest(reason="idle"))
        return Ready(records=(_taking(TurnId(state.unseen[0]), here),))
    turn = _own_turn(state, here)
    missing = _missing_outcome(state, turn, here)
    if missing:
        return Ready(records=missing)
    if state.question is not None:
        return Ready(effect=Rest(reason="question"))
    if state.paused is not None:
        return Ready(effect=Rest(reason="paused"))
    if state.model is not None:
        if state.model_runner == here.runner:
            raise FencedError("the model is being asked by this runner", code="call_in_flight")
        return Ready(records=(_interrupted_model(state, turn, state.model, here),))
    for call in state.calls:
        if not call.finished:
            return _open_call(state, turn, call, here)
    if state.answered and not state.unseen:
        return Ready(records=(TurnEnded(turn=turn, reason="rest"),))
    if state.model_calls >= here.max_model_calls:
        return Ready(records=(TurnEnded(turn=turn, reason="limit"),))
    if state.stalled >= MAX_STALLED:
        return Ready(records=(TurnPaused(turn=turn, reason="model"),))
    return _ask_model(state, turn, here)


def _ask_model(state: TurnState, turn: TurnId, here: Here) -> Ready:
    if state.capsule is None or state.last is None:
        raise UsageError("the log holds no capsule", code="not_created")
    key = call_key(capsule=state.capsule, requested_by=state.last, index=0)
    intent = ModelIntent(
        turn=turn,
        call=key,
        runner=here.runner,
        configured=here.configured,
        issuer=here.issuer,
        heads=here.heads,
    )
    return Ready(records=(intent,), effect=CallModel(key=key))


def _interrupted_model(state: TurnState, turn: TurnId, key: CallKey, here: Here) -> ModelOutcome:
    """The reply may have been made and paid for, but nobody has it; it is asked for again."""
    return ModelOutcome(
        turn=turn,
        call=key,
        status="unknown",
        issuer=state.model_issuer or here.issuer,
        failure=Failure(code="interrupted", message=INTERRUPTED),
    )


def _open_call(state: TurnState, turn: TurnId, call: OpenCall, here: Here) -> Ready:
    """The first call of the batch that has no outcome yet (docs/replay.md#table)."""
    if call.state in ("asked", "again"):
        return _start(state, turn, call, here)
    if call.runner == here.runner and call.attempt > 0:
        raise FencedError("the call is being made by this runner", code="call_in_flight")
    rule = _rule(call, here)
    match rule:
        case "again" if call.attempt < MAX_ATTEMPTS:
            return _start(state, turn, call, here)
        case "again":
            return Ready(records=(_unknown(turn, call, TOO_OFTEN),))
        case "tell":
            return Ready(records=(_interrupted(turn, call, here),))
        case "ask":
            return _ask_person(turn, call, _interrupted(turn, call, here))
        case _:
            assert_never(rule)


def _rule(call: OpenCall, here: Here) -> AfterCrash:
    return after_crash(recorded=call.recorded, today=here.rules.get(call.tool))


def _ask_person(turn: TurnId, call: OpenCall, outcome: ToolOutcome) -> Ready:
    """The question comes first: what is left of a torn append then never lacks it."""
    return Ready(records=(TurnPaused(turn=turn, reason="decision", call=call.key), outcome))


def _missing_outcome(state: TurnState, turn: TurnId, here: Here) -> tuple[ToolOutcome, ...]:
    """The outcome that a torn append took from the call that a person must decide about."""
    call = None if state.question is None else state.call(state.question)
    if call is None or call.state != "started":
        return ()
    return (_interrupted(turn, call, here),)


def _interrupted(turn: TurnId, call: OpenCall, here: Here) -> ToolOutcome:
    return _unknown(turn, call, INTERRUPTED if call.tool in here.rules else FORGOTTEN)


def _unknown(turn: TurnId, call: OpenCall, message: str) -> ToolOutcome:
    failure = Failure(code="interrupted", message=message)
    return ToolOutcome(turn=turn, call=call.key, status="unknown", failure=failure)


def _start(state: TurnState, turn: TurnId, call: OpenCall, here: Here) -> Ready:
    """One more attempt; its intent keeps the strictest rule under which any was made."""
    if state.reply is None:
        raise UsageError("a call without a reply", code="call_without_reply")
    today = here.rules.get(call.tool, "report")
    attempt = call.attempt + 1
    intent = ToolIntent(
        turn=turn,
        call=call.key,
        runner=here.runner,
        requested_by=state.reply,
        index=call.index,
        tool=call.tool,
        replay=today if call.recorded is None else stricter(call.recorded, today),
        attempt=attempt,
    )
    effect = CallTool(
        key=call.key, reply=state.reply, index=call.index, tool=call.tool, attempt=attempt
    )
    return Ready(records=(intent,), effect=effect)
