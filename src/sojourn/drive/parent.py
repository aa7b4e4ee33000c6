"""Reads what a fork keeps of its parent: a prefix of the log, and everything that it names.

No lock is needed: the log only grows, and a prefix of whole lines that is sound stays so
(docs/protocol.md#fork).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sojourn.core.turn_state import TurnState
from sojourn.drive.reading import Folding, blob_or_none, ending_of, read_manifest
from sojourn.drive.refill import Remaining, Remains
from sojourn.errors import FormatError, NotFoundError, UsageError
from sojourn.format import blob, layout
from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Sealed, Snapshotted
from sojourn.format.event import EnvironmentChanged, Event
from sojourn.format.failures import stops_running
from sojourn.format.gone import Gone
from sojourn.format.manifest import Features, Manifest, access
from sojourn.format.parts import BlobRef, Text
from sojourn.format.snapshot_fold import known_contents
from sojourn.format.timeline_read import Damage, Ending, Item, Known, Reader
from sojourn.ids import BlobId, CapsuleId, Clock, Epoch, EventId
from sojourn.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """What a fork keeps: the log's first `length` bytes, with their sha256, and how things stand.

    `capsule` is the id of the parent, `at` its last event that is kept, `ends` the heads of all
    chains, `sides` those of all their sides, `continues` the one
    of these that `state` is of, `blobs` what these lines name and was not redacted,
    `redacted` what they name and was redacted after them.
    """

    capsule: CapsuleId
    at: EventId
    length: int
    digest: str
    ends: tuple[Head, ...]
    sides: tuple[Head, ...]
    continues: EventId | None
    clock: Clock
    epoch: Epoch
    features: Features
    state: TurnState
    memory: str
    environment: EnvironmentChanged | None
    remains: Remains
    blobs: tuple[BlobId, ...]
    redacted: tuple[BlobId, ...]


def read_parent(store: Store, at: EventId | None) -> Parent:
    """Read and check what is kept by a fork at the event, or at the log's end.

    Raises: NotFoundError `event_missing`; UsageError `fork_too_early`; FormatError `format_newer`,
    or the name of the first damage; StorageError.
    """
    manifest = read_manifest(store)
    if access(manifest) == "read":
        raise FormatError(
            "the capsule was written in a newer format than this version can write",
            code="write_version_newer",
            hint="Fork it with the version that wrote it, or a newer one.",
        )
    length = _end_of(store, manifest, at)
    reading = _Reading(store)
    ending = reading.read(length)
    folding = reading.folding
    if folding.transcript.configured is None or ending.last is None:
        raise UsageError(
            "the agent was not configured yet at this event",
            code="fork_too_early",
            state="Nothing was made.",
            hint="Fork at a later event, or make a new capsule with `sojourn init`.",
        )
    later = _redacted_later(store, reading.named, ending.gone)
    gone = ending.gone | Gone(redacted=later)
    return Parent(
        capsule=_capsule(manifest, ending),
        at=ending.last,
        length=length,
        digest=ending.digest.hexdigest(),
        ends=ending.heads,
        sides=ending.sides,
        clock=ending.clock,
        epoch=max(ending.epochs.values()),
        features=manifest.features,
        state=folding.states.taken_over(ending.sides),
        continues=folding.states.line_of(ending.sides),
        memory=reading.text(folding.memory.text),
        environment=folding.environment(None),
        remains=reading.remaining.last(gone),
        blobs=tuple(sorted(_there(store, reading.named, gone))),
        redacted=tuple(sorted(later)),
    )


def _redacted_later(store: Store, named: Iterable[BlobId], gone: Gone) -> frozenset[BlobId]:
    """What is not there any more, since the log says so after what is kept of it."""
    absent = {name for name in named if name not in gone and not store.has_blob(name)}
    if not absent:
        return frozenset()
    return ending_of(store.read_log(), store).gone.redacted & absent


def _there(store: Store, named: Iterable[BlobId], gone: Gone) -> Iterator[BlobId]:
    """What is copied: no blob that was redacted, and none that was lost and is not back."""
    for name in named:
        if name not in gone.redacted and (name not in gone.lost or store.has_blob(name)):
            yield name


def _capsule(manifest: Manifest, ending: Ending) -> CapsuleId:
    """The parent's id: that of the manifest, or of the last event's chain before it was forked."""
    if manifest.capsule in ending.identities:
        return manifest.capsule
    return next(end.capsule for end in ending.chains if end.id == ending.last)


def _end_of(store: Store, manifest: Manifest, at: EventId | None) -> int:
    """Where the line of the event ends, or the log's last whole one."""
    size = store.size()
    # Nothing that was known once is a torn tail; whether it is all there is not asked here.
    reader = Reader(
        known=[Known(length=min(size, manifest.timeline.length))],
        read_blob=lambda ref: blob_or_none(store, ref),
    )
    for chunk in store.read_log(0, size):
        numbers, items = reader.numbered(chunk)
        line = _line_of(at, numbers, items)
        if line:
            return _offset_of(store, line)
    ending = reader.finish(same_boot=False)
    line = _line_of(at, ending.rest_lines, ending.rest)
    if at is None:
        return ending.length
    if line:
        return _offset_of(store, line)
    raise NotFoundError(
        f"the log holds no event {at[:12]}",
        code="event_missing",
        state="Nothing was made.",
        hint="`sojourn log --oneline` lists the events.",
    )


