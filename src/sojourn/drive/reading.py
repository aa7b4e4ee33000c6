"""Reads a capsule from its first line to its last and folds it; writes nothing.

The same reading serves looking and holding, so nobody sees another log than the one that runs.
"""

import gc
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.strands import ChainKey
from sojourn.core.tenure import Evidence
from sojourn.core.turn_state import TurnState
from sojourn.core.turn_states import TurnStates
from sojourn.core.view import Transcript
from sojourn.errors import FormatError
from sojourn.format import layout
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.event import EnvironmentChanged, Event, Memory
from sojourn.format.failures import stops_running
from sojourn.format.gone import Gone
from sojourn.format.manifest import Manifest, access, check, known, load
from sojourn.format.parts import BlobRef
from sojourn.format.snapshot_fold import Snapshots
from sojourn.format.timeline_read import Damage, Ending, Item, Known, Reader
from sojourn.format.working_memory import Fold, add, hide
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId, MachineId
from sojourn.ports import Store

KEPT = frozenset((Memory, EnvironmentChanged, Snapshotted, type(None)))
"""Bodies that are folded here."""

TAIL_CODES = ("log_shorter", "log_replaced")
"""Failures that say that the log is not the one that was seen here before."""


@dataclass(slots=True, kw_only=True)
class Folded:
    """A capsule's log as read and folded; `manifest_error` says why there is no manifest.

    `state` is that of the chain `own`, by which the capsule is held; `states` has those of all.
    """

    manifest: Manifest | None
    manifest_error: FormatError | None
    own: ChainKey | None
    state: TurnState
    states: TurnStates
    transcript: Transcript
    memory: Fold
    environment: EnvironmentChanged | None
    snapshots: Snapshots
    ending: Ending
    last_time: str | None

    @property
    def capsule(self) -> CapsuleId | None:
        """The id that the manifest names; without one, that of the log's last identity event."""
        return self.state.capsule if self.manifest is None else self.manifest.capsule


def read_manifest(store: Store) -> Manifest:
    """The live manifest.

    Raises: FormatError by the failure's name (docs/format.md#manifest).
    """
    data = store.read_file(layout.MANIFEST)
    if data is None:
        raise FormatError(
            "the capsule has no manifest.json",
            code="manifest_missing",
            state="Nothing was changed.",
            hint="Look with `sojourn verify`; it names every file that is wrong.",
            file=layout.MANIFEST,
        )
    return load(data)


def fold_capsule(store: Store, record: LedgerRecord | None, *, same_boot: bool) -> Folded:
    """Read, verify and fold the whole log; damage is in the ending, never raised."""
    try:
        manifest, manifest_error = read_manifest(store), None
    except FormatError as error:
        manifest, manifest_error = None, error
    seen: list[Known] = [] if manifest is None else [known(manifest)]
    if record is not None and record.tip.length:
        seen.append(Known(length=record.tip.length, last=record.tip.last))
    folding, ending = _fold(store, seen, same_boot=same_boot, wanted=frozenset())
    if folding.states.missing:
        wanted = frozenset(folding.states.missing)
        folding, ending = _fold(store, seen, same_boot=same_boot, wanted=wanted)
    own = _own_chain(folding.states, manifest, record)
    folding.transcript.own = own
    return Folded(
        manifest=manifest,
        manifest_error=manifest_error,
        own=own,
        state=folding.states.state(own),
        states=folding.states,
        transcript=folding.transcript,
        memory=folding.memory,
        environment=folding.environment(own),
        snapshots=folding.snapshots,
        ending=ending,
        last_time=folding.last_time,
    )


def _fold(
    store: Store, seen: Sequence[Known], *, same_boot: bool, wanted: frozenset[EventId]
) -> "tuple[Folding, Ending]":
    folding = Folding(store, wanted)
    reader = Reader(known=seen, read_blob=lambda ref: blob_or_none(store, ref))
    with _uncollected():
        for chunk in store.read_log():
            folding.take(reader.feed(chunk))
        ending = reader.finish(same_boot=same_boot)
        folding.take(ending.rest)
    return folding, ending


