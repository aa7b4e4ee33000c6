"""Whatever was merged, every provider takes the request (docs/protocol.md#blocks)."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.stories import Story
from core.worlds import turn, worlds
from render.prompts import HOSTS, Host
from render.vectors import check_with_sdk, strict_refusal
from sojourn.render import Rendered, dialect, render_bytes


def render(story: Story, host: Host) -> Rendered:
    prompt = story.transcript.prompt(system="You are an agent.", memory="notes")
    return dialect(host.target.profile.dialect).render(prompt, host.target, {})


def check_taken(story: Story, host: Host) -> None:
    rendered = render(story, host)
    assert strict_refusal(rendered.payload, host.target, host.strict) is None
    check_with_sdk(rendered.payload, host.target.profile.dialect)
    assert json.loads(render_bytes(rendered.payload)) == rendered.payload


@settings(deadline=None, max_examples=60)
@given(copies=worlds(), host=st.sampled_from(HOSTS))
def test_the_request_of_a_merged_log_is_taken(copies: list[Story], host: Host) -> None:
    for story in copies:
        check_taken(story.merged(*copies), host)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.target.profile.name)
def test_open_calls_in_the_middle_are_answered_for_every_host(host: Host) -> None:
    """A turn that another machine left with one call begun and one not, then turns of two more."""
    first = Story()
    turn(first, "first")
    left, ended = first.claimed("7", epoch=1001), first.claimed("8", epoch=2001)
    left.hear("left open")
    left.take()
    left.reply(left.model(), "report", "safe")
    left.tool()
    for number in range(4):
        turn(ended, f"ended {number}", "safe")
    first.hear("mine")
    first.take()
    first.reply(first.model(), "ask")
    first.end(first.tool(), "42")
    merged = first.merged(left, ended)
    check_taken(merged, host)
    rendered = render(merged, host)
    assert sum(loss.code == "call_answered" for loss in rendered.losses) == 2


@settings(deadline=None, max_examples=60)
@given(copies=worlds(), host=st.sampled_from(HOSTS))
def test_the_prefix_is_stable_while_the_merged_capsule_goes_on(
    copies: list[Story], host: Host
) -> None:
    """Entries that a request showed stand where they stood, as the own strand goes on."""
    merged = copies[0].merged(*copies)
    if merged.state.paused is not None:
        return
    shown = [entry.event for entry in merged.transcript.entries]
    merged.hear("one more")
    merged.take("later")
    for _ in range(20):
        ready = merged.next("later")
        if ready.effect is not None:
            break
    after = [entry.event for entry in merged.transcript.entries]
    assert after[: len(shown)] == shown
    check_taken(merged, host)
