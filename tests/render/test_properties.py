"""What holds for every prompt and every target: docs/rendering.md#properties."""

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from render.prompts import BLOBS, HOSTS, ISSUERS, Host, prompts, secret
from render.vectors import check_with_sdk, strict_refusal
from sojourn.core.view import Notice, Prompt, Replied, Said
from sojourn.format.parts import CallPart
from sojourn.render import Rendered, blobs_needed, dialect, render_bytes

hosts = st.sampled_from(HOSTS)
often = settings(max_examples=50)


def render(prompt: Prompt, host: Host) -> Rendered:
    found = dialect(host.target.profile.dialect)
    return found.render(prompt, host.target, BLOBS)


def messages_of(rendered: Rendered) -> list[dict[str, Any]]:
    """The messages without cache marks, which move as the conversation grows."""
    payload: Any = copy.deepcopy(rendered.payload)
    for message in payload["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            block.pop("cache_control", None)
    return payload["messages"]


def call_ids(messages: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for message in messages:
        found += [call["id"] for call in message.get("tool_calls", [])]
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [block["id"] for block in blocks if block["type"] == "tool_use"]
    return found


def result_ids(message: dict[str, Any]) -> list[str]:
    if message["role"] == "tool":
        return [message["tool_call_id"]]
    blocks = message["content"] if isinstance(message["content"], list) else []
    return [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


@often
@given(host=hosts, prompt=prompts())
def test_every_rendered_request_is_taken(host: Host, prompt: Prompt) -> None:
    check_taken(host, prompt)


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.target.profile.name)
@settings(max_examples=300)
@given(prompt=prompts())
def test_every_rendered_request_is_taken_by_each_host(host: Host, prompt: Prompt) -> None:
    check_taken(host, prompt)


def check_taken(host: Host, prompt: Prompt) -> None:
    rendered = render(prompt, host)
    assert strict_refusal(rendered.payload, host.target, host.strict) is None
    check_with_sdk(rendered.payload, host.target.profile.dialect)
    assert json.loads(render_bytes(rendered.payload)) == rendered.payload


@often
@given(prompt=prompts(), first=st.sampled_from(HOSTS), second=st.sampled_from(HOSTS))
def test_going_to_another_model_and_back_changes_nothing(
    prompt: Prompt, first: Host, second: Host
) -> None:
    before = copy.deepcopy(prompt)
    there = render(prompt, first)
    render(prompt, second)
    back = render(prompt, first)
    assert (there.losses, there.constraints) == (back.losses, back.constraints)
    assert render_bytes(there.payload) == render_bytes(back.payload)
    assert prompt == before


@often
@given(host=hosts, prompt=prompts())
def test_no_reasoning_reaches_anyone_but_its_issuer(host: Host, prompt: Prompt) -> None:
    sent = render_bytes(render(prompt, host).payload).decode()
    foreign = [issuer for issuer in ISSUERS if issuer != host.target.issuer]
    assert not [issuer for issuer in foreign if secret(issuer, 0)[:-2] in sent]


@often
@given(host=hosts, prompt=prompts())
def test_what_others_thought_makes_no_difference(host: Host, prompt: Prompt) -> None:
    """A reply without its private parts renders as with them, for everyone but its issuer."""
    bare = [
        msgspec.structs.replace(
            entry, parts=tuple(p for p in entry.parts if p.__class__.__name__ != "ReasoningPart")
        )
        if isinstance(entry, Replied) and entry.issuer != host.target.issuer
        else entry
        for entry in prompt.entries
    ]
    without = render(replace(prompt, entries=bare), host)
    assert render_bytes(without.payload) == render_bytes(render(prompt, host).payload)


@often
@given(host=hosts, prompt=prompts())
def test_each_call_has_one_result_before_the_next_reply(host: Host, prompt: Prompt) -> None:
    messages = messages_of(render(prompt, host))
    asked = [
        part
        for entry in prompt.entries
        if isinstance(entry, Replied) and entry.completed
        for part in entry.parts
        if isinstance(part, CallPart)
    ]
    ids = call_ids(messages)
    assert len(ids) == len(asked)
    assert len(set(ids)) == len(ids)
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "assistant":
            assert not open_ids
            open_ids = call_ids([message])
        for name in result_ids(message):
            assert name == open_ids.pop(0)
    assert not open_ids


def is_due(prompt: Prompt) -> bool:
    """Whether a runner would send a request now: after words, or after the results of calls."""
    last = prompt.entries[-1] if prompt.entries else None
    if isinstance(last, Replied):
        return last.completed and bool(last.calls)
    return isinstance(last, Said | Notice)


def grown(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a message is the earlier one, or that one with more at its end."""
    if before["role"] != after["role"] or before["role"] == "assistant":
        return before == after
    old, new = before["content"], after["content"]
    if isinstance(old, str) and isinstance(new, list):
        new = "\n\n".join(block.get("text", "") for block in new)
    return new[: len(old)] == old


@often
@given(host=hosts, prompt=prompts(), data=st.data())
def test_appending_changes_nothing_before(host: Host, prompt: Prompt, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(prompt.entries)))
    earlier = replace(prompt, entries=prompt.entries[:at])
    before, after = render(earlier, host), render(prompt, host)
    allowed = before.constraints.thinking_allowed and after.constraints.thinking_allowed
    if not (is_due(earlier) and allowed):
        return
    old, new = messages_of(before), messages_of(after)
    assert new[: len(old) - 1] == old[:-1]
    assert grown(old[-1], new[len(old) - 1])
    assert call_ids(new)[: len(call_ids(old))] == call_ids(old)
    head = {key: value for key, value in before.payload.items() if key != "messages"}
    if prompt.tools:
        assert head == {key: value for key, value in after.payload.items() if key != "messages"}


@often
@given(prompt=prompts(), host=st.sampled_from(HOSTS))
def test_losses_name_events_of_the_log(prompt: Prompt, host: Host) -> None:
    known = {entry.event for entry in prompt.entries} | {None}
    for loss in render(prompt, host).losses:
        assert loss.event in known
        loss.detail.encode()


@often
@given(prompt=prompts(), host=st.sampled_from(HOSTS))
def test_no_other_blobs_than_those_asked_for_are_read(prompt: Prompt, host: Host) -> None:
    few = {name: BLOBS[name] for name in blobs_needed(prompt)}
    found = dialect(host.target.profile.dialect)
    assert found.render(prompt, host.target, few) == render(prompt, host)


@settings(max_examples=20)
@given(prompt=prompts())
def test_a_call_without_an_outcome_is_told_with_the_truth(prompt: Prompt) -> None:
    for entry in prompt.entries:
        for call in entry.calls if isinstance(entry, Replied) and entry.completed else ():
            one = replace(
                prompt, entries=[msgspec.structs.replace(entry, parts=(call.part,), calls=(call,))]
            )
            sent = render_bytes(render(one, HOSTS[0]).payload).decode()
            unknown = call.started and (call.result is None or call.result.status == "unknown")
            assert ("it may have happened" in sent) == unknown
            assert ("was not run" in sent) == (not call.started)
            assert ("To find out, use: read" in sent) == unknown
