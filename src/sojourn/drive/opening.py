"""Opens a capsule for running, step by step as docs/protocol.md#holding says."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sojourn.core.ledger_record import LedgerRecord
from sojourn.core.migration import step
from sojourn.core.migration_values import Here, Woke
from sojourn.core.tenure import Evidence, MayLook, admit
from sojourn.drive import snapshots
from sojourn.drive.begin import begin_tenure
from sojourn.drive.environment import environment_files, read_environment
from sojourn.drive.hold import Hold
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.reading import Folded, evidence_of, fold_capsule, read_manifest
from sojourn.drive.unseal import unseal
from sojourn.errors import (
    DecisionError,
    FormatError,
    HeldElsewhereError,
    LimitError,
    SojournError,
)
from sojourn.format import environment, index, layout
from sojourn.format.blob import blob_id, ref
from sojourn.format.event import Cut, EnvironmentChanged, LockFile
from sojourn.format.working_memory import MAX_EDIT, compare
from sojourn.ids import CapsuleId, MachineId
from sojourn.ports import HeldBy, Store
from sojourn.ports_workspace import Progress


def refusal(admission: MayLook) -> SojournError:
    """The error for a capsule that may only be looked at."""
    if admission.code == "damaged":
        return FormatError(admission.message, code=admission.code, hint=admission.hint)
    return HeldElsewhereError(
        admission.message,
        code=admission.code,
        state="The capsule can be looked at; it was not opened for running.",
        hint=admission.hint,
    )


def ledger_record(
    ports: Ports, capsule: CapsuleId, *, recover: bool
) -> tuple[LedgerRecord | None, str | None]:
    """The record, or the name of the failure that keeps it from being read."""
    try:
        load = ports.ledger.recover if recover else ports.ledger.load
        return load(capsule), None
    except FormatError as error:
        return None, error.code


def own_id(ports: Ports) -> MachineId | None:
    """This machine's id; None while its key is that of another host or cannot be read."""
    try:
        return ports.key.machine()
    except (DecisionError, FormatError):
        return None


def examine(
    ports: Ports, store: Store, folder: str, *, left: HeldBy | None, recover: bool
) -> tuple[Folded, Evidence]:
    """Fold the capsule in `folder`, and gather what bears on whether this machine may run it."""
    record, failure = None, None
    try:
        capsule = read_manifest(store).capsule
    except FormatError:
        capsule = None
    if capsule is not None:
        record, failure = ledger_record(ports, capsule, recover=recover)
    same_boot = left is None or left.boot == ports.boot
    folded = fold_capsule(store, record, same_boot=same_boot)
    return folded, evidence_of(
        folded,
        folder=folder,
        record=record,
        ledger_failure=failure,
        machine=own_id(ports),
        old_folder=record is not None and ports.is_other_folder(record.folder, folder),
        network=ports.network_at(folder),
    )


def here_of(ports: Ports, capsule: CapsuleId, *, boot: str = "") -> Here:
    """Where a step of a move is taken by this process, with fresh randomness."""
    return Here(
        machine=ports.key.machine(),
        capsule=capsule,
        boot=boot,
        fresh=ports.randomness.token(16).hex(),
    )


def thaw(ports: Ports, capsule: CapsuleId) -> None:
    """Under the capsule's lock: a move whose mover died before the point of no return is over.

    The target is told later, by whoever asks about moves next. Raises: StorageError.
    """
    record, _ = ledger_record(ports, capsule, recover=False)
    if record is None or record.state != "FROZEN":
        return
    record, _ = ledger_record(ports, capsule, recover=True)
    ready = step(record, Woke(), here_of(ports, capsule))
    if ready.record is not None and ready.record != record:
        ports.ledger.save(ready.record)


@asynccontextmanager
async def hold_capsule(ports: Ports, folder: str, *, observer: Observer) -> AsyncGenerator[Hold]:
    """Hold the capsule in `folder`; on leaving, manifest and ledger are brought up to date.

    Raises: HeldElsewhereError when another process has it or this machine may not run it;
    FormatError when it is damaged; StorageError when a durable write failed.
    """
    store = ports.store_at(folder)
    capsule = read_manifest(store).capsule
    with ports.lock.acquire(capsule) as left:
        thaw(ports, capsule)
        folded, evidence = examine(ports, store, folder, left=left, recover=True)
        admission = admit(evidence)
        if isinstance(admission, MayLook):
            if admission.remember is not None:
                ports.ledger.save(admission.remember)
            raise refusal(admission)
        if admission.moved:
            ports.ledger.save(admission.record)
        async with opened(ports, store, folded, admission.record, left, observer) as hold:
            yield hold


@asynccontextmanager
async def opened(
    ports: Ports,
    store: Store,
    folded: Folded,
    record: LedgerRecord,
    left: HeldBy | None,
    observer: Observer,
    *,
    progress: Progress | None = None,
) -> AsyncGenerator[Hold]:
    """Hold a capsule that `record`, which is durable, says is held here; under its lock.

    `progress` is told of the workspace that an unfinished claim fills. Raises: as `hold_capsule`.
    """
    machine = ports.key.machine()
    hold = await _recover(ports, store, folded, record, left, machine, observer, progress)
    try:
        yield hold
        await hold.refresh()
    finally:
        store.close()


