"""The local semantic index: derived, and empty until something fills it (docs/format.md#index)."""

from typing import Final

from sojourn.errors import FormatError
from sojourn.format import canon, layout
from sojourn.format.failures import say

FORMAT: Final = "sojourn.index/1"
EMPTY: Final = canon.encode({"entries": [], "format": FORMAT}) + b"\n"
"""The bytes of an index without entries."""


def load(data: bytes) -> list[canon.JSON]:
    """The entries, whatever they hold.

    Raises: FormatError with the loader's codes or `index_malformed`.
    """
    value = canon.load(data, what=layout.INDEX, limit=layout.MAX_INDEX)
    if isinstance(value, dict) and value.get("format") == FORMAT:
        entries = value.get("entries")
        if isinstance(entries, list):
            return entries
    raise FormatError(say("index_malformed"), code="index_malformed", file=layout.INDEX, line=1)
