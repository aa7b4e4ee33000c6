"""The hold: a capsule's open, locked and checked writing handle (docs/protocol.md#holding).

`draft` makes a line in memory, `commit` makes all drafts durable with one write and one sync, and
`refresh` writes manifest and ledger tip. A failed write drops the hold: nothing more is written and
the next opening reads the truth from the disk.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final, Literal

import msgspec

from sojourn.core.ledger_record import LedgerRecord, LedgerTip
from sojourn.core.mask import Mask
from sojourn.core.turn_state import TurnState, evolve
from sojourn.core.view import Prompt, Transcript
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Observer
from sojourn.drive.reading import Folded, blob_or_none, read_blobs
from sojourn.errors import FormatError, NotFoundError, SojournError, StorageError
from sojourn.format import layout, manifest
from sojourn.format.blob import ref
from sojourn.format.body import Head
from sojourn.format.canon import clean_text, load
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.event import AnyBody, Configured, Event, Memory
from sojourn.format.parts import BlobRef, CallPart, Text
from sojourn.format.timeline_write import SALT_BYTES, Chain, Line, salts, write_line
from sojourn.format.working_memory import MAX_EDIT, add, compare, digest_of
from sojourn.ids import BlobId, CapsuleId, EventId, MachineId, Seq
from sojourn.ports import Randomness, Store, Tip
from sojourn.render import Needed

SALTS_AT_ONCE: Final = 64
"""Salts that are made of one token: the kernel is asked once for so many events."""


class Hold:
    """One capsule, held: the log's folds, and the only way to append to it."""

    def __init__(
        self,
        *,
        ports: Ports,
        store: Store,
        record: LedgerRecord,
        folded: Folded,
        machine: MachineId,
        observer: Observer,
    ) -> None:
        if folded.capsule is None or folded.manifest is None:
            raise FormatError("the log names no capsule", code="identity_missing")
        ending = folded.ending
        mine = (machine, record.incarnation)
        own = next((c for c in ending.chains if (c.machine, c.incarnation) == mine), None)
        self.capsule: CapsuleId = folded.capsule
        self.state: TurnState = folded.state
        self.transcript: Transcript = folded.transcript
        self.transcript.own = mine
        self.memory = folded.memory
        self.snapshots = folded.snapshots
        self.other_heads: tuple[Head, ...] = tuple(
            head for head in ending.heads if (head.machine, head.incarnation) != mine
        )
        self._ports = ports
        self._store = store
        self._record = record
        self._observer = observer
        self._manifest = folded.manifest
        self._tip = Tip(length=ending.length, last=ending.last)
        self._digest = ending.digest
        self._chain = Chain(
            machine=machine,
            incarnation=record.incarnation,
            epoch=record.epoch,
            seq=Seq(0) if own is None else Seq(own.seq + 1),
            head=None if own is None else own.id,
            clock=ending.clock,
        )
        self._salts = _salts(ports.randomness)
        self._notes_written = folded.memory.digest
        self._drafts: list[Line] = []
        self._blobs: dict[BlobId, bytes] = {}
        self._batch = Seq(0)
        self._projections: dict[str, bytes] = {}
        self._time = ""
        self._dropped: SojournError | None = None
        self._clean_at = -1
        self._needed = Needed()
        self._over = False
        self.gone = ending.gone

    @property
    def configured(self) -> EventId:
        """The event of the configuration in force.

        Raises: NotFoundError when there is none.
        """
        if self.transcript.configured is None:
            raise NotFoundError("the log holds no configuration yet", code="not_configured")
        return self.transcript.configured[0]

    @property
    def store(self) -> Store:
        """The capsule's bytes, for reading."""
        return self._store

    def watch(self, observer: Observer) -> None:
        """Tell `observer` of every event that becomes durable from now on."""
        self._observer = observer

    @property
    def record(self) -> LedgerRecord:
        """The machine's ledger record of this capsule."""
        return self._record

    def live_manifest(self) -> manifest.Manifest:
        """The manifest of the capsule as it is now, all that was drafted being durable."""
        return self._live_manifest()

    def save_record(self, record: LedgerRecord) -> None:
        """Save this as the machine's record of the capsule. Raises: StorageError."""
        self._ports.ledger.save(record)
        self._record = record

    def configure(self, wanted: Configured) -> Event | None:
        """Draft a configuration unless it is the one in force."""
        current = self.transcript.configured
        if current is not None and msgspec.structs.replace(current[1], salt="") == wanted:
            return None
        return self.draft(wanted)

    def draft(self, body: AnyBody) -> Event:
        """Make the next line; it is in the folds at once and durable after `commit`."""
        self.check()
        if not self._ports.mask.idle:
            body = self._masked(body)
        if not self._drafts:
            self._batch = self._chain.seq
            self._time = self._ports.clock.now()
        line = write_line(
            body,
            self._blobs,
            chain=self._chain,
            batch=self._batch,
            time=self._time,
            salt=next(self._salts),
        )
        self._drafts.append(line)
        self._chain = line.chain
        event = line.event
        self.state = evolve(self.state, event)
        self.transcript.apply(event)
        if isinstance(event.body, Memory):
            self.memory = add(self.memory, event.body, read_text=self.text)
        elif isinstance(event.body, Snapshotted):
            self.snapshots.add(event.id, event.body)
        return event

    def remember(
        self,
        text: str,
        *,
        origin: Literal["hand", "tool"],
        before: BlobId | None = None,
    ) -> Event | None:
        """Draft the notes' new text, made from the text with digest `before` (default: the last).

        None when it changes nothing. The file is written again once the event is durable. An edit
        that came a second time, after a crash, is known by its result and its base.
        """
        text = self._ports.mask.text(clean_text(text)[0])
        base = self.memory.digest if before is None else before
        known = compare(self.memory, text.encode())
        if known == "equal" or (known == "stale" and base != self.memory.digest):
            return None
        return self.draft(Memory(origin=origin, before=base, result=digest_of(text), text=text))

    def project(self, name: str, data: bytes) -> None:
        """What a file of the capsule holds once the drafts are durable; `refresh` writes it."""
        self._projections[name] = data

    def projected(self, name: str) -> bytes | None:
        """The bytes of a file as the next `refresh` leaves it."""
        return self._projections.get(name) or self._store.read_file(name)

    def keep(self, data: bytes, *, media_type: str = "text/plain; charset=utf-8") -> BlobRef:
        """Keep bytes as a blob, durable with the next commit."""
        masked = self._ports.mask.data(data)
        blob = ref(masked, media_type=media_type)
        self._blobs[blob.sha256] = masked
        return blob

    async def commit(self) -> None:
        """Make all drafts durable: blobs, then the lines in one write and one sync.

        Raises: StorageError or FencedError; the hold is then dropped.
        """
        self.check()
        if not self._drafts:
            return
        data = b"".join([line.data for line in self._drafts])
        try:
            self._ports.lock.check(self.capsule)
            if self._blobs:
                await self._store.put_blobs(self._kept())
            await self._store.append(epoch=self._record.epoch, expected=self._tip, data=data)
        except SojournError as error:
            self._dropped = error
            raise
        self._tip = Tip(length=self._tip.length + len(data), last=self._chain.head)
        self._digest.update(data)
        durable, self._drafts, self._blobs = self._drafts, [], {}
        for line in durable:
            self._observer.event(line.event)
        if self._notes_written != self.memory.digest:
            await self._write_notes()

    async def hand_over(self) -> bytes:
        """The drafted lines, for a log that takes this one's place; the hold is over then.

        Their blobs are durable on return. Raises: StorageError.
        """
        self.check()
        data = b"".join([line.data for line in self._drafts])
        try:
            await self._store.put_blobs(self._kept())
        finally:
            self._drafts, self._blobs = [], {}
            self._over = True
        return data

    def _kept(self) -> dict[BlobId, bytes]:
        """The blobs of the drafts but for those that were redacted: no writer brings them back."""
        return {blob: data for blob, data in self._blobs.items() if blob not in self.gone.redacted}

    async def _write_notes(self) -> None:
        """Bring `working_memory.md` up to the log; an edit by hand that came between is kept.

        A crash before it leaves an older text, which the next opening knows (F7).
        """
        data = self._store.read_file(layout.WORKING_MEMORY) or b""
        found = BlobId(sha256(data).hexdigest())
        if found != self._notes_written and compare(self.memory, data) == "hand_edit":
            text = _edited_text(data)
            base, self._notes_written = self._notes_written, found
            if text is None:
                # The next opening says what is wrong with it.
                self._notes_written = self.memory.digest
                return
            if self.remember(text, origin="hand", before=base) is not None:
                await self.commit()
                return
        if found != self.memory.digest:
            try:
                notes = self.text(self.memory.text).encode()
                await self._store.replace_file(layout.WORKING_MEMORY, notes)
            except SojournError as error:
                self._dropped = error
                raise
        self._notes_written = self.memory.digest

    async def refresh(self) -> None:
        """Write the live manifest and then the ledger's tip, unless both are as they should be."""
        if self._over:
            return
        await self.commit()
        if self._clean_at == self._tip.length and not self._projections:
            return
        try:
            for name, data in self._projections.items():
                await self._store.replace_file(name, data)
            self._projections.clear()
            data = manifest.encode(self._live_manifest())
            if self._store.read_file(layout.MANIFEST) != data:
                await self._store.replace_file(layout.MANIFEST, data)
            tip = LedgerTip(
                length=self._tip.length, last=self._tip.last, manifest=sha256(data).hexdigest()
            )
            settled = _settled(self._record, tip)
            if self._record != settled:
                self._record = settled
                self._ports.ledger.save(settled)
        except SojournError as error:
            self._dropped = error
            raise
        self._clean_at = self._tip.length

    def _live_manifest(self) -> manifest.Manifest:
        own = Head(
            machine=self._chain.machine,
            incarnation=self._chain.incarnation,
            seq=Seq(self._chain.seq - 1),
            id=self._chain.head or EventId(""),
        )
        heads = self.other_heads if self._chain.head is None else (*self.other_heads, own)
        mark = manifest.TimelineMark(
            length=self._tip.length,
            sha256=BlobId(self._digest.copy().hexdigest()),
            heads=tuple(sorted(heads, key=lambda head: (head.machine, head.incarnation))),
        )
        files: dict[str, manifest.FileMark] = {}
        for name in self._store.file_names():
            if name not in layout.FIXED_FILES and not name.startswith(f"{layout.ENVIRONMENT}/"):
                continue
            data = self._store.read_file(name)
            if data is not None:
                derived = name in layout.DERIVED_FILES
                digest = BlobId(sha256(data).hexdigest())
                files[name] = manifest.FileMark(sha256=digest, size=len(data), derived=derived)
        return msgspec.structs.replace(
            self._manifest,
            holder=self._chain.machine,
            epoch=self._record.epoch,
            timeline=mark,
            files=files,
            seal=None,
        )

    def prompt(self) -> tuple[Prompt, Mapping[BlobId, bytes]]:
        """What a request is rendered from now, and the blobs that it names."""
        configured = self.transcript.configured
        system: Text = "" if configured is None else configured[1].system
        memory = self.text(self.transcript.first_memory)
        prompt = self.transcript.prompt(system=system, memory=memory)
        return prompt, read_blobs(self._store, self._needed.of(prompt), gone=self.gone)

    def text(self, text: Text) -> str:
        """The whole string, read from its blob when it is one."""
        if isinstance(text, str):
            return text
        data = self._blobs.get(text.sha256)
        if data is None:
            data = read_blobs(self._store, (text.sha256,), gone=self.gone)[text.sha256]
        return data.decode("utf-8", "replace")

    def blob(self, ref: BlobRef) -> bytes | None:
        """The bytes of a blob, drafted ones too; None when it is not there."""
        return self._blobs.get(ref.sha256) or blob_or_none(self._store, ref)

    def arguments(self, part: CallPart) -> Mapping[str, object] | None:
        """A call's arguments as values, None when they are no JSON object."""
        try:
            value = load(self.text(part.args).encode(), what="arguments")
        except FormatError:
            return None
        return value if isinstance(value, dict) else None

    @property
    def mask(self) -> Mask:
        """Takes secret values out of what is written or shown."""
        return self._ports.mask

    def _masked(self, body: AnyBody) -> AnyBody:
        """The body with secret values taken out of every string of it."""
        plain = msgspec.json.encode(body).decode()
        masked = self._ports.mask.text(plain)
        if masked == plain:
            return body
        return msgspec.json.decode(masked, type=type(body))

    def check(self) -> None:
        """Raises: StorageError `hold_dropped` after a failed write."""
        if self._dropped is not None or self._over:
            raise StorageError(
                "this process let go of the capsule after a failed write",
                code="hold_dropped",
                state="" if self._dropped is None else self._dropped.message,
                hint="Open the capsule again; what is on disk is the truth.",
            )


def _settled(record: LedgerRecord, tip: LedgerTip) -> LedgerRecord:
    """The record once all that a claim or an arrival had to append is in the log."""
    known = record.travels
    if known is not None and known.arrived is not None:
        record = msgspec.structs.replace(record, moves=msgspec.structs.replace(known, arrived=None))
    return msgspec.structs.replace(record, tip=tip, claim=None)


def _edited_text(data: bytes) -> str | None:
    """What a person wrote into the notes; None when it cannot become an edit."""
    try:
        return data.decode() if len(data) <= MAX_EDIT else None
    except UnicodeDecodeError:
        return None


def _salts(randomness: Randomness) -> Iterator[str]:
    """Salts without end."""
    while True:
        yield from salts(randomness.token(SALTS_AT_ONCE * SALT_BYTES))
