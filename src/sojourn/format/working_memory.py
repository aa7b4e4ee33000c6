"""The agent's notes as the memory events make them (docs/format.md#memory)."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from sojourn.format import layout
from sojourn.format.event import Memory
from sojourn.format.parts import BlobRef, Text
from sojourn.ids import BlobId

ReadText: TypeAlias = Callable[[BlobRef], str]
"""Gives the text of a blob."""

State: TypeAlias = Literal["equal", "stale", "hand_edit"]

BLANK = " \t\n\r"
EMPTY = BlobId(sha256(b"").hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The notes after some events.

    `earlier` holds the digests of the texts before, the empty one too, in sets whose sizes fall:
    so adding one copies few, however many edits there were.
    """

    text: Text = ""
    digest: BlobId = EMPTY
    earlier: tuple[frozenset[BlobId], ...] = ()
    written: bool = False


MAX_EDIT: Final = 256 * layout.KIB
"""Bytes of notes above which an edit is refused: every later request would hold them."""

START = Fold()
"""No notes yet."""


def add(fold: Fold, event: Memory, *, read_text: ReadText) -> Fold:
    """The fold after one more event; a text in a blob is read only when two must be joined."""
    continues = event.before == fold.digest or (event.before is None and not fold.written)
    text, digest = event.text, _digest(event.text)
    if not continues and digest != fold.digest:
        text = join(_read(fold.text, read_text), _read(event.text, read_text))
        digest = digest_of(text)
    earlier = (*fold.earlier, frozenset((fold.digest,)))
    while len(earlier) > 1 and len(earlier[-2]) <= len(earlier[-1]):
        earlier = (*earlier[:-2], earlier[-2] | earlier[-1])
    return Fold(text=text, digest=digest, earlier=earlier, written=True)


def join(ours: str, theirs: str) -> str:
    """Two edits of one text, both kept, under one heading."""
    return (
        "# Two versions of these notes\n\n## The version before\n\n"
        f"{ours.strip(BLANK)}\n\n## The version of another edit\n\n{theirs.strip(BLANK)}\n"
    )


def compare(fold: Fold, data: bytes) -> State:
    """What the file on disk is, seen from the fold."""
    digest = BlobId(sha256(data).hexdigest())
    if digest == fold.digest:
        return "equal"
    return "stale" if any(digest in some for some in fold.earlier) else "hand_edit"


def digest_of(text: str) -> BlobId:
    """The sha256 of a text's UTF-8."""
    return BlobId(sha256(text.encode()).hexdigest())


def _digest(text: Text) -> BlobId:
    return digest_of(text) if isinstance(text, str) else text.sha256


def _read(text: Text, read_text: ReadText) -> str:
    return text if isinstance(text, str) else read_text(text)
