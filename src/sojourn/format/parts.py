"""The neutral parts of messages, replies and results: what happened, not how a provider writes it.

Foreign JSON (tool arguments, provider blocks) is kept as its source text, so nothing is re-written
(docs/format.md#parts).
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from sojourn.format.layout import MAX_INT
from sojourn.ids import BlobId

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
"""A whole number that every JSON reader reads alike (docs/format.md#json)."""

# `max_length` too, since `$` lets a final line feed through.
Digest: TypeAlias = Annotated[BlobId, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
"""The sha256 of a blob, checked when read."""


class BlobRef(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Names a blob: `size` in bytes, `preview` its first characters (docs/format.md#blobs)."""

    sha256: Digest
    size: Count
    media_type: str
    preview: str = ""


Text: TypeAlias = str | BlobRef
"""A string, or the blob that holds it when it is above 16 KiB of UTF-8."""


class Opaque(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What only its issuer can read: replayed byte for byte to the same issuer, else dropped whole.

    `kind` is one of `anthropic.thinking`, `anthropic.redacted`, `openai.encrypted`,
    `gemini.signature`, `openrouter.details`, or `field:NAME` for a plain field of that name;
    `data` is the JSON source text exactly as received (docs/rendering.md#private-reasoning).
    """

    kind: str
    data: Text


class TextPart(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag_field="type",
    tag="text",
):
    """Visible text; `citations` is the provider's JSON source text, `phase` its label if any."""

    text: Text
    citations: Text | None = None
    phase: str | None = None
    native_id: str | None = None
    opaque: Opaque | None = None


class RefusalPart(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag_field="type",
    tag="refusal",
):
    """The model declined, in these words."""

    text: Text


class ReasoningPart(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag_field="type",
    tag="reasoning",
):
    """The model's reasoning: what is visible of it, and what only its issuer can read."""

    text: Text = ""
    summary: tuple[str, ...] = ()
    native_id: str | None = None
    opaque: Opaque | None = None


class CallPart(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag_field="type",
    tag="call",
):
    """The model asks for a call of `tool`, the name as it wrote it.

    `args` is the JSON source text as received; `broken` when it is not a JSON object. The call's
    key follows from the event and the part's place among its calls (docs/replay.md#call-key).
    """

    tool: str
    args: Text
    broken: bool = False
    native_id: str | None = None
    native_item_id: str | None = None
    caller: str | None = None
    call_kind: Literal["function", "custom"] = "function"
    opaque: Opaque | None = None


class ServerCallPart(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag_field="type",
    tag="server_call",
):
    """A call that the provider made itself: `native` its block's JSON source text."""

    native: Text
    summary: Text = ""


class ServerResultPart(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag_field="type",
    tag="server_result",
):
    """The result of a call that the provider made itself: `native` its block's JSON source text."""

    native: Text
    summary: Text = ""


class MediaPart(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    omit_defaults=True,
    tag_field="type",
    tag="media",
):
    """An image or file: by blob, by url, or by a provider's file id that only `issuer` knows."""

    media_type: str
    blob: BlobRef | None = None
    url: str | None = None
    file_id: str | None = None
    issuer: str | None = None
    name: str | None = None
    width: Count | None = None
    height: Count | None = None
    detail: str | None = None


ContentPart: TypeAlias = TextPart | MediaPart
"""What people and tools can say."""

ReplyPart: TypeAlias = (
    TextPart
    | RefusalPart
    | ReasoningPart
    | CallPart
    | ServerCallPart
    | ServerResultPart
    | MediaPart
)
"""What a model can say, in the order in which it said it."""
