"""A claim is a person's word, and names all that it goes on from."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agent.carried import (
    TALK,
    claimed,
    elsewhere,
    events_in,
    restored_state,
    run_in,
    sound,
    taken_over,
    tree,
)
from agent.stage import Stage
from sojourn import Machine
from sojourn.agent.taking_over import claim
from sojourn.core.tenure import MayLook, reasons
from sojourn.drive.claim import Risks
from sojourn.errors import (
    FormatError,
    HeldElsewhereError,
)
from sojourn.format import layout
from sojourn.format.capsule_kinds import Claimed
from sojourn.format.event import Input
from sojourn.format.parts import TextPart
from sojourn.format.timeline_write import Chain, write
from sojourn.ids import RequestId, Seq


def damaged_record(stage: Stage) -> None:
    place = stage.make()
    Path(stage.machine.state.ledger, f"{place.capsule}.json").write_text("{}")


def lost_record(stage: Stage) -> None:
    place = stage.make()
    Path(stage.machine.state.ledger, f"{place.capsule}.json").unlink()


def rolled_back(stage: Stage) -> None:
    shutil.copytree(stage.capsule, stage.folder / "older")
    stage.run("lost")
    shutil.rmtree(stage.capsule)
    (stage.folder / "older").rename(stage.capsule)


WAYS: dict[Callable[[Stage], None], str] = {
    restored_state: "ledger_copied",
    damaged_record: "ledger_damaged",
    lost_record: "not_held_here",
    rolled_back: "rolled_back",
    taken_over: "newer_epoch",
}


@pytest.mark.parametrize("lose", WAYS)
def test_a_claim_makes_a_capsule_run_again(lose: Callable[[Stage], None], tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    lose(stage)
    machine, place = stage.machine, stage.make()
    look = machine.look(place)
    assert isinstance(look.admission, MayLook)
    assert look.admission.code == WAYS[lose]
    before = events_in(machine, place.folder)
    taken = claimed(machine, place, reason="I know")
    assert (taken.done, taken.risks.reasons[0].code) == ("claimed", WAYS[lose])
    highest = max(event.header.epoch for event in before)
    assert taken.record.epoch > max(highest, taken.risks.epoch)
    assert taken.record.claim is None
    sound(machine, place.folder)
    added = events_in(machine, place.folder)[len(before) :]
    body = added[0].body
    assert isinstance(body, Claimed)
    assert (body.capsule, body.how, body.reason) == (place.capsule, "claim", "I know")
    assert added[0].header.seq == 0
    assert added[0].header.incarnation not in {event.header.incarnation for event in before}
    assert {head.id for head in body.heads} >= {before[-1].id}
    run_in(stage, machine, place.folder)
    sound(machine, place.folder)


def test_nothing_is_claimed_when_the_person_does_not_agree(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    rolled_back(stage)
    place = stage.make()
    before = tree(place.folder)
    seen: list[Risks] = []

    def no(risks: Risks) -> bool:
        seen.append(risks)
        return False

    assert asyncio.run(claim(stage.machine, place, agreed=no)) is None
    assert seen[0].lost > 1000
    assert tree(place.folder) == before
    assert isinstance(stage.machine.look(place).admission, MayLook)


def test_a_forced_claim_leaves_room_below_itself(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    machine = elsewhere(stage)
    shutil.copytree(stage.capsule, tmp_path / "copy")
    taken = claimed(machine, machine.find(str(tmp_path / "copy")), forced=True)
    assert taken.record.epoch == 1001
    bodies = [event.body for event in events_in(machine, tmp_path / "copy")]
    assert [body.forced for body in bodies if isinstance(body, Claimed)] == [True]
    sound(machine, tmp_path / "copy")


def test_the_machine_that_held_it_before_stops(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    taken_over(stage)
    with pytest.raises(HeldElsewhereError) as refused:
        stage.run("again")
    assert refused.value.code == "newer_epoch"


def test_what_is_held_here_is_not_claimed_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    place, before = stage.make(), len(stage.events())
    taken = asyncio.run(claim(stage.machine, place, agreed=lambda _: False))
    assert taken is not None
    assert (taken.done, len(stage.events())) == ("held", before)


def test_a_copy_is_not_claimed_while_the_original_is_there(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    shutil.copytree(stage.capsule, tmp_path / "copy")
    copy = stage.machine.find(str(tmp_path / "copy"))
    with pytest.raises(HeldElsewhereError) as refused:
        claimed(stage.machine, copy)
    assert refused.value.code == "copied"
    shutil.rmtree(stage.capsule)
    assert claimed(stage.machine, copy).done == "held"
    run_in(stage, stage.machine, tmp_path / "copy")


def test_a_capsule_is_not_claimed_while_a_process_holds_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()

    async def inside() -> None:
        async with stage.machine.hold(place):
            with pytest.raises(HeldElsewhereError) as refused:
                await claim(stage.machine, place, agreed=lambda _: True)
            assert refused.value.code == "held_elsewhere"

    asyncio.run(inside())


def test_what_is_damaged_is_not_claimed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    path = stage.timeline()
    path.write_bytes(path.read_bytes().replace(b"hello", b"jello"))
    before = tree(stage.capsule)
    with pytest.raises(FormatError) as refused:
        claimed(elsewhere(stage), elsewhere(stage).find(str(stage.capsule)))
    assert refused.value.code == "damaged"
    assert tree(stage.capsule) == before


def test_a_claim_cuts_a_torn_tail_after_its_first_event(tmp_path: Path) -> None:
    """A folder that was copied while its agent wrote."""
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    shutil.copytree(stage.capsule, tmp_path / "copy")
    with (tmp_path / "copy" / layout.TIMELINE).open("ab") as log:
        log.write(b'{"body":{"half')
    machine = elsewhere(stage)
    claimed(machine, machine.find(str(tmp_path / "copy")))
    sound(machine, tmp_path / "copy")
    kinds = [event.header.kind for event in events_in(machine, tmp_path / "copy")]
    assert kinds[-3:] == ["claimed", "restored", "cut"]


def parted(stage: Stage, *logs: bytes) -> None:
    """The stage's log becomes the union of its own and these, in the order of the log."""
    lines = {line for log in (stage.timeline().read_bytes(), *logs) for line in log.splitlines()}

    def place(line: bytes) -> tuple[Any, ...]:
        header = json.loads(line)["header"]
        found = sha256(line[line.rfind(b',"header":') + 10 : -1]).hexdigest()
        return (header["clock"], header["machine"], header["incarnation"], header["seq"], found)

    stage.timeline().write_bytes(b"".join(line + b"\n" for line in sorted(lines, key=place)))


