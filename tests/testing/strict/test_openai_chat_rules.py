"""Chat Completions API: each rule refuses a payload, and takes it before one edit, host by host."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic
import pytest
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

from sojourn.testing.strict import HOSTS, HostRules
from sojourn.testing.strict.openai_chat import check
from sojourn.testing.strict.refusal import OPENAI_CHAT_RULES

DROP = object()
SDK = pydantic.TypeAdapter(CompletionCreateParamsNonStreaming)
SDK_STREAM = pydantic.TypeAdapter(CompletionCreateParamsStreaming)

Json = dict[str, Any]


def call(name: str, arguments: object = '{"path": "a"}') -> Json:
    return {"id": name, "type": "function", "function": {"name": "read", "arguments": arguments}}


def asks(*names: str, **more: object) -> Json:
    return {"role": "assistant", "tool_calls": [call(name) for name in names], **more}


def tool(name: str, content: object = "ok") -> Json:
    return {"role": "tool", "tool_call_id": name, "content": content}


def image(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def request(*messages: Json, **options: object) -> Json:
    return {"model": "gpt-6", "messages": list(messages), **options}


PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}

SYSTEM = {"role": "system", "content": "be brief"}
ASK, AGAIN = {"role": "user", "content": "hi"}, {"role": "user", "content": "and now?"}
SAYS = {"role": "assistant", "content": "hello"}
PARTS = {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
THINKS = asks("a", reasoning_content="so")
THOUGHT = SAYS | {"reasoning_content": ""}

PLAIN = request(ASK)
TALK = request(SYSTEM, ASK, SAYS, AGAIN)
LOOP = request(ASK, asks("a", "b", content="I look."), tool("a"), tool("b"), AGAIN, tools=[READ])
NO_TEXT = request(ASK, asks("a", content=None), tool("a"), tools=[READ])
PICTURE = request({"role": "user", "content": [image(PNG)]})
STREAM = request(ASK, stream=True, stream_options={"include_usage": True})
ENDS = request(ASK, SAYS)
DEEP = request(ASK, THOUGHT, AGAIN, THINKS, tool("a"), tools=[READ])
KIMI = request(ASK, SAYS, AGAIN, THINKS, tool("a"), tools=[READ])
TURNS = request(SYSTEM, ASK, asks("a"), tool("a"), SAYS, AGAIN, tools=[READ])

TINY = HostRules(name="tiny", max_bytes=100)
M1, CALL = "messages.1", "messages.1.tool_calls.0"
ARGUMENTS, PART = f"{CALL}.function.arguments", "messages.0.content.0"

Case = tuple[str, str, Json, str, object, str | HostRules]


def case(
    rule: str, name: str, accepted: Json, path: str, value: object, host: str | HostRules | None
) -> Case:
    return rule, name, accepted, path, value, host or "openai"


CASES = [
    case(*row, *([None] * (6 - len(row))))
    for row in [
        ("not_json", "bytes", PLAIN, "messages.0.content", b"hi"),
        ("surrogate", "half an emoji", PLAIN, "messages.0.content", "hi \ud83d"),
        ("body_too_large", "a long text", PLAIN, "messages.0.content", "x" * 100, TINY),
        ("wrong_type", "content as a number", PLAIN, "messages.0.content", 1),
        ("wrong_type", "null as content", PLAIN, "messages.0.content", None),
        ("wrong_type", "messages as text", PLAIN, "messages", "hi"),
        ("missing_key", "no model", PLAIN, "model", DROP),
        ("missing_key", "no role", PLAIN, "messages.0.role", DROP),
        ("missing_key", "a part without a type", PICTURE, f"{PART}.type", DROP),
        ("missing_key", "no content for a tool", LOOP, "messages.2.content", DROP),
        ("missing_key", "no id for a tool", LOOP, "messages.2.tool_call_id", DROP),
        ("unknown_key", "at the top", PLAIN, "thinking", {"type": "enabled"}),
        ("unknown_key", "in a message", PLAIN, "messages.0.is_error", True),
        ("unknown_key", "cache marks", PICTURE, f"{PART}.cache_control", {"type": "ephemeral"}),
        ("bad_value", "no name of a model", PLAIN, "model", ""),
        ("bad_value", "no token", PLAIN, "max_completion_tokens", 0),
        ("bad_value", "a custom tool", LOOP, "tools.0.type", "custom"),
        ("bad_value", "too hot", PLAIN, "temperature", 2.1),
        ("bad_value", "no such choice", LOOP, "tool_choice", "any"),
        ("bad_value", "an empty list of tools", LOOP, "tools", []),
        ("bad_value", "a schema of an array", LOOP, "tools.0.function.parameters.type", "array"),
        ("bad_value", "an image without https", PICTURE, PART, image("http://example.org/a.png")),
        ("no_messages", "none", PLAIN, "messages", []),
        ("bad_role", "function", PLAIN, "messages.0.role", "function"),
        ("bad_block", "an image by the assistant", TALK, "messages.2.content", [image(PNG)]),
        ("bad_block", "an image in the system prompt", TALK, "messages.0.content", [image(PNG)]),
        ("bad_block", "of another API", PICTURE, f"{PART}.type", "input_image"),
        ("bad_block", "thinking", TALK, "messages.2.content", [{"type": "thinking"}]),
        ("empty_content", "an empty list", PLAIN, "messages.0.content", []),
        ("empty_content", "no text", request(ASK, SAYS, AGAIN), f"{M1}.content", "", "xai"),
        ("id_pattern", "a line break", NO_TEXT, f"{CALL}.id", "a\n"),
        ("id_length", "41 characters", NO_TEXT, f"{CALL}.id", "x" * 41),
        ("id_length", "none", NO_TEXT, "messages.2.tool_call_id", ""),
        ("name_pattern", "a blank in a call's", LOOP, f"{CALL}.function.name", "read file"),
        ("name_pattern", "a dot in a tool's", LOOP, "tools.0.function.name", "fs.read"),
        ("name_pattern", "65 characters", LOOP, "tools.0.function.name", "x" * 65),
        ("name_pattern", "a label on a tool message", LOOP, "messages.2.name", "Read file"),
        ("duplicate_call", "two with one id", LOOP, f"{M1}.tool_calls.1.id", "a"),
        ("duplicate_call", "on Kimi", DEEP, "messages.3.tool_calls.1", call("a"), "kimi"),
        ("result_missing", "one of two", LOOP, "messages.3", AGAIN),
        ("result_missing", "a prompt between", LOOP, "messages", [ASK, LOOP["messages"][1], AGAIN]),
        ("result_missing", "at the end", NO_TEXT, "messages", NO_TEXT["messages"][:2]),
        ("orphan_result", "no such call", LOOP, "messages.4", tool("c")),
        ("orphan_result", "first", PLAIN, "messages.0", tool("a")),
        ("orphan_result", "after a prompt", LOOP, "messages.5", tool("a")),
        ("duplicate_result", "two for one", LOOP, "messages.4", tool("a")),
        ("duplicate_result", "two in a row", LOOP, "messages.3", tool("a")),
        (
            "prefill",
            "thinking",
            request(ASK, SAYS, AGAIN),
            "messages.2",
            DROP,
            "llama.cpp-thinking",
        ),
        ("prefill", "a template", TALK, "messages.3", DROP, "mistral-like"),
        ("tools_missing", "a choice of none", LOOP | {"tool_choice": "auto"}, "tools", DROP),
        ("tools_missing", "parallel ones", LOOP | {"parallel_tool_calls": True}, "tools", DROP),
        ("image_empty", "no bytes", PICTURE, PART, image("data:image/png;base64,")),
        ("image_base64", "cut", PICTURE, PART, image(PNG[:-1])),
        ("image_type", "not taken", PICTURE, PART, image(PNG.replace("png", "svg+xml", 1))),
        ("image_type", "other bytes", PICTURE, PART, image(PNG.replace("png", "jpeg", 1))),
        ("developer_role", "elsewhere", TALK, "messages.0.role", "developer", "groq"),
        ("content_missing", "neither text nor calls", TALK, "messages.2.content", DROP),
        ("content_missing", "null without calls", TALK, "messages.2.content", None),
        ("empty_tool_calls", "an empty list", TALK, "messages.2.tool_calls", []),
        ("arguments_not_string", "an object", LOOP, ARGUMENTS, {"path": "a"}),
        ("arguments_not_json", "cut", LOOP, ARGUMENTS, '{"path": "a'),
        ("arguments_not_json", "empty", LOOP, ARGUMENTS, ""),
        ("arguments_not_json", "not a number", LOOP, ARGUMENTS, '{"a": NaN}'),
        ("arguments_not_object", "a list", LOOP, ARGUMENTS, "[1]"),
        ("image_in_tool_message", "an image", LOOP, "messages.2.content", [image(PNG)]),
        ("too_many_tools", "129", LOOP | {"tools": [READ] * 128}, "tools.128", READ),
        ("stream_options", "without a stream", STREAM, "stream", DROP),
        ("reasoning_refused", "OpenAI", TALK, "messages.2.reasoning_content", "so"),
        ("reasoning_refused", "Groq", TALK, "messages.2.reasoning_content", "so", "groq"),
        ("reasoning_refused", "Cerebras", TALK, "messages.2.reasoning_content", "so", "cerebras"),
        ("reasoning_refused", "R1", TALK, "messages.2.reasoning_content", "", "deepseek-r1"),
        ("reasoning_missing", "text", DEEP, f"{M1}.reasoning_content", DROP, "deepseek-thinking"),
        ("reasoning_missing", "calls", KIMI, "messages.3.reasoning_content", DROP, "kimi"),
        ("two_final_assistants", "llama.cpp", ENDS, "messages.2", SAYS, "llama.cpp"),
        ("alternation", "no bridge", TURNS, "messages.4", AGAIN, "mistral-like"),
        ("alternation", "a late system message", TURNS, "messages.6", SYSTEM, "mistral-like"),
        ("alternation", "two users", TURNS, "messages.6", AGAIN, "mistral-like"),
    ]
]
IDS = [f"{rule}: {name}" for rule, name, *_ in CASES]


def edited(payload: Any, path: str, value: object) -> Any:
    """A copy in which the value at one path is another, or gone; the rest is shared."""
    first, _, rest = path.partition(".")
    step: Any = int(first) if first.isdecimal() else first
    copied = copy.copy(payload)
    if rest:
        copied[step] = edited(payload[step], rest, value)
    elif value is DROP:
        del copied[step]
    elif isinstance(step, int) and step == len(payload):
        copied.append(value)
    else:
        copied[step] = value
    return copied


def forced(value: object) -> object:
    """The SDK's types are lazy: walk them, and turn its models into plain values."""
    if isinstance(value, pydantic.BaseModel):
        return forced(value.model_dump(exclude_unset=True))
    if isinstance(value, Mapping):
        return {key: forced(one) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [forced(one) for one in value]
    return value


def without_reasoning(payload: Json) -> Json:
    """The payload less the one key that hosts have added to the API."""
    messages = [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        for message in payload["messages"]
    ]
    return payload | {"messages": messages}


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_the_edited_payload_is_refused_by_its_rule(one: Case) -> None:
    rule, _, accepted, path, value, host = one
    refusal = check(edited(accepted, path, value), host=host)
    assert refusal is not None
    assert refusal.rule == rule, refusal.message
    assert refusal.status == (413 if rule == "body_too_large" else 400)
    assert refusal.type == "invalid_request_error"
    assert refusal.message


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_the_payload_before_the_edit_is_accepted(one: Case) -> None:
    _, _, accepted, _, _, host = one
    assert check(accepted, host=host) is None


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_what_is_accepted_is_what_the_official_types_accept(one: Case) -> None:
    accepted = without_reasoning(one[2])
    types = SDK_STREAM if "stream" in accepted else SDK
    assert forced(types.validate_python(accepted)) == accepted


def test_every_rule_of_this_api_has_a_case() -> None:
    assert {one[0] for one in CASES} == OPENAI_CHAT_RULES


@pytest.mark.parametrize(
    ("payload", "host"),
    [
        (edited(TALK, "messages.0.role", "developer"), "openai"),
        (edited(LOOP, "messages.2.name", "read"), "openai"),
        (NO_TEXT, "openai"),
        (edited(NO_TEXT, "messages.1.content", ""), "xai"),
        (edited(NO_TEXT, "messages.1.content", DROP), "openai"),
        (ENDS, "openai"),
        (ENDS, "llama.cpp"),
        (edited(TALK, "messages.2", PARTS), "openai"),
        (edited(TALK, "messages.2.refusal", "No."), "openai"),
        (edited(PICTURE, PART, image("https://example.org/a.png")), "openai"),
        (request(ASK, SAYS, AGAIN, thinking={"type": "disabled"}), "deepseek-thinking"),
        (edited(TALK, "messages.2.reasoning", "so"), "cerebras"),
        (edited(TALK, "messages.2.reasoning", "so"), "groq"),
        (edited(TALK, "messages.2.reasoning_content", "so"), "llama.cpp"),
        (request(ASK, cache_prompt=True), "llama.cpp"),
        (request(ASK, THINKS, tool("a"), THINKS, tool("a"), tools=[READ]), "kimi"),
    ],
    ids=[
        "a developer message on OpenAI",
        "a tool message with a proper name",
        "null beside calls",
        "an empty text beside calls",
        "no content beside calls",
        "an assistant message at the end on OpenAI",
        "one assistant message at the end on llama.cpp",
        "text in parts",
        "a refusal sent back",
        "an image by URL",
        "no reasoning where thinking is disabled",
        "reasoning under another key on Cerebras",
        "reasoning under another key on Groq",
        "reasoning on llama.cpp",
        "a key of its own on llama.cpp",
        "an id used again in a later turn",
    ],
)
def test_what_the_host_takes_is_not_refused(payload: Json, host: str) -> None:
    assert check(payload, host=host) is None


@pytest.mark.parametrize("arguments", ['{"path": "a', "", "[1]"])
def test_llama_cpp_fails_on_arguments_that_are_no_object(arguments: str) -> None:
    refusal = check(edited(LOOP, ARGUMENTS, arguments), host="llama.cpp")
    assert refusal is not None
    assert (refusal.status, refusal.type) == (500, "server_error")


@pytest.mark.parametrize("host", sorted(set(HOSTS) - {"deepseek-thinking", "kimi"}))
def test_a_plain_loop_of_calls_is_accepted_by_every_host_that_wants_no_reasoning(host: str) -> None:
    assert check(TURNS, host=host) is None


def test_an_unknown_host_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        check(PLAIN, host="nowhere")


def test_the_place_of_the_mistake_is_in_the_message() -> None:
    refusal = check(edited(LOOP, "messages.2.tool_call_id", DROP))
    assert refusal is not None
    assert refusal.message == "Missing required parameter: 'messages[2].tool_call_id'."
    assert refusal.code == "missing_required_parameter"
