"""Checks a whole capsule without touching anything (docs/format.md#verification).

The caller gives the bytes through `CapsuleFiles`; memory stays bounded however long the log is.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, cast

from sojourn.errors import FormatError
from sojourn.format import blob, layout, manifest, seal
from sojourn.format.capsule_kinds import Sealed, Snapshotted
from sojourn.format.event import Event
from sojourn.format.failures import Code, Finding, finding, say
from sojourn.format.gone import NOTHING, Gone
from sojourn.format.manifest import FileMark
from sojourn.format.parts import BlobRef
from sojourn.format.snapshot_fold import contents_of
from sojourn.format.timeline_read import Damage, Item, Known, Reader
from sojourn.ids import BlobId, EventId


class CapsuleFiles(Protocol):
    """A capsule's bytes; paths are relative to its folder."""

    def log(self) -> Iterable[bytes] | None:
        """The log in chunks of about 64 KiB, None when there is none."""
        ...

    def paths(self) -> Iterable[str]:
        """Every file but the blobs, in any order."""
        ...

    def blobs(self) -> Iterable[str]:
        """The names in the folder of blobs, in any order."""
        ...

    def read(self, path: str, limit: int) -> bytes | None:
        """The first `limit` + 1 bytes of a file, None when there is none."""
        ...

    def size(self, path: str) -> int | None:
        """The size of a file, None when there is none."""
        ...

    def digest(self, path: str) -> str | None:
        """The sha256 of a file's bytes, None when there is none."""
        ...

    def digests(self, paths: Iterable[str]) -> Iterable[tuple[str, str | None]]:
        """Each path with its `digest`, in any order."""
        ...


def verify(
    files: CapsuleFiles, *, known: Known | None = None, same_boot: bool = False
) -> Iterator[Finding]:
    """Everything that is wrong with a capsule, in the order of docs/format.md#verification.

    `known` is what a ledger knows of the log. `same_boot` when the machine ran on since the last
    append: then only bytes without a final 0x0A count as torn.
    """
    marks = [] if known is None else [known]
    found: manifest.Manifest | None = None
    data = b""
    try:
        data = _manifest_bytes(files)
        found = manifest.load(data)
    except FormatError as error:
        yield _of(error)
        if error.code in manifest.REFUSALS:
            return
    if found is not None:
        marks.insert(0, manifest.known(found))
        if manifest.access(found) == "read":
            yield finding("write_version_newer", layout.MANIFEST, 1, str(found.format.write))
    identities: list[EventId] = []
    items = _Items(files)
    yield from _check_log(items, marks, identities, same_boot=same_boot)
    if found is not None:
        yield from manifest.check(found, identities=identities)
    if found is not None and found.seal is not None:
        length = files.size(layout.TIMELINE) or 0
        yield from seal.check(found, found.seal, last=items.last, length=length)
        yield from _check_sealed_files(files, found, data)
        yield from _check_sealed_blobs(files, found.seal, items.gone)
        return
    yield from _check_files(files, {} if found is None else found.files)
    yield from _check_blobs(files)


def _manifest_bytes(files: CapsuleFiles) -> bytes:
    data = files.read(layout.MANIFEST, layout.MAX_MANIFEST)
    if data is None:
        code: Code = "manifest_missing"
        raise FormatError(say(code), code=code, file=layout.MANIFEST)
    return data


def _check_log(
    items: "_Items", marks: list[Known], identities: list[EventId], *, same_boot: bool
) -> Iterator[Finding]:
    """What is wrong with the log; `items` then knows its last event, and what is gone."""
    chunks = items.files.log()
    if chunks is None:
        yield finding("log_missing", layout.TIMELINE)
        return
    reader = Reader(known=marks, read_blob=items.read_blob)
    for chunk in chunks:
        yield from items.check(*reader.numbered(chunk))
    ending = reader.finish(same_boot=same_boot)
    identities += ending.identities
    whole = [number == 0 for number in ending.rest_lines].count(True)
    last = len(ending.rest) - whole
    yield from items.check(ending.rest_lines[:last], ending.rest[:last])
    items.keep_lacking()
    items.gone = ending.gone
    yield from items.give(ending.gone)
    if ending.torn is not None:
        yield finding("torn_tail", layout.TIMELINE, ending.torn.line, ending.torn.reason)
    for item in ending.rest[last:]:
        if isinstance(item, Damage):
            yield _in_log(item)


MAX_KEPT: Final = 1 << 16
"""Failures of the log that are put into the order of its lines; more follow as they come."""


@dataclass(slots=True)
class _Kept:
    """A failure of a line, the first of it first; `blob` is the one that is missing, if any."""

    line: int
    later: bool
    finding: Finding
    blob: BlobId | None = None


