"""Sets aside what cannot be read and records it; mends nothing by guess (docs/format.md#repair).

docs/protocol.md#repair has the crash table. While a repair is under way the ledger's record says
so, and only another repair goes on.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace

import msgspec

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.tenure import MayLook, reasons
from sojourn.drive.damage import (
    Aside,
    Gap,
    LostBlob,
    Plan,
    check_sound,
    kept_events,
    kept_lines,
    plan_repair,
)
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.opening import hold_capsule, own_id, refusal
from sojourn.drive.reading import evidence_of, fold_capsule, read_manifest
from sojourn.drive.rewrite import events_of, install
from sojourn.errors import FormatError, HeldElsewhereError
from sojourn.format import layout, manifest
from sojourn.format.blob import blob_id, ref
from sojourn.format.capsule_kinds import Forked, Repaired
from sojourn.format.chains import ChainKey
from sojourn.format.damage import Known
from sojourn.format.event import Created, Event
from sojourn.format.parts import BlobRef
from sojourn.format.timeline_write import SALT_BYTES, Chain, Line, salts, write_line
from sojourn.ids import BlobId, CapsuleId, Clock, EventId, Incarnation, MachineId, Seq
from sojourn.ports import HeldBy, Store

REPAIRING = "repairing"
"""Why a record is SUSPECT while a repair is under way."""

AT_ONCE = 1000
"""Repaired events of one append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair did, or would do: spans set aside, gaps without bytes, blobs that are lost.

    `manifest` is the failure for which the manifest was made anew.
    """

    spans: tuple[Aside, ...] = ()
    gaps: tuple[Gap, ...] = ()
    lost: tuple[LostBlob, ...] = ()
    manifest: str | None = None
    done: bool = False

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to repair."""
        return not (self.spans or self.gaps or self.lost or self.manifest)


async def repair_capsule(
    ports: Ports, folder: str, *, dry_run: bool, observer: Observer
) -> RepairReport:
    """Set aside all that stops the capsule from running, where that is honest.

    Raises: FormatError `repair_refused`; HeldElsewhereError when this machine does not hold the
    capsule or another process has it; StorageError. Unless StorageError, nothing was changed.
    """
    store = ports.store_at(folder)
    found, failure = None, None
    try:
        found = read_manifest(store)
    except FormatError as error:
        failure = error.code
        if error.code in manifest.REFUSALS:
            raise
    record = _record(ports, folder, None if found is None else found.capsule)
    if dry_run:
        left = ports.lock.left(record.capsule)
        return _report(_plan(ports, store, folder, record, left)[0], failure)
    with ports.lock.acquire(record.capsule) as left:
        record = ports.ledger.recover(record.capsule) or record
        if left is not None:
            store.sweep()
        plan, machine = _plan(ports, store, folder, record, left)
        report = _report(plan, failure)
        if not report.nothing:
            await _repair(ports, store, folder, record, machine, plan, found, failure)
        if not report.nothing or record.reason == REPAIRING:
            latest = ports.ledger.load(record.capsule) or record
            ports.ledger.save(msgspec.structs.replace(latest, state="HOLDER", reason=""))
    async with hold_capsule(ports, folder, observer=observer):
        return replace(report, done=not report.nothing)


def _report(plan: Plan, failure: str | None) -> RepairReport:
    return RepairReport(
        spans=tuple(plan.spans), gaps=tuple(plan.gaps), lost=tuple(plan.lost), manifest=failure
    )


def _record(ports: Ports, folder: str, capsule: CapsuleId | None) -> LedgerRecord:
    """This machine's record of the capsule; without a manifest the one of this folder."""
    if capsule is not None:
        found = ports.ledger.load(capsule)
    else:
        records = (ports.ledger.load(one) for one in ports.ledger.capsules())
        found = next((one for one in records if one is not None and one.folder == folder), None)
    if found is None:
        raise HeldElsewhereError(
            "this machine does not hold the capsule, so it may not repair it",
            code="not_held_here",
            state="Nothing was changed.",
            hint="Repair it where it is held, or make it this machine's with `sojourn claim`.",
        )
    return found


def _plan(
    ports: Ports, store: Store, folder: str, record: LedgerRecord, left: HeldBy | None
) -> tuple[Plan, MachineId]:
    same_boot = left is None or left.boot == ports.boot
    if record.reason == REPAIRING:
        record = msgspec.structs.replace(record, state="HOLDER", reason="")
    machine = own_id(ports)
    folded = fold_capsule(store, record, same_boot=same_boot)
    evidence = evidence_of(
        folded,
        folder=folder,
        record=record,
        ledger_failure=None,
        machine=machine,
        old_folder=ports.is_other_folder(record.folder, folder),
        network=ports.network_at(folder),
    )
    against: MayLook | None = next(
        (one for one in reasons(evidence) if one.code != "damaged"), None
    )
    if against is not None:
        raise refusal(against)
    if machine is None:
        raise FormatError("this machine's key cannot be read", code="key_damaged")
    known = [] if folded.manifest is None else [manifest.known(folded.manifest)]
    if record.tip.length:
        known.append(Known(length=record.tip.length, last=record.tip.last))
    own: ChainKey = (machine, record.incarnation)
    return plan_repair(store, known, own, same_boot=same_boot)[0], machine


