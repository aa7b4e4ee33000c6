"""Forks and claims over a disk that can end anywhere; their checks are shared by both tests.

Their workspace is a real folder, put under its path before each run and taken back after it.
"""

import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self

from faults.power_cuts import at_once
from sojourn.core.ledger_record import LedgerRecord, first_record
from sojourn.core.mask import Mask
from sojourn.drive.claim import Workplace, claim_capsule
from sojourn.drive.create import new_capsule
from sojourn.drive.fork import Home, fork_capsule
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Unwatched
from sojourn.drive.opening import hold_capsule
from sojourn.drive.snapshots import Keeper
from sojourn.format import layout
from sojourn.format.canon import load
from sojourn.format.capsule_kinds import Claimed, Restored
from sojourn.format.event import Configured, Event
from sojourn.format.timeline_read import Reader
from sojourn.format.verify import verify
from sojourn.ids import CapsuleId
from sojourn.keys.machine import FileMachineKey
from sojourn.queues.sqlite import SqliteQueue
from sojourn.store.arriving import FolderLanding
from sojourn.store.create import create_capsule
from sojourn.store.durable import Durable
from sojourn.store.folder import FolderStore
from sojourn.store.inbox import FolderInbox
from sojourn.store.ledger import FileLedger
from sojourn.store.lock import FileLock
from sojourn.store.making import FolderMaker
from sojourn.store.merging import FolderMerger
from sojourn.store.release import FileRelease
from sojourn.store.rewriting import FolderRewriter
from sojourn.store.system import OsClock, OsRandomness
from sojourn.store.workspace import FolderWorkspace
from sojourn.testing.disk import LIMIT, Fault, RecordingDisk

PARENT, FORK = "/disk/capsules/parent", "/disk/capsules/fork"
HERE, THERE = "/disk/state-here", "/disk/state-there"


REAL = Path(tempfile.gettempdir()) / f"sojourn-carrying-{os.getpid()}"
W = str(REAL / "w")
FILES = {"one.txt": b"1", "deep/two.txt": b"2" * 3000, "deep/three": b"3"}
MINE = {"notes": b"mine"}
"""What a person has in the folder before; it must never change."""


class DiskWithWorkspace(RecordingDisk):
    """A disk, and what processes find in the workspace: all of it, and what is durable of it.

    It is a file system of its own: a `sync_all` of it makes it durable, and nothing else. A power
    cut leaves the one or the other.
    """

    live: dict[str, bytes]
    durable: dict[str, bytes]

    def copy(self, *, fault: Fault | None = None) -> Self:
        return self._with(super().copy(fault=fault), self.live)

    def turned_into(self, kind: type[Any]) -> Any:
        return self._with(super().turned_into(kind), self.live)

    def after_power_cut(self, *, limit: int = LIMIT) -> Iterator[Self]:
        if self.live != self.durable:
            yield self._with(next(super().after_power_cut(limit=1)), self.live)
        for disk in super().after_power_cut(limit=limit):
            yield self._with(disk, self.durable)

    def sync_all(self, path: str) -> bool:
        if not path.startswith(W):
            return super().sync_all(path)
        self._step("sync all", path)
        self.durable = found_in(REAL)
        return True

    def _with(self, disk: Any, found: dict[str, bytes]) -> Any:
        disk.live, disk.durable = found, self.durable if found is self.live else found
        return disk

    @contextmanager
    def mounted(self) -> Generator[None]:
        """The workspace under its path; what is left of it is kept."""
        shutil.rmtree(REAL, ignore_errors=True)
        REAL.mkdir()
        for name, data in self.live.items():
            (REAL / name).parent.mkdir(parents=True, exist_ok=True)
            (REAL / name).write_bytes(data)
        try:
            yield
        finally:
            self.live = found_in(REAL)
            shutil.rmtree(REAL)


