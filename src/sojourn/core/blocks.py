"""Blocks: concurrent turns one after the other, each whole (docs/protocol.md#blocks).

A block is what one strand wrote from one end of a turn to the next, or to where another strand
took it over. Blocks stand in the order of their last events, and the open block of the strand that
goes on here stands last. Where nothing was concurrent that is the order of the log, and nothing is
ever moved.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Blocks(Generic[Entry]):
    """Entries by their place in the log, and in the order of the blocks.

    `touch` comes first for every event, in the order of the log; then what it adds.
    """

    def __init__(self) -> None:
        self._logged: list[Entry] = []
        self._block_of: list[int] = []
        self._order: dict[int, None] = {}
        self._made = 0
        self._open: dict[int, int] = {}
        self._strand = self._adder = -1
        self._block = -1
        self._mixed = False
        self._own: int | None = None
        self._shown: list[Entry] | None = None
        self._places: list[int] = []
        self._shown_last = -1

    def __len__(self) -> int:
        return len(self._logged)

    def touch(self, strand: int) -> None:
        """An event of this strand comes."""
        if strand == self._strand:
            return
        self._strand = strand
        block = self._open.get(strand)
        if block is None:
            block = self._begin(strand)
        elif block != self._block:
            self._mixed = True
            if block != self._shown_last:
                self._shown = None
            del self._order[block]
        self._order[block] = None
        self._block = block

    def _begin(self, strand: int) -> int:
        block = self._open[strand] = self._made
        self._made += 1
        own = None if self._own is None else self._open.get(self._own)
        if own is not None and own != block:
            self._shown = None
        self._shown_last = block
        return block

    def end(self, strand: int) -> None:
        """The strand's turn has ended, or another one took it over: its block is whole."""
        if self._open.pop(strand, self._block) != self._block:
            self._shown = None
        if strand == self._strand:
            self._strand = -1

    def add(self, entry: Entry) -> int:
        """Add an entry to the block that was touched last; its place in the log."""
        at = len(self._logged)
        self._adder = self._strand
        self._logged.append(entry)
        self._block_of.append(self._block)
        if self._shown is not None:
            if self._block == self._shown_last:
                self._places.append(len(self._shown))
                self._shown.append(entry)
            else:
                self._shown = None
        return at

    def last(self) -> tuple[Entry | None, int]:
        """The entry that was added last, and whose it is."""
        return (self._logged[-1] if self._logged else None), self._adder

    def get(self, at: int) -> Entry:
        """The entry at that place of the log."""
        return self._logged[at]

    def put(self, at: int, entry: Entry) -> None:
        """Put another entry in the place of one."""
        self._logged[at] = entry
        if self._shown is not None:
            self._shown[self._places[at]] = entry

    def own(self, strand: int | None) -> None:
        """Say whose open block stands last."""
        if strand != self._own:
            self._own = strand
            self._shown = None

    def in_order(self) -> Sequence[Entry]:
        """All entries, block by block; the sequence goes on to grow where it can."""
        own = None if self._own is None else self._open.get(self._own)
        last = next(reversed(self._order), None)
        if self._shown is None and (self._mixed or own not in (None, last)):
            self._lay_out(own)
        return self._logged if self._shown is None else self._shown

    def _lay_out(self, own: int | None) -> None:
        rank = {block: number for number, block in enumerate(self._order)}
        if own is not None:
            rank[own] = len(rank)
        order = sorted(range(len(self._logged)), key=lambda at: rank[self._block_of[at]])
        self._places = [0] * len(order)
        for place, at in enumerate(order):
            self._places[at] = place
        self._shown = [self._logged[at] for at in order]
        self._shown_last = max(rank, key=lambda block: rank[block])
