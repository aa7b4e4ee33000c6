"""Logs that the tests write and read."""

from collections.abc import Sequence
from hashlib import sha256

from sojourn.format.event import AnyBody, Created, Event, Input
from sojourn.format.parts import BlobRef, TextPart
from sojourn.format.timeline_read import Damage, Ending, Known, Reader
from sojourn.format.timeline_write import Batch, Chain, write
from sojourn.ids import BlobId, Clock, Epoch, Incarnation, MachineId, RequestId, Seq

TIME = "2026-01-02T03:04:05.678Z"
START = Chain(
    machine=MachineId("a" * 64),
    incarnation=Incarnation("b" * 32),
    epoch=Epoch(1),
    seq=Seq(0),
    head=None,
    clock=Clock(0),
)
BIRTH = Created(name="example", write=1, read=1)


def append(chain: Chain, *bodies: AnyBody) -> Batch:
    """One append, with salts that follow from the place."""
    salts = [f"salt{chain.seq + at:018d}" for at in range(len(bodies))]
    return write(bodies, chain=chain, time=TIME, salts=salts)


def said(text: str) -> Input:
    return Input(request=RequestId(text), author="you", parts=(TextPart(text=text),))


def log(*sizes: int) -> tuple[bytes, list[int], Chain]:
    """A log whose appends have these numbers of events; where each append begins; its chain."""
    chain, data, starts = START, b"", [0]
    for number, size in enumerate(sizes):
        bodies: list[AnyBody] = [said(f"text {number}.{at}") for at in range(size)]
        batch = append(chain, *([BIRTH, *bodies[1:]] if number == 0 else bodies))
        data, chain = data + batch.data, batch.chain
        starts.append(len(data))
    return data, starts, chain


def read(
    data: bytes,
    *,
    known: Sequence[Known] = (),
    same_boot: bool = False,
    chunk: int = 1 << 20,
    blobs: dict[BlobId, bytes] | None = None,
) -> tuple[list[Event], list[Damage], Ending]:
    """Everything that a reader gives."""

    def read_blob(ref: BlobRef) -> bytes | None:
        return (blobs or {}).get(ref.sha256)

    reader = Reader(known=known, read_blob=read_blob)
    items = [
        item for at in range(0, len(data), chunk) for item in reader.feed(data[at : at + chunk])
    ]
    ending = reader.finish(same_boot=same_boot)
    items += ending.rest
    events = [item for item in items if isinstance(item, Event)]
    damages = [item for item in items if isinstance(item, Damage)]
    return events, damages, ending


def all_of(data: bytes, chain: Chain) -> Known:
    """What a manifest knows that names the whole log."""
    ending = read(data)[2]
    digest = sha256(data).hexdigest()
    return Known(length=len(data), last=chain.head, heads=ending.heads, sha256=digest)
