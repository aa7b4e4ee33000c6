"""The tools list and search on real folders."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.format.parts import TextPart
from sojourn.ids import CallKey
from sojourn.ports import Ran, Tool, ToolContext, ToolResult
from sojourn.tools import list as listing
from sojourn.tools import scan, search, walk
from sojourn.tools.beneath import DRAFT
from sojourn.tools.list import list_files
from sojourn.tools.output import TO_MODEL
from sojourn.tools.scan import Answer, Request
from sojourn.tools.search import search_files


class NoSandbox:
    """These tools start nothing in it."""

    async def run(self, *_: object, **__: object) -> Ran:
        raise NotImplementedError

    def end_left_behind(self) -> tuple[int, ...]:
        return ()


def context(workspace: Path) -> ToolContext:
    key = CallKey("5e" * 32)
    return ToolContext(key=key, attempt=1, workspace=str(workspace), sandbox=NoSandbox())


def run(workspace: Path, tool: Tool, **args: object) -> ToolResult:
    return asyncio.run(tool.run(args, context(workspace)))


def text(result: ToolResult) -> str:
    (part,) = result.parts
    assert isinstance(part, TextPart)
    return str(part.text)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    for folder in ("src/deep/er", ".git/refs", ".hidden"):
        (made / folder).mkdir(parents=True)
    (made / "B.txt").write_text("Beta\nalpha beta\n")
    (made / "a.py").write_text("alpha = 1\n")
    (made / "src" / "b.py").write_text("import a\n\nbeta = a.alpha\n")
    (made / "src" / "deep" / "er" / "c.py").write_text("alpha\n")
    (made / ".git" / "config").write_text("alpha\n")
    (made / ".hidden" / "h").write_text("alpha\n")
    (made / DRAFT).write_text("alpha\n")
    (made / "link").symlink_to("src")
    (made / "out").symlink_to("..")
    os.mkfifo(made / "pipe")
    (tmp_path / "outside").write_text("alpha\n")
    return made


# --- list


def test_a_folder_is_listed_in_order_with_kinds_and_sizes(workspace: Path) -> None:
    assert text(run(workspace, list_files)).split("\n") == [
        "B.txt 16",
        "a.py 10",
        "link -> src",
        "out -> ..",
        "pipe [named pipe]",
        "src/",
    ]


def test_a_folder_stands_before_what_it_holds_as_deep_as_asked(workspace: Path) -> None:
    assert text(run(workspace, list_files, path="src", depth=2)).split("\n") == [
        "src/b.py 25",
        "src/deep/",
        "src/deep/er/",
    ]


def test_hidden_names_come_when_asked_for_and_git_is_not_entered(workspace: Path) -> None:
    lines = text(run(workspace, list_files, hidden=True, depth=2)).split("\n")
    assert [line for line in lines if line.startswith(".")] == [
        ".git/ [not entered]",
        ".hidden/",
        ".hidden/h 6",
    ]


def test_links_are_listed_and_never_entered_but_may_be_named(workspace: Path) -> None:
    assert "link/" not in text(run(workspace, list_files, depth=5))
    assert text(run(workspace, list_files, path="link")).startswith("link/b.py 25")
    assert run(workspace, list_files, path="out").code == "path_refused"
    assert run(workspace, list_files, path="a.py").code == "not_folder"
    assert run(workspace, list_files, path="gone").code == "no_file"


def test_an_empty_folder_is_said_to_be_one(tmp_path: Path) -> None:
    assert text(run(tmp_path, list_files)) == "[.: nothing, hidden names aside]"


def test_unusual_names_are_shown_as_such(tmp_path: Path) -> None:
    for name in (b"a\nb", b"odd\xff", b"esc\x1b[1m", "ünïcode".encode()):
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).touch()
    assert text(run(tmp_path, list_files)).split("\n") == [
        "'a\\nb' [unusual name] 0",
        "'esc\\x1b[1m' [unusual name] 0",
        "'odd\N{REPLACEMENT CHARACTER}' [unusual name] 0",
        "ünïcode 0",
    ]


def test_long_lists_end_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SHOWN", 2)
    for name in "abc":
        (tmp_path / name).touch()
    assert text(run(tmp_path, list_files)).split("\n")[-1].startswith("[more than 2 entries")
    monkeypatch.setattr(listing, "SHOWN", 9)
    monkeypatch.setattr(walk, "ENTRIES", 2)
    assert text(run(tmp_path, list_files)).split("\n")[-1] == "[.: 1 entries more, not looked at]"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every folder")
def test_a_folder_that_may_not_be_opened_is_passed_over(workspace: Path) -> None:
    (workspace / "src").chmod(0o000)
    assert "src/" in text(run(workspace, list_files, depth=3))
    (workspace / "src").chmod(0o755)


# --- search


def test_matches_are_named_by_path_and_line(workspace: Path) -> None:
    assert text(run(workspace, search_files, pattern=r"alpha\b")).split("\n") == [
        "B.txt:2: alpha beta",
        "a.py:1: alpha = 1",
        "src/b.py:3: beta = a.alpha",
        "src/deep/er/c.py:1: alpha",
    ]


@pytest.mark.parametrize(
    ("args", "files"),
    [
        ({"glob": "*.py"}, ["a.py", "src/b.py", "src/deep/er/c.py"]),
        ({"glob": "src/*.py"}, ["src/b.py"]),
        ({"glob": "src/**/*.py"}, ["src/b.py", "src/deep/er/c.py"]),
        ({"glob": "**/deep/**"}, ["src/deep/er/c.py"]),
        ({"glob": "./src/?.py"}, ["src/b.py"]),
        ({"glob": "[ab].py"}, ["a.py", "src/b.py"]),
        ({"path": "src/deep"}, ["src/deep/er/c.py"]),
        ({"path": "src/b.py"}, ["src/b.py"]),
        ({"path": "link", "glob": "b.py"}, ["link/b.py"]),
        ({"hidden": True, "glob": "h"}, [".hidden/h"]),
    ],
)
def test_paths_and_globs_narrow_it(
    args: dict[str, object], files: list[str], workspace: Path
) -> None:
    found = text(run(workspace, search_files, pattern="alpha", **args))
    assert [line.split(":")[0] for line in found.split("\n")] == files


def test_a_literal_is_no_expression_and_case_may_be_ignored(workspace: Path) -> None:
    found = text(run(workspace, search_files, pattern="a.alpha", literal=True))
    assert found == "src/b.py:3: beta = a.alpha"
    found = text(run(workspace, search_files, pattern="^BETA", ignore_case=True))
    assert found == "B.txt:1: Beta\nsrc/b.py:3: beta = a.alpha"


def test_nothing_found_is_said_with_what_was_passed_over(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "binary").write_bytes(b"alpha\0")
    assert text(run(workspace, search_files, pattern="gamma")).split("\n") == [
        "[no match in 4 files]",
        "[files passed over: 1 binary]",
    ]
    monkeypatch.setattr(search, "_scanned", never)
    result = run(workspace, search_files, pattern="gamma")
    assert (result.failed, result.code) == (True, "timeout")


async def never(_: Request) -> None:
    """As if time was up."""


def test_a_bad_pattern_or_path_is_a_failed_result(workspace: Path) -> None:
    for pattern, path, code in (
        ("a(", ".", "bad_pattern"),
        ("a", "../x", "path_refused"),
        ("a", "out", "path_refused"),
        ("a", "pipe", "path_refused"),
        ("a", "gone", "no_file"),
    ):
        result = run(workspace, search_files, pattern=pattern, path=path)
        assert (result.failed, result.code) == (True, code)


def test_a_pattern_that_never_ends_is_ended(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_text("a" * 60 + "!\n")
    monkeypatch.setattr(search, "SECONDS", 1)
    result = run(workspace, search_files, pattern="^(a+)+$", path="a.txt")
    assert (result.failed, result.code) == (True, "timeout")


def children(of: int | str = "self") -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{of}/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(FileNotFoundError):
            found |= set(map(int, (task / "children").read_text().split()))
    return found


def busy(pids: set[int]) -> bool:
    """Whether one has had the processor for longer than it takes to start."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        ticks = max(ticks, int(fields[11]))
    return ticks > os.sysconf("SC_CLK_TCK") // 2


