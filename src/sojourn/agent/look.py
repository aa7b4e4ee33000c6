"""Looking at a capsule: everything that can be known of it without holding it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from sojourn.agent.places import Place
from sojourn.core.tenure import Admission, Evidence, admit
from sojourn.core.turn_state import TurnState
from sojourn.core.view import Transcript
from sojourn.drive.machine import Ports
from sojourn.drive.opening import examine
from sojourn.drive.reading import Folded, blob_or_none, read_blobs
from sojourn.format import layout
from sojourn.format.body import Head
from sojourn.format.event import Event
from sojourn.format.line import HEADER
from sojourn.format.parts import Text
from sojourn.format.timeline_read import Damage, Item, Reader
from sojourn.ids import BlobId, EventId
from sojourn.ports import HeldBy, Store
from sojourn.render import Rendered, Target, blobs_needed, dialect


class Numbered(NamedTuple):
    """An event and its number: that of its line in the log, from 1 (docs/cli.md#numbers)."""

    number: int
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A capsule as read just now; `admission` says whether this machine may run it, by `evidence`.

    `waiting` counts accepted messages that are not in the log yet, `refused` names the files of the
    inbox that are no messages.
    """

    place: Place
    folded: Folded
    admission: Admission
    evidence: Evidence
    held_by: HeldBy | None
    waiting: int
    refused: tuple[str, ...]
    store: Store

    @property
    def state(self) -> TurnState:
        """The turn's state."""
        return self.folded.state

    @property
    def transcript(self) -> Transcript:
        """What prompts are made of."""
        return self.folded.transcript

    @property
    def model(self) -> str | None:
        """The model in force, as `provider/name`."""
        configured = self.transcript.configured
        return None if configured is None else configured[1].model or None

    @property
    def events(self) -> int:
        """How many events the log holds."""
        return self.folded.ending.events

    @property
    def length(self) -> int:
        """The log's sound length in bytes."""
        return self.folded.ending.length

    @property
    def heads(self) -> Sequence[Head]:
        """The last event of each chain."""
        return self.folded.ending.heads

    @property
    def last_time(self) -> str | None:
        """When the last event was written, as its machine's clock said."""
        return self.folded.last_time

    @property
    def damages(self) -> tuple[Damage, ...]:
        """What cannot be read, with its place."""
        return self.folded.ending.damages

    @property
    def torn(self) -> bool:
        """Whether the last append is incomplete; the next opening cuts and keeps it."""
        return self.folded.ending.torn is not None

    def text(self, text: Text) -> str:
        """The whole string, read from its blob when it is one.

        Raises: FormatError `blob_missing` or `blob_altered`.
        """
        if isinstance(text, str):
            return text
        return self._blobs((text.sha256,))[text.sha256].decode("utf-8", "replace")

    def _blobs(self, blobs: Iterable[BlobId]) -> dict[BlobId, bytes]:
        ending = self.folded.ending
        return read_blobs(self.store, blobs, gone=ending.gone)

    def events_of(self) -> Iterator[Event]:
        """The log's events in its order."""
        return (event for _, event in self.numbered())

    def numbered(self) -> Iterator[Numbered]:
        """The log's events in its order, each with its number."""
        return Tail(self.store).all()

    def tail(self) -> "Tail":
        """A reading that can be continued as the log grows."""
        return Tail(self.store)

    def context(self, target: Target) -> Rendered:
        """Exactly what a model would be sent now.

        Raises: NotFoundError when nothing was configured; FormatError when a blob is missing.
        """
        configured = self.transcript.configured
        system: Text = "" if configured is None else configured[1].system
        prompt = self.transcript.prompt(
            system=system, memory=self.text(self.transcript.first_memory)
        )
        blobs = self._blobs(blobs_needed(prompt))
        return dialect(target.profile.dialect).render(prompt, target, blobs)


class Tail:
    """Reads a log from its start and then what is added; what cannot be read is passed over."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = Reader(read_blob=lambda ref: blob_or_none(store, ref))
        self._at = 0

    def more(self) -> Iterator[Numbered]:
        """Whole events that were added since."""
        for chunk in self._store.read_log(self._at):
            self._at += len(chunk)
            yield from _events(*self._reader.numbered(chunk))

    def all(self) -> Iterator[Numbered]:
        """Every event up to now, the last append's too."""
        yield from self.more()
        ending = self._reader.finish(same_boot=True)
        yield from _events(ending.rest_lines, ending.rest)


def events_in(store: Store, start: int = 0) -> Iterator[Event]:
    """The events of a log, without the first `start`."""
    return islice((event for _, event in Tail(store).all()), start, None)


def number_of(store: Store, event: EventId) -> int:
    """The number of an event that was appended just now; 0 when it is not among the last lines."""
    size, lines = store.size(), 0
    for chunk in store.read_log(0, size):
        lines += chunk.count(b"\n")
    end = b"".join(store.read_log(max(0, size - layout.MAX_BATCH), size))
    for above, line in enumerate(reversed(end.split(b"\n")[:-1])):
        if sha256(line[line.rfind(HEADER) + len(HEADER) : -1]).hexdigest() == event:
            return lines - above
    return 0


def _events(numbers: Iterable[int], items: Iterable[Item]) -> Iterator[Numbered]:
    for number, item in zip(numbers, items, strict=True):
        if isinstance(item, Event):
            yield Numbered(number, item)


def look_at(ports: Ports, place: Place) -> Look:
    """Read and fold the capsule; takes no lock and changes nothing."""
    store = ports.store_at(place.folder)
    held_by = ports.lock.holder(place.capsule) if place.capsule else None
    left = ports.lock.left(place.capsule) if place.capsule and held_by is None else None
    folded, evidence = examine(ports, store, place.folder, left=left, recover=False)
    capsule = folded.capsule
    return Look(
        place=place,
        folded=folded,
        admission=admit(evidence),
        evidence=evidence,
        held_by=held_by,
        waiting=0 if capsule is None else len(ports.inbox.items(capsule)),
        refused=() if capsule is None else ports.inbox.refused(capsule),
        store=store,
    )
