"""The official clients understand the strict server, and what it says is accepted sent back."""

import json
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.testing.strict import HOSTS, Reply, StrictServer, ToolCall, serve_in_thread
from sojourn.testing.strict.anthropic import AnthropicRules, check, wire
from sojourn.testing.strict.openai_chat import check as check_chat
from sojourn.testing.strict.openai_chat import wire as chat_wire
from sojourn.testing.strict.reply import Wire

Json = dict[str, Any]

ARGUMENTS = {"path": "a/ü.txt", "lines": [1, 2], "deep": {"x": None}}
FULL = Reply(
    text="I look at the file — 😀.",
    thinking="First the file, then the tests.",
    redacted="a secret",
    calls=(
        ToolCall(name="read", arguments=ARGUMENTS),
        ToolCall(name="list", arguments={}),
    ),
    input_tokens=11,
    output_tokens=7,
)
DONE = Reply(text="Done.")
THINKING = {"type": "enabled", "budget_tokens": 1024}
SCHEMA = {"type": "object"}
CLAUDE_TOOLS = [{"name": name, "input_schema": SCHEMA} for name in ("read", "list")]
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    for name in ("read", "list")
]
ASK = {"role": "user", "content": "hi"}


def claude(server: StrictServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)


def chat(server: StrictServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0)


def ask_claude(client: anthropic.Anthropic, messages: list[Any], *, stream: bool) -> Any:
    options: Json = {
        "model": "claude-opus-5",
        "max_tokens": 4096,
        "messages": messages,
        "tools": CLAUDE_TOOLS,
        "thinking": THINKING,
    }
    if not stream:
        return client.messages.create(**options)
    with client.messages.stream(**options) as events:
        return events.get_final_message()


def sent_back(message: Any) -> Json:
    """The assistant message as a client sends it back, its blocks unchanged."""
    return {"role": "assistant", "content": [one.to_dict() for one in message.content]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_anthropic_client_reads_a_reply_and_its_answer_is_accepted(stream: bool) -> None:
    with (
        serve_in_thread(StrictServer(replies=[FULL, DONE], api="anthropic")) as server,
        claude(server) as client,
    ):
        first = ask_claude(client, [ASK], stream=stream)
        kinds = [block.type for block in first.content]
        assert kinds == ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]
        assert first.content[0].thinking == FULL.thinking
        assert first.content[2].text == FULL.text
        assert first.content[3].input == ARGUMENTS
        assert first.content[4].input == {}
        assert first.stop_reason == "tool_use"
        assert (first.usage.input_tokens, first.usage.output_tokens) == (11, 7)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
            for block in first.content[3:]
        ]
        messages = [ASK, sent_back(first), {"role": "user", "content": results}]
        second = ask_claude(client, messages, stream=stream)
        assert second.content[0].text == "Done."
        assert second.stop_reason == "end_turn"
        assert [one.verdict for one in server.requests] == ["accepted", "accepted"]


def test_the_events_of_the_messages_api_come_in_its_order() -> None:
    with (
        serve_in_thread(StrictServer(replies=[FULL])) as server,
        claude(server) as client,
        client.messages.create(
            model="claude-opus-5", max_tokens=9, messages=[ASK], stream=True
        ) as stream,
    ):
        names = [event.type for event in stream]
    shape = [name for place, name in enumerate(names) if name != names[place - 1]]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert shape == ["message_start", *block, *block, *block, "message_delta", "message_stop"]


def test_a_request_without_thinking_gets_none() -> None:
    with serve_in_thread(StrictServer(replies=[FULL])) as server, claude(server) as client:
        message = client.messages.create(model="m", max_tokens=9, messages=[ASK])
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]


def ask_chat(client: openai.OpenAI, messages: list[Any], *, stream: bool) -> tuple[Json, Any, str]:
    """The assistant message, the usage and the finish reason of one request."""
    options: Json = {"model": "gpt-6", "messages": messages, "tools": CHAT_TOOLS}
    if not stream:
        found = client.chat.completions.create(**options)
        choice = found.choices[0]
        message = choice.message.to_dict()
        return message, found.usage, choice.finish_reason
    options |= {"stream": True, "stream_options": {"include_usage": True}}
    with client.chat.completions.create(**options) as stream:
        chunks = list(stream)
    choices = [choice for chunk in chunks for choice in chunk.choices]
    usage = [chunk.usage for chunk in chunks if chunk.usage]
    finish = [choice.finish_reason for choice in choices if choice.finish_reason]
    return joined([choice.delta for choice in choices]), usage[0], finish[0]


def joined(deltas: list[Any]) -> Json:
    """The assistant message that a stream's deltas make together."""
    message: Json = {"role": "assistant"}
    message["content"] = "".join(delta.content or "" for delta in deltas)
    reasoning = [getattr(delta, "reasoning_content", None) for delta in deltas]
    if any(part is not None for part in reasoning):
        message["reasoning_content"] = "".join(part or "" for part in reasoning)
    calls: list[Json] = []
    for part in [part for delta in deltas for part in delta.tool_calls or []]:
        if part.id is not None:
            function = {"name": part.function.name, "arguments": ""}
            calls.append({"id": part.id, "type": part.type, "function": function})
        calls[part.index]["function"]["arguments"] += part.function.arguments
    return message | ({"tool_calls": calls} if calls else {})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("host", sorted(set(HOSTS) - {"llama.cpp", "llama.cpp-thinking"}))
