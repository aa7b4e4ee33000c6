"""The union of two logs, line by line: any order of merging gives the same bytes.

Pure and streaming: logs come in as pieces of bytes, lines go out, and memory is bounded whatever
their length. Headers are looked at only where the logs differ, bodies never.
docs/format.md#merge is the specification.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sojourn.core.placed import Mark, Placed, compare, place, place_of
from sojourn.errors import FormatError, UsageError
from sojourn.format import layout
from sojourn.format.pardons import UNREDACTABLE
from sojourn.ids import EventId

Side: TypeAlias = Literal["both", "ours", "theirs"]
"""Which of the two logs holds an event."""

_LONGEST: Final = layout.MAX_LINE

AT_ONCE: Final = 1 << 18
"""About how many bytes of lines are put together before they are given on."""


def merge(
    ours: Iterable[bytes], theirs: Iterable[bytes], *, redacted: Collection[EventId]
) -> Iterator[bytes]:
    """The merged log in pieces: the same bytes whichever log comes first.

    Both are sound logs in pieces of any size; `redacted` is what both of them redact.
    Raises: UsageError `other_lineage`; FormatError `clock_jump`, `file_order`, `body_altered`.
    """
    lines: list[bytes] = []
    size = 0
    for _, block in union(ours, theirs, redacted=redacted):
        lines.append(block)
        size += len(block)
        if size < AT_ONCE:
            continue
        if len(lines) == 1:
            yield block
            yield b"\n"
        else:
            lines.append(b"")
            yield b"\n".join(lines)
        lines, size = [], 0
    if lines:
        lines.append(b"")
        yield b"\n".join(lines)


def union(
    ours: Iterable[bytes], theirs: Iterable[bytes], *, redacted: Collection[EventId] = ()
) -> Iterator[tuple[Side, bytes]]:
    """Each line of both logs once, in order, without its 0x0A, and who holds it.

    Many lines that both hold may come as one block of lines. Raises: as `merge`.
    """
    one, other = _Source(ours), _Source(theirs)
    check_origin(one.peek(), other.peek())
    joining = _Union(frozenset(redacted))
    if not redacted:
        for block in _shared(one, other):
            joining.before = block
            yield "both", block
    yield from joining.run(one, other)


def check_origin(first: bytes | None, second: bytes | None) -> None:
    """Refuse two logs that begin otherwise, given the first line of each, None when it has none.

    Raises: UsageError `other_lineage`; FormatError `identity_missing`.
    """
    if first is None or second is None:
        raise FormatError("the log is empty", code="identity_missing", file=layout.TIMELINE)
    if place(first).header != place(second).header:
        raise UsageError(
            "the two capsules are not of one origin: their logs begin with different events",
            code="other_lineage",
            state="Nothing was changed.",
            hint="Capsules of different origin are never merged. Keep the other one beside this "
            "one: `sojourn import --as-new` or `sojourn fork` makes a capsule of its own of it.",
        )


class _Source:
    """One log: whole lines out of pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._lines: list[bytes] = []
        self._at = 0
        self.data = b""

    def fill(self) -> bool:
        """Whether `data` holds something: what was not split into lines yet."""
        while not self.data:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self.data = piece
        return True

    def more(self) -> bool:
        """Add a piece to `data`."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self.data += piece
        return True

    def take(self) -> bytes | None:
        """The next piece as it comes, None at the end."""
        return next(self._pieces, None)

    def next(self) -> bytes | None:
        """The next line without its 0x0A; None at the end. A last line that has no end is left."""
        if self._at >= len(self._lines) and not self._split():
            return None
        line = self._lines[self._at]
        self._at += 1
        return line

    def peek(self) -> bytes | None:
        """The first line, still in `data`."""
        while b"\n" not in self.data:
            if not self.more():
                return None
        return self.data[: self.data.index(b"\n")]

    def _split(self) -> bool:
        while True:
            if self.data and b"\n" in self.data:
                break
            if len(self.data) > _LONGEST:
                raise FormatError("a line is too long", code="line_too_long", file=layout.TIMELINE)
            if not self.more():
                return False
        self._lines = self.data.split(b"\n")
        self.data = self._lines.pop()
        self._at = 0
        return True


def _shared(one: _Source, other: _Source) -> Iterator[bytes]:
    """The lines that both logs begin with, compared as bytes; the sources then stand behind."""
    yield from _equal_pieces(one, other)
    while one.fill() and other.fill():
        size = min(len(one.data), len(other.data))
        same = one.data[:size] == other.data[:size]
        end = one.data.rfind(b"\n", 0, size if same else _first_difference(one.data, other.data))
        if end >= 0:
            yield one.data[:end]
            one.data, other.data = one.data[end + 1 :], other.data[end + 1 :]
        if not same:
            return
        if end < 0 and not (one.more() if len(one.data) == size else other.more()):
            return


def _equal_pieces(one: _Source, other: _Source) -> Iterator[bytes]:
    """The same, as long as both come in pieces of one size: nothing is copied but what is given."""
    rest, piece = b"", one.data
    if piece != other.data:
        return
    while piece is not None:
        begin, end = piece.find(b"\n"), piece.rfind(b"\n")
        if begin < 0:
            rest += piece
        else:
            yield rest + piece[:begin]
            if end > begin:
                yield piece[begin + 1 : end]
            rest = piece[end + 1 :]
        piece, different = one.take(), other.take()
        if piece != different:
            one.data, other.data = rest + (piece or b""), rest + (different or b"")
            return
    one.data = other.data = rest


def _first_difference(one: bytes, other: bytes) -> int:
    """How many bytes are equal at the beginning; halved again and again, since slices are quick."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(slots=True)
