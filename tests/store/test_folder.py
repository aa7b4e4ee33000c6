"""A capsule in a folder: what an append costs, what it refuses, and what it never follows."""

import asyncio
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from sojourn.errors import FencedError, FormatError, StorageError, UsageError
from sojourn.format import layout
from sojourn.ids import BlobId, Epoch, EventId
from sojourn.ports import Tip
from sojourn.store.create import create_capsule
from sojourn.store.disk import OsDisk
from sojourn.store.folder import LONGEST, SYNC_EACH, FolderStore
from sojourn.store.log import last_id
from sojourn.testing.disk import Fault, RecordingDisk

ONE = Epoch(1)
EMPTY = Tip(length=0, last=None)
FOLDER = "/disk/capsule"


def line(text: str) -> bytes:
    return f'{{"body":{{"text":"{text}"}},"header":{{"of":"{text}"}}}}\n'.encode()


def tip(log: bytes) -> Tip:
    return Tip(length=len(log), last=last_id(log))


def blob(data: bytes) -> BlobId:
    return BlobId(sha256(data).hexdigest())


def append(store: FolderStore, expected: Tip, data: bytes) -> None:
    asyncio.run(store.append(epoch=ONE, expected=expected, data=data))


def in_memory(fault: Fault | None = None) -> RecordingDisk:
    disk = RecordingDisk()
    disk.make_folder("/disk")
    create_capsule(FOLDER, {layout.TIMELINE: line("first")}, disk=disk)
    return disk.copy(fault=fault)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "capsule"
    create_capsule(str(place), {layout.TIMELINE: line("first"), layout.MANIFEST: b"{}"})
    return place


def test_an_append_costs_one_write_and_one_sync() -> None:
    disk = in_memory()
    store, log = FolderStore(FOLDER, disk=disk), line("first")
    for _ in range(3):
        append(store, tip(log), line("a") + line("b"))
        log += line("a") + line("b")
    assert disk.operations == ["write timeline_events.jsonl", "sync timeline_events.jsonl"] * 3


def test_the_first_append_of_all_also_syncs_the_name() -> None:
    disk = RecordingDisk()
    disk.make_folder("/disk")
    create_capsule(FOLDER, {}, disk=disk)
    disk = disk.copy()
    append(FolderStore(FOLDER, disk=disk), EMPTY, line("first"))
    assert [step.split()[0] for step in disk.operations] == ["create", "write", "sync", "sync"]
    assert disk.operations[-1] == "sync folder memory"


@pytest.mark.parametrize("count", [1, SYNC_EACH, SYNC_EACH + 1, 40])
def test_few_blobs_are_synced_each_and_many_at_once(count: int) -> None:
    disk = in_memory()
    blobs = {blob(bytes([n])): bytes([n]) for n in range(count)}
    asyncio.run(FolderStore(FOLDER, disk=disk).put_blobs(blobs))
    syncs = [step for step in disk.operations if step.startswith("sync")]
    each = count if count <= SYNC_EACH else 1
    assert len(syncs) == each + 1
    assert syncs[-1] == "sync folder blobs"


def test_where_a_file_system_cannot_be_synced_whole_each_blob_is() -> None:
    class OldKernel(RecordingDisk):
        def sync_all(self, path: str) -> bool:
            del path
            return False

    disk = in_memory().turned_into(OldKernel)
    blobs = {blob(bytes([n])): bytes([n]) for n in range(40)}
    asyncio.run(FolderStore(FOLDER, disk=disk).put_blobs(blobs))
    for found in disk.after_power_cut():
        for name, data in blobs.items():
            assert FolderStore(FOLDER, disk=found).read_blob(name) == data


def test_short_writes_are_gone_on_with() -> None:
    class Mean(RecordingDisk):
        def write(self, handle: int, data: bytes) -> int:
            return super().write(handle, data[:7])

        def write_at(self, handle: int, data: bytes, offset: int) -> int:
            return super().write_at(handle, data[:7], offset)

    disk = in_memory().turned_into(Mean)
    store, data = FolderStore(FOLDER, disk=disk), line("second" * 9)
    append(store, tip(line("first")), data)
    asyncio.run(store.settle_log(start=0, length=store.size()))
    asyncio.run(store.replace_file(layout.MANIFEST, data))
    assert b"".join(store.read_log()) == line("first") + data
    assert store.read_file(layout.MANIFEST) == data


def replace_log(folder: Path) -> None:
    log = folder / layout.TIMELINE
    data = log.read_bytes()
    log.unlink()
    log.write_bytes(data)


def replace_folder(folder: Path) -> None:
    folder.rename(folder.with_name("old"))
    create_capsule(str(folder), {layout.TIMELINE: line("first") + line("second")})


@pytest.mark.parametrize(
    "change", [replace_log, replace_folder, lambda folder: folder.rename(f"{folder}-away")]
)
def test_a_replaced_log_is_noticed_at_the_next_append(
    change: Callable[[Path], None], folder: Path
) -> None:
    store = FolderStore(str(folder))
    append(store, tip(line("first")), line("second"))
    change(folder)
    with pytest.raises(FencedError) as refused:
        append(store, tip(line("first") + line("second")), line("third"))
    store.close()
    assert refused.value.code == "log_changed"


