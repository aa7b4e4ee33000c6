"""Order in the Messages API: roles, calls and their results, and how the list may end."""

from collections.abc import Sequence
from typing import Final

from sojourn.testing.strict.anthropic.blocks import (
    IN_ASSISTANT,
    IN_SYSTEM,
    IN_USER,
    SERVER_RESULTS,
    blocks_of,
    check_blocks,
    check_text,
)
from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.refusal import Path, Refused, Rule
from sojourn.testing.strict.shape import STRING, STRING_OR_ARRAY, Shape, as_array, check_shape

_MESSAGE: Final = Shape({"role": STRING, "content": STRING_OR_ARRAY})
_BLOCKS: Final = {"user": IN_USER, "assistant": IN_ASSISTANT, "system": IN_SYSTEM}


def check_messages(value: object, rules: AnthropicRules) -> list[dict[str, object]]:
    """The messages, each with a known role and sound blocks.

    Raises: Refused.
    """
    items = as_array(value, ("messages",))
    if not items:
        raise Refused(Rule.NO_MESSAGES, "messages: at least one message is required")
    if len(items) > rules.max_messages:
        words = f"List should have at most {rules.max_messages} items"
        raise Refused(Rule.TOO_MANY_MESSAGES, words, path=("messages",))
    last = len(items) - 1
    return [
        _check_message(item, ("messages", index), rules, last=index == last)
        for index, item in enumerate(items)
    ]


def _check_message(
    item: object, path: Path, rules: AnthropicRules, *, last: bool
) -> dict[str, object]:
    message = check_shape(item, path, _MESSAGE)
    role = str(message["role"])
    if role not in _BLOCKS or (role == "system" and not rules.system_messages):
        words = "Input should be 'user' or 'assistant'"
        raise Refused(Rule.BAD_ROLE, words, path=(*path, "role"))
    content = message["content"]
    if not content:
        if last and role == "assistant" and rules.prefill:
            return message
        words = "all messages must have non-empty content except for the optional final assistant"
        raise Refused(Rule.EMPTY_CONTENT, f"{words} message", path=path)
    if isinstance(content, str):
        check_text(content, "messages", rules)
    else:
        check_blocks(content, (*path, "content"), _BLOCKS[role], rules)
    return message


def check_order(messages: Sequence[dict[str, object]], rules: AnthropicRules) -> None:
    """Every call has its one result in the next message; nothing else has one.

    Raises: Refused.
    """
    if messages[0]["role"] == "system":
        words = "messages: a system message cannot be the first message"
        raise Refused(Rule.SYSTEM_PLACE, words)
    if messages[0]["role"] != "user":
        raise Refused(Rule.FIRST_ROLE, 'messages: first message must use the "user" role')
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        path: Path = ("messages", index)
        blocks = blocks_of(message["content"])
        _check_answers(message, blocks, path, waiting)
        waiting = _calls(blocks, path, seen, rules)
        _check_server_calls(blocks, path, last=index == len(messages) - 1)
    if waiting:
        raise _dangling(("messages", len(messages) - 1), waiting)


def _check_answers(
    message: dict[str, object], blocks: list[dict[str, object]], path: Path, waiting: list[str]
) -> None:
    if waiting and message["role"] == "system":
        words = "a system message cannot stand between `tool_use` and `tool_result` blocks"
        raise Refused(Rule.SYSTEM_PLACE, words, path=path)
    answered: set[str] = set()
    other = False
    for index, block in enumerate(blocks):
        if block["type"] != "tool_result":
            other = True
            continue
        place = (*path, "content", index)
        name = str(block["tool_use_id"])
        if name not in waiting:
            words = (
                f"unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each"
                " `tool_result` block must have a corresponding `tool_use` block in the previous"
                " message."
            )
            raise Refused(Rule.ORPHAN_RESULT, words, path=place)
        if name in answered:
            words = (
                "each tool_use must have a single result. Found multiple `tool_result` blocks"
                f" with id: {name}"
            )
            raise Refused(Rule.DUPLICATE_RESULT, words, path=place)
        if other:
            words = "`tool_result` blocks must come before every other block of their message"
            raise Refused(Rule.RESULTS_FIRST, words, path=place)
        answered.add(name)
    missing = [name for name in waiting if name not in answered]
    if missing:
        raise _dangling((path[0], int(path[1]) - 1), missing)


def _dangling(path: Path, missing: Sequence[str]) -> Refused:
    words = (
        "`tool_use` ids were found without `tool_result` blocks immediately after:"
        f" {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result`"
        " block in the next message."
    )
    return Refused(Rule.RESULT_MISSING, words, path=path)


def _calls(
    blocks: list[dict[str, object]], path: Path, seen: set[str], rules: AnthropicRules
) -> list[str]:
    """The ids of a message's calls, each new in the whole request."""
    found: list[str] = []
    for index, block in enumerate(blocks):
        place = (*path, "content", index)
        if block["type"] == "tool_use":
            name = str(block["id"])
            if name in seen:
                raise Refused(Rule.DUPLICATE_CALL, "`tool_use` ids must be unique", path=place)
            seen.add(name)
            found.append(name)
        elif found and block["type"] == "text" and not rules.text_after_calls:
            words = "text cannot follow the `tool_use` blocks of its message"
            raise Refused(Rule.TEXT_AFTER_CALL, words, path=place)
    return found


def _check_server_calls(blocks: list[dict[str, object]], path: Path, *, last: bool) -> None:
    """A server tool's result is in the message of its call, unless that message is paused."""
    calls = [str(block["id"]) for block in blocks if block["type"] == "server_tool_use"]
    results = [str(block["tool_use_id"]) for block in blocks if block["type"] in SERVER_RESULTS]
    orphans = [name for name in results if name not in calls]
    if orphans:
        words = f"unexpected `tool_use_id` found in server tool results: {orphans[0]}"
        raise Refused(Rule.ORPHAN_RESULT, words, path=path)
    still_open = [name for name in calls if name not in results]
    if still_open and not last:
        words = f"`server_tool_use` ids were found without a result block: {', '.join(still_open)}"
        raise Refused(Rule.SERVER_CALL_OPEN, words, path=path)


def check_end(messages: Sequence[dict[str, object]], rules: AnthropicRules) -> None:
    """How the list may end: with the user, or where a model continues, with a trimmed text.

    A final assistant message that ends in a server tool's block is a paused turn sent back, which
    every model continues.

    Raises: Refused with `prefill` or `trailing_space`.
    """
    final = messages[-1]
    if final["role"] != "assistant":
        return
    blocks = blocks_of(final["content"])
    kind = blocks[-1]["type"] if blocks else None
    if kind == "server_tool_use" or kind in SERVER_RESULTS:
        return
    if not rules.prefill:
        words = (
            "This model does not support assistant message prefill. The conversation must end"
            " with a user message."
        )
        raise Refused(Rule.PREFILL, words)
    text = str(blocks[-1].get("text", "")) if blocks else ""
    if text != text.rstrip():
        words = "messages: final assistant content cannot end with trailing whitespace"
        raise Refused(Rule.TRAILING_SPACE, words)
