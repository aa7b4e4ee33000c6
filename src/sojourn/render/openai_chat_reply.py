"""Chat Completions: how a reply is put together, and what the hosts do to it on the way.

docs/rendering.md#openai-chat-replies.
"""

from dataclasses import dataclass, field
from typing import Final

from sojourn.format.event import Stop, Usage
from sojourn.format.parts import Opaque, ReasoningPart, RefusalPart, ReplyPart, TextPart
from sojourn.render.private import field_kind
from sojourn.render.refusal import call_error, read_error
from sojourn.render.reply import (
    Delta,
    Json,
    Kind,
    Reply,
    Splice,
    StreamEvent,
    call_part,
    count,
    event_object,
    inner,
    is_whole_object,
    items,
    settled_stop,
    string,
)
from sojourn.render.source import mend, write

REASONING_FIELDS: Final = ("reasoning_content", "reasoning")
"""Plain fields in which hosts show their reasoning; at most one of them is used in a reply."""
DETAILS: Final = "reasoning_details"

_STOPS: Final[dict[str, Stop]] = {
    "stop": "rest",
    "end_turn": "rest",
    "eos": "rest",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refused",
}


@dataclass(slots=True)
class _Open:
    """A call that is coming in."""

    index: int | None
    id: str | None = None
    tool: str = ""
    arguments: Splice = field(default_factory=Splice)


class ChatReader:
    """Reads one reply of the Chat Completions API."""

    def __init__(self) -> None:
        self._text = Splice()
        self._refusal = Splice()
        self._fields: dict[str, Splice] = {}
        self._details: list[object] = []
        self._calls: list[_Open] = []
        self._order: list[str] = []
        self._stop: str | None = None
        self._id: str | None = None
        self._model: str | None = None
        self._usage = Usage()

    def feed(self, event: StreamEvent) -> tuple[Delta, ...]:
        """Take in one chunk; `[DONE]` and empty data say nothing."""
        data = event.data.strip()
        if not data or data == "[DONE]":
            return ()
        chunk = event_object(data)
        self._raise_error(chunk, event.event)
        return self._chunk(chunk, "delta")

    def read_whole(self, data: bytes) -> Reply:
        """The reply of a body that was not streamed."""
        body = event_object(data.decode("utf-8", "replace"))
        self._raise_error(body, "")
        self._chunk(body, "message")
        return self.finish()

    def finish(self) -> Reply:
        """The reply; completed once a finish reason came."""
        return self.partial()

    def partial(self) -> Reply:
        """The reply as far as it came."""
        parts = self._parts()
        stop: Stop = "other"
        if self._stop is not None:
            stop = settled_stop(_STOPS.get(self._stop, "other"), parts)
        if stop == "rest" and self._refusal.exact():
            stop = "refused"
        return Reply(
            parts=parts,
            stop=stop,
            native_stop=self._stop,
            native_id=self._id,
            usage=self._usage,
            answered_by=self._model,
            completed=self._stop is not None,
        )

    def _raise_error(self, chunk: Json, event: str) -> None:
        if event == "error" or chunk.get("error"):
            raise call_error(read_error(chunk))

    def _chunk(self, chunk: Json, key: str) -> tuple[Delta, ...]:
        self._id = self._id or _mended(string(chunk, "id"))
        self._model = self._model or _mended(string(chunk, "model"))
        usage = inner(chunk, "usage")
        if usage:
            self._usage = _usage(usage)
        shown: list[Delta] = []
        for choice in items(chunk, "choices"):
            if choice.get("index") not in (0, None):
                continue
            self._message(inner(choice, key), shown)
            self._stop = _mended(string(choice, "finish_reason")) or self._stop
        return tuple(shown)

    def _message(self, delta: Json, shown: list[Delta]) -> None:
        self._reasoning(delta, shown)
        content = delta.get("content")
        texts = [content] if isinstance(content, str) else _texts(delta)
        for text in texts:
            if text:
                self._came("text")
                _show(shown, "text", self._text.add(text))
        refusal = string(delta, "refusal")
        if refusal:
            self._came("refusal")
            _show(shown, "text", self._refusal.add(refusal))
        for call in items(delta, "tool_calls"):
            self._came("calls")
            self._call(call, shown)

    def _came(self, what: str) -> None:
        if what not in self._order:
            self._order.append(what)

    def _reasoning(self, delta: Json, shown: list[Delta]) -> None:
        details = delta.get(DETAILS)
        if isinstance(details, list):
            self._came("reasoning")
            self._details += items(delta, DETAILS)
        for name in REASONING_FIELDS:
            piece = string(delta, name)
            if piece is None:
                continue
            self._came("reasoning")
            text = self._fields.setdefault(name, Splice()).add(piece)
            if name == next(iter(self._fields)):
                _show(shown, "reasoning", text)

    def _call(self, delta: Json, shown: list[Delta]) -> None:
        function = inner(delta, "function")
        tool = string(function, "name") or ""
        given = function.get("arguments")
        arguments = given if isinstance(given, str) else "" if given is None else write(given)
        call = self._find(count(delta, "index"), string(delta, "id"), tool, arguments)
        call.id = call.id or string(delta, "id") or None
        if tool and not call.tool:
            call.tool = tool
            _show(shown, "call", mend(tool))
        _show(shown, "call", call.arguments.add(arguments))

    def _find(self, index: int | None, id: str | None, tool: str, arguments: str) -> _Open:
        """The call that a piece belongs to; hosts leave out or repeat its index and its id."""
        same = [call for call in self._calls if call.index == index]
        found = same[-1] if same else None
        if found is None and index is None and self._calls and not (id or tool):
            found = self._calls[-1]
        if found is None or _is_another(found, id, tool, arguments):
            found = _Open(index=index)
            self._calls.append(found)
        elif arguments.lstrip().startswith("{") and found.arguments.exact().strip() == "{}":
            found.arguments = Splice()
        return found

    def _parts(self) -> tuple[ReplyPart, ...]:
        parts: list[ReplyPart] = []
        for what in self._order:
            if what == "reasoning":
                parts += self._reasoning_parts()
            elif what == "text":
                parts.append(TextPart(text=self._text.text()))
            elif what == "refusal":
                parts.append(RefusalPart(text=self._refusal.text()))
            else:
                parts += self._call_parts()
        return tuple(parts)

    def _reasoning_parts(self) -> list[ReplyPart]:
        parts: list[ReplyPart] = []
        for name, splice in self._fields.items():
            opaque = Opaque(kind=field_kind(name), data=write(splice.exact()))
            text = "" if parts else splice.text()
            parts.append(ReasoningPart(text=text, opaque=opaque))
        if self._details:
            opaque = Opaque(kind=field_kind(DETAILS), data=write(_joined(self._details)))
            parts.append(ReasoningPart(opaque=opaque))
        return parts

    def _call_parts(self) -> list[ReplyPart]:
        last = len(self._calls) - 1
        open_end = self._stop in (None, "length")
        return [
            call_part(
                tool=call.tool,
                arguments=call.arguments.exact(),
                native_id=call.id,
                cut=open_end and number == last,
            )
            for number, call in enumerate(self._calls)
        ]


