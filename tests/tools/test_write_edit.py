"""The tools write and edit on real files."""

import asyncio
import contextlib
import fcntl
import os
import stat
import threading
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.errors import CallError
from sojourn.format.parts import TextPart
from sojourn.ids import CallKey
from sojourn.ports import Ran, Tool, ToolContext, ToolResult
from sojourn.tools import replace as replacing
from sojourn.tools.beneath import DRAFT
from sojourn.tools.edit import EditRefused, edit_file, edited
from sojourn.tools.write import write_file


class NoSandbox:
    """These tools start nothing."""

    async def run(self, *_: object, **__: object) -> Ran:
        raise NotImplementedError

    def end_left_behind(self) -> tuple[int, ...]:
        return ()


KEY = CallKey("5e" * 32)


def run(workspace: Path, tool: Tool, key: CallKey = KEY, **args: object) -> ToolResult:
    context = ToolContext(key=key, attempt=1, workspace=str(workspace), sandbox=NoSandbox())
    return asyncio.run(tool.run(args, context))


def text(result: ToolResult) -> str:
    (part,) = result.parts
    assert isinstance(part, TextPart)
    return str(part.text)


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


# --- write


def test_a_file_is_made_with_its_folders_and_digests(tmp_path: Path) -> None:
    result = run(tmp_path, write_file, path="./a/b/c.txt", content="é\r\n")
    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == b"\xc3\xa9\r\n"
    (file,) = result.files
    assert (file.path, file.before) == ("a/b/c.txt", None)
    assert file.after == digest(b"\xc3\xa9\r\n")
    assert text(result) == "a/b/c.txt: wrote 4 bytes (new)"
    assert result.synced


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    place = tmp_path / "run.sh"
    place.write_text("old")
    place.chmod(0o751)
    other = tmp_path / "linked"
    other.hardlink_to(place)
    (file,) = run(tmp_path, write_file, path="run.sh", content="new").files
    assert (file.before, file.after) == (digest(b"old"), digest(b"new"))
    assert stat.S_IMODE(place.stat().st_mode) == 0o751
    # Put in its place, not written into: who has the old one open or linked keeps it.
    assert other.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linked", "run.sh"]


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        run(tmp_path, write_file, path="a", content="x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "target").write_text("old")
    (tmp_path / "link").symlink_to("in/target")
    run(tmp_path, write_file, path="link", content="new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "in" / "target").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (".", "is_folder"),
        ("folder", "is_folder"),
        ("pipe", "path_refused"),
        ("fixed", "read_only"),
        ("out/x", "path_refused"),
        ("dangling", "path_refused"),
    ],
)
def test_what_is_no_file_to_write_is_refused_and_kept(path: str, code: str, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    (workspace / "folder").mkdir(parents=True)
    os.mkfifo(workspace / "pipe")
    (workspace / "fixed").write_text("x")
    (workspace / "fixed").chmod(0o444)
    (workspace / "out").symlink_to("..")
    (workspace / "dangling").symlink_to("../new")
    result = run(workspace, write_file, path=path, content="x")
    assert (result.failed, result.code, result.files) == (True, code, ())
    assert [one.name for one in tmp_path.iterdir()] == ["w"]
    names = ["dangling", "fixed", "folder", "out", "pipe"]
    assert sorted(one.name for one in workspace.iterdir()) == names


def test_lone_surrogates_are_written_as_replacement_and_said(tmp_path: Path) -> None:
    result = run(tmp_path, write_file, path="a", content="a\ud800")
    assert (tmp_path / "a").read_text() == "a\N{REPLACEMENT CHARACTER}"
    assert "lone surrogates" in text(result)


def syscalls_of_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, path: str = "a"
) -> list[str]:
    """The calls that make the write durable, in order; real ones, written down."""
    seen: list[str] = []
    sync, rename = os.fsync, os.rename

    def fsync(fd: int) -> None:
        seen.append("sync folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "sync file")
        sync(fd)

    def put(*args: object, **more: object) -> None:
        seen.append("rename")
        rename(*args, **more)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", put)
    run(tmp_path, write_file, path=path, content="x")
    return seen


def test_a_write_is_durable_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert syscalls_of_write(tmp_path, monkeypatch) == ["sync file", "rename", "sync folder"]


def test_folders_that_were_made_are_durable_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ["sync folder", "sync folder"]
    rest = ["sync file", "rename", "sync folder"]
    assert syscalls_of_write(tmp_path, monkeypatch, path="n/m/a") == made + rest


def test_what_a_killed_write_left_is_replaced_by_the_next_one_in_the_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / DRAFT).write_text("half")
    (tmp_path / DRAFT).chmod(0o000)
    run(tmp_path, write_file, path="a", content="x")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_a_draft_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / DRAFT).symlink_to("../outside")
    run(tmp_path / "w", write_file, path="a", content="x")
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "w" / "a").read_text() == "x"


