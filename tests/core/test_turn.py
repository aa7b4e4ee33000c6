"""The machine of a turn (docs/protocol.md#turns): what is appended, and what may then be done."""

from typing import get_args

import pytest

from core.stories import ISSUER, Story, started
from sojourn.core.turn import MAX_STALLED, Next, Pause, Rest, Take, step
from sojourn.errors import FencedError
from sojourn.format.event import CallStatus, ModelIntent, ModelOutcome, TurnEnded, TurnPaused
from sojourn.ids import TurnId, call_key


def paused(story: Story, reason: str) -> bool:
    """Whether the last event pauses the turn for that reason, and workers leave it alone."""
    last = story.bodies[-1]
    taken = step(story.state, Take(person=False), story.here("worker"))
    alone = taken.effect == Rest(reason="paused") and taken.records == ()
    return isinstance(last, TurnPaused) and last.reason == reason and alone


def test_a_turn_is_named_by_its_first_input() -> None:
    story = Story()
    first = story.hear("one")
    story.hear("two")
    assert story.take().effect is None
    assert story.kinds()[-1] == "turn_taken"
    assert story.turn == TurnId(first)


def test_without_an_input_there_is_nothing_to_take() -> None:
    story = Story()
    assert story.take().effect == Rest(reason="idle")
    assert story.next().effect == Rest(reason="idle")
    assert story.kinds() == []


def test_a_turn_is_told_event_by_event_and_then_rests() -> None:
    story = started("report", "safe")
    story.end(story.tool())
    story.end(story.tool())
    story.reply(story.model())
    assert story.next().effect is None
    assert story.next().effect == Rest(reason="idle")
    assert story.kinds() == [
        "input",
        "turn_taken",
        *("model_intent", "model_outcome"),
        *("tool_intent", "tool_outcome"),
        *("tool_intent", "tool_outcome"),
        *("model_intent", "model_outcome"),
        "turn_ended",
    ]


def test_every_effect_comes_with_the_intent_that_must_be_durable_first() -> None:
    story = Story()
    story.hear()
    story.take()
    before = story.state.last
    ready = story.next()
    intent = ready.records[-1]
    assert isinstance(intent, ModelIntent)
    assert before is not None and story.state.capsule is not None
    assert intent.call == call_key(capsule=story.state.capsule, requested_by=before, index=0)
    assert (intent.issuer, intent.configured) == (ISSUER, story.configured)


def test_calls_of_one_reply_are_made_in_their_order_and_all_before_the_model_is_asked() -> None:
    story = started("report", "safe", "report")
    made = []
    for _ in range(3):
        effect = story.tool()
        made.append((effect.index, effect.tool, effect.attempt))
        story.end(effect)
    assert made == [(0, "report", 1), (1, "safe", 1), (2, "report", 1)]
    story.model()


def test_a_call_that_runs_is_neither_started_nor_ended_by_asking_again() -> None:
    story = started("safe")
    story.tool()
    with pytest.raises(FencedError, match="being made by this runner"):
        story.next()
    story = Story()
    story.hear()
    story.take()
    story.model()
    with pytest.raises(FencedError, match="being asked by this runner"):
        story.next()


@pytest.mark.parametrize("status", get_args(CallStatus))
def test_a_call_with_an_outcome_is_never_started_again_by_anybody(
    status: CallStatus,
) -> None:
    story = started("keyed", "safe")
    story.end(story.tool(), status=status)
    story.take("second")
    assert story.tool("second").tool == "safe"


def test_a_message_during_a_turn_is_seen_by_the_next_model_call() -> None:
    story = started("report")
    effect = story.tool()
    story.end(effect)
    story.hear("steer")
    story.model()
    assert story.state.unseen == ()


def test_a_message_after_the_last_reply_keeps_the_turn_from_ending() -> None:
    story = started()
    story.hear("one more thing")
    story.reply(story.model())
    story.next()
    assert story.kinds()[-1] == "turn_ended"


