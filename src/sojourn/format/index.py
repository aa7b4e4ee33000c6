"""The local semantic index: derived, made again whenever it does not fit (docs/format.md#index)."""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias

import msgspec

from sojourn.errors import FormatError
from sojourn.format import canon, layout
from sojourn.format.failures import say
from sojourn.format.parts import Count

FORMAT: Final = "sojourn.index/1"
EMPTY: Final = canon.encode({"entries": [], "format": FORMAT}) + b"\n"
"""The bytes of an index without entries."""


Hex: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]


class EmbedderMark(msgspec.Struct, frozen=True, kw_only=True):
    """Which embedder made the vectors: `digest` is the sha256 of what it computes with."""

    name: str
    digest: Hex
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=4096)]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage: the event, section of the notes or document it is of, and its vector.

    Exactly one of `event`, `memory` and `document` is set. `part` counts the passages of that one
    from 0, `text` is the sha256 of the passage's UTF-8, `vector` signed bytes in base64.
    """

    event: Hex | None = None
    memory: str | None = None
    document: str | None = None
    part: Count
    text: Hex
    vector: str

    def order(self) -> tuple[int, str, int]:
        """Entries are sorted by this: events, then notes, then documents."""
        if self.event is not None:
            return 0, self.event, self.part
        if self.memory is not None:
            return 1, self.memory, self.part
        return 2, self.document or "", self.part


class Index(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The file; `embedder` is left out where there are no entries yet."""

    format: str
    entries: tuple[Entry, ...]
    embedder: EmbedderMark | None = None


def entry_vector(entry: Entry) -> bytes:
    """The vector's bytes.

    Raises: FormatError `index_malformed`.
    """
    try:
        return b64decode(entry.vector.encode("ascii"), validate=True)
    except (NotBase64, UnicodeEncodeError):
        raise _error(f"a vector that is no base64, of part {entry.part}") from None


def vector_text(vector: bytes) -> str:
    """A vector as an entry holds it."""
    return b64encode(vector).decode("ascii")


def encode(embedder: EmbedderMark, entries: Iterable[Entry]) -> bytes:
    """The file's bytes: entries sorted, as many as fit into the limit; the first given stay."""
    kept: list[tuple[tuple[int, str, int], bytes]] = []
    head = canon.encode(embedder)
    size = len(head) + len(EMPTY) + len(b',"embedder":')
    for entry in entries:
        data = canon.encode(entry)
        if size + len(data) + 1 > layout.MAX_INDEX:
            break
        kept.append((entry.order(), data))
        size += len(data) + 1
    kept.sort(key=lambda pair: pair[0])
    rows = b",".join(data for _, data in kept)
    name = canon.encode(FORMAT)
    return b'{"embedder":' + head + b',"entries":[' + rows + b'],"format":' + name + b"}\n"


def load(data: bytes) -> Index:
    """The index.

    Raises: FormatError with the loader's codes or `index_malformed`.
    """
    value = canon.load(data, what=layout.INDEX, limit=layout.MAX_INDEX)
    try:
        index = msgspec.convert(value, Index, strict=True)
    except msgspec.ValidationError as error:
        raise _error(str(error)) from None
    if index.format != FORMAT:
        raise _error(f"the format {index.format!r}")
    if index.entries and index.embedder is None:
        raise _error("entries and no embedder")
    for entry in index.entries:
        _check(entry, 0 if index.embedder is None else index.embedder.dimensions)
    return index


def _check(entry: Entry, dimensions: int) -> None:
    named = (entry.event, entry.memory, entry.document)
    if sum(one is not None for one in named) != 1:
        raise _error("an entry that is not of exactly one event, section or document")
    if len(entry_vector(entry)) != dimensions:
        raise _error(f"a vector that has not {dimensions} dimensions")


def _error(detail: str) -> FormatError:
    code = "index_malformed"
    return FormatError(say(code, detail), code=code, file=layout.INDEX, line=1)
