"""What `fork`, `claim`, `adopt` and `explain` print with --json (see `cli/shapes.py`)."""

from typing import Literal

from sojourn.cli.shapes import (
    Answer,
    CallShape,
    CapsuleShape,
    FaultShape,
    HeldShape,
    QuestionShape,
    Shape,
    SideShape,
)
from sojourn.core.standings import Standing


class ForkAnswer(Answer, frozen=True, kw_only=True):
    """`fork`: the new capsule; `event` is the last one of its parent that it keeps.

    `set_aside` counts the calls that the parent had open, `missing` those whose effects the
    workspace may lack, after the event `snapshot`, null for an empty workspace.
    """

    capsule: CapsuleShape
    parent: str
    event: str
    epoch: int
    set_aside: int
    snapshot: str | None
    missing: int


class ClaimAnswer(Answer, frozen=True, kw_only=True):
    """`claim`: `held` when there was nothing to claim, `finished` when an earlier one was cut off.

    `reasons` are why it did not run here, `lost_bytes` what this machine remembers of its log and
    is not there.
    """

    capsule: CapsuleShape
    done: Literal["claimed", "finished", "held"]
    forced: bool
    epoch: int
    reasons: tuple[FaultShape, ...]
    lost_bytes: int


class OrphanShape(Shape, frozen=True, kw_only=True):
    """One capsule of `adopt`; `epoch` once it is adopted, `why` when it is not."""

    capsule: CapsuleShape
    state: Literal["waiting", "adopted", "refused"]
    reasons: tuple[FaultShape, ...]
    lost_bytes: int
    epoch: int | None
    why: str


class AdoptAnswer(Answer, frozen=True, kw_only=True):
    """`adopt`: `machine` is this machine's id, null while its key is that of another host."""

    machine: str | None
    new_key: bool
    capsules: tuple[OrphanShape, ...]


class ReasonShape(Shape, frozen=True, kw_only=True):
    """One reason why a capsule does not run here, and what can be done."""

    code: str
    message: str
    hint: str


class RecordShape(Shape, frozen=True, kw_only=True):
    """This machine's own record of a capsule; `floor` is the highest epoch that it knows of."""

    state: Literal["NONE", "HOLDER", "SUSPECT", "FROZEN", "IN_DOUBT", "RETIRED"]
    epoch: int
    floor: int
    folder: str
    unfinished_claim: bool


class ExplainAnswer(Answer, frozen=True, kw_only=True):
    """`explain`: `holder` and `epoch` as the capsule says, `reasons` with the gravest first.

    `sides` are the snapshots that stand side by side after a merge, as in `status`.
    """

    capsule: CapsuleShape
    standing: Standing
    may_run: bool
    machine: str | None
    holder: str | None
    epoch: int
    record: RecordShape | None
    held_by: HeldShape | None
    turn: str | None
    model_calls: int
    calls: tuple[CallShape, ...]
    question: QuestionShape | None
    waiting: int
    sides: tuple[SideShape, ...]
    reasons: tuple[ReasonShape, ...]
