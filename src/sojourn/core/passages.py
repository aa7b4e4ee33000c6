"""What of a capsule can be found by searching: passages of events, notes and documents.

Folded from events in the order of the log (docs/recall.md#passages). What is masked in the log is
masked here, and a redacted body has no passage.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias

from sojourn.format.event import (
    DocumentChange,
    Event,
    Input,
    ModelOutcome,
    Settled,
    ToolIntent,
    ToolOutcome,
)
from sojourn.format.parts import CallPart, RefusalPart, Text, TextPart
from sojourn.ids import CallKey, EventId

PIECE: Final = 1000
"""Characters of a passage at most."""

MOST_PIECES: Final = 16
"""Passages of one event, section or document; what comes after is not found."""

SPLIT: Final = "2"
"""Changes when passages of a log, or their numbers, may be others: an index is made anew then."""

RECALL: Final = "recall"
"""The tool whose calls are left out: else each search would find the searches before it."""

MEMORY: Final = "memory"
DOCUMENT: Final = "document"
KINDS: Final = ("input", "model_outcome", "tool_outcome", "settled", MEMORY, DOCUMENT)
"""What a passage can be of: events of these kinds, the notes, and documents."""

ReadText: TypeAlias = Callable[[Text], str]

Key: TypeAlias = tuple[str, str, int]
"""Names a passage among all of a capsule: what it is of, the place, the part."""

_HEADING: Final = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_CUTS: Final = ("\n\n", "\n", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text that can be found; `place` is an event's id, a section's heading or a document's name.

    `event` is the id of the event it is from, `number` that event's in the log; `part` counts from
    0 within the place.
    """

    kind: str
    place: str
    part: int
    event: EventId
    number: int
    time: str
    text: str

    @property
    def key(self) -> Key:
        """Events of all kinds share one space of names: their ids."""
        own = self.kind if self.kind in (MEMORY, DOCUMENT) else ""
        return own, self.place, self.part

    @property
    def digest(self) -> str:
        """The sha256 of its text."""
        return sha256(self.text.encode()).hexdigest()


class Passages:
    """The fold; `read` gives a text whole, or what is known of one that is gone."""

    def __init__(self, read: ReadText) -> None:
        self._read = read
        self._recalls: set[CallKey] = set()
        self.documents: dict[str, tuple[Event, int, DocumentChange]] = {}

    def of(self, event: Event, number: int) -> Iterator[Passage]:
        """The passages of the log's next event, which has this number."""
        body = event.body
        match body:
            case Input() | Settled():
                text = self._said(body.parts)
            case ModelOutcome():
                text = self._said(body.parts)
            case ToolOutcome():
                self.documents.update((one.name, (event, number, one)) for one in body.documents)
                recalled = body.call in self._recalls
                self._recalls.discard(body.call)
                failure = "" if body.failure is None else self._read(body.failure.message)
                text = "" if recalled else self._said(body.parts) or failure
            case ToolIntent():
                if body.tool == RECALL:
                    self._recalls.add(body.call)
                return
            case _:
                return
        yield from cut(event, number, kind=event.header.kind, place=event.id, text=text)

    def of_documents(self) -> Iterator[Passage]:
        """The passages of the documents as they are now, by name."""
        for name in sorted(self.documents):
            event, number, change = self.documents[name]
            text = self._read(change.value)
            yield from cut(event, number, kind=DOCUMENT, place=name, text=text)

    def _said(self, parts: tuple[object, ...]) -> str:
        """The visible text of some parts, and what they ask for."""
        words: list[str] = []
        for part in parts:
            match part:
                case TextPart() | RefusalPart():
                    words.append(self._read(part.text))
                case CallPart() if part.tool != RECALL:
                    words.append(f"{part.tool} {self._read(part.args)}")
                case _:
                    pass
        return "\n".join(word for word in words if word)


def of_notes(event: Event, number: int, text: str) -> Iterator[Passage]:
    """The passages of the working memory, section by section; `event` is the last edit of it."""
    seen: Mapping[str, int] = {}
    for section in _HEADING.split(text):
        first_line, _, rest = section.partition("\n")
        if first_line.startswith("#") and not rest.strip():
            continue
        heading = first_line[:200].strip()
        # Two sections of one heading are one place, so that their passages count on.
        first = seen.get(heading, 0)
        pieces = cut(event, number, kind=MEMORY, place=heading, text=section, first=first)
        found = list(pieces)
        seen = {**seen, heading: first + len(found)}
        yield from found


def cut(
    event: Event, number: int, *, kind: str, place: str, text: str, first: int = 0
) -> Iterator[Passage]:
    """A text as passages, cut where a paragraph, a line or a word ends."""
    for part, piece in enumerate(_pieces(text)):
        yield Passage(
            kind=kind,
            place=place,
            part=first + part,
            event=event.id,
            number=number,
            time=event.header.time,
            text=piece,
        )


def _pieces(text: str) -> Iterator[str]:
    rest = text[: PIECE * MOST_PIECES].strip()
    for _ in range(MOST_PIECES):
        if not rest:
            return
        end = _end(rest)
        yield rest[:end].rstrip()
        rest = rest[end:].lstrip()


def _end(text: str) -> int:
    """Where the first passage ends: after the last good cut of its second half."""
    if len(text) <= PIECE:
        return len(text)
    for mark in _CUTS:
        at = text.rfind(mark, PIECE // 2, PIECE)
        if at > 0:
            return at
    return PIECE