def test_a_log_that_another_process_shortened_is_noticed(folder: Path) -> None:
    store = FolderStore(str(folder))
    append(store, tip(line("first")), line("second"))
    os.truncate(folder / layout.TIMELINE, len(line("first")))
    with pytest.raises(FencedError) as refused:
        append(store, tip(line("first") + line("second")), line("third"))
    store.close()
    assert refused.value.code == "stale_head"
    assert (folder / layout.TIMELINE).read_bytes() == line("first")


def test_a_log_that_another_process_added_to_is_noticed(folder: Path) -> None:
    store = FolderStore(str(folder))
    append(store, tip(line("first")), line("second"))
    with open(folder / layout.TIMELINE, "ab") as log:
        log.write(line("foreign"))
    with pytest.raises(FencedError) as refused:
        append(store, tip(line("first") + line("second")), line("third"))
    store.close()
    assert refused.value.code == "stale_head"
    assert (folder / layout.TIMELINE).read_bytes().endswith(line("foreign"))


def test_the_last_event_of_a_long_line_is_found(folder: Path) -> None:
    long = line("x" * 300_000)
    store = FolderStore(str(folder))
    append(store, tip(line("first")), long)
    store.close()
    again = FolderStore(str(folder))
    append(again, tip(line("first") + long), line("next"))
    again.close()


def test_the_id_of_the_last_event_is_that_of_its_header() -> None:
    header = b'{"kind":"a \\",\\"header\\": b"}'
    data = line("x") + b'{"body":{"a":"},\\"header\\":{"},"header":' + header + b"}\n"
    assert last_id(data) == EventId(sha256(header).hexdigest())
    for broken in (b"", b"\n", b"no event\n", b'{"body":{}}\n', line("x")[:-1]):
        assert last_id(broken) is None


