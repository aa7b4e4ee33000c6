"""A capsule's log as passages: read once, and then what is added (docs/recall.md#passages)."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from sojourn.core.passages import Key, Passage, Passages, of_notes
from sojourn.drive.reading import blob_or_none
from sojourn.format.event import Event, Memory
from sojourn.format.parts import Text
from sojourn.format.timeline_read import Damage, Reader
from sojourn.format.working_memory import Fold, add
from sojourn.ports import Store

TAIL: Final = 64 * 1024
"""The log's last bytes whose digest tells, with the length, whether it is the one that was read."""


class PassageLog:
    """Reads on where it stopped; `keys` are those of all passages of events so far."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = Reader(read_blob=lambda ref: blob_or_none(store, ref))
        self._passages = Passages(self._text)
        self._notes = Fold()
        self._edit: tuple[Event, int] | None = None
        self._at = 0
        self.keys: set[Key] = set()

    def read(self, *, whole: bool) -> Iterator[Passage]:
        """Passages of the events that were added; `whole` takes the last append too, and ends."""
        for chunk in self._store.read_log(self._at):
            self._at += len(chunk)
            yield from self._of(*self._reader.numbered(chunk))
        if whole:
            ending = self._reader.finish(same_boot=True)
            yield from self._of(ending.rest_lines, ending.rest)

    def present(self) -> Iterator[Passage]:
        """Passages of the notes and the documents as they are after what was read."""
        if self._edit is not None:
            yield from of_notes(*self._edit, self._text(self._notes.text))
        yield from self._passages.of_documents()

    def _of(self, numbers: Sequence[int], found: Sequence[Event | Damage]) -> Iterator[Passage]:
        for number, event in zip(numbers, found, strict=True):
            if isinstance(event, Damage):
                continue
            if isinstance(event.body, Memory):
                self._notes = add(self._notes, event.body, read_text=self._text)
                self._edit = event, number
            for passage in self._passages.of(event, number):
                self.keys.add(passage.key)
                yield passage

    def _text(self, text: Text) -> str:
        """The whole text; of one whose blob is gone, its beginning."""
        if isinstance(text, str):
            return text
        data = blob_or_none(self._store, text)
        return text.preview if data is None else data.decode("utf-8", "replace")


def log_mark(store: Store) -> str:
    """Tells a log from what it was before anything was appended, redacted, cut or merged."""
    size = store.size()
    digest = sha256()
    for chunk in store.read_log(max(0, size - TAIL), size):
        digest.update(chunk)
    return f"{size} {digest.hexdigest()}"
