"""Merges another capsule into one that is held here (docs/protocol.md#merge).

The log is replaced in one step, and at every moment before and after it manifest and ledger name
only what both the old and the merged log begin with, so a crash anywhere leaves a sound capsule.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from sojourn.core.ledger_record import LedgerRecord, LedgerTip
from sojourn.core.merge import check_origin, merge
from sojourn.core.placed import place
from sojourn.drive.compare import Comparison, compare
from sojourn.drive.hold import Hold
from sojourn.drive.machine import Merger, Ports
from sojourn.drive.observe import Observer
from sojourn.drive.opening import hold_capsule
from sojourn.drive.reading import (
    SPLITS,
    Folded,
    ending_of,
    fold_capsule,
    read_manifest,
)
from sojourn.errors import FormatError, HeldElsewhereError, LimitError, UsageError
from sojourn.format import layout, manifest
from sojourn.format.body import Head
from sojourn.format.failures import stops_running
from sojourn.ids import BlobId, CapsuleId, Epoch
from sojourn.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge brought, or would bring; `stopped` says why it does not run before a claim.

    `notes` counts the texts that the working memory holds, 1 where the edits agree.
    """

    capsule: CapsuleId
    other: CapsuleId
    comparison: Comparison
    done: bool = False
    blobs: int = 0
    redacted: int = 0
    notes: int = 1
    stopped: str | None = None


async def merge_capsules(
    ports: Ports, folder: str, other: str, *, dry_run: bool, observer: Observer
) -> Merged:
    """Take into the capsule in `folder` all that the one in `other` has; both are absolute.

    Raises: UsageError `other_lineage`, `same_folder`, `turn_open`; HeldElsewhereError; FormatError
    when the other is damaged; StorageError. Unless `StorageError`, nothing was changed.
    """
    if not ports.is_other_folder(other, folder):
        raise UsageError(
            "a capsule cannot be merged into itself",
            code="same_folder",
            state="Nothing was changed.",
            hint="Name two folders.",
        )
    source = ports.store_at(other)
    if dry_run:
        target = ports.store_at(folder)
        check_origin(_first_line(target), _first_line(source))
        theirs = _sound(source, other)
        length = target.size()
        return _survey(read_manifest(target).capsule, theirs, target, length, source)
    check_origin(_first_line(ports.store_at(folder)), _first_line(source))
    async with hold_capsule(ports, folder, observer=observer) as hold:
        _check_at_rest(hold)
        theirs = _sound(source, other)
        _check_free(ports, hold.capsule, theirs)
        length = hold.store.size()
        found = _survey(hold.capsule, theirs, hold.store, length, source)
        if not found.comparison.theirs:
            return found
        merger = ports.merger_at(folder, other)
        try:
            found = await _merge(ports, hold, merger, source, theirs, found, observer)
        finally:
            merger.drop()
    return await _finish(ports, folder, found, observer)


def _first_line(store: Store) -> bytes | None:
    """The line with the event that made the capsule, without its 0x0A."""
    found = b"".join(store.read_log(0, layout.MAX_LINE))
    end = found.find(b"\n")
    return None if end < 0 else found[:end]


def _check_at_rest(hold: Hold) -> None:
    state = hold.state
    if state.turn is None or state.paused is not None:
        return
    raise UsageError(
        "the agent's turn is open; a merge needs it at rest or paused",
        code="turn_open",
        state="Nothing was changed.",
        hint="Let it come to rest with `sojourn resume`, then merge.",
        exit_code=6,
    )


def _check_free(ports: Ports, ours: CapsuleId, theirs: Folded) -> None:
    """A fork has a lock of its own; any other copy is locked by ours."""
    capsule = theirs.capsule
    held = None if capsule in (None, ours) else ports.lock.holder(CapsuleId(capsule))
    if held is not None:
        raise HeldElsewhereError(
            f"the other capsule is in use here: {held.command} (pid {held.pid}) since {held.since}",
            state="Nothing was changed.",
            hint="Merge when it rests.",
        )


def _sound(source: Store, folder: str) -> Folded:
    """The other capsule, read whole. Raises: FormatError when it is not sound."""
    folded = fold_capsule(source, None, same_boot=False)
    if folded.manifest_error is not None:
        raise folded.manifest_error
    if folded.manifest is not None and manifest.access(folded.manifest) == "read":
        raise FormatError(
            "the other capsule was written in a newer format than this version can write",
            code="write_version_newer",
            hint="Merge with the version that wrote it, or a newer one.",
        )
    for damage in folded.ending.damages:
        if stops_running(damage.code) and damage.code not in SPLITS:
            raise FormatError(
                f"the other capsule is damaged: {damage.message}",
                code=damage.code,
                hint=f"`sojourn verify {folder}` names every file and line that is wrong.",
                file=f"{folder}/{layout.TIMELINE}",
                line=damage.line or None,
            )
    return folded


