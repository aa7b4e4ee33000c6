"""A file's contents are taken out of every snapshot, and everything else stays as it was."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agent.arriving import elsewhere as another
from agent.arriving import export, take
from agent.carried import forked, sound
from agent.elsewhere import elsewhere
from agent.stage import Stage
from sojourn import Agent
from sojourn.agent import archives
from sojourn.agent.merging import merge
from sojourn.agent.trim import collect, redact, redact_file, repair
from sojourn.agent.workspace import extract
from sojourn.drive.redact_files import RedactedFiles, Wanted
from sojourn.drive.snapshots import PutBackSnapshot
from sojourn.errors import HeldElsewhereError, NotFoundError, UsageError
from sojourn.format import layout
from sojourn.format.capsule_kinds import Snapshotted
from sojourn.format.event import Input
from sojourn.format.gone import LOST, REDACTED
from sojourn.format.snapshot import Snapshot
from sojourn.ids import BlobId, EventId

SECRET = "hunter2-in-plain-sight"
SAYS = [{"text": f"Answer {number}."} for number in range(9)]


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def put(stage: Stage, **files: str) -> None:
    for name, text in files.items():
        (stage.folder / "workspace" / name).write_text(text)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Three snapshots: a secret, a newer one, and the file taken away."""
    made = Stage(tmp_path, SAYS)
    put(made, env=SECRET, other="kept")
    made.run()
    put(made, env=f"{SECRET} again", copy=SECRET)
    made.run()
    for name in ("env", "copy"):
        (made.folder / "workspace" / name).unlink()
    made.run()
    return made


def redacted(stage: Stage, **wanted: str) -> RedactedFiles:
    blob = BlobId(wanted["blob"]) if "blob" in wanted else None
    chosen = Wanted(path=wanted.get("path"), blob=blob)
    return asyncio.run(redact_file(stage.machine, stage.make(), chosen, reason="a password"))


def held(stage: Stage, act: Callable[[Agent], Coroutine[Any, Any, Any]]) -> Any:
    async def inside() -> Any:
        async with stage.machine.hold(stage.make()) as agent:
            return await act(agent)

    return asyncio.run(inside())


def put_back(stage: Stage, at: int) -> PutBackSnapshot:
    event = taken(stage)[at]
    return held(stage, lambda agent: agent.workspace.restore(event))


def taken(stage: Stage) -> list[EventId]:
    return [event.id for event in stage.events() if isinstance(event.body, Snapshotted)]


def lists(stage: Stage) -> list[Snapshot]:
    look = stage.machine.look(stage.make())
    known = look.folded.snapshots
    return [
        known.list_at(event, lambda ref: look.store.read_blob(ref.sha256)) for event, _ in known
    ]


def here(stage: Stage) -> dict[str, str]:
    folder = stage.folder / "workspace"
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_all_contents_of_a_path_go_and_every_list_and_event_stays(stage: Stage) -> None:
    before, events = lists(stage), stage.events()
    done = redacted(stage, path="env")
    assert done.found.blobs == tuple(sorted((digest(SECRET), digest(f"{SECRET} again"))))
    assert (done.found.paths, done.found.snapshots, done.removed) == (("copy", "env"), 2, 2)
    assert SECRET.encode() not in everything(stage.capsule)
    assert stage.events()[: len(events)] == events
    assert lists(stage) == before
    assert stage.verify() == []
    assert stage.run("go on").reason == "rest"
    assert stage.verify() == []


def test_one_content_goes_alone(stage: Stage) -> None:
    done = redacted(stage, blob=digest(SECRET))
    assert (done.found.paths, done.found.snapshots) == (("copy", "env"), 2)
    assert (stage.capsule / layout.BLOBS / digest(f"{SECRET} again")).exists()
    assert not (stage.capsule / layout.BLOBS / digest(SECRET)).exists()


def test_putting_back_names_what_is_gone_and_puts_back_the_rest(stage: Stage) -> None:
    redacted(stage, blob=digest(SECRET))
    (stage.folder / "workspace" / "other").unlink()
    put = put_back(stage, 1)
    assert [(one.path, one.reason) for one in put.refused] == [("copy", REDACTED)]
    assert here(stage) == {"env": f"{SECRET} again", "other": "kept"}
    put = put_back(stage, 0)
    assert [(one.path, one.reason) for one in put.refused] == [("env", REDACTED)]
    assert here(stage) == {"other": "kept"}
    assert stage.verify() == []


