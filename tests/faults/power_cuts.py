"""Durable sequences of the adapters, and what must hold wherever one of them ends."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeVar

import pytest

from sojourn.core.ledger_record import LedgerRecord, LedgerTip, first_record
from sojourn.format import layout
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId, Incarnation, RequestId
from sojourn.keys.machine import FileMachineKey
from sojourn.ports import Message, Tip
from sojourn.store.create import create_capsule
from sojourn.store.durable import Durable
from sojourn.store.folder import FolderStore
from sojourn.store.inbox import FolderInbox
from sojourn.store.ledger import FileLedger
from sojourn.store.lock import FileLock
from sojourn.store.log import last_id
from sojourn.store.system import OsClock
from sojourn.testing.disk import Died, Fault, RecordingDisk
from sojourn.testing.power import Act, Check

CAPSULE = CapsuleId("c" * 64)
FOLDER = "/disk/capsules/one"
STATE = "/disk/state"
EPOCH = Epoch(1)

_Answer = TypeVar("_Answer")


def at_once(work: Coroutine[Any, Any, _Answer]) -> _Answer:
    """The answer of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("it waited")


def line(text: str) -> bytes:
    return f'{{"body":{{"text":"{text}"}},"header":{{"of":"{text}"}}}}\n'.encode()


def tip(log: bytes) -> Tip:
    return Tip(length=len(log), last=last_id(log))


AGAIN = 12
"""How many disks are tried after a second power cut."""

FIRST = line("first")
BATCHES = [line("a"), line("b1") + line("b2" * 300), line("c")]
FILES = {
    layout.MANIFEST: b'{"old":1}\n',
    layout.TIMELINE: FIRST,
    layout.WORKING_MEMORY: b"# notes\n",
    layout.SNAPSHOT: b"{}\n",
    layout.INDEX: b"{}\n",
    layout.SPEC: b"{}\n",
}
BLOBS = {BlobId(sha256(data).hexdigest()): data for data in (b"x" * 700, b"y")}
MANY = {BlobId(sha256(bytes([n])).hexdigest()): bytes([n]) for n in range(6)}


