"""Events as values: the header, one body for each kind, and how a line is made and read.

docs/format.md#events is the specification. A line is `{"body":{...},"header":{...}}`; the id of an
event is the sha256 of its header's bytes, and the header holds the sha256 of the body's bytes.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from sojourn.format.body import AnySeq, Body, Head
from sojourn.format.capsule_kinds import (
    Activated,
    Claimed,
    Forked,
    Redacted,
    Repaired,
    Restored,
    Sealed,
    Snapshotted,
)
from sojourn.format.layout import MAX_INT
from sojourn.format.parts import BlobRef, ContentPart, Count, ReplyPart, Text
from sojourn.ids import (
    BlobId,
    CallKey,
    Clock,
    Epoch,
    EventId,
    Incarnation,
    MachineId,
    RequestId,
    RunnerId,
    TurnId,
)

ReplayRule: TypeAlias = Literal["safe", "keyed", "probe", "report", "ask"]
"""What may be done with a call that may have happened, in order of strictness (docs/replay.md)."""

CallStatus: TypeAlias = Literal["done", "failed", "unknown"]
Stop: TypeAlias = Literal[
    "rest", "calls", "length", "stop_text", "refused", "paused", "overflow", "other"
]


class Header(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who wrote the event, where in which chain, after what; `time` is for people only.

    `batch` is the seq of the first event of the same append, `prev` the id of the chain's previous
    event (null for its first), `body` the sha256 of the body's bytes.
    """

    batch: AnySeq
    body: str
    clock: Annotated[Clock, msgspec.Meta(ge=1, le=MAX_INT)]
    epoch: Annotated[Epoch, msgspec.Meta(ge=1, le=MAX_INT)]
    incarnation: Incarnation
    kind: str
    machine: MachineId
    prev: EventId | None
    seq: AnySeq
    time: str


class Issuer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who made a reply: provider, api (dialect), account scope without any secret, and model."""

    provider: str
    api: str
    scope: str
    model: str


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Tokens of one model call, as the provider counted them."""

    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    cache_write_long: Count = 0
    reasoning: Count = 0
    server_tools: dict[str, Count] = {}


