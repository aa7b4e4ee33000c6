"""The whole check of a Chat Completions request, in the API's words."""

from typing import Final

from sojourn.testing.strict.openai_chat.hosts import HOSTS, HostRules
from sojourn.testing.strict.openai_chat.messages import check_messages, check_name
from sojourn.testing.strict.openai_chat.order import check_order
from sojourn.testing.strict.refusal import Path, Refusal, Refused, Rule
from sojourn.testing.strict.shape import (
    ANYTHING,
    ARRAY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    STRING_OR_OBJECT,
    Shape,
    as_array,
    check_json,
    check_shape,
    is_integer,
    is_number,
    is_object,
    one_of,
    or_null,
)

_REQUEST: Final = Shape(
    {"model": STRING, "messages": ARRAY},
    {
        "audio": or_null(OBJECT),
        "frequency_penalty": or_null(NUMBER),
        "logit_bias": or_null(OBJECT),
        "logprobs": or_null(BOOLEAN),
        "max_completion_tokens": or_null(INTEGER),
        "max_tokens": or_null(INTEGER),
        "metadata": or_null(OBJECT),
        "modalities": or_null(ARRAY),
        "moderation": or_null(OBJECT),
        "n": or_null(INTEGER),
        "parallel_tool_calls": BOOLEAN,
        "prediction": or_null(OBJECT),
        "presence_penalty": or_null(NUMBER),
        "prompt_cache_key": or_null(STRING),
        "prompt_cache_options": OBJECT,
        "prompt_cache_retention": or_null(STRING),
        "reasoning_effort": or_null(STRING),
        "response_format": OBJECT,
        "safety_identifier": or_null(STRING),
        "seed": or_null(INTEGER),
        "service_tier": or_null(STRING),
        "stop": ANYTHING,
        "store": or_null(BOOLEAN),
        "stream": or_null(BOOLEAN),
        "stream_options": or_null(OBJECT),
        "temperature": or_null(NUMBER),
        "tool_choice": STRING_OR_OBJECT,
        "tools": ARRAY,
        "top_logprobs": or_null(INTEGER),
        "top_p": or_null(NUMBER),
        "user": STRING,
        "verbosity": or_null(STRING),
        "web_search_options": OBJECT,
    },
)
_TOOL: Final = Shape({"type": one_of("function"), "function": OBJECT})
_FUNCTION: Final = Shape(
    {"name": STRING},
    {"description": STRING, "parameters": OBJECT, "strict": or_null(BOOLEAN)},
)
_STREAM_OPTIONS: Final = Shape({}, {"include_usage": BOOLEAN, "include_obfuscation": BOOLEAN})
_CHOICE: Final = Shape({"type": one_of("function"), "function": OBJECT})


def check(payload: object, *, host: str | HostRules = "openai") -> Refusal | None:
    """What the host would refuse in this request body, or None when it would take it.

    The body is a parsed JSON value; `host` is a name of `HOSTS` or rules of one's own. Nothing is
    remembered between two checks.

    Raises: KeyError when no host has that name.
    """
    rules = host if isinstance(host, HostRules) else HOSTS[host]
    try:
        _check(payload, rules)
    except Refused as refused:
        return in_words(refused)
    return None


def in_words(refused: Refused) -> Refusal:
    """The refusal as the Chat Completions API words it."""
    where = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in refused.path
    ).lstrip(".")
    code = refused.code
    if refused.rule is Rule.MISSING_KEY:
        text, code = f"Missing required parameter: '{where}'.", "missing_required_parameter"
    elif refused.rule is Rule.UNKNOWN_KEY:
        text, code = f"Unknown parameter: '{where}'.", "unknown_parameter"
    elif refused.rule is Rule.WRONG_TYPE:
        text = f"Invalid type for '{where}': expected {refused.message}."
        code = "invalid_type"
    elif refused.rule is Rule.BODY_TOO_LARGE:
        text = "Request body too large"
    else:
        text = f"Invalid value for '{where}': {refused.message}" if where else refused.message
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    return Refusal(status=refused.status, type=kind, message=text, rule=refused.rule, code=code)


