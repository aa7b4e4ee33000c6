"""The request in the making: neutral messages, whole texts, before any API's shape.

`lay_out` makes it from a prompt, in the order of the log; the passes of `prompt` then turn it into
one that a provider accepts (docs/rendering.md#passes).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from sojourn.core.notices import Notice
from sojourn.core.view import Call, Prompt, Replied, Said
from sojourn.errors import FormatError
from sojourn.format.event import CallStatus, Failure, Issuer, Options, Stop, ToolSpec
from sojourn.format.parts import (
    BlobRef,
    CallPart,
    ContentPart,
    MediaPart,
    ReasoningPart,
    RefusalPart,
    ReplyPart,
    ServerCallPart,
    ServerResultPart,
    Text,
    TextPart,
)
from sojourn.ids import BlobId, CallKey, EventId
from sojourn.render import says
from sojourn.render.request import Loss, Target
from sojourn.render.source import read_object


class Words(msgspec.Struct, frozen=True, gc=False):
    """Visible text; `citations` is JSON source text, `refusal` when the model declined so."""

    text: str
    citations: str | None = None
    refusal: bool = False


class Private(msgspec.Struct, frozen=True, gc=False):
    """Reasoning that only its issuer can read, as JSON source text; no kind: in no such form."""

    kind: str | None
    data: str


class Ask(msgspec.Struct, frozen=True, gc=False):
    """A call the model asked for.

    `arguments` is JSON source text, `value` the object it holds once `wrap_arguments` has seen it.
    """

    key: CallKey
    wire_id: str
    tool: str
    arguments: str
    value: dict[str, object] | None = None
    caller: str | None = None


class Served(msgspec.Struct, frozen=True, gc=False):
    """A call that the provider made itself, or its result: its block's JSON source text.

    `value` is the block, once `filter_private` has let it pass.
    """

    native: str
    summary: str
    is_result: bool
    value: dict[str, object] | None = None


class Media(msgspec.Struct, frozen=True, gc=False):
    """An image or file: its bytes, or where the target finds it; `title` says what it is."""

    media_type: str
    title: str
    data: bytes | None = None
    url: str | None = None
    file_id: str | None = None
    file_scope: str | None = None
    side: int = 0
    detail: str | None = None


Piece: TypeAlias = Words | Private | Ask | Served | Media


class FromUser(msgspec.Struct, frozen=True, gc=False):
    """What a person said, or what the runtime tells the model."""

    event: EventId | None
    pieces: tuple[Piece, ...]


class FromModel(msgspec.Struct, frozen=True, gc=False):
    """A reply; `own` when the target itself made it."""

    event: EventId
    own: bool
    completed: bool
    stop: Stop
    pieces: tuple[Piece, ...]
    calls: tuple[Call, ...]


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The result of one call, as the model reads it."""

    key: CallKey
    wire_id: str
    tool: str
    failed: bool
    pieces: tuple[Piece, ...]


class Answers(msgspec.Struct, frozen=True, gc=False):
    """The results of one batch; `after` is user content that belongs to them."""

    event: EventId
    answers: tuple[Answer, ...]
    after: tuple[Piece, ...] = ()


Message: TypeAlias = FromUser | FromModel | Answers


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A tool as it is offered."""

    name: str
    description: str
    schema: dict[str, object]


class Draft(msgspec.Struct, frozen=True, gc=False):
    """All of a request but its shape.

    `stubs` when the offers only name the tools of earlier calls and none may be called;
    `thinking_allowed` is false when the messages rule it out.
    """

    system: str
    notes: str
    options: Options
    offers: tuple[Offer, ...]
    stubs: bool
    thinking_allowed: bool
    messages: tuple[Message, ...]
    losses: tuple[Loss, ...]


Pass: TypeAlias = Callable[[Draft, Target], Draft]


def with_losses(draft: Draft, messages: list[Message], losses: list[Loss]) -> Draft:
    """The draft with these messages, and with losses added to those it had."""
    return replace(draft, messages=tuple(messages), losses=draft.losses + tuple(losses))


def file_scope(issuer: Issuer) -> str:
    """What a media part's `issuer` says of a file id: who can resolve it (not: which model)."""
    return f"{issuer.provider} {issuer.api} {issuer.scope}"


def lay_out(prompt: Prompt, target: Target, blobs: Mapping[BlobId, bytes]) -> Draft:
    """The draft in the order of the log, texts whole; results stand where their batch ended.

    Raises: FormatError `blob_missing`.
    """
    read = _Reader(blobs)
    losses: list[Loss] = []
    offers = tuple(_offer(read, tool, losses) for tool in prompt.tools)
    messages: list[Message] = []
    open_batch: Answers | None = None
    for entry in prompt.entries:
        match entry:
            case Said():
                messages.append(FromUser(entry.event, read.content(entry.parts)))
            case Notice():
                head = Words(says.NOTICE.format(text=entry.text))
                messages.append(FromUser(entry.event, (head, *read.content(entry.attached))))
            case Replied():
                if open_batch is not None:
                    messages.append(open_batch)
                messages.append(read.reply(entry, own=entry.issuer == target.issuer))
                open_batch = read.results(entry)
            case _:
                assert_never(entry)
    if open_batch is not None:
        messages.append(open_batch)
    return Draft(
        system=read.text(prompt.system),
        notes=prompt.memory,
        options=prompt.options,
        offers=offers,
        stubs=False,
        thinking_allowed=True,
        messages=tuple(messages),
        losses=tuple(losses),
    )


