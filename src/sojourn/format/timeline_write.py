"""Events as bytes: the one place where lines of the log are made (docs/format.md#events)."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from sojourn.errors import FormatError, LimitError
from sojourn.format import canon, layout, spill
from sojourn.format.event import (
    KIND_OF,
    KINDS,
    AnyBody,
    Configured,
    Event,
    Header,
    ModelOutcome,
)
from sojourn.format.line import BODY, HEADER, SALT
from sojourn.ids import BlobId, Clock, Epoch, EventId, Incarnation, MachineId, Seq

_decoders = {body: msgspec.json.Decoder(body).decode for body in KINDS.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Where a machine's chain stands: `seq` is the next event's, `head` the last event.

    `clock` is the highest clock of the whole log, whoever wrote it.
    """

    machine: MachineId
    incarnation: Incarnation
    epoch: Epoch
    seq: Seq
    head: EventId | None
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One append: whole lines, their events as a reader will see them, and the chain after them.

    `blobs` must be durable before `data` is appended.
    """

    data: bytes
    events: tuple[Event, ...]
    blobs: dict[BlobId, bytes]
    chain: Chain


def write(
    bodies: Sequence[AnyBody],
    *,
    chain: Chain,
    time: str,
    salts: Sequence[str],
    batch: Seq | None = None,
) -> Batch:
    """Lines of one append, with one salt (22 characters of base64url) for each body.

    `batch` is the seq of the append's first event when these are not its first lines: ids are known
    only once a line is made, and later lines of an append may name earlier ones.

    Raises: LimitError `batch_too_large`; FormatError when a body cannot be read again as it is.
    """
    if len(bodies) > layout.MAX_BATCH_EVENTS:
        raise LimitError(f"{len(bodies)} events in one append", code="batch_too_large")
    blobs: dict[BlobId, bytes] = {}
    lines: list[bytes] = []
    events: list[Event] = []
    seq, head, clock = chain.seq, chain.head, chain.clock
    for body, salt in zip(bodies, salts, strict=True):
        if len(salt) != SALT:
            raise FormatError("a salt has 22 characters", code="body_malformed")
        data, value = _encode(msgspec.structs.replace(body, salt=salt, mended=0), blobs)
        clock = Clock(clock + 1)
        header = Header(
            batch=chain.seq if batch is None else batch,
            body=sha256(data).hexdigest(),
            clock=clock,
            epoch=chain.epoch,
            incarnation=chain.incarnation,
            kind=KIND_OF[type(body)],
            machine=chain.machine,
            prev=head,
            seq=seq,
            time=time,
        )
        packed = canon.quick(header)
        head = EventId(sha256(packed).hexdigest())
        lines += (BODY, data, HEADER, packed, b"}\n")
        events.append(Event(id=head, header=header, body=value))
        seq = Seq(seq + 1)
    whole = b"".join(lines)
    if len(whole) > layout.MAX_BATCH:
        raise LimitError(f"an append of {len(whole)} bytes", code="batch_too_large")
    after = Chain(
        machine=chain.machine,
        incarnation=chain.incarnation,
        epoch=chain.epoch,
        seq=seq,
        head=head,
        clock=clock,
    )
    return Batch(data=whole, events=tuple(events), blobs=blobs, chain=after)


def _encode(body: AnyBody, blobs: dict[BlobId, bytes]) -> tuple[bytes, AnyBody]:
    """The bytes of a body in its line, and the body as it will be read from there."""
    try:
        data = canon.quick(body)
    except UnicodeEncodeError:
        body = spill.mend(body)
        data = canon.quick(body)
    if len(data) > layout.MAX_TEXT:
        body, data = spill.shrink(body, blobs)
    value = _decode(body, data)
    if _needs_care(body):
        data = canon.encode(body)
    if len(data) > layout.MAX_BODY:
        data = spill.whole(data, body.salt, blobs)
    return data, value


def _decode(body: AnyBody, data: bytes) -> AnyBody:
    """What a reader will see: whatever the types let slip is found before it is written."""
    try:
        return _decoders[type(body)](data)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"a body of kind {KIND_OF[type(body)]} would not be read again: {error}",
            code="body_malformed",
        ) from error


def _needs_care(body: AnyBody) -> bool:
    """Whether RFC 8785 may differ from msgspec here: floats, foreign keys (docs/format.md#json)."""
    match body:
        case Configured():
            return body.options.temperature is not None
        case ModelOutcome():
            return bool(body.usage.server_tools)
        case _:
            return False
