"""Makes a capsule: every file of the layout exists from the first moment on."""

from dataclasses import dataclass
from hashlib import sha256

from sojourn.core.ledger_record import first_record
from sojourn.drive.machine import Ports
from sojourn.format import environment, index, layout, manifest, snapshot, upgrade
from sojourn.format.blob import ref
from sojourn.format.body import Head
from sojourn.format.event import (
    AnyBody,
    Configured,
    Created,
    EnvironmentChanged,
    LockFile,
    Memory,
)
from sojourn.format.timeline_write import SALT_BYTES, Batch, Chain, salts, write
from sojourn.ids import BlobId, CapsuleId, Clock, Incarnation, Seq

MEMORY_AT_FIRST = "# Working memory\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCapsule:
    """The identity of a new capsule and all its files, by their path in the folder."""

    capsule: CapsuleId
    incarnation: Incarnation
    files: dict[str, bytes]


def new_capsule(ports: Ports, *, name: str, configured: Configured) -> NewCapsule:
    """The bytes of a new capsule, held by this machine at epoch 1; nothing is written yet."""
    incarnation = Incarnation(ports.randomness.token(16).hex())
    spec = environment.MINIMAL
    bodies: tuple[AnyBody, ...] = (
        Created(name=name, write=upgrade.WRITE_VERSION, read=upgrade.READ_VERSION),
        EnvironmentChanged(
            files=(LockFile(path=layout.SPEC, blob=ref(spec, media_type="application/json")),)
        ),
        Memory(
            origin="created",
            before=None,
            result=BlobId(sha256(MEMORY_AT_FIRST.encode()).hexdigest()),
            text=MEMORY_AT_FIRST,
        ),
        configured,
    )
    record = first_record(capsule=CapsuleId(""), incarnation=incarnation, folder="", workspace="")
    chain = Chain(
        machine=ports.key.machine(),
        incarnation=incarnation,
        epoch=record.epoch,
        seq=Seq(0),
        head=None,
        clock=Clock(0),
    )
    drawn = tuple(salts(ports.randomness.token(SALT_BYTES * len(bodies))))
    batch = write(bodies, chain=chain, time=ports.clock.now(), salts=drawn)
    capsule = CapsuleId(batch.events[0].id)
    blobs = {**batch.blobs, ref(spec, media_type="application/json").sha256: spec}
    files = {
        layout.WORKING_MEMORY: MEMORY_AT_FIRST.encode(),
        layout.TIMELINE: batch.data,
        layout.INDEX: index.EMPTY,
        layout.SNAPSHOT: snapshot.encode(snapshot.EMPTY),
        layout.SPEC: spec,
    }
    files[layout.MANIFEST] = _first_manifest(capsule, name, batch, files)
    files.update({layout.blob_path(blob): data for blob, data in blobs.items()})
    return NewCapsule(capsule=capsule, incarnation=incarnation, files=files)


def _first_manifest(capsule: CapsuleId, name: str, batch: Batch, files: dict[str, bytes]) -> bytes:
    last = batch.events[-1]
    head = Head(
        machine=last.header.machine,
        incarnation=last.header.incarnation,
        seq=last.header.seq,
        id=last.id,
    )
    marks = {
        path: manifest.FileMark(
            sha256=BlobId(sha256(data).hexdigest()),
            size=len(data),
            derived=path in layout.DERIVED_FILES,
        )
        for path, data in files.items()
        if path != layout.TIMELINE
    }
    return manifest.encode(
        manifest.Manifest(
            features=manifest.Features(optional=(), required=()),
            format=manifest.CURRENT,
            capsule=capsule,
            name=name,
            holder=last.header.machine,
            epoch=last.header.epoch,
            timeline=manifest.TimelineMark(
                length=len(batch.data),
                sha256=BlobId(sha256(batch.data).hexdigest()),
                heads=(head,),
            ),
            files=marks,
        )
    )
