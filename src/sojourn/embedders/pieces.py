"""Cuts texts into the pieces of a table: whole words where it has them, else parts of words.

The same on every machine: no locale, no random order (docs/recall.md#embedder).
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

CONTINUES: Final = "##"
"""How a piece begins that only stands inside a word."""

LONGEST_WORD: Final = 64
"""Characters of a word that are looked at."""

REMEMBERED: Final = 50_000
"""Words whose pieces are kept in memory."""

_WORD: Final = re.compile(r"[^\W_]+|[^\w\s]")
# `readConfig` and `HTTPServer2` are words of code: cut where the case changes.
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Pieces:
    """Cuts texts; `numbers` gives each piece of the table its row."""

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, text: str, most: int) -> list[int]:
        """The rows of the first `most` pieces; what the table has no piece for is passed over."""
        rows: list[int] = []
        for word in _words(text):
            rows.extend(self._of_word(word))
            if len(rows) >= most:
                break
        return rows[:most]

    def _of_word(self, word: str) -> tuple[int, ...]:
        found = self._known.get(word)
        if found is None:
            found = tuple(self._cut(word[:LONGEST_WORD]))
            if len(self._known) < REMEMBERED:
                self._known[word] = found
        return found

    def _cut(self, word: str) -> Iterator[int]:
        """The longest piece first, again and again; a character without a piece is skipped."""
        start = 0
        while start < len(word):
            prefix = CONTINUES if start else ""
            end = len(word)
            while end > start and prefix + word[start:end] not in self._numbers:
                end -= 1
            if end > start:
                yield self._numbers[prefix + word[start:end]]
            start = max(end, start + 1)


def _words(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text):
        word = found[0]
        for part in _HUMP.split(word) if not word.islower() else (word,):
            yield plain(part)


def plain(text: str) -> str:
    """Lower case, without accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.lower())
    return "".join(c for c in apart if unicodedata.category(c) != "Mn")
