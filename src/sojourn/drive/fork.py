"""Makes a capsule that goes its own way from a point of another (docs/protocol.md#fork).

The other is only read, without its lock: what is copied is a prefix of its log, and what that
names. The new folder appears whole or not at all.
"""

import os
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from sojourn.core.ledger_record import LedgerRecord, LedgerTip, first_record
from sojourn.core.parting import set_aside
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.parent import Parent, read_parent
from sojourn.drive.reading import read_manifest
from sojourn.drive.refill import check_room, fill
from sojourn.errors import FormatError, UsageError
from sojourn.format import index, layout, manifest, snapshot
from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Forked, Redacted, Restored
from sojourn.format.event import AnyBody, ToolOutcome
from sojourn.format.filling import Filling
from sojourn.format.timeline_write import Batch, Chain, write
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId, Incarnation, Seq
from sojourn.ports import Store
from sojourn.ports_workspace import Progress, Stop

NONCE_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a fork that is held here works, once its id is known.

    The folder is filled from the parent's last snapshot; what lies there stays.
    """

    workspace: Callable[[CapsuleId], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedCapsule:
    """A fork that was made: `at` is the last event of its parent that it keeps.

    `chain` is where its own chain stands, for who goes on writing it; `set_aside` counts the calls
    that its parent had open; `workspace` is None when it is not held here.
    """

    capsule: CapsuleId
    parent: CapsuleId
    at: EventId
    folder: str
    chain: Chain
    set_aside: int
    workspace: str | None
    restored: Restored | None


async def fork_capsule(
    ports: Ports,
    source: str,
    folder: str,
    *,
    name: str,
    at: EventId | None = None,
    home: Home | None,
    more: Sequence[AnyBody] = (),
    observer: Observer,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> ForkedCapsule:
    """Fork the capsule in the folder `source` at an event, or at its end, into `folder`.

    `source` may be any folder with a capsule's bytes: held here or not, under way or not. Without
    `home` the fork is not held here, and nobody may run it before it is claimed or forked again.
    `more` is appended after what puts the fork to rest, in the same append.

    Raises: NotFoundError `event_missing`; UsageError `exists`, `fork_too_early`, or
    `restore_conflict` for what lies in the way of its files; FormatError when what would be copied
    is not sound; FencedError `log_changed`; StoppedError; StorageError. Nothing is left.
    """
    ports.key.machine()
    store = ports.store_at(source)
    parent = read_parent(store, at)
    sweep_half_made(ports, folder, home, observer)
    restored = None if home is None else parent.remains.restored("fork")
    added = _added(ports, parent, name, (*((restored,) if restored else ()), *more))
    filling = _filling(source, store, parent, added, name)
    capsule = CapsuleId(added.events[0].id)
    workspace = None if home is None else home.workspace(capsule)
    made = workspace is not None and not os.path.lexists(workspace)
    if workspace is not None:
        there = ports.workspace_at(CapsuleId(""), source, workspace)
        check_room(there, store, parent.remains)
    staged = ports.maker.stage(folder, filling, progress=progress, stop=stop)
    try:
        if workspace is None:
            ports.maker.place(staged, folder)
        else:
            there = ports.workspace_at(capsule, staged, workspace)
            await fill(there, parent.remains, observer, progress=progress, stop=stop)
            _place_held(ports, staged, _record(parent, added, filling, folder, workspace))
    except BaseException:
        # Once it is in its place it stays, whatever failed after that.
        if ports.maker.drop(staged) and workspace is not None and made:
            shutil.rmtree(workspace, ignore_errors=True)
        raise
    calls = sum(isinstance(event.body, ToolOutcome) for event in added.events)
    return ForkedCapsule(
        capsule=capsule,
        parent=parent.capsule,
        at=parent.at,
        folder=folder,
        chain=added.chain,
        set_aside=calls,
        workspace=workspace,
        restored=restored,
    )


def _place_held(ports: Ports, staged: str, record: LedgerRecord) -> None:
    """The record first: so there is never a capsule that nobody may run."""
    with ports.lock.acquire(record.capsule):
        ports.ledger.save(record)
        try:
            ports.maker.place(staged, record.folder)
        except UsageError:
            ports.ledger.save(msgspec.structs.replace(record, state="NONE"))
            raise


def _added(ports: Ports, parent: Parent, name: str, more: Sequence[AnyBody]) -> Batch:
    """The fork's own first append."""
    bodies: tuple[AnyBody, ...] = (
        Forked(
            parent=parent.capsule,
            name=name,
            nonce=ports.randomness.token(NONCE_BYTES).hex(),
            heads=parent.sides,
            continues=parent.continues,
        ),
        *_redacted(parent),
        *set_aside(parent.state),
        *more,
    )
    chain = Chain(
        machine=ports.key.machine(),
        incarnation=Incarnation(ports.randomness.token(16).hex()),
        epoch=Epoch(parent.epoch + 1),
        seq=Seq(0),
        head=None,
        clock=parent.clock,
    )
    salts = [urlsafe_b64encode(ports.randomness.token(16)).decode().rstrip("=") for _ in bodies]
    return write(bodies, chain=chain, time=ports.clock.now(), salts=salts)


