"""Messages API: each rule of thinking, images and cache marks refuses one edit of a payload.

The rules of shape and order are in test_anthropic_messages.py.
"""

import base64
import copy
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from sojourn.testing.strict import AnthropicRules, redact, sign
from sojourn.testing.strict.anthropic import check
from sojourn.testing.strict.refusal import ANTHROPIC_RULES

MODEL, OTHER = "claude-opus-5", "claude-fable-5"
DROP = object()
SDK = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
HERE = ("bad_value", "thinking", "redacted", "image", "too_many_images", "cache")
"""Rules whose names start so have their cases in this file."""

Json = dict[str, Any]


def text(words: str, **more: object) -> Json:
    return {"type": "text", "text": words, **more}


def png(width: int = 1, height: int = 1, extra: bytes = b"") -> str:
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height)
    return base64.b64encode(head + extra).decode()


def image(data: str, media_type: str = "image/png") -> Json:
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}


def call(name: str, **more: object) -> Json:
    return {"type": "tool_use", "id": name, "name": "read", "input": {}, **more}


def result(name: str, content: object = "ok") -> Json:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def thought(words: str, *, of: int = 1, index: int = 0, by: str = MODEL) -> Json:
    signature = sign(model=by, text=words, index=index, of=of)
    return {"type": "thinking", "thinking": words, "signature": signature}


def hidden(words: str, *, of: int = 1, index: int = 0, by: str = MODEL) -> Json:
    data = redact(model=by, text=words, index=index, of=of)
    return {"type": "redacted_thinking", "data": data}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def request(*messages: Json, **options: object) -> Json:
    return {"model": MODEL, "max_tokens": 4096, "messages": list(messages), **options}


def thinks(*messages: Json, mode: Json | None = None) -> Json:
    return request(*messages, tools=[TOOL], thinking=mode or BUDGET)


TOOL = {"name": "read", "input_schema": {"type": "object"}}
BUDGET = {"type": "enabled", "budget_tokens": 1024}
ADAPTIVE = {"type": "adaptive"}
MARK, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}

ASK, AGAIN = user(text("hi")), user(text("and now?"))
A, B = user(result("a")), user(result("b"))
ONE, TWO = thought("one", of=2), thought("two", index=1, of=2)

THINKS = thinks(ASK, model(thought("I look"), text("So."), call("a")), A)
DEEP = thinks(ASK, model(ONE, text("So."), TWO, call("a")), A)
ADAPTS = thinks(ASK, model(ONE, text("So."), TWO, call("a")), A, mode=ADAPTIVE)
LOOP = thinks(ASK, model(thought("1"), call("a")), A, model(thought("2"), call("b")), B)
HALF_LOOP = thinks(ASK, model(thought("1"), call("a")), A, model(call("b")), B)
HIDDEN = thinks(ASK, model(hidden("one"), call("a")), A)
OLD = thinks(ASK, model(ONE, TWO, text("So.")), AGAIN, model(text("Yes.")), AGAIN)
PLAIN = request(ASK)
PICTURE = request(user(image(png()), text("look")))
PICTURES = request(user(image(png(2000)), image(png(2000))))
IN_RESULT = request(ASK, model(call("a")), user(result("a", [image(png())])), tools=[TOOL])
MARKED = request(
    user(text("hi", cache_control=MARK)),
    model(call("a", cache_control=MARK)),
    user(result("a", [text("ok", cache_control=MARK)])),
    tools=[TOOL],
    system=[text("be brief", cache_control=MARK)],
)
ORDERED = request(user(text("hi", cache_control=LONG)), system=[text("x", cache_control=LONG)])

BY_LOOP = AnthropicRules(thinking_start="loop")
UNCHECKED = AnthropicRules(check_signatures=False)
SMALL = AnthropicRules(max_images=1, max_image_bytes=44, max_pixels=9)
MANY = AnthropicRules(many_images=1)

M1, IMAGE0 = "messages.1.content", "messages.0.content.0"

Case = tuple[str, str, Json, str, object, AnthropicRules]


def case(
    rule: str, name: str, accepted: Json, path: str, value: object, rules: AnthropicRules | None
) -> Case:
    return rule, name, accepted, path, value, rules or AnthropicRules()


