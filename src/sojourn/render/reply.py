"""What a reader makes of a provider's answer: exact parts, whatever way they came in.

docs/rendering.md#replies.
"""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias, cast

import msgspec

from sojourn.format.event import Stop, Usage
from sojourn.format.parts import CallPart, ReplyPart
from sojourn.render.refusal import malformed
from sojourn.render.source import SourceError, is_whole, loads, mend, plain_object, read_object

Kind: TypeAlias = Literal["text", "reasoning", "call"]


class Delta(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What just came, for whoever watches; of a call first the tool's name, then its arguments."""

    kind: Kind
    text: str


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A whole answer; `completed` is false when its end was not seen.

    `answered_by` is the model that the provider says has answered, `native_id` its name for it.
    """

    parts: tuple[ReplyPart, ...]
    stop: Stop
    native_stop: str | None
    native_id: str | None
    usage: Usage
    answered_by: str | None
    completed: bool


class StreamEvent(Protocol):
    """One server-sent event: its name (may be empty) and its data."""

    @property
    def event(self) -> str: ...

    @property
    def data(self) -> str: ...


class ReplyReader(Protocol):
    """Puts one answer together; a new reader for each call."""

    def feed(self, event: StreamEvent) -> tuple[Delta, ...]:
        """Take in the next event of the stream.

        Raises: CallError for the provider's own error, and for what is no JSON.
        """
        ...

    def finish(self) -> Reply:
        """The answer, now that the stream is over."""
        ...

    def partial(self) -> Reply:
        """What came so far; the reader can be fed on."""
        ...

    def read_whole(self, data: bytes) -> Reply:
        """The answer from a body that was not streamed.

        Raises: CallError like `feed`.
        """
        ...


Json: TypeAlias = Mapping[str, object]


def event_object(data: str) -> dict[str, object]:
    """The object that an event holds; halves of characters are allowed in its strings.

    Raises: CallError `stream_malformed`.
    """
    plain = plain_object(data)
    if plain is not None:
        return plain
    try:
        return msgspec.convert(loads(data), dict[str, object])
    except (SourceError, msgspec.ValidationError):
        raise malformed("an event of it is not JSON of its API") from None


def inner(value: Json, key: str) -> dict[str, object]:
    """The object under a key, empty when there is none."""
    found = value.get(key)
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def items(value: Json, key: str) -> list[dict[str, object]]:
    """The objects of the list under a key; whatever else it holds is passed over."""
    found = value.get(key)
    if not isinstance(found, list):
        return []
    listed = cast("list[object]", found)
    return [cast("dict[str, object]", one) for one in listed if isinstance(one, dict)]


def string(value: Json, key: str) -> str | None:
    """The string under a key, None when it is absent or something else."""
    found = value.get(key)
    return found if isinstance(found, str) else None


def count(value: Json, key: str) -> int | None:
    """The number under a key as a count, None when it is absent or no such number."""
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        return None
    return min(found, 2**53 - 1)


class Splice:
    """Strings that come in pieces: joined exactly, shown without halves of characters."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """Take in a piece; what of it can be shown now."""
        self._pieces.append(piece)
        if not self._half and (piece.isascii() or is_whole(piece)):
            return piece
        shown = self._half + piece
        self._half = ""
        if shown and "\ud800" <= shown[-1] <= "\udbff":
            shown, self._half = shown[:-1], shown[-1]
        return mend(shown)

    def exact(self) -> str:
        """All of it, halves of characters as they came."""
        return "".join(self._pieces)

    def text(self) -> str:
        """All of it as Unicode: halves joined, a lone one U+FFFD."""
        return mend(self.exact())


def call_part(
    *,
    tool: str,
    arguments: str,
    native_id: str | None,
    cut: bool,
    caller: str | None = None,
) -> CallPart:
    """The part for a call as it came; `cut` when its end was not seen.

    No arguments at all are an empty object, unless the call was cut.
    """
    text = mend(arguments)
    if not cut and (not text.strip() or text.strip() == "null"):
        text = "{}"
    return CallPart(
        tool=mend(tool),
        args=text,
        broken=read_object(text) is None,
        native_id=native_id and mend(native_id),
        caller=caller,
    )


def is_whole_object(text: str) -> bool:
    """Whether the text already holds one whole JSON object."""
    return text.rstrip().endswith("}") and read_object(text) is not None


def settled_stop(stop: Stop, parts: tuple[ReplyPart, ...]) -> Stop:
    """Hosts differ in what they say when calls are asked for: what the reply holds decides."""
    asked = any(isinstance(part, CallPart) for part in parts)
    if asked and stop in ("rest", "other"):
        return "calls"
    return "rest" if stop == "calls" and not asked else stop
