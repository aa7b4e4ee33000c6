"""Messages: how a reply is put together from the blocks of a stream.

docs/rendering.md#anthropic-replies.
"""

from typing import Final

from sojourn.format.event import Stop, Usage
from sojourn.format.parts import (
    Opaque,
    ReasoningPart,
    ReplyPart,
    ServerCallPart,
    ServerResultPart,
    TextPart,
)
from sojourn.render.private import BLOCK_KIND
from sojourn.render.refusal import call_error, read_error
from sojourn.render.reply import (
    Delta,
    Json,
    Reply,
    Splice,
    StreamEvent,
    call_part,
    count,
    event_object,
    inner,
    items,
    settled_stop,
    string,
)
from sojourn.render.source import mend, mend_value, read_object, write

_STOPS: Final[dict[str, Stop]] = {
    "end_turn": "rest",
    "tool_use": "calls",
    "max_tokens": "length",
    "stop_sequence": "stop_text",
    "pause_turn": "paused",
    "refusal": "refused",
    "model_context_window_exceeded": "overflow",
}
_GROWS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The string that each kind of delta adds to."""
SHOWN: Final = 2000
"""Characters of a server block's summary."""


class _Block:
    """A content block that is coming in: what it started with, and what its deltas add."""

    def __init__(self, start: Json) -> None:
        self.start = dict(start)
        self.kind = string(start, "type") or ""
        self.grown: dict[str, Splice] = {}
        self.citations: list[object] = list(items(start, "citations"))
        self.closed = False
        for name in ("text", "thinking", "signature"):
            given = string(start, name)
            if given:
                self.grow(name, given)

    def grow(self, name: str, piece: str) -> str:
        """Add to one of its strings; what of that can be shown."""
        return self.grown.setdefault(name, Splice()).add(piece)

    def exact(self, name: str) -> str:
        """One of its strings as it came."""
        return self.grown[name].exact() if name in self.grown else ""

    def add_unknown(self, delta: Json) -> None:
        """A delta of a kind not known here: strings grow, anything else is replaced."""
        for key, value in delta.items():
            known = self.start.get(key)
            if key == "type":
                continue
            if isinstance(known, str) and isinstance(value, str):
                self.start[key] = known + value
            elif value is not None:
                self.start[key] = value


