"""The agent's notes: edits by the agent and by people, at the same time and across a crash."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.stage import Stage, killed_in_call
from sojourn import Agent
from sojourn.agent.notes import Edited, edit_notes, edits_of, notes_at, notes_on_disk
from sojourn.errors import HeldElsewhereError, LimitError
from sojourn.format.event import Event, Memory, ToolIntent, ToolOutcome
from sojourn.format.joining import join
from sojourn.format.working_memory import MAX_EDIT

FILE = "memory/working_memory.md"
NEW = "# Working memory\n"


def write(section: str, text: str) -> dict[str, Any]:
    return {"calls": [{"tool": "memory", "args": {"section": section, "text": text}}]}


def notes(stage: Stage) -> str:
    return (stage.capsule / FILE).read_text()


def before_call(number: int, action: Callable[[], object]) -> Callable[[Agent, Event], None]:
    """Do something while the intent of that call is the last event."""
    seen: list[Event] = []

    def each(_: Agent, event: Event) -> None:
        if isinstance(event.body, ToolIntent):
            seen.append(event)
            if len(seen) == number:
                action()

    return each


def edit(stage: Stage, before: str, after: str) -> Edited:
    return asyncio.run(edit_notes(stage.machine, stage.make(), before=before, after=after))


def test_the_agent_writes_a_section_and_the_file_follows(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "one"), write("Plan", "two"), {"text": "Done."}])
    stage.run()
    assert notes(stage) == NEW + "\n## Plan\n\ntwo\n"
    assert [body.origin for body in stage.bodies(Memory)] == ["created", "tool", "tool"]
    assert stage.verify() == []


def test_an_edit_and_its_outcome_are_one_append(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "one"), {"text": "Done."}])
    stage.run()
    events = stage.events()
    at = next(n for n, e in enumerate(events) if isinstance(e.body, Memory) and n > 3)
    assert [e.header.kind for e in events[at : at + 3]] == [
        "memory",
        "tool_outcome",
        "model_intent",
    ]
    assert len({event.header.batch for event in events[at : at + 3]}) == 1


def test_an_edit_that_changes_nothing_is_no_event(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "one"), write("Plan", "one"), {"text": "Done."}])
    stage.run()
    assert len(stage.bodies(Memory)) == 2


def test_the_agent_reads_its_notes(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path, [write("Plan", "one"), {"calls": [{"tool": "memory", "args": {}}]}, {"text": "D"}]
    )
    stage.run()
    assert "## Plan\\n\\none" in repr(stage.bodies(ToolOutcome)[-1])


def test_a_kill_between_the_event_and_the_file_never_reverts_the_notes(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "one"), {"text": "Done."}])
    killed_in_call(
        stage,
        "from sojourn.drive.hold import Hold\n"
        "async def killed(self): die()\n"
        "Hold._write_notes = killed\n"
        "stage.run()\n",
    )
    assert notes(stage) == NEW
    stage.take()
    assert notes(stage) == NEW + "\n## Plan\n\none\n"
    assert [body.origin for body in stage.bodies(Memory)] == ["created", "tool"]
    assert stage.verify() == []


def test_a_hand_edit_while_the_agent_edits_keeps_both(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "one"), {"text": "Done."}])
    by_hand = before_call(1, lambda: (stage.capsule / FILE).write_text("# Mine\n"))
    stage.run(each=by_hand)
    assert notes(stage) == join(NEW, NEW + "\n## Plan\n\none\n", "# Mine\n")
    assert [body.origin for body in stage.bodies(Memory)] == ["created", "tool", "hand"]
    assert stage.verify() == []


def test_an_edit_by_command_while_nobody_runs_is_recorded_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "Done."}])
    stage.run()
    assert edit(stage, NEW, "# Mine\n").recorded
    assert notes(stage) == "# Mine\n"
    assert stage.bodies(Memory)[-1].origin == "hand"
    assert stage.machine.look(stage.make()).waiting == 0


def test_an_edit_by_command_during_a_turn_is_read_at_the_next_step(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "one"), {"text": "Done."}])
    done: list[Edited] = []

    def send() -> None:
        from threading import Thread

        thread = Thread(target=lambda: done.append(edit(stage, NEW, "# Mine\n")))
        thread.start()
        thread.join()

    stage.run(each=before_call(1, send))
    assert not done[0].recorded
    assert notes(stage) == join(NEW, NEW + "\n## Plan\n\none\n", "# Mine\n")
    assert stage.machine.look(stage.make()).waiting == 0


def test_an_edit_that_comes_a_second_time_changes_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "Done."}])
    place = stage.make()
    edit(stage, NEW, "one\n")
    edit(stage, "one\n", "two\n")
    from sojourn.format.working_memory import digest_of
    from sojourn.ids import RequestId
    from sojourn.ports import Message

    again = Message(
        request=RequestId("r"), author="user", text="one\n", kind="memory", before=digest_of(NEW)
    )
    stage.machine.ports.inbox.put(place.capsule, again)
    stage.run()
    assert notes(stage) == "two\n"
    edit(stage, "two\n", "one\n")
    assert notes(stage) == "one\n"


def test_notes_that_are_too_long_are_refused_and_nothing_is_kept(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "x" * MAX_EDIT), {"text": "Done."}])
    with pytest.raises(LimitError):
        edit(stage, NEW, "x" * (MAX_EDIT + 1))
    stage.run()
    assert notes(stage) == NEW
    assert "memory_too_long" in repr(stage.events())


def test_an_edit_of_a_capsule_that_may_not_run_here_is_refused_and_not_kept(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "Done."}])
    stage.run()
    shutil.copytree(stage.capsule, tmp_path / "copy")
    copied = stage.machine.find(str(tmp_path / "copy"))
    with pytest.raises(HeldElsewhereError):
        asyncio.run(edit_notes(stage.machine, copied, before=NEW, after="# Mine\n"))
    assert stage.machine.look(stage.make()).waiting == 0


def test_secrets_are_masked_in_notes_and_in_their_file(tmp_path: Path) -> None:
    secret = "value-of-a-secret"
    stage = Stage(tmp_path, [write("Plan", secret), {"text": "D"}], environment={"A_TOKEN": secret})
    stage.run()
    edit(stage, notes(stage), notes(stage) + secret)
    assert secret not in notes(stage)
    assert secret.encode() not in stage.timeline().read_bytes()


def test_every_edit_can_be_read_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [write("Plan", "one"), write("Plan", "two"), {"text": "Done."}])
    stage.run()
    look = stage.machine.look(stage.make())
    edits = edits_of(look)
    assert [one.text for one in edits] == [
        NEW,
        NEW + "\n## Plan\n\none\n",
        NEW + "\n## Plan\n\ntwo\n",
    ]
    assert notes_at(look, edits[1].event) == edits[1].text
    (stage.capsule / FILE).write_text("by hand")
    assert notes_on_disk(look) == "by hand"
    assert notes_at(look, None) == edits[2].text