def test_a_failed_model_call_pauses_the_turn_until_a_person_comes() -> None:
    story = Story()
    story.hear()
    story.take()
    story.reply(story.model(), status="failed")
    assert paused(story, "model")
    assert story.next().effect == Rest(reason="paused")
    story.take("second", person=True)
    story.reply(story.model("second"), by="second")


def test_five_model_calls_without_a_reply_pause_the_turn() -> None:
    story = Story()
    story.hear()
    story.take()
    for _ in range(MAX_STALLED):
        story.reply(story.model(), status="unknown")
    story.next()
    assert paused(story, "model")


def test_a_person_gives_a_stalled_turn_five_more_model_calls() -> None:
    story = Story()
    story.hear()
    story.take()
    for by in ("first", "second"):
        for _ in range(MAX_STALLED):
            story.reply(story.model(by), by=by, status="unknown")
        story.next(by)
        assert paused(story, "model")
        story.take("second")


def test_a_reply_begins_the_count_of_stalled_calls_anew() -> None:
    story = Story()
    story.hear()
    story.take()
    for _ in range(3):
        for _ in range(MAX_STALLED - 1):
            story.reply(story.model(), status="unknown")
        story.reply(story.model(), "safe")
        story.end(story.tool())
    story.model()


def test_a_new_turn_begins_the_count_of_stalled_calls_anew() -> None:
    story = Story(limit=MAX_STALLED)
    story.hear("one")
    story.take()
    for _ in range(MAX_STALLED):
        story.reply(story.model(), status="unknown")
    assert isinstance(story.next().records[0], TurnEnded)
    story.hear("two")
    story.take()
    story.model()


def test_the_limit_ends_the_turn_and_the_next_input_begins_another() -> None:
    story = started("safe", limit=1)
    story.end(story.tool())
    steer = story.hear("steer")
    first = story.turn
    assert story.next().records == (TurnEnded(turn=first, reason="limit"),)
    story.next()
    assert story.turn == TurnId(steer)
    story.model()


def test_a_reply_that_says_it_goes_on_is_asked_to() -> None:
    story = Story()
    story.hear()
    story.take()
    story.reply(story.model(), stop="paused")
    story.model()


def test_no_call_of_a_reply_that_did_not_end_well_is_made() -> None:
    story = Story()
    story.hear()
    story.take()
    story.reply(story.model(), "report", status="unknown")
    story.reply(story.model(), "safe")
    assert story.tool().tool == "safe"


def test_a_pause_stops_at_once_and_a_second_one_changes_nothing() -> None:
    story = started("report")
    story.give(Pause())
    assert paused(story, "stopped")
    before = len(story.bodies)
    assert story.give(Pause()).effect == Rest(reason="paused")
    assert story.next().effect == Rest(reason="paused")
    assert len(story.bodies) == before
    story.take("second")
    assert story.tool("second").tool == "report"


def test_a_message_to_a_paused_turn_waits_with_it() -> None:
    story = started("report")
    story.give(Pause())
    story.hear("are you there")
    assert story.take("worker", person=False).effect == Rest(reason="paused")
    story.take("person")
    story.end(story.tool("person"), by="person")
    story.model("person")
    assert story.state.unseen == ()


def test_a_model_call_of_a_dead_runner_is_unknown_and_asked_again_as_a_new_call() -> None:
    story = Story()
    story.hear()
    story.take()
    old = story.model()
    story.take("second")
    story.next("second")
    outcome = story.bodies[-1]
    assert isinstance(outcome, ModelOutcome)
    assert (outcome.call, outcome.status, outcome.issuer) == (old.key, "unknown", ISSUER)
    assert story.model("second").key != old.key


def test_a_step_changes_nothing_itself() -> None:
    story = started("safe", "ask")
    here = story.here("first")
    assert step(story.state, Next(), here) == step(story.state, Next(), here)
    assert story.kinds()[-1] == "model_outcome"
