"""What another runner does with calls it finds open, and what an older one may not do any more."""

from typing import Literal

import pytest

from core.stories import RULES, Story, started
from sojourn.core.replay import FORGOTTEN, INTERRUPTED, TOO_OFTEN
from sojourn.core.turn import MAX_ATTEMPTS, CallTool, Decide, Ended, Pause, Rest
from sojourn.errors import FencedError, UsageError
from sojourn.format.event import ModelOutcome, ReplayRule, Settled, ToolIntent, ToolOutcome
from sojourn.format.parts import TextPart


def interrupted(tool: str) -> tuple[Story, CallTool]:
    """`first` made the call and is gone; `second` has the turn."""
    story = started(tool, "safe")
    effect = story.tool()
    story.take("second")
    return story, effect


def last_unknown(story: Story) -> ToolOutcome:
    outcome = story.bodies[-1]
    assert isinstance(outcome, ToolOutcome)
    assert outcome.status == "unknown"
    return outcome


@pytest.mark.parametrize("tool", ["safe", "keyed"])
def test_a_harmless_call_is_made_again_with_the_same_key(tool: str) -> None:
    story, effect = interrupted(tool)
    again = story.tool("second")
    assert (again.key, again.index, again.tool) == (effect.key, effect.index, effect.tool)
    assert again.attempt == 2


@pytest.mark.parametrize("tool", ["report", "probe"])
def test_a_call_that_may_have_happened_is_told_and_not_made_again(tool: str) -> None:
    rule: ReplayRule = "probe" if tool == "probe" else "report"
    story = started("report", "safe")
    story.rules["report"] = rule
    story.tool()
    story.take("second")
    assert story.next("second").effect is None
    failure = last_unknown(story).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("interrupted", INTERRUPTED)
    assert story.tool("second").tool == "safe"


@pytest.mark.parametrize("tool", RULES)
def test_a_tool_that_is_gone_is_never_run_again(tool: str) -> None:
    story, _ = interrupted(tool)
    del story.rules[tool]
    story.next("second")
    failure = last_unknown(story).failure
    assert failure is not None
    assert failure.message == FORGOTTEN


@pytest.mark.parametrize(("then", "today"), [("safe", "report"), ("report", "safe")])
def test_an_upgrade_never_loosens_a_promise(then: ReplayRule, today: ReplayRule) -> None:
    story = Story()
    story.rules["safe"] = then
    story.hear()
    story.take()
    story.reply(story.model(), "safe")
    story.tool()
    story.take("second")
    story.rules["safe"] = today
    story.next("second")
    last_unknown(story)


def test_an_intent_keeps_the_strictest_rule_under_which_the_call_was_made() -> None:
    story, effect = interrupted("safe")
    story.rules["safe"] = "ask"
    story.next("second")
    story.give(Decide(decision="retry", by="user"), "second")
    assert story.tool("second").key == effect.key
    story.take("third")
    story.rules["safe"] = "safe"
    story.next("third")
    last_unknown(story)
    assert story.state.question == effect.key


def test_one_more_attempt_under_a_looser_rule_keeps_the_recorded_one() -> None:
    story, _ = interrupted("ask")
    story.next("second")
    story.rules["ask"] = "safe"
    story.give(Decide(decision="retry", by="user"), "second")
    story.tool("second")
    intent = story.bodies[-1]
    assert isinstance(intent, ToolIntent)
    assert (intent.replay, intent.attempt) == ("ask", 2)


def test_a_call_that_no_process_survives_is_given_up_after_five_attempts() -> None:
    story = started("safe")
    for number in range(1, MAX_ATTEMPTS + 1):
        by = "first" if number == 1 else f"runner {number}"
        assert story.tool(by).attempt == number
        story.take(f"runner {number + 1}")
    by = f"runner {MAX_ATTEMPTS + 1}"
    story.next(by)
    failure = last_unknown(story).failure
    assert failure is not None
    assert failure.message == TOO_OFTEN
    story.model(by)


def test_a_person_is_asked_before_the_outcome_is_written() -> None:
    story, effect = interrupted("ask")
    story.next("second")
    assert story.kinds()[-2:] == ["turn_paused", "tool_outcome"]
    assert story.state.question == last_unknown(story).call == effect.key
    assert story.next("second").effect == Rest(reason="question")


