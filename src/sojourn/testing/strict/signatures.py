"""Signatures of thinking blocks: what a fake model issues, and how it knows its own again.

A real signature is opaque, belongs to one model and one text, and is sent back byte for byte.
The fake's is a plain token over the same things, so that a checker without memory can tell an
altered, foreign, reordered or incomplete block from one sent back as it came. No secret is
involved: it finds mistakes, not forgeries.
"""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sojourn.testing.strict.shape import is_array, is_integer

_MARK: Final = "strict fake 1"

TokenKind: TypeAlias = Literal["thinking", "redacted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """What a signature says: who issued which of how many blocks of one reply."""

    kind: TokenKind
    model: str
    index: int
    of: int
    digest: str

    def fits(self, text: str) -> bool:
        """Whether the token was issued for exactly this text (a redacted block's is unknown)."""
        return self.digest == _digest(self.kind, self.model, self.index, self.of, text)


def sign(*, model: str, text: str, index: int = 0, of: int = 1) -> str:
    """The signature that `model` gives to block `index` (from 0) of `of` thinking blocks."""
    return _write("thinking", model, index, of, text)


def redact(*, model: str, text: str, index: int = 0, of: int = 1) -> str:
    """The data of a redacted thinking block; `text` is what it hides."""
    return _write("redacted", model, index, of, text)


def read(token: str) -> Token | None:
    """The token's content, or None when no fake model wrote it."""
    try:
        value: object = json.loads(base64.b64decode(token, validate=True))
    except (binascii.Error, ValueError):
        return None
    if not is_array(value) or len(value) != 7 or value[0] != _MARK:
        return None
    _, kind, model, index, of, digest, seal = value
    if kind not in ("thinking", "redacted") or not isinstance(model, str):
        return None
    if not is_integer(index) or not is_integer(of) or not isinstance(digest, str):
        return None
    known: TokenKind = "thinking" if kind == "thinking" else "redacted"
    if seal != _seal(known, model, index, of, digest):
        return None
    return Token(kind=known, model=model, index=index, of=of, digest=digest)


def _write(kind: TokenKind, model: str, index: int, of: int, text: str) -> str:
    digest = _digest(kind, model, index, of, text)
    value = [_MARK, kind, model, index, of, digest, _seal(kind, model, index, of, digest)]
    return base64.b64encode(json.dumps(value).encode()).decode()


def _digest(kind: TokenKind, model: str, index: int, of: int, text: str) -> str:
    source = json.dumps([kind, model, index, of, text])
    return hashlib.sha256(source.encode()).hexdigest()


def _seal(kind: TokenKind, model: str, index: int, of: int, digest: str) -> str:
    """Ties the token together, so that a change shows even where the text is hidden."""
    source = json.dumps([_MARK, kind, model, index, of, digest])
    return hashlib.sha256(source.encode()).hexdigest()[:16]
