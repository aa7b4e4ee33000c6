"""Messages API: each rule of shape and order refuses a payload, and takes it before one edit.

The rules of thinking, media and cache marks are in test_anthropic_thinking_and_media.py.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from sojourn.testing.strict import AnthropicRules
from sojourn.testing.strict.anthropic import check
from sojourn.testing.strict.refusal import ANTHROPIC_RULES

DROP = object()
SDK = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
ELSEWHERE = ("thinking", "redacted", "image", "too_many_images", "cache")
"""Rules whose names start so have their cases in the other file."""

Json = dict[str, Any]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(name: str) -> Json:
    return {"type": "tool_use", "id": name, "name": "read", "input": {"path": "a"}}


def result(name: str, content: object = "ok", **more: object) -> Json:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def request(*messages: Json, **options: object) -> Json:
    return {"model": "claude-opus-5", "max_tokens": 4096, "messages": list(messages), **options}


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
SYSTEM = {"role": "system", "content": "be brief"}
TOOL = {
    "name": "read",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}

ASK, AGAIN = user(text("hi")), user(text("and now?"))
CALLS = model(text("I look."), call("call_a"), call("call_b"))
RESULTS = user(result("call_a"), result("call_b"), text("go on"))
PLAIN = request(ASK)
TALK = request(ASK, model(text("hello")), AGAIN)
LOOP = request(ASK, CALLS, RESULTS, tools=[TOOL])
TWO_LOOPS = request(
    ASK,
    model(call("call_a")),
    user(result("call_a")),
    model(call("call_b")),
    user(result("call_b")),
    tools=[TOOL],
)
SERVER = request(ASK, model(SEARCH, FOUND, text("found")), AGAIN)
WITH_SYSTEM = request(ASK, CALLS, RESULTS, SYSTEM, tools=[TOOL])
FAILED = request(
    ASK, model(call("a")), user(result("a", [text("no such file")], is_error=True)), tools=[TOOL]
)
PREFILLED = request(ASK, model(text("Well,")))

BLANKS = AnthropicRules(refuse_white_space=False)
SYSTEMS = AnthropicRules(system_messages=True)
OLD_MODEL = AnthropicRules(prefill=True)
CALLS_LAST = AnthropicRules(text_after_calls=False)
TINY = AnthropicRules(max_bytes=400, max_messages=1)

M1, R0 = "messages.1.content", "messages.2.content.0"

Case = tuple[str, str, Json, str, object, AnthropicRules]


def case(
    rule: str, name: str, accepted: Json, path: str, value: object, rules: AnthropicRules | None
) -> Case:
    return rule, name, accepted, path, value, rules or AnthropicRules()


CASES = [
    case(*row, *([None] * (6 - len(row))))
    for row in [
        ("not_json", "a set", PLAIN, "metadata", {"user_id": {1}}),
        ("not_json", "not a number", PLAIN, "temperature", float("nan")),
        ("not_json", "a key that is no string", LOOP, f"{M1}.1.input", {1: "a"}),
        ("surrogate", "half an emoji", PLAIN, "messages.0.content", "hi \ud83d"),
        ("surrogate", "in a key", LOOP, f"{M1}.1.input", {"\udc00": 1}),
        ("body_too_large", "a long text", PLAIN, "messages.0.content", "x" * 400, TINY),
        ("wrong_type", "max_tokens as text", PLAIN, "max_tokens", "4096"),
        ("wrong_type", "content as an object", PLAIN, "messages.0.content", text("x")),
        ("wrong_type", "a message that is a text", PLAIN, "messages.0", "hi"),
        ("missing_key", "no max_tokens", PLAIN, "max_tokens", DROP),
        ("missing_key", "a block without a type", TALK, f"{M1}.0.type", DROP),
        ("unknown_key", "at the top", PLAIN, "reasoning_effort", "high"),
        ("unknown_key", "in a message", PLAIN, "messages.0.name", "ann"),
        ("unknown_key", "in a block", TALK, f"{M1}.0.id", "x"),
        ("unknown_key", "in a tool", LOOP, "tools.0.parameters", {}),
        ("bad_value", "no token", PLAIN, "max_tokens", 0),
        ("bad_value", "too hot", PLAIN, "temperature", 1.1),
        ("bad_value", "no such tier", PLAIN, "service_tier", "flex"),
        ("bad_value", "no model", PLAIN, "model", ""),
        ("bad_value", "no such tool", LOOP, "tool_choice", {"type": "tool", "name": "x"}),
        ("bad_value", "no such choice", LOOP, "tool_choice", {"type": "required"}),
        ("bad_value", "a schema of an array", LOOP, "tools.0.input_schema.type", "array"),
        ("no_messages", "none", PLAIN, "messages", []),
        ("too_many_messages", "two, one is the limit", PLAIN, "messages", [ASK, ASK], TINY),
        ("bad_role", "tool", PLAIN, "messages.0.role", "tool"),
        ("bad_role", "system, where it is unknown", TALK, "messages.1.role", "system"),
        ("first_role", "assistant first", TALK, "messages.0.role", "assistant"),
        ("system_place", "inside", WITH_SYSTEM, "messages", [ASK, CALLS, SYSTEM, RESULTS], SYSTEMS),
        ("system_place", "first", TALK, "messages.0.role", "system", SYSTEMS),
        ("bad_block", "of no known type", TALK, f"{M1}.0.type", "output_text"),
        ("bad_block", "an image by the assistant", TALK, f"{M1}.0", IMAGE),
        ("bad_block", "a result by the assistant", LOOP, f"{M1}.0", result("call_a")),
        ("bad_block", "a call by the user", LOOP, "messages.0.content.0", call("z")),
        ("bad_block", "an image in the system prompt", PLAIN, "system", [IMAGE]),
        ("bad_block", "a call in a result", LOOP, f"{R0}.content", [call("z")]),
        ("bad_block", "thinking by the user", PLAIN, "messages.0.content.0.type", "thinking"),
        ("empty_content", "an empty list", TALK, M1, []),
        ("empty_content", "an empty text", TALK, M1, ""),
        ("blank_text", "an empty block beside a call", LOOP, f"{M1}.0.text", ""),
        ("blank_text", "white space", LOOP, f"{M1}.0.text", " \n"),
        ("blank_text", "white space as a content", TALK, M1, " \n"),
        ("blank_text", "in a result", LOOP, f"{R0}.content", [text("")]),
        ("blank_text", "in the system prompt", PLAIN, "system", [text("")]),
        ("blank_text", "as the system prompt", PLAIN, "system", ""),
        ("blank_text", "empty, where white space passes", LOOP, f"{M1}.0.text", "", BLANKS),
        ("id_pattern", "of another provider", LOOP, f"{M1}.1.id", "call_a|fc_b"),
        ("id_pattern", "with dots", LOOP, f"{M1}.1.id", "functions.read:0"),
        ("id_pattern", "ending in a line break", LOOP, f"{M1}.1.id", "call_a\n"),
        ("id_pattern", "on the result", LOOP, f"{R0}.tool_use_id", "call a"),
        ("id_pattern", "of a server's call", SERVER, f"{M1}.0.id", "toolu_1"),
        ("id_length", "65 characters", LOOP, f"{M1}.1.id", "x" * 65),
        ("id_length", "none", LOOP, f"{R0}.tool_use_id", ""),
        ("name_pattern", "a blank in a call's", LOOP, f"{M1}.1.name", "read file"),
        ("name_pattern", "65 characters", LOOP, "tools.0.name", "x" * 65),
        ("input_not_object", "a text", LOOP, f"{M1}.1.input", '{"path": "a"}'),
        ("input_not_object", "null", LOOP, f"{M1}.1.input", None),
        ("duplicate_call", "in one message", LOOP, f"{M1}.2.id", "call_a"),
        ("duplicate_call", "in the list", TWO_LOOPS, "messages.3.content.0.id", "call_a"),
        ("result_missing", "one of two", LOOP, "messages.2.content.1", text("and now?")),
        ("result_missing", "a prompt instead", LOOP, "messages.2", AGAIN),
        ("result_missing", "the assistant goes on", LOOP, "messages.2", model(text("so"))),
        ("result_missing", "the list ends with the calls", LOOP, "messages", [ASK, CALLS]),
        (
            "result_missing",
            "split over two messages",
            LOOP,
            "messages",
            [ASK, CALLS, user(result("call_a")), user(result("call_b"))],
        ),
        ("orphan_result", "no such call", LOOP, f"{R0}.tool_use_id", "call_c"),
        ("orphan_result", "its call was removed", LOOP, "messages", [ASK, RESULTS]),
        ("orphan_result", "of a server's call", SERVER, f"{M1}.1.tool_use_id", "srvtoolu_2"),
        ("orphan_result", "of an older call", TWO_LOOPS, "messages.4", user(result("call_a"))),
        ("duplicate_result", "two", LOOP, "messages.2.content.2", result("call_a")),
        (
            "results_first",
            "text before them",
            LOOP,
            "messages.2",
            user(text("go on"), result("call_a"), result("call_b")),
        ),
        (
            "text_after_call",
            "text last",
            LOOP,
            M1,
            [call("call_a"), call("call_b"), text("I look.")],
            CALLS_LAST,
        ),
        ("server_call_open", "no result", SERVER, M1, [SEARCH]),
        ("error_result_media", "an image", FAILED, f"{R0}.content", [IMAGE]),
        ("error_result_empty", "an empty text", FAILED, f"{R0}.content", ""),
        ("error_result_empty", "an empty list", FAILED, f"{R0}.content", []),
        ("error_result_empty", "no content", FAILED, f"{R0}.content", DROP),
        ("prefill", "the model's turn last", TALK, "messages", TALK["messages"][:2]),
        ("trailing_space", "in prefill", PREFILLED, f"{M1}.0.text", "Well, ", OLD_MODEL),
        ("tools_missing", "calls in the list", LOOP, "tools", DROP),
        ("tools_missing", "an empty list of tools", LOOP, "tools", []),
        ("tools_missing", "a choice of none", PLAIN, "tool_choice", {"type": "auto"}),
        ("duplicate_tool", "twice the same", LOOP, "tools", [TOOL, TOOL]),
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


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_the_edited_payload_is_refused_by_its_rule(one: Case) -> None:
    rule, _, accepted, path, value, rules = one
    refusal = check(edited(accepted, path, value), rules=rules)
    assert refusal is not None
    assert refusal.rule == rule, refusal.message
    assert refusal.status == (413 if rule == "body_too_large" else 400)
    assert refusal.type == ("request_too_large" if refusal.status == 413 else refusal.type)
    assert refusal.message


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_the_payload_before_the_edit_is_accepted(one: Case) -> None:
    _, _, accepted, _, _, rules = one
    assert check(accepted, rules=rules) is None


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_what_is_accepted_is_what_the_official_types_accept(one: Case) -> None:
    accepted = one[2]
    assert forced(SDK.validate_python(accepted)) == accepted


def test_every_rule_of_shape_and_order_has_a_case() -> None:
    expected = {rule for rule in ANTHROPIC_RULES if not rule.startswith(ELSEWHERE)}
    assert {one[0] for one in CASES} == expected


@pytest.mark.parametrize(
    ("payload", "rules"),
    [
        (TALK, OLD_MODEL),
        (request(ASK, model()), OLD_MODEL),
        (request(ASK, model(SEARCH)), None),
        (request(ASK, user(text("more")), model(text("a")), model(text("b")), AGAIN), None),
        (WITH_SYSTEM, SYSTEMS),
        (edited(LOOP, M1, [call("call_a"), text("I look."), call("call_b")]), None),
        (edited(LOOP, f"{R0}.content", ""), None),
        (edited(LOOP, f"{R0}.content", DROP), None),
        (edited(LOOP, f"{R0}.content", [text("see"), IMAGE]), None),
        (edited(LOOP, f"{M1}.0.text", " "), BLANKS),
        (edited(LOOP, "tools", [TOOL, {"type": "web_search_20260318", "name": "search"}]), None),
    ],
    ids=[
        "a user's end on a model that continues",
        "an empty end on a model that continues",
        "a paused turn of a server tool at the end",
        "two messages of one role in a row",
        "a system message after the results",
        "text between two calls",
        "an empty result",
        "a result without content",
        "an image in a result",
        "white space, where that is no rule",
        "a provider's own tool",
    ],
)
def test_what_the_api_takes_is_not_refused(payload: Json, rules: AnthropicRules | None) -> None:
    assert check(payload, rules=rules) is None


def test_the_place_of_the_mistake_is_in_the_message() -> None:
    refusal = check(edited(LOOP, f"{M1}.1.id", "a|b"))
    assert refusal is not None
    assert refusal.message == (
        "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    )
