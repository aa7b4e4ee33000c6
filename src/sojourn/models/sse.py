"""Server-sent events from bytes, as the WHATWG specification reads them.

Lines end with CRLF, LF or CR; a line is decoded only when it is whole, so a chunk may end anywhere,
in the middle of a character too. What is no UTF-8 becomes U+FFFD, as that specification says.
"""

from collections.abc import Iterator

from sojourn.ports import ServerEvent

BOM = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """One event is longer than the limit."""


class SseReader:
    """Turns chunks into events; holds at most one unfinished event of `limit` bytes."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._line: list[bytes] = []
        self._size = 0
        self._first = True
        self._after_cr = False
        self._event = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """The events that this chunk completes.

        Raises: EventTooLong.
        """
        if not chunk:
            return
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        # Of bytes, unlike of str, splitlines knows exactly these three line ends.
        for piece in chunk.splitlines(keepends=True):
            text = piece.rstrip(b"\r\n")
            self._size += len(text)
            if self._size > self._limit:
                raise EventTooLong
            self._line.append(text)
            if len(text) == len(piece):
                continue
            if event := self._take_line():
                yield event

    def unfinished(self) -> ServerEvent | None:
        """What the stream ended in: an event without the blank line that ends it, if any."""
        if self._line:
            self._take_line()
        return self._dispatch()

    def _take_line(self) -> ServerEvent | None:
        line = b"".join(self._line)
        self._line.clear()
        if self._first:
            line = line.removeprefix(BOM)
            self._first = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value.decode("utf-8", "replace"))
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        else:
            self._size -= len(line)  # a comment or another field: nothing of it is kept
        return None

    def _dispatch(self) -> ServerEvent | None:
        event, data = self._event, self._data
        self._event, self._data, self._size = "", [], 0
        return ServerEvent(event=event, data="\n".join(data)) if data else None
