"""Takes the body of one event away for good (docs/format.md#redaction, docs/protocol.md#redact)."""

from collections.abc import Iterator
from dataclasses import dataclass

from sojourn.drive.hold import Hold
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.opening import hold_capsule
from sojourn.drive.reading import blob_or_none
from sojourn.drive.rewrite import events_of, install, lines_of
from sojourn.errors import NotFoundError, UsageError
from sojourn.format import index, layout
from sojourn.format.capsule_kinds import Redacted
from sojourn.format.event import Event, Memory
from sojourn.format.line import BODY, HEADER
from sojourn.format.naming import named_by
from sojourn.format.pardons import UNREDACTABLE
from sojourn.format.working_memory import START, Fold, add, hide
from sojourn.ids import BlobId, EventId


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedBody:
    """What was taken away: the event's kind, and how many blobs only it named."""

    event: EventId
    kind: str
    record: EventId
    blobs: int


async def redact_event(
    ports: Ports, folder: str, event: EventId, *, reason: str, by: str, observer: Observer
) -> RedactedBody:
    """Append `redacted`, null the body in the log, and remove the blobs that only it named.

    Raises: UsageError `turn_open`, `redact_refused`; NotFoundError `event_missing`; as
    `hold_capsule`. Unless StorageError, nothing was changed then.
    """
    async with hold_capsule(ports, folder, observer=observer) as hold:
        store = hold.store
        length = store.size()
        found = _find(hold, length, event)
        blobs = _only_named_by(hold, length, found)
        record = hold.draft(Redacted(event=event, by=by, reason=reason, blobs=blobs))
        rewriter = ports.rewriter_at(folder)
        try:
            added = await hold.hand_over()
            await _forget(hold, length, found)
            pieces = _without_body(hold, length, event, added)
            await install(ports, store, rewriter, hold.record, pieces)
            removed = rewriter.discard(blobs)
        finally:
            rewriter.drop()
    async with hold_capsule(ports, folder, observer=observer):
        return RedactedBody(event=event, kind=found.header.kind, record=record.id, blobs=removed)


def check_at_rest(hold: Hold) -> None:
    """Guard: nothing is taken out of a turn that is not over. Raises: UsageError `turn_open`."""
    if hold.state.turn is not None:
        raise refused(
            "the agent's turn is open",
            "Let it come to rest with `sojourn resume`, then redact.",
            code="turn_open",
        )


def _find(hold: Hold, length: int, wanted: EventId) -> Event:
    check_at_rest(hold)
    found = next((e for _, e in _events(hold, length) if e.id == wanted), None)
    if found is None:
        raise NotFoundError("the log holds no such event", code="event_missing")
    kind = found.header.kind
    if kind in UNREDACTABLE:
        raise refused(
            f"an event of the kind {kind} cannot be redacted",
            "Chains and the order of calls are made of it, and it holds no text of anybody.",
        )
    if found.body is None:
        raise refused("the event's body is gone already", "There is nothing left to redact.")
    if kind == "snapshot":
        raise refused(
            "a snapshot cannot be redacted, since later ones are told as changes of it",
            "`sojourn redact --path PATH` takes a file's contents out of every snapshot.",
        )
    in_force = hold.transcript.configured
    if in_force is not None and in_force[0] == wanted:
        raise refused(
            "this is the configuration in force",
            "Give the agent another model, prompt or tools first; then redact the old one.",
        )
    if kind == "environment_changed" and _last_of(hold, length, kind) == wanted:
        raise refused(
            "this is how the environment is now",
            "Take the text out of the file, run the agent once, then redact the old event.",
        )
    return found


def refused(message: str, hint: str, *, code: str = "redact_refused") -> UsageError:
    """The error for what cannot be redacted."""
    return UsageError(message, code=code, state="Nothing was changed.", hint=hint, exit_code=6)


def _events(hold: Hold, length: int) -> Iterator[tuple[bytes, Event]]:
    for line, event in events_of(hold.store, length):
        if isinstance(event, Event):
            yield line, event
        elif event.event is not None:
            yield line, event.event


def _last_of(hold: Hold, length: int, kind: str) -> EventId | None:
    found = [e.id for _, e in _events(hold, length) if e.header.kind == kind]
    return found[-1] if found else None


def _only_named_by(hold: Hold, length: int, event: Event) -> tuple[BlobId, ...]:
    """The blobs that this body names and no other does."""
    own: set[BlobId] = set()
    others: set[BlobId] = set()
    for line, one in _events(hold, length):
        named = set(named_by(line, one, lambda ref: blob_or_none(hold.store, ref)))
        if one.id == event.id:
            own = named
        elif named:
            others |= named
    return tuple(sorted(own - others))


async def _forget(hold: Hold, length: int, event: Event) -> None:
    """Files that are made from the log lose the text first, so no crash brings it back."""
    await hold.store.replace_file(layout.INDEX, index.EMPTY)
    if not isinstance(event.body, Memory):
        return
    fold: Fold = START
    for _, one in _events(hold, length):
        if one.id == event.id:
            fold = hide(fold)
        elif isinstance(one.body, Memory):
            fold = add(fold, one.body, read_text=hold.text)
    await hold.store.replace_file(layout.WORKING_MEMORY, hold.text(fold.text).encode())


def _without_body(hold: Hold, length: int, event: EventId, added: bytes) -> Iterator[bytes]:
    reader = events_of(hold.store, length)
    wanted = next((line for line, one in reader if isinstance(one, Event) and one.id == event), b"")
    for line in lines_of(hold.store, 0, length):
        if line == wanted:
            yield BODY + b"null" + line[line.rindex(HEADER) :]
        else:
            yield line
    yield added
