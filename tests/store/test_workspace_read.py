"""Reading a workspace: what a snapshot holds, what it leaves out, and how little is read again."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from sojourn.errors import NotFoundError, StoppedError
from sojourn.store import workspace_read
from sojourn.store.workspace_folders import FILE_FLAGS
from sojourn.store.workspace_known import COARSE, NEVER, SECOND, TICK, holds, key_of
from store.workspaces import Place, entries, paths


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def read_paths(place: Place, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose content was opened."""
    opened: list[str] = []
    real = os.open

    def spy(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags == FILE_FLAGS and dir_fd is not None:
            inside = os.readlink(f"/proc/self/fd/{dir_fd}") + "/"
            opened.append(inside.removeprefix(f"{place.root}/") + path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", spy)
    return opened


def test_files_links_and_empty_folders_are_in_the_list_and_contents_are_blobs(
    place: Place,
) -> None:
    place.write({"a.txt": "one", "run.sh": "two", "deep/er/b": "one"})
    (place.root / "run.sh").chmod(0o755)
    (place.root / "empty/inner").mkdir(parents=True)
    (place.root / "link").symlink_to("deep/er")
    (place.root / "gone").symlink_to("no/such/place")
    taken = place.take()
    found = entries(taken.listed)
    assert list(found) == ["a.txt", "deep/er/b", "empty/inner", "gone", "link", "run.sh"]
    kinds = {path: entry.type for path, entry in found.items()}
    assert kinds["run.sh"] == "executable"
    assert kinds["empty/inner"] == "directory"
    assert kinds["link"] == kinds["gone"] == "symlink"
    assert found["link"].sha256 == sha256(b"deep/er").hexdigest()
    assert sorted(place.blobs().values()) == [b"deep/er", b"no/such/place", b"one", b"two"]
    assert all(sha256(data).hexdigest() == name for name, data in place.blobs().items())


def test_a_link_to_a_folder_is_never_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (place.root / "link").symlink_to(outside)
    assert paths(place.take().listed) == ["link"]
    assert b"secret" not in place.blobs().values()


def test_names_that_no_snapshot_holds_are_listed_and_stop_nothing(place: Place) -> None:
    place.write({"good": "1"})
    os.mkfifo(place.root / "pipe")
    with open(os.fsencode(place.root) + b"/not-\xff-utf8", "wb"):
        pass
    os.mkdir(os.fsencode(place.root) + b"/bad-\x01-folder")
    Path(os.fsdecode(os.fsencode(place.root) + b"/bad-\x01-folder") + "/in").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        at = os.getcwd()
        os.chdir(place.root)
        try:
            server.bind("socket")
        finally:
            os.chdir(at)
    taken = place.take()
    assert paths(taken.listed) == ["good"]
    assert {one.path: one.reason for one in taken.left_out} == {
        "pipe": "it is a pipe",
        "socket": "it is a socket",
        "not-\\xff-utf8": "it is not valid Unicode",
        "bad-\\x01-folder": "it holds a control character",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_listed(place: Place) -> None:
    place.write({"closed": "x", "folder/in": "y"})
    (place.root / "closed").chmod(0)
    (place.root / "folder").chmod(0)
    taken = place.take()
    (place.root / "folder").chmod(0o755)
    assert {one.path for one in taken.left_out} == {"closed", "folder"}


def test_a_file_that_cannot_be_opened_is_listed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write({"closed": "x", "open": "y"})
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "closed":
            raise PermissionError(13, "no")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    taken = place.take()
    assert [(one.path, one.reason) for one in taken.left_out] == [
        ("closed", "it cannot be read (EACCES)")
    ]
    assert paths(taken.listed) == ["open"]


def test_our_own_temporary_files_are_no_part_of_a_workspace(place: Place) -> None:
    place.write({".sojourn-draft.tmp": "half", "sub/.sojourn-x/y": "half", "a": "1"})
    taken = place.take()
    assert paths(taken.listed) == ["a", "sub"]
    assert taken.left_out == ()


def test_an_unchanged_workspace_is_not_read_again(place: Place, read_paths: list[str]) -> None:
    place.write({"a": "1", "b/c": "2"})
    (place.root / "empty").mkdir()
    first = place.take()
    read_paths.clear()
    survey = place.workspace().survey()
    assert (survey.files, survey.size, survey.same_as) == (0, 0, first.result)
    assert place.take().result == first.result
    assert read_paths == []


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a").write_text("2"),
        lambda root: (root / "a").chmod(0o755),
        lambda root: (root / "a").unlink(),
        lambda root: (root / "new").write_text("1"),
        lambda root: (root / "d").mkdir(),
        lambda root: (root / "empty").rmdir(),
        lambda root: (root / "empty/x").write_text("1"),
        lambda root: ((root / "l").unlink(), (root / "l").symlink_to("b")),
        lambda root: ((root / "a").unlink(), (root / "a").symlink_to("b/c")),
        lambda root: (os.utime(root / "a", ns=(1, 1)), (root / "a").write_text("2"), _old(root)),
    ],
)
def test_every_change_is_seen(place: Place, change: Callable[[Path], object]) -> None:
    place.write({"a": "1", "b/c": "2"})
    (place.root / "empty").mkdir()
    (place.root / "l").symlink_to("a")
    first = place.take()
    change(place.root)
    assert place.workspace().survey().same_as is None
    second = place.take()
    assert second.result != first.result
    (place.stats).unlink()
    assert place.take().result == second.result


def _old(root: Path) -> None:
    """As a program does that gives a changed file its old time back."""
    os.utime(root / "a", ns=(1, 1))


def test_only_changed_files_are_read(place: Place, read_paths: list[str]) -> None:
    place.write({f"d{number}/f": str(number) for number in range(20)})
    place.take()
    read_paths.clear()
    place.write({"d3/f": "x", "d7/g": "y"})
    place.take()
    assert sorted(read_paths) == ["d3/f", "d7/g"]


def test_a_file_changed_within_the_grain_of_its_clock_is_read_again(
    place: Place, read_paths: list[str]
) -> None:
    """The stat of such a file could be the same before and after a further change."""
    place.clock.offset = 0
    place.write({"a": "1"})
    place.clock.stand_at(os.stat(place.root / "a").st_ctime_ns)
    place.take()
    read_paths.clear()
    place.clock.offset = 60 * SECOND
    place.take()
    assert read_paths == ["a"]
    read_paths.clear()
    place.take()
    assert read_paths == []


def test_a_key_is_trusted_only_when_it_was_taken_late_enough(place: Place) -> None:
    place.write({"a": "1"})
    found = os.stat(place.root / "a")
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    whole = found.st_mtime_ns % SECOND == 0 and found.st_ctime_ns % SECOND == 0
    slack = COARSE if whole else TICK
    late, early = (
        key_of(found, "x", now=changed + slack),
        key_of(found, "x", now=changed + slack - 1),
    )
    assert holds(late, found)
    assert not holds(early, found)
    assert early.key[3] == NEVER


def test_whole_seconds_are_trusted_later() -> None:
    values = [stat.S_IFREG, 7, 1, 1, 0, 0, 3, 10, 10, 10]
    found = os.stat_result([*values, 10.0, 10.0, 10.0, 10 * SECOND, 10 * SECOND, 10 * SECOND])
    assert holds(key_of(found, "x", now=12 * SECOND), found)
    assert not holds(key_of(found, "x", now=12 * SECOND - 1), found)


@pytest.mark.parametrize("cut", [0, 3, 20, 60, -1])
def test_a_damaged_record_of_earlier_readings_is_made_anew(
    place: Place, cut: int, read_paths: list[str]
) -> None:
    place.write({"a": "1", "b": "2"})
    first = place.take()
    data = bytearray(place.stats.read_bytes())
    if cut == 0:
        data = bytearray()
    else:
        data[cut] ^= 1
    place.stats.write_bytes(bytes(data))
    read_paths.clear()
    assert place.take().result == first.result
    assert sorted(read_paths) == ["a", "b"]
    read_paths.clear()
    place.take()
    assert read_paths == []


def test_a_record_of_another_folder_is_not_believed(
    place: Place, read_paths: list[str], tmp_path: Path
) -> None:
    place.write({"a": "1"})
    place.take()
    place.root.rename(tmp_path / "old")
    place.root.mkdir()
    place.write({"a": "2"})
    read_paths.clear()
    assert entries(place.take().listed)["a"].sha256 == sha256(b"2").hexdigest()


@pytest.mark.parametrize("size", [10, workspace_read.LARGE + 5])
@pytest.mark.parametrize(("times", "kept"), [(1, True), (2, True), (3, False)])
def test_a_file_that_changes_while_it_is_read_is_read_again_or_left_out(
    place: Place, monkeypatch: pytest.MonkeyPatch, size: int, times: int, kept: bool
) -> None:
    (place.root / "a").write_bytes(b"x" * size)
    left, inode, real = [times], os.stat(place.root / "a").st_ino, os.pread

    def pread(handle: int, count: int, offset: int) -> bytes:
        """Something is added to the file right after its last byte was read."""
        data = real(handle, count, offset)
        ours = os.fstat(handle).st_ino == inode
        if ours and left[0] and (not data or size < workspace_read.LARGE):
            left[0] -= 1
            with open(place.root / "a", "ab") as file:
                file.write(b"more")
        return data

    monkeypatch.setattr(os, "pread", pread)
    taken = place.take()
    monkeypatch.undo()
    if kept:
        assert entries(taken.listed)["a"].size == size + 4 * times
    else:
        assert taken.listed.entries == ()
        assert [one.path for one in taken.left_out] == ["a"]
        assert "changed" in taken.left_out[0].reason


def test_what_is_read_is_what_is_hashed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A blob's bytes are those that went through the hash, whatever the file does meanwhile."""
    (place.root / "a").write_bytes(b"a" * (3 * workspace_read.LARGE))
    real = os.pread
    reads: list[int] = []

    def pread(handle: int, count: int, offset: int) -> bytes:
        data = real(handle, count, offset)
        reads.append(offset)
        if len(reads) == 2:
            with open(place.root / "a", "r+b") as file:
                file.write(b"B" * workspace_read.LARGE * 3)
        return data

    monkeypatch.setattr(os, "pread", pread)
    taken = place.take()
    monkeypatch.undo()
    assert all(sha256(data).hexdigest() == name for name, data in place.blobs().items())
    found = entries(taken.listed)["a"]
    assert found.sha256 == sha256(b"B" * workspace_read.LARGE * 3).hexdigest()


def test_a_file_that_became_a_link_before_it_was_read_is_left_out(
    place: Place, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    place.write({"a": "1", "b/c": "2"})
    workspace = place.workspace()
    workspace.survey()
    (place.root / "a").unlink()
    (place.root / "a").symlink_to(secret)
    (place.root / "b").rename(place.root / "d")
    (place.root / "b").symlink_to(tmp_path)
    taken = workspace.read()
    assert taken.listed.entries == ()
    assert {one.path for one in taken.left_out} == {"a", "b/c"}
    assert b"secret" not in place.blobs().values()


def test_equal_contents_are_stored_once_and_damaged_ones_replaced(place: Place) -> None:
    place.write({"a": "same", "b": "same", "c": "same!"})
    place.take()
    assert len(place.blobs()) == 2
    name = sha256(b"same").hexdigest()
    damaged = place.folder / "capsule/artifacts/blobs" / name
    damaged.write_bytes(b"rust")
    place.stats.unlink()
    place.take()
    assert damaged.read_bytes() == b"same"


def test_a_person_can_stop_it_and_nothing_is_left(place: Place) -> None:
    place.write({"a": "1", "b": "2"})
    (place.root / "large").write_bytes(b"x" * workspace_read.LARGE * 4)
    workspace = place.workspace()
    workspace.survey()
    asked: Iterator[bool] = iter([False] * 5)
    with pytest.raises(StoppedError):
        workspace.read(stop=lambda: next(asked, True))
    assert place.blobs() == {}
    assert not place.stats.exists()


def test_progress_counts_every_file_and_byte(place: Place) -> None:
    place.write({"a": "1", "b": "22"})
    (place.root / "large").write_bytes(b"x" * (workspace_read.LARGE + 1))
    workspace = place.workspace()
    survey = workspace.survey()
    told: list[tuple[int, int]] = []
    workspace.read(progress=lambda files, size: told.append((files, size)))
    assert sum(files for files, _ in told) == survey.files == 3
    assert sum(size for _, size in told) == survey.size == workspace_read.LARGE + 4


def test_a_workspace_that_is_not_there_is_named(place: Place) -> None:
    place.root.rmdir()
    with pytest.raises(NotFoundError) as caught:
        place.workspace().survey()
    assert caught.value.code == "no_workspace"


def test_what_was_known_of_other_files_of_a_folder_stays_when_one_changes(
    place: Place, read_paths: list[str]
) -> None:
    place.write({"d/a": "1", "d/b": "2", "e/c": "3", "f": "4"})
    place.take()
    workspace = place.workspace()
    for text in ("x", "yy"):
        place.write({"d/a": text})
        read_paths.clear()
        workspace.survey()
        taken = workspace.read()
        workspace.remember()
        assert read_paths == ["d/a"]
        assert paths(taken.listed) == ["d/a", "d/b", "e/c", "f"]
        assert entries(taken.listed)["d/a"].sha256 == sha256(text.encode()).hexdigest()
    (place.root / "d/b").unlink()
    place.write({"d/0": "new"})
    workspace.survey()
    assert paths(workspace.read().listed) == ["d/0", "d/a", "e/c", "f"]
