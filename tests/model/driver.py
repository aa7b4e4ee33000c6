"""What a process does, step by step as drive/runner.py, drive/worker.py and agent/ do it.

A move is as large as nobody else can tell: drafting touches nothing outside, so reading the inbox
and asking the machine once is one move; a commit, the removal of inbox files, the start of an
effect and its end are moves of their own, and a process can die between any two of them.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from model.judge import HARMLESS, strictest
from model.log import ISSUER
from model.world import Local, Move, Queued, Setup, Started, World
from sojourn.errors import SojournError
from sojourn.format.event import Failure, Input, ModelOutcome, ReplayRule, ToolOutcome
from sojourn.format.parts import CallPart, TextPart
from sojourn.ids import CallKey, RequestId

Ended = ModelOutcome | ToolOutcome


class Seen:
    """How a call ended, comparable by its bytes."""

    def __init__(self, end: Ended) -> None:
        self.end = end
        self._data = msgspec.json.encode(end)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and other._data == self._data

    def __hash__(self) -> int:
        return hash(self._data)


GOES_ON = "..."
"""Stands for a reply that asks for nothing and is not at its end."""

STOPPED = Failure(code="stopped", message="stopped")
ROUNDS = 20
BAD = Failure(code="bad", message="bad")


def goes_on(setup: Setup, world: World, slot: int) -> Iterator[Move]:
    """Every way in which the process of this slot can go on by itself."""
    local = world.slots[slot]
    if local is None:
        return
    match local.phase:
        case "loop":
            yield _loop(setup, world, slot, local)
        case "commit":
            yield commit(setup, world, slot, local)
        case "tidy":
            left = tuple(item for item in world.inbox if item not in local.heard)
            done = local._replace(phase=after_commit(local), heard=())
            yield Move("tidy", "step", world._replace(inbox=left).put_local(slot, done))
        case "ready":
            yield _start(setup, world, slot, local)
        case "performing":
            yield from _ends(setup, world, slot, local)
        case "rested":
            yield _let_go(setup, world, slot, local)
        case _:
            job = world.job
            if job is not None and job.slot == slot:
                again = job.again and "job_put_again_is_acknowledged" not in setup.planted
                world = world._replace(job=Queued() if again else None)
            yield Move("ack", "step", world.put_local(slot, None))


def hear(setup: Setup, world: World, local: Local) -> Local:
    """`Runner._hear`: draft the messages of the inbox that the log does not hold."""
    for item in world.inbox:
        if item in local.heard:
            continue
        request = RequestId(setup.setting.messages[item])
        local = local._replace(heard=(*local.heard, item))
        known = local.head.shown.transcript.requests
        if request not in known or "known_inputs_are_appended" in setup.planted:
            said = Input(request=request, author="user", parts=(TextPart(text=request),))
            local, _ = setup.draft(local, setup.core.turn.Heard(input=said))
    return local


def with_hold(setup: Setup, world: World, slot: int, local: Local) -> World:
    """Put the process back; a shared hold has one memory of the log."""
    world = world.put_local(slot, local)
    other = world.other(slot)
    if setup.setting.shared and other is not None and other.phase != "ack":
        return world.put_local(1 - slot, other._replace(tip=local.tip, head=local.head))
    return world


def _loop(setup: Setup, world: World, slot: int, local: Local) -> Move:
    """Rounds of `Runner.run`: as many as nobody can come between."""
    purse = world.purse
    busy = world.sent < len(setup.setting.messages) or purse.pauses or purse.leaves or purse.echoes
    busy = busy or local.leaving
    effect, label = None, ""
    if local.leaving and local.head.state.turn is not None:
        effect, label = setup.core.turn.Rest(reason="left"), "leave"
    while effect is None and (not label or not busy):
        given = _wanted(setup, world, local)
        local = given[0]
        label = f"{label} {type(given[1]).__name__}".strip()
        if label.count(" ") > ROUNDS:
            return Move(label, "step", world, ("the_machine_comes_to_an_effect",))
        try:
            local, effect = setup.draft(local, given[1])
        except SojournError as error:
            return refused(setup, world, slot, error)
    if "inbox_emptied_before_commit" in setup.planted:
        world = world._replace(inbox=tuple(i for i in world.inbox if i not in local.heard))
    if effect is not None:
        rests = isinstance(effect, setup.core.turn.Rest)
        early = "effect_before_commit" in setup.planted and not rests
        local = local._replace(phase="ready" if early else "commit", effect=effect)
    return Move(label, "step", with_hold(setup, world, slot, local))


def _wanted(setup: Setup, world: World, local: Local) -> tuple[Local, Any]:
    """`Runner._wanted`: the inbox is read where a model call or the turn's end may follow."""
    turn = setup.core.turn
    state = local.head.state
    quiet = all(call.finished for call in state.calls) and state.model is None
    if quiet:
        local = hear(setup, world, local)
        state = local.head.state
    resting = state.answered and not state.unseen
    pauses = local.pausing and state.turn is not None and state.paused is None and not resting
    return local, turn.Pause() if pauses else turn.Next()


