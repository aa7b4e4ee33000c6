"""The tool read on real files."""

import asyncio
from pathlib import Path

import pytest

from sojourn.format.parts import TextPart
from sojourn.ids import CallKey
from sojourn.ports import Ran, Tool, ToolContext, ToolResult
from sojourn.tools import read as reading
from sojourn.tools.output import TO_MODEL
from sojourn.tools.read import read_file


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


def test_a_file_is_read_with_its_place_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    assert text(run(tmp_path, read_file, path="a.txt")) == (
        "[a.txt: lines 1-3 of 3]\none\ntwo\nthree"
    )
    part = run(tmp_path, read_file, path="./a.txt", start=2, lines=1)
    assert text(part) == "[a.txt: lines 2-2 of 3]\ntwo"


def test_what_is_unusual_in_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\r\nb\xff\r\n\xe2\x80\xa8c")
    assert text(run(tmp_path, read_file, path="a")) == (
        "[a: lines 1-3 of 3; lines end in CR LF, shown as LF; bytes that are not UTF-8 are shown as"
        " \N{REPLACEMENT CHARACTER}; no newline at the end of the file]\n"
        "a\nb\N{REPLACEMENT CHARACTER}\n\N{LINE SEPARATOR}c"
    )
    (tmp_path / "empty").touch()
    assert text(run(tmp_path, read_file, path="empty")) == "[empty: empty]"


def test_a_replacement_character_of_the_file_itself_is_no_wonder(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\N{REPLACEMENT CHARACTER}\n")
    assert "UTF-8" not in text(run(tmp_path, read_file, path="a"))


def test_a_line_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    result = run(tmp_path, read_file, path="a", start=2)
    assert (result.failed, result.code) == (True, "no_line")
    assert "has 1 lines" in text(result)


def test_a_binary_file_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x89PNG\0" + b"x" * 100)
    result = run(tmp_path, read_file, path="a")
    assert (result.failed, result.code) == (True, "binary")
    assert "105 bytes" in text(result)


def test_a_long_file_comes_in_pieces_without_a_gap(tmp_path: Path) -> None:
    lines = [f"{number} " + "\N{SNOWMAN}" * (number % 90) for number in range(1, 2000)]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    start, seen = 1, list[str]()
    while start <= len(lines):
        result = run(tmp_path, read_file, path="a", start=start)
        assert result.full is None
        assert len(text(result).encode()) <= TO_MODEL
        header, *more = text(result).split("\n")
        assert header == f"[a: lines {start}-{start + len(more) - 1} of 1,999]"
        seen += more
        start += len(more)
    assert seen == lines


def test_a_very_long_line_is_cut_between_code_points(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" + "\N{GRINNING FACE}" * 5000 + "\nshort\n")
    said = text(run(tmp_path, read_file, path="a"))
    assert said.startswith("[a: lines 1-2 of 2; line 1 is cut, it has 20,002 bytes]\nx")
    assert "UTF-8" not in said
    assert said.split("\n")[1].count("\N{GRINNING FACE}") == reading.LINE_CHARACTERS - 1
    assert said.endswith("\nshort")


def test_of_a_huge_file_only_a_part_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SCANNED", 1024)
    (tmp_path / "a").write_text("line\n" * 1000)
    assert "of more than the 0 MiB looked at: 205]" in text(run(tmp_path, read_file, path="a"))
    result = run(tmp_path, read_file, path="a", start=900)
    assert result.code == "no_line"


def test_reading_changes_nothing_and_a_path_outside_is_a_failed_result(tmp_path: Path) -> None:
    result = run(tmp_path, read_file, path="../x")
    assert (result.failed, result.code, result.files) == (True, "path_refused", ())
