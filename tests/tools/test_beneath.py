"""No path that a tool is given leads out of the workspace, whoever exchanges what meanwhile."""

import os
import socket
import threading
from pathlib import Path

import pytest

from sojourn.tools.beneath import PathRefused, checked_parts, spot

SECRET = "outside"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text(SECRET)
    made = tmp_path / "workspace"
    (made / "in" / "deep").mkdir(parents=True)
    (made / "in" / "file").write_text("inside")
    return made


def content(workspace: Path, path: str) -> str:
    with spot(str(workspace), path) as found, os.fdopen(found.open_file()) as file:
        return file.read()


def refused(workspace: Path, path: str) -> PathRefused:
    with pytest.raises(PathRefused) as raised:
        content(workspace, path)
    return raised.value


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../out/secret",
        "in/../../out/secret",
        "in/..",
        "..",
        "./../x",
        "a\nb",
        "\x7f",
    ],
)
def test_a_path_that_leaves_or_is_odd_is_refused_and_named(path: str, workspace: Path) -> None:
    error = refused(workspace, path)
    assert error.code == "path_refused"
    assert (path if path.isprintable() else repr(path)) in error.message


@pytest.mark.parametrize(
    "path", ["x" * 256, "é" * 128, "/".join(["x" * 200] * 6), "\ud800"], ids=range(4)
)
def test_a_name_that_a_capsule_cannot_keep_is_refused(path: str) -> None:
    with pytest.raises(PathRefused):
        checked_parts(path)


def test_an_empty_path_is_refused_and_a_dot_is_the_workspace(workspace: Path) -> None:
    assert "`.`" in refused(workspace, "").message
    for path in (".", "./", "././"):
        assert refused(workspace, path).code == "is_folder"


def test_a_path_is_walked_without_its_dots(workspace: Path) -> None:
    assert content(workspace, "./in//./file") == "inside"
    with spot(str(workspace), "./in//file") as found:
        assert found.shown == "in/file"


@pytest.mark.parametrize("path", ["gone", "gone/file", "in/file/x", "in/gone"])
def test_what_is_not_there_is_named(path: str, workspace: Path) -> None:
    error = refused(workspace, path)
    assert path in error.message
    assert error.code == ("not_folder" if path == "in/file/x" else "no_file")


LINKS = {
    "absolute": "/etc",
    "up": "../out",
    "up from below": "in/../../out",
    "to another link": "other",
}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS.keys())
def test_a_link_that_leads_out_is_refused_wherever_it_stands(target: str, workspace: Path) -> None:
    (workspace / "other").symlink_to("in/../../out")
    (workspace / "link").symlink_to(target)
    (workspace / "in" / "link").symlink_to(f"../{target}" if target[0] != "/" else target)
    for path in ("link/secret", "in/link/secret", "link"):
        assert "out of the workspace" in refused(workspace, path).message


def test_a_link_to_a_file_outside_is_refused(workspace: Path) -> None:
    (workspace / "link").symlink_to("../out/secret")
    assert refused(workspace, "link").code == "path_refused"
    (workspace / "link2").symlink_to(workspace.parent / "out" / "secret")
    assert refused(workspace, "link2").code == "path_refused"


def test_links_that_stay_inside_are_followed(workspace: Path) -> None:
    (workspace / "a").symlink_to("in")
    (workspace / "in" / "deep" / "b").symlink_to("../../a/./file")
    assert content(workspace, "a/deep/b") == "inside"
    assert content(workspace, "a/file") == "inside"


def test_links_in_a_circle_end(workspace: Path) -> None:
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")
    assert "links" in refused(workspace, "a").message


def test_only_regular_files_are_opened(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(workspace)
        server.bind("socket")
        os.chdir(here)
        opened: list[object] = []
        real = os.open
        monkeypatch.setattr(
            os, "open", lambda path, *a, **k: opened.append(path) or real(path, *a, **k)
        )
        assert "named pipe" in refused(workspace, "pipe").message
        assert "socket" in refused(workspace, "socket").message
        # Opening alone can do something, with a device or to whoever waits at the pipe.
        assert set(opened) == {str(workspace)}
    assert refused(workspace, "in").code == "is_folder"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_not_opened(workspace: Path) -> None:
    os.mknod(workspace / "zero", 0o020666, os.makedev(1, 5))
    assert "device" in refused(workspace, "zero").message


def test_missing_folders_are_made_inside_only(workspace: Path) -> None:
    (workspace / "link").symlink_to("../out")
    with spot(str(workspace), "new/deep/file", make_folders=True) as found:
        assert found.stat() is None
    assert (workspace / "new" / "deep").is_dir()
    with pytest.raises(PathRefused), spot(str(workspace), "link/new/file", make_folders=True):
        pass
    assert sorted(path.name for path in (workspace.parent / "out").iterdir()) == ["secret"]


def test_a_missing_workspace_is_said(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone", "x").code == "workspace_missing"


def test_no_descriptor_is_left_open(workspace: Path) -> None:
    (workspace / "a").symlink_to("in/deep/..")
    before = sorted(os.listdir("/proc/self/fd"))
    content(workspace, "a/file")
    for path in ("a/gone/x", "in/file/x", "a/../x", "in"):
        refused(workspace, path)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_folder_exchanged_for_a_link_while_it_is_walked_never_leads_out(workspace: Path) -> None:
    """The exchange is one system call each way, and goes on all the time."""
    (workspace / "real").mkdir()
    (workspace / "real" / "secret").write_text("inside")
    (workspace / "link").symlink_to("../out")
    (workspace / "turn").symlink_to("real")
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            for target in ("../out", "real"):
                (workspace / "next").symlink_to(target)
                (workspace / "next").rename(workspace / "turn")

    swapping = threading.Thread(target=exchange)
    swapping.start()
    try:
        seen = {outcome(workspace) for _ in range(3000)}
    finally:
        stop.set()
        swapping.join()
    assert SECRET not in seen
    assert "inside" in seen


def test_a_folder_that_becomes_a_link_right_before_it_is_opened_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the worst moment: when it was just seen to be no link."""
    (workspace / "real").mkdir()
    (workspace / "real" / "secret").write_text("inside")
    readlink = os.readlink

    def exchange(path: str, *, dir_fd: int) -> str:
        try:
            return readlink(path, dir_fd=dir_fd)
        finally:
            if path == "real":
                (workspace / "real").rename(workspace / "aside")
                (workspace / "real").symlink_to("../out")

    monkeypatch.setattr(os, "readlink", exchange)
    assert refused(workspace, "real/secret").code == "not_folder"


def test_a_file_that_becomes_a_link_right_before_it_is_opened_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = os.stat

    def exchange(path: object, **more: object) -> os.stat_result:
        try:
            return status(path, **more)
        finally:
            if path == "file" and not (workspace / "aside").exists():
                (workspace / "in" / "file").rename(workspace / "aside")
                (workspace / "in" / "file").symlink_to("../../out/secret")

    monkeypatch.setattr(os, "stat", exchange)
    assert "replaced by a link" in refused(workspace, "in/file").message


def outcome(workspace: Path) -> str:
    try:
        return content(workspace, "turn/secret")
    except PathRefused as error:
        return error.code
