"""Messages of the Chat Completions API: what each role holds."""

import json
import re
from typing import Final

from sojourn.testing.strict.images import check_image
from sojourn.testing.strict.openai_chat.hosts import HostRules
from sojourn.testing.strict.refusal import Path, Refused, Rule
from sojourn.testing.strict.shape import (
    ANYTHING,
    ARRAY,
    OBJECT,
    STRING,
    Shape,
    as_array,
    as_object,
    as_string,
    check_shape,
    is_array,
    is_object,
    one_of,
    or_null,
)

_SHAPES: Final = {
    "system": Shape({"role": STRING, "content": ANYTHING}, {"name": STRING}),
    "developer": Shape({"role": STRING, "content": ANYTHING}, {"name": STRING}),
    "user": Shape({"role": STRING, "content": ANYTHING}, {"name": STRING}),
    "tool": Shape({"role": STRING, "content": ANYTHING, "tool_call_id": STRING}, {"name": STRING}),
    "assistant": Shape(
        {"role": STRING},
        {
            "content": ANYTHING,
            "name": STRING,
            "refusal": or_null(STRING),
            "audio": or_null(OBJECT),
            "tool_calls": ARRAY,
        },
    ),
}
_PARTS: Final = {
    "text": Shape({"type": STRING, "text": STRING}),
    "refusal": Shape({"type": STRING, "refusal": STRING}),
    "image_url": Shape({"type": STRING, "image_url": OBJECT}),
    "input_audio": Shape({"type": STRING, "input_audio": OBJECT}),
    "file": Shape({"type": STRING, "file": OBJECT}),
}
_ALLOWED: Final = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "tool": ("text",),
    "assistant": ("text", "refusal"),
}
_IMAGE: Final = Shape({"url": STRING}, {"detail": one_of("auto", "low", "high", "original")})
_CALL: Final = Shape({"id": STRING, "type": one_of("function"), "function": OBJECT})
_FUNCTION: Final = Shape({"name": STRING, "arguments": ANYTHING})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
_ID: Final = re.compile(r"[\x21-\x7e]+")
_INLINE: Final = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


def check_messages(value: object, host: HostRules, *, thinking: bool) -> list[dict[str, object]]:
    """The messages, each sound by itself; `thinking` says whether the model thinks.

    Raises: Refused.
    """
    items = as_array(value, ("messages",))
    if not items:
        words = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        raise Refused(Rule.NO_MESSAGES, words, code="empty_array")
    return [
        _check_message(item, ("messages", index), host, thinking=thinking)
        for index, item in enumerate(items)
    ]


def calls_of(message: dict[str, object]) -> list[dict[str, object]]:
    """The calls of a checked message."""
    calls = message.get("tool_calls")
    return [call for call in calls if is_object(call)] if is_array(calls) else []


def check_name(value: object, path: Path, host: HostRules) -> str:
    """The name of a function, or of a message's author.

    Raises: Refused with `name_pattern`.
    """
    name = as_string(value, path)
    if not _NAME.fullmatch(name) or len(name) > host.max_name:
        words = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'"
        words += f" and has at most {host.max_name} characters."
        raise Refused(Rule.NAME_PATTERN, words, path=path)
    return name


def _check_message(
    item: object, path: Path, host: HostRules, *, thinking: bool
) -> dict[str, object]:
    message = as_object(item, path)
    if "role" not in message:
        raise Refused(Rule.MISSING_KEY, "", path=(*path, "role"))
    role = message["role"]
    if not isinstance(role, str) or role not in _SHAPES:
        words = f"Expected one of: {', '.join(_SHAPES)}."
        raise Refused(Rule.BAD_ROLE, words, path=(*path, "role"))
    if role == "developer" and not host.developer:
        words = "unknown role `developer`, expected one of `system`, `user`, `assistant`, `tool`"
        raise Refused(Rule.DEVELOPER_ROLE, words, path=path)
    if role == "assistant":
        _check_reasoning(message, path, host, thinking=thinking)
    check_shape(_known(message, role, host), path, _SHAPES[role])
    if "name" in message:
        check_name(message["name"], (*path, "name"), host)
    if role == "tool":
        _check_id(message["tool_call_id"], (*path, "tool_call_id"), host)
    if role == "assistant":
        _check_assistant(message, path, host)
    else:
        _check_content(message["content"], role, (*path, "content"), host)
    return message


def _known(message: dict[str, object], role: str, host: HostRules) -> dict[str, object]:
    """The message without the keys that only this host knows."""
    extra = host.message_keys | {"reasoning_content"} if role == "assistant" else frozenset[str]()
    shape = _SHAPES[role]
    return {
        key: value
        for key, value in message.items()
        if key in shape.required or key in shape.optional or not (host.open_keys or key in extra)
    }


def _check_reasoning(
    message: dict[str, object], path: Path, host: HostRules, *, thinking: bool
) -> None:
    given = "reasoning_content" in message
    if given and host.reasoning_in == "refused":
        words = "property 'reasoning_content' is unsupported"
        raise Refused(Rule.REASONING_REFUSED, words, path=path)
    if given:
        as_string(message["reasoning_content"], (*path, "reasoning_content"))
        return
    if not thinking:
        return
    index = path[1]
    if host.reasoning_in == "every_assistant":
        words = (
            "The `reasoning_content` in the thinking mode must be passed back to the API:"
            f" missing in the assistant message at index {index}"
        )
        raise Refused(Rule.REASONING_MISSING, words)
    if host.reasoning_in == "with_calls" and message.get("tool_calls"):
        words = (
            "thinking is enabled but reasoning_content is missing in assistant tool call message"
            f" at index {index}"
        )
        raise Refused(Rule.REASONING_MISSING, words)


