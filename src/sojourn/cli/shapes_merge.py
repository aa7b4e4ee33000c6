"""What `merge`, `diff` and `graph` print with --json (see `cli/shapes.py`)."""

from typing import Literal

from sojourn.cli.shapes import Answer, CapsuleShape, Shape


class PartShape(Shape, frozen=True, kw_only=True):
    """Events of one chain that only one side has: `first` to `last` by seq, with their times.

    `snapshot` is the last of them that is a snapshot of the workspace.
    """

    machine: str
    incarnation: str
    epoch: int
    events: int
    first: int
    last: int
    begun: str
    ended: str
    turns: tuple[str, ...]
    snapshot: str | None


class SidesShape(Shape, frozen=True, kw_only=True):
    """Two different events at one place of a chain: both are kept, and running stops."""

    machine: str
    incarnation: str
    seq: int
    ours: str
    theirs: str


class MergeAnswer(Answer, frozen=True, kw_only=True):
    """`merge`: what came; `planned` with --dry-run, `nothing` when the other has nothing more.

    `concurrent`: each side has events that the other lacks. `notes` counts the versions that the
    working memory holds, `stopped` says why it does not run before a claim. `current_snapshot` is
    the last one that only one of them had.
    """

    capsule: CapsuleShape
    other: CapsuleShape
    done: Literal["merged", "planned", "nothing"]
    concurrent: bool
    shared: int
    ours: tuple[PartShape, ...]
    theirs: tuple[PartShape, ...]
    equivocations: tuple[SidesShape, ...]
    blobs: int
    redacted: int
    notes: int
    stopped: str | None
    current_snapshot: str | None


class DiffAnswer(Answer, frozen=True, kw_only=True):
    """`diff`: what each has that the other lacks; `same` when nothing differs.

    `notes` is a unified diff of the working memory, empty when it is the same.
    """

    capsule: CapsuleShape
    other: CapsuleShape
    same: bool
    shared: int
    ours: tuple[PartShape, ...]
    theirs: tuple[PartShape, ...]
    equivocations: tuple[SidesShape, ...]
    notes: str
    files_changed: tuple[str, ...]
    files_ours: tuple[str, ...]
    files_theirs: tuple[str, ...]


class StrandShape(Shape, frozen=True, kw_only=True):
    """A chain, or one side of an equivocated one; `over` are those that it goes on from."""

    machine: str
    incarnation: str
    capsule: str | None
    begin: str
    head: str
    epoch: int
    events: int
    second_side: bool
    over: tuple[int, ...]


class RowShape(Shape, frozen=True, kw_only=True):
    """One thing that a strand did: a beginning, a turn, or another event of note."""

    strand: int
    kind: str
    event: str
    number: int
    time: str
    last_time: str
    epoch: int
    text: str
    ended: str | None
    model_calls: int
    tool_calls: int
    current: bool


class GraphAnswer(Answer, frozen=True, kw_only=True):
    """`graph`: strands by number, and what they did in the order of the log."""

    capsule: CapsuleShape
    strands: tuple[StrandShape, ...]
    rows: tuple[RowShape, ...]
