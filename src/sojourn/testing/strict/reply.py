"""What a fake model says, in neutral values; each API's `wire` module turns it into bytes."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from sojourn.testing.strict.shape import JsonObject, is_array, is_object

Stop: TypeAlias = Literal["end", "calls", "length", "sequence", "refusal", "pause", "window"]
"""Why a reply ends; the wire modules know each API's word for it."""
STOPS: Final[tuple[Stop, ...]] = get_args(Stop)

_PIECE: Final = 12
"""Characters of one streamed piece of text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One call the model asks for.

    `arguments` is an object, or a text sent as it is (cut or broken JSON). `id` is the host's own
    choice unless given.
    """

    name: str
    arguments: Mapping[str, object] | str
    id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """One reply of the model: thinking, then text, then calls.

    `thinking` is shown only where the request allows it; `redacted` adds a redacted block after
    it (Anthropic). `stop` follows from the calls unless given. Tokens are estimated unless given.
    """

    text: str = ""
    calls: Sequence[ToolCall] = ()
    thinking: str | None = None
    redacted: str | None = None
    stop: Stop | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def reason(self) -> Stop:
        """Why it ends."""
        return self.stop or ("calls" if self.calls else "end")


Replies: TypeAlias = Sequence[Reply] | Callable[[JsonObject], Reply]
"""A list is picked by turn: a request with n assistant messages gets reply n (from 0), so that a
request that is sent again gets the same reply. A function decides by the request body itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """What a wire module needs besides the reply: the request it answers and fresh ids.

    `seed` is a hex text that differs for each request; ids are cut from it.
    """

    payload: JsonObject
    seed: str
    input_tokens: int

    @property
    def model(self) -> str:
        """The model that was asked."""
        return str(self.payload["model"])


class OutOfReplies(Exception):
    """The list of replies is shorter than the conversation."""


def turn_of(payload: JsonObject) -> int:
    """How many assistant messages a request holds, consecutive ones counted once."""
    messages = payload.get("messages")
    roles = [one.get("role") for one in messages if is_object(one)] if is_array(messages) else []
    before: list[object] = [None, *roles]
    return sum(
        role == "assistant" and last != "assistant"
        for last, role in zip(before, roles, strict=False)
    )


def pick(replies: Replies, payload: JsonObject) -> Reply:
    """The reply to this request.

    Raises: OutOfReplies.
    """
    if callable(replies):
        return replies(payload)
    turn = turn_of(payload)
    if turn >= len(replies):
        raise OutOfReplies(f"no reply for turn {turn}: there are {len(replies)}")
    return replies[turn]


def in_order(replies: Sequence[Reply]) -> Callable[[JsonObject], Reply]:
    """Replies given one after the other, whatever the requests say."""
    waiting = iter(replies)

    def next_reply(_payload: JsonObject) -> Reply:
        found = next(waiting, None)
        if found is None:
            raise OutOfReplies(f"all {len(replies)} replies are given")
        return found

    return next_reply


def pieces(text: str) -> Iterator[str]:
    """The text in the small parts in which it is streamed."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def output_tokens(reply: Reply) -> int:
    """The tokens of a reply, as given or roughly counted."""
    if reply.output_tokens is not None:
        return reply.output_tokens
    size = len(reply.text) + len(reply.thinking or "")
    size += sum(len(call.name) + len(str(call.arguments)) for call in reply.calls)
    return max(1, size // 4)


def arguments_text(call: ToolCall) -> str:
    """The arguments of a call as the JSON text that is streamed."""
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False)


def to_json(value: object) -> bytes:
    """Compact JSON in UTF-8; a lone surrogate, which UTF-8 cannot hold, is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
