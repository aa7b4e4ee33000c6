"""Seals a held capsule and gives the members of its archive (docs/format.md#sealing)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, Protocol, TypeAlias

import msgspec

from sojourn.core.restored import Lacking
from sojourn.core.seals import SealSeen
from sojourn.drive.hold import Hold
from sojourn.drive.reading import blob_or_none, read_manifest
from sojourn.errors import FormatError
from sojourn.format import blob, index, layout, manifest, seal
from sojourn.format.capsule_kinds import Redacted, Restored, Sealed, Snapshotted
from sojourn.format.event import AnyBody, Event
from sojourn.format.gone import NOTHING, Gone
from sojourn.format.snapshot_fold import Snapshots, known_contents
from sojourn.format.timeline_read import Damage, Reader
from sojourn.ids import BlobId, EventId
from sojourn.ports import Store

Purpose: TypeAlias = Literal["backup", "fork", "move", "share"]
Content: TypeAlias = tuple[str, int, Iterable[bytes]]
"""A member's path, size and bytes."""


class Contents(Protocol):
    """A capsule's folder, to be read in pieces."""

    def blob_sizes(self) -> Mapping[str, int]: ...

    def size(self, path: str) -> int | None: ...

    def chunks(self, path: str) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """A seal that was made: the manifest and its bytes; `new` unless it was made before.

    `redacted` counts what was redacted since the seal before it: archives of that one and of
    earlier ones still hold it, and have other lines than this log.
    """

    manifest: manifest.Manifest
    data: bytes
    new: bool
    redacted: int = 0

    @property
    def digest(self) -> str:
        """The sha256 of the manifest, by which the next seal names this one."""
        return sha256(self.data).hexdigest()


async def seal_capsule(
    hold: Hold,
    files: Contents,
    *,
    purpose: Purpose,
    without_workspace: bool,
    check: Callable[[Collection[str]], None],
) -> Seal:
    """Seal the capsule: append `sealed` unless nothing changed since the last such seal.

    `check` gets the names of the blobs that go along and raises when they may not, before anything
    is appended. Nothing may be appended between this and the end of the export. Raises: FormatError
    `blob_missing` when contents of the workspace are not there; StorageError.
    """
    await hold.refresh()
    survey = _surveyed(hold.store)
    blobs = _blobs(files, survey, without_workspace=without_workspace)
    check(blobs)
    last = survey.last
    body = None if last is None else last.body
    seen = hold.record.sealed
    if last is not None and isinstance(body, Sealed):
        made = _made(hold.live_manifest(), last, body, blobs)
        same = (body.purpose, body.without_workspace) == (purpose, without_workspace)
        known = seen.manifest if seen.number == body.number else None
        if same and known in (None, made.digest):
            return _checked(files, replace(made, redacted=survey.redacted_before), survey.gone)
    event = hold.draft(
        Sealed(
            number=survey.number + 1,
            previous=None if seen.manifest is None else BlobId(seen.manifest),
            purpose=purpose,
            without_workspace=without_workspace,
            heads=hold.other_heads,
        )
    )
    if not isinstance(event.body, Sealed):
        raise FormatError("the seal's event cannot be read again", code="body_malformed")
    await hold.commit()
    made = _made(hold.live_manifest(), event, event.body, blobs)
    await hold.refresh()
    return _checked(files, replace(made, new=True, redacted=survey.redacted), survey.gone)


def parting(
    events: Iterable[Event], at: EventId, *, without_workspace: bool
) -> tuple[AnyBody, ...]:
    """What a fork at the event `at` of this log ends with when it is sealed at once.

    The model is told which calls the last snapshot up to there does not contain.
    """
    lacking, snapshots, number = Lacking(), Snapshots(), 0
    for event in events:
        lacking.add(event)
        if isinstance(event.body, Snapshotted):
            snapshots.add(event.id, event.body)
        elif isinstance(event.body, Sealed):
            number = max(number, event.body.number)
        if event.id == at:
            break
    last = snapshots.current
    restored = Restored(snapshot=last, why="fork", missing=lacking.at(last))
    sealed = Sealed(
        number=number + 1, previous=None, purpose="fork", without_workspace=without_workspace
    )
    return restored, sealed


def seal_forked(store: Store, files: Contents, *, check: Callable[[Collection[str]], None]) -> Seal:
    """The seal of a fork that ends with `parting` and is not held.

    `check` as in `seal_capsule`. Raises: FormatError `blob_missing` when contents of the workspace
    are not there, `seal_wrong` when it does not end so.
    """
    survey = _surveyed(store)
    last = survey.last
    if last is None or not isinstance(last.body, Sealed):
        raise FormatError("the log does not end with its seal", code="seal_wrong")
    blobs = _blobs(files, survey, without_workspace=last.body.without_workspace)
    check(blobs)
    made = _made(read_manifest(store), last, last.body, blobs)
    return _checked(files, replace(made, new=True), survey.gone)


def remember(hold: Hold, made: Seal, *, signer: str | None) -> None:
    """Note in the ledger that this seal was given away. Raises: StorageError."""
    found, record = made.manifest, hold.record
    number = 0 if found.seal is None else found.seal.number
    seen = SealSeen(
        number=number,
        manifest=made.digest,
        signer=signer or record.sealed.signer,
        heads=found.timeline.heads,
    )
    if record.sealed != seen:
        hold.save_record(msgspec.structs.replace(record, seal=seen))


