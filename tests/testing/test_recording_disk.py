"""The recording disk behaves like a real one, and a power cut leaves what the rules allow."""

import errno
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.store.disk import Disk, OsDisk
from sojourn.testing.disk import Died, Fault, RecordingDisk
from sojourn.testing.disk_model import SECTOR, Folder
from sojourn.testing.power import end_everywhere


def write(disk: Disk, path: str, data: bytes, *, sync: bool = False) -> None:
    handle = disk.open(path, "create" if disk.stat_path(path) is None else "append")
    disk.write(handle, data)
    if sync:
        disk.sync(handle)
    disk.close(handle)


def left(disk: RecordingDisk) -> list[dict[str, bytes]]:
    return [found.tree() for found in disk.after_power_cut(limit=1000)]


def contents(disk: RecordingDisk, path: str = "/file") -> set[bytes]:
    return {tree[path] for tree in left(disk) if path in tree}


def test_an_unsynced_file_may_be_gone_empty_torn_zeros_or_whole() -> None:
    disk = RecordingDisk()
    write(disk, "/file", b"12345678")
    assert {} in left(disk)
    assert contents(disk) >= {b"", b"1", b"1234", b"12345678", bytes(8), b"\0\0\0\x005678"}
    assert disk.tree() == disk.after_kill().tree() == {"/file": b"12345678"}


def test_long_writes_tear_at_sectors() -> None:
    disk = RecordingDisk()
    write(disk, "/file", b"x" * 3 * SECTOR)
    lengths = {len(data.rstrip(b"\0")) for data in contents(disk)}
    assert lengths >= {SECTOR, 2 * SECTOR, 3 * SECTOR}


def test_a_synced_file_needs_its_folder_synced_too() -> None:
    disk = RecordingDisk()
    write(disk, "/file", b"data", sync=True)
    assert left(disk) == [{}, {"/file": b"data"}]
    disk.sync_folder("/")
    assert left(disk) == [{"/file": b"data"}]


def test_unsynced_writes_reach_the_disk_in_any_order() -> None:
    disk = RecordingDisk()
    write(disk, "/file", b"start", sync=True)
    disk.sync_folder("/")
    write(disk, "/file", b"AB")
    write(disk, "/file", b"CD")
    assert contents(disk) >= {b"start", b"startAB", b"startABCD", b"start\0\0CD", b"startABC"}


def test_changes_of_names_reach_the_disk_in_any_selection() -> None:
    disk = RecordingDisk()
    for name in ("/a", "/b"):
        write(disk, name, b"x", sync=True)
    disk.sync_folder("/")
    disk.unlink("/a")
    disk.rename("/b", "/c")
    assert {frozenset(tree) for tree in left(disk)} == {
        frozenset(names) for names in ({"/a", "/b"}, {"/b"}, {"/a", "/c"}, {"/c"})
    }


def test_a_failed_sync_is_never_made_good_by_a_second_one() -> None:
    disk = RecordingDisk()
    write(disk, "/file", b"start", sync=True)
    disk.sync_folder("/")
    disk = disk.copy(fault=Fault(at=2, error=errno.EIO))
    handle = disk.open("/file", "append")
    disk.write(handle, b"more")
    with pytest.raises(OSError, match="error"):
        disk.sync(handle)
    disk.sync(handle)
    assert disk.tree() == {"/file": b"startmore"}
    assert contents(disk) == {b"start\0\0\0\0", b"startmore"}
    again = disk.open("/file", "update")
    disk.write_at(again, b"more", 5)
    disk.sync(again)
    assert contents(disk) == {b"startmore"}


def test_syncing_all_makes_everything_durable() -> None:
    disk = RecordingDisk()
    disk.make_folder("/folder")
    write(disk, "/folder/file", b"x")
    disk.sync_all("/folder")
    assert left(disk) == [{"/folder/file": b"x"}]


def test_a_cut_leaves_nothing_pending() -> None:
    disk = RecordingDisk()
    write(disk, "/file", b"1234")
    for found in disk.after_power_cut():
        assert left(found) == [found.tree()]


def test_many_possible_disks_are_sampled_with_both_extremes() -> None:
    disk = RecordingDisk()
    for n in range(8):
        write(disk, f"/{n}", b"data")
    trees = [found.tree() for found in disk.after_power_cut(limit=50)]
    assert 25 < len(trees) <= 50
    assert trees[0] == {}
    assert len({repr(sorted(tree.items())) for tree in trees}) > 20


def test_a_dead_process_does_nothing_more() -> None:
    disk = RecordingDisk(fault=Fault(at=2))
    write_part(disk)
    with pytest.raises(Died):
        disk.unlink("/file")
    assert disk.tree() == {"/file": b""}


