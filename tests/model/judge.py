"""What every log must be: written down a second time, apart from `core`, and kept as a fold.

The judge says which rules the newest event breaks. It never refuses an event, so that a search can
go on behind a fault. docs/protocol.md#turns and docs/replay.md are where its rules come from.
"""

# ruff: noqa: ARG001 - every rule has the same signature

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, cast

from sojourn.format.event import (
    Created,
    Event,
    Input,
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
from sojourn.ids import CallKey, CapsuleId, EventId, RequestId, TurnId, call_key

STALLED: Final = 5
ATTEMPTS: Final = 5
ORDER: Final[tuple[ReplayRule, ...]] = ("safe", "keyed", "probe", "report", "ask")
HARMLESS: Final = ("safe", "keyed")


class By(NamedTuple):
    """Who appended an event: the runner, whether a person started it, and its tools' rules."""

    runner: str
    person: bool
    rules: tuple[tuple[str, ReplayRule], ...]

    def rule(self, tool: str) -> ReplayRule:
        """Today's rule; a tool that is gone counts as `report`."""
        return next((rule for name, rule in self.rules if name == tool), "report")


def strictest(*rules: ReplayRule) -> ReplayRule:
    return max(rules, key=ORDER.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call that a reply asked for. `rule` is the strictest that was in force at any start.

    `retry` while a person's decision on one more attempt is not used, `undecided` while a person
    must say something about it.
    """

    reply: EventId
    index: int
    tool: str
    status: str = "asked"
    attempts: int = 0
    opener: str = ""
    rule: ReplayRule = "safe"
    retry: bool = False
    retries: int = 0
    undecided: bool = False

    @property
    def closed(self) -> bool:
        return self.status in ("done", "failed", "unknown") and not self.retry


class Judge:
    """The fold; `after` answers the next one and the names of the rules that the event breaks.

    `calls` are all that replies ever asked for, `batch` those of the last reply of the open turn.
    `rests`: the last reply asked for nothing more. `intents` are (call, attempt, runner).
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.capsule = CapsuleId("")
        self.last = EventId("")
        self.turn: TurnId | None = None
        self.taker = ""
        self.takes = 0
        self.paused: str | None = None
        self.question: CallKey | None = None
        self.ended: frozenset[TurnId] = frozenset()
        self.requests: tuple[RequestId, ...] = ()
        self.unseen: tuple[EventId, ...] = ()
        self.calls: dict[CallKey, Asked] = {}
        self.batch: tuple[CallKey, ...] = ()
        self.model: CallKey | None = None
        self.opener = ""
        self.used: frozenset[CallKey] = frozenset()
        self.intents: frozenset[tuple[CallKey, int, str]] = frozenset()
        self.asked = 0
        self.stalled = 0
        self.failed = False
        self.rests = True
        self.replies = 0

    def after(self, event: Event, by: By) -> tuple["Judge", tuple[str, ...]]:
        body = event.body
        rule = RULES.get(type(body))
        made = object.__new__(Judge)
        made.__dict__.update(self.__dict__)
        if rule is None:
            made.last = event.id
            return made, ()
        faults: list[str] = []
        if not isinstance(body, Created | Input | TurnTaken):
            strange = getattr(body, "turn", self.turn) != self.turn
            if strange or self.turn is None or by.runner != self.taker:
                faults.append("only_the_newest_taker_appends")
        rule(made, event, by, faults)
        made.last = event.id
        return made, tuple(faults)

    @property
    def all_closed(self) -> bool:
        return self.model is None and all(self.calls[key].closed for key in self.batch)

    @property
    def undecided(self) -> bool:
        return any(call.undecided for call in self.calls.values())

    def set_call(self, key: CallKey, call: Asked) -> None:
        self.calls = self.calls | {key: call}


def _created(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    judge.capsule = CapsuleId(event.id)


def _heard(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(Input, event.body)
    if body.request in judge.requests:
        faults.append("inputs_appear_once")
    judge.requests = (*judge.requests, body.request)
    judge.unseen = (*judge.unseen, event.id)


def _taken(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(TurnTaken, event.body)
    fresh = judge.turn is None
    named = judge.unseen[:1] if fresh else (judge.turn,)
    if body.runner != by.runner:
        faults.append("only_the_newest_taker_appends")
    if (body.turn,) != named or body.turn in judge.ended:
        faults.append("turns_are_named_by_their_first_input")
    if judge.paused is not None and not by.person:
        faults.append("workers_leave_paused_turns_alone")
    over = judge.paused is not None and judge.question is None
    if fresh or over:
        judge.stalled = 0
    if fresh:
        judge.asked = 0
    if over:
        judge.paused = None
    judge.turn, judge.taker, judge.takes = body.turn, by.runner, judge.takes + 1


def _model_intent(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(ModelIntent, event.body)
    if not judge.all_closed:
        faults.append("the_model_is_asked_when_every_call_has_its_outcome")
    if judge.undecided:
        faults.append("a_person_decides_about_ask")
    if judge.paused is not None:
        faults.append("nothing_starts_while_paused")
    if judge.rests and not judge.unseen:
        faults.append("the_model_is_asked_with_cause")
    key = call_key(capsule=judge.capsule, requested_by=judge.last, index=0)
    if body.call != key or body.call in judge.used:
        faults.append("keys_follow_from_the_log")
    if judge.stalled >= STALLED:
        faults.append("a_stalled_turn_waits")
    if judge.asked >= judge.limit:
        faults.append("the_limit_holds")
    judge.model, judge.opener = body.call, body.runner
    judge.used = judge.used | {body.call}
    judge.intents = judge.intents | {(body.call, 1, body.runner)}
    judge.asked += 1
    judge.failed = False
    judge.unseen = ()
    judge.rests = False


def _check_end(
    body: ModelOutcome | ToolOutcome, by: By, opener: str | None, faults: list[str]
) -> None:
    """An outcome ends an open call: its maker says how, or a later runner that it is not known."""
    interrupted = body.failure is not None and body.failure.code == "interrupted"
    if opener is None:
        faults.append("outcomes_end_open_calls")
    elif (by.runner != opener) != interrupted:
        faults.append("outcomes_come_from_the_maker_of_the_call")


def _model_outcome(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(ModelOutcome, event.body)
    _check_end(body, by, judge.opener if judge.model == body.call else None, faults)
    judge.model = None
    if body.status != "done":
        judge.stalled += 1
        judge.failed = body.status == "failed"
        judge.rests = False
        return
    parts = [part for part in body.parts if isinstance(part, CallPart)]
    made = {
        call_key(capsule=judge.capsule, requested_by=event.id, index=index): Asked(
            reply=event.id, index=index, tool=part.tool
        )
        for index, part in enumerate(parts)
    }
    if judge.used & made.keys():
        faults.append("keys_follow_from_the_log")
    judge.stalled = 0
    judge.replies += 1
    judge.calls = judge.calls | made
    judge.batch = tuple(made)
    judge.used = judge.used | made.keys()
    judge.rests = not made and body.stop != "paused"


def _tool_intent(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(ToolIntent, event.body)
    call = judge.calls.get(body.call)
    named = (body.requested_by, body.index, body.tool)
    if call is None or (call.reply, call.index, call.tool) != named:
        faults.append("keys_follow_from_the_log")
        return
    if judge.paused is not None:
        faults.append("nothing_starts_while_paused")
    before = judge.batch[: judge.batch.index(body.call)] if body.call in judge.batch else ()
    if judge.model is not None or not all(judge.calls[key].closed for key in before):
        faults.append("calls_run_in_order")
    if call.closed:
        faults.append("finished_calls_never_run_again")
    elif call.status == "open" and call.opener == by.runner:
        faults.append("a_call_in_flight_is_left_alone")
    elif call.status == "open" and strictest(call.rule, by.rule(call.tool)) not in HARMLESS:
        faults.append("unsafe_calls_start_once_per_decision")
    if call.attempts >= ATTEMPTS + call.retries:
        faults.append("attempts_are_bounded")
    if body.attempt != call.attempts + 1:
        faults.append("attempts_count_up")
    opened = replace(
        call,
        status="open",
        retry=False,
        attempts=call.attempts + 1,
        opener=body.runner,
        rule=strictest(call.rule, by.rule(call.tool)),
    )
    judge.set_call(body.call, opened)
    judge.intents = judge.intents | {(body.call, call.attempts + 1, body.runner)}


def _tool_outcome(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(ToolOutcome, event.body)
    call = judge.calls.get(body.call)
    _check_end(body, by, call.opener if call and call.status == "open" else None, faults)
    if call is not None:
        asks = strictest(call.rule, by.rule(call.tool)) == "ask"
        undecided = asks and body.status == "unknown"
        judge.set_call(body.call, replace(call, status=body.status, undecided=undecided))


def _settled(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(Settled, event.body)
    call = judge.calls.get(body.call)
    if call is None or judge.question != body.call or not by.person:
        faults.append("decisions_answer_questions")
        return
    if call.status != "unknown":
        faults.append("decisions_follow_an_unknown_outcome")
    if body.decision == "retry":
        call = replace(call, retry=True, retries=call.retries + 1)
    elif body.decision != "skip":
        call = replace(call, status=body.decision)
    judge.set_call(body.call, replace(call, undecided=False))
    judge.paused = judge.question = None


def _paused(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(TurnPaused, event.body)
    if judge.paused is not None or (body.call is not None) != (body.reason == "decision"):
        faults.append("pauses_have_one_reason")
    if body.reason == "model" and not judge.failed and judge.stalled < STALLED:
        faults.append("pauses_have_a_cause")
    call = None if body.call is None else judge.calls.get(body.call)
    if call is not None:
        asks = strictest(call.rule, by.rule(call.tool)) == "ask"
        if not asks or call.status not in ("open", "unknown"):
            faults.append("pauses_have_a_cause")
    judge.paused, judge.question = body.reason, body.call


def _ended(judge: Judge, event: Event, by: By, faults: list[str]) -> None:
    body = cast(TurnEnded, event.body)
    if not judge.all_closed:
        faults.append("turns_end_when_every_call_has_its_outcome")
    if judge.undecided:
        faults.append("a_person_decides_about_ask")
    if judge.paused is not None:
        faults.append("nothing_starts_while_paused")
    if body.reason == "rest" and (judge.unseen or not judge.rests):
        faults.append("turns_rest_when_every_input_was_seen")
    if body.reason == "limit" and judge.asked < judge.limit:
        faults.append("the_limit_holds")
    if judge.turn is not None:
        judge.ended = judge.ended | {judge.turn}
    judge.turn = judge.paused = judge.question = None
    judge.batch = ()


RULES: Final[dict[type, Callable[[Judge, Event, By, list[str]], None]]] = {
    Created: _created,
    Input: _heard,
    TurnTaken: _taken,
    ModelIntent: _model_intent,
    ModelOutcome: _model_outcome,
    ToolIntent: _tool_intent,
    ToolOutcome: _tool_outcome,
    Settled: _settled,
    TurnPaused: _paused,
    TurnEnded: _ended,
}
