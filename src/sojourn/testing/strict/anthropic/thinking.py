"""Thinking in the Messages API: who issued a block, in what order, and where it must stand."""

from collections.abc import Sequence
from typing import Final

from sojourn.testing.strict.anthropic.blocks import THINKING, blocks_of
from sojourn.testing.strict.anthropic.rules import AnthropicRules
from sojourn.testing.strict.refusal import Path, Refused, Rule
from sojourn.testing.strict.shape import (
    INTEGER,
    STRING,
    Shape,
    as_object,
    check_shape,
    is_integer,
    is_number,
    is_object,
    one_of,
    or_null,
)
from sojourn.testing.strict.signatures import Token, read

_DISPLAY: Final = or_null(one_of("summarized", "omitted"))
_MODES: Final = {
    "enabled": Shape({"type": STRING, "budget_tokens": INTEGER}, {"display": _DISPLAY}),
    "adaptive": Shape({"type": STRING}, {"display": _DISPLAY}),
    "between_tools": Shape({"type": STRING}),
    "disabled": Shape({"type": STRING}),
}
_MIN_BUDGET: Final = 1024

Placed = tuple[dict[str, object], Path]
"""A block and its path."""


def mode_of(payload: dict[str, object]) -> str:
    """The thinking mode of a request; `disabled` when it does not say."""
    thinking = payload.get("thinking")
    return str(thinking.get("type", "disabled")) if is_object(thinking) else "disabled"


def check_mode(payload: dict[str, object]) -> None:
    """The thinking option, and the other options that it rules out.

    Raises: Refused with `thinking_budget`, `thinking_options` or a rule of shape.
    """
    if "thinking" not in payload:
        return
    thinking = as_object(payload["thinking"], ("thinking",))
    mode = thinking.get("type")
    if not isinstance(mode, str) or mode not in _MODES:
        words = f"Input should be one of {', '.join(_MODES)}"
        raise Refused(Rule.BAD_VALUE, words, path=("thinking", "type"))
    check_shape(thinking, ("thinking", mode), _MODES[mode])
    budget = thinking.get("budget_tokens")
    if is_integer(budget):
        _check_budget(budget, payload["max_tokens"])
    if mode != "disabled":
        _check_options(payload)


def _check_budget(budget: int, max_tokens: object) -> None:
    path: Path = ("thinking", "enabled", "budget_tokens")
    if budget < _MIN_BUDGET:
        words = f"Input should be greater than or equal to {_MIN_BUDGET}"
        raise Refused(Rule.THINKING_BUDGET, words, path=path)
    if is_integer(max_tokens) and budget >= max_tokens:
        words = "`max_tokens` must be greater than `thinking.budget_tokens`."
        raise Refused(Rule.THINKING_BUDGET, words)


def _check_options(payload: dict[str, object]) -> None:
    choice = payload.get("tool_choice")
    if is_object(choice) and choice.get("type") in ("any", "tool"):
        words = "Thinking may not be enabled when tool_choice forces tool use."
        raise Refused(Rule.THINKING_OPTIONS, words)
    temperature = payload.get("temperature")
    if is_number(temperature) and temperature != 1:
        words = "`temperature` may only be set to 1 when thinking is enabled."
        raise Refused(Rule.THINKING_OPTIONS, words)
    if payload.get("top_k") is not None:
        words = "`top_k` must be unset when thinking is enabled."
        raise Refused(Rule.THINKING_OPTIONS, words)


def check_thinking(
    payload: dict[str, object], messages: Sequence[dict[str, object]], rules: AnthropicRules
) -> None:
    """Thinking blocks are as issued, by this model, in order, and where they must be.

    Consecutive assistant messages count as one, since the provider merges them.

    Raises: Refused.
    """
    turns = _assistant_turns(messages)
    for turn in turns:
        if turn[-1][0]["type"] in THINKING:
            words = "The final block in an assistant message cannot be `thinking`."
            raise Refused(Rule.THINKING_LAST, words, path=turn[-1][1][:2])
    if not turns:
        return
    mode = mode_of(payload)
    if mode == "disabled":
        _check_absent(turns[-1])
    if rules.check_signatures:
        for turn in turns:
            _check_issued(turn, str(payload["model"]))
    if mode == "enabled":
        _check_start(messages, turns, rules)


