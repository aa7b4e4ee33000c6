"""Order in the Chat Completions API: calls and their results, turns, and the end of the list."""

from collections.abc import Sequence

from sojourn.testing.strict.openai_chat.hosts import HostRules
from sojourn.testing.strict.openai_chat.messages import calls_of
from sojourn.testing.strict.refusal import Refused, Rule


def check_order(messages: Sequence[dict[str, object]], host: HostRules) -> None:
    """One tool message per call, right after the calls and before any other role.

    Raises: Refused.
    """
    waiting: list[str] = []
    asked: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            waiting = _answer(str(message["tool_call_id"]), waiting, asked, index)
            continue
        if waiting:
            raise _dangling(waiting)
        asked = [str(call["id"]) for call in calls_of(message)]
        waiting = list(asked)
    if waiting:
        raise _dangling(waiting)
    _check_end(messages, host)
    if host.alternation:
        _check_alternation(messages)


def _answer(name: str, waiting: list[str], asked: list[str], index: int) -> list[str]:
    """What still waits once the call `name` is answered."""
    if name in waiting:
        return [other for other in waiting if other != name]
    if name in asked:
        words = f"Duplicate value for 'tool_call_id' of {name} in message[{index}]"
        raise Refused(Rule.DUPLICATE_RESULT, words)
    words = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
    raise Refused(Rule.ORPHAN_RESULT, words, path=("messages", index))


def _dangling(waiting: Sequence[str]) -> Refused:
    words = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to"
        " each 'tool_call_id'. The following tool_call_ids did not have response messages:"
        f" {', '.join(waiting)}"
    )
    return Refused(Rule.RESULT_MISSING, words)


def _check_end(messages: Sequence[dict[str, object]], host: HostRules) -> None:
    ends = [message["role"] == "assistant" for message in messages[-2:]]
    if not host.two_final_assistants and ends == [True, True]:
        words = "Cannot have 2 or more assistant messages at the end of the list."
        raise Refused(Rule.TWO_FINAL_ASSISTANTS, words)
    if not host.prefill and ends[-1]:
        words = "A final assistant message (prefill) is not supported: end with a user message."
        raise Refused(Rule.PREFILL, words)


def _check_alternation(messages: Sequence[dict[str, object]]) -> None:
    """Templates count user messages and assistant messages without calls, in turn."""
    wanted = "user"
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "tool" or (role == "assistant" and calls_of(message)):
            continue
        if role == "system" and index == 0:
            continue
        if role != wanted:
            words = (
                "After the optional system message, conversation roles must alternate"
                " user/assistant/user/assistant/..."
            )
            raise Refused(Rule.ALTERNATION, words)
        wanted = "assistant" if wanted == "user" else "user"
