"""Shapes of JSON values: what a body may hold at all, and which keys an object has."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeGuard

from sojourn.testing.strict.refusal import Path, Refused, Rule

JsonObject: TypeAlias = Mapping[str, object]

MAX_DEPTH: Final = 512
"""Deeper bodies are refused as no JSON; also what ends the walk over a Python cycle."""


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """A JSON object, keys already known to be strings."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[object]]:
    """A JSON array."""
    return isinstance(value, list)


def is_integer(value: object) -> TypeGuard[int]:
    """A JSON number without a fraction; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Any JSON number."""
    return is_integer(value) or isinstance(value, float)


@dataclass(frozen=True, slots=True)
class Kind:
    """One JSON type, with the words for it in an error."""

    words: str
    accepts: Callable[[object], bool]


STRING: Final = Kind("a string", lambda value: isinstance(value, str))
INTEGER: Final = Kind("an integer", is_integer)
NUMBER: Final = Kind("a number", is_number)
BOOLEAN: Final = Kind("a boolean", lambda value: isinstance(value, bool))
OBJECT: Final = Kind("an object", is_object)
ARRAY: Final = Kind("an array", is_array)
STRINGS: Final = Kind(
    "an array of strings",
    lambda value: is_array(value) and all(isinstance(one, str) for one in value),
)
STRING_OR_ARRAY: Final = Kind(
    "a string or an array", lambda value: isinstance(value, str) or is_array(value)
)
STRING_OR_OBJECT: Final = Kind(
    "a string or an object", lambda value: isinstance(value, str) or is_object(value)
)
ANYTHING: Final = Kind("anything", lambda _value: True)


def or_null(kind: Kind) -> Kind:
    """The same type, or null."""
    return Kind(f"{kind.words} or null", lambda value: value is None or kind.accepts(value))


def one_of(*words: str) -> Kind:
    """One of these strings."""
    return Kind("one of " + ", ".join(words), lambda value: value in words)


@dataclass(frozen=True, slots=True)
class Shape:
    """The keys an object must and may have, and the type of each."""

    required: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    optional: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    closed: bool = True


def as_object(value: object, path: Path) -> dict[str, object]:
    """The value as an object.

    Raises: Refused when it is something else.
    """
    if not is_object(value):
        raise Refused(Rule.WRONG_TYPE, "an object", path=path)
    return value


def as_array(value: object, path: Path) -> list[object]:
    """The value as an array.

    Raises: Refused when it is something else.
    """
    if not is_array(value):
        raise Refused(Rule.WRONG_TYPE, "an array", path=path)
    return value


def as_string(value: object, path: Path) -> str:
    """The value as a string.

    Raises: Refused when it is something else.
    """
    if not isinstance(value, str):
        raise Refused(Rule.WRONG_TYPE, "a string", path=path)
    return value


def check_shape(value: object, path: Path, shape: Shape) -> dict[str, object]:
    """The value as an object that has every required key, no unknown one, and the right types.

    Raises: Refused; its message is the type's words, or empty for a missing or an unknown key.
    """
    found = as_object(value, path)
    for key, kind in shape.required.items():
        if key not in found:
            raise Refused(Rule.MISSING_KEY, "", path=(*path, key))
        _check_kind(found[key], (*path, key), kind)
    for key, content in found.items():
        if key in shape.required:
            continue
        if key in shape.optional:
            _check_kind(content, (*path, key), shape.optional[key])
        elif shape.closed:
            raise Refused(Rule.UNKNOWN_KEY, "", path=(*path, key))
    return found


def _check_kind(value: object, path: Path, kind: Kind) -> None:
    if not kind.accepts(value):
        if kind.words.startswith("one of "):
            raise Refused(Rule.BAD_VALUE, f"Input should be {kind.words}", path=path)
        raise Refused(Rule.WRONG_TYPE, kind.words, path=path)


def check_json(value: object, *, max_bytes: int) -> None:
    """Pass only what JSON can carry: no other types, no lone surrogate, no NaN, bounded depth.

    `max_bytes` bounds the UTF-8 bytes of all strings and keys together: a body is never smaller.

    Raises: Refused with `not_json`, `surrogate` or `body_too_large`.
    """
    total = 0
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        current, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Refused(Rule.NOT_JSON, "The request body is nested too deep.")
        if isinstance(current, str):
            total += _size(current)
        elif is_object(current):
            waiting.extend((one, depth + 1) for one in current.values())
            total += sum(_key_size(key) for key in current)
        elif is_array(current):
            waiting.extend((one, depth + 1) for one in current)
        elif isinstance(current, float) and not math.isfinite(current):
            raise Refused(Rule.NOT_JSON, "The request body is not valid JSON: no such number.")
        elif not (current is None or isinstance(current, int | float)):
            name = type(current).__name__
            raise Refused(Rule.NOT_JSON, f"The request body is not valid JSON: a {name}.")
        if total > max_bytes:
            raise Refused(Rule.BODY_TOO_LARGE, "", status=413)


def _key_size(key: object) -> int:
    if not isinstance(key, str):
        raise Refused(Rule.NOT_JSON, "The request body is not valid JSON: a key is no string.")
    return _size(key)


def _size(text: str) -> int:
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise Refused(
            Rule.SURROGATE,
            f"The request body is not valid JSON: no low surrogate in string: (char {error.start})",
        ) from None