def found_in(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


class NoSandbox:
    """Nothing was started, so nothing is left behind."""

    def end_left_behind(self) -> tuple[int, ...]:
        return ()


BOOTS = ("first", "later")
"""A power cut is another boot; what only died is read in the same way."""


def ports(disk: RecordingDisk, state: str, boot: str = BOOTS[1]) -> Ports:
    """A machine whose state folder is on this disk; every other process is dead."""
    nothing: Any = NoSandbox()
    return Ports(
        ledger=FileLedger(f"{state}/ledger", disk=disk, host="h"),
        lock=FileLock(f"{state}/locks", command="test", clock=OsClock(), disk=disk, boot=boot),
        inbox=FolderInbox(f"{state}/inbox", disk=disk),
        queue=SqliteQueue(":memory:", clock=OsClock()),
        landing=FolderLanding(
            arriving=f"{state}/arriving",
            cache=f"{state}/cache/sha256",
            capsules=f"{state}/capsules",
            workspaces=f"{state}/workspaces",
            disk=disk,
        ),
        release=FileRelease(f"{state}/releases", boot=boot, disk=disk),
        key=FileMachineKey(state, files=Durable(disk), host="h"),
        maker=FolderMaker(disk, is_alive=lambda _: False),
        clock=OsClock(),
        randomness=OsRandomness(),
        boot=boot,
        store_at=lambda folder: FolderStore(folder, disk=disk),
        rewriter_at=lambda folder: FolderRewriter(folder, disk=disk),
        sandbox_for=lambda _: nothing,
        merger_at=lambda folder, other: FolderMerger(folder, other, disk=disk),
        workspace_at=lambda _, folder, path: FolderWorkspace(
            path=path, capsule=folder, stats="", disk=disk
        ),
        network_at=lambda _: None,
        is_other_folder=lambda there, here: there != here and disk.stat_path(there) is not None,
        mask=Mask({}),
    )


def with_a_capsule() -> DiskWithWorkspace:
    """A capsule that the machine `HERE` holds, and the machine `THERE` with its key.

    It has a snapshot of a workspace that is not there any more; the new one's folder is a person's.
    """
    disk = DiskWithWorkspace()
    disk.live = disk.durable = {f"was/{path}": data for path, data in FILES.items()}
    for state in (HERE, THERE):
        Durable(disk).make_folder(state)
        ports(disk, state).key.machine()
    machine = ports(disk, HERE)
    made = new_capsule(machine, name="parent", configured=Configured(model="m", system="x" * 20000))
    record = first_record(
        capsule=made.capsule,
        incarnation=made.incarnation,
        folder=PARENT,
        workspace=str(REAL / "was"),
    )
    machine.ledger.save(record)
    create_capsule(PARENT, made.files, disk=disk)

    async def once() -> None:
        async with hold_capsule(machine, PARENT, observer=Unwatched()) as hold:
            place = ports(disk, HERE).workspace_at(hold.capsule, PARENT, hold.record.workspace)
            await Keeper(hold=hold, workspace=place, observer=Unwatched()).take()

    with disk.mounted():
        at_once(once())
    disk.live = disk.durable = {f"w/{path}": data for path, data in MINE.items()}
    return disk.copy()


def with_a_copy() -> DiskWithWorkspace:
    """The same capsule, copied over itself by somebody who synced nothing."""
    disk = with_a_capsule()
    for path, data in disk.tree().items():
        if path.startswith(f"{PARENT}/"):
            disk.unlink(path)
            handle = disk.open(path, "create")
            disk.write(handle, data)
            disk.close(handle)
    return disk.copy()


class Files:
    """A capsule on the disk, for the verifier."""

    def __init__(self, disk: RecordingDisk, folder: str) -> None:
        start = f"{folder}/"
        tree = disk.tree()
        self.held = {path[len(start) :]: tree[path] for path in tree if path.startswith(start)}

    def log(self) -> Sequence[bytes] | None:
        data = self.held.get(layout.TIMELINE)
        return None if data is None else [data]

    def paths(self) -> list[str]:
        return [path for path in self.held if not path.startswith(layout.BLOBS)]

    def blobs(self) -> list[str]:
        start = f"{layout.BLOBS}/"
        return [path.removeprefix(start) for path in self.held if path.startswith(start)]

    def read(self, path: str, limit: int) -> bytes | None:
        data = self.held.get(path)
        return None if data is None else data[: limit + 1]

    def size(self, path: str) -> int | None:
        data = self.held.get(path)
        return None if data is None else len(data)

    def digest(self, path: str) -> str | None:
        from hashlib import sha256

        data = self.held.get(path)
        return None if data is None else sha256(data).hexdigest()

    def digests(self, paths: Iterable[str]) -> list[tuple[str, str | None]]:
        return [(path, self.digest(path)) for path in paths]


def sound(disk: RecordingDisk, folder: str) -> None:
    assert [str(found) for found in verify(Files(disk, folder))] == []


def events(disk: RecordingDisk, folder: str) -> list[Event]:
    held = Files(disk, folder).held
    reader = Reader(read_blob=lambda ref: held.get(layout.blob_path(ref.sha256)))
    items = [*reader.feed(held[layout.TIMELINE]), *reader.finish(same_boot=True).rest]
    return [item for item in items if isinstance(item, Event)]


def holders(disk: RecordingDisk, state: str) -> list[LedgerRecord]:
    """Every record of the state folder that says HOLDER."""
    ledger = ports(disk, state).ledger
    records = [ledger.load(capsule) for capsule in ledger.capsules()]
    return [record for record in records if record is not None and record.state == "HOLDER"]


def fork(disk: RecordingDisk, done: list[str], boot: str = BOOTS[0]) -> None:
    home = Home(workspace=lambda _: W)
    with mounted(disk):
        made = at_once(
            fork_capsule(
                ports(disk, HERE, boot), PARENT, FORK, name="f", home=home, observer=Unwatched()
            )
        )
    done.append(made.capsule)


def mounted(disk: RecordingDisk) -> AbstractContextManager[None]:
    return disk.mounted() if isinstance(disk, DiskWithWorkspace) else nullcontext()


def is_filled(disk: RecordingDisk) -> None:
    """What was there is there, every file of the snapshot is, and no other."""
    assert isinstance(disk, DiskWithWorkspace)
    wanted = {f"w/{path}": data for path, data in (FILES | MINE).items()}
    assert disk.live == wanted


def is_not_damaged(disk: RecordingDisk) -> None:
    """What was there is there, and beside it only whole files of the snapshot, or drafts."""
    assert isinstance(disk, DiskWithWorkspace)
    found = {path.removeprefix("w/"): data for path, data in disk.live.items()}
    found = {path: data for path, data in found.items() if not path.startswith(".sojourn-")}
    assert {path: found.get(path) for path in MINE} == MINE
    assert found.items() <= (FILES | MINE).items()


def fork_is_whole_or_made_again(disk: RecordingDisk, done: list[str]) -> None:
    """What is under its name is complete and held once; else the same command makes it."""
    sound(disk, PARENT)
    is_not_damaged(disk)
    if disk.stat_path(FORK) is None:
        assert not done
        fork(disk, [], BOOTS[1])
    manifest = load(disk.tree()[f"{FORK}/{layout.MANIFEST}"], what="manifest")
    assert isinstance(manifest, dict)
    assert done in ([], [manifest["capsule"]])
    sound(disk, FORK)
    there = {record.capsule: record.folder for record in holders(disk, HERE)}
    assert there.pop(CapsuleId(str(manifest["capsule"])), None) == FORK
    assert list(there.values()) == [PARENT]
    with suppress(FileNotFoundError):
        names = [name for name, _ in disk.list("/disk/capsules")]
        assert names == ["fork", "parent"]

    async def runs() -> None:
        async with hold_capsule(ports(disk, HERE), FORK, observer=Unwatched()):
            pass

    is_filled(disk)
    with mounted(disk):
        at_once(runs())
    sound(disk, FORK)


def claim(disk: RecordingDisk, done: list[str], boot: str = BOOTS[0]) -> None:
    with mounted(disk):
        taken = at_once(
            claim_capsule(
                ports(disk, THERE, boot),
                PARENT,
                how="claim",
                forced=False,
                reason="",
                agreed=lambda _: True,
                workplace=lambda _: Workplace(folder=W, restore=True),
                observer=Unwatched(),
            )
        )
    assert taken is not None
    done.append(taken.record.incarnation)


def claim_is_none_or_goes_on(disk: RecordingDisk, done: list[str]) -> None:
    """Nothing happened, or any opening finishes it; the log never has two claims."""
    for finish in (claim, only_open):
        again = disk.copy()
        before = holders(again, THERE)
        assert len(before) <= 1
        is_not_damaged(again)
        if not before:
            assert not done
            assert not [e for e in events(again, PARENT) if isinstance(e.body, Claimed)]
            if finish is only_open:
                continue
        finish(again, [], BOOTS[1])
        (record,) = holders(again, THERE)
        assert record.claim is None
        assert not before or before[0].incarnation == record.incarnation
        assert done in ([], [record.incarnation])
        made = [event for event in events(again, PARENT) if isinstance(event.body, Claimed)]
        assert [event.header.incarnation for event in made] == [record.incarnation]
        assert (made[0].header.epoch, made[0].header.seq) == (record.epoch, 0)
        filled = [e.body for e in events(again, PARENT) if isinstance(e.body, Restored)]
        assert [(body.why, bool(body.snapshot)) for body in filled] == [("claim", True)]
        is_filled(again)
        sound(again, PARENT)


def claim_of_a_copy(disk: RecordingDisk, done: list[str]) -> None:
    """Before this machine says that it holds the copy, nobody has promised that it is there."""
    if holders(disk, THERE):
        claim_is_none_or_goes_on(disk, done)
    else:
        assert not done


def only_open(disk: RecordingDisk, done: list[str], boot: str) -> None:
    async def opens() -> None:
        async with hold_capsule(ports(disk, THERE, boot), PARENT, observer=Unwatched()):
            pass

    with mounted(disk):
        at_once(opens())
    del done
