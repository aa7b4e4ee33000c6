"""Which passages are near a question: by vectors, by words, and by both (docs/recall.md#ranking).

The only pure module with numpy; it is loaded when vectors are compared, not before.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

DAMPING: Final = 60
"""How little the first ranks of one list outweigh the others (reciprocal rank fusion)."""

CANDIDATES: Final = 100
"""How many of each list are put together."""

SHARE: Final = 0.5
"""How much of the question's words, each weighed by its rarity, a passage must have to be ranked
by them beside meaning: else common words would push what is near in meaning down."""

MOST_WORDS: Final = 32
"""Words of a question that count."""

AT_ONCE: Final = 1024
"""Vectors that are compared at once: few enough to stay in the processor's cache."""

_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Near:
    """A passage's number in the list, and the cosine of its vector and the question's."""

    number: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Having:
    """How many passages have a word, and which of some candidates."""

    count: int
    among: frozenset[int]


def nearest(question: bytes, vectors: bytes, *, most: int = CANDIDATES) -> list[Near]:
    """The vectors with the largest cosines, the largest first, equal ones in their order.

    `vectors` are one after the other, each as long as `question`, signed bytes. What has no
    direction (all zero) is near nothing. The same on every machine: sums are whole numbers, and
    root and division are rounded as IEEE 754 says.
    """
    import numpy as np

    dimensions = len(question)
    if not vectors or not any(question):
        return []
    asked = np.frombuffer(question, np.int8).astype(np.float32)
    rows = np.frombuffer(vectors, np.int8).reshape(-1, dimensions)
    dots = np.empty(len(rows), np.float64)
    sizes = np.empty(len(rows), np.float64)
    # 256 products of at most 127 * 127 each stay below 2^24: exact in 32-bit floats too.
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE].astype(np.float32)
        dots[start : start + AT_ONCE] = np.einsum("ij,j->i", some, asked)
        sizes[start : start + AT_ONCE] = np.einsum("ij,ij->i", some, some)
    length = float(np.sqrt((asked * asked).sum(dtype=np.float64)))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = np.where(sizes > 0, dots / (np.sqrt(sizes) * length), -1.0)
    order = np.argsort(-cosines, kind="stable")[:most]
    return [Near(int(number), float(cosines[number])) for number in order if cosines[number] > 0]


def covering(candidates: Sequence[int], having: Mapping[str, Having], *, total: int) -> list[int]:
    """The candidates that have at least `SHARE` of the words' weight, in their order.

    A word weighs log((total + 1) / (passages with it + 0.5)): one that all have next to nothing,
    one that none has the most. `total` is the number of passages.
    """
    weights = {word: max(0.0, log((total + 1) / (one.count + 0.5))) for word, one in having.items()}
    wanted = SHARE * sum(weights.values())
    return [
        number
        for number in candidates
        if wanted
        and sum(weights[word] for word, one in having.items() if number in one.among) >= wanted
    ]


def fuse(by_meaning: Sequence[int], by_words: Sequence[int]) -> list[tuple[int, float]]:
    """Both lists as one, with scores: each gives 1 / (60 + rank); equal scores in ascending id."""
    scores: dict[int, float] = {}
    for ranking in (by_meaning, by_words):
        for rank, found in enumerate(ranking, start=1):
            scores[found] = scores.get(found, 0.0) + 1.0 / (DAMPING + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def words_of(question: str) -> tuple[str, ...]:
    """The question's words in the order of their first appearance, each once."""
    found = dict.fromkeys(word.lower() for word in _WORD.findall(question))
    return tuple(found)[:MOST_WORDS]


def snippet(text: str, words: Iterable[str], *, length: int = 200) -> str:
    """A stretch of at most `length` characters on one line, with many of the words in it."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    lower = line.lower()
    if len(lower) != len(line):
        lower = line
    places = sorted(
        found.start()
        for word in words
        for found in re.finditer(rf"(?<!\w){re.escape(word)}", lower)
    )
    start = _best_start(places, length)
    start = 0 if start < length // 4 else line.rfind(" ", 0, start - length // 8) + 1
    end = min(len(line), start + length - 2)
    shown = line[start:end].strip()
    return ("…" if start else "") + shown + ("…" if end < len(line) else "")


def _best_start(places: Sequence[int], length: int) -> int:
    """Where the stretch begins that holds the most of the places."""
    best: Mapping[str, int] = {"start": 0, "count": 0}
    end = 0
    for first, place in enumerate(places):
        while end < len(places) and places[end] < place + length * 3 // 4:
            end += 1
        if end - first > best["count"]:
            best = {"start": place, "count": end - first}
    return best["start"]
