"""Redaction takes a body away for good, and the rest of the capsule stays as it was."""

import asyncio
from pathlib import Path

import pytest

from agent.stage import Stage
from sojourn.agent.trim import redact
from sojourn.core.notices import GONE
from sojourn.errors import NotFoundError, UsageError
from sojourn.format.event import Event, Input, Memory, ModelOutcome, ToolOutcome, TurnTaken
from sojourn.format.layout import WORKING_MEMORY
from sojourn.ids import EventId

SECRET = "hunter2-in-plain-sight"
CALLS = [
    {"calls": [{"tool": "shell", "args": {"command": f"echo {SECRET}; seq 5000"}}]},
    {"text": f"It says {SECRET}."},
    {"text": "Again."},
    {"text": "And again."},
]


def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, CALLS)
    made.run(f"the word is {SECRET}")
    return made


def redacted(made: Stage, event: Event) -> None:
    place = made.make()
    asyncio.run(redact(made.machine, place, event.id, reason="a password", by="user"))


def everything(made: Stage) -> bytes:
    return b"".join(path.read_bytes() for path in made.capsule.rglob("*") if path.is_file())


def first(made: Stage, kind: type) -> Event:
    return next(event for event in made.events() if isinstance(event.body, kind))


def test_the_bytes_are_gone_the_ids_stay_and_the_agent_runs_on(tmp_path: Path) -> None:
    made = stage(tmp_path)
    before = made.events()
    hidden = [e for e in before if isinstance(e.body, Input | ModelOutcome | ToolOutcome)]
    for event in hidden:
        redacted(made, event)
    assert SECRET.encode() not in everything(made)
    after = made.events()
    assert [event.id for event in after[: len(before)]] == [event.id for event in before]
    assert [event.header for event in after[: len(before)]] == [event.header for event in before]
    assert made.verify() == []
    assert made.run("go on").reason == "rest"
    assert made.verify() == []


def test_a_redacted_result_still_answers_its_call(tmp_path: Path) -> None:
    made = stage(tmp_path)
    redacted(made, first(made, ToolOutcome))
    look = made.machine.look(made.make())
    (call,) = [call for entry in look.transcript.entries for call in getattr(entry, "calls", ())]
    assert call.result is not None
    assert [part.text for part in call.result.parts] == [GONE.format(what="result")]


def test_the_notes_of_a_redacted_edit_are_gone_from_fold_and_file(tmp_path: Path) -> None:
    made = stage(tmp_path)
    notes = made.capsule / WORKING_MEMORY
    born = notes.read_text()
    notes.write_text(f"remember {SECRET}\n")
    made.run("go on")
    edit = [event for event in made.events() if isinstance(event.body, Memory)][-1]
    redacted(made, edit)
    assert notes.read_text() == born
    for event in made.events():
        if isinstance(event.body, Input | ModelOutcome | ToolOutcome):
            redacted(made, event)
    assert SECRET.encode() not in everything(made)
    assert made.verify() == []


def test_an_edit_of_redacted_notes_stands_alone(tmp_path: Path) -> None:
    made = stage(tmp_path)
    notes = made.capsule / WORKING_MEMORY
    for text in (f"remember {SECRET}\n", "remember nothing\n"):
        notes.write_text(text)
        made.run("go on")
    redacted(made, [event for event in made.events() if isinstance(event.body, Memory)][-2])
    assert notes.read_text() == "remember nothing\n"
    assert made.verify() == []


def test_what_cannot_be_redacted_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    made = stage(tmp_path)
    log = made.timeline().read_bytes()
    created, taken = made.events()[0], first(made, TurnTaken)
    for event in (created, taken):
        with pytest.raises(UsageError) as refused:
            redacted(made, event)
        assert refused.value.code == "redact_refused"
    with pytest.raises(NotFoundError):
        asyncio.run(redact(made.machine, made.make(), EventId("0" * 64), reason="x", by="user"))
    assert made.timeline().read_bytes() == log


def test_a_redacted_blob_is_not_brought_back_by_the_same_output(tmp_path: Path) -> None:
    made = Stage(tmp_path, [CALLS[0], CALLS[2], CALLS[0], CALLS[3]])
    made.run("go")
    outcome = first(made, ToolOutcome)
    redacted(made, outcome)
    made.run("again")
    assert made.verify() == []
    hidden = [event for event in made.events() if isinstance(event.body, ToolOutcome)]
    redacted(made, hidden[-1])
    blobs = made.capsule / "artifacts/blobs"
    assert not [path for path in blobs.iterdir() if SECRET.encode() in path.read_bytes()]
