"""What `move` and `drain` print with --json (see `cli/shapes.py`)."""

from typing import Literal

from sojourn.cli.shapes import Answer, CapsuleShape, FaultShape, Shape


class CheckShape(Shape, frozen=True, kw_only=True):
    """One item of the checklist of the other machine; what is not `ok` stands against the move."""

    what: str
    ok: bool
    code: str
    message: str
    hint: str


class PhaseShape(Shape, frozen=True, kw_only=True):
    """One phase of a move: how long it took, in milliseconds, and the bytes that it sent."""

    phase: str
    milliseconds: int
    bytes: int


class MoveAnswer(Answer, frozen=True, kw_only=True):
    """`move`: `fit` and `unfit` are of --dry-run, or of a move that was not begun.

    `bytes_frozen` were sent while nobody could run the agent, for `frozen_milliseconds`.
    `forwarded` counts messages that waited here and were sent on.
    """

    capsule: CapsuleShape
    outcome: Literal["moved", "cancelled", "in_doubt", "fit", "unfit"]
    move: str
    machine: str
    address: str
    exit: int
    reason: FaultShape | None
    checklist: tuple[CheckShape, ...]
    phases: tuple[PhaseShape, ...]
    bytes_ahead: int
    bytes_frozen: int
    frozen_milliseconds: int
    forwarded: int


class PendingShape(Shape, frozen=True, kw_only=True):
    """Something that is still to be said: a doubt, a cancelled move, or messages to send on."""

    what: Literal["asks", "tells", "forwards"]
    machine: str
    address: str


class MovingShape(Shape, frozen=True, kw_only=True):
    """How moves of one capsule stand here; `move` is the one under way or arriving, else empty.

    `epoch` is that of the move, 0 without one.
    """

    capsule: CapsuleShape
    state: Literal["NONE", "HOLDER", "SUSPECT", "FROZEN", "IN_DOUBT", "RETIRED"]
    move: str
    epoch: int
    machine: str
    address: str
    arriving: bool
    pending: tuple[PendingShape, ...]
    failures: tuple[FaultShape, ...]


class MoveStatusAnswer(Answer, frozen=True, kw_only=True):
    """`move status`, `resume` and `abort`: every capsule with a move, or the named one."""

    capsules: tuple[MovingShape, ...]


class DrainLine(Answer, frozen=True, kw_only=True):
    """`drain`: one capsule, as soon as it is known what became of it."""

    capsule: CapsuleShape
    outcome: Literal["moved", "cancelled", "in_doubt", "unfit", "failed"]
    exit: int
    reason: FaultShape | None
    frozen_milliseconds: int
