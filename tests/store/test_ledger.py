"""A ledger's record is believed only where it was written, whole, by a known version."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from sojourn.core.ledger_record import first_record
from sojourn.core.migration_records import Moves
from sojourn.errors import FormatError
from sojourn.ids import CapsuleId, Epoch, Incarnation
from sojourn.store.disk import OsDisk
from sojourn.store.ledger import RECORD_LIMIT, FileLedger

CAPSULE = CapsuleId("c" * 64)
RECORD = first_record(
    capsule=CAPSULE, incarnation=Incarnation("a" * 32), folder="/c", workspace="/w"
)


def later(file: Path) -> None:
    """Return once the file system's clock, which moves in steps, is past the file's birth.

    A copy that is made within one step has the same birth: the ledger cannot tell it.
    """
    probe = file.with_name("probe")
    while True:
        probe.touch()
        moved = probe.stat().st_ctime_ns > file.stat().st_ctime_ns
        probe.unlink()
        if moved:
            return


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FileLedger(str(tmp_path / "ledger"), host="h").save(RECORD)
    return tmp_path / "ledger"


def file_in(folder: Path) -> Path:
    return folder / f"{CAPSULE}.json"


def ledger(folder: Path, host: str | None = "h") -> FileLedger:
    return FileLedger(str(folder), host=host)


def copied_over(file: Path) -> None:
    shutil.copy2(file, file.with_suffix(".bak"))
    file.with_suffix(".bak").rename(file)


def restored(file: Path) -> None:
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data)


def copied_folder(file: Path) -> None:
    shutil.copytree(file.parent, file.parent.with_name("copy"))
    shutil.rmtree(file.parent)
    file.parent.with_name("copy").rename(file.parent)


@pytest.mark.parametrize("change", [copied_over, restored, copied_folder])
def test_a_copied_record_is_suspect_and_stays_so(
    change: Callable[[Path], None], folder: Path
) -> None:
    later(file_in(folder))
    change(file_in(folder))
    suspect = msgspec.structs.replace(RECORD, state="SUSPECT", reason="ledger_copied")
    before = file_in(folder).read_bytes()
    for _ in range(2):
        assert ledger(folder).load(CAPSULE) == suspect
        assert ledger(folder).recover(CAPSULE) == suspect
    assert file_in(folder).read_bytes() == before


def test_a_moved_state_folder_is_still_the_same(folder: Path) -> None:
    moved = folder.rename(folder.with_name("moved"))
    assert ledger(moved).recover(CAPSULE) == RECORD


@pytest.mark.parametrize(("host", "fits"), [("h", True), ("other", False), (None, False)])
def test_another_hosts_record_is_suspect(host: str | None, fits: bool, folder: Path) -> None:
    found = ledger(folder, host).load(CAPSULE)
    assert found is not None
    assert (found.reason == "ledger_copied") is not fits


def test_what_was_not_known_when_writing_proves_nothing(tmp_path: Path) -> None:
    class Ageless(OsDisk):
        def birth(self, handle: int) -> str | None:
            del handle

    FileLedger(str(tmp_path), host=None, disk=Ageless()).save(RECORD)
    copied_over(file_in(tmp_path))
    assert ledger(tmp_path).load(CAPSULE) == RECORD


def test_saving_makes_a_suspect_record_trusted_again(folder: Path) -> None:
    """So only a person's decision may save one."""
    later(file_in(folder))
    copied_over(file_in(folder))
    found = ledger(folder).load(CAPSULE)
    assert found is not None
    ledger(folder).save(msgspec.structs.replace(found, state="HOLDER", reason=""))
    assert ledger(folder).load(CAPSULE) == RECORD


def without(file: Path, byte: bytes, other: bytes) -> None:
    data = file.read_bytes()
    assert byte in data
    file.write_bytes(data.replace(byte, other))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-20]),
    "zeros": lambda file: file.write_bytes(bytes(300)),
    "one digit": lambda file: without(file, b'"epoch":1', b'"epoch":2'),
    "another path": lambda file: without(file, b'"/c"', b'"/d"'),
    "no checksum": lambda file: file.write_bytes(
        json.dumps({**json.loads(file.read_bytes()), "sum": ""}).encode()
    ),
    "no version": lambda file: without(file, b',"v":1', b""),
    "not an object": lambda file: file.write_bytes(b"[]"),
    "unknown state": lambda file: without(file, b"HOLDER", b"HOLDEN"),
    "too long": lambda file: file.write_bytes(b" " * (RECORD_LIMIT + 1)),
    "another capsule's": lambda file: without(file, b"c" * 64, b"d" * 64),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_record_is_named_and_kept(name: str, folder: Path) -> None:
    file = file_in(folder)
    DAMAGES[name](file)
    damaged = file.read_bytes()
    for read in (ledger(folder).load, ledger(folder).recover):
        with pytest.raises(FormatError) as refused:
            read(CAPSULE)
        assert refused.value.code == "ledger_damaged"
        assert refused.value.file == str(file)
    assert file.read_bytes() == damaged
    assert ledger(folder).capsules() == (CAPSULE,)
    ledger(folder).save(RECORD)
    assert ledger(folder).load(CAPSULE) == RECORD
    assert (folder / f"{CAPSULE}.json.damaged-1").read_bytes() == damaged
    assert ledger(folder).capsules() == (CAPSULE,)


def test_a_newer_versions_record_is_left_alone(folder: Path) -> None:
    file = file_in(folder)
    without(file, b'"v":1', b'"v":3')
    before = file.read_bytes()
    for work in (
        lambda: ledger(folder).load(CAPSULE),
        lambda: ledger(folder).save(RECORD),
    ):
        with pytest.raises(FormatError) as refused:
            work()
        assert refused.value.code == "ledger_unsupported"
    assert file.read_bytes() == before


def test_recovering_writes_the_record_anew_and_sweeps(folder: Path) -> None:
    half = folder / f".sojourn-{CAPSULE}.json.1.0.tmp"
    other = folder / f".sojourn-{'d' * 64}.json.1.0.tmp"
    for path in (half, other):
        path.write_bytes(b"{")
    before = file_in(folder).stat().st_ino, file_in(folder).read_bytes()
    assert ledger(folder).recover(CAPSULE) == RECORD
    after = file_in(folder).stat().st_ino, file_in(folder).read_bytes()
    assert before[1] != after[1]
    assert (half.exists(), other.exists()) == (False, True)


def test_an_epoch_far_beyond_is_kept_exactly(folder: Path) -> None:
    record = msgspec.structs.replace(RECORD, floor=Epoch(2**53 - 1))
    ledger(folder).save(record)
    assert ledger(folder).load(CAPSULE) == record


def test_a_program_that_knows_no_moves_is_told_that_the_record_is_newer(folder: Path) -> None:
    moving = msgspec.structs.replace(RECORD, state="FROZEN", moves=Moves(life="1" * 32))
    versions: list[int] = []
    for record in (RECORD, moving):
        ledger(folder).save(record)
        versions.append(json.loads(file_in(folder).read_bytes())["v"])
        assert ledger(folder).load(CAPSULE) == record
    assert versions == [1, 2]


def test_a_copied_record_keeps_what_it_says_of_moves(folder: Path) -> None:
    moving = msgspec.structs.replace(RECORD, state="RETIRED", moves=Moves(life="1" * 32))
    ledger(folder).save(moving)
    found = ledger(folder, host="another").recover(CAPSULE)
    assert found == msgspec.structs.replace(moving, state="SUSPECT", reason="ledger_copied")
