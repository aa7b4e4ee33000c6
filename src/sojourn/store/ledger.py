"""The ledger: one file a capsule, one atomic write a transition (docs/protocol.md#ledger).

A file carries its own birth time and a digest of the machine that wrote it, so that a copied or
restored one is noticed, and a checksum. A record that is missing or damaged is a loss of memory:
it is never made again from a capsule.
"""

from hashlib import sha256
from typing import Final

import msgspec

from sojourn.core.ledger_record import LedgerRecord
from sojourn.errors import FencedError, FormatError
from sojourn.format.canon import encode, load
from sojourn.ids import CapsuleId
from sojourn.store.disk import Disk, OsDisk
from sojourn.store.durable import Durable, read_whole, reading

VERSION: Final = 1
MOVING_VERSION: Final = 2
"""Of a record that tells of moves: a program that knows none must not take it for a damaged one."""

RECORD_LIMIT: Final = 1 << 20
"""Bytes of a record."""

_NAME: Final = 64
"""Digits of a capsule's id, and so of a record's name without its ending."""


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """Which file on which machine was written: birth time and digest, null where unknown."""

    birth: str | None
    host: str | None


class _File(msgspec.Struct, frozen=True, kw_only=True):
    v: int
    record: LedgerRecord
    stamp: Stamp
    sum: str = ""


class FileLedger:
    """The `Ledger` port in a folder; `host` is what `store.system.host_digest` says."""

    def __init__(self, folder: str, *, host: str | None, disk: Disk | None = None) -> None:
        self._folder = folder
        self._host = host
        self._disk = disk or OsDisk()
        self._files = Durable(self._disk)

    def load(self, capsule: CapsuleId) -> LedgerRecord | None:
        """The record, None when there is none; SUSPECT, `ledger_copied`, when its stamp is foreign.

        Raises: FormatError `ledger_damaged` or `ledger_unsupported`; StorageError.
        """
        path = self._path(capsule)
        with reading(path):
            data, birth = self._read(path)
        if data is None:
            return None
        found = _parse(data, capsule, path)
        if _same(found.stamp.birth, birth) and _same(found.stamp.host, self._host):
            return found.record
        return msgspec.structs.replace(found.record, state="SUSPECT", reason="ledger_copied")

    def save(self, record: LedgerRecord) -> None:
        """Write it whole, durable on return; a damaged one that is there is set aside first.

        Raises: FencedError `floor_falls` when the record promises less than the stored one;
        FormatError `ledger_unsupported`; StorageError.
        """
        path = self._path(record.capsule)
        self._files.make_folder(self._folder)
        before = self._before(path, record.capsule)
        if before is not None and record.floor < before.floor:
            raise FencedError(
                f"the ledger remembers epoch {before.floor}, and {record.floor} would be less",
                code="floor_falls",
                state="Nothing was written.",
            )
        self._files.replace_stamped(path, lambda birth: _written(record, birth, self._host))

    def recover(self, capsule: CapsuleId) -> LedgerRecord | None:
        """Load, and write the same again before anything builds on it.

        What was read may be in the caches only (docs/protocol.md#write-discipline). A copied
        one stays as it is: writing it would wipe out what shows that it is a copy. Under the
        capsule's lock. Raises: as `load` and `save`.
        """
        record = self.load(capsule)
        if record is None or record.reason == "ledger_copied":
            return record
        self._files.sweep(self._folder, f"{capsule}.json")
        self.save(record)
        return record

    def capsules(self) -> tuple[CapsuleId, ...]:
        """Every capsule that has a record, readable or not, sorted."""
        with reading(self._folder):
            names = [name for name, kind in self._disk.list(self._folder) if kind == "file"]
        stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return tuple(CapsuleId(stem) for stem in stems if len(stem) == _NAME)

    def _before(self, path: str, capsule: CapsuleId) -> LedgerRecord | None:
        with reading(path):
            data = read_whole(self._disk, path, limit=RECORD_LIMIT + 1)
        if data is None:
            return None
        try:
            return _parse(data, capsule, path).record
        except FormatError as error:
            if error.code != "ledger_damaged":
                raise
        self._files.set_aside(path)
        return None

    def _read(self, path: str) -> tuple[bytes | None, str | None]:
        try:
            handle = self._disk.open(path, "read")
        except FileNotFoundError:
            return None, None
        try:
            return self._disk.read_at(handle, RECORD_LIMIT + 1, 0), self._disk.birth(handle)
        finally:
            self._disk.close(handle)

    def _path(self, capsule: CapsuleId) -> str:
        return f"{self._folder}/{capsule}.json"


def _written(record: LedgerRecord, birth: str | None, host: str | None) -> bytes:
    version = VERSION if record.travels is None else MOVING_VERSION
    file = _File(v=version, record=record, stamp=Stamp(birth=birth, host=host))
    return encode(msgspec.structs.replace(file, sum=sha256(encode(file)).hexdigest())) + b"\n"


def _parse(data: bytes, capsule: CapsuleId, path: str) -> _File:
    try:
        value = load(data, what=path, limit=RECORD_LIMIT)
        if isinstance(value, dict) and value.get("v") not in (None, VERSION, MOVING_VERSION):
            raise FormatError(
                "the ledger's record was written by a newer version",
                code="ledger_unsupported",
                state="Nothing was changed.",
                hint="Use the version that wrote it, or a newer one.",
                file=path,
            )
        found = msgspec.convert(value, _File)
    except FormatError as error:
        if error.code == "ledger_unsupported":
            raise
        raise _damaged(path, error.message) from error
    except msgspec.ValidationError as error:
        raise _damaged(path, str(error)) from error
    # Over what was written, so that a record without a field that came later stays good.
    plain = encode({**value, "sum": ""}) if isinstance(value, dict) else b""
    if sha256(plain).hexdigest() != found.sum or found.record.capsule != capsule:
        raise _damaged(path, "its checksum or its capsule is another")
    return found


def _damaged(path: str, why: str) -> FormatError:
    return FormatError(
        f"the ledger's record is damaged: {why}",
        code="ledger_damaged",
        state="The file is kept. This machine no longer knows what it holds of the capsule.",
        hint="The capsule may be looked at.",
        file=path,
    )


def _same(written: str | None, found: str | None) -> bool:
    """Whether a stamp fits; what was not known then proves nothing now."""
    return written is None or written == found
