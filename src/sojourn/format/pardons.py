"""What another line of the log accounts for is no failure (docs/format.md#pardons).

Failures that may be pardoned wait here for the end of the log; no more than `MAX_WAITING` at once,
and of what pardons no more than that is remembered, so memory stays bounded.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Claimed, Redacted, Repaired
from sojourn.format.chains import PARDONING, ChainKey, Chains
from sojourn.format.damage import Damage
from sojourn.format.event import Event
from sojourn.format.failures import Code
from sojourn.format.gone import Gone
from sojourn.ids import BlobId, EventId

MAX_WAITING: Final = 1 << 16
"""Failures that wait for their pardon at once, and pardons of each sort that are remembered."""

PARDONABLE: Final[frozenset[Code]] = frozenset(
    (
        "body_null",
        "blob_missing",
        "chain_gap",
        "head_unknown",
        "equivocation",
        "divergence",
    )
)
"""Failures that another line may account for."""

BODILESS: Final[frozenset[Code | None]] = frozenset(("body_null", "blob_missing"))
"""Failures of a body that leave no doubt about the header: the event counts, without its body."""


UNREDACTABLE: Final = frozenset(
    (
        "created",
        "forked",
        "claimed",
        "activated",
        "sealed",
        "redacted",
        "repaired",
        "turn_taken",
        "turn_paused",
        "model_intent",
        "tool_intent",
    )
)
"""Kinds whose bodies chains and the order of calls are made of; they hold no text of anybody."""

_One = TypeVar("_One")

Gap: TypeAlias = tuple[ChainKey, int, int]
"""A chain, and the first and the last `seq` that are missing."""


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """A failure that may be pardoned, and `then` what else is wrong if it is.

    `event`, `kind`, `blob`, `gap`, `heads`, `rival` say what has to be accounted for; `after` is a
    failure that hides this one unless it is pardoned; `gap_hides`: so does any gap before.
    """

    damage: Damage
    event: Event | None = None
    blob: BlobId | None = None
    gap: Gap | None = None
    heads: tuple[Head, ...] = ()
    rival: ChainKey | None = None
    after: "Waiting | None" = None
    gap_hides: bool = False
    then: "Waiting | None" = None
    pardoned: bool = False

    @property
    def event_id(self) -> EventId | None:
        """The id of the event that has the failure."""
        return None if self.event is None else self.event.id


@dataclass(slots=True)
class Pardons:
    """All that waits, and all that pardons, of one log."""

    _redacted: set[EventId] = field(default_factory=set[EventId])
    _redacted_blobs: set[BlobId] = field(default_factory=set[BlobId])
    _lost_blobs: set[BlobId] = field(default_factory=set[BlobId])
    _gaps: set[Gap] = field(default_factory=set[Gap])
    _waiting: list[Waiting] = field(default_factory=list[Waiting])
    _gap: bool = False

    @property
    def gone(self) -> Gone:
        """What all events so far name as redacted or lost."""
        return Gone(
            events=frozenset(self._redacted),
            redacted=frozenset(self._redacted_blobs),
            lost=frozenset(self._lost_blobs),
        )

    @property
    def full(self) -> bool:
        """Whether no more may wait: then what waits is decided by what is known so far."""
        return len(self._waiting) >= MAX_WAITING

    def wait(self, waiting: Waiting) -> None:
        """Keep a failure until the end."""
        self._waiting.append(waiting)

    def note(self, event: Event, sides: Collection[Head]) -> None:
        """Take note of an event that may pardon; `sides` are the ends of all sides before it."""
        if type(event.body) not in PARDONING:
            return
        match event.body:
            case Redacted(event=named, blobs=blobs):
                _keep(self._redacted, () if named is None else (named,))
                _keep(self._redacted_blobs, blobs)
            case Repaired() as body:
                _keep(self._lost_blobs, body.lost)
                if (
                    body.machine is not None
                    and body.incarnation is not None
                    and body.first is not None
                    and body.last is not None
                ):
                    gap = ((body.machine, body.incarnation), int(body.first), int(body.last))
                    _keep(self._gaps, (gap,))
            case Claimed(heads=heads):
                self._claim(heads, sides)
            case _:
                pass

    def decide(self) -> list[Damage]:
        """What was not pardoned, in the order of the lines; nothing waits any more."""
        waiting, self._waiting = self._waiting, []
        left: list[Damage] = []
        for one in waiting:
            found: Waiting | None = one
            while found is not None and self._is_pardoned(found):
                found.pardoned = True
                found = found.then
            if found is not None:
                left.append(found.damage)
                self._gap = self._gap or found.damage.code == "chain_gap"
        return left

    def _is_pardoned(self, one: Waiting) -> bool:
        if one.pardoned or (self._gap and one.gap_hides):
            return True
        if one.after is not None and not one.after.pardoned:
            return True
        match one.damage.code:
            case "body_null":
                event = one.event
                return (
                    event is not None
                    and event.id in self._redacted
                    and event.header.kind not in UNREDACTABLE
                )
            case "blob_missing":
                return one.blob in self._redacted_blobs or one.blob in self._lost_blobs
            case "chain_gap":
                return one.gap is not None and self._named(*one.gap)
            case "head_unknown":
                return bool(one.heads) and all(
                    self._named((head.machine, head.incarnation), head.seq, head.seq)
                    for head in one.heads
                )
            case _:
                return False

    def _named(self, key: ChainKey, first: int, last: int) -> bool:
        """Whether `repaired` events name each of these places."""
        for start, end in sorted((start, end) for own, start, end in self._gaps if own == key):
            if start > first:
                return False
            first = max(first, end + 1)
            if first > last:
                return True
        return False

    def _claim(self, heads: Collection[Head], sides: Collection[Head]) -> None:
        """A claim that names the end of each side settles what was split before it."""
        named = {head.id for head in heads}
        chains = {(head.machine, head.incarnation) for head in heads}
        open_sides = {(s.machine, s.incarnation) for s in sides if s.id not in named}
        for one in self._waiting:
            event = one.event
            if event is None:
                continue
            key = (event.header.machine, event.header.incarnation)
            found: Waiting | None = one
            while found is not None:
                code = found.damage.code
                split = code == "equivocation" and key in chains and key not in open_sides
                apart = code == "divergence" and key in chains and found.rival in chains
                found.pardoned = found.pardoned or split or apart
                found = found.then


def waiting_for(event: Event, damage: Damage, chains: Chains, *, blob: str = "") -> Waiting:
    """A failure with what has to be accounted for; `chains` are those before the event."""
    waiting = Waiting(damage=damage, event=event)
    match damage.code:
        case "blob_missing":
            waiting.blob = BlobId(blob)
        case "chain_gap":
            waiting.gap = chains.gap_before(event)
        case "head_unknown":
            waiting.heads = chains.unknown_heads(event)
            waiting.gap_hides = chains.gap and bool(waiting.heads)
        case "divergence":
            waiting.rival = chains.rival(event)
        case _:
            pass
    return waiting


def _keep(kept: set[_One], new: Iterable[_One]) -> None:
    for one in new:
        if len(kept) < MAX_WAITING:
            kept.add(one)
