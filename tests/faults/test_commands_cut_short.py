"""A command that a disk or Ctrl-C ends in the middle says truly what is left, and works again.

On a small file system of its own, which only root can mount.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.stage import Stage
from faults.small_disk import small_disk_at
from sojourn.agent import Place
from sojourn.agent.archives import export_capsule, verify_archive
from sojourn.agent.arrive import import_archive, import_as_new
from sojourn.agent.export_at import export_at
from sojourn.agent.forking import fork
from sojourn.agent.merging import merge
from sojourn.agent.workspace import extract
from sojourn.agent.writing import Wanted
from sojourn.cli.failure import told
from sojourn.cli.snapshot_words import listed_at
from sojourn.drive.observe import Unwatched
from sojourn.errors import SojournError, StorageError

ROOM = 8 << 20
LARGE = 3 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    with small_disk_at(tmp_path / "disk", ROOM) as root:
        yield root


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A capsule whose snapshot holds a file of 3 MiB."""
    folder = tmp_path / "stage"
    folder.mkdir()
    made = Stage(folder, [{"text": f"Answer {number}."} for number in range(9)])
    made.make()
    (folder / "workspace" / "large").write_bytes(random.Random(1).randbytes(LARGE))
    made.run("hello")
    return made


def fill(disk: Path) -> None:
    """Leave 1 MiB of room."""
    free = shutil.disk_usage(disk).free
    (disk / "ballast").write_bytes(bytes(free - (1 << 20)))


def make_room(disk: Path) -> None:
    (disk / "ballast").unlink()


