"""What `sojourn snapshot` says: the work while it goes on, and each answer."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from threading import Event as Flag
from threading import Lock
from types import FrameType, TracebackType
from typing import Final, Self, TypeVar

from sojourn.agent import Agent, Look, Machine, Place, Unwatched
from sojourn.cli.capsules import shape_of
from sojourn.cli.people import WIDEST_AGO, ago, clock_time, counted, size, table
from sojourn.cli.shapes_snapshot import (
    DifferenceShape,
    LeftOutShape,
    SnapshotDiff,
    SnapshotList,
    SnapshotRestored,
    SnapshotShape,
    SnapshotTaken,
)
from sojourn.cli.show import chosen
from sojourn.cli.voice import Painted, Voice
from sojourn.drive.reading import blob_or_none
from sojourn.drive.snapshots import TakenSnapshot, list_at
from sojourn.errors import NotFoundError
from sojourn.format.capsule_kinds import LeftOut, Snapshotted
from sojourn.format.event import Event
from sojourn.format.snapshot import Entry, Snapshot
from sojourn.ids import EventId
from sojourn.ports_workspace import Conflict

EACH: Final = 0.1
"""Seconds between two words about progress."""

SHOWN: Final = 20
"""Names that are listed without -v."""

MARKS: Final = {"added": "A", "modified": "M", "removed": "D", "type": "T"}
STYLES: Final = {"added": "good", "modified": "plain", "removed": "bad", "type": "warn"}

_Answer = TypeVar("_Answer")


class Work:
    """Work that takes a while: a passing line on a terminal says how far it is, Ctrl-C stops it.

    Who does not ask `stop` says `asks=False`: Ctrl-C then does what it does elsewhere.
    """

    def __init__(self, voice: Voice, done: str, *, asks: bool = True) -> None:
        self._asks = asks
        self._voice = voice
        self._done = done
        self._lock = Lock()
        self._stopped = Flag()
        self._shown = voice.both and not voice.settings.quiet and not voice.settings.json
        self._files = self._size = 0
        self._last = time.monotonic()
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM) if self._asks else ():
            self._before[number] = signal.signal(number, lambda _number, _frame: self._halt())
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if self._shown:
            self._voice.err.erase()

    def stop(self) -> bool:
        """Whether a person asked to stop."""
        return self._stopped.is_set()

    def progress(self, files: int, octets: int) -> None:
        """So much more was done; from any thread."""
        with self._lock:
            self._files += files
            self._size += octets
            now = time.monotonic()
            if self._shown and now - self._last >= EACH:
                self._last = now
                self._voice.err.erase()
                what = f"… {self._done} {counted(self._files, 'file')}, {size(self._size)}"
                self._voice.err.put(Painted(what, "dim"))

    def _halt(self) -> None:
        self._stopped.set()


class _Noting(Unwatched):
    """Tells people what the runtime did."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice

    def note(self, text: str) -> None:
        self._voice.talk(Painted(text, "dim"))


def hold_and(
    machine: Machine, place: Place, voice: Voice, act: Callable[[Agent], Awaitable[_Answer]]
) -> _Answer:
    """Hold the capsule and act."""

    async def held() -> _Answer:
        async with machine.hold(place, observer=_Noting(voice)) as agent:
            return await act(agent)

    return asyncio.run(held())


def snapshot_named(look: Look, name: str, *, called: str) -> EventId | None:
    """The last snapshot up to the event that `name` names; None when there was none yet.

    `called` is how hints name the capsule.

    Raises: NotFoundError `event_missing`; UsageError `event_ambiguous`.
    """
    event, found = chosen(look, name, capsule=called).event, None
    for one in look.events_of():
        if isinstance(one.body, Snapshotted):
            found = one.id
        if one.id == event.id:
            break
    return found


def snapshot_before(look: Look, snapshot: EventId | None) -> EventId | None:
    """The snapshot before this one in the log."""
    found: EventId | None = None
    for event, _ in look.folded.snapshots:
        if event == snapshot:
            break
        found = event
    return found


def listed_at(look: Look, snapshot: EventId | None) -> Snapshot:
    """The list of a snapshot of a capsule that is looked at. Raises: FormatError."""
    return list_at(look.folded.snapshots, snapshot, lambda ref: blob_or_none(look.store, ref))


def conflicts(found: Iterable[Conflict | LeftOut]) -> tuple[LeftOutShape, ...]:
    """As --json names them."""
    return tuple(LeftOutShape(path=one.path, reason=one.reason) for one in found)


def say_taken(voice: Voice, place: Place, taken: TakenSnapshot) -> None:
    """The answer of `snapshot take`."""
    left_out = conflicts(taken.left_out)
    if voice.settings.json:
        answer = SnapshotTaken(
            capsule=shape_of(place),
            event=taken.event,
            new=taken.new,
            entries=taken.entries,
            size=taken.size,
            changed=taken.changed,
            gone=taken.gone,
            left_out=left_out,
        )
        voice.answer(answer)
        return
    holds = f"{counted(taken.entries, 'entry', 'entries')}, {size(taken.size)}"
    if taken.event is None:
        voice.data("the workspace is empty, and no snapshot was taken yet")
    elif taken.new:
        changes = f"{taken.changed:,} changed, {taken.gone:,} gone"
        voice.data(Painted(f"event {taken.event[:8]}", "name"), f"  {holds}; {changes}")
    else:
        voice.data(Painted(f"event {taken.event[:8]}", "name"), f"  nothing changed; {holds}")
    _say_left_out(voice, "left out", left_out)


