"""The agent's notes as the memory events make them (docs/format.md#memory)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from sojourn.format import layout
from sojourn.format.event import Memory
from sojourn.format.joining import join
from sojourn.format.parts import BlobRef, Text
from sojourn.ids import BlobId

ReadText: TypeAlias = Callable[[BlobRef], str]
"""Gives the text of a blob."""

State: TypeAlias = Literal["equal", "stale", "hand_edit"]

EMPTY = BlobId(sha256(b"").hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One text of the notes and its digest; `old` is the text that it is an edit of."""

    text: Text = ""
    digest: BlobId = EMPTY
    old: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The notes after some events: more than one of `versions` when edits were concurrent.

    `hidden`: the text after was redacted, so an edit of a text that is not known was of that one.
    `text` has all of them. `earlier` holds the texts before and of each edit by their digests, the
    empty one too, in parts whose sizes fall: so adding some copies few, however many there were.
    """

    text: Text = ""
    digest: BlobId = EMPTY
    versions: tuple[Version, ...] = (Version(),)
    earlier: tuple[Mapping[BlobId, Text], ...] = ()
    written: bool = False
    hidden: bool = False


MAX_EDIT: Final = 256 * layout.KIB
"""Bytes of notes above which an edit is refused: every later request would hold them."""

START = Fold()
"""No notes yet."""


def add(fold: Fold, event: Memory, *, read_text: ReadText) -> Fold:
    """The fold after one more event; a text in a blob is read only when two must be joined."""
    new = Version(text=event.text, digest=_digest(event.text))
    versions = _versions(fold, event.before, new)
    text, digest = versions[0].text, versions[0].digest
    if versions is fold.versions:
        text, digest = fold.text, fold.digest
    elif len(versions) > 1:
        text = _joined(versions, read_text)
        digest = digest_of(text)
    passed: Mapping[BlobId, Text] = {fold.digest: fold.text}
    if digest != new.digest:
        passed = {**passed, new.digest: new.text}
    earlier = (*fold.earlier, passed)
    while len(earlier) > 1 and len(earlier[-2]) <= len(earlier[-1]):
        earlier = (*earlier[:-2], {**earlier[-2], **earlier[-1]})
    return Fold(text=text, digest=digest, versions=versions, earlier=earlier, written=True)


def _versions(fold: Fold, before: BlobId | None, new: Version) -> tuple[Version, ...]:
    """What an edit of the text `before` leaves: it takes the place of what it was made of."""
    if before == fold.digest or (before is None and not fold.written):
        return (new,)
    if fold.hidden and len(fold.versions) == 1 and not _knows(fold, before):
        return (new,)
    known = [version.digest for version in fold.versions]
    if new.digest == fold.digest or (new.digest in known and before not in known):
        return fold.versions
    if before not in known:
        return (*fold.versions, replace(new, old=_text_of(fold, before)))
    kept: dict[BlobId, Version] = {}
    for version in fold.versions:
        stays = replace(new, old=version.old) if version.digest == before else version
        kept.setdefault(stays.digest, stays)
    return tuple(kept.values())


def hide(fold: Fold) -> Fold:
    """The fold after an edit whose text was redacted: the text is the one before it."""
    return replace(fold, hidden=True)


def _knows(fold: Fold, digest: BlobId | None) -> bool:
    return digest is None or any(digest in some for some in fold.earlier)


def _text_of(fold: Fold, digest: BlobId | None) -> Text:
    """The earlier text with this digest, the empty one when it is not known."""
    return next((some[digest] for some in fold.earlier if digest in some), "") if digest else ""


def _joined(versions: Sequence[Version], read_text: ReadText) -> str:
    """The first version, and each other one joined to what came out so far."""
    text = _read(versions[0].text, read_text)
    for version in versions[1:]:
        old = _read(version.old, read_text)
        text = join(old, text, _read(version.text, read_text))
    return text


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