def write_part(disk: RecordingDisk) -> None:
    with pytest.raises(Died):
        write(disk, "/file", b"data")


def test_a_torn_write_is_half_done() -> None:
    disk = RecordingDisk(fault=Fault(at=2, torn=True))
    write_part(disk)
    assert disk.after_kill().tree() == {"/file": b"da"}


def test_copies_are_worlds_of_their_own() -> None:
    disk = RecordingDisk(Folder(1))
    write(disk, "/file", b"one")
    copy = disk.copy()
    write(copy, "/file", b"two")
    disk.sync_folder("/")
    assert (disk.tree(), copy.tree()) == ({"/file": b"one"}, {"/file": b"onetwo"})
    assert {} in left(copy)


def test_a_lock_is_for_one_or_for_many_that_share_it() -> None:
    disk = RecordingDisk()
    first, second, third = (disk.open("/lock", "lock") for _ in range(3))
    assert disk.lock(first, shared=True)
    assert disk.lock(second, shared=True)
    assert not disk.lock(third)
    disk.close(first)
    disk.unlock(second)
    assert disk.lock(third)
    assert not disk.lock(second, shared=True)
    with pytest.raises(RuntimeError):
        disk.lock(second, wait=True)


def test_an_end_is_made_at_every_operation() -> None:
    def act(disk: RecordingDisk, done: list[str]) -> None:
        write(disk, "/a", b"x")
        done.append("a")

    ends: list[int] = []

    def check(disk: RecordingDisk, done: list[str]) -> None:
        ends.append(len(disk.tree()) + len(done))

    tried = end_everywhere(RecordingDisk(), act, check, errors=(None,))
    assert tried.ends == 2 * 3
    assert tried.disks == len(ends) > tried.ends


PATHS = ("/a", "/b", "/f", "/f/a", "/f/b", "/f/g", "/f/g/a", "/none/a")

STEPS: dict[str, Callable[[Disk, str, str], object]] = {
    "append": lambda disk, root, path: write(disk, root + path, b"data"),
    "create": lambda disk, root, path: disk.close(disk.open(root + path, "create")),
    "lock": lambda disk, root, path: disk.close(disk.open(root + path, "lock")),
    "read": lambda disk, root, path: disk.close(disk.open(root + path, "read")),
    "folder": lambda disk, root, path: disk.make_folder(root + path),
    "unlink": lambda disk, root, path: disk.unlink(root + path),
    "list": lambda disk, root, path: disk.list(root + path.rpartition("/")[0]),
    "stat": lambda disk, root, path: seen(disk, root + path),
    "patch": lambda disk, root, path: patch(disk, root + path),
}
PAIRS: dict[str, Callable[[Disk, str, str], object]] = {
    "rename": lambda disk, old, new: disk.rename(old, new),
    "link": lambda disk, old, new: disk.link(old, new),
}


def patch(disk: Disk, path: str) -> None:
    handle = disk.open(path, "update")
    disk.truncate(handle, 6)
    disk.write_at(handle, b"##", 2)
    disk.close(handle)


def seen(disk: Disk, path: str) -> object:
    found = disk.stat_path(path)
    return found and (found.kind, found.size if found.kind == "file" else 0)


def answer(step: Callable[[], object]) -> object:
    try:
        return step()
    except OSError as failure:
        return errno.errorcode[failure.errno or 0]


@pytest.mark.parametrize("seed", range(20))
def test_it_answers_as_a_real_disk_does(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    real, recording, root = OsDisk(), RecordingDisk(), str(tmp_path)
    for _ in range(60):
        one, other = choose.choice(PATHS), choose.choice(PATHS)
        name = choose.choice([*STEPS, *PAIRS])
        if name in STEPS:
            step = STEPS[name]
            answers = [
                answer(lambda s=step, d=disk, r=place, p=one: s(d, r, p))
                for disk, place in ((real, root), (recording, ""))
            ]
        else:
            pair = PAIRS[name]
            if one.startswith(other) or other.startswith(one) or is_folder(real, root + one):
                continue
            answers = [
                answer(lambda s=pair, d=disk, o=place + one, n=place + other: s(d, o, n))
                for disk, place in ((real, root), (recording, ""))
            ]
        assert answers[0] == answers[1], (name, one, other)
        files = recording.tree()
        assert {f"/{p.relative_to(root)}": p.read_bytes() for p in all_files(tmp_path)} == files


def is_folder(disk: Disk, path: str) -> bool:
    found = disk.stat_path(path)
    return found is not None and found.kind == "folder"


def all_files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]