class _Union:
    """The part of a union where the logs differ; `before` ends with the line that came last."""

    redacted: frozenset[EventId]
    before: bytes | None = None
    clock: int | None = None
    last: dict[Side, Mark] = field(default_factory=dict[Side, Mark])

    def run(self, one: _Source, other: _Source) -> Iterator[tuple[Side, bytes]]:
        a, b = one.next(), other.next()
        first: Placed | None = None
        second: Placed | None = None
        while a is not None and b is not None:
            if a == b:
                yield "both", self._equal(a)
                a, first, b, second = one.next(), None, other.next(), None
                continue
            first, second = first or self._placed(a, "ours"), second or self._placed(b, "theirs")
            order = compare(first, second)
            if order < 0:
                yield "ours", self._take(first)
                a, first = one.next(), None
            elif order > 0:
                yield "theirs", self._take(second)
                b, second = other.next(), None
            else:
                yield "both", self._take(_joined(first, second))
                a, first, b, second = one.next(), None, other.next(), None
        yield from self._rest("ours", a, one)
        yield from self._rest("theirs", b, other)

    def _rest(
        self, side: Side, line: bytes | None, source: _Source
    ) -> Iterator[tuple[Side, bytes]]:
        while line is not None:
            yield side, self._take(self._placed(line, side))
            line = source.next()

    def _equal(self, line: bytes) -> bytes:
        """Both logs hold the line, so that its neighbours were compared by whoever read them."""
        if self.redacted:
            return self._take(place(line))
        self.before, self.clock = line, None
        return line

    def _placed(self, line: bytes, side: Side) -> Placed:
        placed = place(line)
        last, mark = self.last.get(side), placed.mark
        if last is not None and mark.clock <= last.clock and place_of(mark) < place_of(last):
            raise FormatError(
                "the lines are not in the order of a log", code="file_order", file=layout.TIMELINE
            )
        self.last[side] = mark
        return placed

    def _take(self, placed: Placed) -> bytes:
        clock = placed.mark.clock
        before = self._clock_before() if self.clock is None else self.clock
        if clock - before > layout.MAX_CLOCK_JUMP:
            raise FormatError(
                f"the clock rises to {clock} at once", code="clock_jump", file=layout.TIMELINE
            )
        self.before, self.clock = placed.line, clock
        if placed.is_null or not self.redacted or placed.id not in self.redacted:
            return placed.line
        return placed.line if placed.mark.kind in UNREDACTABLE else placed.without_body()

    def _clock_before(self) -> int:
        line = self.before
        return 0 if line is None else place(line[line.rfind(b"\n") + 1 :]).mark.clock


def _joined(one: Placed, other: Placed) -> Placed:
    """One event in two copies: the copy with a body counts, unless it was redacted.

    Raises: FormatError when the bodies differ.
    """
    if one.is_null or other.is_null:
        return other if one.is_null else one
    if one.line == other.line:
        return one
    raise FormatError(
        f"the two capsules hold different bodies of the event {one.id}",
        code="body_altered",
        file=layout.TIMELINE,
    )
