"""Hides the values of secrets in whatever is written, in the forms in which they turn up.

Only exact values are found: raw, in base64 at any alignment, percent-encoded, and escaped for JSON.
A value that was cut, wrapped or enciphered is not (docs/tools.md#masking).
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

from sojourn.format.environment import is_secret_name

SHORTEST_VALUE: Final = 8
"""Values of fewer characters are not masked: they would take ordinary words with them."""


def secret_values(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables with a secret's name and a value long enough to be masked."""
    return {
        name: value
        for name, value in environment.items()
        if is_secret_name(name) and len(value) >= SHORTEST_VALUE
    }


class Mask:
    """Puts `[masked NAME]` where the value of a secret stands.

    `values` maps name to value; values shorter than `SHORTEST_VALUE` are left alone.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        texts: dict[str, str] = {}
        octets: dict[str, str] = {}
        for name, value in values.items():
            shown = f"[masked {re.sub(r'[^A-Za-z0-9_]', '_', name)}]"
            # Files that hold a key often end in a newline, which is not part of it.
            for form in (*_forms(value), *_forms(value.strip())):
                texts.setdefault(form, shown)
                octets.setdefault(_octets(form), shown)
        self._idle = not texts
        self._texts = _Finder(texts)
        self._octets = _Finder(octets)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to mask."""
        return self._idle

    def text(self, text: str) -> str:
        """The text without the values."""
        return self._texts.mask(text)

    def data(self, data: bytes) -> bytes:
        """The bytes without the values' UTF-8."""
        return self._octets.mask(data.decode("latin-1")).encode("latin-1")

    def text_stream(self) -> "TextMask":
        """For text that comes in pieces."""
        return TextMask(self._texts)

    def data_stream(self) -> "DataMask":
        """For bytes that come in pieces."""
        return DataMask(self._octets)


class TextMask:
    """Masks a stream: all that was fed and flushed equals `Mask.text` of the whole.

    A tail that may be the beginning of a value is held back until more comes.
    """

    def __init__(self, finder: "_Finder") -> None:
        self._finder = finder
        self._held = ""

    def feed(self, text: str) -> str:
        """What is safe to show now."""
        shown, self._held = self._finder.split(self._held + text)
        return shown

    def flush(self) -> str:
        """What was held back, at the end."""
        if not self._held:
            return ""
        shown, self._held = self._finder.mask(self._held), ""
        return shown


class DataMask:
    """As `TextMask`, for bytes."""

    def __init__(self, finder: "_Finder") -> None:
        self._inner = TextMask(finder)

    def feed(self, data: bytes) -> bytes:
        """What is safe to show now."""
        return self._inner.feed(data.decode("latin-1")).encode("latin-1")

    def flush(self) -> bytes:
        """What was held back, at the end."""
        return self._inner.flush().encode("latin-1")


class _Finder:
    """Finds any of many strings, the leftmost and of those the longest."""

    def __init__(self, shown_for: Mapping[str, str]) -> None:
        self._shown_for = shown_for
        longest_first = sorted(shown_for, key=lambda form: (-len(form), form))
        self._forms = longest_first
        self._longest = len(longest_first[0]) if longest_first else 0
        self._firsts = frozenset(form[0] for form in longest_first)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def mask(self, text: str) -> str:
        # Far quicker than the pattern where nothing is found, which is nearly always.
        if not any(form in text for form in self._forms):
            return text
        return self._pattern.sub(lambda found: self._shown_for[found[0]], text)

    def split(self, text: str) -> tuple[str, str]:
        """The masked beginning, and the rest from the first possible beginning of a value on."""
        if not self._forms:
            return text, ""
        done, pieces = 0, list[str]()
        while True:
            hold = self._unfinished(text, done)
            found = self._pattern.search(text, done)
            if found is None or found.start() >= hold:
                return "".join([*pieces, text[done:hold]]), text[hold:]
            pieces += (text[done : found.start()], self._shown_for[found[0]])
            done = found.end()

    def _unfinished(self, text: str, start: int) -> int:
        """The first place from which the text may go on to a value; its length when none."""
        for place in range(max(start, len(text) - self._longest + 1), len(text)):
            if text[place] in self._firsts and self._begins_one(text[place:]):
                return place
        return len(text)

    def _begins_one(self, tail: str) -> bool:
        return any(len(form) > len(tail) and form.startswith(tail) for form in self._forms)


def _octets(form: str) -> str:
    """The form's UTF-8, one character a byte."""
    return form.encode(errors="surrogateescape").decode("latin-1")


def _forms(value: str) -> Iterator[str]:
    """The value as it may stand in text; the environment's odd bytes are lone surrogates."""
    if len(value) < SHORTEST_VALUE:
        return
    raw = value.encode(errors="surrogateescape")
    yield value
    yield from _base64_forms(raw)
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), quoted)
    shown = raw.decode(errors="replace")
    yield shown
    for escaped in (json.dumps(shown)[1:-1], json.dumps(shown, ensure_ascii=False)[1:-1]):
        yield escaped
        yield escaped.replace("/", "\\/")
        yield json.dumps(escaped)[1:-1]


def _base64_forms(raw: bytes) -> Iterator[str]:
    """As a whole, and the characters that do not depend on what stands before and behind it."""
    whole = b64encode(raw).decode()
    inner = list[str]()
    for before in range(3):
        encoded = b64encode(bytes(before) + raw).decode()
        inner.append(encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6])
    for form in (whole, whole.rstrip("="), *inner):
        yield form
        yield form.replace("+", "-").replace("/", "_")
