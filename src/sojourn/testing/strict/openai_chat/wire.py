"""The Chat Completions API's replies and errors as bytes, streamed and not."""

from collections.abc import Iterator, Mapping
from typing import Final

from sojourn.testing.strict.faults import FailKind
from sojourn.testing.strict.openai_chat.hosts import HostRules
from sojourn.testing.strict.refusal import Refusal
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

_STOPS: Final[Mapping[Stop, str]] = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "sequence": "stop",
    "refusal": "content_filter",
    "pause": "stop",
    "window": "length",
}
_CREATED: Final = 1_760_000_000
"""A fixed time, so that equal requests get equal bytes."""
_CONSTANT_ID: Final = "call00000000000000000000000000000000"

FAILURES: Final[Mapping[FailKind, tuple[int, str, str | None, str]]] = {
    "rate_limited": (
        429,
        "requests",
        "rate_limit_exceeded",
        "Rate limit reached for requests. Limit: 3 / min. Please try again in 20s.",
    ),
    "server_error": (
        500,
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    "overloaded": (
        503,
        "server_error",
        None,
        "The engine is currently overloaded, please try again later.",
    ),
    "gateway_page": (502, "server_error", None, "Bad gateway"),
    "too_large": (413, "invalid_request_error", None, "Request body too large"),
    "window": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in"
        " 130213 tokens. Please reduce the length of the messages.",
    ),
    "quota": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "key_wrong": (
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided.",
    ),
    "forbidden": (
        403,
        "invalid_request_error",
        "unsupported_country_region_territory",
        "Country, region, or territory not supported",
    ),
}
"""Status, type, code and message of each failure."""

WINDOW_WORDS: Final[Mapping[str, str]] = {
    "kimi": "Invalid request: Your request exceeded model token limit: 262144",
    "groq": "Please reduce the length of the messages or completion.",
    "xai": "This model's maximum prompt length is 131072 but the request contains 137812 tokens.",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "llama.cpp-thinking": "the request exceeds the available context size, try increasing it",
}
"""How other hosts say that a prompt is longer than the context window."""


def error_body(kind: str, message: str, code: str | None) -> bytes:
    """The body of an error."""
    return to_json({"error": _error(kind, message, code)})


def failure_body(kind: FailKind, host: HostRules) -> bytes:
    """The body of a failure, worded as this host words it."""
    status, name, code, message = FAILURES[kind]
    if kind == "window":
        message = WINDOW_WORDS.get(host.name, message)
    if not host.numeric_codes:
        return error_body(name, message, code)
    error: dict[str, object] = {"code": status, "message": message, "type": name}
    if kind == "window":
        error |= {"type": "exceed_context_size_error", "n_prompt_tokens": 5213, "n_ctx": 4096}
    return to_json({"error": error})


def refusal_body(refusal: Refusal, host: HostRules) -> bytes:
    """The body of a refusal."""
    if host.numeric_codes:
        error = {"code": refusal.status, "message": refusal.message, "type": refusal.type}
        return to_json({"error": error})
    return error_body(refusal.type, refusal.message, refusal.code)


def error_event(kind: FailKind) -> bytes:
    """The event by which a stream says that it failed."""
    _, name, code, message = FAILURES[kind]
    return _event({"error": _error(name, message, code)})


def whole(reply: Reply, wire: Wire, host: HostRules) -> bytes:
    """The reply as one JSON body."""
    message: dict[str, object] = {
        "role": "assistant",
        "content": reply.text or (None if reply.calls else ""),
        "refusal": None,
    }
    if host.reasoning_out is not None and reply.thinking is not None:
        message[host.reasoning_out] = reply.thinking
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": _call_id(call, index, wire, host),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_text(call)},
            }
            for index, call in enumerate(reply.calls)
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _STOPS[reply.reason],
    }
    head = {**_head(wire), "object": "chat.completion"}
    return to_json({**head, "choices": [choice], "usage": _usage(reply, wire)})


def events(reply: Reply, wire: Wire, host: HostRules) -> list[bytes]:
    """The reply as server-sent events, one item each."""
    options = wire.payload.get("stream_options")
    with_usage = is_object(options) and options.get("include_usage") is True
    usage: dict[str, object] = {"usage": None} if with_usage else {}
    head = {**_head(wire), "object": "chat.completion.chunk"}
    found = [
        _event({**head, "choices": [_choice(delta, None)], **usage})
        for delta in _deltas(reply, wire, host)
    ]
    found.append(_event({**head, "choices": [_choice({}, _STOPS[reply.reason])], **usage}))
    if with_usage:
        found.append(_event({**head, "choices": [], "usage": _usage(reply, wire)}))
    found.append(b"data: [DONE]\n\n")
    return found


def _deltas(reply: Reply, wire: Wire, host: HostRules) -> Iterator[dict[str, object]]:
    first = None if reply.calls and not reply.text else ""
    yield {"role": "assistant", "content": first, "refusal": None}
    if host.reasoning_out is not None and reply.thinking is not None:
        for part in pieces(reply.thinking):
            yield {host.reasoning_out: part}
    for part in pieces(reply.text):
        yield {"content": part}
    for index, call in enumerate(reply.calls):
        start = {
            "index": index,
            "id": _call_id(call, index, wire, host),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield {"tool_calls": [start]}
        for part in pieces(arguments_text(call)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _choice(delta: dict[str, object], finish: str | None) -> dict[str, object]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _head(wire: Wire) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{wire.seed[:24]}",
        "created": _CREATED,
        "model": wire.model,
        "system_fingerprint": "fp_strict",
    }


def _usage(reply: Reply, wire: Wire) -> dict[str, object]:
    output = output_tokens(reply)
    return {
        "prompt_tokens": wire.input_tokens,
        "completion_tokens": output,
        "total_tokens": wire.input_tokens + output,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": len(reply.thinking or "") // 4},
    }


def _call_id(call: ToolCall, index: int, wire: Wire, host: HostRules) -> str:
    if call.id is not None:
        return call.id
    match host.call_ids:
        case "unique":
            return f"call_{wire.seed[:22]}{index:02d}"
        case "constant":
            return _CONSTANT_ID
        case "by_name":
            return f"functions.{call.name}:{index}"


def _error(kind: str, message: str, code: str | None) -> dict[str, object]:
    return {"message": message, "type": kind, "param": None, "code": code}


def _event(data: dict[str, object]) -> bytes:
    return b"data: " + to_json(data) + b"\n\n"
