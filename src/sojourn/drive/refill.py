"""Makes a workspace anew from the last snapshot of a log (docs/protocol.md#fork and #claim)."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sojourn.core.restored import Lacking
from sojourn.drive.observe import Observer
from sojourn.drive.reading import blob_or_none, items_of
from sojourn.drive.snapshots import absent, carry_out, refuse_conflicts
from sojourn.errors import FormatError, StorageError
from sojourn.format import layout
from sojourn.format.capsule_kinds import Restored, Sealed, Snapshotted
from sojourn.format.event import Event
from sojourn.format.failures import say
from sojourn.format.gone import Gone
from sojourn.format.snapshot import EMPTY, Snapshot
from sojourn.format.snapshot_fold import Snapshots
from sojourn.ids import BlobId, CallKey, EventId, Incarnation
from sojourn.ports import Store
from sojourn.ports_workspace import Conflict, Plan, Progress, Stop, Workspace

SHOWN: Final = 5
"""Names that a note lists; more are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """What a log gives a workspace that is made anew.

    `listed` is the list of its last snapshot, the event `snapshot`, and empty while there is none.
    `missing` are the calls whose effects such a workspace lacks, `gone` contents that are not there
    and why.
    """

    snapshot: EventId | None
    listed: Snapshot
    missing: tuple[CallKey, ...]
    gone: Mapping[BlobId, str]

    @property
    def wanted(self) -> Snapshot:
        """The list without what is gone."""
        kept = (entry for entry in self.listed.entries if entry.sha256 not in self.gone)
        return Snapshot(entries=tuple(kept))

    @property
    def lost(self) -> tuple[Conflict, ...]:
        """Paths whose contents are gone, and why."""
        return tuple(
            Conflict(path=entry.path, reason=self.gone[entry.sha256])
            for entry in self.listed.entries
            if entry.sha256 is not None and entry.sha256 in self.gone
        )

    def restored(self, why: Literal["claim", "fork"]) -> Restored:
        """The event that says so."""
        return Restored(snapshot=self.snapshot, why=why, missing=self.missing)


class Remaining:
    """The fold of a log into what is left for a workspace; it reads blobs only when asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots = Snapshots()
        self._lacking = Lacking()
        self._restored: set[Incarnation] = set()
        self._slim = False

    def add(self, event: Event) -> None:
        """Take in the log's next event."""
        self._lacking.add(event)
        body = event.body
        if isinstance(body, Snapshotted):
            self._snapshots.add(event.id, body)
        elif isinstance(body, Restored) and body.why == "claim":
            self._restored.add(event.header.incarnation)
        elif isinstance(body, Sealed):
            self._slim = self._slim or body.without_workspace

    def is_restored_by(self, incarnation: Incarnation) -> bool:
        """Whether this tenure's claim has filled its workspace and said so."""
        return incarnation in self._restored

    def last(self, gone: Gone) -> Remains:
        """What the last snapshot gives; nothing where a seal left its contents out for good.

        `gone` is what the log says of that.

        Raises: FormatError when its list cannot be read.
        """
        current = self._snapshots.current
        listed = self._snapshots.list_at(current, lambda ref: blob_or_none(self._store, ref))
        named = (entry.sha256 for entry in listed.entries if entry.sha256 is not None)
        if self._slim and any(b not in gone and not self._store.has_blob(b) for b in named):
            return self.nothing()
        return self._remains(current, listed, absent(self._store, listed, gone))

    def missing(self, snapshot: EventId | None) -> tuple[CallKey, ...]:
        """The calls whose effects a workspace lacks that is as the snapshot says."""
        return self._lacking.at(snapshot)

    def nothing(self) -> Remains:
        """What there is without any snapshot."""
        return self._remains(None, EMPTY, {})

    def _remains(
        self, snapshot: EventId | None, listed: Snapshot, gone: Mapping[BlobId, str]
    ) -> Remains:
        return Remains(
            snapshot=snapshot,
            listed=listed,
            missing=self._lacking.at(snapshot),
            gone=gone,
        )


def remaining(store: Store, length: int) -> Remaining:
    """The fold of the first `length` bytes of the log."""
    found = Remaining(store)
    for item in items_of(store, length):
        if isinstance(item, Event):
            found.add(item)
    return found


def check_room(workspace: Workspace, store: Store, remains: Remains) -> None:
    """Nothing, when the folder can be filled; nothing is changed.

    Raises: UsageError `restore_conflict` for what lies in the way; FormatError `blob_missing`;
    StorageError when it is no folder or cannot be read.
    """
    wanted = remains.wanted
    if os.path.lexists(workspace.path):
        refuse_conflicts(workspace.plan(EMPTY, wanted))
    for entry in wanted.entries:
        if entry.sha256 is not None and not store.has_blob(entry.sha256):
            raise FormatError(
                say("blob_missing", f"{entry.path} of the last snapshot"),
                code="blob_missing",
                state="Nothing was changed.",
                hint="Put the file back from another copy of the capsule.",
                file=layout.blob_path(entry.sha256),
            )


async def fill(
    workspace: Workspace,
    remains: Remains,
    observer: Observer,
    *,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> Plan:
    """Make the folder, and in it what the list names and is not there yet; durable on return.

    What lies there stays. Raises: UsageError `restore_conflict`, FormatError or StoppedError, no
    file changed; StorageError.
    """
    try:
        os.makedirs(workspace.path, mode=0o700, exist_ok=True)
    except OSError as failure:
        raise StorageError(
            f"the workspace {workspace.path} cannot be made: {failure.strerror}",
            state="No file was changed.",
        ) from failure
    plan = workspace.plan(EMPTY, remains.wanted)
    refuse_conflicts(plan)
    await carry_out(workspace, plan, progress=progress, stop=stop)
    tell_left_out(observer, (*plan.refused, *remains.lost))
    return plan


def tell_left_out(observer: Observer, left_out: Iterable[Conflict]) -> None:
    """Say which paths were not put into the workspace, and why."""
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(one.path)
    for reason, names in by_reason.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        shown = ", ".join(names[:SHOWN])
        observer.note(f"not put into the workspace ({reason}): {shown}{more}")
