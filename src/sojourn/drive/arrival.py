"""One capsule that arrives: what is still lacking of it, and the check of all that came.

docs/moving.md#prepare. What is checked as it comes is not read again; what comes before the source
is frozen is put into place already, so that little is left to do afterwards.
"""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec

from sojourn.core.migration_messages import Offer, Problem, Wanted
from sojourn.core.migration_records import Slot
from sojourn.core.migration_values import Checked
from sojourn.drive.importing import check_projections
from sojourn.drive.machine import Ports
from sojourn.drive.reading import Folded, fold_capsule, read_manifest
from sojourn.drive.snapshots import absent, carry_out, refuse_conflicts
from sojourn.errors import FormatError, MigrationError, SojournError, StorageError
from sojourn.format import index, layout, manifest, seal, snapshot
from sojourn.format.manifest import Manifest
from sojourn.format.snapshot import EMPTY, Snapshot
from sojourn.format.timeline_read import Ending
from sojourn.ids import BlobId, CapsuleId, MachineId, MoveId
from sojourn.ports import Store
from sojourn.ports_move import Landing, Piece

Judge: TypeAlias = Callable[[Folded, Store], Awaitable[tuple[Problem, ...]]]
"""Says how far this machine is fit to run what arrived: secrets, tools, model, environment."""

EMPTY_HASH: Final = BlobId(sha256(b"").hexdigest())
NO_LOG: Final = manifest.TimelineMark(heads=(), length=0, sha256=EMPTY_HASH)

MOST_FILES: Final = 1 << 20
"""Files that one capsule may bring."""

MOST_LEFT_OUT: Final = 100
"""Paths that a record names; an event counts the rest."""


