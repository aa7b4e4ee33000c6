"""What the `memory` commands print with --json."""

from typing import Literal

from sojourn.cli.shapes import Answer, CapsuleShape, Shape


class EditShape(Shape, frozen=True, kw_only=True):
    """One edit of the notes; `number` is that of its event, `sha256` of the whole text after it."""

    event: str
    number: int
    time: str
    origin: Literal["hand", "tool", "created"]
    sha256: str
    added: int
    removed: int


class LineShape(Shape, frozen=True, kw_only=True):
    """A line of the notes and the event that wrote it, null when it is not in the log yet."""

    text: str
    event: str | None
    number: int | None


class MemoryShowAnswer(Answer, frozen=True, kw_only=True):
    """`memory show`: the notes at `event`, null for now; `lines` only with --blame."""

    capsule: CapsuleShape
    event: str | None
    sha256: str
    text: str
    lines: tuple[LineShape, ...] | None


class MemoryLogAnswer(Answer, frozen=True, kw_only=True):
    """`memory log`: every edit, the oldest first; `unrecorded` when the file has one more."""

    capsule: CapsuleShape
    edits: tuple[EditShape, ...]
    unrecorded: bool


class MemoryDiffAnswer(Answer, frozen=True, kw_only=True):
    """`memory diff`: a unified diff; an event is null where it is the file as it is now."""

    capsule: CapsuleShape
    before: str | None
    after: str | None
    diff: str


class MemoryEditAnswer(Answer, frozen=True, kw_only=True):
    """`memory edit`: the edit's request id, null when nothing changed; `recorded` in the log."""

    capsule: CapsuleShape
    request: str | None
    recorded: bool
    sha256: str
