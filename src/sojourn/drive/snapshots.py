"""Takes snapshots of a held capsule's workspace and puts them back (docs/protocol.md#snapshots)."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from sojourn.core.restored import missing_calls
from sojourn.drive.hold import Hold
from sojourn.drive.observe import Observer
from sojourn.errors import FormatError, NotFoundError, SojournError, UsageError
from sojourn.format import layout, snapshot
from sojourn.format.capsule_kinds import LeftOut, Restored, Snapshotted
from sojourn.format.event import Event
from sojourn.format.gone import REDACTED, Gone
from sojourn.format.parts import BlobRef
from sojourn.format.snapshot import Delta, Entry, Snapshot
from sojourn.format.snapshot_fold import Snapshots
from sojourn.ids import BlobId, CallKey, EventId
from sojourn.ports import Store
from sojourn.ports_workspace import Conflict, Plan, Progress, Stop, Survey, Taken, Workspace

INLINE_BYTES: Final = 8 * layout.MIB
INLINE_FILES: Final = 1000
"""What is read at once; more is read by another thread, so that a person can stop it."""

MOST_LEFT_OUT: Final = 100
"""Names that an event lists; more are counted."""

SHOWN: Final = 10
"""Conflicts that an error names; more are counted."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenSnapshot:
    """A snapshot: its event, and whether it is `new` rather than the last one still in force."""

    event: EventId | None
    new: bool
    entries: int
    size: int
    changed: int
    gone: int
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBackSnapshot:
    """What was put back: files made and removed, links that were not made, calls that it lacks.

    `before` is the snapshot that holds what was there.
    """

    event: EventId | None
    before: EventId | None
    made: int
    removed: int
    refused: tuple[Conflict, ...]
    missing: tuple[CallKey, ...]


