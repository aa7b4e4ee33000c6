"""The snapshot events of a log, folded: the list at the last of them, or at any other.

docs/format.md#snapshots is the specification. Nothing is read before a list is asked for.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sojourn.errors import FormatError
from sojourn.format import layout, snapshot
from sojourn.format.blob import check
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.failures import say
from sojourn.format.parts import BlobRef, Text
from sojourn.format.snapshot import Delta, Snapshot
from sojourn.ids import BlobId, EventId

ReadBlob = Callable[[BlobRef], bytes | None]
"""The bytes of a blob, None when it is not there."""


class Content(NamedTuple):
    """The bytes of a file, or the target of a link, in a workspace."""

    blob: BlobId
    size: int


class _Mark(NamedTuple):
    """One snapshot event; `weight` is the bytes of all deltas since the last whole list."""

    body: Snapshotted
    weight: int


class Snapshots:
    """Every snapshot event of a log, taken in its order; `current` is the last one."""

    def __init__(self) -> None:
        self._marks: dict[EventId, _Mark] = {}
        self.current: EventId | None = None

    def add(self, event: EventId, body: Snapshotted) -> None:
        """Take in the log's next snapshot event."""
        parent = None if body.parent is None else self._marks.get(body.parent)
        whole = body.full is not None or body.parent is None
        weight = 0 if parent is None else parent.weight
        self._marks[event] = _Mark(body, 0 if whole else weight + text_size(body.delta))
        self.current = event

    def __contains__(self, event: object) -> bool:
        return event in self._marks

    def __iter__(self) -> Iterator[tuple[EventId, Snapshotted]]:
        """Every snapshot event in the order of the log."""
        return ((event, mark.body) for event, mark in self._marks.items())

    @property
    def result(self) -> BlobId:
        """The digest of the current list."""
        mark = None if self.current is None else self._marks[self.current]
        return snapshot.NOTHING if mark is None else BlobId(mark.body.result)

    def wants_full(self, delta: int, whole: int) -> bool:
        """Whether the next event should hold the list of `whole` bytes, its delta having `delta`.

        So all snapshots of a capsule take space linear in what changed.
        """
        if self.current is None:
            return False
        return self._marks[self.current].weight + delta > whole

    def list_at(self, event: EventId | None, read: ReadBlob) -> Snapshot:
        """The list of the snapshot event, that of an empty workspace for None.

        Raises: FormatError `snapshot_malformed`, `blob_missing`, `blob_altered`, or what is wrong
        with the JSON.
        """
        chain: list[_Mark] = []
        while event is not None:
            mark = self._marks.get(event)
            if mark is None or len(chain) > len(self._marks):
                raise _malformed(f"no earlier event {event} is a snapshot")
            chain.append(mark)
            event = None if mark.body.full is not None else mark.body.parent
        found = snapshot.EMPTY
        for mark in reversed(chain):
            full = mark.body.full
            if full is not None:
                found = snapshot.load(check(full.sha256, read(full), size=full.size))
            else:
                found = snapshot.apply(found, delta_of(mark.body, read))
        if chain and snapshot.digest(snapshot.encode(found)) != chain[0].body.result:
            raise _malformed("the list is not the one that its event names")
        return found


def contents_of(body: Snapshotted, read: ReadBlob) -> tuple[Content, ...]:
    """The contents that a snapshot's delta names, in its order.

    Raises: FormatError as `Snapshots.list_at`.
    """
    changed = delta_of(body, read).changed
    pairs = ((entry.sha256, entry.size) for entry in changed)
    return tuple(
        Content(name, size) for name, size in pairs if name is not None and size is not None
    )


def known_contents(body: Snapshotted, read: ReadBlob) -> tuple[Content, ...]:
    """The same, and none where the delta cannot be read: then its own blob is what is wrong."""
    try:
        return contents_of(body, read)
    except FormatError:
        return ()


def delta_of(body: Snapshotted, read: ReadBlob) -> Delta:
    """The delta of one snapshot event.

    Raises: FormatError as `Snapshots.list_at`.
    """
    text = body.delta
    if isinstance(text, str):
        return snapshot.load_delta(text.encode(errors="surrogatepass"))
    if text.size > layout.MAX_SNAPSHOT:
        raise FormatError(say("too_long"), code="too_long", file=snapshot.DELTA, line=1)
    return snapshot.load_delta(check(text.sha256, read(text), size=text.size))


def text_size(text: Text) -> int:
    """Bytes of a text, wherever it lies."""
    return len(text.encode(errors="surrogatepass")) if isinstance(text, str) else text.size


def _malformed(detail: str) -> FormatError:
    code = "snapshot_malformed"
    return FormatError(say(code, detail), code=code, file=layout.TIMELINE)