class MessagesReader:
    """Reads one reply of the Messages API."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._stop: str | None = None
        self._id: str | None = None
        self._model: str | None = None
        self._usage: dict[str, object] = {}
        self._ended = False

    def feed(self, event: StreamEvent) -> tuple[Delta, ...]:
        """Take in one event; pings, and kinds not known here, say nothing."""
        if not event.data.strip():
            return ()
        body = event_object(event.data)
        match string(body, "type") or event.event:
            case "message_start":
                self._message(inner(body, "message"))
            case "content_block_start":
                return self._start(body)
            case "content_block_delta":
                return self._delta(body)
            case "content_block_stop":
                block = self._blocks.get(count(body, "index") or 0)
                if block is not None:
                    block.closed = True
            case "message_delta":
                self._stop = string(inner(body, "delta"), "stop_reason") or self._stop
                self._add_usage(inner(body, "usage"))
            case "message_stop":
                self._ended = True
            case "error":
                raise call_error(read_error(body))
            case _:
                pass
        return ()

    def read_whole(self, data: bytes) -> Reply:
        """The reply of a body that was not streamed."""
        body = event_object(data.decode("utf-8", "replace"))
        if string(body, "type") == "error":
            raise call_error(read_error(body))
        self._message(body)
        for index, start in enumerate(items(body, "content")):
            self._blocks[index] = _Block(start)
            self._blocks[index].closed = True
        self._stop = string(body, "stop_reason")
        self._ended = self._stop is not None
        return self.partial()

    def finish(self) -> Reply:
        """The reply; completed once `message_stop` came."""
        return self.partial()

    def partial(self) -> Reply:
        """The reply as far as it came."""
        found = (self._part(self._blocks[index]) for index in sorted(self._blocks))
        parts = tuple(part for part in found if part is not None)
        stop: Stop = "other"
        if self._stop is not None:
            stop = settled_stop(_STOPS.get(self._stop, "other"), parts)
        return Reply(
            parts=parts,
            stop=stop,
            native_stop=None if self._stop is None else mend(self._stop),
            native_id=self._id,
            usage=_usage(self._usage),
            answered_by=self._model,
            completed=self._ended,
        )

    def _message(self, message: Json) -> None:
        self._id = mend(string(message, "id") or "") or None
        self._model = mend(string(message, "model") or "") or None
        self._add_usage(inner(message, "usage"))

    def _add_usage(self, usage: Json) -> None:
        """Counts are totals so far: a later one replaces an earlier one."""
        self._usage |= {key: value for key, value in usage.items() if value is not None}

    def _start(self, body: Json) -> tuple[Delta, ...]:
        block = _Block(inner(body, "content_block"))
        self._blocks[self._index(body)] = block
        if block.kind == "tool_use":
            return (Delta(kind="call", text=mend(string(block.start, "name") or "")),)
        first = block.exact("text") or block.exact("thinking")
        kind = "reasoning" if block.kind == "thinking" else "text"
        return (Delta(kind=kind, text=mend(first)),) if first else ()

    def _index(self, body: Json) -> int:
        given = count(body, "index")
        return len(self._blocks) if given is None else given

    def _delta(self, body: Json) -> tuple[Delta, ...]:
        index = count(body, "index")
        if index is None and self._blocks:
            index = max(self._blocks)
        block = self._blocks.get(index or 0)
        if block is None:
            return ()
        delta = inner(body, "delta")
        kind = string(delta, "type") or ""
        name = _GROWS.get(kind)
        if kind == "citations_delta":
            block.citations.append(delta.get("citation"))
        elif name is None:
            block.add_unknown(delta)
        else:
            return self._grown(block, name, string(delta, name) or "")
        return ()

    def _grown(self, block: _Block, name: str, piece: str) -> tuple[Delta, ...]:
        shown = block.grow(name, piece)
        if not shown:
            return ()
        if name == "text":
            return (Delta(kind="text", text=shown),)
        if name == "thinking":
            return (Delta(kind="reasoning", text=shown),)
        if name == "partial_json" and block.kind == "tool_use":
            return (Delta(kind="call", text=shown),)
        return ()

    def _part(self, block: _Block) -> ReplyPart | None:
        kind = block.kind
        if kind == "text":
            text = mend(block.exact("text"))
            citations = write(block.citations) if block.citations else None
            return TextPart(text=text, citations=citations) if text else None
        if kind == "thinking":
            return _thinking(block)
        if kind == "redacted_thinking":
            opaque = Opaque(kind="anthropic.redacted", data=write(block.start))
            return ReasoningPart(opaque=opaque)
        if kind == "tool_use":
            return self._call(block)
        if kind.endswith("_tool_use"):
            arguments = read_object(block.exact("partial_json"))
            native = block.start if arguments is None else block.start | {"input": arguments}
            summary = f"{string(block.start, 'name') or kind} {write(native.get('input'))}"
            return ServerCallPart(native=write(native), summary=mend(summary)[:SHOWN])
        if kind.endswith("_tool_result"):
            summary = f"{kind}: {write(mend_value(block.start.get('content')))}"
            return ServerResultPart(native=write(block.start), summary=summary[:SHOWN])
        return ReasoningPart(opaque=Opaque(kind=BLOCK_KIND, data=write(block.start)))

    def _call(self, block: _Block) -> ReplyPart:
        arguments = block.exact("partial_json")
        given = block.start.get("input")
        if not arguments.strip() and given:
            arguments = write(given)
        caller = inner(block.start, "caller")
        known = bool(caller) and caller.get("type") != "direct"
        return call_part(
            tool=string(block.start, "name") or "",
            arguments=arguments,
            native_id=string(block.start, "id"),
            cut=not block.closed or (self._stop == "max_tokens" and self._is_last(block)),
            caller=write(caller) if known else None,
        )

    def _is_last(self, block: _Block) -> bool:
        return block is self._blocks[max(self._blocks)]


def _thinking(block: _Block) -> ReplyPart:
    """Text and signature exactly as they came; without a signature nothing can go back."""
    text, signature = block.exact("thinking"), block.exact("signature")
    if not signature:
        return ReasoningPart(text=mend(text))
    whole = block.start | {"thinking": text, "signature": signature}
    return ReasoningPart(
        text=mend(text), opaque=Opaque(kind="anthropic.thinking", data=write(whole))
    )


def _usage(usage: Json) -> Usage:
    written = inner(usage, "cache_creation")
    long = count(written, "ephemeral_1h_input_tokens") or 0
    short = count(written, "ephemeral_5m_input_tokens")
    if short is None:
        short = max(0, (count(usage, "cache_creation_input_tokens") or 0) - long)
    tools = inner(usage, "server_tool_use")
    return Usage(
        input=count(usage, "input_tokens") or 0,
        output=count(usage, "output_tokens") or 0,
        cache_read=count(usage, "cache_read_input_tokens") or 0,
        cache_write=short,
        cache_write_long=long,
        reasoning=count(inner(usage, "output_tokens_details"), "thinking_tokens") or 0,
        server_tools={name: number for name in tools if (number := count(tools, name))},
    )
