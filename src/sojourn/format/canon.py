"""JSON in and out: one canonical encoder, one strict loader (docs/format.md#json)."""

import json
import re
from contextlib import suppress
from typing import Final, NoReturn, TypeAlias, cast

import msgspec
import rfc8785

from sojourn.errors import FormatError
from sojourn.format import failures, layout

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

quick: Final = msgspec.json.Encoder(order="sorted").encode
"""RFC 8785 for values without floats, numbers out of range and keys outside the BMP."""

_plain = msgspec.json.Decoder().decode
_as_it_stands = msgspec.json.Encoder().encode
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def encode(value: object) -> bytes:
    """The canonical bytes of a JSON value, a Struct or a mixture of them.

    Raises: FormatError `number_out_of_range`, `lone_surrogate`, or `not_json` for what has no JSON.
    """
    plain = cast(object, msgspec.to_builtins(value, builtin_types=(bytes, bytearray, memoryview)))
    return quick(plain) if _same_everywhere(plain) else rfc8785.dumps(cast(JSON, plain))


def _same_everywhere(value: object) -> bool:
    """Whether msgspec's sorted output is that of RFC 8785; refuses what may not be written."""
    match value:
        case None | bool():
            return True
        case str():
            if _SURROGATE.search(value):
                raise FormatError(failures.say("lone_surrogate"), code="lone_surrogate")
            return True
        case int() | float():
            if not abs(value) <= layout.MAX_INT:
                raise FormatError(failures.say("number_out_of_range"), code="number_out_of_range")
            return isinstance(value, int)
        case list() | tuple():
            # Every item must be looked at, whatever the first ones are: no all() that stops early.
            return min(map(_same_everywhere, cast(list[object], value)), default=True)
        case dict():
            pairs = cast(dict[object, object], value)
            keys = min(map(_same_key, pairs), default=True)
            return min(map(_same_everywhere, pairs.values()), default=True) and keys
        case _:
            raise FormatError(f"{type(value).__name__} has no JSON", code="not_json")


def _same_key(key: object) -> bool:
    if not isinstance(key, str):
        raise FormatError(f"{type(key).__name__} is no key", code="not_json")
    return _same_everywhere(key) and key.isascii()


def clean_text(text: str) -> tuple[str, bool]:
    """The text with U+FFFD for each lone surrogate, and whether there was one.

    Halves that meet, as when a stream was cut inside a character, become that character.
    """
    cleaned, lone = mend_text(text)
    return cleaned, lone > 0


def mend_text(text: str) -> tuple[str, int]:
    """As `clean_text`, with the number of lone surrogates."""
    if text.isascii() or not _SURROGATE.search(text):
        return text, 0
    joined = _PAIR.sub(_join, text)
    return _SURROGATE.subn("\ufffd", joined)


def _join(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


def load(data: bytes, *, what: str, line: int | None = None, limit: int | None = None) -> JSON:
    """The value of a strict JSON text; `what` is the file that it is from.

    `line` is the line of the log that the text is; without it the error names the line where
    reading stopped. Raises: FormatError with the first failure that docs/format.md#json lists.
    """
    if limit is not None and len(data) > limit:
        _refuse("too_long", what, line or 1)
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The quick way: what is encoded to the same bytes again breaks none of the other rules.
        plain = cast(JSON, _plain(data))
        if _as_it_stands(plain) == data and not _too_deep(data) and _in_range(plain):
            return plain
    try:
        text = data.decode()
    except UnicodeDecodeError:
        _refuse("not_utf8", what, line or 1)
    if text.startswith("\ufeff"):
        _refuse("bom", what, line or 1)
    if _too_deep(data):
        _refuse("too_deep", what, line or 1)
    faults = _Faults()
    try:
        value = cast(JSON, faults.decoder.decode(text))
    except json.JSONDecodeError as error:
        _refuse("not_json", what, line or error.lineno)
    except RecursionError:
        _refuse("too_deep", what, line or 1)
    if faults.not_json:
        _refuse("not_json", what, line or 1)
    if faults.out_of_range:
        _refuse("number_out_of_range", what, line or 1)
    if _SURROGATE_ESCAPE.search(data) and _holds_surrogate(value):
        _refuse("lone_surrogate", what, line or 1)
    if faults.duplicate:
        _refuse("duplicate_key", what, line or 1)
    return value


class _Faults:
    """What json.loads lets through, noted while one text is read."""

    def __init__(self) -> None:
        self.not_json = False
        self.out_of_range = False
        self.duplicate = False
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._constant,
        )

    def _object(self, pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self.duplicate = True
        return value

    def _int(self, digits: str) -> int:
        # Longer ones are not even converted: Python refuses above 4,300 digits.
        value = int(digits) if len(digits) < 18 else layout.MAX_INT + 1
        if abs(value) > layout.MAX_INT:
            self.out_of_range = True
        return value

    def _float(self, digits: str) -> float:
        value = float(digits)
        if abs(value) > layout.MAX_INT:
            self.out_of_range = True
        return value

    def _constant(self, name: str) -> None:
        del name
        self.not_json = True


def _in_range(value: JSON) -> bool:
    match value:
        case dict():
            return all(map(_in_range, value.values()))
        case list():
            return all(map(_in_range, value))
        case int() | float():
            return abs(value) <= layout.MAX_INT
        case _:
            return True


def _too_deep(data: bytes) -> bool:
    if data.count(b"{") + data.count(b"[") <= layout.MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub(b"", data)):
        depth += 1 if bracket in b"{[" else -1
        if depth > layout.MAX_DEPTH:
            return True
    return False


def _holds_surrogate(value: JSON) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse(code: failures.Code, what: str, line: int) -> NoReturn:
    raise FormatError(failures.say(code), code=code, file=what, line=line) from None
