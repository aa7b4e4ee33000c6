"""At a real terminal: Ctrl-C, questions, colours, and text as it streams."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.running import Place
from cli.terminals import CONTROL_C, CONTROL_D, Terminal, lines_of, wait_until

WAITS = "echo begun >> effects; until [ -e go ]; do sleep 0.05; done; echo went"
Make = Callable[..., Place]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A capsule `box` whose model says these steps; its workspace is the folder `desk`."""

    def make(*steps: dict[str, object]) -> Place:
        script = {"ledger": "ledger", "steps": [*steps]}
        place = Place(tmp_path.resolve(), {"s.json": json.dumps(script)})
        (place.folder / "desk").mkdir()
        made = place.answer("sojourn init box -n box -m scripted/s.json --workspace desk")
        assert made.code == 0, made.err
        return place

    return make


def shell(command: str) -> list[dict[str, object]]:
    return [{"tool": "shell", "args": {"command": command}}]


def events(place: Place) -> list[tuple[str, str]]:
    """Kind and status or reason of each event."""
    found: list[tuple[str, str]] = []
    for line in (place.folder / "box/memory/timeline_events.jsonl").read_text().splitlines():
        value = json.loads(line)
        body = value["body"]
        found.append((value["header"]["kind"], body.get("status") or body.get("reason") or ""))
    return found


def test_control_c_once_pauses_after_the_running_call(make: Make) -> None:
    place = make(
        {"text": "I wait.", "calls": shell(WAITS)},
        {"text": "All done."},
    )
    effects = place.folder / "desk/effects"
    with Terminal(place, "sojourn run box 'wait for it'") as terminal:
        wait_until(lambda: lines_of(effects) == ["begun"])
        terminal.type(CONTROL_C)
        terminal.wait_for("pausing after this call; Ctrl-C again stops it now")
        (place.folder / "desk/go").touch()
        assert terminal.end() == 130
        assert "paused." in terminal.seen
        assert "sojourn resume box" in terminal.seen
    assert events(place)[-2:] == [("tool_outcome", "done"), ("turn_paused", "stopped")]
    resumed = place.answer("sojourn resume box")
    assert (resumed.code, resumed.out) == (0, ["All done."])
    assert lines_of(effects) == ["begun"]


def test_control_c_twice_stops_the_call_and_its_outcome_is_unknown(make: Make) -> None:
    place = make(
        {"text": "I wait.", "calls": shell(WAITS), "if_unknown": "careful"},
        {"text": "It ended well."},
        {"name": "careful", "text": "It may have happened."},
    )
    effects = place.folder / "desk/effects"
    with Terminal(place, "sojourn run box 'wait for it'") as terminal:
        wait_until(lambda: lines_of(effects) == ["begun"])
        terminal.type(CONTROL_C)
        terminal.wait_for("pausing after this call")
        terminal.type(CONTROL_C)
        terminal.wait_for("stopping the call")
        assert terminal.end() == 130
        assert re.search(r"\? .*shell .*unknown: it may have happened", terminal.seen)
    assert events(place)[-2:] == [("tool_outcome", "unknown"), ("turn_paused", "stopped")]
    resumed = place.answer("sojourn resume box")
    assert (resumed.code, resumed.out) == (0, ["It may have happened."])
    assert lines_of(effects) == ["begun"]


@pytest.mark.slow
def test_a_model_call_that_was_stopped_is_made_again_as_a_new_call(make: Make) -> None:
    place = make({"text": "Here I am.", "wait_for": "come"})
    with Terminal(place, "sojourn run box hello") as terminal:
        terminal.wait_for("scripted/s.json")
        wait_until(lambda: len(lines_of(place.folder / "ledger")) == 1)
        terminal.type(CONTROL_C)
        terminal.wait_for("pausing")
        terminal.type(CONTROL_C)
        assert terminal.end() == 130
    assert events(place)[-2:] == [("model_outcome", "unknown"), ("turn_paused", "stopped")]
    (place.folder / "come").touch()
    assert place.answer("sojourn resume box -p").out == ["Here I am."]
    calls = [json.loads(line)["call"] for line in lines_of(place.folder / "ledger")]
    assert len(calls) == len(set(calls)) == 2


