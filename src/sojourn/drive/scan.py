"""Looks through a whole capsule for likely secrets, before it leaves (docs/format.md#scan)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Literal, Protocol, TypeAlias

import msgspec

from sojourn.core.opaque import START, Opaque, opaque
from sojourn.core.scan import LONGEST, find_secrets, may_hold_secret
from sojourn.errors import FormatError, StorageError
from sojourn.format import layout, snapshot
from sojourn.format.canon import JSON
from sojourn.format.event import Header
from sojourn.format.line import HEADER
from sojourn.ids import EventId

ID_DIGITS: Final = 12

TOGETHER: Final = 1 << 18
"""Bytes of lines that are looked at in one go, since most hold nothing."""


class ScannedFiles(Protocol):
    """A capsule's bytes; paths are relative to its folder."""

    def paths(self) -> Iterable[str]:
        """Every file but the blobs. Raises: StorageError when a folder cannot be read."""
        ...

    def blobs(self) -> Iterable[str]:
        """The names in the folder of blobs. Raises: StorageError."""
        ...

    def chunks(self, path: str) -> Iterator[bytes]:
        """A file's bytes in pieces of bounded size. Raises: StorageError when it has none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """What is likely a secret: its kind and place, never its value.

    `line` counts from 1 in `file`; `event` is the id of the event in that line, and `number` the
    event's in the log, None where there is none. `within` says where in the line: the field of an
    event, or the path in the workspace that a blob is the content of. `id` names this finding and
    stays the same as long as the bytes there do.
    """

    rule: str
    file: str
    line: int
    within: str
    id: str
    event: EventId | None = None
    number: int | None = None


Why: TypeAlias = Opaque | Literal["unreadable", "misnamed"]
"""Why nobody looked: its text cannot be seen in its bytes, the bytes cannot be read, or it lies
among the blobs under a name that no blob has, and leaves with no archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A file in which a secret would not have been found; `within` as for a suspect.

    `message` is the failure's, empty unless it is unreadable.
    """

    file: str
    within: str
    why: Why
    message: str = ""


Found: TypeAlias = Suspect | Unseen


def scan(files: ScannedFiles) -> Iterator[Found]:
    """Every likely secret, and every file that was not looked into.

    File by file in the order of their paths, the blobs last.
    """
    try:
        paths = sorted(files.paths())
    except StorageError as failure:
        paths = []
        yield _unreadable(failure)
    for path in paths:
        if path == layout.TIMELINE:
            yield from _readable(path, "", _scan_log(files.chunks(path)))
        else:
            yield from _scan_file(files, path, path)
    yield from _scan_blobs(files)


def _scan_blobs(files: ScannedFiles) -> Iterator[Found]:
    try:
        names = sorted(files.blobs())
    except StorageError as failure:
        yield _unreadable(failure)
        return
    where = _workspace_paths(files)
    for name in names:
        path = f"{layout.BLOBS}/{name}"
        if layout.is_blob_name(name):
            yield from _scan_file(files, path, name, within=where.get(name, ""))
        elif not layout.is_temporary(name):
            yield Unseen(file=path, within="", why="misnamed")


def _unreadable(failure: StorageError) -> Unseen:
    """That a folder, which the failure names, could not be listed."""
    return Unseen(file=failure.file or "", within="", why="unreadable", message=failure.message)


def _readable(path: str, within: str, found: Iterator[Found]) -> Iterator[Found]:
    """What was found until the file could no longer be read, and that it could not."""
    try:
        yield from found
    except StorageError as failure:
        yield Unseen(file=path, within=within, why="unreadable", message=failure.message)


def _scan_file(
    files: ScannedFiles, path: str, identity: str, *, within: str = ""
) -> Iterator[Found]:
    found = _scan_text(path, identity, files.chunks(path), within=within)
    return _readable(path, within, found)


def _scan_log(chunks: Iterable[bytes]) -> Iterator[Suspect]:
    waiting: list[tuple[int, bytes]] = []
    texts: list[str] = []
    size = 0
    for number, line in _lines(chunks):
        waiting.append((number, line))
        _gather(_value_of(line), texts)
        size += len(line)
        if size >= TOGETHER:
            yield from _scan_lines(waiting, texts)
            waiting, texts, size = [], [], 0
    yield from _scan_lines(waiting, texts)


def _lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line without its 0x0A; one that is too long comes in pieces.

    What follows the last 0x0A comes last, if anything does.
    """
    number, rest = 1, b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield number, line
            number += 1
        if len(rest) > layout.MAX_LINE:
            yield number, rest
            rest = rest[-LONGEST:]
    if rest:
        yield number, rest


