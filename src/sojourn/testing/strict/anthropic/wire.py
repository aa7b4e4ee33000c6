"""The Messages API's replies and errors as bytes, streamed and not."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from sojourn.testing.strict.anthropic.thinking import mode_of
from sojourn.testing.strict.faults import FailKind
from sojourn.testing.strict.reply import (
    Reply,
    Stop,
    ToolCall,
    Wire,
    arguments_text,
    output_tokens,
    pieces,
    to_json,
)
from sojourn.testing.strict.shape import is_object
from sojourn.testing.strict.signatures import redact, sign

_STOPS: Final[Mapping[Stop, str]] = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "sequence": "stop_sequence",
    "refusal": "refusal",
    "pause": "pause_turn",
    "window": "model_context_window_exceeded",
}

FAILURES: Final[Mapping[FailKind, tuple[int, str, str]]] = {
    "rate_limited": (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50 requests per minute.",
    ),
    "server_error": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "gateway_page": (502, "api_error", "Bad gateway"),
    "too_large": (413, "request_too_large", "Request exceeds the maximum size"),
    "window": (
        400,
        "invalid_request_error",
        "prompt is too long: 215336 tokens > 200000 maximum",
    ),
    "quota": (
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API.",
    ),
    "key_wrong": (401, "authentication_error", "invalid x-api-key"),
    "forbidden": (
        403,
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
}
"""Status, type and message of each failure."""


def error_body(kind: str, message: str, seed: str) -> bytes:
    """The body of an error."""
    error = {"type": kind, "message": message}
    return to_json({"type": "error", "error": error, "request_id": f"req_01{seed[:22]}"})


def error_event(kind: FailKind) -> bytes:
    """The event by which a stream says that it failed."""
    _, name, message = FAILURES[kind]
    return _event("error", {"error": {"type": name, "message": message}})


def whole(reply: Reply, wire: Wire) -> bytes:
    """The reply as one JSON body."""
    message = _message(reply, wire)
    message["content"] = _blocks(reply, wire)
    message["stop_reason"] = _STOPS[reply.reason]
    return to_json(message)


def events(reply: Reply, wire: Wire) -> list[bytes]:
    """The reply as server-sent events, one item each."""
    return list(_events(reply, wire))


def _events(reply: Reply, wire: Wire) -> Iterator[bytes]:
    message = _message(reply, wire)
    message["usage"] = {**_usage(wire), "output_tokens": 1}
    yield _event("message_start", {"message": message})
    blocks = _blocks(reply, wire)
    first_call = len(blocks) - len(reply.calls)
    for index, block in enumerate(blocks):
        start = {**block, **_EMPTY.get(str(block["type"]), {})}
        yield _event("content_block_start", {"index": index, "content_block": start})
        if index == 0:
            yield _event("ping", {})
        call = reply.calls[index - first_call] if index >= first_call else None
        for delta in _deltas(block, call):
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    yield _event(
        "message_delta",
        {
            "delta": {"stop_reason": _STOPS[reply.reason], "stop_sequence": None},
            "usage": {"output_tokens": output_tokens(reply)},
        },
    )
    yield _event("message_stop", {})


_EMPTY: Final[Mapping[str, dict[str, object]]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}
"""What a block starts with; its deltas fill it."""


def _deltas(block: dict[str, object], call: ToolCall | None) -> Iterator[dict[str, object]]:
    if call is not None:
        yield {"type": "input_json_delta", "partial_json": ""}
        for part in pieces(arguments_text(call)):
            yield {"type": "input_json_delta", "partial_json": part}
    elif block["type"] == "text":
        for part in pieces(str(block["text"])):
            yield {"type": "text_delta", "text": part}
    elif block["type"] == "thinking":
        for part in pieces(str(block["thinking"])):
            yield {"type": "thinking_delta", "thinking": part}
        yield {"type": "signature_delta", "signature": block["signature"]}


def _message(reply: Reply, wire: Wire) -> dict[str, object]:
    return {
        "id": f"msg_01{wire.seed[:22]}",
        "type": "message",
        "role": "assistant",
        "model": wire.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_usage(wire), "output_tokens": output_tokens(reply)},
    }


def _usage(wire: Wire) -> dict[str, object]:
    return {
        "input_tokens": wire.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "service_tier": "standard",
    }


def _blocks(reply: Reply, wire: Wire) -> list[dict[str, object]]:
    blocks = _thinking(reply, wire)
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for index, call in enumerate(reply.calls):
        blocks.append(
            {
                "type": "tool_use",
                "id": _call_id(call, index, wire),
                "name": call.name,
                "input": _input(call),
            }
        )
    return blocks


def _thinking(reply: Reply, wire: Wire) -> list[dict[str, object]]:
    """Signed blocks, if the request turned thinking on; without text if it asked for that."""
    if mode_of(dict(wire.payload)) == "disabled":
        return []
    option = wire.payload["thinking"]
    omitted = is_object(option) and option.get("display") == "omitted"
    blocks: list[dict[str, object]] = []
    count = (reply.thinking is not None) + (reply.redacted is not None)
    if reply.thinking is not None:
        text = "" if omitted else reply.thinking
        signature = sign(model=wire.model, text=text, index=0, of=count)
        blocks.append({"type": "thinking", "thinking": text, "signature": signature})
    if reply.redacted is not None:
        data = redact(model=wire.model, text=reply.redacted, index=count - 1, of=count)
        blocks.append({"type": "redacted_thinking", "data": data})
    return blocks


def _call_id(call: ToolCall, index: int, wire: Wire) -> str:
    return call.id or f"toolu_01{wire.seed[:20]}{index:02d}"


def _input(call: ToolCall) -> object:
    """The parsed input; broken JSON, which a whole message cannot carry, becomes an empty one."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        parsed: object = json.loads(call.arguments)
    except ValueError:
        return {}
    return parsed if is_object(parsed) else {}


def _event(name: str, data: dict[str, object]) -> bytes:
    return f"event: {name}\ndata: ".encode() + to_json({"type": name, **data}) + b"\n\n"
