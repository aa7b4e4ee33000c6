"""Archives as files: read back before they have their name, and nothing is left of a failed one."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from sojourn.errors import FormatError, SojournError, StorageError
from sojourn.format import archive
from sojourn.store import zstd
from sojourn.store.archive_file import ArchiveFiles, check_same, open_archive, write_archive
from sojourn.store.disk import OsDisk

FILES = {"SHA256SUMS": b"a" * 700, "VERIFY.txt": b"b"}
DATA = b"".join(archive.write((path, len(data), (data,)) for path, data in FILES.items()))
DIGESTS = {path: sha256(data).hexdigest() for path, data in FILES.items()}


def test_just_the_members_that_were_meant_are_accepted() -> None:
    check_same([DATA], DIGESTS)
    fewer = {"SHA256SUMS": DIGESTS["SHA256SUMS"]}
    for wanted in (fewer, {**DIGESTS, "x": "0"}, {**DIGESTS, "VERIFY.txt": DIGESTS["SHA256SUMS"]}):
        with pytest.raises(FormatError) as refused:
            check_same([DATA], wanted)
        assert refused.value.code == "export_failed"
    with pytest.raises(FormatError):
        check_same([DATA[:-1]], DIGESTS)


def test_a_file_that_is_read_back_wrong_never_has_its_name(tmp_path: Path) -> None:
    def refuse(path: str) -> None:
        assert Path(path).read_bytes() == DATA
        raise SojournError("wrong")

    with pytest.raises(SojournError, match="wrong"):
        write_archive(str(tmp_path / "x"), lambda write: write(DATA), refuse, force=False)
    assert os.listdir(tmp_path) == []


class Full(OsDisk):
    """A disk that is full after a while."""

    def write(self, handle: int, data: bytes) -> int:
        if os.fstat(handle).st_size > 1000:
            raise OSError(28, "No space left on device")
        return super().write(handle, data[:600])


@pytest.mark.parametrize("force", [True, False])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, force: bool) -> None:
    target = tmp_path / "x"
    if force:
        target.write_text("before")
    with pytest.raises(StorageError) as refused:
        write_archive(
            str(target), lambda write: write(DATA), lambda _: None, force=force, disk=Full()
        )
    assert refused.value.code == "disk_full"
    assert os.listdir(tmp_path) == (["x"] if force else [])
    assert not force or target.read_text() == "before"


def test_a_name_that_is_taken_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "x"
    with pytest.raises(SojournError) as refused:
        write_archive(
            str(target),
            lambda write: write(DATA),
            lambda _: target.write_text("theirs") and None,
            force=False,
        )
    assert refused.value.code == "exists"
    assert target.read_text() == "theirs" and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("packed", [True, False])
def test_members_are_read_at_any_place_whatever_is_around_them(
    tmp_path: Path, packed: bool
) -> None:
    file = tmp_path / "x"
    made = b"".join(zstd.compressed([DATA], size=len(DATA))) if packed else DATA
    file.write_bytes(made)
    with open_archive(str(file), decrypt=None) as opened:
        assert b"".join(opened.pieces()) == DATA
        files = ArchiveFiles(opened.plain())
        assert b"".join(opened.pieces()) == DATA
        assert {path: files.digest(path) for path in files.paths()} == DIGESTS
        assert files.read("SHA256SUMS", 9) == b"a" * 10
        assert b"".join(files.chunks("VERIFY.txt")) == b"b"
        assert (files.read("x", 1), files.size("x"), files.log()) == (None, None, None)
        assert opened.wrapped == (("zstd",) if packed else ())
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"x",
        lambda data: data + data,
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
        lambda _: b"\x28\xb5\x2f\xfd",
    ],
)
def test_compressed_data_is_one_whole_frame(change: Callable[[bytes], bytes]) -> None:
    made = b"".join(zstd.compressed([DATA], size=len(DATA)))
    for size in (1, 7, 1 << 20):
        pieces = [made[at : at + size] for at in range(0, len(made), size)]
        assert b"".join(zstd.decompressed(pieces)) == DATA
        bad = change(made)
        with pytest.raises(FormatError) as refused:
            b"".join(zstd.decompressed(bad[at : at + size] for at in range(0, len(bad), size)))
        assert refused.value.code == "compression_broken"
