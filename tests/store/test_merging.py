"""What comes into a capsule's folder from another one."""

from hashlib import sha256
from pathlib import Path

import pytest

from sojourn.errors import FormatError, StorageError
from sojourn.format import layout
from sojourn.ids import BlobId
from sojourn.store.create import create_capsule
from sojourn.store.disk import OsDisk
from sojourn.store.merging import FolderMerger

DATA = [b"one", b"two" * 1000, b"three"]
NAMES = [BlobId(sha256(data).hexdigest()) for data in DATA]


def merger(folder: Path) -> FolderMerger:
    """The first capsule has the first blob, the second one has all."""
    blobs = {layout.blob_path(name): data for name, data in zip(NAMES, DATA, strict=True)}
    first = dict(list(blobs.items())[:1])
    create_capsule(str(folder / "a"), {layout.TIMELINE: b"old\n", **first})
    create_capsule(str(folder / "b"), {layout.TIMELINE: b"other\n", **blobs})
    return FolderMerger(str(folder / "a"), str(folder / "b"), disk=OsDisk())


def test_only_blobs_that_are_lacking_and_wanted_are_copied(tmp_path: Path) -> None:
    made, told = merger(tmp_path), list[tuple[int, int]]()
    (tmp_path / "b" / layout.BLOBS / "no-blob").write_bytes(b"x")
    lacking = made.lacking({NAMES[1]})
    assert lacking == (NAMES[2],)
    made.copy(lacking, progress=lambda done, total: told.append((done, total)))
    assert (tmp_path / "a" / layout.blob_path(NAMES[2])).read_bytes() == DATA[2]
    assert told == [(0, 1), (1, 1)]


def test_a_blob_with_other_bytes_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    made = merger(tmp_path)
    (tmp_path / "b" / layout.blob_path(NAMES[2])).write_bytes(b"forged")
    before = sorted((tmp_path / "a").rglob("*"))
    with pytest.raises(FormatError) as refused:
        made.copy(NAMES[1:], progress=lambda *_: None)
    assert refused.value.code == "blob_altered"
    assert sorted((tmp_path / "a").rglob("*")) == before


def test_a_link_is_no_blob(tmp_path: Path) -> None:
    made = merger(tmp_path)
    linked = tmp_path / "b" / layout.blob_path(NAMES[2])
    linked.unlink()
    linked.symlink_to("/etc/hostname")
    assert made.lacking(()) == tuple(sorted((NAMES[1],)))
    with pytest.raises(StorageError):
        made.copy((NAMES[2],), progress=lambda *_: None)


def test_a_staged_log_takes_the_place_of_the_log_or_leaves_nothing(tmp_path: Path) -> None:
    made, log = merger(tmp_path), tmp_path / "a" / layout.TIMELINE
    made.stage((b"new ", b"log\n"))
    assert log.read_bytes() == b"old\n"
    assert b"".join(made.staged()) == b"new log\n"
    made.drop()
    assert [path.name for path in log.parent.iterdir() if path.is_file()] == [log.name]
    made.stage((b"new log\n",))
    made.install()
    assert log.read_bytes() == b"new log\n"
    with pytest.raises(StorageError):
        made.install()


def test_blobs_that_were_redacted_are_removed_where_they_are(tmp_path: Path) -> None:
    made = merger(tmp_path)
    made.discard(NAMES)
    assert list((tmp_path / "a" / layout.BLOBS).iterdir()) == []
    assert len(list((tmp_path / "b" / layout.BLOBS).iterdir())) == 3
