"""Copies of one capsule's log that go their own ways, as bytes, for the tests of merging."""

from dataclasses import dataclass, field, replace
from hashlib import sha256

import msgspec

from format.logs import BIRTH, START, TIME, read, said
from sojourn.core.merge import merge
from sojourn.core.placed import place
from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Claimed, Redacted
from sojourn.format.event import AnyBody
from sojourn.format.gone import NOTHING, Gone
from sojourn.format.pardons import UNREDACTABLE
from sojourn.format.timeline_read import Reader
from sojourn.format.timeline_write import Chain, write
from sojourn.ids import BlobId, CapsuleId, Clock, Epoch, EventId, Incarnation, MachineId, Seq


@dataclass(kw_only=True)
class Copy:
    """One copy: its log and the chain by which it is written."""

    log: bytes = b""
    chain: Chain = START
    heads: dict[tuple[MachineId, Incarnation], tuple[Seq, EventId]] = field(
        default_factory=dict[tuple[MachineId, Incarnation], tuple[Seq, EventId]]
    )

    def add(self, *bodies: AnyBody) -> tuple[EventId, ...]:
        """One append; the ids."""
        salts = [self._salt(number) for number in range(len(bodies))]
        batch = write(bodies, chain=self.chain, time=TIME, salts=salts)
        self.log += batch.data
        self.chain = batch.chain
        last = batch.events[-1]
        self.heads[self.chain.machine, self.chain.incarnation] = (last.header.seq, last.id)
        return tuple(event.id for event in batch.events)

    def _salt(self, number: int) -> str:
        return sha256(f"{self.chain.head} {len(self.log)} {number}".encode()).hexdigest()[:22]

    def copied(self) -> "Copy":
        """The same again: a machine that was cloned."""
        return replace(self, heads=dict(self.heads))

    def claimed(self, name: str, *, epoch: int) -> "Copy":
        """A copy that another machine goes on with."""
        copy = self.copied()
        copy.chain = Chain(
            machine=MachineId(sha256(name.encode()).hexdigest()),
            incarnation=Incarnation(sha256(name.encode()).hexdigest()[:32]),
            epoch=Epoch(epoch),
            seq=Seq(0),
            head=None,
            clock=self.chain.clock,
        )
        heads = tuple(
            Head(machine=machine, incarnation=incarnation, seq=seq, id=event)
            for (machine, incarnation), (seq, event) in self.heads.items()
        )
        capsule = CapsuleId(place(self.log[: self.log.index(b"\n")]).id)
        copy.add(Claimed(capsule=capsule, how="claim", by="you", heads=heads))
        return copy

    def redact(self, event: EventId, *blobs: str) -> None:
        """Take the body of an event away."""
        lines = [place(line) for line in self.log.split(b"\n")[:-1]]
        self.log = b"".join(
            (line.without_body() if line.id == event else line.line) + b"\n" for line in lines
        )
        named = tuple(BlobId(blob) for blob in blobs)
        self.add(Redacted(event=event, by="you", reason="secret", blobs=named))

    def merge(self, other: "Copy") -> None:
        """Take in the other's events."""
        self.log = merged(self.log, other.log)
        clocks = [place(line).mark.clock for line in self.log.split(b"\n")[:-1]]
        self.chain = msgspec.structs.replace(self.chain, clock=Clock(max(clocks)))
        for chain, head in other.heads.items():
            if head > self.heads.get(chain, (-1, "")):
                self.heads[chain] = head

    def redactable(self) -> list[EventId]:
        """The events whose bodies may be taken away."""
        lines = [place(line) for line in self.log.split(b"\n")[:-1]]
        return [line.id for line in lines if line.mark.kind not in UNREDACTABLE]

    def ids(self) -> list[EventId]:
        return [place(line).id for line in self.log.split(b"\n")[:-1]]


def begun(events: int = 3) -> Copy:
    """A capsule with some events."""
    copy = Copy()
    copy.add(BIRTH)
    for number in range(events - 1):
        copy.add(said(f"text {number}"))
    return copy


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def named(*logs: bytes) -> Gone:
    """What any of the logs redacts."""
    found = NOTHING
    for log in logs:
        reader = Reader(read_blob=lambda _: None)
        reader.feed(log)
        found |= reader.finish(same_boot=True).gone
    return found


def merged(one: bytes, other: bytes, *, size: int = 1 << 20) -> bytes:
    """The union, read in pieces of that size."""
    redacted = named(one, other).events
    return b"".join(merge(pieces(one, size), pieces(other, size), redacted=redacted))


def damages(log: bytes) -> list[str]:
    """What a reader says of it, but for bodies that were redacted."""
    return [damage.code for damage in read(log)[1] if damage.code != "body_null"]