def _check(payload: object, host: HostRules) -> None:
    check_json(payload, max_bytes=host.max_bytes)
    known = payload
    if is_object(payload):
        known = _without_own_keys(payload, host)
    request = check_shape(known, (), _REQUEST)
    _check_numbers(request)
    _check_tools(request, host)
    _check_stream(request)
    thinking = payload.get("thinking") if is_object(payload) else None
    off = is_object(thinking) and thinking.get("type") == "disabled"
    messages = check_messages(request["messages"], host, thinking=not off)
    _check_need_of_tools(request)
    check_order(messages, host)


def _without_own_keys(payload: dict[str, object], host: HostRules) -> dict[str, object]:
    """The request without the keys that only this host knows."""
    return {
        key: value
        for key, value in payload.items()
        if key in _REQUEST.required
        or key in _REQUEST.optional
        or not (host.open_keys or key in host.request_keys)
    }


def _check_numbers(request: dict[str, object]) -> None:
    if not request["model"]:
        raise Refused(Rule.BAD_VALUE, "you must provide a model parameter", path=("model",))
    for key in ("max_tokens", "max_completion_tokens", "n"):
        value = request.get(key)
        if is_integer(value) and value < 1:
            words = f"integer below minimum value. Expected a value >= 1, but got {value} instead."
            raise Refused(Rule.BAD_VALUE, words, path=(key,))
    for key, top in (("temperature", 2), ("top_p", 1)):
        value = request.get(key)
        if is_number(value) and not 0 <= value <= top:
            words = f"Expected a value between 0 and {top}, but got {value} instead."
            raise Refused(Rule.BAD_VALUE, words, path=(key,))


def _check_stream(request: dict[str, object]) -> None:
    options = request.get("stream_options")
    if options is None:
        return
    if request.get("stream") is not True:
        words = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise Refused(Rule.STREAM_OPTIONS, words)
    check_shape(options, ("stream_options",), _STREAM_OPTIONS)


def _check_tools(request: dict[str, object], host: HostRules) -> None:
    if "tools" not in request:
        return
    tools = as_array(request["tools"], ("tools",))
    if not tools:
        words = "Invalid 'tools': empty array. Expected an array with minimum length 1."
        raise Refused(Rule.BAD_VALUE, words, code="empty_array")
    if len(tools) > host.max_tools:
        words = (
            f"Invalid 'tools': array too long. Expected an array with maximum length"
            f" {host.max_tools}, but got an array with length {len(tools)} instead."
        )
        raise Refused(Rule.TOO_MANY_TOOLS, words, code="array_above_max_length")
    for index, value in enumerate(tools):
        path: Path = ("tools", index)
        tool = check_shape(value, path, _TOOL)
        function = check_shape(tool["function"], (*path, "function"), _FUNCTION)
        check_name(function["name"], (*path, "function", "name"), host)
        parameters = function.get("parameters")
        if is_object(parameters) and parameters.get("type", "object") != "object":
            words = "schema must be a JSON Schema of 'type: \"object\"'."
            raise Refused(Rule.BAD_VALUE, words, path=(*path, "function", "parameters"))


def _check_need_of_tools(request: dict[str, object]) -> None:
    for key in ("tool_choice", "parallel_tool_calls"):
        if key in request and not request.get("tools"):
            words = f"'{key}' is only allowed when 'tools' are specified."
            raise Refused(Rule.TOOLS_MISSING, words)
    choice = request.get("tool_choice")
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        words = "Supported values are: 'none', 'auto', and 'required'."
        raise Refused(Rule.BAD_VALUE, words, path=("tool_choice",))
    if is_object(choice):
        check_shape(choice, ("tool_choice",), _CHOICE)