@contextmanager
def _uncollected() -> Generator[None]:
    """What a fold makes is kept, so a search for garbage in it, over and over, finds nothing."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _own_chain(
    states: TurnStates, manifest: Manifest | None, record: LedgerRecord | None
) -> ChainKey | None:
    """The chain by which the capsule is held, as ledger and manifest say; None: as the log says."""
    if manifest is None:
        return None
    if (
        record is not None
        and states.strands.of_chain(held := (manifest.holder, record.incarnation)) is not None
    ):
        return held
    return states.strands.of_holder(manifest.holder, manifest.capsule)


class Folding:
    """All folds of a log at once."""

    def __init__(self, store: Store, wanted: frozenset[EventId]) -> None:
        self._store = store
        self.states = TurnStates(wanted)
        self.transcript = Transcript()
        self.memory = Fold()
        self._environments: list[EnvironmentChanged | None] = []
        self.snapshots = Snapshots()
        self.last_time: str | None = None

    def take(self, found: Iterable[Event | Damage]) -> None:
        take, apply, last = self.states.apply, self.transcript.apply, None
        for event in found:
            if isinstance(event, Damage):
                continue
            at, last = take(event), event
            if at == len(self._environments):
                self._go_on(at)
            apply(event)
            if type(event.body) in KEPT:
                self._keep(at, event)
        if last is not None:
            self.last_time = last.header.time

    def _go_on(self, at: int) -> None:
        """A new strand knows the files of the one that it goes on from."""
        before = self.states.strands.newest_of(at)
        self._environments.append(None if before is None else self._environments[before])

    def _keep(self, at: int, event: Event) -> None:
        body = event.body
        if isinstance(body, Memory):
            self.memory = add(self.memory, body, read_text=self._text)
        elif isinstance(body, EnvironmentChanged):
            self._environments[at] = body
        elif isinstance(body, Snapshotted):
            self.snapshots.add(event.id, body)
        elif event.header.kind == "memory":
            self.memory = hide(self.memory)

    def environment(self, own: ChainKey | None) -> EnvironmentChanged | None:
        """The files of `environment/` as the own chain knows them; without one, who counts most."""
        strands = self.states.strands
        at = strands.of_chain(own)
        if at is None:
            at = max(range(len(self._environments)), key=strands.rank, default=None)
        return None if at is None else self._environments[at]

    def _text(self, ref: BlobRef) -> str:
        return (blob_or_none(self._store, ref) or b"").decode("utf-8", "replace")


def items_of(store: Store, end: int | None = None) -> Iterator[Item]:
    """What the first `end` bytes of the log give: its events, and what is wrong with its lines."""
    reader = Reader(read_blob=lambda ref: blob_or_none(store, ref))
    for chunk in store.read_log(0, end):
        yield from reader.feed(chunk)
    yield from reader.finish(same_boot=True).rest


def ending_of(pieces: Iterable[bytes], store: Store) -> Ending:
    """How a log ends that is about to take the place of the store's."""
    reader = Reader(read_blob=lambda ref: blob_or_none(store, ref))
    for piece in pieces:
        reader.feed(piece)
    return reader.finish(same_boot=True)


def blob_or_none(store: Store, ref: BlobRef) -> bytes | None:
    """The verified bytes, None when there are none."""
    try:
        return store.read_blob(ref.sha256)
    except FormatError:
        return None


GONE = b"[This content is gone: it was redacted, or lost and recorded as lost.]"
"""What stands for a blob whose absence the log accounts for."""


def read_blobs(store: Store, blobs: Iterable[BlobId], *, gone: Gone) -> dict[BlobId, bytes]:
    """The verified bytes of each; those of `gone` that are not there are words that say so.

    Raises: FormatError `blob_missing` or `blob_altered`.
    """
    return {
        blob: GONE if blob in gone and not store.has_blob(blob) else store.read_blob(blob)
        for blob in blobs
    }


SPLITS = ("equivocation", "divergence")
"""Failures that are no damage: nothing is missing, and a person can choose (claim)."""


def evidence_of(
    folded: Folded,
    *,
    folder: str,
    record: LedgerRecord | None,
    ledger_failure: str | None,
    machine: MachineId | None,
    old_folder: bool,
    network: str | None,
) -> Evidence:
    """What bears on whether this machine may append to the capsule in `folder`."""
    ending, manifest = folded.ending, folded.manifest
    codes: list[str] = [damage.code for damage in ending.damages if stops_running(damage.code)]
    if folded.manifest_error is not None:
        codes.append(folded.manifest_error.code)
    if manifest is not None:
        codes.extend(found.code for found in check(manifest, identities=ending.identities))
    replaced = any(code in TAIL_CODES for code in codes)
    capsule = folded.capsule or CapsuleId("")
    epochs = [ending.epochs.get(capsule, Epoch(0))]
    if manifest is not None:
        epochs.append(manifest.epoch)
    return Evidence(
        capsule=capsule,
        folder=folder,
        record=record,
        ledger_failure=ledger_failure,
        old_folder=old_folder,
        length=ending.length,
        at_tip=None if record is None or replaced else record.tip.last,
        highest_epoch=Epoch(max(epochs)),
        mine=any(chain.machine == machine for chain in ending.chains),
        begun=record is None
        or any(chain.incarnation == record.incarnation for chain in ending.chains),
        read_only_format=manifest is not None and access(manifest) == "read",
        damage=next((code for code in codes if code not in (*TAIL_CODES, *SPLITS)), None),
        equivocation="equivocation" in codes,
        divergence="divergence" in codes,
        network=network,
    )
