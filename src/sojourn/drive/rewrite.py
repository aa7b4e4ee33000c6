"""Puts another log in the place of a held capsule's log (docs/protocol.md#rewrite).

At every moment before and after manifest and ledger name only what both logs begin with, so a crash
anywhere leaves a sound capsule: the old one, or the new one.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

import msgspec

from sojourn.core.ledger_record import LedgerRecord, LedgerTip
from sojourn.drive.machine import Ports, Rewriter
from sojourn.drive.reading import blob_or_none, read_manifest
from sojourn.errors import FormatError
from sojourn.format import layout, manifest
from sojourn.format.body import Head
from sojourn.format.event import Event
from sojourn.format.line import Bad, LineReader
from sojourn.ids import BlobId
from sojourn.ports import Store


def lines_of(store: Store, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The log's lines with their 0x0A; what follows the last one comes last, if anything does."""
    rest = b""
    for piece in store.read_log(start, end):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def events_of(store: Store, end: int | None = None) -> Iterator[tuple[bytes, Event | Bad]]:
    """Each whole line with its 0x0A, and its event or what is wrong with it alone."""
    reader = LineReader(lambda ref: blob_or_none(store, ref))
    for line in lines_of(store, 0, end):
        if line.endswith(b"\n"):
            yield line, reader.read(line[:-1])


async def install(
    ports: Ports,
    store: Store,
    rewriter: Rewriter,
    record: LedgerRecord,
    pieces: Iterable[bytes],
    *,
    origin: manifest.Manifest | None = None,
) -> None:
    """Stage `pieces` as the log and put them in its place; `record` is saved before.

    `origin` is what the manifest is made from, by default the one that is there. The first line of
    both logs is the same. Raises: StorageError, FencedError, FormatError.
    """
    rewriter.stage(pieces)
    ports.lock.check(record.capsule)
    await _name_only_the_first(ports, store, record, origin)
    rewriter.install()


async def _name_only_the_first(
    ports: Ports, store: Store, record: LedgerRecord, origin: manifest.Manifest | None
) -> None:
    """Manifest and ledger name the first line alone: it begins the old log and the new one."""
    line, event = next(events_of(store), (b"", None))
    if not isinstance(event, Event):
        raise FormatError("the log's first line is gone", code="identity_missing")
    header = event.header
    head = Head(machine=header.machine, incarnation=header.incarnation, seq=header.seq, id=event.id)
    timeline = manifest.TimelineMark(
        heads=(head,), length=len(line), sha256=BlobId(sha256(line).hexdigest())
    )
    found = origin or read_manifest(store)
    written = manifest.encode(msgspec.structs.replace(found, timeline=timeline, seal=None))
    await store.replace_file(layout.MANIFEST, written)
    tip = LedgerTip(length=len(line), last=event.id, manifest=sha256(written).hexdigest())
    ports.ledger.save(msgspec.structs.replace(record, tip=tip))
