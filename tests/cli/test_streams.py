"""Pipes, signals and followers: what a run does when the world around it changes."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.running import Place
from cli.terminals import lines_of, wait_until

WAITS = "echo begun >> effects; until [ -e go ]; do sleep 0.05; done"
Make = Callable[..., Place]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(*steps: dict[str, object]) -> Place:
        place = Place(tmp_path.resolve(), {"s.json": json.dumps({"steps": [*steps]})})
        (place.folder / "desk").mkdir()
        made = place.answer("sojourn init box -n box -m scripted/s.json --workspace desk")
        assert made.code == 0, made.err
        return place

    return make


def start(place: Place, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["sojourn", *words],
        cwd=place.folder,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def line_with(process: "subprocess.Popen[str]", word: str) -> str:
    """The next line of stdout with that word; the pipe ends if the process does."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return line
    pytest.fail(f"{word} was not said")


def shell(command: str) -> list[dict[str, object]]:
    return [{"tool": "shell", "args": {"command": command}}]


@pytest.mark.slow
def test_a_run_goes_on_when_nobody_reads_any_more(make: Make) -> None:
    place = make(
        {"text": "First.", "calls": shell(WAITS)},
        {"text": "Second.", "calls": shell("echo end >> effects")},
        {"text": "Third."},
    )
    run = start(place, "run", "box", "go on")
    line_with(run, "First.")
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.close()
    run.stderr.close()
    (place.folder / "desk/go").touch()
    assert run.wait(30) == 0
    assert lines_of(place.folder / "desk/effects") == ["begun", "end"]


@pytest.mark.slow
def test_a_run_whose_output_is_lost_goes_to_its_end_and_then_says_so(make: Make) -> None:
    place = make(
        {"text": "First.", "calls": shell("echo end >> effects")},
        {"text": "Second."},
        {"text": "Third."},
    )
    for option in ("", "-p"):
        lost = place.answer(f"sojourn run box hello {option} > /dev/full")
        assert lost.code == 75
        assert "error: No space left on device   [system_failed]" in lost.err
        status = json.loads(place.answer("sojourn status box --json").raw)
        assert status["standing"] == "resting"
    assert lines_of(place.folder / "desk/effects") == ["end"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_asked_to_end_ends_its_call_first_and_leaves_the_turn(
    number: signal.Signals, make: Make
) -> None:
    place = make({"text": "I wait.", "calls": shell(WAITS)}, {"text": "Done."})
    run = start(place, "run", "box", "wait")
    wait_until(lambda: lines_of(place.folder / "desk/effects") == ["begun"])
    run.send_signal(number)
    (place.folder / "desk/go").touch()
    run.communicate(timeout=30)
    assert run.returncode == 130
    status = json.loads(place.answer("sojourn status box --json").raw)
    assert (status["standing"], status["turn"] is None) == ("interrupted", False)
    assert place.answer("sojourn work").out == ["Done."]
    assert lines_of(place.folder / "desk/effects") == ["begun"]


@pytest.mark.slow
def test_a_followed_log_shows_events_as_they_come(make: Make) -> None:
    place = make({"text": "Hello there."})
    log = start(place, "log", "box", "-f", "--json", "--kind", "model_outcome", "--kind", "created")
    assert json.loads(line_with(log, "event"))["event"]["kind"] == "created"
    assert place.answer("sojourn run box hi").code == 0
    assert json.loads(line_with(log, "event"))["event"]["kind"] == "model_outcome"
    log.send_signal(signal.SIGINT)
    rest, said = log.communicate(timeout=30)
    assert (log.returncode, rest, said) == (130, "", "")


@pytest.mark.slow
def test_a_watching_worker_leaves_the_turn_open_when_interrupted(make: Make) -> None:
    place = make({"text": "I wait.", "calls": shell(WAITS)}, {"text": "Done."})
    work = start(place, "work", "--watch")
    assert place.answer("sojourn send box 'go on'").code == 0
    wait_until(lambda: lines_of(place.folder / "desk/effects") == ["begun"])
    work.send_signal(signal.SIGINT)
    assert work.stderr is not None
    wait_until_said(work, "pausing after this call")
    (place.folder / "desk/go").touch()
    work.communicate(timeout=30)
    assert work.returncode == 130
    assert json.loads(place.answer("sojourn status box --json").raw)["standing"] == "interrupted"


def wait_until_said(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    pytest.fail(f"{words!r} was not said")


def test_a_second_process_may_only_look_and_send(make: Make) -> None:
    place = make({"text": "I wait.", "calls": shell(WAITS)}, {"text": "Done."}, {"text": "Both."})
    run = start(place, "run", "box", "wait")
    wait_until(lambda: lines_of(place.folder / "desk/effects") == ["begun"])
    second = place.answer("sojourn run box 'me too' --json")
    assert second.code == 5
    assert json.loads(second.raw)["error"]["code"] == "held_elsewhere"
    status = json.loads(place.answer("sojourn status box --json").raw)
    assert (status["standing"], status["held_by"]["pid"]) == ("running", run.pid)
    sent = place.answer("sojourn send box 'and this' --request r1")
    assert (sent.code, sent.out) == (0, ["r1"])
    (place.folder / "desk/go").touch()
    out, _ = run.communicate(timeout=30)
    assert run.returncode == 0
    assert out.splitlines() == ["I wait.", "Done."]
    kinds = [line.split()[2] for line in place.answer("sojourn log box --oneline").out]
    assert kinds.count("input") == 2
    assert kinds[-1] == "turn_ended"
