"""One line of the log: is it read, and is its body the one that was written?

Knows nothing of chains. docs/format.md#events and #damage are the specification. The quick way
decodes body and header into their types and encodes them again: equal bytes are strict bytes. When
they differ the slow way decides.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol, TypeAlias, cast

import msgspec

from sojourn.errors import FormatError
from sojourn.format import canon, layout
from sojourn.format.body import Head
from sojourn.format.event import KINDS, AnyBody, Event, Header, Unknown
from sojourn.format.failures import Code
from sojourn.format.parts import BlobRef
from sojourn.ids import EventId

ReadBlob: TypeAlias = Callable[[BlobRef], bytes | None]
"""Gives the bytes of a blob, unchecked, or None when it is not there."""

BODY: Final = b'{"body":'
HEADER: Final = b',"header":'
SALT: Final = 22

_START = len(BODY)
_MIDDLE = len(HEADER)
_END = ord("}")
_ONE_VALUE = json.JSONDecoder()

KIND: Final = re.compile(r"[a-z][a-z0-9_.]{0,63}")
MACHINE: Final = re.compile(r"[0-9a-f]{64}")
INCARNATION: Final = re.compile(r"[0-9a-f]{32}")


class _Digest(Protocol):
    def hexdigest(self) -> EventId: ...


_sha256 = cast(Callable[[bytes], _Digest], sha256)
"""So typed that no call is needed to make an id of its digest."""

_header = msgspec.json.Decoder(Header).decode
_bodies = {kind: msgspec.json.Decoder(body).decode for kind, body in KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A line with a failure of its own; `event` is there when its header could be read."""

    code: Code
    detail: str = ""
    event: Event | None = None


def split(data: bytes) -> list[bytes]:
    """Whole lines without their 0x0A; for lines of some length quicker than bytes.split."""
    lines: list[bytes] = []
    at = 0
    while (end := data.find(b"\n", at)) >= 0:
        lines.append(data[at:end])
        at = end + 1
    return lines