def test_another_folder_gets_the_rest_too(stage: Stage, tmp_path: Path) -> None:
    redacted(stage, path="env")
    look = stage.machine.look(stage.make())
    plan = extract(
        stage.machine.ports,
        stage.make(),
        lists(stage)[0],
        str(tmp_path / "then"),
        gone=look.folded.ending.gone,
    )
    assert [one.path for one in plan.refused] == ["env"]
    assert [path.name for path in (tmp_path / "then").iterdir()] == ["other"]


def test_the_file_in_the_workspace_stays_and_no_snapshot_takes_it_in_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, SAYS)
    put(stage, env=SECRET, other="kept")
    os.symlink(SECRET, tmp_path / "workspace" / "link")
    stage.run()
    redacted(stage, path="env")
    put(stage, more="more")
    stage.run()
    assert [entry.path for entry in lists(stage)[-1].entries] == ["more", "other"]
    last = stage.bodies(Snapshotted)[-1]
    assert {one.path: one.reason for one in last.left_out} == {"env": REDACTED, "link": REDACTED}
    # Nothing is known of earlier readings: every file is read again.
    for path in (tmp_path / "state").rglob("*stat*"):
        if path.is_file():
            path.unlink()
    count = len(taken(stage))
    stage.run()
    assert len(taken(stage)) == count
    assert not (stage.capsule / layout.BLOBS / digest(SECRET)).exists()
    assert here(stage)["env"] == SECRET
    assert put_back(stage, 0).refused == ()
    assert here(stage) == {"env": SECRET, "other": "kept"}
    assert stage.verify() == []


def test_a_file_whose_content_is_nowhere_else_is_never_taken_away_or_overwritten(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, SAYS)
    put(stage, other="kept")
    stage.run()
    put(stage, env="first")
    stage.run()
    put(stage, env=SECRET)
    stage.run()
    redacted(stage, blob=digest(SECRET))
    put_back(stage, 0)
    assert here(stage)["env"] == SECRET
    with pytest.raises(UsageError) as conflict:
        put_back(stage, 1)
    assert conflict.value.code == "restore_conflict"
    assert here(stage)["env"] == SECRET


def test_what_else_holds_the_bytes_must_go_first(tmp_path: Path) -> None:
    said = f"{SECRET}\n" * 2000
    stage = Stage(tmp_path, SAYS)
    put(stage, env=said)
    stage.run(said)
    log = stage.timeline().read_bytes()
    event = next(event for event in stage.events() if isinstance(event.body, Input))
    with pytest.raises(UsageError) as refused:
        redacted(stage, path="env")
    assert refused.value.code == "redact_refused"
    assert event.id[:8] in refused.value.message
    assert stage.timeline().read_bytes() == log
    asyncio.run(redact(stage.machine, stage.make(), event.id, reason="a password"))
    redacted(stage, path="env")
    assert SECRET.encode() not in everything(stage.capsule)
    assert stage.verify() == []


def test_what_is_no_content_of_a_snapshot_is_refused_and_nothing_changes(stage: Stage) -> None:
    put(stage, empty="")
    stage.run()
    log = stage.timeline().read_bytes()
    for wanted in ({"path": "elsewhere"}, {"blob": "e" * 64}, {"path": ""}):
        with pytest.raises(NotFoundError) as missing:
            redacted(stage, **wanted)
        assert missing.value.code == "content_missing"
    with pytest.raises(UsageError):
        redacted(stage, path="empty")
    assert stage.timeline().read_bytes() == log
    redacted(stage, path="env")
    with pytest.raises(UsageError) as again:
        redacted(stage, path="env")
    assert again.value.code == "redact_refused"


def test_an_opening_removes_what_a_crash_left(stage: Stage) -> None:
    redacted(stage, path="env")
    (stage.capsule / layout.BLOBS / digest(SECRET)).write_text(SECRET)
    assert stage.verify() == []
    stage.run("go on")
    assert SECRET.encode() not in everything(stage.capsule)


