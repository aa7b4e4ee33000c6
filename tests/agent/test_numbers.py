"""The number of an event is that of its line in the log (docs/cli.md#numbers)."""

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest

from agent.elsewhere import elsewhere
from agent.stage import Stage
from sojourn.agent.look import Look, Numbered, number_of
from sojourn.agent.merging import chart, merge
from sojourn.agent.notes import edits_of
from sojourn.agent.recalling import search
from sojourn.cli.show import chosen
from sojourn.errors import NotFoundError
from sojourn.ids import EventId

SAY = [{"text": "well"}, {"text": "well"}, {"text": "well"}]


@pytest.fixture
def merged(tmp_path: Path) -> Stage:
    """A capsule of two chains, whose events lie between each other's."""
    (tmp_path / "here").mkdir()
    stage = Stage(tmp_path / "here", SAY)
    stage.run("first")
    other = elsewhere(stage, tmp_path / "there")
    stage.run("on the mountain")
    other.run("in the harbour")
    ask(stage, "mountain")
    asyncio.run(merge(stage.machine, stage.make(), str(other.capsule)))
    return stage


def look_at(stage: Stage) -> Look:
    return stage.machine.look(stage.make())


def lines(stage: Stage) -> list[str]:
    """The id of the event in each line of the log."""
    headers = (
        line[line.rindex(b',"header":') + 10 : -1]
        for line in stage.timeline().read_bytes().splitlines()
    )
    return [sha256(header).hexdigest() for header in headers]


def ask(stage: Stage, question: str) -> list[tuple[str, int]]:
    found = asyncio.run(search(stage.machine, stage.make(), question, words_only=True))
    return [(one.passage.event, one.passage.number) for one in found.passages]


def test_each_number_names_one_event_though_two_chains_count_alike(merged: Stage) -> None:
    look, ids = look_at(merged), lines(merged)
    seqs = [event.header.seq for event in look.events_of()]
    assert len(set(seqs)) < len(seqs)
    for number, name in enumerate(ids, start=1):
        found = chosen(look, str(number), capsule="box")
        assert (found.number, found.event.id) == (number, name)
        assert chosen(look, name[:12], capsule="box") == found
    for name in ("0", str(len(ids) + 1)):
        with pytest.raises(NotFoundError):
            chosen(look, name, capsule="box")


def test_with_one_chain_the_number_is_one_more_than_the_seq(tmp_path: Path) -> None:
    stage = Stage(tmp_path, SAY)
    stage.run("first")
    numbered = list(look_at(stage).numbered())
    assert [one.number for one in numbered] == [one.event.header.seq + 1 for one in numbered]


def test_a_line_that_cannot_be_read_leaves_the_numbers_of_the_others(tmp_path: Path) -> None:
    stage = Stage(tmp_path, SAY)
    stage.run("first")
    before = list(look_at(stage).numbered())
    rows = stage.timeline().read_bytes().split(b"\n")
    rows[3] = b"x" * len(rows[3])
    stage.timeline().write_bytes(b"\n".join(rows))
    assert list(look_at(stage).numbered()) == [*before[:3], *before[4:]]


def test_charts_edits_and_passages_number_events_alike(merged: Stage) -> None:
    look = look_at(merged)
    known = {(event.id, number) for number, event in look.numbered()}
    assert {(row.event, row.number) for row in chart(look).rows} <= known
    assert {(edit.event.id, edit.number) for edit in edits_of(look)} <= known
    found = [*ask(merged, "mountain"), *ask(merged, "harbour")]
    assert len(found) == 2
    assert set(found) <= known


def test_the_number_of_an_event_that_was_just_appended_is_read_off_the_end(merged: Stage) -> None:
    look = look_at(merged)
    *_, before, last = look.numbered()
    assert number_of(look.store, last.event.id) == last.number == look.events
    assert Numbered(number_of(look.store, before.event.id), before.event) == before
    assert number_of(look.store, EventId("f" * 64)) == 0
