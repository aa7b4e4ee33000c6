"""The transcript (docs/protocol.md#view): what a model is told of the log."""

from typing import Literal

import pytest

from core.stories import Story, started
from sojourn.core.turn import Decide, Take
from sojourn.core.view import HAND_EDIT, UNSYNCED, Call, Notice, Replied, Said, Transcript
from sojourn.errors import NotFoundError
from sojourn.format.event import (
    DocumentChange,
    Memory,
    Settled,
    ToolOutcome,
    Unknown,
)
from sojourn.format.parts import TextPart
from sojourn.ids import BlobId, CallKey

WORDS = (TextPart(text="order 17 was placed"),)


def call_of(story: Story, key: CallKey) -> Call:
    return story.transcript.call(key)


def notices(story: Story) -> list[Notice]:
    return [entry for entry in story.transcript.entries if isinstance(entry, Notice)]


def questioned() -> tuple[Story, CallKey]:
    """A call whose outcome is unknown, and a person who is asked."""
    story = started("ask")
    key = story.tool().key
    story.take("second")
    story.next("second")
    return story, key


def test_a_call_is_shown_where_it_was_asked_for_with_its_result() -> None:
    story = started("report", "safe")
    effect = story.tool()
    assert call_of(story, effect.key).started
    assert call_of(story, effect.key).result is None
    story.end(effect, "42")
    kinds = [type(entry) for entry in story.transcript.entries]
    assert kinds == [Said, Replied]
    replied = story.transcript.entries[1]
    assert isinstance(replied, Replied)
    first, second = replied.calls
    assert first.result is not None
    assert (first.result.status, first.result.parts) == ("done", (TextPart(text="42"),))
    assert (second.started, second.result) == (False, None)
    assert (first.replay, first.verify_with) == ("report", ("read",))


@pytest.mark.parametrize("decision", ["done", "failed"])
def test_a_settlement_that_comes_before_any_request_takes_the_results_place(
    decision: Literal["done", "failed"],
) -> None:
    story, key = questioned()
    story.give(Decide(decision=decision, by="user", parts=WORDS), "second")
    result = call_of(story, key).result
    assert result is not None
    assert (result.status, result.parts, result.failure) == (decision, WORDS, None)
    assert notices(story) == []


def test_a_settlement_that_comes_later_is_told_at_its_own_place() -> None:
    story = started("report")
    effect = story.tool()
    story.end(effect, status="unknown")
    story.model()
    before = call_of(story, effect.key)
    shown = tuple(story.transcript.entries)
    at = story.add(Settled(call=effect.key, decision="done", by="user", parts=WORDS))
    assert call_of(story, effect.key) == before
    assert tuple(story.transcript.entries[: len(shown)]) == shown
    (notice,) = notices(story)
    assert (notice.event, notice.attached) == (at, WORDS)
    assert "report" in notice.text and "done" in notice.text


def test_a_skipped_call_stays_unknown() -> None:
    story, key = questioned()
    story.give(Decide(decision="skip", by="user"), "second")
    story.model("second")
    result = call_of(story, key).result
    assert result is not None
    assert result.status == "unknown"
    assert notices(story) == []


def test_the_result_of_one_more_attempt_takes_the_unknown_ones_place() -> None:
    story, key = questioned()
    story.give(Decide(decision="retry", by="user"), "second")
    story.end(story.tool("second"), "second time", by="second")
    result = call_of(story, key).result
    assert result is not None
    assert (result.status, result.parts) == ("done", (TextPart(text="second time"),))


def test_a_result_that_a_request_has_shown_never_changes() -> None:
    """Only a log that was merged could hold such an outcome."""
    story = started("report")
    effect = story.tool()
    story.end(effect, "first")
    story.model()
    before = call_of(story, effect.key)
    story.add(story.outcome(effect.key, "second"))
    assert call_of(story, effect.key) == before


