"""A capsule goes from machine to machine, whole and once."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from moves.pair import DirectPeer, Pair, Silent
from sojourn.core.notices import MOVED
from sojourn.drive.settling import settle
from sojourn.errors import HeldElsewhereError, MigrationError, StoppedError
from sojourn.format.capsule_kinds import Activated
from sojourn.format.event import Event, ToolOutcome
from sojourn.render import render_bytes

TALK = [{"name": name, "text": name} for name in ("One.", "Two.", "Three.", "Four.")]


def events(pair: Pair, name: str) -> list[Event]:
    side = pair.sides[name]
    return list(side.machine.look(side.place(pair.capsule)).events_of())


def test_an_agent_that_moved_goes_on_there(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    (tmp_path / "w" / "file.txt").write_text("work")
    moved = pair.move("a", "b")
    assert (moved.outcome, moved.refused) == ("moved", None)
    assert pair.states() == {"a": "RETIRED", "b": "HOLDER", "c": "NONE"}
    assert pair.run("b", "go on").text == "Two."
    place = pair.sides["b"].place(pair.capsule)
    assert place.workspace is not None
    assert Path(place.workspace, "file.txt").read_text() == "work"
    with pytest.raises(HeldElsewhereError) as refused:
        pair.run("a", "here too")
    assert refused.value.code == "moved_away"


def test_its_first_event_there_says_from_where_it_goes_on_and_the_model_is_told(
    tmp_path: Path,
) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    last = events(pair, "a")[-1]
    pair.move("a", "b", label="the big box")
    pair.run("b", "go on")
    arrived = next(event for event in events(pair, "b") if isinstance(event.body, Activated))
    body = arrived.body
    assert isinstance(body, Activated)
    sealed = events(pair, "a")[-1]
    assert sealed.header.kind == "sealed"
    assert (body.continues, body.capsule, body.label) == (sealed.id, pair.capsule, "the big box")
    assert (arrived.header.seq, arrived.header.epoch) == (0, last.header.epoch + 1)
    assert body.source == pair.sides["a"].machine.ports.key.machine()

    def sent(agent: Any) -> Any:
        async def shown() -> bytes:
            return render_bytes(agent.context().payload)

        return shown()

    assert b"the big box" in pair.run("b", act=sent)
    assert MOVED.encode() not in pair.run("b", act=sent)


def test_there_and_back_leaves_one_folder_on_each_machine(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    for source, target in (("a", "b"), ("b", "a"), ("a", "b"), ("b", "c"), ("c", "b")):
        moved = pair.move(source, target)
        assert moved.outcome == "moved", moved
        pair.run(target, act=lambda agent: agent.take())
    assert pair.states() == {"a": "RETIRED", "b": "HOLDER", "c": "RETIRED"}
    for side in pair.sides.values():
        folders = os.listdir(side.machine.state.capsules)
        works = os.listdir(side.machine.state.workspaces)
        assert (len(folders), len(works) <= 1) == (1, True)
        found = [str(one) for one in side.machine.verify(side.place(pair.capsule))]
        assert found == []
    assert (tmp_path / "w").is_dir()


def test_messages_that_wait_go_along_and_later_ones_are_sent_on(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    a, b = pair.sides["a"], pair.sides["b"]

    def send(text: str) -> None:
        machine = a.machine
        asyncio.run(machine.send(a.place(pair.capsule), text))

    send("before")
    moved = pair.move("a", "b")
    assert (moved.outcome, moved.forwarded) == ("moved", 1)
    assert a.machine.ports.queue.jobs() == ()
    send("after")
    assert a.machine.ports.queue.jobs() == ()
    ports = a.machine.ports
    peer = DirectPeer(b, ports.key.machine())
    for _ in range(2):
        asyncio.run(settle(ports, peer, pair.capsule, a.place(pair.capsule).folder))
    assert ports.inbox.items(pair.capsule) == ()
    texts = [one.message.text for one in b.machine.ports.inbox.items(pair.capsule)]
    assert texts == ["before", "after"]
    assert [job.capsule for job in b.machine.ports.queue.jobs()] == [pair.capsule]
    assert pair.run("b", act=lambda agent: agent.take()).text == "Two."


def test_a_machine_that_is_not_fit_is_not_moved_to(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    Path(pair.sides["b"].machine.state.scripts, pair.capsule).unlink()
    before = len(events(pair, "a"))
    moved = pair.move("a", "b")
    assert moved.outcome == "unfit"
    assert [one.code for one in moved.checklist if not one.ok] == ["script_missing"]
    assert pair.states()["a"] == "HOLDER"
    assert len(events(pair, "a")) == before
    assert pair.run("a", "go on").text == "Two."


def test_a_dry_run_changes_nothing_and_sends_no_contents(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")
    (tmp_path / "w" / "big").write_bytes(os.urandom(200_000))
    record = pair.sides["a"].machine.ports.ledger.load(pair.capsule)
    watcher = Silent()
    moved = pair.move("a", "b", dry=True, watcher=watcher)
    assert moved.outcome == "fit"
    assert {one.what for one in moved.checklist} >= {"timeline", "secrets", "tools", "model"}
    assert watcher.bytes < 100_000
    assert pair.sides["a"].machine.ports.ledger.load(pair.capsule) == record
    assert pair.states()["b"] == "NONE"


@pytest.mark.parametrize("phase", ["propose", "delta", "prepare"])
def test_a_move_that_is_cancelled_leaves_the_agent_here_and_nothing_there(
    phase: str, tmp_path: Path
) -> None:
    pair = Pair(tmp_path, TALK)
    pair.run("a", "hello")

    async def cancelled() -> Any:
        stop = asyncio.Event()

        class Stopping(Silent):
            def phase(self, phase_: str) -> None:
                if phase_ == phase:
                    stop.set()

        return await pair.moving("a", "b", watcher=Stopping(), stop=stop)

    moved = asyncio.run(cancelled())
    assert moved.outcome == "cancelled"
    assert moved.refused is not None
    assert moved.refused.code == "move_cancelled"
    assert pair.states() == {"a": "HOLDER", "b": "NONE", "c": "NONE"}
    arriving = Path(pair.sides["b"].machine.state.arriving)
    assert list(arriving.glob("*/*")) == []
    assert pair.run("a", "go on").text == "Two."
    assert pair.move("a", "b").outcome == "moved"


def test_a_capsule_is_not_moved_to_where_it_is(tmp_path: Path) -> None:
    pair = Pair(tmp_path, TALK)
    with pytest.raises(MigrationError) as refused:
        pair.move("a", "a")
    assert refused.value.code == "same_machine"


def running(pair: Pair) -> "subprocess.Popen[bytes]":
    """A process of its own that runs the agent."""
    machine = pair.sides["a"].machine
    command = [sys.executable, "-m", "sojourn", "run", "agent", "go on please", "-q"]
    process = subprocess.Popen(
        command,
        env={**machine.environment, "HOME": str(pair.folder)},
        cwd=pair.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while not (pair.folder / "began").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
    return process


def script(folder: Path, command: str) -> list[dict[str, Any]]:
    begun = f"touch {folder}/began; {command}"
    return [
        {"name": "call", "calls": [{"tool": "shell", "args": {"command": begun}}]},
        {"name": "end", "text": "Done."},
    ]


def test_a_process_that_runs_it_lets_go_after_its_call(tmp_path: Path) -> None:
    wait = f"while [ ! -e {tmp_path}/go ]; do :; done; echo done"
    pair = Pair(tmp_path, script(tmp_path, wait))
    process = running(pair)

    class Going(Silent):
        def phase(self, phase: str) -> None:
            super().phase(phase)
            if phase == "stop":
                # Once the mover has asked for the capsule, and not before.
                asyncio.get_running_loop().call_soon((tmp_path / "go").touch)

    moved = pair.move("a", "b", grace=60.0, watcher=Going())
    out, err = process.communicate(timeout=60)
    assert moved.outcome == "moved", (moved, err)
    assert process.returncode == 5, (out, err)
    assert b"moved_away" in err
    calls = [event.body for event in events(pair, "b") if isinstance(event.body, ToolOutcome)]
    assert [call.status for call in calls] == ["done"]
    assert pair.run("b", act=lambda agent: agent.resume()).text == "Done."


def test_a_call_that_takes_longer_than_its_grace_is_ended_and_unknown(tmp_path: Path) -> None:
    pair = Pair(tmp_path, script(tmp_path, "sleep 600"))
    process = running(pair)
    moved = pair.move("a", "b", grace=0.0)
    _, err = process.communicate(timeout=60)
    assert (moved.outcome, process.returncode) == ("moved", 5), (moved, err)
    calls = [event.body for event in events(pair, "a") if isinstance(event.body, ToolOutcome)]
    assert [call.status for call in calls] == ["unknown"]
    assert pair.run("b", act=lambda agent: agent.resume()).text == "Done."
    arrived = [event.body for event in events(pair, "b") if isinstance(event.body, Activated)]
    assert arrived[0].unknown == (calls[0].call,)


def test_a_second_move_with_less_grace_ends_the_call_that_the_first_would_have_waited_for(
    tmp_path: Path,
) -> None:
    pair = Pair(tmp_path, script(tmp_path, "sleep 600"))
    process = running(pair)

    async def cancelled() -> Any:
        stop = asyncio.Event()

        class Stopping(Silent):
            def phase(self, phase: str) -> None:
                if phase == "stop":
                    asyncio.get_running_loop().call_later(0.5, stop.set)

        return await pair.moving("a", "b", watcher=Stopping(), stop=stop, grace=600.0)

    with pytest.raises(StoppedError):
        asyncio.run(cancelled())
    moved = pair.move("a", "b", grace=0.0)
    _, err = process.communicate(timeout=60)
    assert (moved.outcome, process.returncode) == ("moved", 5), (moved, err)


def test_a_process_whose_agent_was_not_moved_after_all_goes_on(tmp_path: Path) -> None:
    pair = Pair(tmp_path, script(tmp_path, "sleep 600"))
    process = running(pair)

    async def cancelled() -> Any:
        stop = asyncio.Event()

        class Stopping(Silent):
            def phase(self, phase: str) -> None:
                if phase == "propose":
                    stop.set()

        return await pair.moving("a", "b", watcher=Stopping(), stop=stop, grace=0.0)

    moved = asyncio.run(cancelled())
    out, err = process.communicate(timeout=60)
    assert moved.outcome == "cancelled", moved
    assert (process.returncode, out) == (0, b"Done.\n"), err
    assert pair.states() == {"a": "HOLDER", "b": "NONE", "c": "NONE"}