@dataclass(slots=True, kw_only=True)
class Arrival:
    """What is known of a move that arrives, as long as this process lives.

    `older` is the folder of an earlier copy of the capsule, whose contents need not be sent;
    `touched` is when something last came.
    """

    ports: Ports
    capsule: CapsuleId
    move: MoveId
    sender: MachineId
    landing: str
    judge: Judge
    older: str | None = None
    root: BlobId | None = None
    manifest: Manifest | None = None
    touched: float = 0.0
    _sizes: dict[BlobId, int] = field(default_factory=dict[BlobId, int])
    _put: Snapshot = EMPTY
    _begun: bool = False
    _sealed: bool = False

    @property
    def place(self) -> Landing:
        """Where it is kept."""
        return self.ports.landing

    def take(self, piece: Piece) -> None:
        """Keep bytes that were asked for. Raises: MigrationError; StorageError.

        Once everything is being verified nothing more is kept, however late a piece comes.
        """
        self.touched = self.ports.clock.monotonic()
        if self._sealed:
            raise MigrationError("everything that came was verified", code="sealed")
        log = None if self.manifest is None else self.manifest.timeline
        if log is not None and piece.digest == log.sha256 and piece.size == log.length:
            self.place.take_log(self.landing, piece)
            return
        root = piece.digest == self.root and piece.size <= layout.MAX_MANIFEST
        if not root and self._sizes.get(piece.digest) != piece.size:
            raise MigrationError(
                f"the content {piece.digest} was not asked for",
                code="not_asked_for",
                state="It was not kept.",
            )
        self.place.take(piece)

    async def want(self, offer: Offer) -> Wanted:
        """What is lacking of the offer; once nothing is, the checklist of an offer to come.

        Raises: FormatError for a manifest that is none, MigrationError for one that does not fit;
        StorageError.
        """
        self.touched = self.ports.clock.monotonic()
        if offer.root != self.root:
            self.root, self.manifest = offer.root, None
        data = self.place.read(offer.root, layout.MAX_MANIFEST)
        if data is None:
            return Wanted(contents=((offer.root, 0),), log=0, prefix=EMPTY_HASH)
        found = self._begin(offer, data)
        lacking = tuple(
            (digest, here)
            for digest, size in self._sizes.items()
            if (here := self.place.have(digest, size)) != size
        )
        self._check_room(found, lacking)
        length, prefix = self.place.log_here(self.landing)
        complete = (length, prefix) == (found.timeline.length, found.timeline.sha256)
        if not complete or offer.final:
            return Wanted(contents=lacking, log=length, prefix=BlobId(prefix))
        problems = await (self._glance(found) if lacking else self._ahead(found))
        return Wanted(contents=lacking, log=length, prefix=BlobId(prefix), checklist=problems)

    async def prepare(self, slot: Slot) -> Checked:
        """Check every fingerprint, get all into its place, inert (docs/moving.md#prepare)."""
        self._sealed = True
        self.touched = self.ports.clock.monotonic()
        found = self.manifest
        if found is None or self.root != slot.root:
            return Checked(move=slot.move, problems=(_bad("contents", "not_here", "not all came"),))
        problems: list[Problem] = []
        try:
            self._check_contents(found)
            folded, store = self._built(found, final=True)
            check_projections(store, folded)
            _check_seal(found, folded.ending, slot)
            problems += await self.judge(folded, store)
            left_out = await self._fill(folded, store)
            problems += [_good("contents"), _good("timeline"), _good("workspace")]
            if all(problem.ok for problem in problems):
                older = self._older_places()
                folder, workspace = self.place.place(
                    self.landing, folder=slot.folder, workspace=slot.workspace, older=older
                )
                return Checked(
                    move=slot.move,
                    problems=tuple(problems),
                    left_out=left_out[:MOST_LEFT_OUT],
                    folder=folder,
                    workspace=workspace,
                )
        except SojournError as error:
            problems.append(_bad("capsule", error.code, error.message, error.hint))
        return Checked(move=slot.move, problems=tuple(problems))

    def _begin(self, offer: Offer, data: bytes) -> Manifest:
        """The manifest that was offered, and a place for what it lists."""
        found = self.manifest or _fitting(manifest.load(data), self.capsule, offer)
        if self.manifest is None:
            blobs = {} if found.seal is None else found.seal.blobs
            self.manifest = found
            self._sizes = {BlobId(name): size for name, size in blobs.items()}
            self._sizes |= {one.sha256: one.size for one in found.files.values()}
            self._sizes.pop(BlobId(found.timeline.sha256), None)
            for made in (index.EMPTY, seal.VERIFY_TEXT):
                self.place.keep(made)
        if not self._begun:
            self.place.begin(self.landing, older=self.older)
            if self.older is not None:
                self.place.borrow(self.older, self._sizes)
            self._begun = True
        return found

    def _check_room(self, found: Manifest, contents: tuple[tuple[BlobId, int], ...]) -> None:
        """Guard: what is lacking has room, as a blob of the capsule and as a file it works with."""
        lacking = sum(self._sizes[blob] - here for blob, here in contents)
        lacking += max(0, found.timeline.length - self.place.log_here(self.landing)[0])
        room = max(0, self.place.room())
        if lacking and 2 * lacking > room:
            raise StorageError(
                f"the capsule needs {2 * lacking:,} bytes more there, and {room:,} are free",
                code="disk_full",
                state="Nothing was changed there.",
                hint="Make room on that machine, then move it again.",
            )

    async def _glance(self, found: Manifest) -> tuple[Problem, ...]:
        """The checklist as far as the log and the small files tell, before all contents came."""
        sizes = {one.sha256: one.size for one in found.files.values()}
        if any(self.place.have(digest, size) != size for digest, size in sizes.items()):
            return ()
        try:
            self._put_files(found, final=False)
            store = self.ports.store_at(f"{self.landing}/capsule")
            problems = await self.judge(fold_capsule(store, None, same_boot=True), store)
        except SojournError as error:
            return (_bad("capsule", error.code, error.message, error.hint),)
        # What only shows once everything is here is no reason yet.
        return (_good("timeline"), *(one for one in problems if one.ok or one.what != "rendering"))

    async def _ahead(self, found: Manifest) -> tuple[Problem, ...]:
        """Do already what need not wait for the freeze; what fails here is one item of the list."""
        try:
            folded, store = self._built(found, final=False)
            problems = await self.judge(folded, store)
            await self._fill(folded, store)
            self.place.settle(self.landing)
        except SojournError as error:
            return (_bad("capsule", error.code, error.message, error.hint),)
        return (_good("contents"), _good("timeline"), _good("workspace"), *problems)

    def _check_contents(self, found: Manifest) -> None:
        for digest, size in self._sizes.items():
            if self.place.have(digest, size) != size:
                raise MigrationError(f"the content {digest} did not come", code="contents_missing")
        if self.place.log_here(self.landing) != (found.timeline.length, found.timeline.sha256):
            raise MigrationError("the timeline did not come whole", code="timeline_missing")

    def _built(self, found: Manifest, *, final: bool) -> tuple[Folded, Store]:
        """The capsule's folder as it will be, and its log, folded and checked.

        Raises: FormatError for whatever is wrong with it.
        """
        blobs = {BlobId(name) for name in ({} if found.seal is None else found.seal.blobs)}
        files = self._put_files(found, final=final)
        self.place.link(self.landing, blobs)
        if final:
            self.place.prune(self.landing, blobs=blobs, files={*files, layout.MANIFEST})
        store = self.ports.store_at(f"{self.landing}/capsule")
        folded = fold_capsule(store, None, same_boot=True)
        if folded.manifest_error is not None:
            raise folded.manifest_error
        for damage in folded.ending.damages:
            raise FormatError(damage.message, code=damage.code, line=damage.line)
        return folded, store

    def _put_files(self, found: Manifest, *, final: bool) -> dict[str, bytes]:
        """The small files of the capsule's folder; all of them are here."""
        files: dict[str, bytes] = {}
        for path, one in found.files.items():
            if path in layout.COMPANIONS:
                continue
            data = self.place.read(one.sha256, one.size)
            if data is None:
                raise MigrationError(f"{path} did not come", code="contents_missing")
            files[path] = data
        live = seal.unsealed(found)
        if not final:
            # What manifest and log say of each other counts only once the source is frozen.
            live = msgspec.structs.replace(live, timeline=NO_LOG)
        self.place.put_files(self.landing, {**files, layout.MANIFEST: manifest.encode(live)})
        return files

    async def _fill(self, folded: Folded, store: Store) -> tuple[str, ...]:
        """Make the workspace what the snapshot says; paths whose contents did not come."""
        path = f"{self.landing}/workspace"
        os.makedirs(path, mode=0o700, exist_ok=True)
        listed = snapshot.load(store.read_file(layout.SNAPSHOT) or b"")
        lost = absent(store, listed, folded.ending.gone)
        wanted = Snapshot(entries=tuple(e for e in listed.entries if e.sha256 not in lost))
        paths = [entry.path for entry in listed.entries if entry.sha256 in lost]
        workspace = self.ports.workspace_at(self.capsule, f"{self.landing}/capsule", path)
        plan = workspace.plan(self._put, wanted)
        refuse_conflicts(plan)
        await carry_out(workspace, plan)
        self._put = wanted
        return (*paths, *(one.path for one in plan.refused))

    def _older_places(self) -> tuple[str, ...]:
        """Folders of a copy that this machine retired."""
        record = self.ports.ledger.load(self.capsule)
        if record is None or record.state != "RETIRED":
            return ()
        return (record.folder, record.workspace)


