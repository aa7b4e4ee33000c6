"""On real file systems: a full disk, a limit, a read-only one stop the work cleanly."""

import asyncio
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from faults.small_disk import small_disk_at
from sojourn.core.ledger_record import first_record
from sojourn.errors import StorageError
from sojourn.format import layout
from sojourn.ids import BlobId, CapsuleId, Epoch, Incarnation, RequestId
from sojourn.keys.machine import FileMachineKey
from sojourn.ports import Message, Tip
from sojourn.queues.sqlite import SqliteQueue
from sojourn.store.create import create_capsule
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable
from sojourn.store.folder import FolderStore
from sojourn.store.inbox import FolderInbox
from sojourn.store.ledger import FileLedger
from sojourn.store.lock import FileLock
from sojourn.store.log import last_id
from sojourn.store.system import OsClock

CAPSULE = CapsuleId("c" * 64)
ONE = Epoch(1)
RECORD = first_record(
    capsule=CAPSULE, incarnation=Incarnation("a" * 32), folder="/c", workspace="/w"
)
ROOM = 256 * 1024


def line(text: str) -> bytes:
    return f'{{"body":{{"text":"{text}"}},"header":{{"of":"{text}"}}}}\n'.encode()


def tip(log: bytes) -> Tip:
    return Tip(length=len(log), last=last_id(log))


def message(request: str) -> Message:
    return Message(request=RequestId(request), author="user", text="x" * 9000)


class Place:
    """A capsule and a state folder on one small file system, and what is known to be on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = str(root / "capsule")
        self.log = line("first")
        create_capsule(self.folder, {layout.TIMELINE: self.log, layout.MANIFEST: b"old"})
        self.ledger().save(RECORD)
        self.inbox().put(CAPSULE, message("accepted"))
        with self.lock().acquire(CAPSULE):
            pass

    def store(self) -> FolderStore:
        return FolderStore(self.folder)

    def ledger(self) -> FileLedger:
        return FileLedger(str(self.root / "ledger"), host="h")

    def inbox(self) -> FolderInbox:
        return FolderInbox(str(self.root / "inbox"))

    def lock(self) -> FileLock:
        return FileLock(str(self.root / "locks"), command="a test", clock=OsClock())

    def append(self, text: str) -> None:
        store = self.store()
        try:
            asyncio.run(store.append(epoch=ONE, expected=tip(self.log), data=line(text)))
        finally:
            store.close()
        self.log += line(text)

    def recover(self) -> None:
        """What the next process does: cut what is torn, write again what it read, go on."""
        store = self.store()
        asyncio.run(store.settle_log(start=0, length=len(self.log)))
        store.sweep()
        assert b"".join(store.read_log()) == self.log

    def is_as_before(self) -> None:
        assert b"".join(self.store().read_log()).startswith(self.log)
        assert self.store().read_file(layout.MANIFEST) == b"old"
        assert self.ledger().load(CAPSULE) == RECORD
        found = [item.message.request for item in self.inbox().items(CAPSULE)]
        assert found == ["accepted"]
        assert self.inbox().items(CAPSULE)[0].message == message("accepted")


def append_much(place: Place) -> None:
    for n in range(99):
        place.append(f"{n}" * 9000)


def keep_blob(place: Place) -> None:
    data = os.urandom(2 * ROOM)
    name = BlobId(sha256(data).hexdigest())
    try:
        asyncio.run(place.store().put_blobs({name: data}))
    finally:
        assert not place.store().has_blob(name)


def replace_manifest(place: Place) -> None:
    asyncio.run(place.store().replace_file(layout.MANIFEST, b"x" * 2 * ROOM))


def save_record(place: Place) -> None:
    place.ledger().save(msgspec.structs.replace(RECORD, folder="/" + "x" * 2 * ROOM))


def send(place: Place) -> None:
    for n in range(99):
        item = place.inbox().put(CAPSULE, message(f"{n}"))
        place.inbox().remove(CAPSULE, item)
        (place.root / f"fill{n}").write_bytes(b"x" * 9000)
    place.inbox().put(CAPSULE, message("last"))


def make(place: Place) -> None:
    create_capsule(str(place.root / "new"), {layout.TIMELINE: b"x" * 2 * ROOM})


WORK: dict[str, Callable[[Place], None]] = {
    "append": append_much,
    "blob": keep_blob,
    "manifest": replace_manifest,
    "ledger": save_record,
    "create": make,
}


@contextmanager
def file_size_limit() -> Iterator[None]:
    """What the kernel answers with EFBIG from here on; Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", WORK)
def test_a_limit_of_sizes_stops_the_work_and_keeps_all(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    with file_size_limit(), pytest.raises(StorageError) as failed:
        WORK[name](place)
    goes_on(place, failed.value)


def goes_on(place: Place, failure: StorageError) -> None:
    """Whatever was accepted is there, and with room the work goes on."""
    assert failure.code == "disk_full"
    assert failure.file is not None
    place.is_as_before()
    place.recover()
    place.append("after")
    assert b"".join(place.store().read_log()) == place.log
    assert not (place.root / "new").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    with small_disk_at(tmp_path / "disk", ROOM) as root:
        yield root


@pytest.mark.parametrize("name", [*WORK, "send"])
def test_a_full_disk_stops_the_work_and_keeps_all(name: str, small_disk: Path) -> None:
    place = Place(small_disk)
    with pytest.raises(StorageError) as failed:
        {**WORK, "send": send}[name](place)
    for path in small_disk.glob("fill*"):
        path.unlink()
    goes_on(place, failed.value)


def test_a_read_only_disk_is_read_and_named(small_disk: Path) -> None:
    place = Place(small_disk)
    FileMachineKey(str(small_disk), files=Durable(OsDisk()), host="h").machine()
    queue = SqliteQueue(str(small_disk / "queue.sqlite3"), clock=OsClock())
    queue.put(CAPSULE, "/c")
    queue.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    def hold() -> None:
        with place.lock().acquire(CAPSULE):
            raise RuntimeError("held on a disk that cannot be written")

    works: list[Callable[[], object]] = [
        lambda: place.append("no"),
        lambda: asyncio.run(place.store().settle_log(start=0, length=len(place.log))),
        lambda: asyncio.run(place.store().replace_file(layout.MANIFEST, b"new")),
        lambda: place.ledger().save(RECORD),
        lambda: place.inbox().put(CAPSULE, message("no")),
        lambda: make(place),
        lambda: queue.put(CAPSULE, "/d"),
        hold,
    ]
    for work in works:
        with pytest.raises(StorageError) as failed:
            work()
        assert failed.value.code == "read_only"
    queue.close()
    place.is_as_before()
    assert place.lock().holder(CAPSULE) is None
    assert FileMachineKey(str(small_disk), files=Durable(OsDisk()), host="h").machine()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    (tmp_path / "place" / "ledger").chmod(0o500)
    with pytest.raises(StorageError) as failed:
        place.ledger().save(RECORD)
    assert failed.value.code == "not_allowed"
