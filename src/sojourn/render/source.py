"""JSON source text and Unicode: read it without losing anything, write what every reader takes.

Foreign JSON stays source text until it is put on the wire (docs/rendering.md#json).
"""

import json
import math
from typing import Final

import msgspec

MAX_DEPTH: Final = 128
"""Tool arguments that are nested deeper count as broken: servers differ in what they parse."""


_OBJECT: Final = msgspec.json.Decoder(dict[str, object])


class SourceError(ValueError):
    """The text is not JSON that can be sent on."""


def read(source: str) -> object:
    """The value of JSON text; lone surrogates are allowed, what JSON has no number for is not.

    Raises: SourceError.
    """
    value = loads(source)
    if source.count("[") + source.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise SourceError(f"nested deeper than {MAX_DEPTH}")
    return value


def loads(source: str) -> object:
    """The value of JSON text of any depth that can be read.

    Raises: SourceError.
    """
    try:
        value: object = _ANYTHING.decode(source)
    except (ValueError, RecursionError) as error:
        raise SourceError(str(error)) from None
    return value


def read_object(source: str) -> dict[str, object] | None:
    """The object that JSON text holds, or None when it holds none."""
    plain = plain_object(source)
    if plain is not None:
        return plain
    try:
        return msgspec.convert(read(source), dict[str, object])
    except (SourceError, msgspec.ValidationError):
        return None


def plain_object(source: str) -> dict[str, object] | None:
    """The same for text without any surrogate and of little depth, much faster; else None."""
    if source.count("[") + source.count("{") > MAX_DEPTH:
        return None
    try:
        return _OBJECT.decode(source)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def write(value: object) -> str:
    """Compact JSON text in ASCII, keys as they stand: what `read` reads back unchanged."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def is_whole(text: str) -> bool:
    """Whether the text holds no surrogate, so that it is UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def mend(text: str) -> str:
    """Two halves of a character become that character, and a lone one U+FFFD."""
    if text.isascii() or is_whole(text):
        return text  # the same object, which is how callers see that nothing changed
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend_value(value: object) -> object:
    """A JSON value with every string and key mended."""
    if isinstance(value, str):
        return mend(value)
    if isinstance(value, dict):
        found = msgspec.convert(value, dict[str, object])
        return {mend(key): mend_value(one) for key, one in found.items()}
    if isinstance(value, list):
        return [mend_value(one) for one in msgspec.convert(value, list[object])]
    return value


def whole_value(value: object) -> bool:
    """Whether no string of a JSON value holds a surrogate."""
    if isinstance(value, str):
        return is_whole(value)
    if isinstance(value, dict):
        found = msgspec.convert(value, dict[str, object])
        return all(is_whole(key) and whole_value(one) for key, one in found.items())
    if isinstance(value, list):
        return all(whole_value(one) for one in msgspec.convert(value, list[object]))
    return True


def _refuse(name: str) -> object:
    raise SourceError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise SourceError(f"{digits[:20]} is out of range")
    return number


_ANYTHING: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _depth(value: object) -> int:
    deepest = 0
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(child, depth + 1) for child in _children(one)]
    return deepest


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(msgspec.convert(value, dict[str, object]).values())
    return msgspec.convert(value, list[object]) if isinstance(value, list) else []
