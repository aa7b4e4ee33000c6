"""What one copy of a capsule has and another lacks, in words (for `merge` and `diff`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sojourn.cli.people import clock_time, counted
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.cli.shapes_merge import PartShape, SidesShape
    from sojourn.drive.compare import Comparison, Part


def part_shapes(parts: "Sequence[Part]") -> "tuple[PartShape, ...]":
    """The parts as --json shows them."""
    from sojourn.cli.shapes_merge import PartShape

    return tuple(
        PartShape(
            machine=part.machine,
            incarnation=part.incarnation,
            epoch=part.epoch,
            events=part.events,
            first=part.first,
            last=part.last,
            begun=part.begun,
            ended=part.ended,
            turns=tuple(part.turns),
            snapshot=part.snapshot,
        )
        for part in parts
    )


def side_shapes(comparison: "Comparison") -> "tuple[SidesShape, ...]":
    """The equivocations as --json shows them."""
    from sojourn.cli.shapes_merge import SidesShape

    return tuple(
        SidesShape(
            machine=sides.machine,
            incarnation=sides.incarnation,
            seq=sides.seq,
            ours=sides.ours,
            theirs=sides.theirs,
        )
        for sides in comparison.equivocations
    )


def say_parts(voice: Voice, mark: str, style: str, parts: "Sequence[PartShape]") -> None:
    """One line for each chain: machine, events, turns, when."""
    for part in parts:
        what = counted(part.events, "event")
        if part.turns:
            what += f", {counted(len(part.turns), 'turn')}"
        when = f"{clock_time(part.begun)} to {clock_time(part.ended)}"
        who = Painted(f"machine {part.machine[:8]}", "name")
        voice.data(Painted(f"{mark} ", style), who, f"  {what}  ", Painted(when, "dim"))


def say_sides(voice: Voice, sides: "Sequence[SidesShape]") -> None:
    """Both digests of each place that has two events."""
    for one in sides:
        voice.data(
            Painted("two events at one place ", "alarm"),
            f"of machine {one.machine[:8]}, seq {one.seq}: {one.ours} and {one.theirs}",
        )