def _assistant_turns(messages: Sequence[dict[str, object]]) -> list[list[Placed]]:
    turns: list[list[Placed]] = []
    before = "user"
    for number, message in enumerate(messages):
        role = str(message["role"])
        if role == "assistant":
            if before != "assistant":
                turns.append([])
            turns[-1].extend(
                (block, ("messages", number, "content", index))
                for index, block in enumerate(blocks_of(message["content"]))
            )
        before = role
    return [turn for turn in turns if turn]


def _check_absent(turn: list[Placed]) -> None:
    for block, path in turn:
        if block["type"] in THINKING:
            words = (
                "When thinking is disabled, an `assistant` message in the final position cannot"
                f" contain `{block['type']}`. To use thinking blocks, enable `thinking` in your"
                " request."
            )
            raise Refused(Rule.THINKING_OFF, words, path=path)


def _check_issued(turn: list[Placed], model: str) -> None:
    """The thinking blocks of each reply are numbered: all of them, in order, or none at all."""
    previous: Token | None = None
    for block, path in turn:
        if block["type"] not in THINKING:
            continue
        token = _token(block, path, model)
        if _finished(previous):
            sound = token.index == 0
        else:
            sound = previous is not None and (token.of, token.index - 1) == (
                previous.of,
                previous.index,
            )
        if not sound:
            raise _modified(path)
        previous = token
    if not _finished(previous):
        raise _modified(turn[-1][1])


def _finished(token: Token | None) -> bool:
    return token is None or token.index == token.of - 1


def _modified(path: Path) -> Refused:
    words = (
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be"
        " modified. These blocks must remain as they were in the original response."
    )
    return Refused(Rule.THINKING_MODIFIED, words, path=path)


def _token(block: dict[str, object], path: Path, model: str) -> Token:
    hidden = block["type"] == "redacted_thinking"
    token = read(str(block["data"] if hidden else block["signature"]))
    if hidden and (token is None or token.kind != "redacted"):
        words = "Invalid `data` in `redacted_thinking` block"
        raise Refused(Rule.REDACTED_DATA, words, path=path)
    words = "Invalid `signature` in `thinking` block"
    if token is None or (not hidden and token.kind != "thinking"):
        raise Refused(Rule.THINKING_SIGNATURE, words, path=path)
    if token.model != model:
        raise Refused(Rule.THINKING_FOREIGN, words, path=path)
    if not hidden and not token.fits(str(block["thinking"])):
        raise Refused(Rule.THINKING_SIGNATURE, words, path=path)
    return token


def _check_start(
    messages: Sequence[dict[str, object]], turns: list[list[Placed]], rules: AnthropicRules
) -> None:
    """Budget thinking: what an open tool loop must start with."""
    if not _answers(messages[-1]):
        return
    turn = turns[-1] if rules.thinking_start == "message" else _loop_start(messages, turns)
    block, path = turn[0]
    if block["type"] in THINKING:
        return
    words = (
        f"Expected `thinking` or `redacted_thinking`, but found `{block['type']}`. When"
        " `thinking` is enabled, a final `assistant` message must start with a thinking block"
        " (preceding the lastmost set of `tool_use` and `tool_result` blocks)."
        " To avoid this requirement, disable `thinking`."
    )
    raise Refused(Rule.THINKING_START, words, path=(*path, "type"))


def _answers(message: dict[str, object]) -> bool:
    return any(block["type"] == "tool_result" for block in blocks_of(message["content"]))


def _loop_start(messages: Sequence[dict[str, object]], turns: list[list[Placed]]) -> list[Placed]:
    """The first assistant turn after the last user message that answers no call."""
    first = 0
    for number, message in enumerate(messages):
        if message["role"] == "user" and not _answers(message):
            first = number
    later = [turn for turn in turns if int(turn[0][1][1]) > first]
    return later[0] if later else turns[-1]