async def _repair(
    ports: Ports,
    store: Store,
    folder: str,
    record: LedgerRecord,
    machine: MachineId,
    plan: Plan,
    found: manifest.Manifest | None,
    failure: str | None,
) -> None:
    bodies = [body async for body in _bodies(store, plan, failure)]
    blobs: dict[BlobId, bytes] = {}
    chain = _own_end(store, plan, record, machine)
    added = b"".join(line.data for line in _write(ports, bodies, blobs, chain))
    await store.put_blobs(blobs)

    def pieces() -> Iterator[bytes]:
        yield from (line for _, line in kept_lines(store, plan.spans))
        yield added

    check_sound(pieces(), store)
    rewriter = ports.rewriter_at(folder)
    suspect = msgspec.structs.replace(record, state="SUSPECT", reason=REPAIRING)
    origin = found or _new_manifest(store, record, machine)
    try:
        await install(ports, store, rewriter, suspect, pieces(), origin=origin)
        rewriter.discard([one.blob for one in plan.lost if one.code == "blob_altered"])
    finally:
        rewriter.drop()


async def _bodies(store: Store, plan: Plan, failure: str | None) -> AsyncIterator[Repaired]:
    """The events to append; the bytes that they name are durable when they are given."""
    for span in plan.spans:
        data = b"".join(store.read_log(span.offset, span.offset + span.length))
        kept = await _keep(store, data)
        yield _repaired(span.code, kept, span.gap)
    for gap in plan.gaps:
        yield _repaired("chain_gap", None, gap)
    for one in plan.lost:
        data = store.read_file(layout.blob_path(one.blob))
        kept = None if data is None else await _keep(store, data)
        yield Repaired(code=one.code, blob=kept, lost=(one.blob,))
    if failure is not None:
        data = store.read_file(layout.MANIFEST)
        yield _repaired(failure, None if data is None else await _keep(store, data), None)


async def _keep(store: Store, data: bytes) -> BlobRef:
    await store.put_blobs({blob_id(data): data})
    return ref(data, media_type="application/octet-stream")


def _repaired(code: str, kept: BlobRef | None, gap: Gap | None) -> Repaired:
    if gap is None:
        return Repaired(code=code, blob=kept)
    return Repaired(
        code=code,
        blob=kept,
        machine=MachineId(gap.machine),
        incarnation=Incarnation(gap.incarnation),
        first=Seq(gap.first),
        last=Seq(gap.last),
    )


def _own_end(store: Store, plan: Plan, record: LedgerRecord, machine: MachineId) -> Chain:
    """Where the own chain goes on: after all places that are known or reserved."""
    own = (machine, record.incarnation)
    head: EventId | None = None
    for _, event in kept_events(store, plan.spans):
        if (event.header.machine, event.header.incarnation) == own:
            head = event.id
    return Chain(
        machine=machine,
        incarnation=record.incarnation,
        epoch=record.epoch,
        seq=Seq(plan.tips.get(own, -1) + 1),
        head=head,
        clock=Clock(plan.clock + plan.reserved),
    )


def _write(
    ports: Ports, bodies: list[Repaired], blobs: dict[BlobId, bytes], chain: Chain
) -> Iterator[Line]:
    time, batch = ports.clock.now(), chain.seq
    made = salts(ports.randomness.token(len(bodies) * SALT_BYTES))
    for number, (body, salt) in enumerate(zip(bodies, made, strict=False)):
        if number % AT_ONCE == 0:
            batch = chain.seq
        line = write_line(body, blobs, chain=chain, batch=batch, time=time, salt=salt)
        chain = line.chain
        yield line


def _new_manifest(store: Store, record: LedgerRecord, machine: MachineId) -> manifest.Manifest:
    """The manifest as the log and the ledger give it. Raises: FormatError `repair_refused`."""
    name = None
    for _, event in events_of(store):
        if isinstance(event, Event) and event.id == record.capsule:
            name = event.body.name if isinstance(event.body, Created | Forked) else None
    if name is None:
        raise FormatError(
            "the log does not hold the event that gave the capsule its id",
            code="repair_refused",
            state="Nothing was changed.",
            hint="Put manifest.json back from a copy.",
            file=layout.MANIFEST,
        )
    return manifest.Manifest(
        capsule=record.capsule,
        epoch=record.epoch,
        features=manifest.Features(optional=(), required=()),
        files={},
        format=manifest.CURRENT,
        holder=machine,
        name=name,
        timeline=manifest.TimelineMark(heads=(), length=0, sha256=blob_id(b"")),
    )
