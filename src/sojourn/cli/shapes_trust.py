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


class UnseenShape(Shape, frozen=True, kw_only=True):
    """A file that was not looked into; `within` is the path in the workspace of a blob, or empty.

    `why` is `unreadable` (`message` says more), `misnamed` (no blob has such a name), or what hides
    its text: `compressed`, `enciphered`, `in wide characters`.
    """

    file: str
    within: str
    why: str
    message: str


class ScanAnswer(Answer, frozen=True, kw_only=True):
    """`scan`: every likely secret, and every file that was not looked into."""

    capsule: CapsuleShape
    suspects: tuple[SuspectShape, ...]
    unseen: tuple[UnseenShape, ...]