def test_a_link_put_in_the_drafts_place_at_the_last_moment_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = os.unlink

    def put(path: str, *, dir_fd: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            unlink(path, dir_fd=dir_fd)
        os.symlink("../outside", path, dir_fd=dir_fd)

    (tmp_path / "w").mkdir()
    monkeypatch.setattr(os, "unlink", put)
    with pytest.raises(CallError, match="not written: File exists"):
        run(tmp_path / "w", write_file, path="a", content="x")
    assert not (tmp_path / "outside").exists()


def test_a_folder_in_which_another_writes_gets_a_draft_of_its_own(tmp_path: Path) -> None:
    (tmp_path / DRAFT).write_text("the other's")
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        run(tmp_path, write_file, path="a", content="x")
    finally:
        os.close(folder)
    assert (tmp_path / DRAFT).read_text() == "the other's"
    assert sorted(one.name for one in tmp_path.iterdir()) == [DRAFT, "a"]


def test_a_failed_write_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(CallError, match="a: not written: No space left") as failed:
        run(tmp_path, write_file, path="a", content="new")
    assert (failed.value.code, failed.value.may_have_happened) == ("write_failed", False)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a", "old")]


def test_a_file_that_may_not_survive_is_said_to_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(5, "Input/output error")
        sync(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CallError, match="replaced, but") as failed:
        run(tmp_path, write_file, path="a", content="new")
    assert (failed.value.code, failed.value.may_have_happened) == ("write_unsure", True)
    assert (tmp_path / "a").read_text() == "new"


def test_writes_at_the_same_time_are_each_whole(tmp_path: Path) -> None:
    def write(letter: str) -> None:
        for _ in range(10):
            run(tmp_path, write_file, CallKey(letter), path=letter, content=letter * 50_000)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abc"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {one.name: set(one.read_text()) for one in tmp_path.iterdir()} == {
        letter: {letter} for letter in "abc"
    }


# --- edit


def test_an_edit_replaces_the_one_place_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    (tmp_path / "a").chmod(0o755)
    result = run(tmp_path, edit_file, path="a", old="two\nth", new="2\n\nth")
    assert (tmp_path / "a").read_text() == "one\n2\n\nthree\n"
    assert text(result) == "a: replaced once, at line 2"
    (file,) = result.files
    assert file.before == digest(b"one\ntwo\nthree\n")
    assert file.after == digest(b"one\n2\n\nthree\n")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("four", "4", "absent"),
        ("Two", "2", "absent"),
        ("one", "1", "ambiguous"),
        ("aa", "b", "ambiguous"),
        ("", "x", "edit_refused"),
        ("two", "two", "edit_refused"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(
    old: str, new: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("one\ntwo one\naaa\n")
    result = run(tmp_path, edit_file, path="a", old=old, new=new)
    assert (result.failed, result.code, result.files) == (True, code, ())
    assert (tmp_path / "a").read_text() == "one\ntwo one\naaa\n"
    if code == "ambiguous":
        assert "2 times" in text(result)


def test_everywhere_replaces_all_without_overlap(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("aaa\naa\n")
    result = run(tmp_path, edit_file, path="a", old="aa", new="b", everywhere=True)
    assert (tmp_path / "a").read_text() == "ba\nb\n"
    assert text(result) == "a: replaced 2 times, at line 1, 2"


def one(data: bytes, old: str, new: str) -> bytes:
    return edited(data, old, new, everywhere=False, shown="a")[0]


def test_the_file_keeps_its_line_ends() -> None:
    assert one(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz") == b"x\r\ny\r\nz\r\nc\r\n"
    assert one(b"a\r\nb\r\n", "b", "y\nz") == b"a\r\ny\r\nz\r\n"
    assert one(b"a\r\nb\r\n", "a\r\nb", "x\r\ny") == b"x\r\ny\r\n"
    assert one(b"a\nb\n", "a\r\nb", "x\r\ny") == b"x\ny\n"
    assert one(b"a\nb\nc\r\nd\r\ne\r\n", "a\nb", "x\ny") == b"x\ny\nc\r\nd\r\ne\r\n"
    assert one(b"a", "a", "x\ny") == b"x\ny"


def test_what_is_not_utf_8_stays_as_it_is() -> None:
    assert one(b"\xff\xfe a \xff", "a", "b") == b"\xff\xfe b \xff"
    assert one("\N{BOM}a\n".encode(), "a", "é") == "\N{BOM}é\n".encode()


@given(before=st.binary(max_size=30), behind=st.binary(max_size=30))
def test_nothing_but_the_place_changes(before: bytes, behind: bytes) -> None:
    data = before + b"<here>" + behind
    if data.count(b"<here>") == 1:
        assert one(data, "<here>", "there") == before + b"there" + behind


@settings(max_examples=50)
@given(lines=st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=6))
def test_an_edit_of_lf_text_in_a_crlf_file_is_that_of_the_lf_file(lines: list[str]) -> None:
    plain = "\n".join([*lines, "x", "y", ""])
    wanted = one(plain.encode(), "x\ny", "1\n2\n3")
    crlf = one(plain.replace("\n", "\r\n").encode(), "x\ny", "1\n2\n3")
    assert crlf == wanted.replace(b"\n", b"\r\n")


def test_a_binary_or_missing_or_large_file_is_not_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"a\0b")
    assert run(tmp_path, edit_file, path="a", old="a", new="b").code == "binary"
    assert run(tmp_path, edit_file, path="gone", old="a", new="b").code == "no_file"
    monkeypatch.setattr("sojourn.tools.edit.LARGEST", 2)
    assert run(tmp_path, edit_file, path="a", old="a", new="b").code == "large"


def test_a_change_by_somebody_else_between_reading_and_writing_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a"
    place.write_text("old")
    refuse = replacing._refuse_unwritable

    def meanwhile(*args: object) -> None:
        place.write_text("somebody's longer text")
        refuse(*args)

    monkeypatch.setattr(replacing, "_refuse_unwritable", meanwhile)
    for tool, args in ((write_file, {"content": "x"}), (edit_file, {"old": "old", "new": "n"})):
        place.write_text("old")
        result = run(tmp_path, tool, path="a", **args)
        assert (result.failed, result.code) == (True, "changed")
        assert place.read_text() == "somebody's longer text"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_refusal_of_an_edit_names_the_file() -> None:
    with pytest.raises(EditRefused, match=r"^src/a\.py: "):
        edited(b"x", "y", "z", everywhere=False, shown="src/a.py")
