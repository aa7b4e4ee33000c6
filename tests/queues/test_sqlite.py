"""The queue survives what happens to its file; losing it loses wake-ups only."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sojourn.errors import StorageError
from sojourn.ids import CapsuleId
from sojourn.queues.sqlite import SqliteQueue
from sojourn.store.system import OsClock

ONE, TWO = CapsuleId("1" * 64), CapsuleId("2" * 64)


@contextmanager
def queue_at(path: Path, *, busy_seconds: float = 60) -> Iterator[SqliteQueue]:
    queue = SqliteQueue(str(path), clock=OsClock(), busy_seconds=busy_seconds)
    try:
        yield queue
    finally:
        queue.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "queue.sqlite3"


def overwritten(path: Path) -> None:
    path.write_bytes(b"this is no database, whatever its name says" * 99)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def middle_destroyed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:8000] = b"\xff" * 7900
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [overwritten, cut_short, middle_destroyed])
def test_a_damaged_file_is_kept_named_and_made_anew(
    damage: Callable[[Path], None], path: Path
) -> None:
    with queue_at(path) as queue:
        for n in range(200):
            queue.put(CapsuleId(f"{n:064}"), "/folder" * 9)
    damage(path)
    damaged = path.read_bytes()
    with queue_at(path) as queue:
        queue.put(ONE, "/a")
        assert [job.folder for job in queue.jobs() if job.capsule == ONE] == ["/a"]
        assert queue.set_aside == (f"{path}.damaged-1",)
    assert Path(f"{path}.damaged-1").read_bytes() == damaged
    with queue_at(path) as queue:
        assert [job.capsule for job in queue.jobs()] == [ONE]
        assert queue.set_aside == ()


def test_two_that_find_it_damaged_make_one_new_file(path: Path) -> None:
    path.parent.mkdir()
    with queue_at(path) as first, queue_at(path) as second:
        first.put(ONE, "/a")
        first.close()
        overwritten(path)
        first.put(ONE, "/a")
        second.put(TWO, "/b")
        assert [job.capsule for job in first.jobs()] == [ONE, TWO]
        assert [*first.set_aside, *second.set_aside] == [f"{path}.damaged-1"]


def test_who_comes_late_to_a_damaged_file_keeps_the_new_one(path: Path) -> None:
    with queue_at(path) as quick:

        class Late(SqliteQueue):
            def _replace_damaged(self) -> None:
                quick.put(ONE, "/a")
                super()._replace_damaged()

        quick.put(ONE, "/a")
        quick.close()
        overwritten(path)
        late = Late(str(path), clock=OsClock())
        late.put(TWO, "/b")
        assert {job.capsule for job in late.jobs()} == {ONE, TWO}
        assert (quick.set_aside, late.set_aside) == ((f"{path}.damaged-1",), ())
        late.close()


def test_a_file_that_vanished_is_made_anew(path: Path) -> None:
    with queue_at(path) as queue:
        queue.put(ONE, "/a")
        for file in path.parent.iterdir():
            file.unlink()
        queue.put(TWO, "/b")
        assert [job.capsule for job in queue.jobs()] == [TWO]


def test_what_is_committed_is_in_the_file_when_the_process_is_killed(path: Path) -> None:
    """And a transaction that was open then keeps nobody waiting."""
    program = f"""
import os, signal
from sojourn.queues.sqlite import SqliteQueue
from sojourn.store.system import OsClock
queue = SqliteQueue({str(path)!r}, clock=OsClock())
queue.put("1" * 64, "/a")
queue._opened().execute("BEGIN IMMEDIATE")
queue._opened().execute("DELETE FROM jobs")
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -9
    with queue_at(path) as queue:
        assert [job.capsule for job in queue.jobs()] == [ONE]
        queue.put(TWO, "/b")


def test_several_processes_share_it(path: Path) -> None:
    program = f"""
import sys
from sojourn.queues.sqlite import SqliteQueue
from sojourn.store.system import OsClock
queue = SqliteQueue({str(path)!r}, clock=OsClock())
got = 0
for n in range(20):
    queue.put(f"{{n:064}}", "/a")
    job = queue.lease(f"{{n:064}}", sys.argv[1], is_free=lambda _: False)
    got += job is not None
print(got)
"""
    others = [
        subprocess.Popen(
            [sys.executable, "-c", program, f"worker {n}"], stdout=subprocess.PIPE, text=True
        )
        for n in range(3)
    ]
    got = [int(other.communicate()[0]) for other in others]
    with queue_at(path) as queue:
        jobs = queue.jobs()
        assert len(jobs) == 20
        assert sum(got) == 20
        assert all(job.worker is not None for job in jobs)
        assert sum(job.puts for job in jobs) == 60


def test_every_commit_is_synced(path: Path) -> None:
    with queue_at(path) as queue:
        connection = queue._opened()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", ["a file/queue.sqlite3", "a folder"])
def test_a_place_where_no_file_can_be_is_a_storage_error(place: str, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "a folder").mkdir()
    with queue_at(tmp_path / place) as queue, pytest.raises(StorageError) as failed:
        queue.put(ONE, "/a")
    assert failed.value.exit == 75


def test_a_held_database_is_a_named_and_temporary_failure(path: Path) -> None:
    with queue_at(path) as holder, queue_at(path, busy_seconds=0.01) as other:
        other.jobs()
        holder._opened().execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError) as failed:
            other.put(ONE, "/a")
        assert (failed.value.code, failed.value.exit) == ("queue_busy", 75)
        assert other.jobs() == ()
        holder._opened().execute("ROLLBACK")
        other.put(ONE, "/a")
