"""The checkers answer every value, however broken, and never change it."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.testing.strict import HOSTS, Refusal, Rule, sign
from sojourn.testing.strict.anthropic import AnthropicRules, check
from sojourn.testing.strict.openai_chat import check as check_chat
from sojourn.testing.strict.refusal import ANTHROPIC_RULES, OPENAI_CHAT_RULES

MARK = {"type": "ephemeral", "ttl": "5m"}
SOURCE = {"type": "base64", "media_type": "image/gif", "data": "R0lGODlhAQABAAAAADs="}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
PAPER = {"type": "text", "media_type": "text/plain", "data": "words"}
MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 4096,
    "system": [{"type": "text", "text": "be brief", "cache_control": MARK}],
    "tools": [{"name": "read", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "document", "source": PAPER}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "a", "signature": sign(model="m", text="a")},
                SEARCH,
                FOUND,
                {"type": "tool_use", "id": "a", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "image", "source": SOURCE}],
                    "is_error": False,
                }
            ],
        },
    ],
}
CALL = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}],
    "tool_choice": {"type": "function", "function": {"name": "read"}},
    "messages": [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "ok"}]},
    ],
}
RULES = AnthropicRules(prefill=True, system_messages=True, text_after_calls=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5000) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
ROLES = ["user", "assistant", "system", "tool"]
KINDS = ["text", "thinking", "tool_use", "tool_result", "image", "function", "disabled", "base64"]
WORDS = st.sampled_from([*ROLES, *KINDS, "a", "", "{}", "message"])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside."""
    steps: list[Any] = []
    if isinstance(value, dict):
        steps = list(value)
    elif isinstance(value, list):
        steps = list(range(len(value)))
    inner = [found for step in steps for found in places(value[step], (*path, step))]
    return [*([path] if path else []), *inner]


@st.composite
def broken(draw: st.DrawFn, sound: dict[str, Any]) -> dict[str, Any]:
    """A sound payload with up to three values set, dropped, doubled or swapped."""
    payload = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(payload)))
        place: Any = payload
        for step in path[:-1]:
            place = place[step]
        change = draw(st.sampled_from(["set", "word", "drop", "double", "extra"]))
        if change == "drop":
            del place[path[-1]]
        elif change == "double" and isinstance(place, list):
            place.append(copy.deepcopy(place[path[-1]]))
        elif change == "extra" and isinstance(place, dict):
            place[draw(WORDS)] = draw(JSON)
        else:
            place[path[-1]] = draw(WORDS if change == "word" else JSON)
        if not places(payload):
            return payload
    return payload


def told(refusal: Refusal | None) -> bool:
    return refusal is None or (bool(refusal.message) and refusal.status in (400, 413, 500))


def test_the_two_payloads_are_sound_before_they_are_broken() -> None:
    assert check(MESSAGES, rules=RULES) is None
    assert check_chat(CHAT) is None


@settings(max_examples=150)
@given(broken(MESSAGES))
def test_the_messages_checker_answers_every_broken_payload(payload: dict[str, Any]) -> None:
    before = repr(payload)
    refusal = check(payload, rules=RULES)
    assert told(refusal)
    assert refusal is None or refusal.rule in ANTHROPIC_RULES
    assert repr(payload) == before


@settings(max_examples=150)
@given(broken(CHAT), st.sampled_from(sorted(HOSTS)))
def test_the_chat_checker_answers_every_broken_payload(payload: dict[str, Any], host: str) -> None:
    before = repr(payload)
    refusal = check_chat(payload, host=host)
    assert told(refusal)
    assert refusal is None or refusal.rule in OPENAI_CHAT_RULES
    assert repr(payload) == before


@given(JSON)
def test_both_checkers_answer_any_json_value(value: object) -> None:
    assert told(check(value))
    assert told(check_chat(value))


def test_a_value_that_holds_itself_is_refused() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    for refusal in (check(cycle), check_chat(cycle)):
        assert refusal is not None
        assert refusal.rule == Rule.NOT_JSON


@pytest.mark.parametrize("value", [{"model": (1, 2)}, {"model": b"m"}, {1: "m"}, object()])
def test_python_values_that_json_does_not_have_are_refused(value: object) -> None:
    for refusal in (check(value), check_chat(value)):
        assert refusal is not None
        assert refusal.rule == Rule.NOT_JSON