def _value_of(line: bytes) -> JSON:
    """The line as JSON; one that cannot be read is a string."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return line.decode("utf-8", "replace")


def _gather(value: JSON, texts: list[str]) -> None:
    """Add every string of it to `texts`, in any order; most lines need no more."""
    match value:
        case str():
            texts.append(value)
        case dict():
            for item in value.values():
                _gather(item, texts)
        case list():
            for item in value:
                _gather(item, texts)
        case _:
            return


def _strings_of(line: bytes) -> Iterator[tuple[str, str]]:
    """Place and text of the strings of an event's body, and of whatever is beside it."""
    value = _value_of(line)
    if not isinstance(value, dict):
        yield from _strings(value, "")
        return
    yield from _strings(value.get("body"), "")
    yield from _strings({key: item for key, item in value.items() if key != "body"}, "")


def _scan_lines(lines: Iterable[tuple[int, bytes]], texts: Iterable[str]) -> Iterator[Suspect]:
    """The secrets in lines that have these texts."""
    if not may_hold_secret("\n".join(texts)):
        return
    for number, line in lines:
        for field, text in _strings_of(line):
            for hit in find_secrets(text):
                yield _suspect_in(line, number, field, hit.rule, hit.start)


def _suspect_in(line: bytes, number: int, field: str, rule: str, at: int) -> Suspect:
    event = _named(line)
    place_in_line = f"{sha256(line).hexdigest()} {at}"
    found = _suspect(rule, layout.TIMELINE, number, field, place_in_line)
    return replace(found, event=event, number=None if event is None else number)


def _named(line: bytes) -> EventId | None:
    """The id of the event in a line, where it can be read."""
    packed = line[line.rfind(HEADER) + len(HEADER) : -1]
    try:
        msgspec.json.decode(packed, type=Header)
    except msgspec.MsgspecError:
        return None
    return EventId(sha256(packed).hexdigest())


def _strings(value: JSON, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield path, value
        case list():
            for index, item in enumerate(value):
                yield from _strings(item, f"{path}[{index}]")
        case dict():
            for key, item in value.items():
                yield from _strings(item, f"{path}.{key}" if path else key)
        case _:
            return


def _scan_text(
    path: str, identity: str, chunks: Iterable[bytes], *, within: str = ""
) -> Iterator[Found]:
    """A file's bytes, in pieces that overlap so that no secret is cut in two."""
    kept, start, line = b"", 0, 1
    last: dict[int, str] = {}
    for chunk in chunks:
        data = kept + chunk
        hidden = opaque(data[:START]) if start == 0 and not kept else None
        if hidden is not None:
            yield Unseen(file=path, within=within, why=hidden)
        # One character a byte, so that places in the text are places in the bytes.
        text = data.decode("latin-1")
        for hit in find_secrets(text):
            at = start + hit.start
            if last.get(at) == hit.rule:
                continue
            last[at] = hit.rule
            found = line + data.count(b"\n", 0, hit.start)
            yield _suspect(hit.rule, path, found, within, f"{identity} {at}")
        keep = min(len(data), LONGEST)
        line += data.count(b"\n", 0, len(data) - keep)
        start += len(data) - keep
        kept = data[len(data) - keep :]
        last = {at: rule for at, rule in last.items() if at >= start}


def _suspect(rule: str, file: str, line: int, within: str, place: str) -> Suspect:
    digest = sha256(f"sojourn.scan/1 {rule} {file} {place}".encode()).hexdigest()
    return Suspect(rule=rule, file=file, line=line, within=within, id=digest[:ID_DIGITS])


def _workspace_paths(files: ScannedFiles) -> Mapping[str, str]:
    """The path in the workspace of each blob that the current snapshot names."""
    try:
        current = snapshot.load(b"".join(files.chunks(layout.SNAPSHOT)))
    except (FormatError, StorageError):
        return {}
    return {entry.sha256: entry.path for entry in current.entries if entry.sha256 is not None}