CASES = [
    case(*row, *([None] * (6 - len(row))))
    for row in [
        ("bad_value", "no such source", PICTURE, f"{IMAGE0}.source.type", "path"),
        ("bad_value", "no such mode", THINKS, "thinking.type", "on"),
        ("image_empty", "no bytes", PICTURE, IMAGE0, image("")),
        ("image_empty", "in a result", IN_RESULT, "messages.2.content.0.content.0", image("")),
        ("image_base64", "a data URL", PICTURE, IMAGE0, image("data:image/png;base64,AAAA")),
        ("image_type", "not taken", PICTURE, IMAGE0, image(png(), "image/tiff")),
        ("image_type", "other bytes", PICTURE, IMAGE0, image(png(), "image/gif")),
        ("image_size", "too wide", PICTURE, IMAGE0, image(png(10)), SMALL),
        ("image_size", "too high", PICTURE, IMAGE0, image(png(1, 8001))),
        ("image_size", "too many bytes", PICTURE, IMAGE0, image(png(1, 1, b"xxxxxxxxxx")), SMALL),
        ("image_size", "large among many", PICTURES, IMAGE0, image(png(2001)), MANY),
        ("too_many_images", "two", PICTURE, "messages.0.content.1", image(png()), SMALL),
        ("cache_place", "on thinking", THINKS, f"{M1}.0.cache_control", MARK),
        ("cache_place", "on no text", PLAIN, "system", [text("", cache_control=MARK)]),
        ("cache_limit", "five", MARKED, "tools.0.cache_control", MARK),
        ("cache_limit", "the automatic one too", MARKED, "cache_control", MARK),
        ("cache_order", "the long one last", ORDERED, "system.0.cache_control.ttl", "5m"),
        ("thinking_unsigned", "lost", THINKS, f"{M1}.0.signature", DROP),
        ("thinking_unsigned", "empty", THINKS, f"{M1}.0.signature", ""),
        ("thinking_signature", "altered text", THINKS, f"{M1}.0.thinking", "I looked"),
        ("thinking_signature", "not ours", THINKS, f"{M1}.0.signature", '{"id": "rs_1"}'),
        ("thinking_signature", "two made one", DEEP, f"{M1}.0.thinking", "onetwo"),
        ("thinking_signature", "swapped", DEEP, f"{M1}.0.signature", TWO["signature"]),
        ("thinking_foreign", "another model's", THINKS, f"{M1}.0", thought("I look", by=OTHER)),
        ("thinking_foreign", "redacted", HIDDEN, f"{M1}.0", hidden("one", by=OTHER)),
        ("thinking_foreign", "the model changed", THINKS, "model", OTHER),
        ("thinking_foreign", "in an older turn", OLD, f"{M1}.0", thought("one", of=2, by=OTHER)),
        ("thinking_modified", "another order", DEEP, M1, [TWO, text("So."), ONE, call("a")]),
        ("thinking_modified", "no second one", DEEP, M1, [ONE, text("So."), call("a")]),
        ("thinking_modified", "no first one", ADAPTS, M1, [TWO, text("So."), call("a")]),
        ("thinking_modified", "an older turn's order", OLD, M1, [TWO, ONE, text("So.")]),
        ("thinking_modified", "half an older turn's", OLD, M1, [ONE, text("So.")]),
        ("thinking_start", "a foreign turn", THINKS, M1, [text("So."), call("a")]),
        ("thinking_start", "text first", THINKS, M1, [text("x"), thought("I look"), call("a")]),
        ("thinking_start", "the second message", LOOP, "messages.3.content", [call("b")]),
        ("thinking_start", "the loop's first", HALF_LOOP, M1, [call("a")], BY_LOOP),
        ("thinking_off", "not asked for", THINKS, "thinking", DROP),
        ("thinking_off", "disabled", THINKS, "thinking", {"type": "disabled"}),
        ("thinking_off", "redacted", HIDDEN, "thinking", {"type": "disabled"}),
        ("thinking_last", "cut short", OLD, M1, [ONE, TWO]),
        ("thinking_budget", "too small", THINKS, "thinking.budget_tokens", 1023),
        ("thinking_budget", "no room for an answer", THINKS, "max_tokens", 1024),
        ("thinking_options", "a temperature", THINKS, "temperature", 0.5),
        ("thinking_options", "top_k", THINKS, "top_k", 5),
        ("thinking_options", "a forced tool", THINKS, "tool_choice", {"type": "any"}),
        ("redacted_data", "altered", HIDDEN, f"{M1}.0.data", hidden("one")["data"][4:]),
        ("redacted_data", "a signature", HIDDEN, f"{M1}.0.data", thought("x")["signature"]),
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
    assert (refusal.rule, refusal.status) == (rule, 400), refusal.message
    assert refusal.type == "invalid_request_error"


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_the_payload_before_the_edit_is_accepted(one: Case) -> None:
    _, _, accepted, _, _, rules = one
    assert check(accepted, rules=rules) is None


@pytest.mark.parametrize("one", CASES, ids=IDS)
def test_what_is_accepted_is_what_the_official_types_accept(one: Case) -> None:
    accepted = one[2]
    assert forced(SDK.validate_python(accepted)) == accepted


def test_every_rule_of_thinking_and_media_has_a_case() -> None:
    assert {one[0] for one in CASES} == {rule for rule in ANTHROPIC_RULES if rule.startswith(HERE)}


@pytest.mark.parametrize(
    ("payload", "rules"),
    [
        (edited(OLD, M1, [text("So.")]), None),
        (edited(OLD, "thinking", DROP), None),
        (edited(ADAPTS, M1, [text("So."), call("a")]), None),
        (thinks(ASK, model(thought(""), call("a")), A), None),
        (thinks(ASK, model(ONE, hidden("two", index=1, of=2), call("a")), A), None),
        (thinks(ASK, model(thought("1"), text("x")), model(thought("2"), call("a")), A), None),
        (edited(THINKS, f"{M1}.0.signature", "from elsewhere"), UNCHECKED),
        (thinks(ASK, model(text("So.")), AGAIN), None),
        (edited(THINKS, "temperature", 1), None),
        (edited(MARKED, "cache_control", None), None),
        (edited(ORDERED, "messages.0.content.0.cache_control.ttl", "5m"), None),
    ],
    ids=[
        "an older turn's thinking left out",
        "an older turn's thinking kept with thinking off",
        "adaptive thinking with a turn that has none",
        "a signed block without text",
        "a redacted block after a plain one",
        "two assistant messages in a row",
        "a foreign signature, where none is checked",
        "a finished turn without thinking under a budget",
        "the one temperature that goes with thinking",
        "no automatic mark",
        "the short mark after the long one",
    ],
)
def test_what_the_api_takes_is_not_refused(payload: Json, rules: AnthropicRules | None) -> None:
    assert check(payload, rules=rules) is None


def test_a_signature_belongs_to_one_place_of_one_reply() -> None:
    tokens = {
        sign(model=name, text=words, index=index, of=of)
        for name in (MODEL, OTHER)
        for words in ("one", "two")
        for index, of in ((0, 1), (0, 2), (1, 2))
    }
    assert len(tokens) == 12
    assert sign(model=MODEL, text="one") == sign(model=MODEL, text="one")
