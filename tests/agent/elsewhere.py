"""Copies of a capsule that another machine holds, made with the format's own writers."""

import shutil
from hashlib import sha256
from pathlib import Path

import msgspec

from agent.stage import Stage
from sojourn.core.tenure import LedgerRecord, LedgerTip
from sojourn.drive.reading import read_manifest
from sojourn.format import manifest
from sojourn.format.body import Head
from sojourn.format.capsule_kinds import Claimed
from sojourn.format.event import AnyBody
from sojourn.format.line import ReadBlob
from sojourn.format.parts import BlobRef
from sojourn.format.timeline_read import Reader
from sojourn.format.timeline_write import Chain, write
from sojourn.ids import BlobId, Clock, Epoch, Incarnation, Seq
from sojourn.store.folder import FolderStore


def elsewhere(stage: Stage, folder: Path, *, epoch: int = 1001, name: str = "e") -> Stage:
    """The capsule copied to `folder` and held there by another machine with its own state."""
    folder.mkdir()
    shutil.copytree(stage.capsule, folder / "capsule")
    for file in ("script.json", "ledger.jsonl"):
        if (stage.folder / file).exists():
            shutil.copy(stage.folder / file, folder / file)
    other = Stage(folder, stage.steps, tools=stage.tools)
    store = FolderStore(str(other.capsule))
    reader = Reader(read_blob=_read(store))
    log = b"".join(store.read_log())
    reader.feed(log)
    ending = reader.finish(same_boot=True)
    machine = other.machine.ports.key.machine()
    chain = Chain(
        machine=machine,
        incarnation=Incarnation(name * 32),
        epoch=Epoch(epoch),
        seq=Seq(0),
        head=None,
        clock=Clock(ending.clock),
    )
    capsule = read_manifest(store).capsule
    claimed: AnyBody = Claimed(capsule=capsule, how="claim", by="you", heads=ending.heads)
    batch = write((claimed,), chain=chain, time="2026-01-02T03:04:05.678Z", salts=("s" * 22,))
    log += batch.data
    (other.timeline()).write_bytes(log)
    last = batch.events[-1]
    own = Head(machine=machine, incarnation=chain.incarnation, seq=Seq(0), id=last.id)
    heads = sorted((*ending.heads, own), key=lambda head: (head.machine, head.incarnation))
    timeline = manifest.TimelineMark(
        heads=tuple(heads), length=len(log), sha256=BlobId(sha256(log).hexdigest())
    )
    written = msgspec.structs.replace(
        read_manifest(store), holder=machine, epoch=Epoch(epoch), timeline=timeline
    )
    (other.capsule / "manifest.json").write_bytes(manifest.encode(written))
    other.machine.ports.ledger.save(
        LedgerRecord(
            capsule=capsule,
            incarnation=chain.incarnation,
            state="HOLDER",
            epoch=Epoch(epoch),
            floor=Epoch(epoch),
            folder=str(other.capsule.resolve()),
            workspace=str((folder / "workspace").resolve()),
            tip=LedgerTip(length=len(log), last=last.id),
        )
    )
    return other


def _read(store: FolderStore) -> ReadBlob:
    def read(ref: BlobRef) -> bytes:
        return store.read_blob(ref.sha256)

    return read
