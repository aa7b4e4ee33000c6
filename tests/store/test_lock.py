"""The lock goes with its process, says who has it, and remembers who died with it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sojourn.errors import FencedError, HeldElsewhereError, UsageError
from sojourn.ids import CapsuleId
from sojourn.store.lock import CONTENT, FileLock
from sojourn.store.system import OsClock, boot_id, process_start
from sojourn.testing.disk import RecordingDisk

CAPSULE = CapsuleId("c" * 64)

HOLD = """
import subprocess, sys
from sojourn.store.lock import FileLock
from sojourn.store.system import OsClock

with FileLock(sys.argv[1], command="the other", clock=OsClock()).acquire("c" * 64):
    child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


def lock(folder: Path, boot: str | None = None) -> FileLock:
    return FileLock(str(folder), command="this one", clock=OsClock(), boot=boot)


@contextmanager
def held_elsewhere(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the capsule and has a child that outlives it."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    child = int(other.stdout.readline())
    try:
        yield other
    finally:
        other.stdin.close()
        other.stdout.close()
        other.wait()
        os.kill(child, signal.SIGKILL)


def test_the_second_process_is_told_who_has_it_and_since_when(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as other:
        with pytest.raises(HeldElsewhereError) as refused, lock(tmp_path).acquire(CAPSULE):
            pass
        held = lock(tmp_path).holder(CAPSULE)
        assert held is not None
        assert (held.pid, held.command, held.boot) == (other.pid, "the other", boot_id())
        assert held.start == process_start(other.pid)
        assert f"held by pid {other.pid} since {held.since}" in refused.value.message
        assert refused.value.exit == 5
    assert lock(tmp_path).holder(CAPSULE) is None


def test_a_killed_process_lets_go_at_once_and_is_remembered(tmp_path: Path) -> None:
    """Although a child of it lives on, and had every chance to inherit the lock."""
    with held_elsewhere(tmp_path) as other:
        other.kill()
        other.wait()
        assert lock(tmp_path).holder(CAPSULE) is None
        seen = lock(tmp_path).left(CAPSULE)
        with lock(tmp_path).acquire(CAPSULE) as left:
            assert left is not None
            assert left == seen
            assert (left.pid, left.boot) == (other.pid, boot_id())
            assert lock(tmp_path).left(CAPSULE) is None
    assert lock(tmp_path).left(CAPSULE) is None
    with lock(tmp_path).acquire(CAPSULE) as left:
        assert left is None


def test_a_good_end_leaves_nothing(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path):
        pass
    with lock(tmp_path).acquire(CAPSULE) as left:
        assert left is None


def test_a_reboot_is_not_forgotten_until_the_log_is_settled(tmp_path: Path) -> None:
    def die(boot: str, *, settle: bool = False) -> str | None:
        last = lock(tmp_path, boot)
        with pytest.raises(KeyboardInterrupt), last.acquire(CAPSULE) as left:
            if settle:
                last.settled(CAPSULE)
            raise KeyboardInterrupt
        return None if left is None else left.boot

    assert die("first") is None
    assert die("second") == "first"
    assert die("second") == "first"
    assert die("second", settle=True) == "first"
    assert die("second") == "second"
    assert die("third", settle=True) == "second"
    assert die("fourth") == "third"


@pytest.mark.parametrize("content", [b"\0" * CONTENT, b"{", b"[]", b"x" * 9000, b'{"pid":1}'])
def test_a_content_that_cannot_be_read_was_left_by_somebody(content: bytes, tmp_path: Path) -> None:
    (tmp_path / CAPSULE).write_bytes(content)
    assert lock(tmp_path).holder(CAPSULE) is None
    with lock(tmp_path).acquire(CAPSULE) as left:
        assert left is not None
        assert (left.pid, left.boot) == (0, "")
    with lock(tmp_path).acquire(CAPSULE) as left:
        assert left is None


def test_a_removed_or_replaced_lock_is_noticed(tmp_path: Path) -> None:
    mine = lock(tmp_path)
    with mine.acquire(CAPSULE):
        mine.check(CAPSULE)
        (tmp_path / CAPSULE).rename(tmp_path / "aside")
        with pytest.raises(FencedError):
            mine.check(CAPSULE)
        (tmp_path / CAPSULE).write_bytes(b"")
        with pytest.raises(FencedError) as lost:
            mine.check(CAPSULE)
        assert lost.value.code == "lock_lost"


@pytest.mark.parametrize(("boot", "tries"), [("another boot", 3), ("another boot", 30), (None, 3)])
def test_questions_never_keep_a_holder_out(boot: str | None, tries: int) -> None:
    """Whoever only asks holds it for a moment; the one who wants it asks again.

    Also where somebody died, or this very process let go without a good end.
    """
    disk = RecordingDisk()
    last = FileLock("/locks", command="this one", clock=OsClock(), disk=disk, boot=boot)
    with pytest.raises(KeyboardInterrupt), last.acquire(CAPSULE):
        raise KeyboardInterrupt
    asking = disk.open(f"/locks/{CAPSULE}", "read")
    assert disk.lock(asking, shared=True)

    class Patient(FileLock):
        asked = 0

        def _content(self, handle: int) -> object:
            self.asked += 1
            if self.asked == tries:
                disk.close(asking)
            return super()._content(handle)

    patient = Patient("/locks", command="this one", clock=OsClock(), disk=disk)
    with patient.acquire(CAPSULE):
        assert patient.asked >= tries


def test_a_state_folder_on_a_network_file_system_holds_nothing() -> None:
    class Far(RecordingDisk):
        def network(self, path: str) -> str | None:
            return "cifs" if path == "/locks" else None

    far = FileLock("/locks", command="this one", clock=OsClock(), disk=Far())
    with pytest.raises(UsageError) as refused, far.acquire(CAPSULE):
        pass
    assert (refused.value.code, refused.value.exit) == ("network_folder", 6)


def test_a_command_of_any_kind_fits(tmp_path: Path) -> None:
    command = '"\\\ud800ü' * 99
    odd = FileLock(str(tmp_path), command=command, clock=OsClock())
    with odd.acquire(CAPSULE):
        held = lock(tmp_path).holder(CAPSULE)
        assert held is not None
        assert held.pid == os.getpid()
        assert (tmp_path / CAPSULE).stat().st_size == CONTENT
