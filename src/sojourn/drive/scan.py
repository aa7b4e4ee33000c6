"""Looks through a whole capsule for likely secrets, before it leaves (docs/format.md#scan)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, Protocol

import msgspec

from sojourn.core.scan import LONGEST, find_secrets
from sojourn.errors import FormatError
from sojourn.format import layout, snapshot
from sojourn.format.canon import JSON
from sojourn.format.event import Header
from sojourn.format.line import HEADER
from sojourn.ids import EventId

ID_DIGITS: Final = 12


class ScannedFiles(Protocol):
    """A capsule's bytes; paths are relative to its folder."""

    def paths(self) -> Iterable[str]:
        """Every file but the blobs."""
        ...

    def blobs(self) -> Iterable[str]:
        """The names in the folder of blobs."""
        ...

    def chunks(self, path: str) -> Iterator[bytes]:
        """A file's bytes in pieces of bounded size."""
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


def scan(files: ScannedFiles) -> Iterator[Suspect]:
    """Every likely secret, file by file in the order of their paths, the blobs last."""
    for path in sorted(files.paths()):
        if path == layout.TIMELINE:
            yield from _scan_log(files.chunks(path))
        elif path != layout.INDEX:
            yield from _scan_text(path, path, files.chunks(path))
    where = _workspace_paths(files)
    for name in sorted(files.blobs()):
        path = f"{layout.BLOBS}/{name}"
        if layout.is_blob_name(name):
            yield from _scan_text(path, name, files.chunks(path), within=where.get(name, ""))


def _scan_log(chunks: Iterable[bytes]) -> Iterator[Suspect]:
    for number, line in enumerate(_lines(chunks), 1):
        yield from _scan_line(line, number)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without their 0x0A; what follows the last one comes last, if anything does."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _scan_line(line: bytes, number: int) -> Iterator[Suspect]:
    """The strings of an event's body, as they were before they became JSON."""
    try:
        value: JSON = msgspec.json.decode(line)
    except msgspec.MsgspecError:
        strings = iter([("", line.decode("utf-8", "replace"))])
    else:
        body = value.get("body") if isinstance(value, dict) else value
        strings = _strings(body, "")
    line_id = sha256(line).hexdigest()
    event = _named(line)
    for field, text in strings:
        for hit in find_secrets(text):
            suspect = _suspect(hit.rule, layout.TIMELINE, number, field, f"{line_id} {hit.start}")
            yield replace(suspect, event=event, number=None if event is None else number)


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
) -> Iterator[Suspect]:
    """A file's bytes, in pieces that overlap so that no secret is cut in two."""
    kept, start, line = b"", 0, 1
    last: dict[int, str] = {}
    for chunk in chunks:
        data = kept + chunk
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
    except FormatError:
        return {}
    return {entry.sha256: entry.path for entry in current.entries if entry.sha256 is not None}
