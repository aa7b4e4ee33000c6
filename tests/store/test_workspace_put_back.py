"""Putting a snapshot back: the folder is the list, and nothing of anybody else is touched."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.errors import FormatError, StoppedError
from sojourn.format import layout, snapshot
from sojourn.store.workspace_plan import CIRCLE, OUTSIDE, why_refused
from store.workspaces import EMPTY, Place, paths, tree

GIT = shutil.which("git")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def elsewhere(place: Place) -> Path:
    root = place.folder / "elsewhere"
    root.mkdir()
    return root


def test_a_snapshot_put_into_an_empty_folder_is_the_workspace_again(place: Place) -> None:
    place.write({"a": "one", "d/e/f": "two", "run": "three"})
    (place.root / "run").chmod(0o755)
    (place.root / "empty/x").mkdir(parents=True)
    (place.root / "link").symlink_to("d/e")
    (place.root / "d/up").symlink_to("../a")
    (place.root / "large").write_bytes(b"x" * 3_000_000)
    taken, other = place.take(), elsewhere(place)
    plan = place.restore(EMPTY, taken.listed, other)
    assert (plan.conflicts, plan.refused) == ((), ())
    assert tree(other) == tree(place.root)


NAMES = ["a", "b", "a/b", "a/b/c", "b/c", "c", "c/d"]
KINDS = ["file", "run", "link", "folder"]


def _fill(root: Path, what: dict[str, tuple[str, str]]) -> None:
    for name in sorted(what, key=len):
        kind, text = what[name]
        path = root / name
        if any(parent.is_symlink() or parent.is_file() for parent in [path, *path.parents]):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            continue
        match kind:
            case "link":
                path.symlink_to(text or "x")
            case "folder":
                path.mkdir()
            case _:
                path.write_text(text)
                path.chmod(0o755 if kind == "run" else 0o644)


STATES = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from(KINDS), st.sampled_from(["", "x", "yy"]))
)


@settings(max_examples=60, deadline=None)
@given(STATES, STATES)
def test_any_state_is_put_back_over_any_other_and_what_is_not_ours_stays(
    then: dict[str, tuple[str, str]], now: dict[str, tuple[str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        place.write({".sojournignore": "foreign*\n"})
        _fill(place.root, then)
        first, was = place.take(), tree(place.root)
        for path in place.root.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        place.write({".sojournignore": "foreign*\n", "foreign": "mine", "foreign-d/x": "mine"})
        _fill(place.root, now)
        second = place.take()
        plan = place.restore(second.listed, first.listed)
        assert plan.conflicts == ()
        after = tree(place.root)
        assert after.pop("foreign") == after.pop("foreign-d/x") == "- b'mine'"
        assert after.pop("foreign-d") == "folder"
        assert after == was
        assert place.take().result == first.result


def test_what_is_put_back_is_not_read_again(place: Place) -> None:
    place.write({"a": "1", "b": "2"})
    first = place.take()
    place.write({"a": "x", "c": "3"})
    second = place.take()
    place.restore(second.listed, first.listed)
    survey = place.workspace().survey()
    assert survey.files == 0
    assert place.take().result == first.result


CONFLICTS = {
    "a file that no snapshot holds": ("new", "foreign", "something that no snapshot holds"),
    "one that was changed since": ("kept", "changed", "changed since"),
    "one to be removed, changed since": ("late", "changed", "changed since"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_what_is_not_as_the_snapshot_before_says_is_never_lost(place: Place, name: str) -> None:
    path, text, reason = CONFLICTS[name]
    place.write({"new": "1", "kept": "1"})
    first = place.take()
    (place.root / "new").unlink()
    place.write({"kept": "2", "late": "3"})
    second = place.take()
    place.write({path: text})
    before = tree(place.root)
    plan = place.restore(second.listed, first.listed)
    assert [one.path for one in plan.conflicts] == [path]
    assert reason in plan.conflicts[0].reason
    assert tree(place.root) == before


def test_a_folder_that_holds_something_else_does_not_make_room_for_a_file(place: Place) -> None:
    place.write({"a": "file", ".sojournignore": "*.log"})
    first = place.take()
    (place.root / "a").unlink()
    place.write({"a/b": "1", "a/c.log": "foreign"})
    second = place.take()
    assert [one.path for one in place.restore(second.listed, first.listed).conflicts] == ["a"]
    (place.root / "a/c.log").unlink()
    assert place.restore(second.listed, first.listed).conflicts == ()
    assert (place.root / "a").read_text() == "file"


def test_a_foreign_file_where_a_folder_belongs_is_a_conflict(place: Place) -> None:
    place.write({"a/b": "1", ".sojournignore": "/a\n!/a/\n"})
    first = place.take()
    shutil.rmtree(place.root / "a")
    second = place.take()
    (place.root / "a").write_text("foreign")
    plan = place.restore(second.listed, first.listed)
    assert [one.path for one in plan.conflicts] == ["a"]


def test_an_equal_file_in_the_way_is_no_conflict(place: Place) -> None:
    place.write({"a": "1"})
    taken, other = place.take(), elsewhere(place)
    (other / "a").write_text("1")
    inode = (other / "a").stat().st_ino
    assert place.restore(EMPTY, taken.listed, other).conflicts == ()
    assert (other / "a").stat().st_ino == inode


def test_links_that_would_lead_out_are_left_out_and_listed(place: Place) -> None:
    place.write({"d/f": "1"})
    for name, target in {
        "d/ok": "../d/f",
        "absolute": "/etc/passwd",
        "up": "../x",
        "d/far": "../../x",
        "loop": "loop",
        "d/top": "..",
        "through": "d/top/../x",
    }.items():
        (place.root / name).symlink_to(target)
    taken, other = place.take(), elsewhere(place)
    plan = place.restore(EMPTY, taken.listed, other)
    refused = ["absolute", "d/far", "loop", "through", "up"]
    assert [one.path for one in plan.refused] == refused
    assert [one.path for one in plan.refused if one.reason == CIRCLE] == ["loop"]
    assert sorted(path for path in tree(other) if "->" in tree(other)[path]) == ["d/ok", "d/top"]
    workspace = place.workspace(other)
    assert workspace.plan(taken.listed, taken.listed).make == ()


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        ("a", "b", True),
        ("a/b", "../c", True),
        ("a/b", "../../c", False),
        ("a", "..", False),
        ("a/b", "..", True),
        ("a", "l/../../../x", False),
        ("a", "l/../x", True),
        ("a", "r/../x", False),
        ("a", "r/x", True),
        ("a", "/x", False),
        ("a", "o/x", False),
    ],
)
def test_a_link_stays_inside_link_by_link(path: str, target: str, inside: bool) -> None:
    links = {b"l": b"deep/er", b"deep/er": b"../flat/one", b"r": b".", b"o": b"/out"}
    assert why_refused(path, target.encode(), links) == (None if inside else OUTSIDE)


def test_nothing_is_written_through_a_link_in_the_way(place: Place) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    place.write({"d/f": "1", ".sojournignore": "/d\n!/d/\n"})
    first = place.take()
    shutil.rmtree(place.root / "d")
    second = place.take()
    (place.root / "d").symlink_to(outside)
    plan = place.restore(second.listed, first.listed)
    assert [one.path for one in plan.conflicts] == ["d"]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("damage", ["missing", "altered"])
@pytest.mark.parametrize("size", [3, 2_000_000])
def test_a_damaged_blob_stops_it_before_the_first_change(
    place: Place, damage: str, size: int
) -> None:
    place.write({"a": "1", "b": "y" * size})
    first = place.take()
    place.write({"a": "2", "b": "2", "c": "3"})
    second, before = place.take(), tree(place.root)
    blobs = place.folder / "capsule" / layout.BLOBS
    name = next(entry.sha256 for entry in first.listed.entries if entry.path == "b")
    path = blobs / str(name)
    path.unlink() if damage == "missing" else path.write_text("z" * size)
    with pytest.raises(FormatError) as caught:
        place.restore(second.listed, first.listed)
    assert caught.value.code == f"blob_{damage}"
    assert tree(place.root) == before


def test_a_person_can_stop_it_before_the_first_change(place: Place) -> None:
    place.write({"a": "1"})
    first = place.take()
    place.write({"a": "2"})
    second = place.take()
    workspace = place.workspace()
    plan = workspace.plan(second.listed, first.listed)
    with pytest.raises(StoppedError):
        workspace.put_back(plan, stop=lambda: True)
    assert tree(place.root) == {"a": "- b'2'"}


def test_what_a_killed_run_left_is_removed_by_the_next(place: Place) -> None:
    place.write({"a": "1"})
    first = place.take()
    (place.root / ".sojourn-restore").mkdir()
    (place.root / ".sojourn-restore/0").write_text("half")
    (place.root / ".sojourn-restore/1/deep").mkdir(parents=True)
    (place.root / ".sojourn-restore/1/deep/er").write_text("half")
    (place.root / ".sojourn-restore/1/out").symlink_to(place.folder)
    place.write({"a": "2"})
    second = place.take()
    assert paths(second.listed) == ["a"]
    place.restore(second.listed, first.listed)
    assert tree(place.root) == {"a": "- b'1'"}


@pytest.mark.parametrize("at", [0, 5_000_000, 9_999_999, None])
def test_a_hole_in_a_file_takes_no_space_as_a_blob_and_when_it_is_put_back(
    place: Place, at: int | None
) -> None:
    """Wherever its one byte that is not zero stands."""
    sparse = place.root / "sparse"
    with open(sparse, "wb") as file:
        file.truncate(10_000_000)
        if at is not None:
            file.seek(at)
            file.write(b"x")
    (place.root / "small").write_bytes(bytes(5000))
    if sparse.stat().st_blocks * 512 > 2_000_000:
        pytest.skip("this file system has no holes")
    taken, other = place.take(), elsewhere(place)
    place.restore(EMPTY, taken.listed, other)
    assert tree(other) == tree(place.root)
    blobs = place.folder / "capsule" / layout.BLOBS
    for path in (*blobs.iterdir(), *other.iterdir()):
        assert path.stat().st_blocks * 512 < 2_500_000


def test_two_names_of_one_file_become_two_files(place: Place) -> None:
    place.write({"a": "1"})
    (place.root / "b").hardlink_to(place.root / "a")
    taken, other = place.take(), elsewhere(place)
    assert paths(taken.listed) == ["a", "b"]
    place.restore(EMPTY, taken.listed, other)
    assert (other / "a").stat().st_nlink == (other / "b").stat().st_nlink == 1
    assert (other / "b").read_text() == "1"


def test_a_folder_that_is_not_there_is_moved_as_one_and_files_of_another_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write({"new/a": "1", "new/deep/b": "2", "old/c": "3", "top": "4"})
    (place.root / "new/empty").mkdir()
    first, was = place.take(), tree(place.root)
    shutil.rmtree(place.root / "new")
    place.write({"old/c": "changed"})
    (place.root / "top").unlink()
    second, moved, real = place.take(), list[str](), os.rename

    def spy(old: str, new: str, **more: int) -> None:
        if "src_dir_fd" in more:
            moved.append(new)
        real(old, new, **more)

    monkeypatch.setattr(os, "rename", spy)
    place.restore(second.listed, first.listed)
    assert sorted(moved) == ["c", "new", "top"]
    assert tree(place.root) == was


def test_a_folder_that_somebody_makes_meanwhile_keeps_what_is_in_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write({"new/a": "1", "new/deep/b": "2"})
    first = place.take()
    shutil.rmtree(place.root / "new")
    second, real = place.take(), os.rename

    def quicker(old: str, new: str, **more: int) -> None:
        if new == "new":
            place.write({"new/theirs": "mine", "new/deep/too": "mine"})
        real(old, new, **more)

    monkeypatch.setattr(os, "rename", quicker)
    place.restore(second.listed, first.listed)
    found = {path: what for path, what in tree(place.root).items() if what != "folder"}
    assert found == {
        "new/a": "- b'1'",
        "new/deep/b": "- b'2'",
        "new/theirs": "- b'mine'",
        "new/deep/too": "- b'mine'",
    }


def test_a_blob_that_is_longer_than_the_list_says_is_refused(place: Place) -> None:
    place.write({"a": "1234", "b": "x" * (2 << 20)})
    first = place.take()
    short = snapshot.Snapshot(
        entries=tuple(
            msgspec.structs.replace(entry, size=(entry.size or 0) // 2)
            for entry in first.listed.entries
        )
    )
    (place.folder / "other").mkdir()
    for entry in short.entries:
        with pytest.raises(FormatError) as caught:
            place.restore(EMPTY, snapshot.Snapshot(entries=(entry,)), place.folder / "other")
        assert caught.value.code == "blob_altered"


def test_an_empty_list_takes_everything_of_ours_away_but_the_ignore_file(place: Place) -> None:
    place.write({"a/b/c": "1", "d": "2", "kept.log": "3", ".sojournignore": "*.log"})
    (place.root / "e/f").mkdir(parents=True)
    taken = place.take()
    place.restore(taken.listed, EMPTY)
    assert tree(place.root) == {"kept.log": "- b'3'", ".sojournignore": "- b'*.log'"}


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_a_git_repository_works_after_it_was_put_back(place: Place) -> None:
    def git(*words: str, root: Path = place.root) -> str:
        command = [str(GIT), "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    git("init", "-q", "-b", "main")
    place.write({"src/a.py": "print(1)\n", "run.sh": "#!/bin/sh\n"})
    (place.root / "run.sh").chmod(0o755)
    (place.root / "link").symlink_to("src/a.py")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("branch", "side")
    git("gc", "-q")
    place.write({"src/a.py": "print(2)\n"})
    git("commit", "-q", "-a", "-m", "two")
    (place.root / ".git/refs/empty").mkdir()
    first, other = place.take(), elsewhere(place)
    place.restore(EMPTY, first.listed, other)
    assert git("status", "--porcelain", root=other) == ""
    assert "error" not in git("fsck", "--strict", root=other)
    assert git("log", "--oneline", "--all", root=other) == git("log", "--oneline", "--all")
    git("checkout", "-q", "side")
    git("commit", "-q", "--allow-empty", "-m", "three")
    second = place.take()
    place.restore(second.listed, first.listed)
    assert git("status", "--porcelain", "--branch") == "## main\n"
    assert "error" not in git("fsck", "--strict")
    assert os.path.isdir(place.root / ".git/refs/empty")