def test_settlements_and_outcomes_of_calls_that_nobody_asked_for_are_passed_over() -> None:
    story = started("report")
    shown = list(story.transcript.entries)
    nobody = CallKey("0" * 64)
    story.add(Settled(call=nobody, decision="done", by="user", parts=WORDS))
    story.add(story.outcome(nobody))
    assert story.transcript.entries == shown
    with pytest.raises(NotFoundError) as missing:
        story.transcript.call(nobody)
    assert missing.value.code == "no_call"


def test_a_reply_that_did_not_end_well_keeps_its_words_and_has_no_calls() -> None:
    story = Story()
    story.hear()
    story.take()
    story.reply(story.model(), "report", status="unknown")
    replied = story.transcript.entries[-1]
    assert isinstance(replied, Replied)
    assert (replied.completed, replied.calls) == (False, ())
    assert TextPart(text="well") in replied.parts


def boot_changes(*boots: str, unsynced: bool = True) -> Story:
    """A shell's outcome under `boot`, then takes under these."""
    story = started("report")
    effect = story.tool()
    story.add(
        ToolOutcome(
            turn=story.turn, call=effect.key, status="done", boot="boot" if unsynced else None
        )
    )
    for number, boot in enumerate(boots):
        story.give(Take(person=True), f"runner {number}", boot)
    return story


def test_the_model_is_told_once_when_the_machine_was_started_again_since_a_shells_outcome() -> None:
    story = boot_changes("boot", "other", "third")
    assert [notice.text for notice in notices(story)] == [UNSYNCED]


def test_nothing_is_told_while_the_machine_runs_on_or_when_all_was_synced() -> None:
    assert notices(boot_changes("boot", "boot")) == []
    assert notices(boot_changes("other", unsynced=False)) == []


def memory(origin: Literal["hand", "tool", "created"], text: str) -> Memory:
    return Memory(origin=origin, before=None, result=BlobId("0" * 64), text=text)


def test_an_edit_of_the_memory_by_hand_is_told_with_its_words_where_it_came() -> None:
    story = started()
    at = story.add(memory("hand", "buy milk"))
    (notice,) = notices(story)
    assert (notice.event, notice.text) == (at, HAND_EDIT)
    assert notice.attached == (TextPart(text="buy milk"),)
    assert story.transcript.memory == "buy milk"


def test_the_first_memory_stays_in_front_whatever_comes_later() -> None:
    story = Story()
    story.add(memory("created", "first"))
    story.add(memory("tool", "second"))
    assert (story.transcript.first_memory, story.transcript.memory) == ("first", "second")
    assert notices(story) == []


def test_a_message_is_known_by_its_request_id_and_shown_once() -> None:
    story = Story()
    first = story.hear("hello", request="r1")
    assert story.transcript.requests == {"r1": first}
    (said,) = story.transcript.entries
    assert isinstance(said, Said)
    assert (said.event, said.author, said.parts) == (first, "user", (TextPart(text="hello"),))


def test_a_documents_value_is_the_last_one() -> None:
    story = started("safe")
    key = story.tool().key
    for version in (1, 2):
        change = DocumentChange(name="todo", schema="todo/1", version=version, value="[]")
        story.add(ToolOutcome(turn=story.turn, call=key, status="done", documents=(change,)))
    assert story.transcript.documents["todo"].version == 2


def test_redacted_events_and_unknown_kinds_are_passed_over() -> None:
    story = started("report")
    shown = list(story.transcript.entries)
    story.add(None)
    story.add(Unknown(kind="dreamt", raw=b"{}"))
    assert story.transcript.entries == shown


def test_a_prompt_is_what_was_configured_and_everything_that_was_said() -> None:
    story = started()
    prompt = story.transcript.prompt(system="be kind", memory="notes")
    assert (prompt.system, prompt.memory) == ("be kind", "notes")
    assert [tool.name for tool in prompt.tools] == ["safe", "keyed", "report", "ask"]
    assert list(prompt.entries) == story.transcript.entries


def test_without_a_configuration_there_is_no_prompt() -> None:
    with pytest.raises(NotFoundError) as missing:
        Transcript().prompt(system="", memory="")
    assert missing.value.code == "not_configured"
