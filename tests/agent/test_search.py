"""A capsule is searched by meaning and by words; its index can be made again from the log."""

import asyncio
import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.stage import Stage
from sojourn.agent.recalling import rebuild_index, recall_of, search
from sojourn.drive.recall import Found
from sojourn.embedders.static import StaticEmbedder
from sojourn.errors import CallError
from sojourn.format import index
from sojourn.format.event import ToolOutcome
from sojourn.ids import CapsuleId
from sojourn.ports_recall import Recalled, RecallExcept

STEPS = [
    {"text": "The deadlock came from taking the two locks in opposite order."},
    {"text": "The train to Hamburg leaves at 7:46 from platform 12."},
    {"text": "The disk was full, so the nightly backup failed."},
]


class Counting(StaticEmbedder):
    """The embedder, and every text that it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.texts += texts
        return super().embed(texts)


class Other(StaticEmbedder):
    """An embedder by another name: its vectors are others."""

    name = "other/1"

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes(reversed(vector)) for vector in super().embed(texts)]


class Unreachable(StaticEmbedder):
    """An embedder that cannot be asked now."""

    name = "remote/1"

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        raise CallError(f"no answer for {len(texts)} texts", code="unreachable")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, STEPS)
    for _ in STEPS:
        stage.run("go on")
    return stage


def ask(stage: Stage, question: str, **options: Any) -> Found:
    return asyncio.run(search(stage.machine, stage.make(), question, **options))


def texts(found: Found) -> list[str]:
    return [one.passage.text for one in found.passages]


def index_file(stage: Stage) -> Path:
    return stage.capsule / "memory/vector_index/index.json"


def working(stage: Stage) -> Path:
    (path,) = (stage.folder / "state/recall").glob("*.sqlite3")
    return path


def test_what_was_said_is_found_in_other_words(stage: Stage) -> None:
    assert "backup" in texts(ask(stage, "no room left when saving a copy at night"))[0]
    assert "Hamburg" in texts(ask(stage, "when does my railway journey begin"))[0]


def test_the_number_of_an_event_is_the_one_that_its_line_has(stage: Stage) -> None:
    found = ask(stage, "deadlock", words_only=True).passages[0].passage
    (event,) = (event for event in stage.events() if event.id == found.event)
    assert (found.number, found.kind) == (event.header.seq + 1, "model_outcome")


def test_by_words_alone_nothing_else_is_found(stage: Stage) -> None:
    assert len(texts(ask(stage, "deadlock", words_only=True))) == 1
    assert texts(ask(stage, "stalemate", words_only=True)) == []


def test_a_search_can_be_held_to_kinds(stage: Stage) -> None:
    kinds = {one.passage.kind for one in ask(stage, "deadlock", kinds=("input",)).passages}
    assert kinds == {"input"}


def test_notes_are_found_once_they_are_in_the_log(stage: Stage) -> None:
    notes = stage.capsule / "memory/working_memory.md"
    notes.write_text("# Plans\nBuy seeds for the garden.\n")
    stage.rewrite([*STEPS, {"text": "ok"}])
    stage.run("go on")
    found = ask(stage, "gardening").passages[0].passage
    assert (found.kind, found.place) == ("memory", "# Plans")
    notes.write_text("# Plans\nSell the car.\n")
    stage.rewrite([*STEPS, {"text": "ok"}, {"text": "ok"}])
    stage.run("go on")
    assert not any("seeds" in text for text in texts(ask(stage, "gardening")))


def test_only_what_was_added_is_embedded(stage: Stage) -> None:
    first, second, third = Counting(), Counting(), Counting()
    ask(stage, "one", embedder=first)
    ask(stage, "two", embedder=second)
    assert second.texts == ["two"]
    stage.rewrite([*STEPS, {"text": "Something new."}])
    stage.run("and more")
    ask(stage, "three", embedder=third)
    assert sorted(third.texts) == ["Something new.", "and more", "three"]
    assert len(first.texts) > 6


def test_an_index_of_another_embedder_is_made_anew(stage: Stage) -> None:
    ask(stage, "one", embedder=Other())
    counting = Counting()
    ask(stage, "two", embedder=counting)
    assert len(counting.texts) > 6
    assert index.load(index_file(stage).read_bytes()).embedder == index.EmbedderMark(
        name=counting.name, digest=counting.digest, dimensions=256
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_whatever_lies_in_the_place_of_the_index_file_stops_no_search(
    stage: Stage, make: Callable[[Path], None]
) -> None:
    ask(stage, "deadlock")
    index_file(stage).unlink()
    make(index_file(stage))
    assert "deadlock" in texts(ask(stage, "deadlock"))[0]


def test_without_an_embedder_words_are_compared_and_it_is_said(stage: Stage) -> None:
    found = ask(stage, "deadlock", embedder=Unreachable())
    assert "no answer" in found.without_vectors
    assert "deadlock" in texts(found)[0]


@pytest.mark.parametrize("at", [0, 4096, 20_000])
def test_a_damaged_working_index_is_made_again(stage: Stage, at: int) -> None:
    before = texts(ask(stage, "deadlock"))
    data = bytearray(working(stage).read_bytes())
    data[at : at + 4096] = b"\xa5" * len(data[at : at + 4096])
    working(stage).write_bytes(bytes(data))
    assert texts(ask(stage, "deadlock")) == before


def test_a_lost_working_index_is_made_again(stage: Stage) -> None:
    before = texts(ask(stage, "deadlock"))
    working(stage).unlink()
    assert texts(ask(stage, "deadlock")) == before


HOLDING = """
import sys
from sojourn.store.working_index import SqliteWorkingIndex

