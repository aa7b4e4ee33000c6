"""The chains of a log: does an event stand where it may stand?

docs/format.md#chains, #order and #damage are the specification. `find` looks and changes nothing,
`add` takes note.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from sojourn.format import layout
from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Activated, Claimed, Forked, Redacted, Repaired, Sealed
from sojourn.format.chain_ids import KEPT, ChainIds
from sojourn.format.event import IDENTITY_KINDS, Created, Event, ModelIntent, TurnTaken, Unknown
from sojourn.format.failures import Code
from sojourn.format.line import Bad
from sojourn.ids import CapsuleId, Clock, Epoch, EventId, Incarnation, MachineId, Seq

ChainKey: TypeAlias = tuple[MachineId, Incarnation]

HEADED: Final = (TurnTaken, ModelIntent, Forked, Claimed, Activated, Sealed, Unknown)
"""Bodies that may name heads."""

PARDONING: Final = frozenset((Redacted, Repaired, Claimed))
"""Bodies that account for failures of other lines (docs/format.md#pardons)."""

NOTED: Final = frozenset((*HEADED, Created, *PARDONING))
"""Bodies that need a closer look: these, and those that may give a capsule its id."""

FIRST_KINDS: Final = frozenset((*IDENTITY_KINDS, "claimed", "activated"))
"""Kinds that stand first in their chain only: they say of which capsule it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnd:
    """The last event of a chain that was read; `capsule` is that of the chain's calls."""

    capsule: CapsuleId
    machine: MachineId
    incarnation: Incarnation
    seq: Seq
    id: EventId
    epoch: Epoch
    clock: Clock


@dataclass(slots=True)
class _Tip:
    """An end of a chain; `clock` is the one that counts."""

    id: EventId
    seq: Seq
    batch: Seq
    epoch: Epoch
    clock: Clock


@dataclass(slots=True)
class _Chain:
    """`tip` is the end with the highest seq; `others` the ends of its other sides, if any."""

    tip: _Tip
    capsule: CapsuleId
    others: dict[EventId, _Tip] = field(default_factory=dict[EventId, _Tip])
    ids: ChainIds = field(default_factory=ChainIds)
    unreadable: int = 0

    def continued_by(self, event: Event) -> _Tip | None:
        """The end that the event goes on from."""
        prev = event.header.prev
        tip = self.tip if prev == self.tip.id else self.others.get(prev or EventId(""))
        return tip if tip is not None and event.header.seq == tip.seq + 1 else None

    def has(self, event: Event) -> bool:
        """Whether this very event was added."""
        known = self.ids.get(event.header.seq) == event.id[: 2 * KEPT]
        return known or event.id in self.others

    def extend(self, tip: _Tip, event: Event, code: Code | None) -> None:
        """Move the end that the event continues, or add one."""
        before = self.continued_by(event)
        if before is not None and before is not self.tip:
            del self.others[before.id]
            self.others[tip.id] = tip
            if tip.seq > self.tip.seq:
                del self.others[tip.id]
                self.others[self.tip.id] = self.tip
                self.tip = tip
        elif tip.seq > self.tip.seq:
            self.tip = tip
        elif code == "equivocation":
            self.others[tip.id] = tip
            if len(self.others) > layout.MAX_TIPS:
                del self.others[next(iter(self.others))]


class Chains:
    """All chains of one log, in the order of its lines."""

    def __init__(self) -> None:
        self._chains: dict[ChainKey, _Chain] = {}
        self._epochs: dict[tuple[CapsuleId, Epoch], ChainKey] = {}
        self._clock = Clock(0)
        self._highest: Event | None = None
        self._current: _Chain | None = None
        self._unreadable = 0
        self.gap = False
        self.last: Event | None = None
        self.identities: list[EventId] = []

    @property
    def clock(self) -> Clock:
        """The highest clock that counts."""
        return self._clock

    @property
    def complete(self) -> bool:
        """Whether every line could be read."""
        return not self._unreadable

    @property
    def epochs(self) -> dict[CapsuleId, Epoch]:
        """The highest epoch of each capsule that has a chain here."""
        highest: dict[CapsuleId, Epoch] = {}
        for capsule, epoch in self._epochs:
            highest[capsule] = max(epoch, highest.get(capsule, epoch))
        return highest

    def ends(self) -> tuple[ChainEnd, ...]:
        """Where each chain ends, sorted."""
        return tuple(
            ChainEnd(
                capsule=chain.capsule,
                machine=machine,
                incarnation=incarnation,
                seq=chain.tip.seq,
                id=chain.tip.id,
                epoch=chain.tip.epoch,
                clock=chain.tip.clock,
            )
            for (machine, incarnation), chain in sorted(self._chains.items(), key=lambda c: c[0])
        )

    def heads(self) -> tuple[Head, ...]:
        """The head of each chain, sorted."""
        return tuple(
            Head(machine=end.machine, incarnation=end.incarnation, seq=end.seq, id=end.id)
            for end in self.ends()
        )

    def sides(self) -> tuple[Head, ...]:
        """The head of each chain and of each side of one that has several, sorted."""
        return tuple(
            Head(machine=machine, incarnation=incarnation, seq=tip.seq, id=tip.id)
            for (machine, incarnation), chain in sorted(self._chains.items(), key=lambda c: c[0])
            for tip in sorted((chain.tip, *chain.others.values()), key=lambda t: (t.seq, t.id))
        )

    def next_seq(self, key: ChainKey) -> int:
        """The seq that the chain's next event should have."""
        chain = self._chains.get(key)
        return 0 if chain is None else chain.tip.seq + 1

    def add_unreadable(self) -> None:
        """Take note of a line that cannot be read: it may have been any event."""
        self._unreadable += 1

    def add(self, event: Event, code: Code | None, *, doubtful: bool = False) -> None:
        """Take note of an event, whatever was wrong with its place.

        After a doubtful one, whose header may be altered, the chain goes on with any event.
        """
        if code == "duplicate_event":
            return
        header = event.header
        key = (header.machine, header.incarnation)
        chain = self._chains.get(key)
        clock = header.clock
        if code == "clock_jump":
            clock = Clock(0) if chain is None else chain.tip.clock
        elif self._highest is None or _place(event) > _place(self._highest):
            self._clock, self._highest = clock, event
        tip = _Tip(event.id, header.seq, header.batch, header.epoch, clock)
        if chain is None:
            chain = self._chains[key] = _Chain(tip, self._capsule_of(event))
        else:
            chain.extend(tip, event, code)
        chain.ids.add(header.seq, event.id)
        chain.unreadable = -1 if doubtful else self._unreadable
        self.gap = self.gap or code == "chain_gap"
        self._epochs.setdefault((chain.capsule, header.epoch), key)
        self.last, self._current = event, chain
        if header.kind in IDENTITY_KINDS:
            self.identities.append(event.id)

    def follow(self, events: Sequence[Event | Bad], start: int, end: int) -> list[Event]:
        """Take note of events that are in their place without any doubt: the quick way.

        Gives those from `start` on, up to the first that needs a closer look.
        """
        chain, before = self._current, self.last
        if chain is None or before is None or chain.others:
            return []
        tip, clock, ids = chain.tip, self._clock, list[EventId]()
        machine, incarnation = before.header.machine, before.header.incarnation
        head, seq, batch, epoch = tip.id, tip.seq, tip.batch, tip.epoch
        for at in range(start, end):
            event = events[at]
            if type(event) is not Event:
                break
            header = event.header
            seq += 1
            if (
                header.prev != head
                or header.seq != seq
                or header.machine != machine
                or header.incarnation != incarnation
                or header.epoch != epoch
                or not clock < header.clock <= clock + layout.MAX_CLOCK_JUMP
                or (header.batch != batch and header.batch != seq)
                or (type(event.body) in NOTED and not self._is_plain(event))
            ):
                break
            head, batch, clock = event.id, header.batch, header.clock
            ids.append(head)
        if not ids:
            return []
        taken = cast(list[Event], events[start : start + len(ids)])
        self._highest = self.last = last = taken[-1]
        chain.ids.extend(ids)
        chain.unreadable = self._unreadable
        tip.id, tip.seq, tip.batch, tip.clock = head, last.header.seq, batch, clock
        self._clock = clock
        return taken

    def _is_plain(self, event: Event) -> bool:
        if event.header.kind in FIRST_KINDS or type(event.body) in PARDONING:
            return False
        return not _heads(event) or self._find_in_heads(event) is None

    def find(self, event: Event, *, loose: bool = False) -> Code | None:
        """What is wrong with the event's place: the first that docs/format.md#damage lists.

        `loose`: as after a gap, where `prev` and `batch` may be any.
        """
        chain = self._chains.get((event.header.machine, event.header.incarnation))
        if chain is not None and chain.has(event):
            return "duplicate_event"
        first = self.last is None and not self._unreadable
        code = _find_identity(event, first=first)
        if code is not None:
            return code
        if chain is None:
            before, loose = None, loose or self._unreadable > 0
            code = None if loose else _find_start(event)
        else:
            loose = loose or self._unreadable > chain.unreadable
            before = chain.continued_by(event)
            code = None if before is not None else _find_break(event, chain, loose=loose)
            before = before or chain.tip
        if code is not None:
            return code
        code = self._find_claim(event, before, loose=loose) or self._find_order(event, before)
        if code is None and chain is None and not (first or loose) and not _heads(event):
            return "heads_missing"
        return code or self._find_in_heads(event) or self._find_origin(event)

    def _capsule_of(self, event: Event) -> CapsuleId:
        """Of which capsule the chain is that begins with the event (docs/format.md#identity)."""
        if event.header.kind in IDENTITY_KINDS:
            return CapsuleId(event.id)
        if isinstance(event.body, Claimed | Activated):
            return event.body.capsule
        return CapsuleId(self.identities[0] if self.identities else "")

    def _find_origin(self, event: Event) -> Code | None:
        body = event.body
        if isinstance(body, Forked | Claimed | Activated) and not self._unreadable:
            origin = body.parent if isinstance(body, Forked) else body.capsule
            return None if origin in self.identities else "identity_unknown"
        return None

    def gap_before(self, event: Event) -> tuple[ChainKey, int, int]:
        """The places between the event and the one before it in its chain."""
        key = (event.header.machine, event.header.incarnation)
        first = min(self.next_seq(key), event.header.seq)
        return key, first, event.header.seq - 1

    def unknown_heads(self, event: Event) -> tuple[Head, ...]:
        """The heads that no event is known for; none when one is known to be another event."""
        unknown: list[Head] = []
        for head in _heads(event):
            chain = self._chains.get((head.machine, head.incarnation))
            known = None if chain is None else chain.ids.get(head.seq)
            if known is None:
                unknown.append(head)
            elif chain is not None and not chain.others and known != head.id[: 2 * KEPT]:
                return ()
        return tuple(unknown)

    def rival(self, event: Event) -> ChainKey | None:
        """The chain of the same capsule that has the event's epoch already."""
        chain = self._chains.get((event.header.machine, event.header.incarnation))
        capsule = self._capsule_of(event) if chain is None else chain.capsule
        return self._epochs.get((capsule, event.header.epoch))

    def tip(self, event: Event) -> EventId | None:
        """The event with the highest seq of the event's chain."""
        chain = self._chains.get((event.header.machine, event.header.incarnation))
        return None if chain is None else chain.tip.id

    def _find_claim(self, event: Event, before: _Tip | None, *, loose: bool) -> Code | None:
        header = event.header
        if before is not None and header.epoch < before.epoch:
            return "epoch_order"
        key = (header.machine, header.incarnation)
        if before is None or before.epoch != header.epoch:
            chain = self._chains.get(key)
            capsule = self._capsule_of(event) if chain is None else chain.capsule
            if self._epochs.get((capsule, header.epoch), key) != key:
                return "divergence"
        continued = before is not None and header.batch == before.batch
        if not (loose or continued or header.batch == header.seq):
            return "batch_wrong"
        return None

    def _find_order(self, event: Event, before: _Tip | None) -> Code | None:
        header = event.header
        if before is not None and header.clock <= before.clock:
            return "clock_order"
        if header.clock - self._clock > layout.MAX_CLOCK_JUMP:
            return "clock_jump"
        highest = self._highest
        ordered = highest is None or _place(event) > _place(highest)
        return None if ordered else "file_order"

    def _find_in_heads(self, event: Event) -> Code | None:
        for head in _heads(event):
            chain = self._chains.get((head.machine, head.incarnation))
            known = None if chain is None else chain.ids.get(head.seq)
            if known is None:
                if not self._unreadable:
                    return "head_unknown"
            elif chain is not None and not chain.others and known != head.id[: 2 * KEPT]:
                return "head_unknown"
        return None


def _place(event: Event) -> tuple[int, str, str, int, str]:
    """By what the log is sorted."""
    header = event.header
    return (header.clock, header.machine, header.incarnation, header.seq, event.id)


def _heads(event: Event) -> tuple[Head, ...]:
    body = event.body
    return body.heads if isinstance(body, HEADED) else ()


def _find_identity(event: Event, *, first: bool) -> Code | None:
    header = event.header
    if first and not (header.kind == "created" and header.seq == 0 and header.prev is None):
        return "identity_missing"
    second = header.kind in FIRST_KINDS and (header.kind == "created" or header.seq > 0)
    return "identity_second" if second and not first else None


def _find_start(event: Event) -> Code | None:
    if event.header.seq:
        return "chain_gap"
    return None if event.header.prev is None else "chain_broken"


def _find_break(event: Event, chain: _Chain, *, loose: bool) -> Code | None:
    seq = event.header.seq
    if seq <= chain.tip.seq:
        return "chain_broken" if chain.ids.get(seq) is None else "equivocation"
    if loose:
        return None
    return "chain_gap" if seq > chain.tip.seq + 1 else "chain_broken"
