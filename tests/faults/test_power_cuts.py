"""Nothing acknowledged is lost, wherever the work ends and whatever the power cut leaves.

The sequences are ended at each of their operations, by death, torn writes and errors. That the
harness finds anything is shown by planted faults, each of which it must find.
"""

import pytest

from faults.faulty_disks import (
    FailedSyncIgnored,
    HalfWritten,
    InPlace,
    NoFileSync,
    NoFolderSync,
    NoSyncOfAll,
    OnlySyncs,
    SyncAfterRename,
)
from faults.power_cuts import SEQUENCES
from sojourn.errors import SojournError
from sojourn.testing.disk import RecordingDisk
from sojourn.testing.power import end_everywhere

PLANTED = ("log first", "early")


@pytest.mark.parametrize("name", [name for name in SEQUENCES if name not in PLANTED])
def test_nothing_acknowledged_is_lost_wherever_it_ends(name: str) -> None:
    sequence = SEQUENCES[name]
    tried = end_everywhere(sequence.start(RecordingDisk), sequence.act, sequence.check)
    assert tried.ends > 40
    assert tried.disks > 2 * tried.ends


@pytest.mark.parametrize(
    ("disk", "name"),
    [
        (NoFileSync, "append"),
        (NoFileSync, "settle"),
        (NoFileSync, "checkpoint"),
        (NoFileSync, "ledger"),
        (NoFileSync, "inbox"),
        (NoFileSync, "key"),
        (NoFileSync, "create"),
        (NoFileSync, "create in an empty folder"),
        (NoFileSync, "lock"),
        (NoFolderSync, "checkpoint"),
        (NoFolderSync, "many blobs"),
        (NoFolderSync, "blobs again"),
        (NoFolderSync, "ledger"),
        (NoFolderSync, "inbox"),
        (NoFolderSync, "key"),
        (NoFolderSync, "create"),
        (NoFolderSync, "create in an empty folder"),
        (NoFolderSync, "lock"),
        (NoSyncOfAll, "many blobs"),
        (SyncAfterRename, "checkpoint"),
        (SyncAfterRename, "ledger"),
        (InPlace, "checkpoint"),
        (InPlace, "ledger"),
        (HalfWritten, "inbox"),
        (HalfWritten, "key"),
        (OnlySyncs, "settle"),
        (OnlySyncs, "append"),
        (FailedSyncIgnored, "append"),
        (FailedSyncIgnored, "ledger"),
        (FailedSyncIgnored, "inbox"),
        (RecordingDisk, "log first"),
        (RecordingDisk, "early"),
    ],
)
def test_a_planted_fault_is_found(disk: type[RecordingDisk], name: str) -> None:
    sequence = SEQUENCES[name]
    with pytest.raises((AssertionError, SojournError)) as found:
        end_everywhere(sequence.start(disk), sequence.act, sequence.check)
    assert "acknowledged:" in found.value.__notes__[0]