@dataclass(slots=True, kw_only=True)
class Keeper:
    """Keeps the snapshots of one held capsule."""

    hold: Hold
    workspace: Workspace
    observer: Observer
    _last: Snapshot | None = None
    _last_result: BlobId | None = None

    async def take(
        self, *, progress: Progress | None = None, stop: Stop | None = None
    ) -> TakenSnapshot:
        """Snapshot the workspace, drafted and not yet durable; nothing when nothing changed.

        What was drafted before is made durable first when contents must be written. Raises:
        NotFoundError `no_workspace`, StorageError, LimitError, StoppedError.
        """
        known = self.hold.snapshots
        survey = self.workspace.survey()
        if survey.same_as == known.result:
            return self._unchanged()
        taken = self._without_redacted(await self._read(survey, progress, stop))
        parent, before = self._before()
        change = snapshot.delta(before, taken.listed)
        if self._lacks(change, taken):
            # The state folder knows more than this capsule holds: it is an older copy.
            self.workspace.forget()
            again = await self._read(self.workspace.survey(), progress, stop)
            taken = self._without_redacted(again)
            change = snapshot.delta(before, taken.listed)
        taken, change = self._without_secrets(taken, before, change)
        if taken.result == known.result:
            self.workspace.remember()
            return self._unchanged(taken.left_out)
        entries = taken.listed.entries
        size = _size(entries)
        event = self._draft(taken, parent, change, size=size)
        self.workspace.remember()
        self._last, self._last_result = taken.listed, taken.result
        return TakenSnapshot(
            event=event,
            new=True,
            entries=len(entries),
            size=size,
            changed=len(change.changed),
            gone=len(change.gone),
            left_out=taken.left_out,
        )

    async def at_turn_end(self) -> None:
        """Snapshot what the turn made; one that cannot be taken is noted and ends no turn."""
        try:
            taken = await self.take()
        except SojournError as error:
            self.hold.check()
            self.observer.note(f"no snapshot was taken: {error.message}")
            return
        if taken.new and taken.left_out:
            count = len(taken.left_out)
            self.observer.note(f"left out of the snapshot: {count} names that it cannot hold")

    async def put_back(
        self,
        event: EventId | None,
        *,
        events: Iterable[Event],
        why: Literal["asked", "fork", "claim"] = "asked",
        progress: Progress | None = None,
        stop: Stop | None = None,
    ) -> PutBackSnapshot:
        """Make the workspace what the snapshot `event` says, durable; None makes it empty.

        What is there now is snapshotted first, so nothing is lost. `events` are those of the log.
        Raises: NotFoundError `no_snapshot`; UsageError `restore_conflict`, FormatError or
        StoppedError, no file changed; StorageError.
        """
        wanted = self.list_at(event)
        await self.take(stop=stop)
        await self.hold.commit()
        before_event, before = self._before()
        gone = absent(self.hold.store, wanted, self.hold.gone)
        # What was redacted is nowhere but in the workspace: it is not ours to take away.
        ours = _without(before, self.hold.gone.redacted)
        plan = self.workspace.plan(ours, wanted, gone=gone)
        refuse_conflicts(plan)
        missing = missing_calls(events, event)
        if plan.changes:
            self.hold.draft(Restored(snapshot=event, why=why, missing=missing))
            await self.hold.commit()
            await carry_out(self.workspace, plan, progress=progress, stop=stop)
            await self.take()
            await self.hold.commit()
        return PutBackSnapshot(
            event=event,
            before=before_event,
            made=len(plan.make) + len(plan.links),
            removed=len(plan.remove),
            refused=plan.refused,
            missing=missing if plan.changes else (),
        )

    def list_at(self, event: EventId | None) -> Snapshot:
        """The list of a snapshot event. Raises: NotFoundError `no_snapshot`; FormatError."""
        return list_at(self.hold.snapshots, event, self.hold.blob)

    async def _read(self, survey: Survey, progress: Progress | None, stop: Stop | None) -> Taken:
        if survey.files:
            # Reading may take long; what the turn drafted shall not be lost meanwhile.
            await self.hold.commit()
        inline = survey.size <= INLINE_BYTES and survey.files <= INLINE_FILES
        return await _perform(
            lambda halt: self.workspace.read(
                without=self.hold.gone.redacted, progress=progress, stop=halt
            ),
            inline=inline,
            stop=stop,
        )

    def _before(self) -> tuple[EventId | None, Snapshot]:
        """The current snapshot; an unreadable one is passed over, and the next stands alone."""
        known = self.hold.snapshots
        if self._last is not None and self._last_result == known.result:
            return known.current, self._last
        data = self.hold.projected(layout.SNAPSHOT)
        if data is not None and snapshot.digest(data) == known.result:
            return known.current, snapshot.load_known(data)
        try:
            return known.current, known.list_at(known.current, self.hold.blob)
        except FormatError as error:
            self.observer.note(f"the snapshot before cannot be read: {error.message}")
            return None, snapshot.EMPTY

    def _lacks(self, change: Delta, taken: Taken) -> bool:
        """Whether a content is named that was not read now and is not in the capsule."""
        named = {entry.sha256 for entry in change.changed if entry.sha256 is not None}
        return not all(self.hold.store.has_blob(blob) for blob in named - taken.fresh)

    def _without_secrets(
        self, taken: Taken, before: Snapshot, change: Delta
    ) -> tuple[Taken, Delta]:
        """Names that hold the value of a secret are left out: no event may hold it."""
        mask = self.hold.mask
        text = snapshot.encode_delta(change)
        if mask.idle or mask.text(text) == text:
            return taken, change
        entries = taken.listed.entries
        kept = tuple(entry for entry in entries if mask.text(entry.path) == entry.path)
        hidden = tuple(
            LeftOut(path=mask.text(entry.path), reason="its name holds the value of a secret")
            for entry in entries
            if mask.text(entry.path) != entry.path
        )
        taken = _only(taken, Snapshot(entries=kept), hidden)
        return taken, snapshot.delta(before, taken.listed)

    def _without_redacted(self, taken: Taken) -> Taken:
        """Contents that were redacted are left out: nothing brings them back."""
        redacted = self.hold.gone.redacted
        hidden = tuple(
            LeftOut(path=entry.path, reason=REDACTED)
            for entry in taken.listed.entries
            if entry.sha256 in redacted
        )
        return _only(taken, _without(taken.listed, redacted), hidden) if hidden else taken

    def _draft(self, taken: Taken, parent: EventId | None, change: Delta, *, size: int) -> EventId:
        delta = snapshot.encode_delta(change)
        full = None
        if parent is not None and self.hold.snapshots.wants_full(len(delta), len(taken.data)):
            full = self.hold.keep(taken.data, media_type="application/json")
        drafted = self.hold.draft(
            Snapshotted(
                parent=parent,
                result=taken.result,
                entries=len(taken.listed.entries),
                size=size,
                delta=delta,
                full=full,
                left_out=taken.left_out[:MOST_LEFT_OUT],
                left_out_count=len(taken.left_out),
            )
        )
        self.hold.project(layout.SNAPSHOT, taken.data)
        return drafted.id

    def _unchanged(self, left_out: tuple[LeftOut, ...] = ()) -> TakenSnapshot:
        known = self.hold.snapshots
        current = known.current
        body = next((body for event, body in known if event == current), None)
        return TakenSnapshot(
            event=current,
            new=False,
            entries=0 if body is None else body.entries,
            size=0 if body is None else body.size,
            changed=0,
            gone=0,
            left_out=left_out or (() if body is None else body.left_out),
        )


