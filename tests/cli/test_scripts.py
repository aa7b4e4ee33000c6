"""The scripts of tests/scripts/cli: what is typed, and what is answered, byte by byte."""

import json
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from cli.running import (
    SCRIPTS,
    Answered,
    Asked,
    Place,
    Script,
    fits,
    read_script,
    schema,
    written,
)
from sojourn.cli.commands import COMMANDS
from sojourn.errors import EXIT_CODES

FILES = sorted(SCRIPTS.glob("*.txt"))
QUICK = ("first-steps",)
"""Scripts that `make check` runs; each line is a process, so the others are for `make slow`."""


def scripts() -> Iterator[Script]:
    return (read_script(path.read_text()) for path in FILES)


def named_command(command: str) -> str | None:
    """Which command of sojourn a line runs with --json, if it runs just one."""
    words = shlex.split(command)
    if "sojourn" not in words or "--json" not in words or "|" in words or ">" in words:
        return None
    rest = words[words.index("sojourn") + 1 :]
    names = [*map(" ".join, pairwise(rest)), *rest]
    return next((name for name in names if name in COMMANDS), None)


def check_json(command: str, answered: Answered) -> None:
    """Every line is an object of the command's schema; a failure's last line is an error."""
    name = named_command(command)
    if name is None:
        return
    lines = answered.raw.splitlines()
    for number, line in enumerate(lines):
        value = json.loads(line)
        failed = number + 1 == len(lines) and "error" in value
        schema("error" if failed else name.replace(" ", "-")).validate(value)
        if failed:
            assert value["error"]["exit"] == answered.code
    assert lines, "with --json there is always an answer"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in QUICK else pytest.mark.slow)
        for path in FILES
    ],
)
def test_a_script_is_answered_as_it_says(path: Path, tmp_path: Path) -> None:
    script = read_script(path.read_text())
    place = Place(tmp_path.resolve(), script.files)
    for asked in script.asked:
        answered = place.answer(asked.command)
        found = "\n".join(written(Asked(asked.command), answered))
        same = fits(asked.out, answered.out) and fits(asked.err, answered.err)
        assert same, f"{path.name}: wanted\n{asked}\nfound\n{found}"
        assert asked.code == answered.code, found
        check_json(asked.command, answered)
        assert answered.code in EXIT_CODES


def test_every_command_answers_in_json_in_some_script() -> None:
    shown: dict[bool, set[str]] = {True: set(), False: set()}
    for script in scripts():
        for asked in script.asked:
            failed = any('"error":' in line for line in asked.out)
            name = named_command(asked.command)
            if name is not None:
                shown[failed].add(name)
    elsewhere = {"demo", "pair", "serve"}
    """In tests/cli/test_demo.py and tests/daemon: they take long, or two people, or a signal."""
    assert set(COMMANDS) - shown[False] == elsewhere
    assert set(COMMANDS) - shown[True] == set()


def test_most_exit_codes_are_shown_by_some_script() -> None:
    """The others need another machine, a full disk, or a person at a terminal."""
    codes = {asked.code for script in scripts() for asked in script.asked}
    assert codes >= set(EXIT_CODES) - {1, 8, 75, 130}


def test_a_script_with_another_answer_fails() -> None:
    assert fits(["a", "...", "c"], ["a", "b", "b", "c"])
    assert fits(["...", "c"], ["c"])
    assert not fits(["a"], ["a", "b"])
    assert not fits(["a", "...", "c"], ["a", "b"])
    asked = read_script("# x\n$ sojourn ps\n> a\n>\n! b\n? 3\n").asked
    assert asked == [Asked("sojourn ps", ["a", ""], ["b"], 3)]