def test_the_openai_client_reads_a_reply_and_its_answer_is_accepted(
    host: str, stream: bool
) -> None:
    with (
        serve_in_thread(StrictServer(replies=[FULL, DONE], host=host)) as server,
        chat(server) as client,
    ):
        first, usage, finish = ask_chat(client, [ASK], stream=stream)
        assert first["content"] == FULL.text
        assert [call["function"]["name"] for call in first["tool_calls"]] == ["read", "list"]
        assert json.loads(first["tool_calls"][0]["function"]["arguments"]) == ARGUMENTS
        assert finish == "tool_calls"
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (11, 7, 18)
        shown = first.get("reasoning_content")
        assert shown == (
            FULL.thinking if HOSTS[host].reasoning_out == "reasoning_content" else None
        )
        if HOSTS[host].reasoning_in == "refused":
            first.pop("reasoning_content", None)
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
            for call in first["tool_calls"]
        ]
        first = {key: value for key, value in first.items() if value is not None}
        second, _, finish = ask_chat(client, [ASK, first, *results], stream=stream)
        assert (second["content"], finish) == ("Done.", "stop")
        assert [one.verdict for one in server.requests] == ["accepted", "accepted"]


def test_the_usage_comes_only_when_it_was_asked_for() -> None:
    with serve_in_thread(StrictServer(replies=[DONE])) as server, chat(server) as client:
        plain = client.chat.completions.create(model="m", messages=[ASK], stream=True)
        chunks = list(plain)
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


def test_the_clients_raise_their_own_errors_for_refusals() -> None:
    with (
        serve_in_thread(StrictServer(replies=[DONE])) as server,
        claude(server) as one,
        chat(server) as two,
    ):
        with pytest.raises(anthropic.BadRequestError) as first:
            one.messages.create(model="m", max_tokens=9, messages=[])
        with pytest.raises(openai.BadRequestError) as second:
            two.chat.completions.create(model="m", messages=[])
        rules = [record.refusal.rule for record in server.refusals if record.refusal]
    assert "at least one message" in first.value.message
    assert "empty array" in second.value.message
    assert second.value.code == "empty_array"
    assert rules == ["no_messages", "no_messages"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
CALLS = st.builds(
    ToolCall,
    name=st.sampled_from(["read", "list"]),
    arguments=st.dictionaries(TEXTS, st.integers(0, 9) | TEXTS, max_size=3),
)
REPLIES = st.builds(
    Reply,
    text=TEXTS.filter(lambda words: words == "" or words.strip() != ""),
    thinking=TEXTS | st.none(),
    redacted=TEXTS | st.none(),
    calls=st.lists(CALLS, min_size=1, max_size=3),
)


@settings(max_examples=60)
@given(REPLIES, st.sampled_from(["enabled", "adaptive", "disabled"]))
def test_any_reply_of_the_messages_api_is_accepted_when_sent_back(reply: Reply, mode: str) -> None:
    payload: Json = {
        "model": "m",
        "max_tokens": 4096,
        "messages": [ASK],
        "tools": CLAUDE_TOOLS,
        "thinking": THINKING if mode == "enabled" else {"type": mode},
    }
    message = json.loads(wire.whole(reply, Wire(payload=payload, seed="0" * 64, input_tokens=1)))
    results = [
        {"type": "tool_result", "tool_use_id": block["id"]}
        for block in message["content"]
        if block["type"] == "tool_use"
    ]
    answer = {"role": "assistant", "content": message["content"]}
    payload["messages"] = [ASK, answer, {"role": "user", "content": results}]
    refusal = check(payload, rules=AnthropicRules())
    starts = message["content"][0]["type"]
    if mode == "enabled" and starts not in ("thinking", "redacted_thinking"):
        assert refusal is not None
        assert refusal.rule == "thinking_start"
    else:
        assert refusal is None


@settings(max_examples=60)
@given(REPLIES, st.sampled_from(sorted(HOSTS)))
def test_any_reply_of_the_chat_api_is_accepted_when_sent_back(reply: Reply, host: str) -> None:
    rules = HOSTS[host]
    payload: Json = {"model": "m", "messages": [ASK], "tools": CHAT_TOOLS}
    fresh = Wire(payload=payload, seed="0" * 64, input_tokens=1)
    message = json.loads(chat_wire.whole(reply, fresh, rules))["choices"][0]["message"]
    if rules.reasoning_in == "refused":
        message.pop("reasoning_content", None)
    elif rules.reasoning_in != "free":
        message.setdefault("reasoning_content", "")
    names = [call["id"] for call in message["tool_calls"]]
    results = [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in names]
    payload["messages"] = [ASK, message, *results]
    refusal = check_chat(payload, host=rules)
    if len(set(names)) < len(names):
        assert refusal is not None
        assert (refusal.rule, rules.call_ids) == ("duplicate_call", "constant")
    else:
        assert refusal is None
