"""Blobs that nothing names are found and removed, and nothing else ever is; moments of the past."""

import asyncio
import os
from hashlib import sha256
from pathlib import Path

import pytest

from agent.stage import Stage
from sojourn.agent.moment import moment
from sojourn.agent.trim import Cleaned, collect
from sojourn.errors import FormatError, HeldElsewhereError, NotFoundError
from sojourn.format.event import Input, ToolOutcome
from sojourn.format.layout import BLOBS, MANIFEST, SNAPSHOT, WORKING_MEMORY

STEPS = [
    {
        "calls": [
            {"tool": "todo", "args": {"items": [{"text": "count", "status": "doing"}]}},
            {"tool": "shell", "args": {"command": "seq 5000"}},
        ]
    },
    {"text": "Counted."},
    {"text": "Again."},
]


def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, STEPS)
    made.run("count")
    return made


def blob(made: Stage, data: bytes, *, days: float = 20) -> Path:
    return old(made.capsule / BLOBS / sha256(data).hexdigest(), data, days=days)


def old(path: Path, data: bytes, *, days: float = 20) -> Path:
    path.write_bytes(data)
    then = path.stat().st_mtime - days * 86_400
    os.utime(path, (then, then))
    return path


def clean(made: Stage, *, prune: bool = False, grace: float = 14) -> Cleaned:
    return asyncio.run(collect(made.machine, made.make(), prune=prune, grace_days=grace))


def names(found: Cleaned) -> list[str]:
    return [one.name for one in found.blobs]


def test_only_old_blobs_that_nothing_names_are_found_and_a_look_removes_nothing(
    tmp_path: Path,
) -> None:
    made = stage(tmp_path)
    for path in (made.capsule / BLOBS).iterdir():
        old(path, path.read_bytes())
    left, fresh = blob(made, b"left"), blob(made, b"fresh", days=1)
    assert names(clean(made)) == [left.name]
    assert left.exists()
    assert names(clean(made, prune=True)) == [left.name]
    assert not left.exists()
    assert fresh.exists()
    assert made.verify() == []
    assert names(clean(made, prune=True, grace=0)) == [fresh.name]
    assert made.run("go on").reason == "rest"


def test_nothing_but_blobs_by_name_and_by_content_is_removed(tmp_path: Path) -> None:
    made = stage(tmp_path)
    folder = made.capsule / BLOBS
    target = old(tmp_path / "target", b"somebody's")
    other = old(folder / "notes.txt", b"left")
    short = old(folder / sha256(b"left").hexdigest()[:63], b"left")
    altered = old(folder / sha256(b"left").hexdigest(), b"other bytes")
    link = folder / sha256(b"somebody's").hexdigest()
    link.symlink_to(target)
    assert clean(made, prune=True, grace=0).blobs == ()
    assert all(path.exists() for path in (target, other, short, altered))
    assert link.is_symlink()


def test_what_any_file_names_is_kept_even_when_it_was_made_to_mislead(tmp_path: Path) -> None:
    made = stage(tmp_path)
    in_snapshot, in_manifest = blob(made, b"in snapshot"), blob(made, b"in manifest")
    snapshot = made.capsule / SNAPSHOT
    snapshot.write_text(f'{{"entries":["{in_snapshot.name}","../../etc/passwd"]}}\n')
    path = made.capsule / MANIFEST
    path.write_bytes(path.read_bytes().replace(b"{", b'{"a":"%s",' % in_manifest.name.encode(), 1))
    assert clean(made).blobs == ()
    # Opening makes the snapshot's file anew, so that it names nothing more.
    assert names(clean(made, prune=True)) == [in_snapshot.name]
    assert in_manifest.exists()


@pytest.mark.parametrize("part", ["artifacts", "artifacts/blobs"])
def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, part: str) -> None:
    made = stage(tmp_path)
    away = tmp_path / "away"
    (made.capsule / part).rename(away)
    (made.capsule / part).symlink_to(away)
    held = away / BLOBS.removeprefix(part).strip("/")
    left = old(held / sha256(b"left").hexdigest(), b"left")
    with pytest.raises(FormatError):
        clean(made, prune=True)
    assert left.exists()


def test_only_the_holder_removes(tmp_path: Path) -> None:
    made = stage(tmp_path)
    left = blob(made, b"left")
    made.environment["SOJOURN_HOME"] = str(tmp_path / "another")
    with pytest.raises(HeldElsewhereError):
        clean(made, prune=True)
    assert left.exists()


def test_a_moment_of_the_past_is_told_as_it_was(tmp_path: Path) -> None:
    made = stage(tmp_path)
    (made.capsule / WORKING_MEMORY).write_text("remember\n")
    made.run("again")
    look = made.machine.look(made.make())
    events = made.events()
    first = next(e for e in events if isinstance(e.body, Input))
    before = moment(look, first)
    assert (dict(before.documents), before.state.turn, before.notes) == (
        {},
        None,
        events[2].body.text,
    )
    todo = next(e for e in events if isinstance(e.body, ToolOutcome))
    during = moment(look, todo)
    assert list(during.documents) == ["todo"]
    assert during.state.turn == first.id
    assert [call.state for call in during.state.calls] == ["done", "asked"]
    now = moment(look, None)
    assert (now.event.id, now.notes, now.state.turn) == (events[-1].id, "remember\n", None)
    assert moment(look, events[-1]) == now


def test_a_moment_of_another_log_is_refused(tmp_path: Path) -> None:
    made = stage(tmp_path)
    look = made.machine.look(made.make())
    (tmp_path / "other").mkdir()
    other = stage(tmp_path / "other").events()[-1]
    with pytest.raises(NotFoundError):
        moment(look, other)
