"""A workspace that is made anew, for a fork or a claim, is that of the last snapshot."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.carried import claimed, elsewhere, events_in, forked, run_in, sound, tree, without_queue
from agent.stage import Stage
from agent.test_refusals import Notes
from sojourn import Machine
from sojourn.agent.taking_over import claim
from sojourn.core.view import Notice
from sojourn.drive.opening import hold_capsule
from sojourn.errors import FormatError, NotFoundError, StoppedError, UsageError
from sojourn.format import layout, snapshot
from sojourn.format.capsule_kinds import Redacted, Restored, Snapshotted
from sojourn.format.event import Event, ToolIntent
from sojourn.ids import EventId


def writing(name: str, path: str, content: str) -> list[dict[str, object]]:
    call = {"tool": "write", "args": {"path": path, "content": content}}
    return [{"name": name, "calls": [call]}, {"name": f"{name}!", "text": f"{name} is done."}]


TURNS = [
    *writing("first", "one.txt", "1"),
    *writing("second", "two.txt", "2"),
    *writing("third", "one.txt", "other"),
    *({"name": name, "text": "At rest."} for name in ("rest", "still")),
]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, TURNS)
    for _ in range(3):
        made.run()
    return made


def workspace(stage: Stage) -> Path:
    return stage.folder / "workspace"


def files(folder: str | Path | None) -> dict[str, str]:
    return {name: data.decode() for name, data in tree(folder or "").items()}


def snapshots(stage: Stage) -> list[Event]:
    return [event for event in stage.events() if isinstance(event.body, Snapshotted)]


def intents(stage: Stage) -> list[str]:
    return [body.call for body in stage.bodies(ToolIntent)]


def restored_in(machine: Machine, folder: str | Path) -> list[Restored]:
    bodies = [event.body for event in events_in(machine, folder)]
    return [replace(body, salt="") for body in bodies if isinstance(body, Restored)]


def put_back(stage: Stage, event: EventId) -> None:
    place = stage.make()

    async def inside() -> None:
        async with stage.machine.hold(place) as agent:
            await agent.workspace.restore(event)

    asyncio.run(inside())


def copied(stage: Stage, name: str = "copy") -> Path:
    shutil.copytree(stage.capsule, stage.folder / name)
    return stage.folder / name


FILES_AT = [{}, {"one.txt": "1"}, {"one.txt": "1", "two.txt": "2"}]
"""What the first snapshots of the stage hold, the empty one before all first."""


def test_a_fork_at_any_event_has_the_files_of_the_last_snapshot_up_to_it(stage: Stage) -> None:
    current, wanted, since = None, dict[str, str](), list[str]()
    kept = [*FILES_AT[1:], files(workspace(stage))]
    for number, event in enumerate(stage.events()):
        if isinstance(event.body, Snapshotted):
            current, wanted, since = event.id, kept.pop(0), []
        elif isinstance(event.body, ToolIntent):
            since.append(event.body.call)
        if number < 3:
            continue
        made = forked(stage, stage.make(), at=event.id, name=f"at-{number}")
        assert files(made.workspace) == wanted
        (restored,) = restored_in(stage.machine, made.folder)
        assert restored == Restored(snapshot=current, why="fork", missing=tuple(since))
        listed = snapshot.load((Path(made.folder) / layout.SNAPSHOT).read_bytes())
        assert [entry.path for entry in listed.entries] == sorted(wanted)
        sound(stage.machine, made.folder)
    assert kept == []


def test_the_model_of_a_fork_is_told_what_its_files_lack(stage: Stage) -> None:
    second = snapshots(stage)[1]
    before = next(e for e in stage.events() if e.header.seq == second.header.seq - 1)
    made = forked(stage, stage.make(), at=before.id, name="second")
    look = stage.machine.look(stage.machine.find(made.folder))
    (notice,) = [one for one in look.transcript.entries if isinstance(one, Notice)]
    assert "two.txt" in notice.text
    assert "one.txt" not in notice.text


def test_a_fork_takes_no_snapshot_while_its_files_are_those_it_began_with(stage: Stage) -> None:
    made = forked(stage, stage.make(), name="second")
    count = len(snapshots(stage))
    assert run_in(stage, stage.machine, made.folder) == "At rest."
    events = events_in(stage.machine, made.folder)
    assert len([event for event in events if isinstance(event.body, Snapshotted)]) == count
    sound(stage.machine, made.folder)


def test_a_fork_of_a_workspace_that_was_put_back_lacks_what_that_one_lacked(stage: Stage) -> None:
    """The snapshot after a restore is new; the calls that it undid are still undone in it."""
    first = snapshots(stage)[0]
    put_back(stage, first.id)
    calls = intents(stage)
    again = forked(stage, stage.make(), name="again")
    assert files(again.workspace) == {"one.txt": "1"}
    assert again.restored is not None
    assert again.restored.missing == tuple(calls[1:])
    of_again = forked(stage, stage.machine.find(again.folder), name="of-again")
    assert of_again.restored is not None
    assert of_again.restored.missing == tuple(calls[1:])


@pytest.mark.parametrize("count", [3, 400], ids=["small", "with the delta in a blob"])
def test_a_fork_has_every_earlier_snapshot_too(stage: Stage, count: int) -> None:
    folder = workspace(stage) / "many"
    folder.mkdir()
    for number in range(count):
        (folder / f"file {number}").write_text(f"{number}")
    stage.run()
    shutil.rmtree(folder)
    stage.run()
    made = forked(stage, stage.make(), name="second")
    assert not (Path(str(made.workspace)) / "many").exists()
    place = stage.machine.find(made.folder)
    full = snapshots(stage)[-2]

    async def inside() -> None:
        async with stage.machine.hold(place) as agent:
            await agent.workspace.restore(full.id)

    asyncio.run(inside())
    assert len(os.listdir(f"{made.workspace}/many")) == count
    sound(stage.machine, made.folder)


def git(folder: str | Path, *words: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_git_repository_survives_a_fork_and_a_claim(stage: Stage) -> None:
    git(workspace(stage), "init", "-q")
    git(workspace(stage), "add", ".")
    git(workspace(stage), "commit", "-qm", "all")
    (workspace(stage) / "one.txt").write_text("not committed")
    stage.run()
    machine = elsewhere(stage)
    taken = claimed(machine, machine.find(str(copied(stage))))
    made = forked(stage, stage.make(), name="second")
    for folder in (made.workspace, taken.record.workspace):
        assert folder is not None
        assert git(folder, "log", "--format=%s") == "all\n"
        assert git(folder, "status", "--short") == " M one.txt\n"
        git(folder, "fsck", "--strict")


def everything(stage: Stage) -> dict[str, bytes]:
    """All files but those that looking changes."""
    held = without_queue(tree(stage.folder))
    return {name: data for name, data in held.items() if "/locks/" not in f"/{name}"}


def fork_into(stage: Stage, folder: Path) -> str:
    return str(forked(stage, stage.make(), name="second", workspace=str(folder)).workspace)


def claim_into(stage: Stage, folder: Path) -> str:
    machine = elsewhere(stage)
    place = machine.find(str(stage.folder / "copy"))
    return claimed(machine, place, workspace=str(folder)).record.workspace


INTO = (fork_into, claim_into)


@pytest.mark.parametrize("into", INTO)
def test_a_folder_with_another_file_of_that_name_is_refused_before_anything_is_changed(
    stage: Stage, into: Callable[[Stage, Path], str]
) -> None:
    copied(stage)
    mine = stage.folder / "mine"
    mine.mkdir()
    (mine / "one.txt").write_text("mine")
    elsewhere(stage).ports.key.machine()
    before = everything(stage)
    with pytest.raises(UsageError) as refused:
        into(stage, mine)
    assert refused.value.code == "restore_conflict"
    assert "one.txt" in refused.value.message
    assert everything(stage) == before


@pytest.mark.parametrize("into", INTO)
def test_what_lies_in_a_chosen_folder_stays_beside_what_is_put_there(
    stage: Stage, into: Callable[[Stage, Path], str]
) -> None:
    copied(stage)
    mine = stage.folder / "mine"
    mine.mkdir()
    (mine / "notes").write_text("mine")
    (mine / "two.txt").write_text("2")
    inode = (mine / "two.txt").stat().st_ino
    assert into(stage, mine) == str(mine)
    assert files(mine) == {"notes": "mine", **files(workspace(stage))}
    assert (mine / "two.txt").stat().st_ino == inode


@pytest.mark.parametrize("into", INTO)
def test_a_chosen_folder_that_is_a_file_is_refused(
    stage: Stage, into: Callable[[Stage, Path], str]
) -> None:
    from sojourn.errors import StorageError

    copied(stage)
    (stage.folder / "mine").write_text("a file")
    elsewhere(stage).ports.key.machine()
    before = everything(stage)
    with pytest.raises(StorageError):
        into(stage, stage.folder / "mine")
    assert everything(stage) == before


def test_a_claimed_copy_gets_its_workspace_in_the_default_place(stage: Stage) -> None:
    copy, machine = copied(stage), elsewhere(stage)
    taken = claimed(machine, machine.find(str(copy)))
    assert taken.record.workspace == machine.state.workspace(stage.make().capsule)
    assert files(taken.record.workspace) == files(workspace(stage))
    current = snapshots(stage)[-1].id
    assert restored_in(machine, copy) == [Restored(snapshot=current, why="claim", missing=())]
    sound(machine, copy)
    run_in(stage, machine, copy)
    sound(machine, copy)
    assert claimed(machine, machine.find(str(copy))).done == "held"
    assert len(restored_in(machine, copy)) == 1


@pytest.mark.parametrize("how", ["by the record", "by the word of a person"])
def test_the_workspace_where_it_worked_here_is_left_alone(stage: Stage, how: str) -> None:
    older = copied(stage, "older")
    stage.run()
    shutil.rmtree(stage.capsule)
    older.rename(stage.capsule)
    for name in ("one.txt", "new.txt"):
        (workspace(stage) / name).write_text("mine")
    (workspace(stage) / "two.txt").unlink()
    chosen = None if how == "by the record" else str(workspace(stage))
    taken = claimed(stage.machine, stage.make(), workspace=chosen)
    assert taken.record.workspace == str(workspace(stage))
    assert files(workspace(stage)) == {"one.txt": "mine", "new.txt": "mine"}
    assert restored_in(stage.machine, stage.capsule) == []


def test_the_default_workspace_is_left_alone_when_only_the_record_was_lost(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TURNS)
    machine = stage.machine
    place = asyncio.run(machine.create(str(stage.capsule), model=stage.model))
    stage.run()
    (Path(str(place.workspace)) / "one.txt").write_text("changed since")
    Path(machine.state.ledger, f"{place.capsule}.json").unlink()
    taken = claimed(machine, machine.find(str(stage.capsule)))
    assert taken.record.workspace == place.workspace
    assert files(place.workspace) == {"one.txt": "changed since"}
    assert restored_in(machine, stage.capsule) == []


def content_of(capsule: Path, path: str) -> Path:
    listed = snapshot.load((capsule / layout.SNAPSHOT).read_bytes())
    (entry,) = (entry for entry in listed.entries if entry.path == path)
    return capsule / layout.blob_path(entry.sha256 or snapshot.NOTHING)


def test_a_capsule_whose_files_are_gone_is_not_claimed(stage: Stage) -> None:
    copy, machine = copied(stage), elsewhere(stage)
    content_of(copy, "two.txt").unlink()
    machine.ports.key.machine()
    before = everything(stage)
    asked: list[object] = []
    with pytest.raises(FormatError) as refused:
        asyncio.run(
            claim(machine, machine.find(str(copy)), agreed=lambda one: not asked.append(one))
        )
    assert refused.value.code == "blob_missing"
    assert "two.txt" in refused.value.message
    assert asked == []
    assert everything(stage) == before


def test_a_claim_that_finds_a_file_altered_says_so_and_the_workspace_is_empty(stage: Stage) -> None:
    """It is found after this machine is the holder: an empty workspace, and all calls missing."""
    copy, machine, notes = copied(stage), elsewhere(stage), Notes()
    content_of(copy, "two.txt").write_text("3")
    taken = claimed(machine, machine.find(str(copy)), observer=notes)
    assert files(taken.record.workspace) == {}
    calls = tuple(intents(stage))
    assert restored_in(machine, copy) == [Restored(snapshot=None, why="claim", missing=calls)]
    assert any("cannot be put back" in note for note in notes.said)


def test_a_fork_of_a_capsule_whose_files_are_gone_leaves_nothing(stage: Stage) -> None:
    first = snapshots(stage)[0]
    content_of(stage.capsule, "two.txt").unlink()
    before = everything(stage)
    with pytest.raises(FormatError) as refused:
        forked(stage, stage.make(), name="second")
    assert refused.value.code == "blob_missing"
    assert everything(stage) == before
    early = forked(stage, stage.make(), at=first.id, name="second")
    assert files(early.workspace) == {"one.txt": "1"}


def test_a_link_out_of_the_workspace_is_not_made_and_that_is_said(stage: Stage) -> None:
    (workspace(stage) / "in").symlink_to("one.txt")
    (workspace(stage) / "out").symlink_to("/etc")
    stage.run()
    notes = Notes()
    made = forked(stage, stage.make(), name="second", observer=notes)
    assert os.readlink(f"{made.workspace}/in") == "one.txt"
    assert not os.path.lexists(f"{made.workspace}/out")
    assert any("out of the workspace): out" in note for note in notes.said)


@pytest.mark.parametrize("after", range(0, 7, 2))
def test_a_fork_that_is_stopped_leaves_nothing(stage: Stage, after: int) -> None:
    before, asked = everything(stage), 0
    told: list[tuple[int, int]] = []

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    with pytest.raises(StoppedError):
        forked(
            stage,
            stage.make(),
            name="second",
            stop=stop,
            progress=lambda *done: told.append(done),
        )
    assert everything(stage) == before
    assert not list(Path(stage.machine.state.workspaces).glob("*"))
    assert sum(files for files, _ in told) <= after


def test_a_fork_at_an_event_that_is_not_there_makes_no_workspace(stage: Stage) -> None:
    before = everything(stage)
    with pytest.raises(NotFoundError):
        forked(stage, stage.make(), at=EventId("0" * 64), workspace=str(stage.folder / "new"))
    assert everything(stage) == before
    assert not (stage.folder / "new").exists()


def test_a_file_that_was_redacted_is_left_out_of_a_workspace_and_that_is_said(stage: Stage) -> None:
    place, gone = stage.make(), content_of(stage.capsule, "two.txt")

    async def redact() -> None:
        async with hold_capsule(stage.machine.ports, place.folder, observer=Notes()) as hold:
            event = snapshots(stage)[0].id
            body = Redacted(event=event, by="user", reason="", blobs=(gone.name,))
            hold.draft(body)
            await hold.commit()

    asyncio.run(redact())
    gone.unlink()
    copy, machine, notes = copied(stage), elsewhere(stage), Notes()
    made = forked(stage, place, name="second", observer=notes)
    assert files(made.workspace) == {"one.txt": "other"}
    assert any("redacted): two.txt" in note for note in notes.said)
    taken = claimed(machine, machine.find(str(copy)))
    assert files(taken.record.workspace) == {"one.txt": "other"}
