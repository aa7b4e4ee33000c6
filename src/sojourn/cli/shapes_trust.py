"""What the commands about trust print with --json."""

from sojourn.cli.shapes import Answer, CapsuleShape, Shape


class SuspectShape(Shape, frozen=True, kw_only=True):
    """What is likely a secret: its kind and place, never its value; `line` from 1 in `file`.

    `event` and `number` name the event in that line of the log, null elsewhere.
    """

    id: str
    rule: str
    file: str
    line: int
    event: str | None
    number: int | None
    within: str


class ScanAnswer(Answer, frozen=True, kw_only=True):
    """`scan`: every likely secret."""

    capsule: CapsuleShape
    suspects: tuple[SuspectShape, ...]
