"""What two copies of a capsule have that the other lacks, told by chains (docs/protocol.md#merge).

One pass over both logs, which may be long: what is kept is small.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from sojourn.core.merge import Side, union
from sojourn.core.placed import Placed, place
from sojourn.ids import Epoch, EventId, Incarnation, MachineId, Seq, TurnId

TURN_KINDS = frozenset(("turn_taken", "turn_ended", "turn_paused"))
"""Kinds that every turn has, however it ended."""


class _OfTurn(msgspec.Struct):
    turn: TurnId


class _Line(msgspec.Struct):
    body: _OfTurn | None


@dataclass(slots=True, kw_only=True)
class Part:
    """What one side has of a chain and the other lacks: events `first` to `last`, times for people.

    `begin` is the id of the first of them, `snapshot` that of the last one that is a snapshot.
    """

    machine: MachineId
    incarnation: Incarnation
    first: Seq
    last: Seq
    begin: EventId
    begun: str
    ended: str
    epoch: Epoch
    events: int = 0
    snapshot: EventId | None = None
    turns: dict[TurnId, None] = field(default_factory=dict[TurnId, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSides:
    """One chain with two different events at the same place: a machine that was cloned."""

    machine: MachineId
    incarnation: Incarnation
    seq: Seq
    ours: EventId
    theirs: EventId


@dataclass(slots=True, kw_only=True)
class Comparison:
    """How many events both have, and the parts that only one of them has, in the logs' order.

    `snapshot` is the last one that only one of them has: the current one of both together.
    """

    shared: int = 0
    snapshot: EventId | None = None
    ours: list[Part] = field(default_factory=list[Part])
    theirs: list[Part] = field(default_factory=list[Part])

    @property
    def concurrent(self) -> bool:
        """Whether each side has what the other lacks."""
        return bool(self.ours and self.theirs)

    @property
    def equivocations(self) -> tuple[TwoSides, ...]:
        """Chains that have two sides, with both digests."""
        found: list[TwoSides] = []
        for mine in self.ours:
            for other in self.theirs:
                same = (mine.machine, mine.incarnation) == (other.machine, other.incarnation)
                if same and mine.first == other.first:
                    found.append(
                        TwoSides(
                            machine=mine.machine,
                            incarnation=mine.incarnation,
                            seq=mine.first,
                            ours=mine.begin,
                            theirs=other.begin,
                        )
                    )
        return tuple(found)


def compare(ours: Iterable[bytes], theirs: Iterable[bytes]) -> Comparison:
    """Compare two logs, each given in pieces. Raises: as `core.merge.union`."""
    found = Comparison()
    parts: dict[tuple[Side, MachineId, Incarnation], Part] = {}
    for side, block in union(ours, theirs):
        if side == "both":
            found.shared += block.count(b"\n") + 1
            continue
        placed = place(block)
        key = (side, placed.mark.machine, placed.mark.incarnation)
        part = parts.get(key)
        if part is None:
            part = parts[key] = _part(placed)
            (found.ours if side == "ours" else found.theirs).append(part)
        _count(part, placed)
        if placed.mark.kind == "snapshot":
            found.snapshot = part.snapshot
    return found


def _part(placed: Placed) -> Part:
    mark = placed.mark
    return Part(
        machine=mark.machine,
        incarnation=mark.incarnation,
        first=mark.seq,
        last=mark.seq,
        begin=placed.id,
        begun=mark.time,
        ended=mark.time,
        epoch=mark.epoch,
    )


def _count(part: Part, placed: Placed) -> None:
    mark = placed.mark
    part.events += 1
    part.last, part.ended = max(part.last, mark.seq), mark.time
    part.epoch = max(part.epoch, mark.epoch)
    if mark.kind == "snapshot":
        part.snapshot = placed.id
    if mark.kind in TURN_KINDS:
        body = msgspec.json.decode(placed.line, type=_Line).body
        if body is not None:
            part.turns[body.turn] = None
