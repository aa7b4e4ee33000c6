"""Readers: the same reply however a stream is cut, and a reply that was read can go back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from render.vectors import check_with_sdk
from sojourn.core.view import Call, Prompt, Replied, Result, Said
from sojourn.errors import CallError
from sojourn.format.event import Issuer, Options, ToolSpec
from sojourn.format.parts import CallPart, ReasoningPart, TextPart
from sojourn.ids import CapsuleId, EventId, call_key
from sojourn.ports import ServerEvent
from sojourn.render import Reply, Target, dialect
from sojourn.render.profile import profile_for
from sojourn.testing.strict import Reply as Spoken
from sojourn.testing.strict import ToolCall, anthropic, openai_chat
from sojourn.testing.strict.anthropic import wire as messages_wire
from sojourn.testing.strict.openai_chat import HOSTS
from sojourn.testing.strict.openai_chat import wire as chat_wire
from sojourn.testing.strict.reply import Wire

READ = ToolSpec(name="read", description="Reads.", schema='{"type":"object"}', replay="safe")


def read(name: str, events: Sequence[ServerEvent]) -> Reply:
    reader = dialect(name).reader()
    for event in events:
        reader.feed(event)
    return reader.finish()


def cut(text: str, places: Sequence[int]) -> list[str]:
    bounds = [0, *sorted({min(place, len(text)) for place in places}), len(text)]
    return [text[a:b] for a, b in pairwise(bounds)]


def data(**value: object) -> ServerEvent:
    return ServerEvent(event=str(value.get("type", "")), data=json.dumps(value))


def anthropic_events(text: str, arguments: str, places: Sequence[int]) -> list[ServerEvent]:
    start = "content_block_start"
    delta = "content_block_delta"
    events = [data(type=start, index=0, content_block={"type": "text", "text": ""})]
    for piece in cut(text, places):
        events.append(data(type=delta, index=0, delta={"type": "text_delta", "text": piece}))
    events.append(data(type="content_block_stop", index=0))
    block = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    events.append(data(type=start, index=1, content_block=block))
    for piece in cut(arguments, places):
        given = {"type": "input_json_delta", "partial_json": piece}
        events.append(data(type=delta, index=1, delta=given))
    events.append(data(type="content_block_stop", index=1))
    return [*events, data(type="message_stop")]


def chat_events(text: str, arguments: str, places: Sequence[int]) -> list[ServerEvent]:
    def chunk(**delta: object) -> ServerEvent:
        return data(choices=[{"index": 0, "delta": delta}])

    events = [chunk(content=piece) for piece in cut(text, places)]
    head: dict[str, Any] = {"index": 0, "id": "toolu_1", "function": {"name": "read"}}
    events.append(chunk(tool_calls=[head]))
    for piece in cut(arguments, places):
        events.append(chunk(tool_calls=[{"index": 0, "function": {"arguments": piece}}]))
    return [*events, data(choices=[{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])]


MAKERS = {"anthropic": anthropic_events, "openai_chat": chat_events}
texts = st.text(alphabet='ab \n😀é"\\', max_size=30)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=50)
@given(
    text=texts, value=st.dictionaries(texts, texts, max_size=3), places=st.lists(st.integers(0, 60))
)
def test_where_a_stream_is_cut_makes_no_difference(
    name: str, text: str, value: dict[str, str], places: list[int]
) -> None:
    arguments = json.dumps(value)
    reply = read(name, MAKERS[name](text, arguments, places))
    call = CallPart(tool="read", args=arguments, native_id="toolu_1")
    words = (TextPart(text=text),) if text else ()
    assert reply.parts == (*words, call)
    assert reply.completed


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=50)
@given(text=texts, places=st.lists(st.integers(0, 60)))
def test_what_is_shown_is_the_text_and_is_unicode(name: str, text: str, places: list[int]) -> None:
    """Also when a character above U+FFFF is sent as two halves in two pieces."""
    wide = "".join(
        f"{chr(0xD7C0 + (ord(c) >> 10))}{chr(0xDC00 + (ord(c) & 0x3FF))}" if ord(c) > 0xFFFF else c
        for c in text
    )
    reader = dialect(name).reader()
    shown = ""
    for event in MAKERS[name](wide, "{}", places):
        for delta in reader.feed(event):
            delta.text.encode()
            shown += delta.text if delta.kind == "text" else ""
    assert shown == text


@pytest.mark.parametrize("name", MAKERS)
def test_a_stream_without_its_end_is_not_complete_at_any_cut(name: str) -> None:
    events = MAKERS[name]("some words", '{"path": "a"}', [3, 7])
    for number in range(len(events)):
        reader = dialect(name).reader()
        for event in events[:number]:
            reader.feed(event)
        assert not reader.partial().completed
        assert not reader.finish().completed
    assert read(name, events).completed


def test_partial_can_be_asked_at_any_time_and_changes_nothing() -> None:
    for name, make in MAKERS.items():
        events = make("some words", '{"path": "a"}', [3, 7])
        reader = dialect(name).reader()
        for event in events:
            reader.partial()
            reader.feed(event)
        assert reader.finish() == read(name, events)


@given(junk=st.text(max_size=40) | st.binary(max_size=40).map(lambda b: b.decode("latin-1")))
def test_junk_in_a_stream_is_a_typed_error_or_is_passed_over(junk: str) -> None:
    for name in MAKERS:
        reader = dialect(name).reader()
        try:
            reader.feed(ServerEvent(event="", data=junk))
        except CallError as error:
            assert error.code and error.message
        reader.finish()


KEYS = st.sampled_from(
    (
        *("type", "index", "delta", "content_block", "message", "choices", "content", "id"),
        *("tool_calls", "function", "name", "arguments", "text", "thinking", "partial_json"),
        *("usage", "error", "finish_reason", "stop_reason", "reasoning_content"),
    )
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=50)
@given(events=st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=3))
def test_any_json_in_a_stream_is_read_or_is_a_typed_error(events: list[dict[str, object]]) -> None:
    for name in MAKERS:
        reader = dialect(name).reader()
        try:
            shown = [reader.feed(ServerEvent(event="", data=json.dumps(e))) for e in events]
        except CallError as error:
            assert error.code
        else:
            "".join(delta.text for deltas in shown for delta in deltas).encode()
        msgspec.json.encode(reader.finish())


@dataclass(frozen=True)
class Side:
    """One API and a model of it, with its strict fake."""

    name: str
    model: str

    def reply(self, spoken: Spoken, payload: dict[str, object]) -> Reply:
        given = Wire(payload=payload, seed="0" * 32, input_tokens=1)
        if self.name == "anthropic":
            lines = messages_wire.events(spoken, given)
        else:
            lines = chat_wire.events(spoken, given, HOSTS["openai"])
        return read(self.name, [parsed(line) for line in lines])

    def refusal(self, payload: dict[str, object]) -> object:
        check_with_sdk(payload, self.name)
        return anthropic.check(payload) if self.name == "anthropic" else openai_chat.check(payload)


def parsed(event: bytes) -> ServerEvent:
    fields = dict(line.split(": ", 1) for line in event.decode().strip().splitlines())
    return ServerEvent(event=fields.get("event", ""), data=fields["data"])


SIDES = (Side("anthropic", "claude-sonnet-4-5"), Side("openai_chat", "gpt-4.1"))
SPOKEN = (
    Spoken(text="I look.", thinking="Where?", calls=[ToolCall(name="read", arguments={"p": "a"})]),
    Spoken(
        thinking="Both.",
        redacted="hidden",
        calls=[
            ToolCall(name="read", arguments={}),
            ToolCall(name="read", arguments='{"broken": '),
            ToolCall(name="read", arguments={"deep": [{"x": 1.5}]}, id="call 1|x"),
        ],
    ),
    Spoken(text="Done.", thinking="Good."),
)


@pytest.mark.parametrize("first", SIDES, ids=lambda side: side.name)
@pytest.mark.parametrize("second", SIDES, ids=lambda side: side.name)
def test_replies_that_were_read_can_go_back_to_either_api(first: Side, second: Side) -> None:
    """A conversation that changes the model at each turn is taken by both, all the way."""
    entries: list[Said | Replied] = [Said(event=EventId("0"), author="p", parts=(word("Go."),))]
    for number, spoken in enumerate(SPOKEN):
        side = (first, second)[number % 2]
        payload = rendered(entries, side)
        assert side.refusal(payload) is None
        entries.append(replied(str(number), side, side.reply(spoken, payload)))
        entries.append(Said(event=EventId(f"s{number}"), author="p", parts=(word("And?"),)))
    for side in SIDES:
        assert side.refusal(rendered(entries, side)) is None


def test_signed_thinking_that_was_read_goes_back_byte_for_byte() -> None:
    side = SIDES[0]
    entries: list[Said | Replied] = [Said(event=EventId("0"), author="p", parts=(word("Go."),))]
    payload = rendered(entries, side)
    reply = side.reply(SPOKEN[0], payload)
    (thought,) = [part for part in reply.parts if isinstance(part, ReasoningPart)]
    assert thought.opaque is not None
    entries.append(replied("1", side, reply))
    again: Any = rendered(entries, side)
    assert again["messages"][1]["content"][0] == json.loads(str(thought.opaque.data))
    assert again["messages"][1]["content"][0]["thinking"] == "Where?"


def word(text: str) -> TextPart:
    return TextPart(text=text)


def replied(name: str, side: Side, reply: Reply) -> Replied:
    asked = [part for part in reply.parts if isinstance(part, CallPart)]
    event = EventId(name)
    done = Result(event=EventId(f"r{name}"), status="done", parts=(word("ok"),))
    calls = tuple(
        Call(
            key=call_key(capsule=CapsuleId("c"), requested_by=event, index=index),
            part=part,
            started=not part.broken,
            result=None if part.broken else done,
        )
        for index, part in enumerate(asked)
    )
    return Replied(
        event=event,
        issuer=issuer(side),
        parts=reply.parts,
        calls=calls,
        stop=reply.stop,
        completed=reply.completed,
    )


def issuer(side: Side) -> Issuer:
    return Issuer(provider=side.name, api=side.name, scope="default", model=side.model)


def rendered(entries: list[Said | Replied], side: Side) -> dict[str, object]:
    prompt = Prompt(
        system="s", tools=(READ,), options=Options(thinking=2048), memory="", entries=entries
    )
    provider = "openai" if side.name == "openai_chat" else side.name
    target = Target(issuer=issuer(side), profile=profile_for(provider, side.model))
    return dialect(side.name).render(prompt, target, {}).payload
