"""A fork is a capsule of its own that never runs what its parent had open."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.carried import (
    TALK,
    elsewhere,
    events_in,
    forked,
    run_in,
    sound,
    tree,
    without_queue,
)
from agent.stage import Stage, killed_in_call
from agent.test_recovery import CALL_THEN_SAY, DYING, acting, effects
from agent.test_refusals import Notes
from sojourn import Machine
from sojourn.agent.forking import fork
from sojourn.core.tenure import MayLook, MayRun
from sojourn.drive.fork import ForkedCapsule, fork_capsule
from sojourn.errors import (
    FormatError,
    NotFoundError,
    UsageError,
)
from sojourn.format import layout
from sojourn.format.capsule_kinds import Forked, Restored
from sojourn.format.event import Input, ToolIntent, ToolOutcome, TurnEnded
from sojourn.ids import EventId


def test_a_fork_is_a_capsule_of_its_own_that_runs_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    place = stage.make()
    before = tree(place.folder)
    made = forked(stage, place, name="second")
    assert tree(place.folder) == before
    sound(stage.machine, made.folder)
    assert made.capsule != made.parent == place.capsule
    assert run_in(stage, stage.machine, made.folder) == "Two."
    sound(stage.machine, made.folder)
    events = events_in(stage.machine, made.folder)
    parent = [event.id for event in stage.events()]
    assert [event.id for event in events[: len(parent)]] == parent
    own = events[len(parent)]
    assert own.id == made.capsule
    assert isinstance(own.body, Forked)
    assert (own.body.parent, own.header.epoch, own.header.seq) == (place.capsule, 2, 0)
    assert own.header.incarnation != events[0].header.incarnation
    assert [head.id for head in own.body.heads] == [parent[-1]]


def test_the_parent_and_its_forks_go_their_own_ways(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    place = stage.make()
    one, two = (forked(stage, place, name=name) for name in ("one", "two"))
    of_one = forked(stage, stage.machine.find(one.folder), name="of-one")
    ids = {place.capsule, one.capsule, two.capsule, of_one.capsule}
    assert len(ids) == 4
    assert of_one.parent == one.capsule
    assert [of_one.chain.epoch, one.chain.epoch, two.chain.epoch] == [3, 2, 2]
    for folder in (place.folder, one.folder, two.folder, of_one.folder):
        run_in(stage, stage.machine, folder, "and now?")
        sound(stage.machine, folder)
    records = [stage.machine.ports.ledger.load(capsule) for capsule in ids]
    assert {record.capsule for record in records if record} == ids
    assert len({record.incarnation for record in records if record}) == 4


def test_a_fork_can_part_at_any_event_once_the_agent_is_configured(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY, tools=[acting("keyed", tmp_path)])
    stage.run("go")
    place, events = stage.make(), stage.events()
    for number, event in enumerate(events):
        if number < 3:
            with pytest.raises(UsageError) as refused:
                forked(stage, place, at=event.id)
            assert refused.value.code == "fork_too_early"
            continue
        made = forked(stage, place, at=event.id, name=f"at-{number}")
        assert made.at == event.id
        sound(stage.machine, made.folder)
        look = stage.machine.look(stage.machine.find(made.folder))
        assert isinstance(look.admission, MayRun)
        assert look.state.turn is None
        assert look.events > number + 1
    assert sorted(os.listdir(stage.machine.state.capsules)) == sorted(
        f"at-{number}" for number in range(3, len(events))
    )


def test_no_open_call_of_the_parent_ever_runs_in_a_fork(tmp_path: Path) -> None:
    """Forks at every event, each run on with tools that would act again: none does."""
    stage = Stage(tmp_path, CALL_THEN_SAY, tools=[acting("keyed", tmp_path)])
    stage.run("go")
    stage.rewrite([{"name": "end", "text": "I leave it."}])
    parents = effects(tmp_path)
    place = stage.make()
    for number, event in enumerate(stage.events()[3:]):
        made = forked(stage, place, at=event.id, name=f"at-{number}")
        run_in(stage, stage.machine, made.folder, "go on")
        assert effects(tmp_path) == parents
        calls = [e for e in events_in(stage.machine, made.folder) if e.header.epoch == 2]
        assert not [e for e in calls if isinstance(e.body, ToolIntent)]
        sound(stage.machine, made.folder)


@pytest.mark.parametrize("rule", ["safe", "keyed", "report", "ask"])
def test_a_call_that_a_dead_process_left_open_is_unknown_in_a_fork(
    rule: str, tmp_path: Path
) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule=rule))
    made = forked(stage, stage.make(), name="second")
    assert made.set_aside == 1
    bodies = [event.body for event in events_in(stage.machine, made.folder)]
    outcomes = [body for body in bodies if isinstance(body, ToolOutcome)]
    assert [(body.status, body.failure and body.failure.code) for body in outcomes] == [
        ("unknown", "forked")
    ]
    ends = [body for body in bodies if isinstance(body, TurnEnded)]
    assert [body.reason for body in ends] == ["set_aside"]
    restored = [body for body in bodies if isinstance(body, Restored)]
    missing = [body.missing for body in restored]
    assert missing == [() if rule == "safe" else (outcomes[0].call,)]
    assert len(effects(tmp_path)) == 1
    stage.tools = [acting(rule, tmp_path)]
    run_in(stage, stage.machine, made.folder)
    assert len(effects(tmp_path)) == 1


def test_the_parent_still_answers_for_its_open_call_after_it_was_forked(tmp_path: Path) -> None:
    stage = Stage(tmp_path, CALL_THEN_SAY)
    killed_in_call(stage, DYING.format(rule="keyed"))
    forked(stage, stage.make(), name="second")
    stage.tools = [acting("keyed", tmp_path)]
    stage.resume()
    assert len(effects(tmp_path)) == 2
    assert len(set(effects(tmp_path))) == 1
    assert stage.verify() == []


def test_a_fork_at_an_input_answers_it_when_somebody_resumes(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    (said,) = (event for event in stage.events() if isinstance(event.body, Input))
    made = forked(stage, stage.make(), at=said.id, name="again")
    machine = stage.machine
    assert machine.look(machine.find(made.folder)).state.unseen == (said.id,)

    async def inside() -> str:
        async with machine.hold(machine.find(made.folder), model=stage.model) as agent:
            return (await agent.resume()).text

    assert asyncio.run(inside()) == "One."


def test_a_capsule_is_forked_while_its_agent_runs(tmp_path: Path) -> None:
    """Without its lock: the fork is a prefix, and the parent goes on as if nothing had happened."""
    stage = Stage(tmp_path, CALL_THEN_SAY)
    made: list[ForkedCapsule] = []

    async def act(context: Any) -> str:
        """Forks the very capsule that runs it."""
        del context
        machine = Machine({"PATH": os.environ["PATH"], "SOJOURN_HOME": stage.machine.home})
        made.append(await fork(machine, machine.find(str(stage.capsule)), name="second"))
        return "forked"

    from sojourn import ToolContext, tool

    act.__annotations__["context"] = ToolContext
    stage.tools = [tool(replay="report")(act)]
    assert stage.run("go").text == "I know."
    assert made[0].set_aside == 1
    sound(stage.machine, made[0].folder)
    assert stage.verify() == []


def test_what_cannot_be_run_can_be_forked(tmp_path: Path) -> None:
    """A copy, another machine's capsule, and one that is older than this machine remembers."""
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    place = stage.make()
    shutil.copytree(place.folder, tmp_path / "copy")
    stage.run("again")
    for machine, name in ((stage.machine, "here"), (elsewhere(stage), "there")):
        copy = machine.find(str(tmp_path / "copy"))
        assert isinstance(machine.look(copy).admission, MayLook)
        made = asyncio.run(fork(machine, copy, name=name))
        sound(machine, made.folder)
        assert run_in(stage, machine, made.folder) in ("Three.", "Two.", "Four.")
    shutil.rmtree(place.folder)
    machine = stage.machine
    older = machine.look(machine.find(str(tmp_path / "copy")))
    assert isinstance(older.admission, MayLook)
    assert older.admission.code == "rolled_back"
    sound(machine, forked(stage, older.place, name="of-older").folder)