def lock(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def names(disk: Path) -> list[str]:
    return sorted(name for name in os.listdir(disk) if name != "ballast")


def wanted(disk: Path) -> Wanted:
    return Wanted(file=str(disk / "box.tar"))


def export(stage: Stage, disk: Path) -> None:
    asyncio.run(export_capsule(stage.machine, stage.make(), wanted(disk)))
    assert verify_archive(str(disk / "box.tar")).findings == ()


def export_earlier(stage: Stage, disk: Path) -> None:
    at = stage.events()[-1].id
    options = Wanted(file=str(disk / "box.tar"), purpose="fork")
    asyncio.run(export_at(stage.machine, stage.make(), options, at=at))
    assert verify_archive(str(disk / "box.tar")).findings == ()


def make_fork(stage: Stage, disk: Path) -> None:
    asyncio.run(fork(stage.machine, stage.make(), str(disk / "fork")))
    assert not list(stage.machine.verify(stage.machine.find(str(disk / "fork"))))


def restore(stage: Stage, disk: Path) -> None:
    place = stage.make()
    look = stage.machine.look(place)
    listed = listed_at(look, look.folded.snapshots.current)
    gone = look.folded.ending.gone
    extract(stage.machine.ports, place, listed, str(disk / "then"), gone=gone)
    assert (disk / "then" / "large").stat().st_size == LARGE


WORKS: dict[str, tuple[Callable[[Stage, Path], None], str]] = {
    "export": (export, "No archive was written."),
    "export --at": (export_earlier, "No archive was written."),
    "fork": (make_fork, "No fork was made, and the capsule is as it was."),
    "snapshot restore --to": (restore, "No file was made."),
}


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_nothing_is_left_where_it_says_so_and_with_room_it_works(
    name: str, how: str, stage: Stage, disk: Path
) -> None:
    work, says = WORKS[name]
    fill(disk) if how == "full" else lock(disk, "ro")
    with pytest.raises(StorageError) as failed:
        work(stage, disk)
    assert failed.value.code == ("disk_full" if how == "full" else "read_only")
    assert failed.value.state.startswith(says)
    assert failed.value.hint and "unknown" not in failed.value.state
    assert names(disk) == []
    make_room(disk) if how == "full" else lock(disk, "rw")
    work(stage, disk)


@pytest.mark.parametrize("as_new", [False, True])
@pytest.mark.parametrize("how", ["full", "read-only"])
def test_an_import_leaves_nothing_and_says_so(
    how: str, as_new: bool, stage: Stage, disk: Path, tmp_path: Path
) -> None:
    export(stage, tmp_path)
    other = Stage(tmp_path, [])
    lock(disk, "ro") if how == "read-only" else None
    with pytest.raises(StorageError) as failed:
        take_in(other, str(tmp_path / "box.tar"), str(disk / "box"), as_new=as_new)
    assert failed.value.code == ("disk_full" if how == "full" else "read_only")
    assert failed.value.state == "Nothing was imported."
    assert names(disk) == []


def take_in(stage: Stage, file: str, name: str, *, as_new: bool) -> None:
    if as_new:
        making = import_as_new(
            stage.machine, file, name=name, accept=lambda _: True, observer=Unwatched()
        )
        asyncio.run(making)
    else:
        import_archive(stage.machine, file, name=name, accept=lambda _: True)


def two_copies(stage: Stage, disk: Path) -> Place:
    """The capsule's copy on the disk, held by another machine, and more in the first."""
    shutil.copytree(stage.capsule, disk / "capsule")
    other = Stage(stage.folder.parent, [{"text": "other"}])
    from sojourn.agent.taking_over import claim

    place = other.machine.find(str(disk / "capsule"))
    where = str(stage.folder.parent / "workspace")
    asyncio.run(claim(other.machine, place, agreed=lambda _: True, forced=True, workspace=where))
    (stage.folder / "workspace" / "more").write_bytes(random.Random(2).randbytes(LARGE))
    stage.run("more")
    return other.machine.find(str(disk / "capsule"))


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_merge_leaves_the_log_as_it_was_and_goes_on_later(
    how: str, stage: Stage, disk: Path
) -> None:
    place = two_copies(stage, disk)
    machine = Stage(stage.folder.parent, [{"text": "other"}]).machine
    before = (disk / "capsule/memory/timeline_events.jsonl").read_bytes()
    fill(disk) if how == "full" else lock(disk, "ro")
    with pytest.raises(StorageError) as failed:
        asyncio.run(merge(machine, place, str(stage.capsule)))
    assert failed.value.code == ("disk_full" if how == "full" else "read_only")
    assert failed.value.state.startswith("The log is as it was: nothing was merged.")
    assert (disk / "capsule/memory/timeline_events.jsonl").read_bytes() == before
    make_room(disk) if how == "full" else lock(disk, "rw")
    assert asyncio.run(merge(machine, place, str(stage.capsule))).done
    assert not list(machine.verify(place))


def interrupt(*_: int) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_export_says_that_nothing_was_written(stage: Stage, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as ended:
        asyncio.run(
            export_capsule(stage.machine, stage.make(), wanted(tmp_path), progress=interrupt)
        )
    words = told(ended.value)
    assert (words.exit, words.code) == (130, "interrupted")
    assert words.state.startswith("No archive was written.")


def test_an_interrupted_import_says_that_nothing_was_imported(stage: Stage, tmp_path: Path) -> None:
    export(stage, tmp_path)
    with pytest.raises(KeyboardInterrupt) as ended:
        import_archive(
            Stage(tmp_path, []).machine,
            str(tmp_path / "box.tar"),
            accept=lambda _: True,
            progress=interrupt,
        )
    assert told(ended.value).state == "Nothing was imported."


def test_a_file_that_was_to_be_replaced_is_said_to_be_as_it_was(stage: Stage, disk: Path) -> None:
    (disk / "box.tar").write_text("mine")
    fill(disk)
    options = Wanted(file=str(disk / "box.tar"), force=True)
    with pytest.raises(SojournError) as failed:
        asyncio.run(export_capsule(stage.machine, stage.make(), options))
    assert f"{disk / 'box.tar'} is as it was" in failed.value.state
    assert (disk / "box.tar").read_text() == "mine"