class Failure(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Why a call failed or is unknown: `code` stable, `message` for people and the model."""

    code: str
    message: Text
    status: Count | None = None


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool as a model is told of it; `schema` is the JSON Schema of its arguments as text."""

    name: str
    description: str
    schema: Text
    replay: ReplayRule
    verify_with: tuple[str, ...] = ()


class Options(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What is asked of a model beside the prompt; `max_tokens` and `thinking` in tokens."""

    max_tokens: Count = 8192
    temperature: Annotated[float, msgspec.Meta(ge=0, le=MAX_INT)] | None = None
    thinking: Count | None = None
    stop: tuple[str, ...] = ()


class DocumentChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The new value of a typed document, as JSON source text (docs/format.md#documents)."""

    name: str
    schema: str
    version: Count
    value: Text


class FileDigest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a tool made of one workspace file: sha256 before and after, null where none was."""

    path: str
    before: BlobId | None
    after: BlobId | None


class LockFile(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A file of `environment/` and the blob that holds its bytes."""

    path: str
    blob: BlobRef


class Created(Body, frozen=True, kw_only=True, gc=False):
    """The identity event of a capsule that was made new; always the first line of its chain."""

    name: str
    write: Count
    read: Count
    features: tuple[str, ...] = ()


class Configured(Body, frozen=True, kw_only=True, gc=False):
    """Model (`provider/name`), system prompt, tools and options in force from here on."""

    model: str
    system: Text
    tools: tuple[ToolSpec, ...] = ()
    options: Options = Options()


class Input(Body, frozen=True, kw_only=True, gc=False):
    """A message to the agent; the first one of a turn names the turn."""

    request: RequestId
    author: str
    parts: tuple[ContentPart, ...]


class TurnTaken(Body, frozen=True, kw_only=True, gc=False):
    """A runner takes the turn; `heads` are those of the other chains."""

    turn: TurnId
    runner: RunnerId
    boot: str
    heads: tuple[Head, ...] = ()


class ModelIntent(Body, frozen=True, kw_only=True, gc=False):
    """A model is about to be called with the log up to here; `heads` are those of other chains."""

    turn: TurnId
    call: CallKey
    runner: RunnerId
    configured: EventId
    issuer: Issuer
    heads: tuple[Head, ...] = ()


class ModelOutcome(Body, frozen=True, kw_only=True, gc=False):
    """What became of a model call; parts in the order in which they came."""

    turn: TurnId
    call: CallKey
    status: CallStatus
    issuer: Issuer
    answered_by: str | None = None
    parts: tuple[ReplyPart, ...] = ()
    stop: Stop = "other"
    native_stop: str | None = None
    native_id: str | None = None
    usage: Usage = Usage()
    failure: Failure | None = None


class ToolIntent(Body, frozen=True, kw_only=True, gc=False):
    """A tool is about to be called; `requested_by` and `index` name the part that asked for it.

    `attempt` counts from 1. The idempotency key of all attempts is `call`.
    """

    turn: TurnId
    call: CallKey
    runner: RunnerId
    requested_by: EventId
    index: Count
    tool: str
    replay: ReplayRule
    attempt: Count = 1


class ToolOutcome(Body, frozen=True, kw_only=True, gc=False):
    """What became of a tool call, with the documents and files that it changed.

    `full` is the whole output where `parts` holds a shortened one; `boot` is set by tools whose
    files may not be synced.
    """

    turn: TurnId
    call: CallKey
    status: CallStatus
    parts: tuple[ContentPart, ...] = ()
    failure: Failure | None = None
    full: BlobRef | None = None
    documents: tuple[DocumentChange, ...] = ()
    files: tuple[FileDigest, ...] = ()
    boot: str | None = None
    milliseconds: Count = 0


class Settled(Body, frozen=True, kw_only=True, gc=False):
    """An unknown outcome was decided later: `retry` starts one more attempt, `skip` leaves it."""

    call: CallKey
    decision: Literal["done", "failed", "retry", "skip"]
    by: str
    parts: tuple[ContentPart, ...] = ()


class Memory(Body, frozen=True, kw_only=True, gc=False):
    """The working memory's whole new text; `before` and `result` are sha256 of the old and new."""

    origin: Literal["hand", "tool", "created"]
    before: BlobId | None
    result: BlobId
    text: Text


class EnvironmentChanged(Body, frozen=True, kw_only=True, gc=False):
    """The files of `environment/` from here on, each with the blob of its bytes."""

    files: tuple[LockFile, ...]


class TurnPaused(Body, frozen=True, kw_only=True, gc=False):
    """The turn waits for a person: `stopped`, a `decision` about `call`, the `model` failed."""

    turn: TurnId
    reason: Literal["stopped", "decision", "model"]
    call: CallKey | None = None


class TurnEnded(Body, frozen=True, kw_only=True, gc=False):
    """The agent rests: it said so, a limit was reached, or the turn was set aside."""

    turn: TurnId
    reason: Literal["rest", "limit", "failed", "set_aside"]
    failure: Failure | None = None


class Cut(Body, frozen=True, kw_only=True, gc=False):
    """Bytes of a torn tail were cut from the log at `offset` and kept as a blob."""

    offset: Count
    blob: BlobRef
    reason: str


class Unknown(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A kind this version does not know: kept, shown, skipped by the fold.

    `raw` is the body's bytes, `heads` what it says of other chains (docs/format.md#events).
    """

    kind: str
    raw: bytes
    heads: tuple[Head, ...] = ()


AnyBody: TypeAlias = (
    Created
    | Configured
    | Input
    | TurnTaken
    | ModelIntent
    | ModelOutcome
    | ToolIntent
    | ToolOutcome
    | Settled
    | Memory
    | EnvironmentChanged
    | TurnPaused
    | TurnEnded
    | Cut
    | Forked
    | Claimed
    | Activated
    | Snapshotted
    | Restored
    | Sealed
    | Redacted
    | Repaired
)
"""Every body this version writes; a new kind is added here and pyright names what to extend."""


KINDS: Final[Mapping[str, type[AnyBody]]] = {
    "created": Created,
    "configured": Configured,
    "input": Input,
    "turn_taken": TurnTaken,
    "model_intent": ModelIntent,
    "model_outcome": ModelOutcome,
    "tool_intent": ToolIntent,
    "tool_outcome": ToolOutcome,
    "settled": Settled,
    "memory": Memory,
    "environment_changed": EnvironmentChanged,
    "turn_paused": TurnPaused,
    "turn_ended": TurnEnded,
    "cut": Cut,
    "forked": Forked,
    "claimed": Claimed,
    "activated": Activated,
    "snapshot": Snapshotted,
    "restored": Restored,
    "sealed": Sealed,
    "redacted": Redacted,
    "repaired": Repaired,
}
"""The name in the log of each kind."""

KIND_OF: Final[Mapping[type[AnyBody], str]] = {body: kind for kind, body in KINDS.items()}

IDENTITY_KINDS: Final = ("created", "forked")
"""Kinds whose event's id may be a capsule's id (docs/format.md#identity)."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event as read: id, header and body; the body is None when it was redacted."""

    id: EventId
    header: Header
    body: AnyBody | Unknown | None
