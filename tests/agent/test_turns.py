"""Turns as people see them: messages, calls, limits, pauses."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from agent.stage import Stage
from sojourn import Agent, tool
from sojourn.drive.runner import MOST_HEARD
from sojourn.errors import HeldElsewhereError, UsageError
from sojourn.format.event import (
    Event,
    Input,
    ModelIntent,
    ModelOutcome,
    ToolIntent,
    ToolOutcome,
    TurnEnded,
)

TALK = [{"text": "Hello."}]
TWO_CALLS = [
    {"calls": [{"tool": "todo", "args": {"items": [{"text": "a"}]}}, {"tool": "list", "args": {}}]},
    {"text": "Done."},
]


def test_a_turn_goes_from_an_input_until_the_agent_rests(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    report = stage.run()
    assert (report.reason, report.text, report.model_calls) == ("rest", "Hello.", 1)
    assert stage.kinds() == ["input", "turn_taken", "model_intent", "model_outcome", "turn_ended"]
    assert stage.verify() == []


def test_the_turn_is_named_by_its_first_input(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    report = stage.run()
    first = next(event for event in stage.events() if isinstance(event.body, Input))
    assert report.turn == first.id


def test_an_outcome_and_the_next_intent_are_one_append(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TWO_CALLS)
    stage.run()
    batches: dict[int, list[str]] = {}
    for event in stage.events()[4:]:
        batches.setdefault(event.header.batch, []).append(event.header.kind)
    assert list(batches.values()) == [
        ["input", "turn_taken", "model_intent"],
        ["model_outcome", "tool_intent"],
        ["tool_outcome", "tool_intent"],
        ["tool_outcome", "model_intent"],
        ["model_outcome", "turn_ended"],
    ]


def test_a_document_changes_in_the_event_of_its_outcome(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TWO_CALLS)
    stage.run()
    changed = [body for body in stage.bodies(ToolOutcome) if body.documents]
    assert [(change.name, change.version) for body in changed for change in body.documents] == [
        ("todo", 1)
    ]


def test_a_message_with_a_known_request_id_is_one_input(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()
    for _ in range(2):
        asyncio.run(stage.machine.send(place, "go", request="r1"))
    stage.run(None)
    asyncio.run(stage.machine.send(place, "go", request="r1"))
    assert stage.run(None).reason == "idle"
    assert len(stage.bodies(Input)) == 1
    assert stage.machine.look(place).waiting == 0


def test_a_known_request_id_with_other_words_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()
    asyncio.run(stage.machine.send(place, "go", request="r1"))
    with pytest.raises(UsageError) as refused:
        asyncio.run(stage.machine.send(place, "stop", request="r1"))
    assert refused.value.code == "request_reused"


def test_a_message_that_comes_during_a_turn_is_seen_at_the_next_step(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TWO_CALLS)

    def send(_: Agent, event: Event) -> None:
        if isinstance(event.body, ToolIntent) and event.body.index == 0:
            inbox = stage.machine.ports.inbox
            from sojourn.ids import RequestId
            from sojourn.ports import Message

            place = stage.machine.find(str(stage.capsule))
            inbox.put(place.capsule, Message(request=RequestId("late"), author="me", text="also"))

    stage.run(each=send)
    kinds = stage.kinds()
    second = [number for number, kind in enumerate(kinds) if kind == "input"][1]
    assert kinds[second + 1] == "model_intent"
    assert kinds.count("turn_taken") == 1


def test_a_message_after_the_end_begins_another_turn(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}, {"text": "Two."}])
    first, second = stage.run("a"), stage.run("b")
    assert (first.text, second.text) == ("One.", "Two.")
    assert first.turn != second.turn


def test_a_turn_ends_at_its_limit_and_the_next_message_goes_on(tmp_path: Path) -> None:
    looping = [{"name": "again", "calls": [{"tool": "list", "args": {}}], "next": "again"}]
    stage = Stage(tmp_path, looping)
    report = stage.run(max_model_calls=3)
    assert (report.reason, report.model_calls) == ("limit", 3)
    assert [body.reason for body in stage.bodies(TurnEnded)] == ["limit"]
    assert stage.run("more", max_model_calls=1).reason == "limit"


def test_a_failed_model_call_pauses_the_turn_and_resume_asks_again(tmp_path: Path) -> None:
    failing = {"text": "Late.", "fail": "rate_limited", "unless": "ready"}
    stage = Stage(tmp_path, [failing])
    report = stage.run()
    assert report.reason == "model"
    assert report.failure is not None
    assert report.failure.code == "rate_limited"
    (tmp_path / "ready").touch()
    assert stage.resume().text == "Late."
    assert [body.status for body in stage.bodies(ModelOutcome)] == ["failed", "done"]


def test_a_tool_that_does_not_exist_is_answered_and_the_turn_goes_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"calls": [{"tool": "fly", "args": {}}]}, {"text": "A pity."}])
    assert stage.run().text == "A pity."
    (outcome,) = stage.bodies(ToolOutcome)
    assert (outcome.status, outcome.failure.code) == ("failed", "no_tool")


def test_broken_arguments_are_kept_as_they_came_and_answered(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"calls": [{"tool": "read", "args": '{"path": "a'}]}, {"text": "Oh."}])
    assert stage.run().text == "Oh."
    (outcome,) = stage.bodies(ToolOutcome)
    assert outcome.failure.code == "arguments_broken"
    (reply, _) = stage.bodies(ModelOutcome)
    assert (reply.parts[0].args, reply.parts[0].broken) == ('{"path": "a', True)


def test_another_model_is_an_event_and_a_line(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": "One."}])
    stage.run()

    place = stage.make()

    async def inside() -> None:
        async with stage.machine.hold(place, model="echo") as agent:
            await agent.run("again")

    asyncio.run(inside())
    assert stage.kinds().count("configured") == 1
    assert [body.issuer.provider for body in stage.bodies(ModelIntent)] == ["scripted", "echo"]


def test_an_agent_without_a_model_says_what_could_be_used(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK, environment={"OPENAI_API_KEY": "sk-0123456789"})
    asyncio.run(stage.machine.create(str(stage.capsule), model=None))
    with pytest.raises(UsageError) as refused:
        stage.run()
    assert refused.value.code == "no_model"
    assert "OPENAI_API_KEY" in refused.value.state
    assert "sk-0123456789" not in str(vars(refused.value))


def test_the_second_opener_is_told_who_holds_and_may_look_and_send(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()

    async def inside() -> None:
        async with stage.machine.hold(place):
            other = stage.machine
            with pytest.raises(HeldElsewhereError) as refused:
                async with other.hold(place):
                    pass
            assert refused.value.code == "held_elsewhere"
            look = other.look(place)
            assert look.held_by is not None
            assert look.events == 4
            await other.send(place, "from outside")
            assert other.look(place).waiting == 1

    asyncio.run(inside())
    assert stage.run(None).text == "Hello."


def test_a_worker_takes_what_was_sent_and_acknowledges_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()
    asyncio.run(stage.machine.send(place, "go"))
    assert [job.capsule for job in stage.machine.jobs()] == [place.capsule]
    assert _worked(stage) == 1
    assert stage.machine.jobs() == ()
    assert stage.kinds()[-1] == "turn_ended"


def test_the_queue_is_rebuilt_when_it_is_lost(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TALK)
    place = stage.make()
    asyncio.run(stage.machine.send(place, "go"))
    for file in (tmp_path / "state").glob("queue.sqlite3*"):
        file.unlink()
    assert _worked(stage) == 1


def _worked(stage: Stage) -> int:
    from sojourn.agent import Unwatched

    failures: list[object] = []
    turns = asyncio.run(
        stage.machine.work(
            watch=False,
            observer_for=lambda _: Unwatched(),
            stop=asyncio.Event(),
            failed=lambda _, error: failures.append(error),
        )
    )
    assert failures == []
    return turns


def test_secret_values_never_reach_the_capsule(tmp_path: Path) -> None:
    @tool(replay="safe")
    async def leak() -> str:
        """Says too much."""
        return "the key is sk-very-secret-value"

    stage = Stage(
        tmp_path,
        [{"text": "sk-very-secret-value", "calls": [{"tool": "leak", "args": {}}]}, {"text": "."}],
        tools=[leak],
        environment={"OPENAI_API_KEY": "sk-very-secret-value"},
    )
    stage.run("I found sk-very-secret-value")
    written = b"".join(p.read_bytes() for p in stage.capsule.rglob("*") if p.is_file())
    assert b"sk-very-secret-value" not in written
    assert written.count(b"[masked OPENAI_API_KEY]") >= 3


def test_a_large_output_is_a_blob_with_its_beginning_in_the_log(tmp_path: Path) -> None:
    @tool(replay="safe")
    async def flood() -> str:
        """Says much."""
        return "x" * 300_000

    stage = Stage(
        tmp_path, [{"calls": [{"tool": "flood", "args": {}}]}, {"text": "."}], tools=[flood]
    )
    stage.run("y" * 50_000)
    assert all(len(line) < 20_000 for line in stage.timeline().read_bytes().splitlines())
    assert stage.verify() == []
    (said,) = stage.bodies(Input)
    assert said.parts[0].text.size == 50_000
    payload = json.dumps(_context(stage))
    assert "y" * 50_000 in payload


def _context(stage: Stage) -> object:
    place = stage.make()

    async def inside() -> object:
        async with stage.machine.hold(place) as agent:
            return agent.context().payload

    return asyncio.run(inside())


def test_many_messages_are_heard_in_appends_of_bounded_size(tmp_path: Path) -> None:
    stage = Stage(tmp_path, TWO_CALLS)
    place = stage.make()
    for number in range(MOST_HEARD + 1):
        asyncio.run(stage.machine.send(place, f"message {number}"))
    stage.run(None)
    batches = Counter(e.header.batch for e in stage.events() if isinstance(e.body, Input))
    assert sorted(batches.values()) == [1, MOST_HEARD]
    assert stage.machine.look(place).waiting == 0
