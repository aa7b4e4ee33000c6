"""Strands: who went on from whom, in a log that several machines may have written at once.

A strand is one chain, or one side of a chain that has two. It begins a capsule, or goes on from the
strand that its first event took over (docs/protocol.md#lineage).
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Activated, Claimed, Forked, Sealed
from sojourn.format.event import Created, Event, Header, ModelIntent, TurnTaken, Unknown
from sojourn.ids import CapsuleId, EventId, Incarnation, MachineId, Seq

ChainKey: TypeAlias = tuple[MachineId, Incarnation]


class Strands:
    """Tells of each event which strand it belongs to, by number; events in the order of the log.

    `tips` are the last events of the strands, `capsules` what their calls are of.
    """

    def __init__(self) -> None:
        self.tips: list[Event] = []
        self.capsules: list[CapsuleId | None] = []
        self._known: list[dict[int, int]] = []
        self._continued: dict[int, int] = {}
        self._by_chain: dict[ChainKey, tuple[int, ...]] = {}
        self._at = -1
        self._id: EventId | None = None
        self._machine: MachineId | None = None
        self._incarnation: Incarnation | None = None

    def follow(self, event: Event) -> int:
        """The event's strand; a number that was not there before is a new one."""
        header = event.header
        if not (
            header.prev == self._id
            and header.machine == self._machine
            and header.incarnation == self._incarnation
        ):
            self._machine, self._incarnation = header.machine, header.incarnation
            self._at = self._find(event)
        self._id = event.id
        self.tips[self._at] = event
        return self._at

    def of_chain(self, chain: ChainKey | None) -> int | None:
        """The strand of a chain, of two sides the longer one; None when there is none."""
        sides = () if chain is None else self._by_chain.get(chain, ())
        if len(sides) == 1:
            return sides[0]
        return max(sides, key=lambda at: self.tips[at].header.seq, default=None)

    def of_holder(self, machine: MachineId, capsule: CapsuleId) -> ChainKey | None:
        """The newest chain by which this machine held the capsule, None when it wrote nothing."""
        found = [
            (self.capsules[at] == capsule, self.rank(at), chain)
            for chain, sides in self._by_chain.items()
            if chain[0] == machine
            for at in sides
        ]
        return max(found)[2] if found else None

    def rank(self, at: int) -> tuple[object, ...]:
        """By what of several strands one counts: the highest epoch, then the last in the log."""
        return rank_of(self.tips[at].header, self.tips[at].id)

    def sides(self, chain: ChainKey) -> tuple[int, ...]:
        """The strands of a chain: more than one when it is equivocated."""
        return self._by_chain.get(chain, ())

    def taken_over(self, event: Event) -> tuple[Head, ...]:
        """What the first event of a strand goes on from: `prev` of a second side, the head that it
        names, or one of its heads.
        """
        header = event.header
        if header.prev is None:
            heads, named = heads_of(event), continued_by(event)
            return heads if named is None else (named,)
        return (
            Head(
                machine=header.machine,
                incarnation=header.incarnation,
                seq=Seq(header.seq - 1),
                id=header.prev,
            ),
        )

    def _find(self, event: Event) -> int:
        header = event.header
        sides = self.sides((header.machine, header.incarnation))
        for at in sides:
            if self.tips[at].id == header.prev:
                return at
        longest = self.of_chain((header.machine, header.incarnation))
        if longest is not None and header.seq > self.tips[longest].header.seq:
            return longest
        if sides:
            return self._begin(event, {sides[0]: header.seq - 1, **self._known[sides[0]]})
        return self._begin(event, self._named(heads_of(event)))

    def learn(self, at: int, heads: Sequence[Head]) -> None:
        """Take note that a strand knows the log up to these heads."""
        if heads:
            known = self._known[at]
            for strand, seq in self._named(heads).items():
                known[strand] = max(seq, known.get(strand, -1))

    def knows(self, at: int, strand: int, seq: int) -> bool:
        """Whether the strand `at` knows the event of another with this seq, or it is its own."""
        return strand == at or seq <= self.reach(at, strand)

    def knows_all(self, at: int, strand: int) -> bool:
        """Whether the strand `at` knows all that another has written so far, or it is its own."""
        return self.knows(at, strand, self.tips[strand].header.seq)

    def _named(self, heads: Iterable[Head]) -> dict[int, int]:
        """How far heads reach in each strand that they name, by seq."""
        named: dict[int, int] = {}
        for head in heads:
            sides = self.sides((head.machine, head.incarnation))
            exact = [at for at in sides if self.tips[at].id == head.id]
            for at in exact or sides[:1]:
                named[at] = max(head.seq, named.get(at, -1))
        return named

    def _begin(self, event: Event, known: dict[int, int]) -> int:
        header, at = event.header, len(self.tips)
        named = continued_by(event)
        if named is not None:
            self._continued.update((at, strand) for strand in self._named((named,)))
        newest = self._continued.get(at, max(known, key=self.rank, default=None))
        match event.body:
            case Created() | Forked():
                capsule = CapsuleId(event.id)
            case Claimed() | Activated():
                capsule = event.body.capsule
            case _:
                capsule = None if newest is None else self.capsules[newest]
        self.tips.append(event)
        self.capsules.append(capsule)
        self._known.append(known)
        chain = (header.machine, header.incarnation)
        self._by_chain[chain] = (*self.sides(chain), at)
        return at

    def reach(self, at: int, strand: int) -> int:
        """Up to which seq the strand `at` knows another one."""
        return self._known[at].get(strand, -1)

    def over(self, at: int) -> tuple[int, ...]:
        """The strands that the strand `at` knows of, the one that counts most first."""
        first = self._continued.get(at)
        return tuple(sorted(self._known[at], key=lambda one: (one == first, self.rank(one)))[::-1])

    def newest_of(self, at: int) -> int | None:
        """The strand that the strand `at` goes on from: that it names, or the one that counts."""
        return self._continued.get(at, max(self._known[at], key=self.rank, default=None))


def rank_of(header: Header, identity: EventId) -> tuple[object, ...]:
    """As `Strands.rank`, of an event."""
    return (
        header.epoch,
        header.clock,
        header.machine,
        header.incarnation,
        header.seq,
        identity,
    )


def continued_by(event: Event) -> Head | None:
    """The head that the first event of a strand says that it goes on from.

    None where it says nothing, or what is none of its heads.
    """
    body = event.body
    if not isinstance(body, Claimed | Forked | Activated) or body.continues is None:
        return None
    return next((head for head in body.heads if head.id == body.continues), None)


def heads_of(event: Event) -> tuple[Head, ...]:
    """What an event names of other chains."""
    body = event.body
    if isinstance(body, Forked | Claimed | Activated | Sealed):
        return body.heads
    return body.heads if isinstance(body, TurnTaken | ModelIntent | Unknown) else ()
