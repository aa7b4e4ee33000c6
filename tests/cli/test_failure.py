"""Every failure is one line with a code, then state and next step; never a traceback by itself."""

import errno
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable

import click
import pytest

from sojourn.cli import main as way_in
from sojourn.cli.failure import tell, told
from sojourn.cli.settings import Settings
from sojourn.errors import EXIT_CODES, HeldElsewhereError, NotFoundError, SojournError


def raising(failure: BaseException) -> click.Command:
    def act() -> None:
        raise failure

    return click.Command("ps", callback=act)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a command that fails in this way, through the real way in."""

    def run(failure: BaseException, *arguments: str) -> int:
        monkeypatch.setattr(
            way_in.root, "get_command", lambda _context, _name: raising(failure), raising=True
        )
        return way_in.main([*arguments, "ps"])

    return run


def test_an_error_has_its_code_its_state_and_its_next_step(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    failure = NotFoundError(
        "no such event\nat all", code="gone", state="Nothing.", hint="Look.\nAsk.", file="a", line=3
    )
    assert run(failure) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "error: no such event   [gone]\n  at all\n  at a line 3\n  Nothing.\n  Look.\n  Ask.\n"
    )


def test_an_error_in_json_is_one_object_on_stdout(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(NotFoundError("gone", code="x", file="a", line=3), "--json") == 3
    shown = capsys.readouterr()
    assert shown.err == ""
    assert json.loads(shown.out) == {
        "schema": "sojourn.cli/1",
        "error": {
            "code": "x",
            "message": "gone",
            "state": "",
            "hint": "",
            "exit": 3,
            "file": "a",
            "line": 3,
        },
    }


@pytest.mark.parametrize("verbose", ["-q", "-v"])
def test_a_defect_is_one_line_that_says_so(
    verbose: str, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(KeyError("x\ny"), verbose) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error: KeyError: 'x\\ny'   [unexpected]\n")
    assert "This is a defect" in shown
    assert "Traceback" not in shown


def test_a_traceback_is_shown_when_it_is_asked_for(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(ZeroDivisionError("x"), "-vv") == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "code", "exit_code"),
    [
        (KeyboardInterrupt(), "interrupted", 130),
        (click.Abort(), "interrupted", 130),
        (OSError(errno.ENOSPC, "No space left on device"), "system_failed", 75),
        (PermissionError(errno.EACCES, "Permission denied", "f"), "system_failed", 1),
        (MemoryError(), "too_large", 1),
        (RecursionError(), "too_large", 1),
        (click.UsageError("Bad thing."), "usage", 2),
        (SojournError("x", exit_code=99), "failed", 1),
        (ValueError(), "unexpected", 1),
    ],
)
def test_every_failure_has_a_code_and_an_exit_code_of_the_table(
    failure: BaseException, code: str, exit_code: int
) -> None:
    words = told(failure)
    assert (words.code, words.exit) == (code, exit_code)
    assert words.exit in EXIT_CODES


def test_an_error_cannot_act_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tell(SojournError("\x1b[2J", state="\u202e", hint="\x9b"), Settings())
    assert capsys.readouterr().err == "error: \\x1b[2J   [failed]\n  \\u202e\n  \\x9b\n"


def sojourn(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sojourn", *arguments]


def test_a_reader_that_goes_away_is_no_failure() -> None:
    """The pipe has no reader before anything is written."""
    writer = subprocess.Popen(
        sojourn("--help"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    assert writer.stderr.read() == ""
    assert writer.wait() == 0
    writer.stderr.close()


def test_a_full_output_device_is_told_without_a_traceback() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            sojourn("version"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 75
    assert done.stderr.startswith("error: No space left on device   [system_failed]\n")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_closed_streams_are_no_failure() -> None:
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" >&- 2>&-', "bash", *sojourn("version")], check=False
    )
    assert done.returncode == 0


def test_an_encoding_without_a_character_escapes_it() -> None:
    done = subprocess.run(
        sojourn("-C", "/nöwhere", "version"),
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PATH": "/usr/bin"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3
    assert b"cannot go to /n\\xf6where" in done.stderr


def test_a_time_in_an_error_is_local_for_people_and_rfc_3339_for_programs(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        since = "2026-01-02T20:00:00.123Z"
        failure = HeldElsewhereError(f"held by pid 7 since {since} (sojourn run)", since=since)
        assert run(failure) == 5
        shown = capsys.readouterr().err
        assert re.search(r"since 2026-01-03 05:00:00, \S.* \(sojourn run\)", shown), shown
        assert since not in shown
        run(failure, "--json")
        assert since in json.loads(capsys.readouterr().out)["error"]["message"]
    finally:
        monkeypatch.undo()
        time.tzset()