class LineReader:
    """Reads lines one after the other; remembers only whose line was read last."""

    def __init__(self, read_blob: ReadBlob) -> None:
        self._read_blob = read_blob
        self._machine = ""
        self._incarnation = ""

    def read(self, line: bytes) -> Event | Bad:
        """The event of a line, given without its 0x0A, or what is wrong with it."""
        return self.read_all((line,))[0]

    def read_all(self, lines: Iterable[bytes]) -> list[Event | Bad]:
        """As `read`, for each line."""
        results: list[Event | Bad] = []
        decode, encode, digest = _header, canon.quick, _sha256
        for line in lines:
            at = line.rfind(HEADER)
            raw, packed = line[_START:at], line[at + _MIDDLE : -1]
            try:
                header = decode(packed)
                body = _bodies[header.kind](raw)
            except (msgspec.MsgspecError, KeyError, RecursionError):
                results.append(self._read_slowly(line))
                continue
            if (
                encode(header) != packed
                or encode(body) != raw
                or len(body.salt) != SALT
                # The pieces are sound: what is left of the line is the frame around them.
                or line[:_START] != BODY
                or line[-1] != _END
                or len(line) >= layout.MAX_LINE
                or not (
                    (header.machine == self._machine and header.incarnation == self._incarnation)
                    or self._named_well(header)
                )
                or digest(raw).hexdigest() != header.body
            ):
                results.append(self._read_slowly(line))
                continue
            identity = digest(packed).hexdigest()
            results.append(Event(id=identity, header=header, body=body))
        return results

    def _named_well(self, header: Header) -> bool:
        if not MACHINE.fullmatch(header.machine):
            return False
        if not INCARNATION.fullmatch(header.incarnation):
            return False
        self._machine, self._incarnation = header.machine, header.incarnation
        return True

    def _read_slowly(self, line: bytes) -> Event | Bad:
        if len(line) >= layout.MAX_LINE:
            return Bad(code="line_too_long", detail=f"{len(line) + 1} bytes")
        if b"\0" in line:
            return Bad(code="nul_bytes", detail=f"{line.count(0)} of {len(line)} bytes")
        try:
            canon.load(line, what=layout.TIMELINE)
        except FormatError as error:
            glued = error.code == "not_json" and line.find(BODY, 1) > 0
            return Bad(code="glued_lines" if glued else cast(Code, error.code))
        pieces = _pieces(line.decode())
        if pieces is None:
            return Bad(code="line_malformed")
        raw, value, header_bytes, header_value = pieces
        try:
            header = msgspec.convert(header_value, Header)
        except msgspec.ValidationError as error:
            return Bad(code="header_malformed", detail=str(error))
        if not self._named_well(header) or not KIND.fullmatch(header.kind):
            return Bad(code="header_malformed", detail="kind, machine or incarnation")
        event = Event(id=EventId(sha256(header_bytes).hexdigest()), header=header, body=None)
        if value is None:
            return Bad(code="body_null", event=event)
        if sha256(raw).hexdigest() != header.body:
            return Bad(code="body_altered", event=event)
        return self._with_body(event, raw, value)

    def _with_body(self, event: Event, raw: bytes, value: canon.JSON) -> Event | Bad:
        if isinstance(value, dict) and "large" in value:
            fetched = self._fetch(value)
            if isinstance(fetched, Bad):
                return Bad(code=fetched.code, detail=fetched.detail, event=event)
            raw, value = fetched
        body = body_of(event.header.kind, raw, value)
        if isinstance(body, str):
            return Bad(code="body_malformed", detail=body, event=event)
        return msgspec.structs.replace(event, body=body)

    def _fetch(self, value: dict[str, canon.JSON]) -> tuple[bytes, canon.JSON] | Bad:
        """The body that lies in a blob (docs/format.md#events)."""
        try:
            ref = msgspec.convert(value["large"], BlobRef)
        except msgspec.ValidationError as error:
            return Bad(code="body_malformed", detail=str(error))
        if not _has_salt(value) or ref.size > layout.MAX_LARGE:
            return Bad(code="body_malformed", detail="it has no salt, or its blob is too large")
        raw = self._read_blob(ref)
        if raw is None:
            return Bad(code="blob_missing", detail=ref.sha256)
        if len(raw) != ref.size:
            return Bad(code="blob_size", detail=ref.sha256)
        if sha256(raw).hexdigest() != ref.sha256:
            return Bad(code="blob_altered", detail=ref.sha256)
        try:
            return raw, canon.load(raw, what=layout.blob_path(ref.sha256))
        except FormatError as error:
            return Bad(code=cast(Code, error.code), detail="in the blob of the body")


def body_of(kind: str, raw: bytes, value: canon.JSON) -> AnyBody | Unknown | str:
    """The typed body of a strict value, or why it is not of its kind's shape."""
    if not isinstance(value, dict):
        return "it is not an object"
    if not _has_salt(value):
        return "it has no salt of 22 characters"
    try:
        known = KINDS.get(kind)
        if known is not None:
            return msgspec.convert(value, known)
        heads = msgspec.convert(value.get("heads", []), tuple[Head, ...])
    except msgspec.ValidationError as error:
        return str(error)
    return Unknown(kind=kind, raw=raw, heads=heads)


def _has_salt(value: dict[str, canon.JSON]) -> bool:
    salt = value.get("salt")
    return isinstance(salt, str) and len(salt) == SALT


def _pieces(text: str) -> tuple[bytes, canon.JSON, bytes, canon.JSON] | None:
    """Bytes and value of body and header, if the strict line has the exact frame of an event."""
    if not text.startswith(BODY.decode()):
        return None
    try:
        body, end = _ONE_VALUE.raw_decode(text, _START)
        middle = end + _MIDDLE
        if text[end:middle] != HEADER.decode():
            return None
        header, last = _ONE_VALUE.raw_decode(text, middle)
    except json.JSONDecodeError:
        return None
    if text[last:] != "}":
        return None
    return (
        text[_START:end].encode(),
        cast(canon.JSON, body),
        text[middle:last].encode(),
        cast(canon.JSON, header),
    )
