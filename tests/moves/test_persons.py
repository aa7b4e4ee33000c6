"""What a person ends: a move whose target forgot it, one that arrives, one whose mover lives."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon.daemons import answered, end_daemon, environment, machine, process, sojourn
from moves.harness import Fault, Link, Two, attempt, judge, prepared, recovered, two_in
from sojourn.agent.moves import highest_epoch
from sojourn.agent.scripts import remember
from sojourn.agent.settling import settle_capsule
from sojourn.agent.taking_over import claim
from sojourn.core.migration_messages import Answer, Message, Prepare
from sojourn.core.migration_values import Begin
from sojourn.core.tenure import FORCED_STEP
from sojourn.drive.crossing import write
from sojourn.drive.moving import NOTHING
from sojourn.drive.settling import abort, disown, pending, settle
from sojourn.errors import HeldElsewhereError, MigrationError
from sojourn.ids import CapsuleId, Epoch, MoveId


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("persons") / "two")


def promised_and_forgotten(two: Two) -> tuple[MoveId, Epoch]:
    """The target has promised, is not told to activate, and its ledger is lost; the move."""

    async def inside() -> None:
        link = Link(two, "a", "b", Fault(kind="activate", how="before"))
        link.deaf = True
        assert await attempt(two, link) == "in_doubt"

    asyncio.run(inside())
    shutil.rmtree(Path(two.machine("b").state.ledger))
    asyncio.run(recovered(two))
    record = two.machine("a").ports.ledger.load(two.capsule)
    assert record is not None
    assert record.outgoing is not None
    assert (record.state, two.state("b")) == ("IN_DOUBT", "NONE")
    return record.outgoing.move, record.outgoing.epoch


def test_the_source_names_the_command_for_a_target_that_forgot(template: Path) -> None:
    two = two_in(template)
    move, epoch = promised_and_forgotten(two)
    folder = two.place("a").folder
    with pytest.raises(MigrationError) as refused:
        asyncio.run(settle(two.machine("a").ports, Link(two, "a", "b"), two.capsule, folder))
    assert refused.value.code == "target_forgot"
    assert f"sojourn move abort {two.capsule} --disown {move}@{epoch}" in refused.value.hint


def test_a_move_that_is_disowned_lets_the_source_go_on_and_leaves_nothing(template: Path) -> None:
    two = two_in(template)
    move, epoch = promised_and_forgotten(two)
    there = two.machine("b")
    found = highest_epoch(there, two.capsule)
    disown(there.ports, two.capsule, move=move, epoch=epoch, found=found)
    asyncio.run(recovered(two))
    assert judge(two, moved=False) == "a"


def test_a_person_disowns_it_by_the_command(template: Path) -> None:
    two = two_in(template)
    move, epoch = promised_and_forgotten(two)
    home = two.folder / "state-b"
    words = ("move", "abort", two.capsule, "--disown", f"{move}@{epoch}", "--json")
    asked = sojourn(home, *words)
    assert (asked.returncode, "not_confirmed" in asked.stdout) == (7, True), asked
    assert two.state("b") == "NONE"
    agreed = sojourn(home, *words, "--yes")
    assert agreed.returncode == 0, agreed
    asyncio.run(recovered(two))
    assert judge(two, moved=False) == "a"


def test_an_epoch_that_the_move_cannot_have_is_not_promised(template: Path) -> None:
    two = two_in(template)
    move, _ = promised_and_forgotten(two)
    with pytest.raises(MigrationError) as refused:
        disown(
            two.machine("b").ports,
            two.capsule,
            move=move,
            epoch=Epoch(1 << 40),
            found=Epoch(1),
        )
    assert refused.value.code == "epoch_jump"
    assert two.machine("b").ports.ledger.load(two.capsule) is None


def test_what_is_arriving_is_shown_and_dropped_when_a_person_says_so(template: Path) -> None:
    """By the command's id: it has no folder of its own, and its source lives on."""
    two = two_in(template)

    class Aborting(Link):
        async def ask(self, message: Message) -> Answer:
            if isinstance(message, Prepare):
                shown = answered(sojourn(two.folder / "state-b", "move", "status", "--json"))
                (one,) = shown["capsules"]
                assert (one["arriving"], one["capsule"]["id"]) == (True, two.capsule)
                abort(two.machine("b").ports, two.capsule)
            return await super().ask(message)

    assert asyncio.run(attempt(two, Aborting(two, "a", "b"))) == "cancelled"
    record = two.machine("b").ports.ledger.load(two.capsule)
    assert record is not None
    assert record.slot is None
    asyncio.run(recovered(two))
    assert judge(two, moved=False) == "a"