def _line_of(at: EventId | None, numbers: Iterable[int], items: Iterable[Item]) -> int:
    """The line of the event among those that were read, 0 when it is none of them."""
    pairs = zip(numbers, items, strict=True)
    return next((line for line, item in pairs if isinstance(item, Event) and item.id == at), 0)


def _offset_of(store: Store, line: int) -> int:
    """Where the line with this number, from 1, ends."""
    offset = 0
    for chunk in store.read_log():
        count = chunk.count(b"\n")
        if count >= line:
            end = -1
            for _ in range(line):
                end = chunk.index(b"\n", end + 1)
            return offset + end + 1
        line -= count
        offset += len(chunk)
    return offset


class _Reading:
    """Reads a prefix whole: its folds, and every blob that it names in a typed position."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.folding = Folding(store, frozenset())
        self.remaining = Remaining(store)
        self.named: set[BlobId] = set()
        self._named_contents: set[BlobId] = set()

    def read(self, length: int) -> Ending:
        """Take the first `length` bytes of the log.

        Raises: FormatError with the name of the first thing that is wrong with them.
        """
        reader = Reader(known=[Known(length=length)], read_blob=self._blob)
        for chunk in self._store.read_log(0, length):
            self._take(reader.feed(chunk))
        ending = reader.finish(same_boot=True)
        self._take(ending.rest)
        return ending

    def text(self, text: Text) -> str:
        """The whole string."""
        return text if isinstance(text, str) else self._store.read_blob(text.sha256).decode()

    def _blob(self, ref: BlobRef) -> bytes | None:
        self.named.add(ref.sha256)
        return blob_or_none(self._store, ref)

    def _leave_out(self) -> None:
        """After a seal without the workspace: contents that are not here need not be copied."""
        self.named -= {blob for blob in self._named_contents if not self._store.has_blob(blob)}

    def _take(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Damage):
                _refuse(item)
                continue
            self.remaining.add(item)
            self.named.update(ref.sha256 for ref in blob.refs(item.body))
            if isinstance(item.body, Snapshotted):
                named = known_contents(item.body, lambda ref: blob_or_none(self._store, ref))
                found = {content.blob for content in named}
                self._named_contents |= found
                self.named |= found
            elif isinstance(item.body, Sealed) and item.body.without_workspace:
                self._leave_out()
        self.folding.take(items)


def _refuse(damage: Damage) -> None:
    if not stops_running(damage.code):
        return
    raise FormatError(
        f"what a fork would keep is not sound: {damage.message}",
        code=damage.code,
        state="Nothing was made.",
        hint="Fork at an event before it: `sojourn fork --at EVENT`.",
        file=layout.TIMELINE,
        line=damage.line or None,
    )
