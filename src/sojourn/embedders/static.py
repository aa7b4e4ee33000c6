"""The embedder that comes with sojourn: a table of word pieces, summed in whole numbers.

No network, no model to run, the same bytes on every machine (docs/recall.md#embedder). The table is
made by scripts/distill_embedder.py; NOTICE says from what.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from sojourn.embedders.pieces import Pieces
from sojourn.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NAME: Final = "static-minilm/1"
"""Changes when the same text may get another vector from the same table."""

DIGEST: Final = "ee111997aa8c12ac257afd085edea2c3cbd7c92e89dbc264165e536eb53d8a7b"
"""The sha256 of the table's bytes."""

FORMAT: Final = "sojourn.table/1"
DIMENSIONS: Final = 256
MOST_PIECES: Final = 384
"""Pieces of a text that count; a passage is shorter (docs/recall.md#passages)."""

TABLE: Final = Path(__file__).with_name("table.bin")


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """The table's first line; after it `vocabulary` bytes of pieces, one a line, in row order.

    Then one weight a row (2 bytes, little endian), then one row after the other, a signed byte a
    dimension. The value of a row is its weight times its bytes.
    """

    dimensions: int
    format: str
    rows: int
    vocabulary: int


class StaticEmbedder:
    """The `Embedder` port over the table; loaded when the first text comes."""

    name: str = NAME
    digest: str = DIGEST
    dimensions: int = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """A vector a text, `dimensions` signed bytes; all zero where the table knows no piece.

        Raises: StorageError `table_missing` when the installation is not whole.
        """
        table = self._table
        return [table.vector(text) for text in texts]

    @cached_property
    def _table(self) -> "Table":
        return Table(TABLE)


class Table:
    """Pieces, weights and rows as the file has them."""

    def __init__(self, path: Path) -> None:
        import numpy as np

        try:
            data = path.read_bytes()
            end = data.index(b"\n") + 1
            heading = msgspec.json.decode(data[:end], type=Heading)
        except (OSError, ValueError) as error:
            raise _not_whole(str(error)) from None
        rows, dimensions = heading.rows, heading.dimensions
        at = end + heading.vocabulary
        whole = at + 2 * rows + rows * dimensions == len(data)
        if not whole or heading.format != FORMAT or dimensions != DIMENSIONS:
            raise _not_whole("its table has another length or format")
        vocabulary = data[end:at].decode().splitlines()
        self._pieces = Pieces({piece: row for row, piece in enumerate(vocabulary)})
        self._weights = np.frombuffer(data, "<u2", rows, at).astype(np.int32)
        values = np.frombuffer(data, np.int8, rows * dimensions, at + 2 * rows)
        self._values = values.reshape(rows, dimensions)

    def vector(self, text: str) -> bytes:
        """The sum of the text's rows, scaled so that the largest number is 127."""
        rows = self._pieces.of(text, MOST_PIECES)
        if not rows:
            return bytes(DIMENSIONS)
        weights = self._weights[rows]
        # 384 rows of at most 127 * 65535 each stay far below 2^53, so nothing is ever rounded.
        total = weights.astype("i8") @ self._values[rows].astype("i8")
        return _scaled(total)


def _scaled(total: "npt.NDArray[np.int64]") -> bytes:
    """Signed bytes, rounded half away from zero."""
    import numpy as np

    size = np.abs(total)
    largest = int(size.max())
    if largest == 0:
        return bytes(len(total))
    scaled = (size * 254 + largest) // (2 * largest)
    return (np.sign(total) * scaled).astype(np.int8).tobytes()


def _not_whole(why: str) -> StorageError:
    return StorageError(
        f"the embedder's table cannot be used: {why}",
        code="table_missing",
        state="Nothing was changed.",
        hint="Install sojourn again, or search with --words.",
    )
