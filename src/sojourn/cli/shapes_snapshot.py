"""The objects that the commands of snapshots print with --json."""

from typing import Literal

from sojourn.cli.shapes import Answer, CapsuleShape, Shape


class LeftOutShape(Shape, frozen=True, kw_only=True):
    """A path that was left out or not made, and why."""

    path: str
    reason: str


class SnapshotShape(Shape, frozen=True, kw_only=True):
    """A snapshot event: its list's `entries`, the bytes of their contents, what it left out."""

    event: str
    number: int
    time: str
    entries: int
    size: int
    left_out: int
    current: bool


class SnapshotTaken(Answer, frozen=True, kw_only=True):
    """`snapshot take`: the snapshot in force; `new` when something had changed since the last.

    `event` is null while there is none, since the workspace is empty.
    """

    capsule: CapsuleShape
    event: str | None
    new: bool
    entries: int
    size: int
    changed: int
    gone: int
    left_out: tuple[LeftOutShape, ...]


class SnapshotList(Answer, frozen=True, kw_only=True):
    """`snapshot list`: every snapshot of the log, the oldest first."""

    capsule: CapsuleShape
    snapshots: tuple[SnapshotShape, ...]


class DifferenceShape(Shape, frozen=True, kw_only=True):
    """One path that two snapshots have differently; sha256 and size are of the later one."""

    path: str
    change: Literal["added", "modified", "removed", "type"]
    sha256: str | None
    size: int | None


class SnapshotDiff(Answer, frozen=True, kw_only=True):
    """`snapshot diff`: what is to be done to the workspace of `before` to get that of `after`."""

    capsule: CapsuleShape
    before: str | None
    after: str | None
    differences: tuple[DifferenceShape, ...]


class SnapshotRestored(Answer, frozen=True, kw_only=True):
    """`snapshot restore`: files made and removed in `folder`, links that were not made.

    `before` is the snapshot of what was there, null with --to; `missing` are the keys of calls
    whose effects the workspace now lacks.
    """

    capsule: CapsuleShape
    snapshot: str | None
    folder: str
    before: str | None
    made: int
    removed: int
    not_made: tuple[LeftOutShape, ...]
    missing: tuple[str, ...]