OPERATIONS: dict[str, Callable[[FolderStore], object]] = {
    "append": lambda s: append(s, tip(line("first")), line("second")),
    "blobs": lambda s: asyncio.run(s.put_blobs({blob(b"x"): b"x"})),
    "file": lambda s: asyncio.run(s.replace_file(layout.MANIFEST, b"{}")),
    "settle": lambda s: asyncio.run(s.settle_log(start=0, length=len(line("first")))),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_after_a_failed_write_the_store_refuses_everything(name: str) -> None:
    work = OPERATIONS[name]
    at = 0
    while True:
        at += 1
        disk = in_memory(Fault(at=at, error=28))
        store = FolderStore(FOLDER, disk=disk)
        try:
            work(store)
        except StorageError as error:
            assert (error.code, error.exit) == ("disk_full", 75)
            assert "unknown" in error.state
            refuses_everything(store)
        else:
            break
    assert at > 2


def refuses_everything(store: FolderStore) -> None:
    rest: list[Callable[[], object]] = [
        store.size,
        lambda: list(store.read_log()),
        lambda: store.has_blob(blob(b"x")),
        lambda: store.read_blob(blob(b"x")),
        lambda: store.read_file(layout.MANIFEST),
        store.file_names,
        store.sweep,
        *(lambda work=work: work(store) for work in OPERATIONS.values()),
    ]
    for work in rest:
        with pytest.raises(StorageError) as refused:
            work()
        assert refused.value.code == "store_stopped"


def test_an_interrupted_append_stops_the_store_too() -> None:
    class Interrupted(RecordingDisk):
        def sync(self, handle: int) -> None:
            del handle
            raise KeyboardInterrupt

    store = FolderStore(FOLDER, disk=in_memory().turned_into(Interrupted))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(store.append(epoch=ONE, expected=tip(line("first")), data=line("second")))
    refuses_everything(store)


def test_a_refused_append_stops_nothing(folder: Path) -> None:
    store = FolderStore(str(folder))
    with pytest.raises(FencedError):
        append(store, EMPTY, line("second"))
    append(store, tip(line("first")), line("second"))
    store.close()


def test_an_altered_blob_is_named_and_mended_by_putting_it_again(folder: Path) -> None:
    store = FolderStore(str(folder))
    name = blob(b"content")
    asyncio.run(store.put_blobs({name: b"content"}))
    (folder / layout.blob_path(name)).write_bytes(b"consent")
    with pytest.raises(FormatError) as altered:
        store.read_blob(name)
    assert (altered.value.code, altered.value.file) == ("blob_altered", layout.blob_path(name))
    again = FolderStore(str(folder))
    asyncio.run(again.put_blobs({name: b"content"}))
    assert again.read_blob(name) == b"content"


def test_a_blob_that_is_there_is_not_written_again() -> None:
    disk = in_memory()
    asyncio.run(FolderStore(FOLDER, disk=disk).put_blobs({blob(b"x"): b"x"}))
    again = disk.copy()
    store = FolderStore(FOLDER, disk=again)
    for _ in range(2):
        asyncio.run(store.put_blobs({blob(b"x"): b"x"}))
    assert again.operations == ["sync folder blobs"]


def link_log(folder: Path, aside: Path) -> None:
    (folder / layout.TIMELINE).rename(aside)
    (folder / layout.TIMELINE).symlink_to(aside)


def link_memory(folder: Path, aside: Path) -> None:
    (folder / "memory").rename(aside)
    (folder / "memory").symlink_to(aside)


def pipe_log(folder: Path, aside: Path) -> None:
    del aside
    (folder / layout.TIMELINE).unlink()
    os.mkfifo(folder / layout.TIMELINE)


@pytest.mark.parametrize("plant", [link_log, link_memory, pipe_log])
def test_nothing_but_a_regular_file_in_real_folders_is_the_log(
    plant: Callable[[Path, Path], None], folder: Path, tmp_path: Path
) -> None:
    plant(folder, tmp_path / "aside")
    works: list[Callable[[FolderStore], object]] = [
        lambda store: list(store.read_log()),
        lambda store: append(store, tip(line("first")), line("second")),
        lambda store: asyncio.run(store.settle_log(start=0, length=0)),
    ]
    for work in works:
        with pytest.raises((FormatError, StorageError)):
            work(FolderStore(str(folder)))
    aside = tmp_path / "aside"
    kept = aside / "timeline_events.jsonl" if aside.is_dir() else aside
    if kept.exists():
        assert kept.read_bytes() == line("first")


def test_links_are_neither_read_nor_written_through(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    name = blob(b"content")
    for path in (layout.MANIFEST, layout.blob_path(name)):
        (folder / path).unlink(missing_ok=True)
        (folder / path).symlink_to(secret)
    store = FolderStore(str(folder))
    assert not store.has_blob(name)
    for read in (lambda: store.read_file(layout.MANIFEST), lambda: store.read_blob(name)):
        with pytest.raises(FormatError) as refused:
            read()
        assert refused.value.code == "path_unsafe"
    asyncio.run(store.put_blobs({name: b"content"}))
    asyncio.run(store.replace_file(layout.MANIFEST, b"{}"))
    assert secret.read_bytes() == b"secret"
    assert store.read_blob(name) == b"content"
    assert store.read_file(layout.MANIFEST) == b"{}"


def test_files_are_for_their_user_alone(folder: Path) -> None:
    store = FolderStore(str(folder))
    asyncio.run(store.put_blobs({blob(b"x"): b"x"}))
    asyncio.run(store.replace_file(layout.MANIFEST, b"{}"))
    for path in (folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_half_made_files_are_swept_and_others_stay(folder: Path) -> None:
    mine = [
        folder / ".sojourn-manifest.json.12.0.tmp",
        folder / layout.BLOBS / f".sojourn-{blob(b'x')}.9.3.tmp",
        folder / "memory" / ".sojourn-working_memory.md.1.0.tmp",
    ]
    others = [folder / "memory" / "mine.tmp", folder / ".sojourn-notes", folder / "a.tmp"]
    for path in (*mine, *others):
        path.write_bytes(b"x")
    store = FolderStore(str(folder))
    assert not [name for name in store.file_names() if layout.is_temporary(name)]
    store.sweep()
    assert not any(path.exists() for path in mine)
    assert all(path.exists() for path in others)


def test_of_a_file_above_every_limit_only_a_part_is_read(folder: Path) -> None:
    with open(folder / layout.MANIFEST, "wb") as file:
        file.truncate(LONGEST * 3)
    assert len(FolderStore(str(folder)).read_file(layout.MANIFEST) or b"") == LONGEST + 1


def test_a_capsule_on_a_network_file_system_is_read_and_not_appended_to() -> None:
    class Far(RecordingDisk):
        def network(self, path: str) -> str | None:
            return "nfs4" if path == FOLDER else None

    disk = in_memory().turned_into(Far)
    store = FolderStore(FOLDER, disk=disk)
    assert b"".join(store.read_log()) == line("first")
    with pytest.raises(UsageError) as refused:
        append(store, tip(line("first")), line("second"))
    assert (refused.value.code, refused.value.exit) == ("network_folder", 6)
    assert "nfs4" in refused.value.message
    assert b"".join(store.read_log()) == line("first")
    assert disk.operations == []


def test_reading_a_missing_folder_is_an_empty_log(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path / "nothing"))
    assert (store.size(), list(store.read_log()), store.file_names()) == (0, [], ())


def test_what_cannot_be_read_is_a_storage_error() -> None:
    class Failing(OsDisk):
        def open(self, path: str, mode: object) -> int:
            del mode
            raise OSError(5, "no", path)

    with pytest.raises(StorageError) as failed:
        FolderStore("/", disk=Failing()).read_file(layout.MANIFEST)
    assert failed.value.code == "io_error"
    assert failed.value.state == "Nothing was changed."