def made(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    """A disk with one capsule, all of it durable."""
    plain = RecordingDisk()
    Durable(plain).make_folder("/disk/capsules")
    Durable(plain).make_folder(STATE)
    create_capsule(FOLDER, FILES, disk=plain)
    return plain.turned_into(kind)


def read(disk: RecordingDisk) -> bytes:
    return b"".join(FolderStore(FOLDER, disk=disk).read_log())


def sound(log: bytes, batches: list[bytes]) -> bytes:
    """The log as far as its batches are whole."""
    whole = FIRST
    for batch in batches:
        if not log.startswith(whole + batch):
            break
        whole += batch
    return whole


def append_all(disk: RecordingDisk, done: list[str]) -> None:
    store, log = FolderStore(FOLDER, disk=disk), FIRST
    for batch in BATCHES:
        at_once(store.append(epoch=EPOCH, expected=tip(log), data=batch))
        log += batch
        done.append(batch.decode())


def acknowledge_early(disk: RecordingDisk, done: list[str]) -> None:
    """A planted fault."""
    done.append(BATCHES[0].decode())
    store = FolderStore(FOLDER, disk=disk)
    at_once(store.append(epoch=EPOCH, expected=tip(FIRST), data=BATCHES[0]))


def log_is_kept(disk: RecordingDisk, done: list[str]) -> None:
    acknowledged = FIRST + "".join(done).encode()
    assert read(disk).startswith(acknowledged)
    whole = recover_log(disk)
    assert whole.startswith(acknowledged)
    added = line("added")
    at_once(FolderStore(FOLDER, disk=disk).append(epoch=EPOCH, expected=tip(whole), data=added))
    for later in disk.after_power_cut(limit=AGAIN):
        assert read(later) == whole + added


def recover_log(disk: RecordingDisk) -> bytes:
    whole = sound(read(disk), BATCHES)
    store = FolderStore(FOLDER, disk=disk)
    at_once(store.settle_log(start=len(FIRST), length=len(whole)))
    return whole


def unsettled(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    """A log whose caches hold a batch and a torn one, of which nobody knows what is on the disk."""
    disk = made(kind)
    path = f"{FOLDER}/{layout.TIMELINE}"
    handle = disk.open(path, "append")
    disk.write(handle, BATCHES[0])
    disk.file(path).fail_sync()
    disk.write(handle, BATCHES[1][:-40])
    return disk


def settle(disk: RecordingDisk, done: list[str]) -> None:
    at_once(
        FolderStore(FOLDER, disk=disk).settle_log(start=len(FIRST), length=len(FIRST + BATCHES[0]))
    )
    done.append(BATCHES[0].decode())


def log_is_settled(disk: RecordingDisk, done: list[str]) -> None:
    log = read(disk)
    assert log.startswith(FIRST)
    if done:
        assert log == FIRST + BATCHES[0]
    log_is_kept(disk, done)


def checkpoint(blobs: dict[BlobId, bytes], *, log_first: bool = False) -> Act:
    def act(disk: RecordingDisk, done: list[str]) -> None:
        store = FolderStore(FOLDER, disk=disk)
        batch = b"".join(line(blob) for blob in blobs)
        if not log_first:
            at_once(store.put_blobs(blobs))
        at_once(store.append(epoch=EPOCH, expected=tip(FIRST), data=batch))
        if log_first:
            at_once(store.put_blobs(blobs))
        done.append("log")
        at_once(store.replace_file(layout.MANIFEST, b'{"new":2}\n'))
        done.append("manifest")

    return act


def checkpoint_is_whole(blobs: dict[BlobId, bytes]) -> Check:
    def check(disk: RecordingDisk, done: list[str]) -> None:
        store = FolderStore(FOLDER, disk=disk)
        log = read(disk)
        for blob, data in blobs.items():
            if line(blob) in log or "log" in done:
                assert line(blob) in log
                assert store.read_blob(blob) == data
        manifest = store.read_file(layout.MANIFEST)
        assert manifest == b'{"new":2}\n' or ("manifest" not in done and manifest == b'{"old":1}\n')
        only_whole_files(disk)

    return check


def only_whole_files(disk: RecordingDisk) -> None:
    """A file under the name of a blob is that blob; whatever is half-made is swept away."""
    FolderStore(FOLDER, disk=disk).sweep()
    for path, data in disk.tree().items():
        assert not layout.is_temporary(path)
        name = path.rpartition("/")[2]
        if path.startswith(f"{FOLDER}/{layout.BLOBS}/"):
            assert sha256(data).hexdigest() == name


def blobs_again(disk: RecordingDisk, done: list[str]) -> None:
    """Another process that finds names in the caches may rely on them no more than the first."""
    store = FolderStore(FOLDER, disk=disk)
    at_once(store.put_blobs(BLOBS))
    for later in disk.after_power_cut(limit=AGAIN):
        for blob, data in BLOBS.items():
            assert FolderStore(FOLDER, disk=later).read_blob(blob) == data
    del done


def only_blobs(disk: RecordingDisk, done: list[str]) -> None:
    at_once(FolderStore(FOLDER, disk=disk).put_blobs(BLOBS))
    done.append("blobs")


OLD = first_record(
    capsule=CAPSULE, incarnation=Incarnation("1" * 32), folder=FOLDER, workspace="/disk/w"
)
NEW = LedgerRecord(
    capsule=CAPSULE,
    incarnation=OLD.incarnation,
    state="HOLDER",
    epoch=EPOCH,
    floor=Epoch(7),
    folder=FOLDER,
    workspace="/disk/w",
    tip=LedgerTip(length=9, last=EventId("e" * 64), manifest="f" * 64),
)


def ledger(disk: RecordingDisk) -> FileLedger:
    return FileLedger(f"{STATE}/ledger", host="h", disk=disk)


def with_old_record(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    disk = made()
    ledger(disk).save(OLD)
    return disk.turned_into(kind)


def save(disk: RecordingDisk, done: list[str]) -> None:
    ledger(disk).save(NEW)
    done.append("new")


def ledger_is_old_or_new(disk: RecordingDisk, done: list[str]) -> None:
    found = ledger(disk).load(CAPSULE)
    assert found == NEW or (not done and found == OLD)
    assert ledger(disk).recover(CAPSULE) == found
    for later in disk.after_power_cut(limit=AGAIN):
        assert ledger(later).load(CAPSULE) == found


MESSAGES = [Message(request=RequestId(f"r{n}"), author="user", text="hello" * n) for n in (1, 2)]


def inbox(disk: RecordingDisk) -> FolderInbox:
    return FolderInbox(f"{STATE}/inbox", disk=disk)


def put_two_and_remove_one(disk: RecordingDisk, done: list[str]) -> None:
    first = inbox(disk).put(CAPSULE, MESSAGES[0])
    done.append("r1")
    inbox(disk).put(CAPSULE, MESSAGES[1])
    done.append("r2")
    done.append("removing")
    inbox(disk).remove(CAPSULE, first)


def messages_are_kept(disk: RecordingDisk, done: list[str]) -> None:
    def waiting(where: RecordingDisk) -> list[str]:
        return [item.message.request for item in inbox(where).items(CAPSULE)]

    found = waiting(disk)
    for request in ("r1", "r2"):
        if request in done and not (request == "r1" and "removing" in done):
            assert request in found
    assert inbox(disk).refused(CAPSULE) == ()
    assert inbox(disk).set_aside(CAPSULE) == ()
    assert not [path for path in disk.tree() if layout.is_temporary(path)]
    inbox(disk).put(CAPSULE, MESSAGES[1])
    for later in disk.after_power_cut(limit=AGAIN):
        assert "r2" in waiting(later)


def key(disk: RecordingDisk) -> str:
    return FileMachineKey(STATE, files=Durable(disk), host="h").machine()


def with_a_new_key(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    """The key's maker died when nobody knew whether its name was on the disk."""
    for at in range(1, 99):
        disk = made().copy(fault=Fault(at=at))
        with suppress(Died):
            key(disk)
        if "link machine_key" in disk.operations[-2:-1]:
            return disk.turned_into(kind)
    raise RuntimeError("no key was made")


def make_key(disk: RecordingDisk, done: list[str]) -> None:
    done.append(key(disk))


def key_stays(disk: RecordingDisk, done: list[str]) -> None:
    found = key(disk)
    assert done in ([], [found])
    for later in disk.after_power_cut(limit=AGAIN):
        assert key(later) == found


def create(disk: RecordingDisk, done: list[str]) -> None:
    ledger(disk).save(OLD)
    create_capsule(FOLDER, FILES, disk=disk)
    done.append("made")


def without_capsule(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    disk = RecordingDisk()
    Durable(disk).make_folder(STATE)
    return disk.turned_into(kind)


def with_empty_folder(kind: type[RecordingDisk] = RecordingDisk) -> RecordingDisk:
    """A folder that a person made just now; nobody knows whether it is on the disk."""
    disk = without_capsule()
    Durable(disk).make_folder("/disk/capsules")
    disk.make_folder(FOLDER)
    return disk.turned_into(kind)


def capsule_is_whole_or_none(disk: RecordingDisk, done: list[str]) -> None:
    tree = disk.tree()
    found = {name: data for name in FILES if (data := tree.get(f"{FOLDER}/{name}")) is not None}
    if f"{FOLDER}/{layout.MANIFEST}" in tree or done:
        assert found == FILES
        assert ledger(disk).load(CAPSULE) == OLD
        # Whoever opens it relies on it, so opening makes its names durable.
        length = len(FIRST)
        at_once(FolderStore(FOLDER, disk=disk).settle_log(start=length, length=length))
        for later in disk.after_power_cut(limit=AGAIN):
            assert read(later) == FIRST


def and_none_is_half(disk: RecordingDisk, done: list[str]) -> None:
    """Where the folder was not there before, nothing of it is there until all of it is."""
    capsule_is_whole_or_none(disk, done)
    if disk.stat_path(FOLDER) is not None:
        assert disk.tree().keys() >= {f"{FOLDER}/{name}" for name in FILES}


def lock(disk: RecordingDisk, boot: str) -> FileLock:
    return FileLock(f"{STATE}/locks", command="test", clock=OsClock(), disk=disk, boot=boot)


def hold(disk: RecordingDisk, done: list[str]) -> None:
    with lock(disk, "boot 1").acquire(CAPSULE) as left:
        assert left is None
        done.append("held")
        store = FolderStore(FOLDER, disk=disk)
        at_once(store.append(epoch=EPOCH, expected=tip(FIRST), data=line("work")))
        done.append("worked")
    done.append("let go")


def a_death_is_remembered(disk: RecordingDisk, done: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt), lock(disk, "boot 2").acquire(CAPSULE) as left:
        if read(disk) != FIRST and "worked" not in done:
            assert left is not None
        if left is not None:
            assert left.boot in ("boot 1", "")
        raise KeyboardInterrupt
    before = left
    with lock(disk, "boot 2").acquire(CAPSULE) as left:
        assert left is not None
        assert left.boot == ("boot 2" if before is None else before.boot)


@dataclass(frozen=True)
class Sequence:
    """Where it starts, what it does, and what must hold after any end of it."""

    start: Callable[[type[RecordingDisk]], RecordingDisk]
    act: Act
    check: Check


SEQUENCES = {
    "append": Sequence(made, append_all, log_is_kept),
    "settle": Sequence(unsettled, settle, log_is_settled),
    "checkpoint": Sequence(made, checkpoint(BLOBS), checkpoint_is_whole(BLOBS)),
    "many blobs": Sequence(made, checkpoint(MANY), checkpoint_is_whole(MANY)),
    "blobs again": Sequence(made, only_blobs, blobs_again),
    "ledger": Sequence(with_old_record, save, ledger_is_old_or_new),
    "inbox": Sequence(made, put_two_and_remove_one, messages_are_kept),
    "key": Sequence(made, make_key, key_stays),
    "key again": Sequence(with_a_new_key, make_key, key_stays),
    "create": Sequence(without_capsule, create, and_none_is_half),
    "create in an empty folder": Sequence(with_empty_folder, create, capsule_is_whole_or_none),
    "lock": Sequence(made, hold, a_death_is_remembered),
    "log first": Sequence(made, checkpoint(BLOBS, log_first=True), checkpoint_is_whole(BLOBS)),
    "early": Sequence(made, acknowledge_early, log_is_kept),
}
"""The last two are faults of whoever uses the store."""