with SqliteWorkingIndex(sys.argv[1]).alone():
    print("held", flush=True)
    sys.stdin.readline()
    open(sys.argv[2], "x").close()
"""

USES: dict[str, Callable[[Stage], object]] = {
    "a search": lambda stage: ask(stage, "deadlock"),
    "making it anew": lambda stage: asyncio.run(rebuild_index(stage.machine, stage.make())),
    "the tool": lambda stage: asyncio.run(
        _recall(recall_of(stage.machine, stage.make()), "deadlock")
    ),
}


async def _recall(recall: RecallExcept, question: str) -> Sequence[Recalled]:
    return await recall(question, 5, None)


@pytest.mark.parametrize("use", USES)
def test_whoever_uses_the_index_waits_for_the_process_that_has_it_alone(
    stage: Stage, use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(stage, "deadlock")
    done, real = tmp_path / "done", fcntl.flock
    command = [sys.executable, "-c", HOLDING, str(working(stage)), str(done)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        letting_go = other.stdin

        def flock(handle: int, operation: int) -> None:
            """The other process goes on once somebody waits for what it has."""
            if os.readlink(f"/proc/self/fd/{handle}") == f"{working(stage)}.lock":
                with suppress(ValueError, BrokenPipeError):
                    letting_go.close()
            real(handle, operation)

        monkeypatch.setattr(fcntl, "flock", flock)
        USES[use](stage)
        assert done.exists()


def test_capsules_whose_id_cannot_be_read_do_not_share_an_index(stage: Stage) -> None:
    place = stage.make()
    nameless = [
        replace(place, capsule=CapsuleId(""), folder=str(stage.folder / name)) for name in "ab"
    ]
    for one in nameless:
        shutil.copytree(place.folder, one.folder)
    shutil.rmtree(Path(nameless[1].folder) / "memory")
    (Path(nameless[1].folder) / "timeline.jsonl").write_bytes(b"")
    found = [
        texts(asyncio.run(search(stage.machine, one, "deadlock", words_only=True)))
        for one in (*nameless, nameless[0])
    ]
    assert found[0] == found[2] != []
    assert found[1] == []
    assert len(list((stage.folder / "state/recall").glob("*.sqlite3"))) == 2


def test_what_is_gone_from_the_log_leaves_no_trace(stage: Stage) -> None:
    ask(stage, "deadlock")
    assert b"disk was full" in working(stage).read_bytes()
    lines = stage.timeline().read_bytes().splitlines(keepends=True)
    stage.timeline().write_bytes(b"".join(lines[:-6]))
    assert not any("disk was full" in text for text in texts(ask(stage, "full disk")))
    for path in working(stage).parent.iterdir():
        assert b"disk was full" not in path.read_bytes()


def test_the_file_in_the_capsule_is_written_at_rest_and_verified(stage: Stage) -> None:
    assert index_file(stage).read_bytes() == index.EMPTY
    ask(stage, "deadlock")
    found = index.load(index_file(stage).read_bytes())
    assert {entry.event for entry in found.entries} < {event.id for event in stage.events()}
    assert stage.verify() == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        index.EMPTY,
        b'{"entries":[{"event":"x"}],"format":"sojourn.index/1"}',
        None,
    ],
)
def test_a_damaged_or_foreign_file_is_replaced_and_never_an_error(
    stage: Stage, data: bytes | None
) -> None:
    ask(stage, "deadlock")
    sound = index_file(stage).read_bytes()
    if data is None:
        index_file(stage).unlink()
    else:
        index_file(stage).write_bytes(data)
    assert "deadlock" in texts(ask(stage, "deadlock"))[0]
    assert index_file(stage).read_bytes() == sound
    assert stage.verify() == []


def test_a_changed_vector_is_not_believed(stage: Stage) -> None:
    before = texts(ask(stage, "deadlock"))
    sound = index_file(stage).read_bytes()
    entry = index.load(sound).entries[0]
    index_file(stage).write_bytes(sound.replace(entry.vector.encode(), b"A" * len(entry.vector)))
    assert texts(ask(stage, "deadlock")) == before
    assert index_file(stage).read_bytes() == sound


def test_a_file_that_lacks_little_is_left_until_it_lacks_an_eighth(stage: Stage) -> None:
    more = [{"text": f"Answer number {n}."} for n in range(12)]
    stage.rewrite([*STEPS, *more])
    for _ in more[:10]:
        stage.run("go on")
    ask(stage, "deadlock")
    before = index_file(stage).read_bytes()
    stage.run("go on")
    ask(stage, "deadlock")
    assert index_file(stage).read_bytes() == before
    stage.run("go on")
    ask(stage, "deadlock")
    assert index_file(stage).read_bytes() != before


def test_while_the_agent_runs_its_capsule_is_searched_and_not_written(stage: Stage) -> None:
    before = index_file(stage).read_bytes()

    async def inside() -> Found:
        async with stage.machine.hold(stage.make()):
            return await search(stage.machine, stage.make(), "deadlock")

    assert "deadlock" in texts(asyncio.run(inside()))[0]
    assert index_file(stage).read_bytes() == before


def test_a_capsule_that_is_not_held_here_is_searched_and_not_written(
    stage: Stage, tmp_path: Path
) -> None:
    other = Stage(tmp_path, STEPS, environment={"SOJOURN_HOME": str(tmp_path / "elsewhere")})
    before = index_file(stage).read_bytes()
    found = asyncio.run(search(other.machine, stage.make(), "deadlock"))
    assert "deadlock" in texts(found)[0]
    assert index_file(stage).read_bytes() == before


def test_a_rebuild_gives_the_same_bytes(stage: Stage) -> None:
    ask(stage, "deadlock")
    sound = index_file(stage).read_bytes()
    index_file(stage).write_bytes(index.EMPTY)
    assert asyncio.run(rebuild_index(stage.machine, stage.make()))
    assert index_file(stage).read_bytes() == sound


def test_what_is_masked_in_the_log_is_masked_in_both_indexes(tmp_path: Path) -> None:
    secret = "hunter2-" + "x" * 12
    stage = Stage(tmp_path, [{"text": f"the key is {secret}"}], environment={"API_KEY": secret})
    stage.run("what is the key")
    assert "[masked API_KEY]" in texts(ask(stage, "key"))[0] + texts(ask(stage, "key"))[1]
    files = [index_file(stage), *working(stage).parent.iterdir()]
    assert not any(secret.encode() in path.read_bytes() for path in files)


def test_the_agent_finds_what_it_did_earlier_and_not_the_question(tmp_path: Path) -> None:
    call = {"tool": "recall", "args": {"question": "which locks had a deadlock", "most": 2}}
    stage = Stage(tmp_path, [STEPS[0], {"calls": [call]}, {"text": "ok"}])
    stage.run("look at the program")
    stage.run("which locks had a deadlock")
    (outcome,) = stage.bodies(ToolOutcome)
    (part,) = outcome.parts
    assert outcome.status == "done"
    assert part.text.startswith("[event ")
    assert "opposite order" in part.text
    assert "which locks had a deadlock" not in part.text


def test_an_agent_sees_no_other_capsule(tmp_path: Path) -> None:
    call = {"tool": "recall", "args": {"question": "deadlock"}}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    Stage(tmp_path / "one", STEPS).run("look at the program")
    other = Stage(tmp_path / "two", [{"calls": [call]}, {"text": "ok"}])
    other.environment["SOJOURN_HOME"] = str(tmp_path / "one/state")
    other.run("look")
    (outcome,) = other.bodies(ToolOutcome)
    assert "opposite order" not in outcome.parts[0].text


def test_two_searches_at_once_agree(stage: Stage) -> None:
    async def both() -> list[Found]:
        place = stage.make()
        asked = (search(stage.machine, place, "deadlock") for _ in range(4))
        return await asyncio.gather(*asked)

    one, *others = asyncio.run(both())
    assert all(texts(found) == texts(one) for found in others)
    with sqlite3.connect(working(stage)) as db:
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    db.close()
