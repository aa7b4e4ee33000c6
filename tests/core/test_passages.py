"""What of a log can be found: its words for people and models, cut into passages."""

from typing import Any

import pytest

from sojourn.core.passages import (
    MOST_PIECES,
    PIECE,
    Passage,
    Passages,
    cut,
    of_notes,
)
from sojourn.format.event import (
    AnyBody,
    DocumentChange,
    Event,
    Failure,
    Header,
    Input,
    Issuer,
    Memory,
    ModelOutcome,
    ToolIntent,
    ToolOutcome,
)
from sojourn.format.parts import CallPart, Opaque, ReasoningPart, Text, TextPart
from sojourn.format.working_memory import digest_of
from sojourn.ids import (
    CallKey,
    Clock,
    Epoch,
    EventId,
    Incarnation,
    MachineId,
    RequestId,
    RunnerId,
    Seq,
    TurnId,
)

TURN = TurnId("7" * 64)
RUNNER = RunnerId("5" * 32)
ISSUER = Issuer(provider="a", api="openai_chat", scope="default", model="b")


def event(body: AnyBody | None, *, number: int = 4, kind: str = "input") -> Event:
    header = Header(
        batch=Seq(number),
        body="b" * 64,
        clock=Clock(number + 1),
        epoch=Epoch(1),
        incarnation=Incarnation("1" * 32),
        kind=kind,
        machine=MachineId("a" * 64),
        prev=None,
        seq=Seq(number),
        time="2026-01-01T00:00:00.000Z",
    )
    return Event(id=EventId(f"{number:064x}"), header=header, body=body)


def said(text: str) -> Input:
    return Input(request=RequestId("r"), author="user", parts=(TextPart(text=text),))


def replied(*parts: Any) -> ModelOutcome:
    return ModelOutcome(
        turn=TURN, call=CallKey("c" * 64), status="done", issuer=ISSUER, parts=parts
    )


def intent(tool: str, call: str) -> ToolIntent:
    return ToolIntent(
        turn=TURN,
        call=CallKey(call),
        runner=RUNNER,
        requested_by=EventId("9" * 64),
        index=0,
        tool=tool,
        replay="safe",
    )


def outcome(text: str, call: str = "d" * 64, **more: Any) -> ToolOutcome:
    return ToolOutcome(
        turn=TURN, call=CallKey(call), status="done", parts=(TextPart(text=text),), **more
    )


def plain(text: Text) -> str:
    return text if isinstance(text, str) else text.preview


def texts(*bodies: AnyBody | None) -> list[str]:
    fold = Passages(plain)
    return [p.text for n, body in enumerate(bodies) for p in fold.of(event(body, number=n), n)]


def test_what_people_models_and_tools_say_can_be_found() -> None:
    assert texts(said("a question"), replied(TextPart(text="an answer")), outcome("a result")) == [
        "a question",
        "an answer",
        "a result",
    ]


def test_what_a_model_asks_for_can_be_found_by_the_tool_and_its_arguments() -> None:
    assert texts(replied(CallPart(tool="shell", args='{"command":"make"}'))) == [
        'shell {"command":"make"}'
    ]


def test_private_reasoning_is_not_searched() -> None:
    private = Opaque(kind="anthropic.thinking", data='"secret thoughts"')
    assert texts(replied(ReasoningPart(text="thoughts", opaque=private))) == []


def test_earlier_searches_are_not_found_again() -> None:
    asked = replied(CallPart(tool="recall", args='{"question":"x"}'))
    assert texts(asked, intent("recall", "d" * 64), outcome("found")) == []
    assert texts(intent("shell", "d" * 64), outcome("found")) == ["found"]


def test_a_failure_without_a_result_is_found_by_its_message() -> None:
    failed = ToolOutcome(
        turn=TURN,
        call=CallKey("d" * 64),
        status="failed",
        failure=Failure(code="x", message="no such host"),
    )
    assert texts(failed) == ["no such host"]


def test_a_redacted_body_has_no_passage() -> None:
    assert texts(None) == []


def test_earlier_versions_of_the_notes_are_no_passages_of_events() -> None:
    note = Memory(origin="tool", before=None, result=digest_of("x"), text="x")
    assert texts(note) == []


def test_only_the_present_value_of_a_document_can_be_found() -> None:
    fold = Passages(plain)
    for number, value in enumerate(('["old"]', '["new"]')):
        change = DocumentChange(name="todo", schema="s/1", version=number + 1, value=value)
        list(fold.of(event(outcome("ok", documents=(change,)), number=number), number + 1))
    (found,) = fold.of_documents()
    assert (found.text, found.place, found.number) == ('["new"]', "todo", 2)
    assert found.key == ("document", "todo", 0)


def notes(text: str) -> list[Passage]:
    return list(of_notes(event(None, kind="memory"), 5, text))


def test_notes_are_found_section_by_section() -> None:
    found = notes("before\n# One\nfirst\n\n## Two\nsecond\n# Empty\n")
    assert [(p.place, p.text) for p in found] == [
        ("before", "before"),
        ("# One", "# One\nfirst"),
        ("## Two", "## Two\nsecond"),
    ]


def test_two_sections_of_one_heading_have_passages_of_their_own() -> None:
    keys = [passage.key for passage in notes("# A\none\n# A\ntwo\n")]
    assert keys == [("memory", "# A", 0), ("memory", "# A", 1)]


@pytest.mark.parametrize("gap", ["\n\n", "\n", " "])
def test_a_long_text_is_cut_where_something_ends(gap: str) -> None:
    first, second = "a" * (PIECE - 100), "b" * 400
    found = list(cut(event(None), 5, kind="input", place="p", text=first + gap + second))
    assert [p.text for p in found] == [first, second]
    assert [p.part for p in found] == [0, 1]


def test_a_text_without_an_end_is_cut_all_the_same() -> None:
    found = [
        p.text for p in cut(event(None), 5, kind="input", place="p", text="x" * (PIECE * 2 + 5))
    ]
    assert [len(text) for text in found] == [PIECE, PIECE, 5]


def test_of_a_very_long_text_the_beginning_is_found() -> None:
    found = list(cut(event(None), 5, kind="input", place="p", text="word " * PIECE * MOST_PIECES))
    assert len(found) == MOST_PIECES
    assert all(len(p.text) <= PIECE for p in found)
