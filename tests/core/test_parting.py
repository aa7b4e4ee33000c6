"""What a fork ends that its parent left open, and what a workspace made anew may lack."""

from collections.abc import Callable

import pytest

from core.stories import Story, started
from sojourn.core.parting import FORKED, set_aside
from sojourn.core.turn import Next
from sojourn.format.capsule_kinds import Forked
from sojourn.format.event import AnyBody, ModelOutcome, ToolIntent, ToolOutcome, TurnEnded
from sojourn.ids import CapsuleId


def asked() -> Story:
    """Nothing is begun yet."""
    return started("report", "safe")


def model_open() -> Story:
    story = Story()
    story.hear()
    story.take()
    story.model()
    return story


def tool_open() -> Story:
    story = started("keyed", "report")
    story.tool()
    return story


def second_tool_open() -> Story:
    story = started("safe", "ask")
    story.end(story.tool())
    story.tool()
    return story


def question() -> Story:
    story = started("ask")
    story.end(story.tool(), status="unknown")
    return story


def rests() -> Story:
    story = started()
    while story.state.turn is not None:
        story.give(Next())
    return story


OPEN = {
    asked: (0, 0),
    model_open: (1, 0),
    tool_open: (0, 1),
    second_tool_open: (0, 1),
    question: (0, 0),
}


def parted(story: Story) -> list[AnyBody]:
    """Fork at the story's end: what the fork appends after its first event."""
    bodies = list(set_aside(story.state))
    story.add(Forked(parent=CapsuleId("p" * 64), name="f", nonce="0" * 32, heads=()))
    for body in bodies:
        story.add(body)
    return bodies


@pytest.mark.parametrize("begin", OPEN)
def test_a_fork_ends_what_is_open_as_unknown_and_rests(begin: Callable[[], Story]) -> None:
    story = begin()
    turn = story.turn
    *outcomes, end = parted(story)
    models = [body for body in outcomes if isinstance(body, ModelOutcome)]
    tools = [body for body in outcomes if isinstance(body, ToolOutcome)]
    assert (len(models), len(tools)) == OPEN[begin]
    assert len(outcomes) == len(models) + len(tools)
    for body in (*models, *tools):
        assert (body.turn, body.status) == (turn, "unknown")
        assert body.failure is not None
        assert body.failure.code == FORKED
    assert isinstance(end, TurnEnded)
    assert (end.turn, end.reason) == (turn, "set_aside")
    assert (story.state.turn, story.state.model, story.state.question) == (None, None, None)
    assert story.state.calls == ()


@pytest.mark.parametrize("begin", OPEN)
def test_the_next_turn_of_a_fork_asks_the_model_first(begin: Callable[[], Story]) -> None:
    """Nothing that the parent asked for is begun, whatever its replay rule."""
    story = begin()
    parted(story)
    story.hear("go on")
    story.take("of the fork")
    before = len(story.bodies)
    story.model("of the fork")
    assert not [body for body in story.bodies[before:] if isinstance(body, ToolIntent)]


def test_a_fork_at_rest_ends_nothing() -> None:
    assert set_aside(rests().state) == ()