def asks(question: str) -> list[dict[str, object]]:
    return [{"tool": "ask", "args": {"question": question}}]


def test_a_question_is_asked_at_the_terminal_and_answered(make: Make) -> None:
    place = make(
        {
            "text": "I need to know.",
            "calls": asks("Which \u001b[2J colour?"),
            "if_result": [{"matches": "dark blue", "go": "blue"}],
        },
        {"text": "Not blue."},
        {"name": "blue", "text": "Blue it is."},
    )
    with Terminal(place, "sojourn run box 'paint it'") as terminal:
        terminal.wait_for(r"Which \\x1b\[2J colour\?.*\r\n> ")
        terminal.type("dark blue\n")
        assert terminal.end() == 0
        assert "Blue it is." in terminal.seen


@pytest.mark.slow
def test_a_person_may_end_the_input_instead_of_answering(make: Make) -> None:
    place = make({"calls": asks("Well?")}, {"text": "Silence."})
    with Terminal(place, "sojourn run box ask") as terminal:
        terminal.wait_for(r"Well\?")
        terminal.type(CONTROL_D)
        assert terminal.end() == 0
    assert ("tool_outcome", "failed") in events(place)


@pytest.mark.slow
def test_a_question_that_was_stopped_is_asked_again(make: Make) -> None:
    place = make({"calls": asks("Well?")}, {"text": "Thanks."})
    with Terminal(place, "sojourn run box ask") as terminal:
        terminal.wait_for(r"Well\?")
        terminal.process.kill()
        terminal.process.wait()
    with Terminal(place, "sojourn resume box") as terminal:
        terminal.wait_for(r"Well\?")
        terminal.type("fine\n")
        assert terminal.end() == 0
        assert "Thanks." in terminal.seen


def test_text_streams_and_a_call_is_one_line_with_its_outcome(make: Make) -> None:
    place = make(
        {"text": "I look.", "calls": shell("exit 3")},
        {"text": "Seen."},
    )
    with Terminal(place, "sojourn run box look") as terminal:
        assert terminal.end() == 0
        lines = [line.split("\x1b[K")[-1] for line in terminal.seen.split("\r\n")]
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    assert plain[0] == "I look."
    assert re.fullmatch(r"✗ shell exit 3  \d+ ms  .*", plain[1])
    assert plain[2] == "Seen."
    assert re.fullmatch(r".* · 2 model calls · 1 tool call.*", plain[3])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "environment"),
    [("--no-color", {}), ("", {"NO_COLOR": "1"}), ("", {"TERM": "dumb"})],
)
def test_colours_can_be_refused(option: str, environment: dict[str, str], make: Make) -> None:
    place = make({"text": "Hello."})
    for command in ("ps -a", "status box", "log box --oneline"):
        with Terminal(place, f"sojourn {command}") as terminal:
            assert terminal.end() == 0
            assert "\x1b[" in terminal.seen
        with Terminal(place, f"sojourn {option} {command}", **environment) as terminal:
            assert terminal.end() == 0
            assert "\x1b[" not in terminal.seen


@pytest.mark.slow
def test_a_capsule_table_fits_the_terminal(make: Make) -> None:
    place = make({"text": "Hello."})
    with Terminal(place, "sojourn --no-color ps -a") as terminal:
        assert terminal.end() == 0
        head, row, *_ = terminal.seen.split("\r\n")
    assert head.split() == ["NAME", "STATE", "MODEL", "HELD", "BY", "EVENTS", "LAST", "EVENT",
                            "WAITING"]  # fmt: skip
    assert row.index("scripted/s.json") == head.index("MODEL")
