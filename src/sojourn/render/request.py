"""What rendering gives: the request, what it binds its sender to, and what was lost on the way."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

import msgspec

from sojourn.core.notices import Notice
from sojourn.core.view import Call, Prompt, Replied, Said
from sojourn.format.event import Issuer
from sojourn.format.parts import (
    BlobRef,
    CallPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    ReplyPart,
    ServerCallPart,
    ServerResultPart,
    Text,
    TextPart,
)
from sojourn.ids import BlobId, EventId
from sojourn.render.profile import Profile


class Target(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whom a request is for."""

    issuer: Issuer
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What whoever sends the request must respect.

    `thinking_allowed` is false when the messages rule reasoning out for this one request;
    `needs_tools` is true when the messages hold calls, so that tools may not be taken away.
    """

    thinking_allowed: bool
    needs_tools: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something that the log holds and the request does not, or not as it was.

    `code` is one of `LOSSES`, `event` where it came from (None: the whole request).
    """

    code: str
    event: EventId | None
    detail: str


LOSSES: Final[Mapping[str, str]] = {
    "unfinished_dropped": "a reply that was cut off is left out",
    "turn_omitted": "a reply with nothing left to show is left out",
    "reasoning_dropped": "private reasoning of this kind stays behind",
    "citations_dropped": "citations of another issuer stay behind",
    "server_call_summarised": "a call of a provider's own goes as words",
    "call_answered": "a call that the log holds no result for is answered by the runtime",
    "result_dropped": "a second result of a call, or one without its call, is left out",
    "arguments_wrapped": "arguments that were no JSON object go as their text",
    "id_changed": "a call goes under another id",
    "name_changed": "a tool goes under another name",
    "tools_stubbed": "tools are declared for earlier calls only",
    "tool_dropped": "the second of two tools of one name is left out",
    "schema_replaced": "a tool's schema that was not one of an object goes as an empty one",
    "media_left_out": "media go as a line of text",
    "blank_dropped": "blank text is left out",
    "text_mended": "lone surrogates go as U+FFFD",
    "option_changed": "an option that this model does not take, or not with this value, is changed",
    "bridge_added": "a word of the runtime stands between or after replies",
}
"""Every code of a loss and what it means, in the words of docs/rendering.md#losses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A request: JSON values only, keys in the order in which they are sent."""

    payload: dict[str, object]
    constraints: Constraints
    losses: tuple[Loss, ...]


def render_bytes(payload: Mapping[str, object]) -> bytes:
    """The request as it is sent: compact UTF-8 JSON, keys in the order in which they stand."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def blobs_needed(prompt: Prompt) -> frozenset[BlobId]:
    """Every blob that rendering this prompt reads: texts that are blobs, and media."""
    found = {ref.sha256 for ref in _references(prompt)}
    return frozenset(found)


def _references(prompt: Prompt) -> Iterator[BlobRef]:
    yield from _refs(prompt.system, *(tool.schema for tool in prompt.tools))
    for entry in prompt.entries:
        match entry:
            case Said():
                yield from _of_parts(entry.parts)
            case Notice():
                yield from _of_parts(entry.attached)
            case Replied():
                yield from _of_parts(entry.parts)
                for call in entry.calls:
                    yield from _of_result(call)
            case _:
                assert_never(entry)


def _of_result(call: Call) -> Iterator[BlobRef]:
    if call.result is not None:
        yield from _of_parts(call.result.parts)
        failure = call.result.failure
        yield from _refs(failure.message if failure else None)


def _of_parts(parts: tuple[ReplyPart, ...]) -> Iterator[BlobRef]:
    for part in parts:
        match part:
            case TextPart():
                data = part.opaque.data if part.opaque else None
                yield from _refs(part.text, part.citations, data)
            case RefusalPart():
                yield from _refs(part.text)
            case ReasoningPart():
                yield from _refs(part.text, part.opaque.data if part.opaque else None)
            case CallPart():
                yield from _refs(part.args, part.opaque.data if part.opaque else None)
            case ServerCallPart() | ServerResultPart():
                yield from _refs(part.native, part.summary)
            case MediaPart():
                if part.blob is not None:
                    yield part.blob
            case _:
                assert_never(part)


def _refs(*texts: Text | None) -> Iterator[BlobRef]:
    return (text for text in texts if isinstance(text, BlobRef))