def members(made: Seal, files: Contents, *, signature: bytes | None) -> Iterator[Content]:
    """Path, size and bytes of every member, sorted; what is read is compared with the manifest.

    Raises: FormatError `file_altered` or `blob_altered` when the folder holds other bytes.
    """
    here = {
        layout.MANIFEST: made.data,
        layout.SUMS: seal.sums(made.manifest, made.data),
        layout.VERIFY: seal.VERIFY_TEXT,
        layout.INDEX: index.EMPTY,
    }
    if signature is not None:
        here[layout.SIGNATURE] = signature
    for path, size in sorted(sizes(made, signature=signature).items()):
        data = here.get(path)
        if data is None:
            yield path, size, _read(files, path, size, _digest(made.manifest, path))
        else:
            yield path, size, (data,)


def digests(made: Seal, *, signature: bytes | None) -> dict[str, str]:
    """Path and sha256 of every member."""
    here = {
        layout.MANIFEST: made.digest,
        layout.SUMS: sha256(seal.sums(made.manifest, made.data)).hexdigest(),
    }
    if signature is not None:
        here[layout.SIGNATURE] = sha256(signature).hexdigest()
    paths = sizes(made, signature=signature)
    return {path: here.get(path) or _digest(made.manifest, path) for path in paths}


def sizes(made: Seal, *, signature: bytes | None) -> Mapping[str, int]:
    """Path and size of every member."""
    return seal.members(made.manifest, made.data, signature=signature)


@dataclass(slots=True)
class _Survey:
    """What the log says about seals and blobs.

    `redacted` counts redactions since the last seal, `redacted_before` those before it.
    """

    number: int = 0
    redacted: int = 0
    redacted_before: int = 0
    last: Event | None = None
    named: set[BlobId] = field(default_factory=set[BlobId])
    workspace: set[BlobId] = field(default_factory=set[BlobId])
    gone: Gone = NOTHING


def _surveyed(store: Store) -> _Survey:
    survey = _Survey()

    def take(items: Iterable[Event | Damage]) -> None:
        for event in items:
            if isinstance(event, Damage):
                raise FormatError(event.message, code=event.code, line=event.line)
            _survey(store, survey, event)

    reader = Reader(read_blob=lambda ref: blob_or_none(store, ref))
    for chunk in store.read_log():
        take(reader.feed(chunk))
    ending = reader.finish(same_boot=True)
    take(ending.rest)
    survey.gone = ending.gone
    return survey


def _survey(store: Store, survey: _Survey, event: Event) -> None:
    survey.last = event
    survey.named.update(ref.sha256 for ref in blob.refs(event.body))
    match event.body:
        case Sealed(number=number):
            survey.number = max(survey.number, number)
            survey.redacted_before, survey.redacted = survey.redacted, 0
        case Redacted():
            # Before the first seal there is no archive that could hold what is gone.
            survey.redacted += survey.number > 0
        case Snapshotted() as body:
            contents = known_contents(body, lambda ref: blob_or_none(store, ref))
            survey.workspace.update(content.blob for content in contents)
        case _:
            pass


def _blobs(files: Contents, survey: _Survey, *, without_workspace: bool) -> dict[str, int]:
    """Name and size of every blob that the archive holds.

    Raises: FormatError `blob_missing` for one that the log names, and nothing says is gone.
    """
    left_out = survey.workspace - survey.named if without_workspace else set[BlobId]()
    left_out = left_out | survey.gone.redacted
    sizes = files.blob_sizes()
    for lacking in sorted(survey.named - survey.gone.redacted - survey.gone.lost - sizes.keys()):
        raise FormatError(
            f"the archive would lack a blob that the log names: {lacking}",
            code="blob_missing",
            state="Nothing was sealed or written.",
            hint="Put the blob back, or let `sojourn repair` record that it is lost.",
            file=f"{layout.BLOBS}/{lacking}",
        )
    return {
        name: size
        for name, size in sizes.items()
        if layout.is_blob_name(name) and BlobId(name) not in left_out
    }


def _made(live: manifest.Manifest, event: Event, body: Sealed, blobs: dict[str, int]) -> Seal:
    found = seal.sealed(live, event=event, body=body, files=live.files, blobs=blobs)
    return Seal(manifest=found, data=manifest.encode(found), new=False)


def _checked(files: Contents, made: Seal, gone: Gone) -> Seal:
    """The seal, when every content of the workspace is there that it promises."""
    under = made.manifest.seal
    data = b"".join(files.chunks(layout.SNAPSHOT))
    wrong = next(seal.check_workspace(under, data, gone=gone), None) if under is not None else None
    if wrong is None:
        return made
    raise FormatError(
        f"the archive would lack a part of the workspace: {wrong.message}",
        code=wrong.code,
        state="No archive was written.",
        hint="Export it with --without-workspace.",
        file=wrong.file,
    )


def _digest(found: manifest.Manifest, path: str) -> str:
    if path == layout.TIMELINE:
        return found.timeline.sha256
    name = path.removeprefix(f"{layout.BLOBS}/")
    return name if name != path else found.files[path].sha256


def _read(files: Contents, path: str, size: int, digest: str) -> Iterator[bytes]:
    """The bytes of a file, refused when they are not those that the manifest names."""
    running, left = sha256(), size
    for piece in files.chunks(path):
        running.update(piece)
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left or running.hexdigest() != digest:
        code = "blob_altered" if path.startswith(layout.BLOBS) else "file_altered"
        raise FormatError(
            f"{path} does not hold the bytes that it should",
            code=code,
            state="No archive was written.",
            hint="`sojourn verify` names every file that is wrong.",
            file=path,
        )
