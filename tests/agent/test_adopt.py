"""After a lost, restored or copied state folder one clear command goes on."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from agent.carried import (
    TALK,
    claimed,
    elsewhere,
    forked,
    restored_state,
    run_in,
    sound,
    taken_over,
)
from agent.stage import Stage
from sojourn.agent.taking_over import adopt, orphan_at, orphans
from sojourn.core.tenure import MayLook
from sojourn.errors import (
    HeldElsewhereError,
    SojournError,
    UsageError,
)
from sojourn.format.capsule_kinds import Claimed


def test_after_a_restored_backup_one_command_goes_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    second = forked(stage, stage.make(), name="second")
    restored_state(stage)
    machine = stage.machine
    own = machine.ports.key.machine()
    found = orphans(machine)
    assert [orphan.place.folder for orphan in found] == [str(stage.capsule), second.folder]
    assert [orphan.obstacle for orphan in found] == [None, None]
    for orphan in found:
        asyncio.run(adopt(machine, orphan.place))
    assert orphans(stage.machine) == ()
    assert stage.machine.ports.key.machine() == own
    for folder in (stage.capsule, Path(second.folder)):
        run_in(stage, stage.machine, folder)
        sound(stage.machine, folder)
    bodies = [event.body for event in stage.events()]
    assert [body.how for body in bodies if isinstance(body, Claimed)] == ["adopt"]


def test_adopting_leaves_to_a_claim_what_another_machine_took_over(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    restored_state(stage)
    taken_over(stage)
    (found,) = orphans(stage.machine)
    assert found.obstacle is not None
    assert found.obstacle.code == "newer_epoch"
    with pytest.raises(HeldElsewhereError) as refused:
        asyncio.run(adopt(stage.machine, found.place))
    assert refused.value.code == "newer_epoch"


def test_what_was_never_here_is_not_adopted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    machine = elsewhere(stage)
    place = machine.find(str(stage.capsule))
    assert orphan_at(machine, place) is None
    with pytest.raises(UsageError) as refused:
        asyncio.run(adopt(machine, place))
    assert refused.value.code == "not_ours"


def test_the_whole_state_folder_was_lost_but_for_the_capsules(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    made = forked(stage, stage.make(), name="second")
    for name in os.listdir(stage.machine.home):
        path = Path(stage.machine.home, name)
        if name != "capsules":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (found,) = orphans(stage.machine)
    assert found.place.folder == made.folder
    asyncio.run(adopt(stage.machine, found.place))
    run_in(stage, stage.machine, made.folder)
    sound(stage.machine, made.folder)


def test_a_state_folder_on_another_host_becomes_a_machine_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    first = stage.machine.ports.key.machine()
    monkeypatch.setattr("sojourn.agent.machine.host_digest", lambda: "f" * 64)
    place = stage.make()
    look = stage.machine.look(place)
    assert isinstance(look.admission, MayLook)
    assert look.admission.code == "ledger_copied"
    with pytest.raises(SojournError) as refused:
        stage.run("again")
    assert refused.value.code == "ledger_copied"
    with pytest.raises(SojournError) as refused:
        claimed(stage.machine, place)
    assert refused.value.code == "machine_key_copied"
    taken = asyncio.run(adopt(stage.machine, place))
    second = stage.machine.ports.key.machine()
    assert second != first
    assert taken.record.epoch == 2
    run_in(stage, stage.machine, place.folder)
    sound(stage.machine, place.folder)
    machines = {event.header.machine for event in stage.events()}
    assert machines == {first, second}