def refused(setup: Setup, world: World, slot: int, error: SojournError) -> Move:
    """The machine refuses the process, which ends; alone with its hold it never sees this."""
    faults = () if setup.setting.shared else ("the_taker_is_never_refused",)
    return Move(f"refused: {error.code}", "step", world.put_local(slot, None), faults)


def after_commit(local: Local) -> str:
    return "rested" if type(local.effect).__name__ == "Rest" else "ready"


def commit(setup: Setup, world: World, slot: int, local: Local) -> Move:
    """`Hold.commit`: all drafts become durable, if the log ends where this process believes."""
    log = local.head
    if local.head is not local.tip and local.tip is not world.log:
        if "no_head_check" not in setup.planted:
            return Move("refused: stale_head", "step", world.put_local(slot, None))
        log = world.log
        for made in local.head.since(local.tip):
            log = log.with_event(setup.terms, made.event, made.by)
    elif local.head is local.tip:
        log = world.log
    faults = tuple(fault for made in log.since(world.log) for fault in made.faults)
    phase = "tidy" if local.heard else after_commit(local)
    local = local._replace(tip=local.head, phase=phase)
    return Move("commit", "step", with_hold(setup, world._replace(log=log), slot, local), faults)


def torn(world: World, local: Local) -> Iterator[World]:
    """What can be on disk when the process dies now: of an append, any of its first lines."""
    yield world
    if local.phase == "commit" and local.tip is world.log:
        for log in local.head.since(local.tip):
            yield world._replace(log=log)


def _start(setup: Setup, world: World, slot: int, local: Local) -> Move:
    """The effect happens outside, as far as anybody can tell."""
    local = local._replace(phase="performing")
    effect = local.effect
    tool = getattr(effect, "tool", None)
    rules = setup.setting.rules[local.rules]
    label = f"start {tool or 'model'}"
    if tool is not None and tool not in rules:
        return Move(label, "step", world.put_local(slot, local))
    attempt = 1 if tool is None else effect.attempt
    rule = "safe" if tool is None else rules[tool]
    begun = started(world, effect.key, attempt, local.runner, rule)
    faults = start_faults(setup, world, slot, begun)
    world = world._replace(started=(*world.started, begun))
    return Move(label, "step", world.put_local(slot, local), faults)


def started(world: World, key: CallKey, attempt: int, runner: str, rule: ReplayRule) -> Started:
    """The effect; one after the first needs a decision unless every rule so far was harmless."""
    before = [one.rule for one in world.started if one.key == key]
    decided = bool(before) and strictest(rule, *before) not in HARMLESS
    return Started(key, attempt, runner, rule, decided)


