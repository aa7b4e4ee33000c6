"""What a provider said when it refused: its body read, and its words made fit to be shown.

The shapes of an error and what they mean are in render/refusal.py.
"""

import re
from typing import Final

import msgspec

from sojourn.render.refusal import SAID_CHARACTERS, Said, read_error

WORD: Final = re.compile(r"[^\s'\",;)]+")
HIDDEN: Final = "[key]"


def read_refusal(body: bytes) -> Said:
    """What the body of a refusal says."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body.decode("utf-8", "replace").strip()
        return Said(message="a page of HTML" if text.startswith("<") else text)
    return read_error(value)


def shown(text: str, *, secrets: tuple[str, ...], limit: int) -> str:
    """A provider's text on one line, bounded, without any of the secrets.

    A provider may repeat a key half masked: words with stars, and words from where they begin as a
    secret does, are hidden too.
    """
    text = text[:SAID_CHARACTERS]
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    starts = [secret[:6] for secret in secrets if len(secret) >= 12]
    text = WORD.sub(lambda found: _hide(found[0], starts), text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _hide(word: str, starts: list[str]) -> str:
    if "***" in word:
        return HIDDEN
    for start in starts:
        before, found, _ = word.partition(start)
        word = before + HIDDEN if found else word
    return word