async def _recover(
    ports: Ports,
    store: Store,
    folded: Folded,
    record: LedgerRecord,
    left: HeldBy | None,
    machine: MachineId,
    observer: Observer,
    progress: Progress | None,
) -> Hold:
    arrived = None if record.travels is None else record.travels.arrived
    capsule, release = record.capsule, ports.release
    if left is not None or record.claim is not None or release.died_reading(capsule):
        store.sweep()
        release.end_reading(capsule)
    if folded.manifest is not None and folded.manifest.seal is not None:
        await unseal(store, folded.manifest)
        observer.note("the capsule was sealed; it is live again, without its signature and sums")
    cut = await _settle(store, folded, _known(folded, record), unclean=left is not None)
    ended = ports.sandbox_for(folded.state.capsule or CapsuleId("")).end_left_behind()
    if ended:
        what = "1 process" if len(ended) == 1 else f"{len(ended)} processes"
        observer.note(f"ended {what} that an earlier run left behind")
    hold = Hold(
        ports=ports,
        store=store,
        record=record,
        folded=folded,
        machine=machine,
        observer=observer,
    )
    workspace = ports.workspace_at(hold.capsule, record.folder, record.workspace)
    await begin_tenure(hold, folded, workspace, observer, progress=progress)
    if ports.rewriter_at(record.folder).discard(folded.ending.gone.redacted):
        observer.note("removed blobs that were redacted")
    for path in ports.inbox.set_aside(hold.capsule):
        observer.note(f"a file of the inbox is no message that can be read; it is kept as {path}")
    if cut is not None:
        hold.draft(cut)
        observer.note("cut a torn tail from the log; its bytes are kept as a blob")
    await _restore(store, folded, observer)
    await _hand_edits(hold, store, folded, observer)
    await _sent_edits(ports, hold)
    if arrived is not None:
        ports.landing.live(ports.landing.at(hold.capsule, arrived.move))
    ports.lock.settled(hold.capsule)
    return hold


def _known(folded: Folded, record: LedgerRecord) -> int:
    """How much of the log was durable before: by this machine's word, or by who held it before."""
    if record.claim is None or folded.manifest is None:
        return record.tip.length
    return folded.manifest.timeline.length


async def _settle(store: Store, folded: Folded, known: int, *, unclean: bool) -> Cut | None:
    """Cut a torn tail, and write again what may never have reached the disk (B2)."""
    torn, length = folded.ending.torn, folded.ending.length
    if torn is None:
        if unclean:
            await store.settle_log(start=min(known, length), length=length)
        return None
    data = b"".join(store.read_log(torn.offset, torn.offset + torn.length))
    blob = ref(data, media_type="application/octet-stream")
    await store.put_blobs({blob_id(data): data})
    await store.settle_log(start=min(known, length), length=length)
    return Cut(offset=torn.offset, blob=blob, reason=torn.reason)


async def _restore(store: Store, folded: Folded, observer: Observer) -> None:
    """Make files again that are gone and that the log gives."""
    await snapshots.mend(store, folded.snapshots, observer)
    wanted = {layout.INDEX: index.EMPTY}
    files = () if folded.environment is None else folded.environment.files
    spec = next((file.blob.sha256 for file in files if file.path == layout.SPEC), None)
    gone = [name for name in (*wanted, layout.SPEC) if store.read_file(name) is None]
    if spec is not None and layout.SPEC in gone and store.has_blob(spec):
        wanted[layout.SPEC] = store.read_blob(spec)
    for name in gone:
        if name in wanted:
            await store.replace_file(name, wanted[name])
            observer.note(f"{name} was gone and was made again from the log")


async def _hand_edits(hold: Hold, store: Store, folded: Folded, observer: Observer) -> None:
    """Files that people edit: what they changed becomes an event of the log (F6, F7)."""
    data = store.read_file(layout.WORKING_MEMORY)
    match compare(folded.memory, data or b""):
        case "equal":
            pass
        case "stale":
            text = hold.text(folded.memory.text)
            await store.replace_file(layout.WORKING_MEMORY, text.encode())
        case "hand_edit":
            _take_hand_edit(hold, data or b"")
            observer.note("working_memory.md was edited by hand; the edit is in the log now")
    if _environment_changed(hold, store, folded.environment):
        observer.note("the files of environment/ changed; the change is in the log now")


async def _sent_edits(ports: Ports, hold: Hold) -> None:
    """Edits of the notes that were accepted while nobody held the capsule; then all is durable."""
    edits = [item for item in ports.inbox.items(hold.capsule) if item.message.kind == "memory"]
    for item in edits:
        hold.remember(item.message.text, origin="hand", before=item.message.before)
    await hold.refresh()
    for item in edits:
        ports.inbox.remove(hold.capsule, item)


def _take_hand_edit(hold: Hold, data: bytes) -> None:
    if len(data) > MAX_EDIT:
        raise LimitError(
            f"working_memory.md has {len(data):,} bytes, more than {MAX_EDIT:,}",
            code="memory_too_long",
            state="Nothing was changed; the file is as it was left.",
            hint="Shorten it and open the capsule again.",
            file=layout.WORKING_MEMORY,
        )
    try:
        written = data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            "working_memory.md is not UTF-8 text",
            code="not_utf8",
            state="Nothing was changed; the file is as it was left.",
            hint="Save the file as UTF-8 and open the capsule again.",
            file=layout.WORKING_MEMORY,
        ) from error
    hold.remember(written, origin="hand")


def _environment_changed(hold: Hold, store: Store, before: EnvironmentChanged | None) -> bool:
    """Draft the files of `environment/` as they are now, unless the log names just these.

    Raises: FormatError with file and line when the spec is not one; nothing is recorded then.
    """
    known = {} if before is None else {file.path: file.blob.sha256 for file in before.files}
    found = environment_files(store)
    if known == {name: blob_id(data) for name, data in found.items()}:
        return False
    read_environment(found)
    files = tuple(
        LockFile(path=name, blob=hold.keep(data, media_type="application/octet-stream"))
        for name, data in found.items()
    )
    environment.check_files(files)
    hold.draft(EnvironmentChanged(files=files))
    return True
