"""Guards that are taken out, each with the rule that is then broken, and where.

A mutant is an edit of a module of `core`, or a fault planted in the model's own driver.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from model import settings as s
from model.cores import Edit
from model.world import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`rule` is broken in `setting`; `edits` are by module, `planted` are the driver's faults."""

    name: str
    setting: Setting
    rule: str
    edits: dict[str, tuple[Edit, ...]] = field(default_factory=dict)
    planted: frozenset[str] = frozenset()


def _turn(name: str, setting: Setting, rule: str, old: str, new: str) -> Mutant:
    return Mutant(name=name, setting=setting, rule=rule, edits={"turn": ((old, new),)})


def _state(name: str, setting: Setting, rule: str, old: str, new: str) -> Mutant:
    return Mutant(name=name, setting=setting, rule=rule, edits={"turn_state": ((old, new),)})


def _view(name: str, setting: Setting, rule: str, old: str, new: str) -> Mutant:
    return Mutant(name=name, setting=setting, rule=rule, edits={"view": ((old, new),)})


def _replay(name: str, setting: Setting, rule: str, old: str, new: str) -> Mutant:
    return Mutant(name=name, setting=setting, rule=rule, edits={"replay": ((old, new),)})


def _driver(setting: Setting, rule: str, *planted: str) -> Mutant:
    name = " and ".join(planted)
    return Mutant(name=name, setting=setting, rule=rule, planted=frozenset(planted))


ONCE = "unsafe_calls_start_once_per_decision"
AGAIN = "finished_calls_never_run_again"
WHOLE = "the_model_is_asked_when_every_call_has_its_outcome"
TAKER = "only_the_newest_taker_appends"
OPEN = "outcomes_end_open_calls"
MAKER = "outcomes_come_from_the_maker_of_the_call"
ASK = "a_person_decides_about_ask"
SEEN = "turns_rest_when_every_input_was_seen"
RESTS = "every_world_can_come_to_rest"
WORKS = "workers_alone_come_to_rest_or_to_a_question"
PAUSED = "workers_leave_paused_turns_alone"
KEYS = "keys_follow_from_the_log"
AS_ENDED = "each_call_is_shown_as_it_ended"
FLIGHT = "a_call_in_flight_is_left_alone"

MODEL_OPEN = "state.model != outcome.call or state.model_runner != here.runner"
TOOL_OPEN = "call is None or call.state != 'started' or call.runner != here.runner"
OWN = "state.turn is None or state.runner != here.runner"
TAKEOVER = "    return Ready(records=(_taking(state.turn, here),))"
BOTH = "recorded or 'report', today or 'report'"
CLEARED = "unseen=(), answered=False"
IN_FLIGHT = "call.runner == here.runner and call.attempt > 0"
RESUMED = "fresh or (state.paused and (not waits))"


def _rules() -> Iterator[Mutant]:
    """docs/replay.md."""
    told = "case 'probe' | 'report':\n            return 'tell'"
    yield _replay("report replayed", s.CRASH, ONCE, told, told.replace("tell", "again"))
    yield _replay("ask told", s.CRASH, ASK, "return 'ask'", "return 'tell'")
    yield _replay(
        "unknown tool replayed", s.UPGRADES, ONCE, BOTH, "recorded or 'report', today or 'safe'"
    )
    yield _replay(
        "recorded rule ignored", s.UPGRADES, ONCE, BOTH, "today or 'report', today or 'report'"
    )
    yield _replay("today's rule ignored", s.UPGRADES, ONCE, BOTH, "recorded or 'report', 'safe'")
    stricter = "today if call.recorded is None else stricter(call.recorded, today)"
    old = "call.recorded or today"
    yield _turn("first rule kept", s.UPGRADED_TWICE, ONCE, stricter, old)
    yield _turn("today's rule recorded", s.UPGRADED_TWICE, ONCE, stricter, "today")
    asked = "return _ask_person(turn, call, _interrupted(turn, call, here))"
    alone = "return Ready(records=(_interrupted(turn, call, here),))"
    yield _turn("ask without pause", s.CRASH, ASK, asked, alone)
    live = "if outcome.status == 'unknown' and _rule(call, here) == 'ask':"
    yield _turn("unknown end of ask told", s.CRASH, ASK, live, "if False:")
    first = "(TurnPaused(turn=turn, reason='decision', call=call.key), outcome)"
    last = "(outcome, TurnPaused(turn=turn, reason='decision', call=call.key))"
    yield _turn("question after the outcome", s.DEATHS, ASK, first, last)
    missing = "call is None or call.state != 'started':\n        return ()"
    late = "decisions_follow_an_unknown_outcome"
    yield _turn("torn outcome not written", s.DEATHS, late, missing, "True:\n        return ()")
    bound = "case 'again' if call.attempt < MAX_ATTEMPTS:"
    yield _turn("attempts unlimited", s.POISON, "attempts_are_bounded", bound, "case 'again':")
    counted = "attempt=body.attempt, runner"
    yield _state("attempt not counted", s.CRASH, "attempts_count_up", counted, "attempt=0, runner")
    again = "state_='again')"
    yield _state("retry forgotten", s.CRASH, WHOLE, again, "state_='unknown')")