def test_only_what_the_kept_lines_name_is_copied(tmp_path: Path) -> None:
    big = "x" * 40_000
    stage = Stage(tmp_path, TALK)
    stage.run("a" * 40_000)
    first = stage.events()[-1]
    stage.run(big)
    place = stage.make()
    blobs = set(os.listdir(f"{place.folder}/{layout.BLOBS}"))
    made = forked(stage, place, at=first.id, name="second")
    kept = set(os.listdir(f"{made.folder}/{layout.BLOBS}"))
    assert kept < blobs
    assert len(blobs - kept) == 1
    for blob in kept:
        ours, theirs = (Path(f) / layout.BLOBS / blob for f in (made.folder, place.folder))
        assert ours.stat().st_ino != theirs.stat().st_ino


def test_the_files_of_a_fork_are_those_of_its_point(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    first = stage.events()[-1]
    notes = stage.capsule / layout.WORKING_MEMORY
    notes.write_text("# By hand\n")
    (stage.capsule / "environment/deep").mkdir()
    (stage.capsule / "environment/deep/a.lock").write_text("one\n")
    stage.run("again")
    early = forked(stage, stage.make(), at=first.id, name="early")
    late = forked(stage, stage.make(), name="late")
    assert (Path(early.folder) / layout.WORKING_MEMORY).read_text() == "# Working memory\n"
    assert (Path(late.folder) / layout.WORKING_MEMORY).read_text() == "# By hand\n"
    assert not (Path(early.folder) / "environment/deep").exists()
    assert (Path(late.folder) / "environment/deep/a.lock").read_text() == "one\n"
    for made in (early, late):
        sound(stage.machine, made.folder)


def test_damage_is_not_forked_but_what_stands_before_it_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    before = stage.events()[-1].id
    stage.run("unheard of")
    place = stage.make()
    path = stage.timeline()
    path.write_bytes(path.read_bytes().replace(b"unheard of", b"unheard-of"))
    with pytest.raises(FormatError) as refused:
        forked(stage, place, name="second")
    assert refused.value.code == "body_altered"
    assert not list(Path(stage.machine.state.capsules).glob("*"))
    sound(stage.machine, forked(stage, place, at=before, name="second").folder)


def test_a_blob_with_other_bytes_is_not_copied(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("a" * 40_000)
    place = stage.make()
    for path in (stage.capsule / layout.BLOBS).iterdir():
        if path.stat().st_size == 40_000:
            path.write_bytes(b"b" * 40_000)
    with pytest.raises(FormatError) as refused:
        forked(stage, place, name="second")
    assert refused.value.code == "blob_altered"
    assert not list(Path(stage.machine.state.capsules).iterdir())


@pytest.mark.parametrize("where", ["taken", "inside", "unknown event", "bad name"])
def test_a_fork_that_cannot_be_made_leaves_nothing(where: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    place = stage.make()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").write_text("mine")
    before, held = without_queue(tree(tmp_path)), stage.machine.ports.ledger.capsules()
    with pytest.raises((UsageError, NotFoundError)):
        match where:
            case "taken":
                forked(stage, place, str(tmp_path / "taken"))
            case "inside":
                forked(stage, place, f"{place.folder}/fork")
            case "unknown event":
                forked(stage, place, at=EventId("0" * 64))
            case _:
                forked(stage, place, name="../up")
    assert without_queue(tree(tmp_path)) == before
    assert stage.machine.ports.ledger.capsules() == held


def test_a_fork_into_an_empty_folder_and_a_workspace_of_ones_own(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    for name in ("empty", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine/notes").write_text("mine")
    made = forked(stage, stage.make(), str(tmp_path / "empty"), workspace=str(tmp_path / "mine"))
    assert made.workspace == str(tmp_path / "mine")
    assert made.restored is not None
    assert (made.restored.snapshot, made.restored.missing) == (None, ())
    assert (tmp_path / "mine/notes").read_text() == "mine"
    sound(stage.machine, made.folder)


def test_a_fork_that_is_not_held_here_may_be_forked_again_and_not_run(tmp_path: Path) -> None:
    """As an archive is made of one; `source` is any folder with a capsule's bytes."""
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    machine, folder = stage.machine, str(tmp_path / "carried")
    made = asyncio.run(
        fork_capsule(
            machine.ports,
            stage.make().folder,
            folder,
            name="carried",
            home=None,
            observer=Notes(),
        )
    )
    assert (made.workspace, made.restored) == (None, None)
    assert machine.ports.ledger.load(made.capsule) is None
    sound(machine, folder)
    look = machine.look(machine.find(folder))
    assert isinstance(look.admission, MayLook)
    again = asyncio.run(fork(elsewhere(stage), elsewhere(stage).find(folder), name="here"))
    assert again.parent == made.capsule
    assert run_in(stage, elsewhere(stage), again.folder) == "Two."


def test_a_name_that_is_free_is_found(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    names = [os.path.basename(forked(stage, stage.make()).folder) for _ in range(3)]
    assert names == ["capsule-fork", "capsule-fork-2", "capsule-fork-3"]
