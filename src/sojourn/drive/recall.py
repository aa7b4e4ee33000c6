"""Brings a capsule's working index up to its log, and finds passages in it (docs/recall.md).

Reads the capsule and writes the state folder alone. Everything here may run in a thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from sojourn.core import recall
from sojourn.core.passages import SPLIT, Passage
from sojourn.drive.passage_log import PassageLog, log_mark
from sojourn.errors import CallError, StorageError
from sojourn.ids import CapsuleId, EventId
from sojourn.ports import Store
from sojourn.ports_recall import Embedder, Recalled, WorkingIndex

BATCH: Final = 512
"""Passages that are put in, or embedded, at once."""

SNIPPET: Final = 240
"""Characters of a stretch."""


class Fits(msgspec.Struct, frozen=True, kw_only=True):
    """What a working index was made of; `log` is empty while it was not read to its end."""

    capsule: str
    embedder: tuple[str, str]
    split: str = SPLIT
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found, the best first; `without_vectors` says why only words were compared."""

    passages: tuple[Recalled, ...]
    without_vectors: str = ""


class Recaller:
    """Searches one capsule; `bring_up` takes in what was added to the log since."""

    def __init__(
        self, *, capsule: CapsuleId, store: Store, index: WorkingIndex, embedder: Embedder
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._fits = Fits(capsule=capsule, embedder=(embedder.name, embedder.digest))
        self._log: PassageLog | None = None

    @property
    def index(self) -> WorkingIndex:
        """The passages as they were taken in."""
        return self._index

    @property
    def embedder(self) -> Embedder:
        """What the vectors are made with."""
        return self._embedder

    def find(
        self,
        question: str,
        *,
        most: int,
        kinds: Sequence[str] = (),
        words_only: bool = False,
        leave_out: EventId | None = None,
    ) -> Found:
        """The passages nearest to the question, one a place, but for those of one event.

        Raises: StorageError when the working index cannot be written.
        """
        words = recall.words_of(question)
        by_words = self._index.with_words(words, kinds, most=recall.CANDIDATES)
        near, why = ([], "") if words_only else self._near(question, kinds)
        if near:
            total, having = self._index.having(words, by_words)
            by_words = recall.covering(by_words, having, total=total)
        ranked = recall.fuse(near, by_words)
        passages = self._index.passages([number for number, _ in ranked])
        best: dict[tuple[str, str], Recalled] = {}
        for number, score in ranked:
            passage = passages.get(number)
            if passage is None or passage.place == leave_out:
                continue
            shown = recall.snippet(passage.text, words, length=SNIPPET)
            found = Recalled(passage=passage, score=score, snippet=shown)
            best.setdefault(passage.key[:2], found)
        return Found(passages=tuple(best.values())[:most], without_vectors=why)

    def _near(self, question: str, kinds: Sequence[str]) -> tuple[list[int], str]:
        """Passages by meaning, and why there are none when vectors cannot be made."""
        try:
            self.embed()
            (asked,) = self._embedder.embed([question])
        except CallError as error:
            return [], error.message
        except StorageError as error:
            if error.code != "table_missing":
                raise
            return [], error.message
        numbers, vectors = self._index.vectors(kinds)
        return [numbers[one.number] for one in recall.nearest(asked, vectors)], ""

    def embed(self) -> None:
        """Give every passage a vector.

        Raises: CallError or StorageError from the embedder; StorageError from the index.
        """
        while rows := self._index.without_vectors(BATCH):
            made = self._embedder.embed([text for _, text in rows])
            pairs = zip(rows, made, strict=True)
            self._index.add_vectors({number: vector for (number, _), vector in pairs})

    def bring_up(self, *, whole: bool) -> None:
        """Take in what was added to the log; `whole` reads it to its very end.

        A running turn leaves out its last append, on which it still builds. An index that is not
        of this log, embedder or version is made anew.

        Raises: StorageError when the working index cannot be written.
        """
        fits = self._fits
        if whole:
            fits = msgspec.structs.replace(fits, log=log_mark(self._store))
        known = _read_mark(self._index.mark())
        if whole and known == fits:
            return
        if known is None or msgspec.structs.replace(known, log="") != self._fits:
            self._index.forget()
        if whole or self._log is None:
            self._log = PassageLog(self._store)
        if not self._take_in(self._log, fits, whole=whole):
            # Something that was indexed is not in the log any more, of which nothing may stay, or
            # has another number there, as after a merge.
            self._index.forget()
            self._log = PassageLog(self._store)
            self._take_in(self._log, fits, whole=whole)

    def rebuild(self) -> None:
        """Make the working index anew from the log."""
        self._index.forget()
        self.bring_up(whole=True)

    def _take_in(self, log: PassageLog, fits: Fits, *, whole: bool) -> bool:
        """Put in what is new; False when an event's passage is gone or has another number."""
        kept = {one.key: one for one in self._index.kept()}
        partly = self._mark(self._fits)
        new: list[Passage] = []
        for passage in log.read(whole=whole):
            known = kept.get(passage.key)
            if known is None:
                new.append(passage)
            elif known.number != passage.number:
                return False
            if len(new) >= BATCH:
                self._index.update(gone=(), new=new, mark=partly)
                new = []
        if whole and any(not key[0] and key not in log.keys for key in kept):
            return False
        present = {passage.key: passage for passage in log.present()}
        gone: list[int] = []
        for key, one in kept.items():
            now = present.get(key)
            if now is not None and (now.digest, now.number) == (one.digest, one.number):
                del present[key]
            elif key[0]:
                gone.append(one.id)
        self._index.update(gone=gone, new=[*new, *present.values()], mark=self._mark(fits))
        return True

    def _mark(self, fits: Fits) -> str:
        return msgspec.json.encode(fits).decode()


def _read_mark(mark: str) -> Fits | None:
    try:
        return msgspec.json.decode(mark.encode(), type=Fits)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
