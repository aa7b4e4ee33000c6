"""The fold of the turn (docs/protocol.md#view): each event changes what it says and no more."""

import pytest
from msgspec.structs import replace

from core.stories import Story, started
from sojourn.core.turn import Decide, Pause
from sojourn.format.event import AnyBody, Memory, Settled, TurnEnded, Unknown
from sojourn.ids import BlobId, CallKey

MEMORY = Memory(origin="hand", before=None, result=BlobId("0" * 64), text="notes")


@pytest.mark.parametrize(
    "body",
    [None, Unknown(kind="dreamt", raw=b"{}"), MEMORY],
    ids=["redacted", "an unknown kind", "memory"],
)
def test_an_event_that_is_not_of_the_turn_changes_only_the_last_event(
    body: AnyBody | Unknown | None,
) -> None:
    story = started("report")
    before = story.state
    last = story.add(body)
    assert story.state == replace(before, last=last)


def test_the_capsule_is_its_identity_event() -> None:
    story = Story()
    first = story.state.capsule
    story.add(Unknown(kind="merged", raw=b"{}"))
    assert first is not None
    assert story.state.capsule == first


def test_inputs_are_unseen_until_a_model_is_asked() -> None:
    story = Story()
    one, two = story.hear("one"), story.hear("two")
    story.take()
    assert story.state.unseen == (one, two)
    effect = story.model()
    assert story.state.unseen == ()
    three = story.hear("three")
    story.reply(effect)
    assert story.state.unseen == (three,)
    assert story.state.answered


def test_the_end_of_a_turn_clears_it_and_keeps_what_was_not_seen() -> None:
    story = started("report", limit=1)
    story.end(story.tool())
    left = story.hear("left")
    story.next()
    state = story.state
    assert isinstance(story.bodies[-1], TurnEnded)
    assert (state.turn, state.runner, state.calls, state.model_calls) == (None, None, (), 0)
    assert state.unseen == (left,)


def test_taking_a_turn_goes_on_counting_its_model_calls() -> None:
    story = started("safe")
    story.end(story.tool())
    story.reply(story.model(), "safe")
    story.take("second")
    assert story.state.model_calls == 2


def test_taking_a_turn_ends_a_pause_but_not_a_question() -> None:
    story = started("ask")
    story.give(Pause())
    story.take("second")
    assert story.state.paused is None
    story.tool("second")
    story.take("third")
    story.next("third")
    story.take("fourth")
    assert (story.state.paused, story.state.question) == ("decision", story.state.calls[0].key)


def test_a_settlement_of_another_call_changes_nothing() -> None:
    story = started("ask")
    story.tool()
    story.take("second")
    story.next("second")
    before = story.state
    last = story.add(Settled(call=CallKey("0" * 64), decision="done", by="user"))
    assert story.state == replace(before, last=last)


def test_a_decision_is_of_the_call_that_waits() -> None:
    story = started("ask", "safe")
    story.tool()
    story.take("second")
    story.next("second")
    story.give(Decide(decision="failed", by="user"), "second")
    assert [call.state for call in story.state.calls] == ["failed", "asked"]
    assert (story.state.paused, story.state.question) == (None, None)


def test_an_unfinished_reply_is_no_reply() -> None:
    story = started("safe")
    story.end(story.tool())
    calls = story.state.calls
    story.reply(story.model(), "report", status="unknown")
    assert (story.state.calls, story.state.stalled) == (calls, 1)
    assert not story.state.answered
