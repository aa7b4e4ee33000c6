"""A batch of blobs that come from files: whole under their names, or not there, at every end."""

import pytest

from faults.faulty_disks import NoFileSync, NoFolderSync, NoSyncOfAll, SyncAfterRename
from faults.power_cuts import (
    BLOBS,
    EPOCH,
    FIRST,
    FOLDER,
    MANY,
    at_once,
    checkpoint_is_whole,
    line,
    made,
    tip,
)
from sojourn.errors import SojournError
from sojourn.ids import BlobId
from sojourn.store.blob_batch import BlobBatch
from sojourn.store.folder import FolderStore
from sojourn.testing.disk import RecordingDisk
from sojourn.testing.power import Act, end_everywhere


def batch_then_log(blobs: dict[BlobId, bytes]) -> Act:
    """Every second blob comes in pieces; then the log names them all."""

    def act(disk: RecordingDisk, done: list[str]) -> None:
        batch = BlobBatch(FOLDER, disk)
        for number, data in enumerate(blobs.values()):
            if number % 2:
                batch.add(data)
            else:
                middle = len(data) // 2
                batch.add_stream([data[:middle], data[middle:]])
        batch.commit()
        named = b"".join(line(blob) for blob in blobs)
        store = FolderStore(FOLDER, disk=disk)
        at_once(store.append(epoch=EPOCH, expected=tip(FIRST), data=named))
        done.append("log")

    return act


@pytest.mark.parametrize("blobs", [BLOBS, MANY], ids=["few", "many"])
def test_blobs_are_whole_before_the_log_names_them(blobs: dict[BlobId, bytes]) -> None:
    tried = end_everywhere(made(), batch_then_log(blobs), checkpoint_is_whole(blobs))
    assert tried.ends > 40
    assert tried.disks > 2 * tried.ends


@pytest.mark.parametrize(
    ("disk", "blobs"),
    [
        (NoFileSync, BLOBS),
        (NoFolderSync, BLOBS),
        (SyncAfterRename, BLOBS),
        (NoFolderSync, MANY),
        (NoSyncOfAll, MANY),
    ],
)
def test_a_planted_fault_of_a_batch_is_found(
    disk: type[RecordingDisk], blobs: dict[BlobId, bytes]
) -> None:
    with pytest.raises((AssertionError, SojournError)):
        end_everywhere(made(disk), batch_then_log(blobs), checkpoint_is_whole(blobs))
