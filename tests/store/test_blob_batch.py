"""Many blobs at once: all of them under their names, or nothing."""

import errno
from hashlib import sha256
from pathlib import Path

import pytest

from sojourn.errors import StorageError
from sojourn.store.blob_batch import GROUP, THREAD_FROM, BlobBatch
from sojourn.store.disk import OsDisk
from store.workspaces import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_batch_that_is_dropped_leaves_nothing(place: Place) -> None:
    batch = BlobBatch(str(place.folder / "capsule"), OsDisk())
    batch.add(b"one")
    batch.add_stream(iter([b"t", b"wo"]))
    batch.drop()
    assert place.blobs() == {}


class Failing(OsDisk):
    """A disk on which the writes after so many fail."""

    def __init__(self, good: int) -> None:
        self.left = good

    def write(self, handle: int, data: bytes) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "no space")
        return super().write(handle, data)


@pytest.mark.parametrize("good", [10, THREAD_FROM + 3, 2 * THREAD_FROM + 3, 10 * GROUP])
def test_a_batch_of_many_that_fails_says_why_and_leaves_nothing(place: Place, good: int) -> None:
    batch = BlobBatch(str(place.folder / "capsule"), Failing(good))
    with pytest.raises(StorageError) as caught:
        for number in range(20 * GROUP):
            batch.add(str(number).encode())
        batch.commit()
    assert caught.value.code == "disk_full"
    batch.drop()
    assert place.blobs() == {}


def test_a_batch_of_many_is_whole_once_it_is_committed(place: Place) -> None:
    batch = BlobBatch(str(place.folder / "capsule"), OsDisk())
    wanted = {sha256(str(n).encode()).hexdigest(): str(n).encode() for n in range(5 * GROUP + 7)}
    assert [batch.add(data) for data in wanted.values()] == list(wanted)
    batch.commit()
    assert place.blobs() == wanted