def test_a_stopped_search_leaves_no_process(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SECONDS", 10_000)
    (workspace / "a.txt").write_text("a" * 60 + "!\n")
    before = children()

    async def stop() -> None:
        args = {"pattern": "^(a+)+$", "path": "a.txt"}
        task = asyncio.create_task(search_files.run(args, context(workspace)))
        while not busy(children() - before):
            await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stop())
    assert children() == before


WORKER = """
import asyncio, sys
from sojourn.tools import search
from sojourn.tools.scan import Request
asked = dict(path="a.txt", pattern="^(a+)+$", literal=False, ignore_case=False, glob="")
request = Request(workspace=sys.argv[1], hidden=False, seconds=10_000, **asked)
asyncio.run(search._scanned(request))
"""


def test_a_search_ends_with_a_worker_that_is_killed(workspace: Path) -> None:
    (workspace / "a.txt").write_text("a" * 60 + "!\n")
    with subprocess.Popen([sys.executable, "-c", WORKER, str(workspace)]) as worker:
        while not busy(found := children(worker.pid)):
            worker.poll()
        (pid,) = found
        descriptor = os.pidfd_open(pid)
        worker.kill()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(20_000)
        os.close(descriptor)


def scanning(request: bytes) -> "subprocess.Popen[bytes]":
    program = "from sojourn.tools.scan import main; main()"
    started = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    if started.stdin is None:
        raise AssertionError
    started.stdin.write(request)
    started.stdin.close()
    return started