def equivocated(stage: Stage) -> None:
    """A machine whose whole disk was rolled back wrote at its old places again."""
    last, before = stage.events()[-1].header, stage.timeline().read_bytes()
    chain = Chain(
        machine=last.machine,
        incarnation=last.incarnation,
        epoch=last.epoch,
        seq=Seq(last.seq + 1),
        head=stage.events()[-1].id,
        clock=last.clock,
    )
    sides = [
        write(
            [Input(request=RequestId(text), author="user", parts=(TextPart(text=text),))],
            chain=chain,
            time=last.time,
            salts=[text.ljust(22, "0")],
        ).data
        for text in ("one", "other")
    ]
    stage.timeline().write_bytes(before + sides[0])
    parted(stage, before + sides[1])


def diverged(stage: Stage) -> None:
    """Two machines claimed copies of it at one epoch, and a person joined their logs."""
    logs: list[bytes] = []
    for name in ("one", "other"):
        shutil.copytree(stage.capsule, stage.folder / name)
        home = str(stage.folder / f"state-{name}")
        machine = Machine({"PATH": os.environ["PATH"], "SOJOURN_HOME": home})
        claimed(machine, machine.find(str(stage.folder / name)))
        logs.append((stage.folder / name / layout.TIMELINE).read_bytes())
    parted(stage, *logs)


@pytest.mark.parametrize("part", [equivocated, diverged])
def test_a_claim_after_sides_parted_names_every_side(
    part: Callable[[Stage], None], tmp_path: Path
) -> None:
    stage = Stage(tmp_path, TALK)
    stage.run("hello")
    part(stage)
    place = stage.make()
    split = "divergence" if part is diverged else "equivocation"
    codes = [found.code for found in stage.machine.verify(place)]
    assert codes == [split]
    admission = stage.machine.look(place).admission
    assert isinstance(admission, MayLook)
    assert split in [one.code for one in reasons(stage.machine.look(place).evidence)]
    before = stage.events()
    taken = claimed(stage.machine, place)
    assert taken.record.epoch == max(event.header.epoch for event in before) + 1
    body = next(event.body for event in stage.events()[len(before) :])
    assert isinstance(body, Claimed)
    assert {event.id for event in before[-2:]} <= {head.id for head in body.heads}
    assert {found.code for found in stage.machine.verify(place)} <= {split}
