"""A capsule's folder as bytes to verify: digests of many files, links and odd files on the way."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from sojourn.format import layout
from sojourn.store import digesting
from sojourn.store.files import AHEAD, FolderFiles


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    folder = tmp_path / layout.BLOBS
    folder.mkdir(parents=True)
    return folder


def _handles() -> set[str]:
    """What this process has open, but for the look at it."""
    found = {os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")}
    return {os.readlink(path) for path in found if os.path.islink(path)}


@pytest.mark.parametrize("size", [0, 1, 1000, digesting.LARGE - 1, digesting.LARGE, 3_000_000])
def test_a_digest_is_that_of_the_files_bytes_whatever_its_size(
    size: int, blobs: Path, tmp_path: Path
) -> None:
    data = os.urandom(size)
    (blobs / "one").write_bytes(data)
    found = FolderFiles(str(tmp_path)).digest(f"{layout.BLOBS}/one")
    assert found == sha256(data).hexdigest()


def test_many_digests_are_each_files_own_and_nothing_stays_open(
    blobs: Path, tmp_path: Path
) -> None:
    wanted: dict[str, str | None] = {}
    for number in range(3 * AHEAD):
        data = os.urandom(digesting.LARGE if number % 10 == 0 else number)
        (blobs / f"{number}").write_bytes(data)
        wanted[f"{layout.BLOBS}/{number}"] = sha256(data).hexdigest()
    wanted[f"{layout.BLOBS}/gone"] = None
    before = _handles()
    found = list(FolderFiles(str(tmp_path)).digests(wanted))
    assert len(found) == len(wanted)
    assert dict(found) == wanted
    assert _handles() == before


def test_whoever_stops_asking_for_digests_leaves_nothing_open(blobs: Path, tmp_path: Path) -> None:
    for number in range(3 * AHEAD):
        (blobs / f"{number}").write_bytes(bytes(digesting.LARGE if number % 10 == 0 else number))
    before = _handles()
    files = FolderFiles(str(tmp_path))
    digests: Iterator[object] = files.digests([f"{layout.BLOBS}/{n}" for n in range(3 * AHEAD)])
    next(digests)
    del digests, files
    assert _handles() == before


@pytest.mark.parametrize("grown", [b"", b"more", bytes(3_000_000)])
def test_a_file_that_is_longer_or_shorter_than_it_was_said_to_be_is_read_to_its_end(
    grown: bytes, blobs: Path
) -> None:
    (blobs / "one").write_bytes(b"said" + grown)
    handle = os.open(blobs / "one", os.O_RDONLY)
    try:
        for size in (0, 2, 9):
            os.lseek(handle, 0, os.SEEK_SET)
            assert digesting.digest_of(handle, size) == sha256(b"said" + grown).hexdigest()
    finally:
        os.close(handle)


def test_what_lies_behind_a_link_or_is_no_file_is_absent(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").write_bytes(b"1")
    (outside / "two").write_bytes(b"2")
    capsule = tmp_path / "capsule"
    (capsule / "artifacts").mkdir(parents=True)
    (capsule / layout.BLOBS).symlink_to(outside)
    (capsule / "link").symlink_to(outside / "two")
    os.mkfifo(capsule / "pipe")
    files = FolderFiles(str(capsule))
    for path in (f"{layout.BLOBS}/one", "link", "pipe", "artifacts", "none/at/all"):
        assert files.size(path) is None
        assert files.read(path, 10) is None
        assert files.digest(path) is None
        assert list(files.chunks(path)) == []