def _survey(
    capsule: CapsuleId, theirs: Folded, target: Store, length: int, source: Store
) -> Merged:
    comparison = compare(target.read_log(0, length), source.read_log(0, theirs.ending.length))
    return Merged(capsule=capsule, other=theirs.capsule or capsule, comparison=comparison)


async def _merge(
    ports: Ports,
    hold: Hold,
    merger: Merger,
    source: Store,
    theirs: Folded,
    found: Merged,
    observer: Observer,
) -> Merged:
    """Blobs, the staged log, manifest, ledger, the log: in this order (docs/protocol.md#merge)."""
    ends = (hold.store.size(), theirs.ending.length)
    gone = hold.gone | theirs.ending.gone
    lacking = merger.lacking(gone.redacted)
    merger.copy(lacking, progress=lambda done, total: _tell(observer, done, total))
    observer.note("merging the logs")
    logs = (hold.store.read_log(0, ends[0]), source.read_log(0, ends[1]))
    merger.stage(merge(*logs, redacted=gone.events))
    observer.note("checking the merged log")
    stopped = _verify(merger.staged(), hold.store)
    ports.lock.check(hold.capsule)
    await _name_only_the_first(ports, hold, _raised(hold.record, found.comparison))
    merger.install()
    merger.discard(gone.redacted)
    return replace(found, done=True, blobs=len(lacking), redacted=len(gone.events), stopped=stopped)


def _tell(observer: Observer, done: int, total: int) -> None:
    if total:
        observer.note(f"copied {done:,} of {total:,} blobs")


def _verify(pieces: Iterator[bytes], store: Store) -> str | None:
    """Read what is about to take the log's place; why it will not run, None when it will.

    Raises: FormatError when it is not sound.
    """
    stopped: str | None = None
    for damage in ending_of(pieces, store).damages:
        if damage.code in SPLITS:
            stopped = stopped or damage.code
        elif stops_running(damage.code):
            raise FormatError(
                f"the merged log would not be sound: {damage.message}",
                code=damage.code,
                hint="Verify both capsules; the one that is wrong is named there.",
                file=layout.TIMELINE,
                line=damage.line or None,
            )
    return stopped


def _raised(record: LedgerRecord, comparison: Comparison) -> LedgerRecord:
    """The record with an epoch above all that the other capsule brings.

    Raises: LimitError `epoch_limit`.
    """
    highest = max(part.epoch for part in comparison.theirs)
    if highest < record.epoch:
        return record
    if highest >= layout.MAX_INT:
        raise LimitError(
            f"the other capsule names epoch {highest}, and there is none above it",
            code="epoch_limit",
            state="Nothing was changed.",
            hint="Nobody raises an epoch that far: its log was made to mislead.",
        )
    epoch = Epoch(highest + 1)
    return msgspec.structs.replace(record, epoch=epoch, floor=Epoch(max(record.floor, epoch)))


async def _name_only_the_first(ports: Ports, hold: Hold, record: LedgerRecord) -> None:
    """Manifest and ledger name the first line alone: it begins the old log and the merged one."""
    line = _first_line(hold.store)
    if line is None:
        raise FormatError("the log is empty", code="identity_missing", file=layout.TIMELINE)
    first = place(line)
    mark = first.mark
    head = Head(machine=mark.machine, incarnation=mark.incarnation, seq=mark.seq, id=first.id)
    data = line + b"\n"
    timeline = manifest.TimelineMark(
        heads=(head,), length=len(data), sha256=BlobId(sha256(data).hexdigest())
    )
    written = manifest.encode(msgspec.structs.replace(read_manifest(hold.store), timeline=timeline))
    await hold.store.replace_file(layout.MANIFEST, written)
    digest = sha256(written).hexdigest()
    tip = LedgerTip(length=len(data), last=first.id, manifest=digest)
    ports.ledger.save(msgspec.structs.replace(record, tip=tip))


async def _finish(ports: Ports, folder: str, found: Merged, observer: Observer) -> Merged:
    """Open the merged capsule as any opening does: notes, manifest and ledger follow the log.

    One that stops running keeps a manifest that names its first line, until it is claimed.
    """
    if found.stopped is not None:
        return found
    async with hold_capsule(ports, folder, observer=observer) as hold:
        return replace(found, notes=len(hold.memory.versions))
