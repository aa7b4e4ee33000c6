"""Events as bytes: the one place where lines of the log are made (docs/format.md#events)."""

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

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

SALT_BYTES: Final = 16
"""Random bytes that a salt is made of (docs/format.md#events)."""

_decoders = {body: msgspec.json.Decoder(body).decode for body in KINDS.values()}


class Chain(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a machine's chain stands: `seq` is the next event's, `head` the last event.

    `clock` is the highest clock of the whole log, whoever wrote it.
    """

    machine: MachineId
    incarnation: Incarnation
    epoch: Epoch
    seq: Seq
    head: EventId | None
    clock: Clock


class Line(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line with its 0x0A, its event as a reader will see it, and the chain after it."""

    data: bytes
    event: Event
    chain: Chain


class Batch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One append: whole lines, their events as a reader will see them, and the chain after them.

    `blobs` must be durable before `data` is appended.
    """

    data: bytes
    events: tuple[Event, ...]
    blobs: dict[BlobId, bytes]
    chain: Chain


def salts(token: bytes) -> list[str]:
    """A salt for each 16 random bytes: 22 characters of base64url without padding."""
    pieces = [token[at : at + SALT_BYTES] for at in range(0, len(token), SALT_BYTES)]
    # Two zero bytes fill each up to a whole number of groups, so that one call encodes them all.
    text = urlsafe_b64encode(b"".join([piece + b"\0\0" for piece in pieces])).decode()
    return [text[at : at + SALT] for at in range(0, len(text), SALT + 2)]


def write(bodies: Sequence[AnyBody], *, chain: Chain, time: str, salts: Sequence[str]) -> Batch:
    """Lines of one append, with one salt for each body.

    Raises: LimitError `batch_too_large`; FormatError when a body cannot be read again as it is.
    """
    if len(bodies) > layout.MAX_BATCH_EVENTS:
        raise LimitError(f"{len(bodies)} events in one append", code="batch_too_large")
    blobs: dict[BlobId, bytes] = {}
    lines: list[Line] = []
    after = chain
    for body, salt in zip(bodies, salts, strict=True):
        line = write_line(body, blobs, chain=after, batch=chain.seq, time=time, salt=salt)
        lines.append(line)
        after = line.chain
    whole = b"".join([line.data for line in lines])
    if len(whole) > layout.MAX_BATCH:
        raise LimitError(f"an append of {len(whole)} bytes", code="batch_too_large")
    events = tuple(line.event for line in lines)
    return Batch(data=whole, events=events, blobs=blobs, chain=after)


def write_line(
    body: AnyBody, blobs: dict[BlobId, bytes], *, chain: Chain, batch: Seq, time: str, salt: str
) -> Line:
    """The chain's next line, for an append that is made line by line.

    Ids are known only once a line is made, and later lines of an append may name earlier ones.
    `batch` is the seq of the append's first event; `blobs` takes what the line needs.

    Raises: FormatError when the body cannot be read again as it is.
    """
    if len(salt) != SALT:
        raise FormatError("a salt has 22 characters", code="body_malformed")
    data, value = _encode(msgspec.structs.replace(body, salt=salt, mended=0), blobs)
    clock = Clock(chain.clock + 1)
    header = Header(
        batch=batch,
        body=sha256(data).hexdigest(),
        clock=clock,
        epoch=chain.epoch,
        incarnation=chain.incarnation,
        kind=KIND_OF[type(body)],
        machine=chain.machine,
        prev=chain.head,
        seq=chain.seq,
        time=time,
    )
    packed = canon.quick(header)
    identity = EventId(sha256(packed).hexdigest())
    return Line(
        data=b"".join((BODY, data, HEADER, packed, b"}\n")),
        event=Event(id=identity, header=header, body=value),
        chain=Chain(
            machine=chain.machine,
            incarnation=chain.incarnation,
            epoch=chain.epoch,
            seq=Seq(chain.seq + 1),
            head=identity,
            clock=clock,
        ),
    )


def _encode(body: AnyBody, blobs: dict[BlobId, bytes]) -> tuple[bytes, AnyBody]:
    """The bytes of a body in its line, and the body as it will be read from there."""
    try:
        data = canon.quick(body)
    except UnicodeEncodeError:
        body = spill.mend(body)
        data = canon.quick(body)
    if len(data) > layout.MAX_TEXT:
        body, data = spill.shrink(body, blobs)
    try:
        # Whatever the types let slip is found before it is written.
        value = _decoders[type(body)](data)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"a body of kind {KIND_OF[type(body)]} would not be read again: {error}",
            code="body_malformed",
        ) from error
    if _needs_care(body):
        data = canon.encode(body)
    if len(data) > layout.MAX_BODY:
        data = spill.whole(data, body.salt, blobs)
    return data, value


def _needs_care(body: AnyBody) -> bool:
    """Whether RFC 8785 may differ from msgspec here: floats, foreign keys (docs/format.md#json)."""
    match body:
        case Configured():
            return body.options.temperature is not None
        case ModelOutcome():
            return bool(body.usage.server_tools)
        case _:
            return False