@contextmanager
def background(home: Path, *words: str, **options: Any) -> Generator["subprocess.Popen[str]"]:
    """A command in a process of its own, which is ended at the end."""
    program = [*options.pop("program", (sys.executable, "-m", "sojourn"))]
    with subprocess.Popen(
        [*program, *words],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until


HANGS = """
import asyncio
from pathlib import Path
from sojourn.cli.main import entry
from sojourn.core.migration_messages import Propose
from sojourn.peers.peer import LinkPeer

ask = LinkPeer.ask

async def hanging(self, message):
    if isinstance(message, Propose):
        Path("hangs").touch()
        await asyncio.Event().wait()
    return await ask(self, message)

LinkPeer.ask = hanging
entry()
"""


def test_abort_ends_a_mover_that_lives_as_by_control_c(tmp_path: Path) -> None:
    here, there, hangs = tmp_path / "here", tmp_path / "there", tmp_path / "hangs"
    (tmp_path / "mover.py").write_text(HANGS)
    assert sojourn(here, "init", "-n", "box", "-m", "echo").returncode == 0
    try:
        with (
            process(there) as target,
            background(
                here,
                "move",
                "box",
                target.near,
                program=(sys.executable, tmp_path / "mover.py"),
                cwd=tmp_path,
            ) as mover,
        ):
            wait_for(hangs, mover)
            aborted = sojourn(here, "move", "abort", "box", "--json")
            _, err = mover.communicate(timeout=60)
            assert aborted.returncode == 0, aborted
            (one,) = answered(aborted)["capsules"]
            assert (one["state"], one["pending"]) == ("HOLDER", [])
            assert (mover.returncode, "move_cancelled" in err) == (130, True), err
            ran = sojourn(here, "run", "box", "still here", "-q")
            assert (ran.returncode, ran.stdout) == (0, "still here\n"), ran
            assert not [*(there / "arriving").glob("*/*")]
    finally:
        end_daemon(there)


def test_abort_ends_a_mover_that_waits_for_a_process_which_runs_on(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    call = "touch began; until [ -e go ]; do sleep 0.02; done"
    steps = [
        {"name": "call", "calls": [{"tool": "shell", "args": {"command": call}}]},
        {"name": "end", "text": "Done."},
    ]
    (tmp_path / "s.json").write_text(json.dumps({"ledger": "ledger", "steps": steps}))
    model = f"scripted/{tmp_path}/s.json"
    (tmp_path / "w").mkdir()
    made = sojourn(here, "init", "-n", "box", "-m", model, "--workspace", str(tmp_path / "w"))
    assert made.returncode == 0, made
    (capsule,) = (one.stem for one in (here / "ledger").iterdir() if one.suffix == ".json")
    remember(machine(there).state, CapsuleId(capsule), model)
    try:
        with process(there) as target, background(here, "run", "box", "go", "-q") as runner:
            wait_for(tmp_path / "w" / "began", runner)
            words = ("move", "box", target.near, "--grace", "600")
            with background(here, *words) as mover:
                wait_for(here / "releases" / capsule, mover)
                aborted = sojourn(here, "move", "abort", "box", "--json")
                assert aborted.returncode == 0, aborted
                assert mover.wait(60) == 130
            (tmp_path / "w" / "go").touch()
            out, err = runner.communicate(timeout=60)
            assert (runner.returncode, out) == (0, "Done.\n"), err
    finally:
        end_daemon(there)


def test_a_move_whose_mover_died_frozen_is_over_for_whoever_settles(template: Path) -> None:
    two = two_in(template)
    ports, target = two.machine("a").ports, two.machine("b").ports.key.machine()
    address = f"unix://{template}/nobody.sock"
    move = MoveId(ports.randomness.token(16).hex())
    with ports.lock.acquire(two.capsule):
        write(ports, two.capsule, Begin(move=move, target=target, address=address, offer=NOTHING))
        frozen = ports.ledger.load(two.capsule)
        assert frozen is not None
        assert (frozen.state, pending(ports, frozen)) == ("FROZEN", ())
    assert [one.address for one in pending(ports, frozen)] == [address]
    found = asyncio.run(settle_capsule(two.machine("a"), two.capsule))
    assert two.state("a") == "HOLDER"
    assert [one.code for one in found.failures] == ["peer_unreachable"]
    assert [(one.what, one.address) for one in found.open] == [("tells", address)]


def test_a_capsule_that_another_machine_holds_for_certain_is_claimed_by_force_only(
    template: Path,
) -> None:
    two = two_in(template)
    assert asyncio.run(attempt(two, Link(two, "a", "b"))) == "moved"
    machine, place = two.machine("a"), two.place("a")
    before = machine.ports.ledger.load(two.capsule)
    with pytest.raises(HeldElsewhereError) as refused:
        asyncio.run(claim(machine, place, agreed=lambda _: True))
    assert refused.value.code == "moved_away"
    assert "claim --forced" in refused.value.hint
    assert machine.ports.ledger.load(two.capsule) == before
    assert before is not None
    asyncio.run(claim(machine, place, agreed=lambda _: True, forced=True))
    after = machine.ports.ledger.load(two.capsule)
    assert after is not None
    assert (after.state, after.epoch >= before.floor + FORCED_STEP) == ("HOLDER", True)