def _redacted(parent: Parent) -> tuple[Redacted, ...]:
    """What the parent's log says after the point of parting is said again, so it stays true."""
    if not parent.redacted:
        return ()
    reason = "it was redacted in the capsule that this one was forked from"
    return (Redacted(by="fork", reason=reason, blobs=parent.redacted),)


def _filling(source: str, store: Store, parent: Parent, added: Batch, name: str) -> Filling:
    files = {
        layout.WORKING_MEMORY: parent.memory.encode(),
        layout.INDEX: index.EMPTY,
        layout.SNAPSHOT: snapshot.encode(parent.remains.listed),
    }
    if parent.environment is not None:
        for file in parent.environment.files:
            files[file.path] = store.read_blob(file.blob.sha256)
    files[layout.MANIFEST] = _manifest(store, parent, added, name, files)
    return Filling(
        source=source,
        length=parent.length,
        digest=parent.digest,
        added=added.data,
        blobs=parent.blobs,
        kept=added.blobs,
        files=files,
    )


def _manifest(
    store: Store, parent: Parent, added: Batch, name: str, files: dict[str, bytes]
) -> bytes:
    last = added.events[-1]
    own = Head(
        machine=last.header.machine,
        incarnation=last.header.incarnation,
        seq=last.header.seq,
        id=last.id,
    )
    digest = sha256()
    for chunk in store.read_log(0, parent.length):
        digest.update(chunk)
    digest.update(added.data)
    marks = {
        path: manifest.FileMark(
            sha256=BlobId(sha256(data).hexdigest()),
            size=len(data),
            derived=path in layout.DERIVED_FILES,
        )
        for path, data in files.items()
    }
    heads = sorted((*parent.ends, own), key=lambda head: (head.machine, head.incarnation))
    return manifest.encode(
        manifest.Manifest(
            features=parent.features,
            format=manifest.CURRENT,
            capsule=CapsuleId(added.events[0].id),
            name=name,
            holder=own.machine,
            epoch=last.header.epoch,
            timeline=manifest.TimelineMark(
                length=parent.length + len(added.data),
                sha256=BlobId(digest.hexdigest()),
                heads=tuple(heads),
            ),
            files=marks,
        )
    )


def _record(
    parent: Parent, added: Batch, filling: Filling, folder: str, workspace: str
) -> LedgerRecord:
    record = first_record(
        capsule=CapsuleId(added.events[0].id),
        incarnation=added.chain.incarnation,
        folder=folder,
        workspace=workspace,
        epoch=added.chain.epoch,
    )
    tip = LedgerTip(
        length=parent.length + len(added.data),
        last=added.chain.head,
        manifest=sha256(filling.files[layout.MANIFEST]).hexdigest(),
    )
    return msgspec.structs.replace(record, tip=tip)


def sweep_half_made(ports: Ports, folder: str, home: Home | None, observer: Observer) -> None:
    """Remove what makers that died left of a fork into this folder, and say so.

    Such a fork never was under its name, so nobody used it. Raises: StorageError.
    """
    for staged in ports.maker.left_behind(folder):
        try:
            capsule = read_manifest(ports.store_at(staged)).capsule
            record = ports.ledger.load(capsule)
        except FormatError:
            capsule, record = None, None
        if capsule is not None and home is not None:
            _drop_workspace(home.workspace(capsule), capsule)
        if record is not None and record.state == "HOLDER" and record.folder == folder:
            ports.ledger.save(msgspec.structs.replace(record, state="NONE"))
        ports.maker.drop(staged)
        observer.note(f"removed what an interrupted fork left in {staged}")


def _drop_workspace(workspace: str, capsule: CapsuleId) -> None:
    """Remove the folder that was made for this capsule alone, and has its id for a name."""
    if os.path.basename(workspace) == capsule:
        shutil.rmtree(workspace, ignore_errors=True)
