"""What the operating system is asked, and how the real disk answers."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable
from sojourn.store.system import (
    OsClock,
    OsRandomness,
    boot_id,
    host_digest,
    process_start,
)
from sojourn.testing.disk import Died, Fault, RecordingDisk


def test_now_is_utc_with_milliseconds() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", OsClock().now())
    before = OsClock().monotonic()
    asyncio.run(OsClock().wait(0))
    assert OsClock().monotonic() >= before


def test_randomness_is_of_the_size_asked_for() -> None:
    assert [len(OsRandomness().token(size)) for size in (0, 16)] == [0, 16]
    assert OsRandomness().token(16) != OsRandomness().token(16)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_boot_and_host_are_the_same_as_long_as_they_are() -> None:
    assert re.fullmatch(r"[0-9a-f-]{36}", boot_id())
    assert boot_id() == boot_id()
    digest = host_digest()
    if digest is not None:
        assert re.fullmatch(r"[0-9a-f]{64}", digest)
        assert Path("/etc/machine-id").read_text().strip() not in digest


def test_a_process_is_named_by_its_pid_and_start() -> None:
    other = subprocess.Popen(["sleep", "600"])
    started = process_start(other.pid)
    assert started
    assert process_start(other.pid) == started
    assert process_start(os.getpid())
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert process_start(other.pid) == ""
    other.wait()
    assert process_start(other.pid) == ""


def birth(path: Path) -> str | None:
    disk = OsDisk()
    handle = disk.open(str(path), "read")
    try:
        return disk.birth(handle)
    finally:
        disk.close(handle)


def test_a_copy_is_born_later_and_a_renamed_file_is_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    born = birth(file)
    if born is None:
        pytest.skip("this file system does not keep birth times")
    shutil.copy2(file, tmp_path / "copy")
    assert birth(tmp_path / "copy") != born
    file.write_bytes(b"y")
    assert birth(file.rename(tmp_path / "renamed")) == born


def test_the_whole_file_system_can_be_synced(tmp_path: Path) -> None:
    assert OsDisk().sync_all(str(tmp_path)) is (sys.platform == "linux")


def test_a_file_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    files = Durable(OsDisk())
    path = str(tmp_path / "file")
    assert files.create(path, b"one")
    assert not files.create(path, b"two")
    assert files.read(path) == b"one"
    files.replace(path, b"three")
    assert files.read(path) == b"three"
    assert files.read(str(tmp_path / "other")) is None
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_that_was_found_is_as_durable_as_one_that_was_made() -> None:
    """Whoever made it may have died before its name was on the disk."""
    disk = RecordingDisk(fault=Fault(at=6))
    with pytest.raises(Died, match="sync folder"):
        Durable(disk).create("/file", b"one")
    after = disk.after_kill()
    assert not Durable(after).create("/file", b"two")
    for found in after.after_power_cut():
        assert found.tree() == {"/file": b"one"}


def test_what_is_damaged_is_set_aside_under_a_new_name_each_time(tmp_path: Path) -> None:
    files = Durable(OsDisk())
    path = str(tmp_path / "file")
    for number in (1, 2):
        files.create(path, b"x" * number)
        assert files.set_aside(path) == f"{path}.damaged-{number}"
    assert files.set_aside(path) is None
    assert (tmp_path / "file.damaged-1").read_bytes() == b"x"


def test_folders_are_made_with_their_parents_for_this_user_alone(tmp_path: Path) -> None:
    files = Durable(OsDisk())
    for _ in range(2):
        files.make_folder(str(tmp_path / "a" / "b" / "c"))
    for name in ("a", "a/b", "a/b/c"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