def _check_assistant(message: dict[str, object], path: Path, host: HostRules) -> None:
    calls = message.get("tool_calls")
    if is_array(calls) and not calls:
        words = f"Invalid '{path[0]}[{path[1]}].tool_calls': empty array. Expected an array with"
        words += " minimum length 1, but got an empty array instead."
        raise Refused(Rule.EMPTY_TOOL_CALLS, words, code="empty_array")
    seen: set[str] = set()
    for index, call in enumerate(calls if is_array(calls) else []):
        name = _check_call(call, (*path, "tool_calls", index), host)
        if name in seen:
            words = f"Duplicate value for 'tool_call_id' of {name}"
            raise Refused(Rule.DUPLICATE_CALL, words, path=path)
        seen.add(name)
    content = message.get("content")
    if content is None:
        if not calls and not message.get("refusal") and message.get("audio") is None:
            words = "expected a string, got null: content may be null only with tool_calls."
            raise Refused(Rule.CONTENT_MISSING, words, path=(*path, "content"))
        return
    if calls and content == "":
        return
    _check_content(content, "assistant", (*path, "content"), host)


def _check_content(content: object, role: str, path: Path, host: HostRules) -> None:
    if isinstance(content, str):
        if host.content_needed and not content:
            words = "Each message must have at least one content element."
            raise Refused(Rule.EMPTY_CONTENT, words)
        return
    if not is_array(content):
        raise Refused(Rule.WRONG_TYPE, "a string or an array of content parts", path=path)
    if not content:
        words = "Each message must have at least one content element."
        raise Refused(Rule.EMPTY_CONTENT, words)
    for index, value in enumerate(content):
        _check_part(value, role, (*path, index))


def _check_part(value: object, role: str, path: Path) -> None:
    part = as_object(value, path)
    if "type" not in part:
        raise Refused(Rule.MISSING_KEY, "", path=(*path, "type"))
    kind = as_string(part["type"], (*path, "type"))
    if role == "tool" and kind == "image_url":
        words = (
            "Image URLs are only allowed for messages with role 'user', but this message with"
            " role 'tool' contains an image URL."
        )
        raise Refused(Rule.IMAGE_IN_TOOL_MESSAGE, words, path=path)
    if kind not in _ALLOWED[role]:
        words = f"Supported values are: {', '.join(_ALLOWED[role])}."
        raise Refused(Rule.BAD_BLOCK, f"'{kind}'. {words}", path=path)
    check_shape(part, path, _PARTS[kind])
    if kind == "image_url":
        _check_image(part["image_url"], (*path, "image_url"))


def _check_image(value: object, path: Path) -> None:
    url = str(check_shape(value, path, _IMAGE)["url"])
    if url.startswith("https://"):
        return
    inline = _INLINE.fullmatch(url)
    if inline is None:
        words = "Expected a base64-encoded data URL or an https URL."
        raise Refused(Rule.BAD_VALUE, words, path=(*path, "url"))
    check_image(inline[2], inline[1], (*path, "url"))


def _check_id(value: object, path: Path, host: HostRules) -> str:
    text = as_string(value, path)
    if not text or len(text) > host.max_id:
        words = f"string too long or empty. Expected a string with 1 to {host.max_id} characters,"
        words += f" but got a string with length {len(text)} instead."
        raise Refused(Rule.ID_LENGTH, words, path=path)
    if not _ID.fullmatch(text):
        words = "Expected printable ASCII characters without blanks."
        raise Refused(Rule.ID_PATTERN, words, path=path)
    return text


def _check_call(value: object, path: Path, host: HostRules) -> str:
    call = check_shape(value, path, _CALL)
    name = _check_id(call["id"], (*path, "id"), host)
    inside = (*path, "function")
    function = check_shape(call["function"], inside, _FUNCTION)
    check_name(function["name"], (*inside, "name"), host)
    _check_arguments(function["arguments"], (*inside, "arguments"), host)
    return name


def _check_arguments(value: object, path: Path, host: HostRules) -> None:
    status = host.bad_arguments_status
    if not isinstance(value, str):
        words = "expected a string, but got something else instead."
        raise Refused(Rule.ARGUMENTS_NOT_STRING, words, path=path)
    try:
        parsed: object = json.loads(value, parse_constant=_no_such_number)
    except (ValueError, RecursionError) as error:
        words = f"Failed to parse tool call arguments as JSON: {error}"
        raise Refused(Rule.ARGUMENTS_NOT_JSON, words, path=path, status=status) from None
    if not is_object(parsed):
        words = "Tool call arguments must be a JSON object."
        raise Refused(Rule.ARGUMENTS_NOT_OBJECT, words, path=path, status=status)


def _no_such_number(text: str) -> object:
    raise ValueError(f"{text} is no JSON number")
