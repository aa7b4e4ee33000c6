"""The whole check of a Messages request: options, tools, system, messages, in the API's words."""

from collections.abc import Sequence
from typing import Final

from sojourn.testing.strict.anthropic.blocks import (
    IN_SYSTEM,
    blocks_of,
    check_blocks,
    check_images,
    check_name,
    check_text,
)
from sojourn.testing.strict.anthropic.cache import check_cache
from sojourn.testing.strict.anthropic.order import check_end, check_messages, check_order
from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.anthropic.thinking import check_mode, check_thinking
from sojourn.testing.strict.refusal import Path, Refusal, Refused, Rule
from sojourn.testing.strict.shape import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    STRING_OR_ARRAY,
    STRING_OR_OBJECT,
    STRINGS,
    Shape,
    as_array,
    as_object,
    check_json,
    check_shape,
    is_integer,
    is_number,
    is_object,
    one_of,
    or_null,
)

_REQUEST: Final = Shape(
    {"model": STRING, "messages": ARRAY, "max_tokens": INTEGER},
    {
        "cache_control": or_null(OBJECT),
        "container": or_null(STRING_OR_OBJECT),
        "diagnostics": or_null(OBJECT),
        "inference_geo": or_null(STRING),
        "metadata": OBJECT,
        "output_config": OBJECT,
        "service_tier": one_of("auto", "standard_only"),
        "speed": or_null(one_of("standard", "fast")),
        "stop_sequences": STRINGS,
        "stream": BOOLEAN,
        "system": STRING_OR_ARRAY,
        "temperature": NUMBER,
        "thinking": OBJECT,
        "tool_choice": OBJECT,
        "tools": ARRAY,
        "top_k": INTEGER,
        "top_p": NUMBER,
    },
)
_TOOL: Final = Shape(
    {"name": STRING, "input_schema": OBJECT},
    {
        "type": or_null(one_of("custom")),
        "description": STRING,
        "cache_control": or_null(OBJECT),
        "strict": BOOLEAN,
        "allowed_callers": STRINGS,
        "defer_loading": BOOLEAN,
        "eager_input_streaming": or_null(BOOLEAN),
        "input_examples": ARRAY,
    },
)
_PROVIDER_TOOL: Final = Shape({"type": STRING}, {"name": ANYTHING}, closed=False)
_PARALLEL: Final = {"disable_parallel_tool_use": BOOLEAN}
_CHOICES: Final = {
    "auto": Shape({"type": STRING}, _PARALLEL),
    "any": Shape({"type": STRING}, _PARALLEL),
    "tool": Shape({"type": STRING, "name": STRING}, _PARALLEL),
    "none": Shape({"type": STRING}),
}
_TYPES: Final = {413: "request_too_large"}


def check(payload: object, *, rules: AnthropicRules | None = None) -> Refusal | None:
    """What the Messages API would refuse in this request body, or None when it would take it.

    The body is a parsed JSON value. Nothing is remembered between two checks.
    """
    try:
        _check(payload, rules or AnthropicRules())
    except Refused as refused:
        return in_words(refused)
    return None


def in_words(refused: Refused) -> Refusal:
    """The refusal as the Messages API words it."""
    where = ".".join(str(step) for step in refused.path)
    if refused.rule is Rule.MISSING_KEY:
        text = "Field required"
    elif refused.rule is Rule.UNKNOWN_KEY:
        text = "Extra inputs are not permitted"
    elif refused.rule is Rule.WRONG_TYPE:
        text = f"Input should be {refused.message}"
    elif refused.rule is Rule.BODY_TOO_LARGE:
        text = "Request exceeds the maximum size"
    else:
        text = refused.message
    return Refusal(
        status=refused.status,
        type=_TYPES.get(refused.status, "invalid_request_error"),
        message=f"{where}: {text}" if where else text,
        rule=refused.rule,
    )


def _check(payload: object, rules: AnthropicRules) -> None:
    check_json(payload, max_bytes=rules.max_bytes)
    request = check_shape(payload, (), _REQUEST)
    _check_numbers(request)
    _check_tools(request, rules)
    _check_system(request.get("system"), rules)
    messages = check_messages(request["messages"], rules)
    check_mode(request)
    check_order(messages, rules)
    _check_need_of_tools(request, messages)
    check_images(messages, rules)
    check_thinking(request, messages, rules)
    check_cache(request, messages, rules)
    check_end(messages, rules)


def _check_numbers(request: dict[str, object]) -> None:
    if not request["model"]:
        words = "String should have at least 1 character"
        raise Refused(Rule.BAD_VALUE, words, path=("model",))
    max_tokens = request["max_tokens"]
    if is_integer(max_tokens) and max_tokens < 1:
        words = "Input should be greater than or equal to 1"
        raise Refused(Rule.BAD_VALUE, words, path=("max_tokens",))
    for key in ("temperature", "top_p"):
        value = request.get(key)
        if is_number(value) and not 0 <= value <= 1:
            raise Refused(Rule.BAD_VALUE, "Input should be between 0 and 1", path=(key,))


def _check_system(system: object, rules: AnthropicRules) -> None:
    if isinstance(system, str):
        check_text(system, "system", rules)
    elif system is not None:
        check_blocks(system, ("system",), IN_SYSTEM, rules)


def _check_tools(request: dict[str, object], rules: AnthropicRules) -> None:
    names: set[str] = set()
    tools = as_array(request.get("tools", []), ("tools",))
    for index, value in enumerate(tools):
        path: Path = ("tools", index)
        tool = as_object(value, path)
        if tool.get("type") not in (None, "custom"):
            check_shape(tool, path, _PROVIDER_TOOL)
            names.add(str(tool.get("name")))
            continue
        check_shape(tool, (*path, "custom"), _TOOL)
        name = check_name(tool["name"], (*path, "custom", "name"), rules)
        if name in names:
            raise Refused(Rule.DUPLICATE_TOOL, "tools: Tool names must be unique.")
        names.add(name)
        schema = tool["input_schema"]
        if is_object(schema) and schema.get("type") != "object":
            words = "Input should be 'object'"
            raise Refused(Rule.BAD_VALUE, words, path=(*path, "custom", "input_schema", "type"))
    if "tool_choice" in request:
        _check_choice(request["tool_choice"], names, any_tool=bool(tools))


def _check_choice(value: object, names: set[str], *, any_tool: bool) -> None:
    choice = as_object(value, ("tool_choice",))
    kind = choice.get("type")
    if not isinstance(kind, str) or kind not in _CHOICES:
        words = f"Input should be one of {', '.join(_CHOICES)}"
        raise Refused(Rule.BAD_VALUE, words, path=("tool_choice", "type"))
    check_shape(choice, ("tool_choice", kind), _CHOICES[kind])
    if not any_tool:
        words = "tool_choice: may only be specified while providing tools"
        raise Refused(Rule.TOOLS_MISSING, words)
    if kind == "tool" and choice["name"] not in names:
        words = f"Tool '{choice['name']}' not found in provided tools"
        raise Refused(Rule.BAD_VALUE, words)


def _check_need_of_tools(request: dict[str, object], messages: Sequence[dict[str, object]]) -> None:
    if request.get("tools"):
        return
    for message in messages:
        for block in blocks_of(message["content"]):
            if block["type"] in ("tool_use", "tool_result"):
                words = (
                    "Requests which include `tool_use` or `tool_result` blocks must define tools"
                )
                raise Refused(Rule.TOOLS_MISSING, words)