class _Items:
    """What the reader gives, and the blobs that it names."""

    def __init__(self, files: CapsuleFiles) -> None:
        self.files = files
        self._reported: set[BlobId] = set()
        self.last: Event | None = None
        self.gone = NOTHING
        self._kept: list[_Kept] = []
        self._lacking: dict[BlobId, int] = {}

    def check(self, numbers: Iterable[int], items: Iterable[Item]) -> Iterator[Finding]:
        """Take in what the reader gives; failures are kept, since later lines may pardon them."""
        for line, item in zip(numbers, items, strict=True):
            if isinstance(item, Damage):
                self._kept.append(_Kept(line, False, _in_log(item)))
                continue
            self.last = item
            refs = blob.refs(item.body)
            for ref in sorted(refs, key=lambda ref: (ref.sha256, ref.size)) if refs else ():
                self._check_blob(ref.sha256, ref.size, line)
            if isinstance(item.body, Snapshotted):
                self._check_contents(item.body, line)
            elif isinstance(item.body, Sealed) and item.body.without_workspace:
                self._pardon_contents()
        if len(self._kept) >= MAX_KEPT:
            yield from self.give(NOTHING)

    def give(self, gone: Gone) -> Iterator[Finding]:
        """What was kept, in the order of the lines, but for blobs whose absence is pardoned."""
        kept, self._kept = self._kept, []
        for one in sorted(kept, key=lambda one: (one.line, one.later)):
            if one.blob is None or one.blob not in gone:
                yield one.finding

    def keep_lacking(self) -> None:
        """Contents of snapshots that are not there are failures now: no seal left them out."""
        for name, line in self._lacking.items():
            found = finding("blob_missing", layout.TIMELINE, line, name)
            self._kept.append(_Kept(line, True, found, name))
        self._lacking.clear()

    def _pardon_contents(self) -> None:
        """Contents named so far may be absent (docs/format.md#sealing)."""
        self._reported.difference_update(self._lacking)
        self._lacking.clear()

    def _check_blob(self, name: BlobId, wanted: int, line: int) -> None:
        self._check_size(name, self.files.size(layout.blob_path(name)), wanted, line)

    def _check_size(self, name: BlobId, size: int | None, wanted: int, line: int) -> None:
        if size != wanted and name not in self._reported:
            self._reported.add(name)
            code: Code = "blob_missing" if size is None else "blob_size"
            found = finding(code, layout.TIMELINE, line, name)
            self._kept.append(_Kept(line, True, found, name if size is None else None))

    def _check_contents(self, body: Snapshotted, line: int) -> None:
        """The blobs that a snapshot's delta names; a delta that is no blob was reported."""
        try:
            contents = contents_of(body, self.read_blob)
        except FormatError as error:
            if error.code not in ("blob_missing", "blob_size", "blob_altered"):
                found = finding(cast(Code, error.code), layout.TIMELINE, line, error.message)
                self._kept.append(_Kept(line, True, found))
            return
        for name, size in contents:
            if name in self._reported:
                continue
            found_size = self.files.size(layout.blob_path(name))
            if found_size is None:
                self._reported.add(name)
                self._lacking[name] = line
            else:
                self._check_size(name, found_size, size, line)

    def read_blob(self, ref: BlobRef) -> bytes | None:
        return self.files.read(layout.blob_path(ref.sha256), ref.size)


def _in_log(damage: Damage) -> Finding:
    return Finding(
        code=damage.code, file=layout.TIMELINE, line=damage.line or None, message=damage.message
    )


def _check_files(files: CapsuleFiles, listed: Mapping[str, FileMark]) -> Iterator[Finding]:
    there = {path for path in files.paths() if not layout.is_temporary(path)}
    names = {*layout.FIXED_FILES, *listed, *there} - {layout.MANIFEST, layout.TIMELINE}
    for path in sorted(names, key=_bytes):
        mark = listed.get(path)
        digest = files.digest(path)
        fixed = path in layout.FIXED_FILES
        if digest is None and fixed:
            yield finding("file_missing", path)
        elif mark is None and not fixed:
            yield finding("file_unlisted", path)
        elif mark is not None and (mark.size, mark.sha256) != (files.size(path), digest):
            yield finding(_change(path, mark), path)


def _change(path: str, mark: FileMark) -> Code:
    """What it is when a file has other bytes than the manifest says."""
    if mark.derived:
        return "derived_altered"
    edited = path == layout.WORKING_MEMORY or path.startswith(layout.ENVIRONMENT + "/")
    return "file_edited" if edited else "file_altered"


def _check_blobs(files: CapsuleFiles) -> Iterator[Finding]:
    wrong: list[Finding] = []
    named: list[str] = []
    for name in files.blobs():
        path = f"{layout.BLOBS}/{name}"
        if layout.is_blob_name(name):
            named.append(path)
        elif not layout.is_temporary(path):
            wrong.append(finding("blob_name", path))
    start = len(layout.BLOBS) + 1
    for path, digest in files.digests(named):
        if digest != path[start:]:
            wrong.append(finding("blob_altered", path))
    yield from sorted(wrong, key=lambda one: _bytes(one.file))


def _check_sealed_files(
    files: CapsuleFiles, found: manifest.Manifest, data: bytes
) -> Iterator[Finding]:
    there = {path for path in files.paths() if not layout.is_temporary(path)}
    names = {*found.files, *there, layout.SUMS} - {layout.MANIFEST, layout.TIMELINE}
    for path in sorted(names, key=_bytes):
        size, digest = files.size(path), files.digest(path)
        wrong = seal.check_file(found, data, path, size=size, digest=digest)
        if wrong is not None:
            yield wrong


def _check_sealed_blobs(files: CapsuleFiles, under: manifest.Seal, gone: Gone) -> Iterator[Finding]:
    there = {name for name in files.blobs() if not layout.is_temporary(name)}
    names = {f"{layout.BLOBS}/{name}": name for name in {*under.blobs, *there}}
    wrong: list[Finding] = []
    for path, digest in files.digests(names):
        found = seal.check_blob(under, names[path], size=files.size(path), digest=digest)
        wrong += () if found is None else (found,)
    yield from sorted(wrong, key=lambda one: _bytes(one.file))
    data = files.read(layout.SNAPSHOT, layout.MAX_SNAPSHOT)
    yield from seal.check_workspace(under, data, gone=gone)


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


def _of(error: FormatError) -> Finding:
    return Finding(
        code=cast(Code, error.code),
        file=error.file or layout.MANIFEST,
        line=error.line,
        message=error.message,
    )