def _without(listed: Snapshot, blobs: Collection[BlobId]) -> Snapshot:
    """The list without entries of these contents."""
    return Snapshot(entries=tuple(one for one in listed.entries if one.sha256 not in blobs))


def _only(taken: Taken, listed: Snapshot, hidden: tuple[LeftOut, ...]) -> Taken:
    """What was taken with this list, which lacks what is hidden."""
    data = snapshot.encode(listed)
    return Taken(
        listed=listed,
        data=data,
        result=snapshot.digest(data),
        left_out=hidden + taken.left_out,
        fresh=taken.fresh,
    )


def absent(store: Store, listed: Snapshot, gone: Gone) -> dict[BlobId, str]:
    """Contents of a list that are gone, as the log accounts for, and why."""
    named = {entry.sha256 for entry in listed.entries if entry.sha256 is not None}
    return {
        blob: gone.why(blob)
        for blob in named
        if blob in gone.redacted or (blob in gone.lost and not store.has_blob(blob))
    }


def list_at(
    known: Snapshots, event: EventId | None, read: Callable[[BlobRef], bytes | None]
) -> Snapshot:
    """The list of a snapshot event. Raises: NotFoundError `no_snapshot`; FormatError."""
    if event is not None and event not in known:
        raise NotFoundError(
            f"no snapshot has the id {event}",
            code="no_snapshot",
            state="Nothing was changed.",
            hint="`sojourn snapshot list` names them.",
        )
    return known.list_at(event, read)


def refuse_conflicts(plan: Plan) -> None:
    """Nothing, when nothing stands in a plan's way. Raises: UsageError `restore_conflict`."""
    if not plan.conflicts:
        return
    lines = [f"{one.path}: {one.reason}" for one in plan.conflicts[:SHOWN]]
    more = len(plan.conflicts) - len(lines)
    lines += [f"and {more} more"] if more else []
    count = len(plan.conflicts)
    raise UsageError(
        f"{count} path{'' if count == 1 else 's'} would be lost:\n" + "\n".join(lines),
        code="restore_conflict",
        state="No file was changed.",
        hint="Move what lies there out of the way, or put the snapshot into another folder.",
    )


async def carry_out(
    workspace: Workspace, plan: Plan, *, progress: Progress | None = None, stop: Stop | None = None
) -> None:
    """Put a plan without conflicts back, in another thread when it may take long.

    Raises: as `Workspace.put_back`.
    """
    await _perform(
        lambda halt: workspace.put_back(plan, progress=progress, stop=halt),
        inline=_size(plan.make) <= INLINE_BYTES and len(plan.make) <= INLINE_FILES,
        stop=stop,
    )


async def mend(store: Store, known: Snapshots, observer: Observer) -> None:
    """Make snapshot.json again when it is gone or is not the list of the current snapshot."""
    data = store.read_file(layout.SNAPSHOT)
    if data is not None and snapshot.digest(data) == known.result:
        return

    def read(ref: BlobRef) -> bytes | None:
        return store.read_blob(ref.sha256)

    try:
        listed = known.list_at(known.current, read)
    except FormatError as error:
        observer.note(f"{layout.SNAPSHOT} cannot be made again: {error.message}")
        return
    await store.replace_file(layout.SNAPSHOT, snapshot.encode(listed))
    if data is None:
        observer.note(f"{layout.SNAPSHOT} was gone and was made again from the log")


async def _perform(work: Callable[[Stop], _Answer], *, inline: bool, stop: Stop | None) -> _Answer:
    """Do it here when it is short, else in a thread that stops when this task is cancelled."""
    cancelled = False

    def halt() -> bool:
        return cancelled or (stop is not None and stop())

    if inline:
        return work(halt)
    try:
        return await asyncio.to_thread(work, halt)
    except asyncio.CancelledError:
        cancelled = True
        raise


def _size(entries: Iterable[Entry]) -> int:
    return sum(entry.size or 0 for entry in entries)
