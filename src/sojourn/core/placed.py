"""Lines of a log by their place: headers are read, bodies never (docs/format.md#order)."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.ids import Clock, Epoch, EventId, Incarnation, MachineId, Seq

_HEADER: Final = b',"header":'
_NULL: Final = b'{"body":null,"header":'


class Mark(msgspec.Struct, frozen=True, gc=False):
    """What is read of a header; by the first four a log is sorted, and then by the id."""

    clock: Clock
    machine: MachineId
    incarnation: Incarnation
    seq: Seq
    kind: str
    epoch: Epoch
    time: str


_mark = msgspec.json.Decoder(Mark).decode


@dataclass(frozen=True, slots=True)
class Placed:
    """A line, given without its 0x0A, with its place in the order of the log."""

    line: bytes
    header: bytes
    mark: Mark

    @property
    def id(self) -> EventId:
        """The event's id."""
        return EventId(sha256(self.header).hexdigest())

    @property
    def is_null(self) -> bool:
        """Whether the body is gone."""
        return self.line.startswith(_NULL)

    def without_body(self) -> bytes:
        """The line with its body taken away."""
        return _NULL + self.header + b"}"


def place(line: bytes) -> Placed:
    """The line with its place; a header holds no object, so the last `,"header":` begins it.

    Raises: FormatError `line_malformed`.
    """
    at = line.rfind(_HEADER)
    header = line[at + len(_HEADER) : -1]
    try:
        return Placed(line, header, _mark(header))
    except msgspec.MsgspecError as error:
        message = f"a line of the log cannot be read: {error}"
        raise FormatError(message, code="line_malformed", file=layout.TIMELINE) from None


def compare(one: Placed, other: Placed) -> int:
    """Below 0 when the first stands before the second, 0 when both are one event."""
    first, second = one.mark, other.mark
    if first.clock != second.clock:
        return first.clock - second.clock
    if first.machine != second.machine:
        return -1 if first.machine < second.machine else 1
    before, after = (*place_of(first), one.id), (*place_of(second), other.id)
    return (before > after) - (before < after)


def place_of(mark: Mark) -> tuple[int, str, str, int]:
    """By what lines are sorted, but for the id."""
    return (mark.clock, mark.machine, mark.incarnation, mark.seq)