def _say_left_out(voice: Voice, what: str, left_out: tuple[LeftOutShape, ...]) -> None:
    most = len(left_out) if voice.settings.verbose else SHOWN
    for one in left_out[:most]:
        voice.talk(Painted(f"{what}: ", "warn"), f"{one.path}: {one.reason}")
    if len(left_out) > most:
        voice.talk(Painted(f"{what}: {len(left_out) - most} more", "warn"))


def say_list(voice: Voice, place: Place, look: Look, *, called: str) -> None:
    """The answer of `snapshot list`."""
    current = look.folded.snapshots.current
    found: list[tuple[int, Event, Snapshotted]] = []
    for number, event in look.numbered():
        if isinstance(event.body, Snapshotted):
            found.append((number, event, event.body))
    if voice.settings.json:
        rows = tuple(
            SnapshotShape(
                event=event.id,
                number=number,
                time=event.header.time,
                entries=body.entries,
                size=body.size,
                left_out=body.left_out_count,
                current=event.id == current,
            )
            for number, event, body in found
        )
        voice.answer(SnapshotList(capsule=shape_of(place), snapshots=rows))
        return
    if not found:
        voice.talk(f"no snapshots yet; take one with  sojourn snapshot take {called}")
        return
    head = ("NUMBER", "EVENT", "TAKEN", "AGE", "ENTRIES", "SIZE", "LEFT OUT")
    table(voice.out, head, [_row(*one) for one in found])


def _row(number: int, event: Event, body: Snapshotted) -> tuple[str | Painted, ...]:
    return (
        str(number),
        Painted(event.id[:8], "name"),
        clock_time(event.header.time),
        Painted(f"{ago(event.header.time):<{WIDEST_AGO}}", "dim"),
        f"{body.entries:,}",
        size(body.size),
        f"{body.left_out_count:,}" if body.left_out_count else "-",
    )


def say_diff(
    voice: Voice,
    look: Look,
    before: EventId | None,
    after: EventId | None,
    *,
    called: str,
) -> None:
    """The answer of `snapshot diff`.

    Raises: NotFoundError `no_snapshot` while there is none.
    """
    if after is None and before is None:
        raise NotFoundError(
            f"{look.place.name} has no snapshot there yet",
            code="no_snapshot",
            state="Nothing was changed.",
            hint=f"Take one with  sojourn snapshot take {called}",
        )
    differences = differ(listed_at(look, before), listed_at(look, after))
    if voice.settings.json:
        answer = SnapshotDiff(
            capsule=shape_of(look.place), before=before, after=after, differences=differences
        )
        voice.answer(answer)
        return
    for one in differences:
        voice.data(Painted(f"{MARKS[one.change]}  ", STYLES[one.change]), one.path)
    names = [event[:8] if event else "the empty workspace" for event in (before, after)]
    count = counted(len(differences), "path")
    voice.talk(Painted(f"{count} from {names[0]} to {names[1]}", "dim"))


def differ(before: Snapshot, after: Snapshot) -> tuple[DifferenceShape, ...]:
    """Each path that two lists have differently, in order."""
    old = {entry.path: entry for entry in before.entries}
    new = {entry.path: entry for entry in after.entries}
    found: list[DifferenceShape] = []
    for path in sorted(old.keys() | new.keys(), key=str.encode):
        was, now = old.get(path), new.get(path)
        if was != now:
            found.append(_difference(path, was, now))
    return tuple(found)


def _difference(path: str, was: Entry | None, now: Entry | None) -> DifferenceShape:
    change = "modified"
    if was is None or now is None:
        change = "added" if was is None else "removed"
    elif was.type != now.type:
        change = "type"
    digest, count = (None, None) if now is None else (now.sha256, now.size)
    return DifferenceShape(path=path, change=change, sha256=digest, size=count)


def say_restored(voice: Voice, answer: SnapshotRestored, *, called: str) -> None:
    """The answer of `snapshot restore`."""
    if voice.settings.json:
        voice.answer(answer)
        return
    what = "the empty workspace" if answer.snapshot is None else f"event {answer.snapshot[:8]}"
    did = f"{counted(answer.made, 'path')} made, {answer.removed:,} removed"
    voice.data(Painted(what, "name"), f"  is in {answer.folder}: {did}")
    _say_left_out(voice, "not made", answer.not_made)
    if answer.missing:
        lost = counted(len(answer.missing), "call")
        voice.talk(f"The agent is told that its files lack what {lost} did.")
    before = answer.before
    if before is not None and before != answer.snapshot and answer.made + answer.removed:
        back = f"sojourn snapshot restore {called} {before[:8]}"
        voice.talk(f"What was there before:  {back}")
