"""Snapshots that stand side by side after a merge: neither was taken knowing of the other."""

from dataclasses import dataclass

from sojourn.agent.look import Look
from sojourn.core.strands import Strands, heads_of
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.ids import EventId, MachineId, Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSnapshot:
    """A snapshot of one side; `own` when the chain took it by which the capsule is held."""

    event: EventId
    number: int
    seq: Seq
    strand: int
    machine: MachineId
    time: str
    own: bool


def snapshots_side_by_side(look: Look) -> tuple[SideSnapshot, ...]:
    """The snapshots that no later one was taken in knowledge of; none where that is only one.

    In the order of the log, so that the current one is the last. A log of one strand is not read.
    """
    known = look.folded.states.strands
    if len(known.tips) < 2:
        return ()
    own = known.of_chain(look.folded.own)
    strands, sides = Strands(), list[SideSnapshot]()
    for number, event in look.numbered():
        at, header = strands.follow(event), event.header
        strands.learn(at, heads_of(event))
        if isinstance(event.body, Snapshotted):
            sides = [one for one in sides if not strands.knows(at, one.strand, one.seq)]
            sides.append(
                SideSnapshot(
                    event=event.id,
                    number=number,
                    seq=header.seq,
                    strand=at,
                    machine=header.machine,
                    time=header.time,
                    own=at == own,
                )
            )
    return tuple(sides) if len(sides) > 1 else ()