def test_a_call_that_comes_back_unknown_asks_a_person_if_its_rule_is_ask() -> None:
    story = started("ask", "report")
    story.end(story.tool(), status="unknown")
    assert story.kinds()[-2:] == ["turn_paused", "tool_outcome"]
    assert story.next().effect == Rest(reason="question")
    story = started("report")
    story.end(story.tool(), status="unknown")
    story.model()


@pytest.mark.parametrize("decision", [None, "retry"])
def test_a_question_that_lost_its_outcome_gets_one(decision: Literal["retry"] | None) -> None:
    """A torn append left the first of the two lines."""
    whole, effect = interrupted("ask")
    question, _ = whole.next("second").records
    story, _ = interrupted("ask")
    story.add(question)
    story.take("third")
    if decision is None:
        assert story.next("third").effect is None
        last_unknown(story)
        assert story.next("third").effect == Rest(reason="question")
    else:
        story.give(Decide(decision=decision, by="user"), "third")
        assert story.kinds()[-2:] == ["tool_outcome", "settled"]
        assert story.tool("third").key == effect.key


def test_taking_a_turn_does_not_answer_its_question() -> None:
    story, _ = interrupted("ask")
    story.next("second")
    assert story.take("worker", person=False).effect == Rest(reason="paused")
    story.take("person")
    assert story.next("person").effect == Rest(reason="question")


def test_retry_makes_one_more_attempt_with_the_same_key() -> None:
    story, effect = interrupted("ask")
    story.next("second")
    story.give(Decide(decision="retry", by="user"), "second")
    again = story.tool("second")
    assert (again.key, again.attempt) == (effect.key, 2)
    story.take("third")
    story.next("third")
    assert story.next("third").effect == Rest(reason="question")


@pytest.mark.parametrize("decision", ["skip", "done", "failed"])
def test_every_other_decision_leaves_the_call_alone(
    decision: Literal["skip", "done", "failed"],
) -> None:
    story, _ = interrupted("ask")
    story.next("second")
    words = (TextPart(text="it was placed"),)
    story.give(Decide(decision=decision, by="user", parts=words), "second")
    settled = story.bodies[-1]
    assert isinstance(settled, Settled)
    assert (settled.decision, settled.by, settled.parts) == (decision, "user", words)
    assert story.tool("second").tool == "safe"


def test_a_decision_that_nobody_asked_for_is_refused() -> None:
    story = started("report")
    before = len(story.bodies)
    with pytest.raises(UsageError) as refused:
        story.give(Decide(decision="skip", by="user"))
    assert refused.value.code == "no_question"
    assert len(story.bodies) == before


def test_an_older_runner_may_do_nothing_more() -> None:
    story, effect = interrupted("report")
    before = len(story.bodies)
    acts = (
        lambda: story.next(),
        lambda: story.end(effect),
        lambda: story.give(Pause()),
        lambda: story.give(Decide(decision="skip", by="user")),
    )
    for act in acts:
        with pytest.raises(FencedError) as refused:
            act()
        assert refused.value.code == "turn_taken"
    assert len(story.bodies) == before


def test_a_late_end_of_another_runners_call_is_refused() -> None:
    story, effect = interrupted("report")
    with pytest.raises(FencedError) as refused:
        story.end(effect, by="second")
    assert refused.value.code == "call_not_open"
    story = Story()
    story.hear()
    story.take()
    asked = story.model()
    story.take("second")
    late = ModelOutcome(
        turn=story.turn, call=asked.key, status="done", issuer=story.here("").issuer
    )
    for by in ("first", "second"):
        with pytest.raises(FencedError):
            story.give(Ended(outcome=late), by)


def test_an_end_that_comes_twice_is_refused() -> None:
    story = started("report", "safe")
    effect = story.tool()
    story.end(effect)
    with pytest.raises(FencedError) as refused:
        story.end(effect)
    assert refused.value.code == "call_not_open"


def test_an_intent_tells_whose_part_it_is() -> None:
    story = started("report", "safe")
    story.end(story.tool())
    effect = story.tool()
    intent = story.bodies[-1]
    assert isinstance(intent, ToolIntent)
    assert (intent.requested_by, intent.index, intent.tool) == (effect.reply, 1, "safe")
    assert (intent.runner, intent.replay, intent.call) == ("first", "safe", effect.key)