def _calls() -> Iterator[Mutant]:
    """docs/protocol.md#turns: intents and outcomes."""
    closed = "self.state in ('done', 'failed', 'unknown')"
    for status in ("done", "failed", "unknown"):
        edit = (closed, f"self.state in {sorted({'done', 'failed', 'unknown'} - {status})}")
        yield _state(f"{status} is not finished", s.CRASH, "the_taker_is_never_refused", *edit)
        both: dict[str, tuple[Edit, ...]] = {"turn_state": (edit,), "turn": ((IN_FLIGHT, "False"),)}
        name = f"{status} is not finished, nor in flight"
        yield Mutant(name=name, setting=s.CRASH, rule=AGAIN, edits=both)
    unfinished = "if not call.finished:"
    yield _turn(
        "model asked with open calls", s.CRASH, WHOLE, unfinished, "if call.state == 'asked':"
    )
    yield _turn(
        "model asked with calls left", s.CRASH, WHOLE, unfinished, "if call.state == 'started':"
    )
    calls = "for call in state.calls:"
    yield _turn(
        "calls in reverse",
        s.CRASH,
        "calls_run_in_order",
        calls,
        "for call in reversed(state.calls):",
    )
    yield _turn(
        "interrupted model outcome not written",
        s.CRASH,
        WHOLE,
        "if state.model is not None:",
        "if False:",
    )


def _ends() -> Iterator[Mutant]:
    """docs/protocol.md#fence: which outcomes are taken, and from whom."""
    done = "body.status != 'done' or state.capsule is None"
    yield _state("calls of a broken reply run", s.CRASH, KEYS, done, "state.capsule is None")
    yield _turn(
        "key from the turn", s.CRASH, KEYS, "requested_by=state.last", "requested_by=state.turn"
    )
    yield _turn("runner check dropped", s.ONE_HOLD, TAKER, OWN, "state.turn is None")
    yield _turn("open check of tools dropped", s.ONE_HOLD, OPEN, TOOL_OPEN, "call is None")
    yield _turn("open check of models dropped", s.ONE_HOLD, OPEN, MODEL_OPEN, "False")
    yield _turn(
        "maker of tools' ends ignored",
        s.ONE_HOLD,
        MAKER,
        TOOL_OPEN,
        TOOL_OPEN.rpartition(" or ")[0],
    )
    yield _turn(
        "maker of models' ends ignored",
        s.ONE_HOLD,
        MAKER,
        MODEL_OPEN,
        MODEL_OPEN.rpartition(" or ")[0],
    )
    yield _turn("tool in flight started", s.ONE_HOLD, FLIGHT, IN_FLIGHT, "False")
    yield _turn(
        "model in flight ended",
        s.ONE_HOLD,
        MAKER,
        "if state.model_runner == here.runner:",
        "if False:",
    )


def _turns() -> Iterator[Mutant]:
    """docs/protocol.md#turns: taking, resting, pausing, inputs."""
    yield _turn(
        "turn_taken not written on takeover", s.CRASH, RESTS, TAKEOVER, "    return Ready()"
    )
    both = ((TAKEOVER, "    return Ready()"), (OWN, "state.turn is None"))
    yield Mutant(name="taken over in silence", setting=s.CRASH, rule=TAKER, edits={"turn": both})
    first = "    if state.paused is not None and (not given.person):"
    yield _turn("pause ignored by workers", s.PAUSES, PAUSED, first, "    if False:")
    paused = (
        "if state.paused is not None:\n        return Ready(effect=Rest(reason='paused'))\n    if"
    )
    yield _turn("pause ignored", s.PAUSES, "nothing_starts_while_paused", paused, "if")
    waits = "paused=state.paused if waits else None"
    yield _state("question dropped by taking", s.PAUSES, RESTS, waits, "paused=None, question=None")
    stalled = "if state.stalled >= MAX_STALLED:"
    yield _turn("stalled limit removed", s.STALLS, "a_stalled_turn_waits", stalled, "if False:")
    counted = "stalled=state.stalled + 1"
    yield _state("stalled not counted", s.STALLS, "a_stalled_turn_waits", counted, "stalled=0")
    progress = "the_log_grows_only_with_progress"
    yield _state("pause kept by taking", s.STALLS, progress, waits, "paused=state.paused")
    fresh = "state.paused and (not waits)"
    yield _state(
        "stalled from turn to turn", s.STALLED_TURNS, "pauses_have_a_cause", RESUMED, fresh
    )
    yield _state("stalled for ever", s.STALLS, progress, RESUMED, "fresh")
    limit = "if state.model_calls >= here.max_model_calls:"
    yield _turn("limit removed", s.LIMIT, "the_limit_holds", limit, "if False:")
    rest = "if state.answered and (not state.unseen):"
    yield _turn("rest with an unseen input", s.MESSAGES, SEEN, rest, "if state.answered:")
    yield _turn("rest without an answer", s.CRASH, SEEN, rest, "if not state.unseen:")
    goes_on = "rests = not calls and body.stop != 'paused'"
    yield _state("paused reply taken for rest", s.LIMIT, SEEN, goes_on, "rests = not calls")
    cause = "the_model_is_asked_with_cause"
    yield _state("unseen not cleared", s.MESSAGES, cause, CLEARED, "answered=False")
    taken = "turn=body.turn, runner=body.runner"
    yield _state("unseen cleared by taking", s.MESSAGES, SEEN, taken, f"{taken}, unseen=()")
    replied = "calls=tuple(calls), answered=rests"
    yield _state("unseen cleared by the reply", s.ONE_HOLD, SEEN, replied, f"{replied}, unseen=()")
    ended = "calls=(), model_calls=0"
    yield _state("input dropped when the turn ends", s.LIMIT, RESTS, ended, f"{ended}, unseen=()")
    named = "turns_are_named_by_their_first_input"
    take = "        return Ready(records=(_taking(TurnId(state.unseen[0]), here),))\n    if"
    yield _turn("turn named by its last input", s.MESSAGES, named, take, take.replace("0", "-1"))