def _offer(read: "_Reader", tool: ToolSpec, losses: list[Loss]) -> Offer:
    schema = read_object(read.text(tool.schema)) or {}
    if schema.get("type") != "object":
        losses.append(Loss(code="schema_replaced", event=None, detail=tool.name))
        return Offer(tool.name, tool.description, {"type": "object"})
    return Offer(tool.name, tool.description, schema)


def unknown_text(call: Call, *, known: str | None = None, output: bool = False) -> str:
    """What the model reads of a call that began and has no certain end (docs/replay.md)."""
    lines = [says.UNKNOWN]
    if call.verify_with:
        lines.append(says.VERIFY_WITH.format(tools=", ".join(call.verify_with)))
    if known:
        lines.append(says.KNOWN.format(message=known))
    if output:
        lines.append(says.OUTPUT_SO_FAR)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Turns parts into pieces, and references into what they name."""

    blobs: Mapping[BlobId, bytes]

    def data(self, ref: BlobRef) -> bytes:
        found = self.blobs.get(ref.sha256)
        if found is None:
            raise FormatError(
                f"the blob {ref.sha256} that the prompt refers to was not given",
                code="blob_missing",
                file=f"artifacts/blobs/{ref.sha256}",
            )
        return found

    def text(self, text: Text) -> str:
        if isinstance(text, str):
            return text
        return self.data(text).decode("utf-8", "replace")

    def content(self, parts: tuple[ContentPart, ...]) -> tuple[Piece, ...]:
        return tuple(self.piece(part) for part in parts)

    def piece(self, part: TextPart | MediaPart) -> Piece:
        if isinstance(part, MediaPart):
            return self.media(part)
        citations = None if part.citations is None else self.text(part.citations)
        return Words(self.text(part.text), citations)

    def media(self, part: MediaPart) -> Media:
        name = f" {part.name}" if part.name else ""
        what: Literal["image", "file"] = "file"
        if part.media_type.startswith("image/"):
            what = "image"
        return Media(
            media_type=part.media_type,
            title=f"{what}{name} ({part.media_type})",
            data=None if part.blob is None else self.data(part.blob),
            url=part.url,
            file_id=part.file_id,
            file_scope=part.issuer,
            side=max(part.width or 0, part.height or 0),
            detail=part.detail,
        )

    def reply(self, entry: Replied, *, own: bool) -> FromModel:
        return FromModel(
            event=entry.event,
            own=own,
            completed=entry.completed,
            stop=entry.stop,
            pieces=tuple(self.reply_pieces(entry)),
            calls=entry.calls,
        )

    def reply_pieces(self, entry: Replied) -> Iterator[Piece]:
        index = 0
        for part in entry.parts:
            if isinstance(part, CallPart):
                known = entry.calls[index].key if index < len(entry.calls) else None
                yield self.ask(part, known or CallKey(f"{entry.event}:{index}"))
                index += 1
            else:
                yield self.reply_piece(part)

    def reply_piece(self, part: ReplyPart) -> Piece:
        match part:
            case TextPart() | MediaPart():
                return self.piece(part)
            case RefusalPart():
                return Words(self.text(part.text), refusal=True)
            case ReasoningPart():
                if part.opaque is None:
                    return Private(None, "")
                return Private(part.opaque.kind, self.text(part.opaque.data))
            case ServerCallPart():
                return Served(self.text(part.native), self.text(part.summary), is_result=False)
            case ServerResultPart():
                return Served(self.text(part.native), self.text(part.summary), is_result=True)
            case CallPart():
                return self.ask(part, CallKey(""))
            case _:
                assert_never(part)

    def ask(self, part: CallPart, key: CallKey) -> Ask:
        return Ask(
            key=key,
            wire_id=part.native_id or key,
            tool=part.tool,
            arguments=self.text(part.args),
            caller=part.caller,
        )

    def results(self, entry: Replied) -> Answers | None:
        answers = [
            Answer(
                key=call.key,
                wire_id=call.part.native_id or call.key,
                tool=call.part.tool,
                failed=call.result.status != "done",
                pieces=self.outcome(call, call.result.status),
            )
            for call in entry.calls
            if call.result is not None
        ]
        return Answers(entry.event, tuple(answers)) if entry.calls else None

    def outcome(self, call: Call, status: CallStatus) -> tuple[Piece, ...]:
        """What the model reads of a call that began: never more than is known."""
        result = call.result
        parts = () if result is None else self.content(result.parts)
        failure = None if result is None else result.failure
        match status:
            case "done":
                return parts
            case "failed":
                return (Words(self.failure(failure)), *parts)
            case "unknown":
                known = None if failure is None else self.text(failure.message)
                text = unknown_text(call, known=known, output=bool(parts))
                return (Words(text), *parts)
            case _:
                assert_never(status)

    def failure(self, failure: Failure | None) -> str:
        if failure is None:
            return says.FAILED_BARE
        message = self.text(failure.message)
        if not failure.code:
            return says.FAILED.format(message=message)
        return says.FAILED_CODE.format(code=failure.code, message=message)
