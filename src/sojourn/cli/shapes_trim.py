"""What `redact`, `repair`, `gc` and `state` print with --json."""

from sojourn.cli.shapes import Answer, CapsuleShape, Shape


class RedactAnswer(Answer, frozen=True, kw_only=True):
    """`redact`: the event whose body is gone, the event that says so, and how many blobs went.

    Of contents of files there is no event and no kind: `contents` are their digests, and `paths`
    all that ever had one of them.
    """

    capsule: CapsuleShape
    event: str | None
    kind: str | None
    redacted: str
    blobs: int
    contents: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class GapShape(Shape, frozen=True, kw_only=True):
    """Events that are missing in a chain, `first` to `last`."""

    machine: str
    incarnation: str
    first: int
    last: int


class AsideShape(Shape, frozen=True, kw_only=True):
    """Bytes of the log that are set aside; `line` is the first, from 1."""

    code: str
    line: int
    bytes: int
    gap: GapShape | None


class LostShape(Shape, frozen=True, kw_only=True):
    """A blob that is lost, and the events that name it."""

    blob: str
    code: str
    events: tuple[str, ...]


class RepairAnswer(Answer, frozen=True, kw_only=True):
    """`repair`: what was set aside, or would be; `manifest` is why it was made anew."""

    capsule: CapsuleShape
    done: bool
    aside: tuple[AsideShape, ...]
    gaps: tuple[GapShape, ...]
    lost: tuple[LostShape, ...]
    manifest: str | None


class UnnamedShape(Shape, frozen=True, kw_only=True):
    """A blob that nothing names; `days` since it was written."""

    blob: str
    bytes: int
    days: int


class GcAnswer(Answer, frozen=True, kw_only=True):
    """`gc`: blobs that nothing names; `removed` when they are gone."""

    capsule: CapsuleShape
    removed: bool
    blobs: tuple[UnnamedShape, ...]


class DocumentShape(Shape, frozen=True, kw_only=True):
    """A typed document; `value` is its JSON source text."""

    name: str
    schema: str
    version: int
    value: str


class OpenCallShape(Shape, frozen=True, kw_only=True):
    """A call of the open turn's last reply."""

    call: str
    tool: str
    state: str


class StateAnswer(Answer, frozen=True, kw_only=True):
    """`state`: how the capsule stood after `event`; `snapshot` is that of the workspace then."""

    capsule: CapsuleShape
    event: str
    number: int
    time: str
    model: str | None
    configured: str | None
    turn: str | None
    paused: str | None
    calls: tuple[OpenCallShape, ...]
    documents: tuple[DocumentShape, ...]
    notes: str
    snapshot: str | None
