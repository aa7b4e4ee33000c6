"""One answer as it comes: bytes to events, an error among them, and whether the end has come.

End marks: `message_stop` of the Messages API; in Chat Completions a choice with a `finish_reason`,
after which usage and `[DONE]` may follow or not (docs/models.md#end-of-an-answer).
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol, cast

from sojourn.models.sse import SseReader
from sojourn.ports import ServerEvent
from sojourn.render.refusal import Said, read_error


class Malformed(Exception):
    """An event is not what the API sends."""


class Cut(Exception):
    """The bytes ended before the answer did."""


class BrokenOff(Exception):
    """The provider itself says, inside the stream, that it failed; `begun`: after a part."""

    def __init__(self, said: Said, *, begun: bool) -> None:
        super().__init__()
        self.said = said
        self.begun = begun


class Judge(Protocol):
    """`finished`: the reply is whole; `closed`: nothing more will come."""

    finished: bool
    closed: bool

    def error_in(self, event: ServerEvent) -> Said | None:
        """Look at one event; what it says when it is an error.

        Raises: Malformed.
        """
        ...


class MessagesJudge:
    """For the Messages API of Anthropic."""

    def __init__(self) -> None:
        self.finished = False
        self.closed = False

    def error_in(self, event: ServerEvent) -> Said | None:
        value = _object(event.data)
        kind = value.get("type", event.event)
        if kind == "message_stop":
            self.finished = self.closed = True
        return read_error(value) if kind == "error" else None


class ChatJudge:
    """For Chat Completions and the hosts that imitate them."""

    def __init__(self) -> None:
        self.finished = False
        self.closed = False

    def error_in(self, event: ServerEvent) -> Said | None:
        if event.data.strip() == "[DONE]":
            self.closed = True
            return None
        value = _object(event.data)
        if event.event == "error" or value.get("error"):
            return read_error(value)
        choices = value.get("choices")
        for choice in cast("list[object]", choices) if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                reason = cast("dict[str, object]", choice).get("finish_reason")
                self.finished = self.finished or bool(reason)
        return None


class Answer:
    """Reads one answer; `over` once all of the reply is there and only its tail may follow."""

    def __init__(self, dialect: str, *, event_bytes: int) -> None:
        self._judge: Judge = MessagesJudge() if dialect == "anthropic" else ChatJudge()
        self._reader = SseReader(limit=event_bytes)
        self._begun = False
        self._last: ServerEvent | None = None

    @property
    def over(self) -> bool:
        """The reply is whole, or the provider says that nothing more comes."""
        return self._judge.finished or self._judge.closed

    async def events(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[ServerEvent]:
        """The events of these bytes, without pings; returns only when the reply was whole.

        The event after which nothing comes is held back until the bytes end, so that the connection
        can be used again by whoever stops reading there.

        Raises: Malformed, BrokenOff, Cut, EventTooLong, and what `chunks` raises.
        """
        async for chunk in chunks:
            for event in self._reader.feed(chunk):
                self._look_at(event)
                if self._judge.closed:
                    self._last = self._last or event
                elif event.event != "ping":
                    self._begun = True
                    yield event
        if not self.whole():
            raise Cut
        if self._last is not None:
            yield self._last

    def whole(self) -> bool:
        """The bytes end here: whether the reply is whole.

        The end mark counts without the blank line behind it, too.
        """
        ending = self._reader.unfinished()
        if ending is not None and not self.over and self._is_end(ending):
            self._last = ending
        return self._judge.finished

    def _look_at(self, event: ServerEvent) -> None:
        said = None if self._judge.closed else self._judge.error_in(event)
        if said is not None:
            raise BrokenOff(said, begun=self._begun)

    def _is_end(self, event: ServerEvent) -> bool:
        try:
            self._look_at(event)
        except Malformed:
            return False
        return self._judge.finished


def _object(data: str) -> dict[str, object]:
    # Not msgspec: it refuses a lone surrogate, which providers send when they cut an emoji in two.
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise Malformed("an event of it is not JSON") from None
    if not isinstance(value, dict):
        raise Malformed("an event of it is not a JSON object")
    return cast("dict[str, object]", value)