def older_copy(ports: Ports, capsule: CapsuleId) -> str | None:
    """The folder of a copy of the capsule that this machine once ran or imported."""
    try:
        record = ports.ledger.load(capsule)
        if record is None or not os.path.isdir(record.folder):
            return None
        same = read_manifest(ports.store_at(record.folder)).capsule == capsule
    except SojournError:
        return None
    return record.folder if same else None


def _fitting(found: Manifest, capsule: CapsuleId, offer: Offer) -> Manifest:
    """Guard: the manifest is that of the capsule, within limits, and lists what was offered."""
    blobs = {} if found.seal is None else found.seal.blobs
    size = found.timeline.length + sum(one.size for one in found.files.values())
    fits = (
        found.capsule == capsule
        and found.seal is not None
        and found.seal.purpose == "move"
        and offer.files == len(found.files) + len(blobs) + 1 <= MOST_FILES
        and offer.size == size + sum(blobs.values())
        and offer.log == found.timeline.length
    )
    if not fits:
        raise MigrationError(
            "the manifest that came is not that of the offer, or lists too much",
            code="offer_differs",
            state="Nothing was kept.",
        )
    return found


def _check_seal(found: Manifest, ending: Ending, slot: Slot) -> None:
    """Guard: the log ends with the seal of this very move.

    Raises: FormatError `seal_wrong`.
    """
    under = found.seal
    same = under is not None and under.event == ending.last == slot.last
    if not same or not {*layout.FIXED_FILES, layout.VERIFY} <= found.files.keys():
        raise FormatError("the log does not end with the seal of the move", code="seal_wrong")


def _good(what: str) -> Problem:
    return Problem(what=what, ok=True)


def _bad(what: str, code: str, message: str, hint: str = "") -> Problem:
    return Problem(what=what, ok=False, code=code, message=message, hint=hint)
