"""The lines on the left of `sojourn graph`: one lane a strand, and how lanes part and join."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

PLAIN: Final = str.maketrans("●│├┤─╮╯╭╰┼", "*|++-\\//\\+")
"""What stands for each sign where only ASCII is wanted."""


_FLIPPED: Final = str.maketrans("╮╯╭╰", "╯╮╰╭")
"""The same corners seen from below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A row as lanes see it: its strand, and at the strand's first row what it goes on from."""

    strand: int
    begins: bool = False
    over: tuple[int, ...] = ()


def draw(steps: Sequence[Step]) -> Iterator[tuple[str, int | None]]:
    """Lines with the number of the row that each is of, None for a line between rows."""
    lanes = _Lanes(_last_uses(steps))
    for number, step in enumerate(steps):
        if step.begins:
            for line in lanes.begin(number, step):
                yield line, None
        yield lanes.line(step.strand), number
        lanes.free(number)


def upside_down(drawn: Sequence[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    """The same drawing with its last line on top."""
    return [(line.translate(_FLIPPED), number) for line, number in reversed(drawn)]


def _last_uses(steps: Sequence[Step]) -> dict[int, int]:
    """The last row in which each strand is needed: its own, or one that goes on from it.

    Many later rows may name a strand that ended; it counts where it is the first of them, and once.
    """
    last = {step.strand: number for number, step in enumerate(steps)}
    own, joined = dict(last), set[int]()
    for number, step in enumerate(steps):
        for place, strand in enumerate(step.over):
            ended = strand not in joined and own.get(strand, number) < number
            if place == 0 or ended:
                last[strand] = max(number, last.get(strand, 0))
            if ended:
                joined.add(strand)
    return last


@dataclass(slots=True)
class _Lanes:
    last: dict[int, int]
    at: list[int | None] = field(default_factory=list[int | None])

    def begin(self, number: int, step: Step) -> Iterator[str]:
        """Give the strand a lane: that of what it goes on from, when that one ends here."""
        known = [strand for strand in step.over if strand in self.at]
        ending = [strand for strand in known if self.last[strand] <= number]
        if known and known[0] in ending:
            lane = self.at.index(known[0])
        else:
            lane = self._free_lane()
        parted = bool(known) and known[0] not in ending
        self.at[lane] = step.strand
        if parted:
            yield self._across(self.at.index(known[0]), lane, ends="╮╭")
        for strand in ending:
            if strand in self.at:
                other = self.at.index(strand)
                yield self._across(lane, other, ends="╯╰")
                self.at[other] = None

    def line(self, strand: int) -> str:
        signs = (" " if one is None else "●" if one == strand else "│" for one in self.at)
        return " ".join(signs).rstrip()

    def free(self, number: int) -> None:
        """Strands that nothing comes of any more leave their lanes."""
        self.at = [None if one is None or self.last[one] <= number else one for one in self.at]
        while self.at and self.at[-1] is None:
            self.at.pop()

    def _free_lane(self) -> int:
        if None in self.at:
            return self.at.index(None)
        self.at.append(None)
        return len(self.at) - 1

    def _across(self, start: int, end: int, *, ends: str) -> str:
        """A line from one lane to another; `ends` is its last sign, to the right or the left."""
        low, high = min(start, end), max(start, end)
        signs: list[str] = []
        for lane, one in enumerate(self.at):
            if lane == start:
                signs.append("├" if end > start else "┤")
            elif lane == end:
                signs.append(ends[0] if end > start else ends[1])
            elif low < lane < high:
                signs.append("─" if one is None else "┼")
            else:
                signs.append(" " if one is None else "│")
            signs.append("─" if low <= lane < high else " ")
        return "".join(signs).rstrip()
