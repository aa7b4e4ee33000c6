"""A reply as the chunks of the Chat Completions API, in a few pieces, made from values alone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

from sojourn.models.script import ScriptCall
from sojourn.ports import ServerEvent

PIECES: Final = 3
"""Into how many pieces a text is cut, so that whoever reads it must put it together again."""


def chunks_of(
    *,
    model: str,
    text: str,
    reasoning: str = "",
    calls: Sequence[ScriptCall] = (),
    asked: int,
    seed: str,
) -> Iterator[ServerEvent]:
    """The events of one reply; the same arguments give the same events.

    `asked` is the size of the request in characters, from which a number of tokens is made up;
    `seed` is what the ids are made from.
    """
    answered = len(text) + len(reasoning) + sum(len(call.arguments) for call in calls)
    digest = sha256(seed.encode()).hexdigest()
    frame: dict[str, object] = {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
    }
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas.extend({"reasoning_content": piece} for piece in cut(reasoning))
    deltas.extend({"content": piece} for piece in cut(text))
    for index, call in enumerate(calls):
        call_id = f"call_{digest[:20]}{index:02d}"
        first = {"id": call_id, "type": "function"}
        function = {"name": call.tool, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, **first, "function": function}]})
        for piece in cut(call.arguments):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    for delta in deltas:
        yield _event(frame, [{"index": 0, "delta": delta, "finish_reason": None}])
    reason = "tool_calls" if calls else "stop"
    yield _event(frame, [{"index": 0, "delta": {}, "finish_reason": reason}])
    usage = {"prompt_tokens": asked // 4 + 1, "completion_tokens": answered // 4 + 1}
    usage["total_tokens"] = sum(usage.values())
    yield _event({**frame, "usage": usage}, [])
    yield ServerEvent(event="", data="[DONE]")


def cut(text: str) -> list[str]:
    """The text in at most PIECES pieces, none of them empty."""
    size = -(-len(text) // PIECES)
    return [text[start : start + size] for start in range(0, len(text), size)] if text else []


def _event(frame: Mapping[str, object], choices: list[dict[str, object]]) -> ServerEvent:
    return ServerEvent(event="", data=json.dumps({**frame, "choices": choices}))
