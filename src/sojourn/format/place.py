"""Where in a JSON text a value stands, so that an error can name its line."""

import json
import re
from collections.abc import Sequence
from typing import Final

_ONE_VALUE: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\n\r]*")


def line_of(data: bytes, path: Sequence[str | int]) -> int:
    """The line, from 1, of the value at a path of keys and places; of the last part that is there.

    A key's line is that of its value's beginning. `data` is one strict JSON text.
    """
    text = data.decode("utf-8", "replace")
    at = _skip(text, 0)
    for part in path:
        found = _member(text, at, part)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _member(text: str, at: int, part: str | int) -> int | None:
    """Where the value of one member begins, in the object or list that begins at `at`."""
    is_object = text[at : at + 1] == "{"
    if text[at : at + 1] not in ("{", "[") or is_object != isinstance(part, str):
        return None
    at, count = _skip(text, at + 1), 0
    while at < len(text) and text[at] not in "}]":
        key: object = count
        if is_object:
            key, at = _ONE_VALUE.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if key == part:
            return at
        _, at = _ONE_VALUE.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        count += 1
    return None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()