def test_a_search_ends_by_itself_when_nobody_ends_it(workspace: Path) -> None:
    (workspace / "a.txt").write_text("a" * 60 + "!\n")
    request = (
        '{"workspace":"%s","path":"a.txt","pattern":"^(a+)+$","literal":false,'
        '"ignore_case":false,"glob":"","hidden":false,"seconds":0}'
    )
    with scanning((request % workspace).encode()) as started:
        assert started.wait(30) == -signal.SIGALRM


def test_limits_of_a_search_are_kept_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MATCHES", 2)
    monkeypatch.setattr(scan, "FILE_BYTES", 5000)
    (tmp_path / "a").write_text("x\nx\nx\n")
    (tmp_path / "large").write_text("x" * 5001)
    (tmp_path / "long").write_text("y" * 2500 + "x\n")
    assert answer(tmp_path, "x").found == [("a", 1, "x"), ("a", 2, "x")]
    assert answer(tmp_path, "x").more
    rest = answer(tmp_path, "q")
    assert (rest.large, rest.cut_lines, rest.files) == (1, 1, 2)
    told = search._told(rest)
    assert "1 larger than" in told
    assert "of 1 long lines only" in told


def answer(workspace: Path, pattern: str) -> Answer:
    return scan.search(
        Request(
            workspace=str(workspace),
            path=".",
            pattern=pattern,
            literal=False,
            ignore_case=False,
            glob="",
            hidden=False,
            seconds=1,
        )
    )


def test_of_a_long_line_the_piece_around_the_match_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("-" * 1000 + "match" + "-" * 500 + "\r\n")
    ((_, _, shown),) = answer(tmp_path, "match").found
    assert "match" in shown
    assert (shown[:4], shown[-4:]) == ("...-", "-...")
    assert len(shown) == scan.SHOWN_CHARACTERS + 6


def test_what_is_not_utf_8_is_searched_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff alpha \xe2\x80\xa8 same line\n")
    found = answer(tmp_path, "alpha.*same").found
    assert found == [("a", 1, "\N{REPLACEMENT CHARACTER} alpha \N{LINE SEPARATOR} same line")]


def test_many_matches_are_shortened_and_kept_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(("x" * 100 + "\n") * 400)
    result = run(tmp_path, search_files, pattern="x")
    assert len(text(result).encode()) <= TO_MODEL
    assert result.full is not None
    assert result.full.count(b"\n") == 399


def test_a_module_of_the_workspace_is_not_imported(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "re", "sojourn", "ctypes"):
        (workspace / f"{name}.py").write_text("open('/dev/stdout', 'w').write('taken over')")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    assert text(run(workspace, search_files, pattern="alpha =")) == "a.py:1: alpha = 1"
