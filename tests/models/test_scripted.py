"""A scripted model finds its place from the request alone, through the real renderer and reader."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from models.loopback import CHAT, KEY, Clock, Dice, once
from sojourn.core.view import Call, Entry, Notice, Prompt, Replied, Result, Said
from sojourn.errors import CallError
from sojourn.format.event import Failure, Options, ToolSpec
from sojourn.format.parts import CallPart, TextPart
from sojourn.ids import CallKey, EventId
from sojourn.models.choose import AnyModel, open_model
from sojourn.models.script import Script
from sojourn.models.walk import find_step
from sojourn.render import Target, dialect, render_bytes
from sojourn.testing.strict import openai_chat

TOOL = ToolSpec(name="t", description="", schema='{"type":"object"}', replay="report")
Answering = Callable[[CallPart], Result]


def done(text: str) -> Result:
    return Result(event=EventId("e" * 64), status="done", parts=(TextPart(text=text),))


def unknown() -> Result:
    failure = Failure(code="interrupted", message="it was cut off")
    return Result(event=EventId("e" * 64), status="unknown", parts=(), failure=failure)


@dataclass
class Run:
    """A tiny driver: keeps the entries that a log would, and asks the model until it rests."""

    folder: Path
    script: dict[str, object]
    entries: list[Entry] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        (self.folder / "s.json").write_text(json.dumps(self.script))

    def open(self, name: str = "s.json") -> AnyModel:
        """A new model each time: whatever it knows, it knows from the request."""
        path = self.folder / name
        return open_model(f"scripted/{path}", environment={}, clock=self.clock, randomness=Dice())

    def payload(self, model: AnyModel) -> dict[str, object]:
        prompt = Prompt(
            system="Be good.", tools=(TOOL,), options=Options(), memory="", entries=self.entries
        )
        target = Target(issuer=model.issuer, profile=model.profile)
        return dialect(model.profile.dialect).render(prompt, target, {}).payload

    def step(self, answer: Answering, name: str = "s.json") -> Replied:
        """One model call and its tool calls."""
        model = self.open(name)
        payload = self.payload(model)
        assert openai_chat.check(payload) is None
        reader = dialect(model.profile.dialect).reader()
        for event in asyncio.run(once(model, payload)):
            reader.feed(event)
        reply = reader.finish()
        assert reply.completed
        number = len(self.entries)
        parts = [part for part in reply.parts if isinstance(part, CallPart)]
        calls = tuple(
            Call(
                key=CallKey(f"{number:032d}{index:032d}"),
                part=part,
                started=True,
                result=answer(part),
            )
            for index, part in enumerate(parts)
        )
        entry = Replied(
            event=EventId(f"{number:064d}"),
            issuer=model.issuer,
            parts=reply.parts,
            calls=calls,
            stop=reply.stop,
            completed=True,
        )
        self.entries.append(entry)
        return entry

    def say(self, text: str) -> None:
        event = EventId(f"{len(self.entries):064d}")
        self.entries.append(Said(event=event, author="me", parts=(TextPart(text=text),)))

    def turn(self, text: str, answer: Answering = lambda _: done("ok")) -> list[str]:
        """The texts of all replies to this message."""
        self.say(text)
        texts: list[str] = []
        while True:
            reply = self.step(answer)
            texts += [p.text for p in reply.parts if isinstance(p, TextPart)]
            if not reply.calls:
                return texts
            assert len(texts) < 20


def asks(name: str, *tools: str, **fields: object) -> dict[str, object]:
    calls = [{"tool": "t", "args": {"of": tool}} for tool in tools or ("x",)]
    return {"name": name, "text": f"{name}!", "calls": calls, **fields}


def ends(name: str, **fields: object) -> dict[str, object]:
    return {"name": name, "text": f"{name}.", **fields}


def test_a_script_is_walked_from_step_to_step_and_turn_to_turn(tmp_path: Path) -> None:
    run = Run(
        tmp_path, {"steps": [asks("a"), asks("b", "x", "y"), ends("c"), asks("d"), ends("e")]}
    )
    assert run.turn("go") == ["a!", "b!", "c."]
    assert run.turn("more") == ["d!", "e."]


def test_every_kind_of_step_is_known_again_when_it_comes_back(tmp_path: Path) -> None:
    steps: list[object] = [
        {"text": '  Grüße\n\n😀 "quoted"  ', "calls": [{"tool": "t"}]},
        {"calls": [{"tool": "t", "args": {"b": [1, {"z": None}], "a": "é\n"}}]},
        {"reasoning": "hm", "text": "x", "calls": [{"tool": "t", "args": "{broken"}]},
        {"text": "y", "calls": [{"tool": "t", "args": "[1]"}, {"tool": "t", "args": {}}]},
        {"text": "same", "calls": [{"tool": "t"}]},
        {"text": "same", "calls": [{"tool": "t"}]},
        ends("end"),
    ]
    run = Run(tmp_path, {"steps": steps})
    run.turn("go")
    assert len(run.entries) == 1 + len(steps)


def test_white_space_does_not_make_another_reply(tmp_path: Path) -> None:
    run = Run(tmp_path, {"steps": [{"name": "a", "text": " one\n two "}, ends("b")]})
    said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "one two"}]
    script = Script.read(str(run.folder / "s.json"))
    assert find_step(script, {"messages": [*said, said[0]]}).name == "b"


def test_an_unknown_outcome_takes_its_own_way(tmp_path: Path) -> None:
    steps = [
        asks("write", next="end", if_unknown="look"),
        asks("look", if_result=[{"matches": "^absent$", "go": "write"}], next="end"),
        ends("end"),
    ]
    results = [unknown(), done("absent"), done("written")]
    run = Run(tmp_path, {"steps": steps})
    assert run.turn("go", lambda _: results.pop(0)) == ["write!", "look!", "write!", "end."]
    results = [unknown(), done("present")]
    run = Run(tmp_path, {"steps": steps})
    assert run.turn("go", lambda _: results.pop(0)) == ["write!", "look!", "end."]


def test_one_unknown_result_in_a_batch_is_enough(tmp_path: Path) -> None:
    steps = [asks("w", "x", "y", if_unknown="look"), ends("end"), ends("look")]
    run = Run(tmp_path, {"steps": steps})
    texts = run.turn("go", lambda part: unknown() if "y" in str(part.args) else done("ok"))
    assert texts == ["w!", "look."]


def test_results_choose_the_way_in_the_order_of_the_rules(tmp_path: Path) -> None:
    rules = [{"matches": "fail", "go": "mend"}, {"matches": ".", "go": "end"}]
    steps = [asks("test", if_result=rules), asks("mend", next="test"), ends("end")]
    results = [done("1 failed"), done("ok"), done("all passed")]
    run = Run(tmp_path, {"steps": steps})
    assert run.turn("go", lambda _: results.pop(0)) == ["test!", "mend!", "test!", "end."]


def test_inputs_start_the_section_that_they_name(tmp_path: Path) -> None:
    script: dict[str, object] = {
        "inputs": [{"matches": "(?i)mend", "go": "m"}, {"matches": "greet", "go": "g"}],
        "steps": [ends("g"), asks("m"), ends("m2", next="after"), ends("after")],
    }
    run = Run(tmp_path, script)
    assert run.turn("Please mend it") == ["m!", "m2."]
    assert run.turn("and then?") == ["after."]
    assert run.turn("greet me") == ["g."]
    assert run.turn("mend again") == ["m!", "m2."]
    run.say("greet"), run.step(lambda _: done(""))
    with pytest.raises(CallError) as caught:
        run.turn("what else?")
    assert caught.value.code == "script_ended"


def test_a_message_in_the_middle_of_a_turn_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, {"steps": [asks("a"), asks("b"), ends("c")]})
    run.say("go")
    run.step(lambda _: done("ok"))
    run.say("by the way")
    run.entries.append(Notice(event=EventId("f" * 64), text="files may be lost"))
    assert run.turn("and") == ["b!", "c."]


def test_notices_of_the_runtime_are_nobodys_input(tmp_path: Path) -> None:
    run = Run(tmp_path, {"steps": [ends("a"), ends("b")]})
    run.turn("go")
    run.entries.append(Notice(event=EventId("f" * 64), text="the machine was started again"))
    with pytest.raises(CallError) as caught:
        run.step(lambda _: done(""))
    assert caught.value.code == "script_ended"
    assert run.turn("more") == ["b."]


def test_the_replies_of_another_model_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"steps": [asks("o1", "theirs"), ends("o2")]}))
    run = Run(tmp_path, {"steps": [asks("a"), ends("b"), ends("c")]})
    run.say("go")
    run.step(lambda _: done("ok"))
    run.step(lambda _: done("ok"), "other.json")
    run.step(lambda _: done("ok"), "other.json")
    assert run.turn("on") == ["b."]
    assert run.turn("on") == ["c."]


def test_the_same_request_gets_the_same_bytes_whatever_the_key(tmp_path: Path) -> None:
    run = Run(tmp_path, {"steps": [asks("a"), ends("b")]})
    run.say("go")
    model = run.open()
    payload = run.payload(model)

    async def events(key: str) -> list[str]:
        return [event.data async for event in model.stream(payload, key=CallKey(key))]

    first = asyncio.run(events("1" * 64))
    assert asyncio.run(events("2" * 64)) == first
    assert len(first) > 6 and render_bytes(payload)


def test_a_reply_that_is_nearly_a_step_stops_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, {"steps": [asks("a"), ends("b")]})
    run.say("go")
    run.step(lambda _: done("ok"))
    run.script = {"steps": [asks("a", "another"), ends("b")]}
    run.__post_init__()
    with pytest.raises(CallError, match="message 2 of the request is nearly") as caught:
        run.step(lambda _: done("ok"))
    assert caught.value.code == "script_lost"


def test_a_step_fails_as_it_says_until_a_file_is_there(tmp_path: Path) -> None:
    steps = [{"name": "a", "text": "abc", "fail": "overloaded", "unless": "go"}]
    run = Run(tmp_path, {"steps": steps})
    run.say("go")
    with pytest.raises(CallError) as caught:
        run.step(lambda _: done(""))
    assert (caught.value.code, caught.value.retry) == ("overloaded", True)
    assert not caught.value.may_have_happened
    (tmp_path / "go").touch()
    assert run.turn("again") == ["abc"]


def test_a_step_can_break_off_after_some_pieces(tmp_path: Path) -> None:
    steps = [{"text": "abcdef", "fail": "stream_cut", "fail_after": 2}]
    run = Run(tmp_path, {"steps": steps})
    model = run.open()

    async def run_it() -> tuple[int, CallError]:
        count = 0
        with pytest.raises(CallError) as caught:
            async for _ in model.stream(CHAT, key=KEY):
                count += 1
        return count, caught.value

    count, error = asyncio.run(run_it())
    assert (count, error.code, error.may_have_happened) == (2, "stream_cut", True)


def test_a_step_waits_for_its_file_by_the_clock_that_it_was_given(tmp_path: Path) -> None:
    class Touching(Clock):
        async def wait(self, seconds: float) -> None:
            await super().wait(seconds)
            if len(self.waits) == 3:
                (tmp_path / "ready").touch()

    run = Run(tmp_path, {"steps": [{"text": "x", "wait_for": "ready"}]}, clock=Touching())
    assert run.turn("go") == ["x"]
    assert len(run.clock.waits) == 3


def ledger(path: Path) -> Sequence[object]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_ledger_has_a_line_for_each_call_before_its_reply(tmp_path: Path) -> None:
    steps = [{"name": "é", "text": "x", "fail": "overloaded", "unless": "go"}]
    run = Run(tmp_path, {"ledger": "calls.jsonl", "steps": steps})
    run.say("go")
    for _ in range(2):
        with pytest.raises(CallError):
            run.step(lambda _: done(""))
    assert ledger(tmp_path / "calls.jsonl") == [{"call": KEY, "step": "é"}] * 2


def test_a_ledger_that_cannot_be_written_stops_the_call(tmp_path: Path) -> None:
    run = Run(tmp_path, {"ledger": "no/calls.jsonl", "steps": [ends("a")]})
    run.say("go")
    with pytest.raises(CallError) as caught:
        run.step(lambda _: done(""))
    assert caught.value.code == "script_ledger"
    assert str(tmp_path) not in caught.value.message


def test_echo_answers_with_the_last_text_of_a_person(tmp_path: Path) -> None:
    model = open_model("echo", environment={}, clock=Clock(), randomness=Dice())
    run = Run(tmp_path, {"steps": [ends("a")]})
    run.open = lambda _name="": model
    assert run.turn("Grüße") == ["Grüße"]
    run.entries.append(Notice(event=EventId("f" * 64), text="note"))
    assert run.turn("two") == ["two"]
