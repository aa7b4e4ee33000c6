"""A power cut in a merge leaves the old log or the merged one, with all its blobs."""

import pytest

from faults.faulty_disks import NoFileSync, NoFolderSync
from faults.power_cuts import (
    BLOBS,
    FILES,
    FIRST,
    FOLDER,
    at_once,
    line,
    made,
    only_whole_files,
    read,
)
from sojourn.errors import SojournError
from sojourn.format import layout
from sojourn.store.create import create_capsule
from sojourn.store.folder import FolderStore
from sojourn.store.merging import FolderMerger
from sojourn.testing.disk import RecordingDisk
from sojourn.testing.power import end_everywhere

OTHER = "/disk/capsules/other"
MERGED = FIRST + b"".join(line(blob) for blob in BLOBS)


def with_another(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    """A second copy, whose blobs the first one lacks."""
    plain = made()
    named = {layout.blob_path(blob): data for blob, data in BLOBS.items()}
    create_capsule(OTHER, {**FILES, **named}, disk=plain)
    return plain.turned_into(kind)


def merge(disk: RecordingDisk, done: list[str]) -> None:
    merger = FolderMerger(FOLDER, OTHER, disk=disk)
    merger.copy(merger.lacking(()), progress=lambda *_: None)
    merger.stage((MERGED[:100], MERGED[100:]))
    store = FolderStore(FOLDER, disk=disk)
    at_once(store.replace_file(layout.MANIFEST, b'{"new":2}\n'))
    merger.install()
    done.append("log")


def merge_is_whole_or_none(disk: RecordingDisk, done: list[str]) -> None:
    log = read(disk)
    assert log == MERGED or (log == FIRST and not done)
    store = FolderStore(FOLDER, disk=disk)
    if log == MERGED:
        assert store.read_file(layout.MANIFEST) == b'{"new":2}\n'
        for blob, data in BLOBS.items():
            assert store.read_blob(blob) == data
    only_whole_files(disk)


def test_a_merge_that_ends_anywhere_is_whole_or_none() -> None:
    tried = end_everywhere(with_another(RecordingDisk), merge, merge_is_whole_or_none)
    assert tried.ends > 40


@pytest.mark.parametrize("disk", [NoFileSync, NoFolderSync])
def test_a_merge_without_its_syncs_is_found_out(disk: type[RecordingDisk]) -> None:
    with pytest.raises((AssertionError, SojournError)):
        end_everywhere(with_another(disk), merge, merge_is_whole_or_none)
