"""A sealed capsule as one file: a tar of one exact form (docs/format.md#archive).

Bytes in, members out, and back; nothing here decides where they go.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, TypeAlias, cast, get_args

from sojourn.errors import FormatError
from sojourn.format import layout, paths

ArchiveCode: TypeAlias = Literal[
    "archive_empty",
    "archive_cut",
    "archive_header",
    "archive_type",
    "archive_pax",
    "archive_path",
    "archive_order",
    "archive_too_large",
    "archive_too_many",
    "archive_padding",
    "archive_trailing",
    "archive_live",
]

CODES: Final = cast(tuple[ArchiveCode, ...], get_args(ArchiveCode))

MEANINGS: Final[dict[ArchiveCode, str]] = {
    "archive_empty": "the file does not begin like an archive",
    "archive_cut": "the archive ends before its end",
    "archive_header": "a header is not in the form that archives have",
    "archive_type": "a member is no regular file",
    "archive_pax": "an extended header is not needed, or not in its form",
    "archive_path": "a member's path is not that of a file of a capsule",
    "archive_order": "members are not sorted, or one stands there twice",
    "archive_too_large": "a member is larger than its kind may be",
    "archive_too_many": "the archive has more members than it may have",
    "archive_padding": "the bytes that fill up a block are not zero",
    "archive_trailing": "something follows the archive's end",
    "archive_live": "the archive does not hold a sealed capsule",
}

BLOCK: Final = 512
MAX_MEMBERS: Final = 1_000_000
MAX_SIZE: Final = 2**53 - 1
MAX_NAME: Final = 100
"""Bytes of a path in a header; a longer one stands in an extended header."""

MAX_OCTAL: Final = 8**11 - 1
"""The largest size in a header; a larger one stands in an extended header."""

PAX_NAME: Final = "././@PaxHeader"
MAX_PAX: Final = 2048
"""Bytes of an extended header: a path and a size."""

_END: Final = bytes(2 * BLOCK)
_PAX: Final = re.compile(
    rb"(?:(?P<path_length>[1-9][0-9]{1,3}) path=(?P<path>[^\n]{101,1024})\n)?"
    rb"(?:(?P<size_length>[1-9][0-9]) size=(?P<size>[1-9][0-9]{9,15})\n)?"
)
_LIMITS: Final = {
    layout.MANIFEST: layout.MAX_MANIFEST,
    layout.SNAPSHOT: layout.MAX_SNAPSHOT,
    layout.INDEX: layout.MAX_INDEX,
    layout.SPEC: layout.MAX_SPEC,
    layout.WORKING_MEMORY: layout.MAX_MEMORY,
    layout.SUMS: layout.MAX_SUMS,
    layout.VERIFY: layout.MAX_VERIFY,
    layout.SIGNATURE: layout.MAX_SIGNATURE,
}
MAX_OTHER: Final = 64 * layout.MIB
"""Bytes of a file of the environment and any other that is not named above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file: its path in the capsule and its size; `offset` of its bytes in the archive."""

    path: str
    size: int
    offset: int = 0


def length(members: Iterable[tuple[str, int]]) -> int:
    """The bytes of an archive with these paths and sizes."""
    return len(_END) + sum(len(head(path, size)) + _whole(size) for path, size in members)


def head(path: str, size: int) -> bytes:
    """The blocks before a member's bytes.

    Raises: FormatError `archive_path` or `archive_too_large` for what no archive may hold.
    """
    name = path.encode()
    _check(path, size, offset=0)
    records = b""
    if len(name) > MAX_NAME:
        records += _record(b"path", name)
    if size > MAX_OCTAL:
        records += _record(b"size", str(size).encode())
    shown = _header(name[:MAX_NAME], 0 if size > MAX_OCTAL else size, b"0")
    if not records:
        return shown
    return _header(PAX_NAME.encode(), len(records), b"x") + _filled(records) + shown


def write(members: Iterable[tuple[str, int, Iterable[bytes]]]) -> Iterator[bytes]:
    """The archive's bytes: path, size and content of each member, sorted by path.

    Raises: FormatError `archive_order`; `archive_cut` when a content has another size.
    """
    before = ""
    for path, size, content in members:
        if path <= before:
            _refuse("archive_order", 0, path)
        before = path
        yield head(path, size)
        done = 0
        for piece in content:
            done += len(piece)
            yield piece
        if done != size:
            _refuse("archive_cut", 0, f"{path} has {done} bytes and not {size}")
        yield bytes(-size % BLOCK)
    yield _END


def read(pieces: Iterable[bytes], *, limit: int = MAX_MEMBERS) -> Iterator[Member | bytes]:
    """Each member and after it its content, in pieces; nothing is given that is not in its form.

    A member's last piece may come before it is known whether what follows is sound: whoever keeps
    anything keeps it only once this ends. Raises: FormatError with a code of `CODES`.
    """
    source = _Source(pieces)
    before, count = "", 0
    files: set[str] = set()
    while (found := _next(source, first=not count)) is not None:
        if found.path <= before:
            _refuse("archive_order", source.at, found.path)
        before, count = found.path, count + 1
        if count > limit:
            _refuse("archive_too_many", source.at, f"{limit:,}")
        if not found.path.startswith(f"{layout.BLOBS}/"):
            above = found.path.split("/")[:-1]
            if any("/".join(above[:depth]) in files for depth in range(1, len(above) + 1)):
                _refuse("archive_path", source.at, f"{found.path} lies in a file")
            files.add(found.path)
        yield found
        yield from source.pass_on(found.size)
        if source.take(-found.size % BLOCK).strip(b"\0"):
            _refuse("archive_padding", source.at, found.path)
    if source.rest():
        _refuse("archive_trailing", source.at)


class _Source:
    """Bytes as they come, taken in the sizes that are wanted; `at` counts those taken."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""
        self._place = 0
        self.at: int = 0

    def take(self, size: int) -> bytes:
        """Exactly so many bytes; few, for they are held at once."""
        return b"".join(self.pass_on(size))

    def pass_on(self, size: int) -> Iterator[bytes]:
        """Exactly so many bytes, in the pieces in which they come."""
        left = size
        while left:
            if self._place == len(self._held):
                self._fill()
            piece = self._held[self._place : self._place + left]
            self._place += len(piece)
            self.at += len(piece)
            left -= len(piece)
            yield piece

    def rest(self) -> bool:
        """Whether anything is left."""
        return self._place < len(self._held) or any(self._pieces)

    def _fill(self) -> None:
        for piece in self._pieces:
            if piece:
                self._held, self._place = piece, 0
                return
        _refuse("archive_cut", self.at)


