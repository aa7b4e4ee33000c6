"""Help is quick and complete: no heavy import, -h everywhere, examples for each command."""

import re
import subprocess
import sys

import pytest

from sojourn.cli.commands import COMMANDS
from sojourn.cli.main import main

HEAVY = {
    "asyncio",
    "cryptography",
    "httpx2",
    "msgspec",
    "numpy",
    "rich",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
}


def imported(*arguments: str) -> set[str]:
    """Top-level names of all modules that a run of sojourn imports, from -X importtime."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "sojourn", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"import time:.*\| +([\w.]+)$", done.stderr, re.MULTILINE)
    assert "click" in found
    return {name.partition(".")[0] for name in found}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "-h"], ["demo", "-h"], ["ps", "-h"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    assert imported(*arguments) & HEAVY == set()


def test_the_import_test_sees_what_a_command_imports() -> None:
    assert {"msgspec", "asyncio"} <= imported("ps", "--json")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_works_everywhere_and_shows_examples(
    name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split(), option]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: sojourn {name}")
    examples = shown.partition("\nExamples:\n")[2].splitlines()
    assert any(f"sojourn {name}" in example for example in examples)
    assert "-C DIR" in shown
    assert "--json" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_table_of_commands_names_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, listed in COMMANDS.items():
        assert re.search(rf"(?m)^  {name} +{re.escape(listed.summary)}$", shown)


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: sojourn")
