"""Judges a capsule that arrived in staging: what it is, and how it stands to what is here.

docs/format.md#archive. Everything is data: nothing of it runs, and nothing of it is trusted.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Literal, TypeAlias

import msgspec

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.seals import SealSeen
from sojourn.drive.reading import Folded, fold_capsule, items_of
from sojourn.errors import FormatError
from sojourn.format import environment, layout, snapshot
from sojourn.format.event import Event
from sojourn.format.manifest import Manifest, Seal
from sojourn.format.signature import Signed
from sojourn.format.working_memory import compare
from sojourn.ids import Epoch, EventId, Incarnation, MachineId
from sojourn.ports import Store

Relation: TypeAlias = Literal["new", "same", "older", "newer", "parted"]
"""How an archive stands to the capsule of the same id here: `parted` when each has events that the
other lacks."""

Doubt: TypeAlias = Literal["older_copy", "signature_stripped", "other_signer"]

DOUBTS: Final[dict[Doubt, str]] = {
    "older_copy": "this machine knows a newer state of this capsule than the archive holds",
    "signature_stripped": "this capsule was signed when this machine last met it, and is not now",
    "other_signer": "this capsule was signed with another key when this machine last met it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """A sealed capsule in staging, verified and folded.

    `machines` wrote its events, from `first_time` to `last_time` as their clocks said.
    """

    manifest: Manifest
    seal: Seal
    manifest_digest: str
    folded: Folded
    environment: environment.Environment
    entries: int
    workspace_bytes: int
    machines: tuple[MachineId, ...]
    first_time: str | None

    @property
    def epoch(self) -> Epoch:
        """The highest epoch of the capsule that log or manifest name."""
        capsule = self.manifest.capsule
        logged = self.folded.ending.epochs.get(capsule, self.manifest.epoch)
        return max(logged, self.manifest.epoch)


def arrived(store: Store) -> Arrived:
    """What lies in staging; its bytes were verified already.

    Raises: FormatError `archive_live` when it is not sealed, `projection_differs` when a file is
    not what the log gives.
    """
    folded = fold_capsule(store, None, same_boot=True)
    found = folded.manifest
    if folded.manifest_error is not None:
        raise folded.manifest_error
    if found is None or found.seal is None:
        raise FormatError("the archive does not hold a sealed capsule", code="archive_live")
    survey = _surveyed(store)
    listing = store.read_file(layout.SNAPSHOT) or b""
    check_projections(store, folded)
    entries = snapshot.load(listing).entries
    return Arrived(
        manifest=found,
        seal=found.seal,
        manifest_digest=sha256(store.read_file(layout.MANIFEST) or b"").hexdigest(),
        folded=folded,
        environment=environment.load(store.read_file(layout.SPEC) or b""),
        entries=len(entries),
        workspace_bytes=sum(entry.size or 0 for entry in entries),
        machines=tuple(sorted(survey.machines)),
        first_time=survey.first_time,
    )


def relation(found: Arrived, *, arrived_in: Store, here: Store | None) -> Relation:
    """How it stands to the capsule of the same id in `here`, None when there is none."""
    if here is None:
        return "new"
    theirs = {head.id for head in found.folded.ending.heads}
    ours = {head.id for head in fold_capsule(here, None, same_boot=True).ending.heads}
    we_have, they_have = _holds(here, theirs), _holds(arrived_in, ours)
    if we_have and they_have:
        return "same"
    if we_have:
        return "older"
    return "newer" if they_have else "parted"


def doubts(
    found: Arrived, *, arrived_in: Store, record: LedgerRecord | None, signed: Signed | None
) -> tuple[Doubt, ...]:
    """What this machine's own memory of the capsule says against the archive."""
    if record is None:
        return ()
    seen = record.sealed
    known = {head.id for head in seen.heads} | ({record.tip.last} - {None})
    made: list[Doubt] = []
    newer = seen.number > found.seal.number or record.floor > found.epoch
    if newer or not _holds(arrived_in, {id for id in known if id is not None}):
        made.append("older_copy")
    if seen.signer is not None and signed is None:
        made.append("signature_stripped")
    elif seen.signer is not None and signed is not None and signed.fingerprint != seen.signer:
        made.append("other_signer")
    return tuple(made)


def record_after(
    found: Arrived,
    *,
    before: LedgerRecord | None,
    folder: str,
    workspace: str,
    incarnation: Incarnation,
    signed: Signed | None,
    doubtful: Collection[Doubt],
) -> LedgerRecord:
    """What the ledger remembers after the import: the capsule lies here and is not held.

    A record that holds the capsule goes on doing so, unless something speaks against the archive;
    what a move left in it stays.
    """
    epoch = found.epoch
    if before is None:
        before = LedgerRecord(
            capsule=found.manifest.capsule,
            incarnation=incarnation,
            state="NONE",
            epoch=epoch,
            floor=epoch,
            folder=folder,
            workspace=workspace,
        )
    after = msgspec.structs.replace(before, folder=folder, floor=Epoch(max(before.floor, epoch)))
    if after.state in ("FROZEN", "IN_DOUBT", "RETIRED"):
        return after
    if doubtful:
        return msgspec.structs.replace(after, state="SUSPECT", reason=next(iter(doubtful)))
    seen = SealSeen(
        number=found.seal.number,
        manifest=found.manifest_digest,
        signer=before.sealed.signer if signed is None else signed.fingerprint,
        heads=found.manifest.timeline.heads,
    )
    return msgspec.structs.replace(after, seal=seen)


@dataclass(slots=True)
class _Survey:
    machines: set[MachineId] = field(default_factory=set[MachineId])
    first_time: str | None = None


def _events(store: Store) -> Iterator[Event]:
    return (item for item in items_of(store) if isinstance(item, Event))


def _surveyed(store: Store) -> _Survey:
    survey = _Survey()
    for event in _events(store):
        survey.machines.add(event.header.machine)
        survey.first_time = survey.first_time or event.header.time
    return survey


def _holds(store: Store, wanted: set[EventId]) -> bool:
    """Whether the log has all these events."""
    left = set(wanted)
    for event in _events(store) if left else ():
        left.discard(event.id)
        if not left:
            break
    return not left


def check_projections(store: Store, folded: Folded) -> None:
    """Guard: memory, snapshot and environment are what the log gives, so no copy is believed.

    Raises: FormatError `projection_differs`.
    """
    if compare(folded.memory, store.read_file(layout.WORKING_MEMORY) or b"") != "equal":
        raise _differs(layout.WORKING_MEMORY)
    listing = store.read_file(layout.SNAPSHOT) or b""
    if sha256(listing).hexdigest() != folded.snapshots.result:
        raise _differs(layout.SNAPSHOT)
    if folded.environment is None:
        return
    named = {file.path: file.blob.sha256 for file in folded.environment.files}
    start = f"{layout.ENVIRONMENT}/"
    there = {
        path: mark.sha256
        for path, mark in (folded.manifest.files.items() if folded.manifest is not None else ())
        if path.startswith(start)
    }
    if named != there:
        raise _differs(layout.SPEC)


def _differs(path: str) -> FormatError:
    return FormatError(
        f"{path} is not what the log gives",
        code="projection_differs",
        state="Nothing was imported.",
        hint="Get the archive again from where it came from.",
        file=path,
    )