def _next(source: _Source, *, first: bool) -> Member | None:
    """The next member, None at the archive's end."""
    block = source.take(BLOCK)
    if first and block[257:263] != b"ustar\0":
        _refuse("archive_empty", 0)
    if not block.strip(b"\0"):
        if source.take(BLOCK).strip(b"\0"):
            _refuse("archive_header", source.at)
        return None
    name, size, kind = _parse(block, source.at)
    if kind == b"0":
        path = _decoded(name, source.at)
        _check(path, size, offset=source.at)
        return Member(path=path, size=size, offset=source.at)
    if kind != b"x":
        _refuse("archive_type", source.at, repr(kind.decode("latin-1")))
    return _extended(source, name, size)


def _extended(source: _Source, name: bytes, size: int) -> Member:
    if name != PAX_NAME.encode() or not 0 < size <= MAX_PAX:
        _refuse("archive_pax", source.at)
    records = source.take(size)
    padding = source.take(-size % BLOCK)
    block = source.take(BLOCK)
    found = _PAX.fullmatch(records)
    if found is None or padding.strip(b"\0"):
        _refuse("archive_pax", source.at)
    name, given, kind = _parse(block, source.at)
    if kind != b"0":
        _refuse("archive_type", source.at)
    path = _decoded(found["path"] or name, source.at)
    size = given if found["size"] is None else int(found["size"])
    _check(path, size, offset=source.at)
    # What was read must be what a writer makes of it: one form for each member.
    made = head(path, size)
    if made != _header(PAX_NAME.encode(), len(records), b"x") + records + padding + block:
        _refuse("archive_pax", source.at)
    return Member(path=path, size=size, offset=source.at)


def _parse(block: bytes, at: int) -> tuple[bytes, int, bytes]:
    """Name, size and type of a header in the one form that there is."""
    name = block[:MAX_NAME].rstrip(b"\0")
    digits, kind = block[124:135], block[156:157]
    if not re.fullmatch(rb"[0-7]{11}", digits):
        _refuse("archive_header", at)
    size = int(digits, 8)
    if block != _header(name, size, kind):
        # A link, folder or device is named as such, although its header is another one too.
        if block[257:263] == b"ustar\0" and kind not in (b"0", b"x"):
            _refuse("archive_type", at, repr(kind.decode("latin-1")))
        _refuse("archive_header", at)
    return name, size, kind


def _decoded(name: bytes, at: int) -> str:
    try:
        return name.decode("ascii")
    except UnicodeDecodeError:
        _refuse("archive_path", at, repr(name))


def _check(path: str, size: int, *, offset: int) -> None:
    if not _may_hold(path):
        _refuse("archive_path", offset, repr(path))
    if size > _limit(path):
        _refuse("archive_too_large", offset, f"{path}: {size:,} bytes")


def _may_hold(path: str) -> bool:
    if path in (layout.MANIFEST, layout.TIMELINE):
        return True
    if path.startswith(f"{layout.BLOBS}/"):
        return layout.is_blob_name(path.removeprefix(f"{layout.BLOBS}/"))
    return paths.may_be_listed(path)


def _limit(path: str) -> int:
    if path == layout.TIMELINE or path.startswith(f"{layout.BLOBS}/"):
        return MAX_SIZE
    return _LIMITS.get(path, MAX_OTHER)


def _record(key: bytes, value: bytes) -> bytes:
    """A record of an extended header: its own length in decimal, a space, key=value, 0x0A."""
    size = len(key) + len(value) + 3
    digits = len(str(size + len(str(size))))
    return b"%d %s=%s\n" % (size + digits, key, value)


def _header(name: bytes, size: int, kind: bytes) -> bytes:
    """A ustar header: mode 0644, no times and no people; of an extended header all of it is 0."""
    mode = b"0000644\0" if kind == b"0" else b"0000000\0"
    fields = name.ljust(MAX_NAME, b"\0") + mode + 2 * b"0000000\0" + b"%011o\0" % size
    fields += b"%011o\0" % 0 + b" " * 8 + kind + bytes(100) + b"ustar\x0000" + bytes(247)
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def _whole(size: int) -> int:
    return size + -size % BLOCK


def _refuse(code: ArchiveCode, at: int, detail: str = "") -> NoReturn:
    where = f"byte {at:,}" if at else ""
    words = ": ".join(filter(None, (MEANINGS[code], detail, where)))
    raise FormatError(words, code=code, hint="Get the archive again from where it came from.")