def _views() -> Iterator[Mutant]:
    """What a model is told (docs/replay.md#table)."""
    unseen = "if body.call in self._unseen and self._knows_answer(body.call):"
    yield _view("unseen settlement not in place", s.CRASH, AS_ENDED, unseen, "if False:")
    replaced = "return call.key in self._unseen"
    yield _view("first result kept", s.CRASH, AS_ENDED, replaced, "return False")
    settled = "if body.decision in ('retry', 'skip'):"
    told = "a_settled_result_is_shown"
    yield _view("settlement not told", s.CRASH, told, settled, "if body.decision != 'done':")
    done = "completed = body.status == 'done'"
    yield _view(
        "broken reply shown whole", s.CRASH, "each_call_is_shown_once", done, "completed = True"
    )
    late = "status: CallStatus = 'done' if body.decision == 'done' else 'failed'"
    yield _view("settled as done", s.CRASH, AS_ENDED, late, "status: CallStatus = 'done'")


def _drivers() -> Iterator[Mutant]:
    """The order of doing, which drive/ keeps and the model's own driver repeats."""
    yield _driver(s.CRASH, "effects_follow_their_durable_intent", "effect_before_commit")
    yield _driver(s.LOST_LOCK, TAKER, "no_head_check")
    yield _driver(s.CRASH, "one_runner_performs", "no_lock")
    yield _driver(s.CRASH, TAKER, "no_lock", "no_head_check")
    yield _driver(s.DUPLICATES, "inputs_appear_once", "known_inputs_are_appended")
    yield _driver(s.MESSAGES, "accepted_inputs_are_never_lost", "inbox_emptied_before_commit")
    yield _driver(s.MESSAGES, WORKS, "ack_at_lease")
    yield _driver(s.QUEUE, WORKS, "job_put_again_is_acknowledged")
    yield _driver(s.PAUSES, PAUSED, "workers_ask_as_persons")
    yield _driver(s.LEFT, WORKS, "left_turns_are_acknowledged")


MUTANTS = (*_rules(), *_calls(), *_ends(), *_turns(), *_views(), *_drivers())


def _spare() -> Iterator[tuple[Mutant, str]]:
    question = (
        "if state.question is not None:\n        return Ready(effect=Rest(reason='question'))"
    )
    yield (
        _turn("question not told apart", s.DEATHS, "", question, "if False:\n        pass"),
        "a question is a pause, so the turn rests all the same; only the reason would be another",
    )
    yield (
        _state(
            "question of a decision ignored", s.DEATHS, "", "state.question != body.call", "False"
        ),
        "only the question is ever settled; another could come from a merged log alone",
    )
    fresh = "answered=False if fresh else state.answered"
    yield (
        _state("answer kept from turn to turn", s.MESSAGES, "", fresh, "answered=state.answered"),
        "a new turn has an unseen input, and asking the model forgets the answer",
    )
    counted = "model_calls=0 if fresh else state.model_calls"
    yield (
        _state("calls counted on", s.LIMIT, "", counted, "model_calls=state.model_calls"),
        "the end of a turn sets the count to nought as well",
    )
    yield (
        _state("count kept at the end", s.LIMIT, "", ", model_calls=0)", ")"),
        "the beginning of a turn sets the count to nought as well",
    )
    yield (
        _state("calls kept at the end", s.LIMIT, "", "calls=(), model_calls=0", "model_calls=0"),
        "a turn ends when every call has its outcome, and such calls are never looked at",
    )
    replaced = "return call.key in self._unseen"
    yield (
        _view("shown result replaced", s.DEATHS, "", replaced, "return True"),
        "no outcome comes after a request showed the call; tests/core/test_view.py shows the guard",
    )
    unseen = "if body.call in self._unseen and self._knows_answer(body.call):"
    yield (
        _view("settlement always in place", s.DEATHS, "", unseen, "if True:"),
        "a question holds the next request back; tests/core/test_view.py shows the guard",
    )


SPARE = tuple(_spare())
"""Guards whose loss no world of the setting shows, and why they are kept."""