def _show(shown: list[Delta], kind: Kind, text: str) -> None:
    if text:
        shown.append(Delta(kind=kind, text=text))


def _is_another(found: _Open, id: str | None, tool: str, arguments: str) -> bool:
    """Whether a piece that looks like one of an earlier call begins a new one.

    It does when it brings another id or name, or names the tool again behind a whole object.
    """
    if id and found.id and id != found.id:
        return True
    if not tool or not found.tool:
        return False
    anew = arguments.lstrip().startswith("{")
    return tool != found.tool or (anew and is_whole_object(found.arguments.exact()))


def _texts(delta: Json) -> list[str]:
    """The texts of a content that is a list of parts."""
    found = (string(part, "text") for part in items(delta, "content"))
    return [text for text in found if text is not None]


def _mended(text: str | None) -> str | None:
    return None if text is None else mend(text)


def _joined(details: list[object]) -> list[object]:
    """Pieces of reasoning details, those with one index and type put together again."""
    whole: list[dict[str, object]] = []
    for piece in details:
        part = inner({"it": piece}, "it")
        last = whole[-1] if whole else None
        same = last is not None and part.get("index") is not None
        if last is None or not same or any(part.get(k) != last.get(k) for k in ("index", "type")):
            whole.append(dict(part))
            continue
        for key, value in part.items():
            known = last.get(key)
            grows = key in ("text", "summary", "data") and isinstance(known, str)
            if grows and isinstance(value, str):
                last[key] = f"{known}{value}"
            elif value is not None:
                last[key] = value
    return list(whole)


def _usage(usage: Json) -> Usage:
    prompt, output = (
        inner(usage, "prompt_tokens_details"),
        inner(usage, "completion_tokens_details"),
    )
    cached = count(prompt, "cached_tokens")
    if cached is None:
        cached = count(usage, "prompt_cache_hit_tokens")
    return Usage(
        input=count(usage, "prompt_tokens") or 0,
        output=count(usage, "completion_tokens") or 0,
        cache_read=cached or 0,
        cache_write=count(prompt, "cache_write_tokens") or 0,
        reasoning=count(output, "reasoning_tokens") or 0,
    )
