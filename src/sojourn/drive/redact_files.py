"""Takes contents of files out of every snapshot for good (docs/format.md#redaction)."""

from collections.abc import Collection
from dataclasses import dataclass, field

from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.opening import hold_capsule
from sojourn.drive.reading import blob_or_none
from sojourn.drive.redact import check_at_rest, refused
from sojourn.drive.rewrite import events_of
from sojourn.errors import FormatError, NotFoundError
from sojourn.format import blob, snapshot
from sojourn.format.capsule_kinds import Redacted, Snapshotted
from sojourn.format.event import Event
from sojourn.format.gone import Gone
from sojourn.format.naming import named_by
from sojourn.format.parts import BlobRef
from sojourn.format.snapshot_fold import delta_of
from sojourn.ids import BlobId, EventId
from sojourn.ports import Store

SHOWN = 5
"""Events that a refusal names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which contents shall go: all that the path `path` ever had, or the one of that digest."""

    path: str | None = None
    blob: BlobId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The contents that are meant, every path that had one of them, and how many snapshot events
    name one.
    """

    blobs: tuple[BlobId, ...]
    paths: tuple[str, ...]
    snapshots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedFiles:
    """What was taken away, and by which event; `removed` counts the blobs that were there."""

    found: Found
    record: EventId
    removed: int


async def redact_files(
    ports: Ports, folder: str, wanted: Wanted, *, reason: str, by: str, observer: Observer
) -> RedactedFiles:
    """Append `redacted` for contents of the workspace, and remove their blobs.

    Raises: as `find_files`; UsageError `turn_open`; as `hold_capsule`. Unless StorageError, nothing
    was changed then.
    """
    async with hold_capsule(ports, folder, observer=observer) as hold:
        check_at_rest(hold)
        found = find_files(hold.store, wanted, hold.gone)
        record = hold.draft(Redacted(by=by, reason=reason, blobs=found.blobs))
        await hold.commit()
        # From here on the log says so, and every opening removes what a crash leaves.
        removed = ports.rewriter_at(folder).discard(found.blobs)
    return RedactedFiles(found=found, record=record.id, removed=removed)


def find_files(store: Store, wanted: Wanted, gone: Gone) -> Found:
    """The contents that are meant; nothing is changed.

    Raises: NotFoundError `content_missing` when no snapshot names such a content; UsageError
    `redact_refused` when it is gone already, is empty, or something else of the log is made of it.
    """
    survey = _surveyed(store)
    chosen = {one for one in survey.paths if _is_meant(one, survey.paths[one], wanted)}
    if not chosen:
        raise NotFoundError(
            "no snapshot holds a file of that path"
            if wanted.blob is None
            else "no snapshot holds a file with that content",
            code="content_missing",
            state="Nothing was changed.",
            hint="`sojourn snapshot diff` names the paths of snapshots, from the workspace's top.",
        )
    left = chosen - gone.redacted - {snapshot.NO_CONTENT}
    if not left:
        what = "is gone already" if chosen & gone.redacted else "is empty"
        raise refused(f"the content {what}", "There is nothing left to redact.")
    survey.refuse_others(left)
    paths = {path for one in left for path in survey.paths[one]}
    return Found(
        blobs=tuple(sorted(left)),
        paths=tuple(sorted(paths)),
        snapshots=sum(not left.isdisjoint(named) for named in survey.snapshots),
    )


def _is_meant(one: BlobId, paths: Collection[str], wanted: Wanted) -> bool:
    return one == wanted.blob or wanted.path in paths


@dataclass(slots=True)
class _Survey:
    """Which contents snapshots name, with their paths, and what else of the log names blobs."""

    paths: dict[BlobId, set[str]] = field(default_factory=dict[BlobId, set[str]])
    snapshots: list[set[BlobId]] = field(default_factory=list[set[BlobId]])
    others: dict[BlobId, list[Event]] = field(default_factory=dict[BlobId, list[Event]])

    def take(self, line: bytes, event: Event, store: Store) -> None:
        """Take in one line of the log."""

        def read(ref: BlobRef) -> bytes | None:
            return blob_or_none(store, ref)

        if not isinstance(event.body, Snapshotted):
            for name in named_by(line, event, read):
                self.others.setdefault(name, []).append(event)
            return
        for ref in blob.refs(event.body):
            self.others.setdefault(ref.sha256, []).append(event)
        named: set[BlobId] = set()
        try:
            changed = delta_of(event.body, read).changed
        except FormatError:
            changed = ()
        for entry in changed:
            if entry.sha256 is not None:
                self.paths.setdefault(entry.sha256, set()).add(entry.path)
                named.add(entry.sha256)
        self.snapshots.append(named)

    def refuse_others(self, blobs: Collection[BlobId]) -> None:
        """Guard: whatever else holds these bytes says so itself, and often how they begin."""
        events = {event.id: event for name in blobs for event in self.others.get(name, ())}
        if not events:
            return
        shown = ", ".join(f"{e.header.kind} {e.id[:8]}" for e in list(events.values())[:SHOWN])
        more = f" and {len(events) - SHOWN} more" if len(events) > SHOWN else ""
        raise refused(
            f"the log holds the same bytes elsewhere, too: {shown}{more}",
            "Redact these events first, each by its id; then the file.",
        )


def _surveyed(store: Store) -> _Survey:
    survey = _Survey()
    for line, result in events_of(store):
        event = result if isinstance(result, Event) else result.event
        if event is not None:
            survey.take(line, event, store)
    return survey