def start_faults(setup: Setup, world: World, slot: int, begun: Started) -> tuple[str, ...]:
    """The rules that an effect breaks by starting now."""
    faults: list[str] = []
    judge = world.log.judge
    intent = (begun.key, begun.attempt, begun.runner)
    if intent not in judge.intents or intent in {one[:3] for one in world.started}:
        faults.append("effects_follow_their_durable_intent")
    other = world.other(slot)
    if other is not None and other.phase == "performing" and setup.setting.locked:
        faults.append("one_runner_performs")
    if setup.setting.locked and judge.taker != begun.runner:
        faults.append("effects_are_the_newest_takers")
    call = judge.calls.get(begun.key)
    if call is not None and setup.setting.locked and call.status != "open":
        faults.append("finished_calls_never_run_again")
    decided = sum(one.key == begun.key and one.decided for one in (*world.started, begun))
    if decided > (0 if call is None else call.retries):
        faults.append("unsafe_calls_start_once_per_decision")
    return tuple(faults)


def _ends(setup: Setup, world: World, slot: int, local: Local) -> Iterator[Move]:
    """The effect ends well; or badly, or by a person's second Ctrl-C, while that may happen."""
    yield ended(setup, world, slot, local, outcome(setup, local, "done", None))
    setting = setup.setting
    if world.purse.slips:
        model = isinstance(local.effect, setup.core.turn.CallModel)
        for status in setting.bad_models if model else setting.bad_tools:
            bad = outcome(setup, local, status, BAD)
            slipped = world.spend(slips=1)
            yield ended(setup, slipped, slot, local, bad)._replace(kind="trouble")
    if world.purse.pauses:
        stopped = outcome(setup, local, "unknown", STOPPED)
        stopping = local._replace(pausing=True)
        move = ended(setup, world.spend(pauses=1), slot, stopping, stopped)
        yield move._replace(kind="trouble", label=f"stop, {move.label}")


def outcome(setup: Setup, local: Local, status: str, failure: Failure | None) -> Ended:
    """How the effect ended, as the performer says it; a bad reply may hold whole calls."""
    effect, turn = local.effect, local.head.state.turn
    if not isinstance(effect, setup.core.turn.CallModel):
        known = effect.tool in setup.setting.rules[local.rules]
        parts = (TextPart(text=f"{effect.tool} {effect.attempt} {status}"),)
        status = status if known else "failed"
        return ToolOutcome(turn=turn, call=effect.key, status=status, parts=parts, failure=failure)
    replies = setup.setting.replies
    said = local.head.judge.replies
    asked = replies[said] if said < len(replies) else ()
    parts = tuple(CallPart(tool=tool, args="{}") for tool in asked if tool != GOES_ON)
    stop = "paused" if GOES_ON in asked else "calls" if asked else "rest"
    return ModelOutcome(
        turn=turn,
        call=effect.key,
        status=status,
        issuer=ISSUER,
        parts=(TextPart(text=f"reply {said}"), *parts),
        stop=stop if status == "done" else "other",
        failure=failure,
    )


def ended(setup: Setup, world: World, slot: int, local: Local, end: Ended) -> Move:
    """`Runner._perform`: what came of the effect is drafted."""
    try:
        after, _ = setup.draft(local, setup.core.turn.Ended(outcome=end))
    except SojournError as error:
        return refused(setup, world, slot, error)
    last = end if world.purse.echoes else None
    after = after._replace(phase="loop", effect=None, ended=None if last is None else Seen(last))
    return Move(f"ended {end.status}", "step", with_hold(setup, world, slot, after))


def _let_go(setup: Setup, world: World, slot: int, local: Local) -> Move:
    """The turn rests: the job goes unless a message waits; then lock and lease are let go.

    A turn that was left is not at rest, so its job stays.
    """
    if local.effect.reason == "left" and "left_turns_are_acknowledged" not in setup.planted:
        return Move("let go", "step", world.put_local(slot, None))
    if not world.inbox:
        world = world._replace(job=None)
    leased = world.job is not None and world.job.slot == slot
    after = local._replace(phase="ack", effect=None) if leased else None
    return Move("let go", "step", world.put_local(slot, after))
