"""What searching a capsule asks of the world: an embedder, and an index in the state folder.

These are ports as those of `ports.py` are; they stand below them, since a tool may be given
`Recall`.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from sojourn.core.passages import Key, Passage
from sojourn.core.recall import Having
from sojourn.ids import EventId


class Embedder(Protocol):
    """Texts as vectors; near ones mean similar things (docs/recall.md#embedder).

    `digest` is the sha256 of what it computes with. Another name or digest means other vectors.
    """

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One vector a text, in order: `dimensions` signed bytes; all zero for what it knows not.

        The same text gives the same bytes on every machine. Called from any thread, one at a time.

        Raises: CallError or StorageError when it cannot work now.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A passage in the working index: its place there, its text's sha256, its event's number."""

    id: int
    key: Key
    digest: str
    number: int


class WorkingIndex(Protocol):
    """A capsule's passages with words and vectors, in the state folder; lost, it is made again.

    A damaged file is replaced by an empty one and never an error. Whoever uses it does so inside
    `alone`, else one could take away what another has open.
    """

    def alone(self) -> AbstractContextManager[None]:
        """Others who ask for the same wait until it is left. Raises: StorageError."""
        ...

    def mark(self) -> str:
        """What the last update said it fits, empty when nothing is known."""
        ...

    def kept(self) -> tuple[Kept, ...]:
        """Every passage, ascending by number."""
        ...

    def update(self, *, gone: Sequence[int], new: Sequence[Passage], mark: str) -> None:
        """Take passages out and others in, all or none.

        Raises: StorageError.
        """
        ...

    def without_vectors(self, most: int) -> tuple[tuple[int, str], ...]:
        """Numbers and texts of passages that have none yet, ascending."""
        ...

    def add_vectors(self, vectors: Mapping[int, bytes]) -> None:
        """Give passages their vectors.

        Raises: StorageError.
        """
        ...

    def vectors(self, kinds: Sequence[str]) -> tuple[Sequence[int], bytes]:
        """Numbers of passages, ascending, and their vectors one after the other.

        Without `kinds` those of all.
        """
        ...

    def with_words(self, words: Sequence[str], kinds: Sequence[str], *, most: int) -> list[int]:
        """Passages with any of the words, the best first (BM25)."""
        ...

    def having(self, words: Sequence[str], ids: Sequence[int]) -> tuple[int, dict[str, Having]]:
        """How many passages there are; and of each word how many have it, and which of these."""
        ...

    def with_vectors(self) -> Iterator[tuple[Kept, bytes]]:
        """Passages and their vectors, the newest first."""
        ...

    def passages(self, ids: Sequence[int]) -> dict[int, Passage]:
        """The passages of these numbers."""
        ...

    def forget(self) -> None:
        """Take it off the disk: nothing of what was redacted stays in a free page.

        Raises: StorageError.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A passage that was found, its score in the ranking, and a stretch of its text."""

    passage: Passage
    score: float
    snippet: str


Recall: TypeAlias = Callable[[str, int], Awaitable[Sequence[Recalled]]]
"""Finds passages of one capsule: a question, and how many at most."""

RecallExcept: TypeAlias = Callable[[str, int, EventId | None], Awaitable[Sequence[Recalled]]]
"""The same, and the event whose passages are left out."""