def test_gc_and_a_merge_do_not_bring_it_back(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    stage = Stage(tmp_path / "here", SAYS)
    put(stage, env=SECRET)
    stage.run()
    other = elsewhere(stage, tmp_path / "there")
    other.run("there")
    redacted(stage, path="env")
    stage.run("here")
    asyncio.run(merge(stage.machine, stage.make(), str(other.capsule)))
    assert SECRET.encode() not in everything(stage.capsule)
    assert stage.verify() == []
    asyncio.run(collect(stage.machine, stage.make(), prune=True, grace_days=0))
    assert stage.verify() == []
    asyncio.run(merge(other.machine, other.make(), str(stage.capsule)))
    assert SECRET.encode() not in everything(other.capsule)
    assert other.verify() == []
    assert stage.timeline().read_bytes()[:9000] == other.timeline().read_bytes()[:9000]


def test_export_import_and_a_fork_carry_what_is_gone(stage: Stage, tmp_path: Path) -> None:
    put(stage, env=SECRET)
    stage.run()
    redacted(stage, path="env")
    early = forked(stage, stage.make(), name="early", at=taken(stage)[-1])
    assert early.workspace is not None
    assert [path.name for path in Path(early.workspace).iterdir()] == ["other"]
    file = export(stage)
    assert SECRET.encode() not in file.read_bytes()
    machine = another(tmp_path)
    folder = Path(take(machine, file).place.folder)
    made = forked(stage, stage.make(), name="second")
    for capsule in (folder, Path(made.folder), Path(early.folder)):
        assert SECRET.encode() not in everything(capsule)
        sound(machine, str(capsule))
    assert made.workspace is not None
    assert [path.name for path in Path(made.workspace).iterdir()] == ["other"]


def test_a_content_that_was_lost_and_recorded_is_left_out_as_well(stage: Stage) -> None:
    lost = stage.capsule / layout.BLOBS / digest(SECRET)
    lost.unlink()
    asyncio.run(repair(stage.machine, stage.make()))
    put = put_back(stage, 0)
    assert [(one.path, one.reason) for one in put.refused] == [("env", LOST)]
    assert here(stage) == {"other": "kept"}
    made = forked(stage, stage.make(), name="second")
    sound(stage.machine, made.folder)


def test_an_export_says_that_earlier_seals_hold_what_was_redacted_since(stage: Stage) -> None:
    def seal(name: str) -> archives.Exported:
        wanted = archives.Wanted(file=str(stage.folder / name))
        return asyncio.run(archives.export_capsule(stage.machine, stage.make(), wanted))

    first = next(event for event in stage.events() if isinstance(event.body, Input))
    asyncio.run(redact(stage.machine, stage.make(), first.id, reason="before any seal"))
    assert seal("old.tar").redacted == 0
    redacted(stage, path="env")
    last = [event for event in stage.events() if isinstance(event.body, Input)][-1]
    asyncio.run(redact(stage.machine, stage.make(), last.id, reason="a password"))
    made, again = seal("new.tar"), seal("again.tar")
    assert (made.redacted, made.new, again.redacted, again.new) == (2, True, 2, False)
    assert SECRET.encode() in (stage.folder / "old.tar").read_bytes()
    for name in ("old.tar", "new.tar"):
        assert archives.verify_archive(str(stage.folder / name)).findings == ()
    stage.run("go on")
    assert seal("later.tar").redacted == 0


def test_an_archive_of_an_earlier_seal_brings_nothing_back(stage: Stage) -> None:
    """Merged into the capsule, it stays without what is gone; else it is refused as older."""
    file = export(stage)
    redacted(stage, path="env")
    stage.run("go on")
    machine = another(stage.folder)
    place = take(machine, file).place
    assert place is not None
    asyncio.run(merge(stage.machine, stage.make(), place.folder))
    assert SECRET.encode() not in everything(stage.capsule)
    assert stage.verify() == []
    with pytest.raises(HeldElsewhereError) as refused:
        take(stage.machine, file)
    assert refused.value.code == "older_copy"
