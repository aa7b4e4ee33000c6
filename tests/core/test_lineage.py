"""Concurrent turns do not disturb one another (docs/protocol.md#lineage, #blocks)."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from core.stories import Story, heads_of_log, place_of, started, states_of, told
from core.worlds import turn, worlds
from sojourn.core.turn import Take
from sojourn.core.turn_states import RECENT
from sojourn.core.view import TWO_EDITS, UNSYNCED, Entry, Notice, Replied, Said
from sojourn.format.event import CallStatus, Configured, Event, Memory, Settled, ToolOutcome
from sojourn.format.parts import TextPart
from sojourn.format.working_memory import digest_of
from sojourn.ids import CallKey, Clock, call_key


def texts(entries: list[Entry]) -> list[str]:
    """What stands where: inputs by their text, replies and notices by their type."""
    shown: list[str] = []
    for entry in entries:
        match entry:
            case Said():
                (part,) = entry.parts
                assert isinstance(part, TextPart)
                assert isinstance(part.text, str)
                shown.append(part.text)
            case Replied():
                shown.append("+".join(["reply", *(call.part.tool for call in entry.calls)]))
            case _:
                shown.append("notice")
    return shown


def two_copies() -> tuple[Story, Story]:
    """One turn, and then a copy that another machine claims."""
    here = Story()
    turn(here, "first")
    return here, here.claimed("7", epoch=1001)


def test_concurrent_turns_stand_one_after_the_other_and_each_is_whole() -> None:
    here, there = two_copies()
    for number in range(2):
        turn(here, f"here {number}", "safe")
        turn(there, f"there {number}", "safe", "safe")
    shown = texts(list(here.merged(there).transcript.entries))
    assert shown[:2] == ["first", "reply"]
    blocks = [shown[at : at + 3] for at in range(2, len(shown), 3)]
    assert sorted(blocks) == [
        [f"{who} {number}", calls, "reply"]
        for who, calls in (("here", "reply+safe"), ("there", "reply+safe+safe"))
        for number in range(2)
    ]


def test_blocks_stand_in_the_order_of_their_last_events() -> None:
    here, there = two_copies()
    here.hear("long")
    here.take()
    here.reply(here.model(), *("safe",) * 9)
    turn(there, "short")
    for _ in range(9):
        here.end(here.tool())
    here.reply(here.model())
    assert here.next().records
    shown = texts(list(told(here.merged(there).events, own=there.chain).entries))
    assert shown[2:] == ["short", "reply", "long", "reply" + "+safe" * 9, "reply"]


def test_the_own_open_turn_stands_last() -> None:
    here, there = two_copies()
    here.hear("open")
    here.take()
    here.reply(here.model(), "safe")
    for number in range(5):
        turn(there, f"later {number}")
    merged = here.merged(there)
    assert texts(list(merged.transcript.entries))[-2:] == ["open", "reply+safe"]
    other = told(merged.events, own=there.chain)
    assert texts(list(other.entries))[-1] == "reply"


def test_what_two_strands_go_on_from_stands_before_what_each_made_of_it() -> None:
    here = Story()
    here.hear("go")
    here.take()
    here.reply(here.model(), "safe")
    there = here.claimed("7", epoch=1001)
    there.take("second")
    there.end(there.tool("second"), by="second")
    there.hear("only there")
    merged = here.merged(there)
    assert texts(list(merged.transcript.entries)) == ["go", "reply+safe", "only there"]
    merged.hear("only here")
    assert texts(list(merged.transcript.entries)) == [
        "go",
        "reply+safe",
        "only there",
        "only here",
    ]


def test_the_merged_prompt_grows_at_its_end_while_the_own_turn_goes_on() -> None:
    here, there = two_copies()
    here.hear("open")
    here.take()
    here.reply(here.model(), "safe", "report")
    turn(there, "there")
    merged = here.merged(there)
    shown = list(merged.transcript.entries)
    merged.end(merged.tool(), "42")
    merged.end(merged.tool(), "43")
    merged.reply(merged.model())
    merged.next()
    turn(merged, "after")
    now = list(merged.transcript.entries)
    assert now[: len(shown) - 1] == shown[:-1]
    assert texts(now[: len(shown)]) == texts(shown)
    assert texts(now[len(shown) :]) == ["reply", "after", "reply"]
    assert now == list(told(merged.events, own=merged.chain).entries)


def test_a_concurrent_turn_leaves_the_own_state_alone() -> None:
    here, there = two_copies()
    here.hear("open")
    here.take()
    here.reply(here.model(), "report")
    before = here.state
    there.hear("there")
    there.take("second")
    there.reply(there.model("second"), "ask", by="second")
    there.tool("second")
    there.hear("unseen there")
    merged = here.merged(there)
    assert merged.state == before
    assert states_of(merged.events).state(there.chain) == there.state
    assert merged.tool().tool == "report"


def test_who_took_over_goes_on_with_the_open_turn() -> None:
    here = started("report")
    effect = here.tool()
    there = here.claimed("7", epoch=1001)
    assert there.state.turn == here.state.turn
    here.end(effect, "42")
    there.take("second")
    there.next("second")
    merged = there.merged(here)
    assert merged.state == there.state
    assert [call.state for call in merged.state.calls] == ["unknown"]
    assert [call.state for call in here.merged(there).state.calls] == ["done"]


def result_of(story: Story, key: CallKey) -> tuple[CallStatus, object]:
    result = story.transcript.call(key).result
    assert result is not None
    return result.status, result.parts


def test_of_two_outcomes_of_one_call_a_known_one_is_shown() -> None:
    here = started("report")
    effect = here.tool()
    there = here.claimed("7", epoch=1001)
    there.take("second")
    there.next("second")
    there.model("second")
    here.hear("late")
    here.hear("later")
    here.hear("latest")
    here.end(effect, "42")
    assert result_of(there, effect.key)[0] == "unknown"
    for merged in (here.merged(there), there.merged(here)):
        assert result_of(merged, effect.key) == ("done", (TextPart(text="42"),))


def test_of_two_known_outcomes_the_first_in_the_log_is_shown() -> None:
    here = started("safe")
    effect = here.tool()
    there = here.claimed("7", epoch=1001)
    there.take("second")
    there.end(there.tool("second"), "there", by="second")
    here.end(effect, "here")
    merged = here.merged(there)
    first = min((one.events[-1] for one in (here, there)), key=lambda event: place_of(event))
    assert isinstance(first.body, ToolOutcome)
    assert result_of(merged, effect.key) == ("done", first.body.parts)


def test_a_settlement_elsewhere_never_changes_a_result_that_was_shown_here() -> None:
    here = started("report")
    effect = here.tool()
    here.end(effect, status="unknown")
    there = here.claimed("7", epoch=1001)
    here.model()
    there.add(Settled(call=effect.key, decision="done", by="you", parts=(TextPart(text="so"),)))
    for merged in (here.merged(there), there.merged(here)):
        assert result_of(merged, effect.key)[0] in ("unknown", "done")
    assert result_of(there, effect.key)[0] == "done"


def test_a_restart_of_one_machine_is_not_told_of_another() -> None:
    here, there = two_copies()
    here.hear("here")
    here.take()
    here.reply(here.model(), "report")
    effect = here.tool()
    here.add(ToolOutcome(turn=here.turn, call=effect.key, status="done", boot="boot"))
    there.hear("there")
    there.give(_take(), "second", boot="other boot")
    merged = here.merged(there)
    notices = [entry for entry in merged.transcript.entries if isinstance(entry, Notice)]
    assert UNSYNCED not in [notice.text for notice in notices]


def _take() -> Take:
    return Take(person=True)


def test_each_copy_goes_on_with_its_own_configuration() -> None:
    here, there = two_copies()
    there.add(Configured(model="scripted/other", system="be brief"))
    turn(there, "there")
    merged = here.merged(there)
    assert merged.transcript.configured == here.transcript.configured
    assert there.merged(here).transcript.configured == there.transcript.configured
    assert there.transcript.configured != here.transcript.configured


def test_calls_are_of_the_capsule_that_their_chain_is_of() -> None:
    here = Story()
    turn(here, "first")
    fork = here.forked("7", epoch=2)
    for story in (here, fork):
        story.hear("go")
        story.take()
        story.reply(story.model(), "safe")
    assert here.state.capsule == here.events[0].id
    assert fork.state.capsule == fork.events[len(fork.events) - 5].id
    merged = here.merged(fork)
    for story in (here, fork):
        capsule, reply = story.state.capsule, story.state.reply
        assert capsule is not None
        assert reply is not None
        key = call_key(capsule=capsule, requested_by=reply, index=0)
        assert merged.transcript.call(key).part.tool == "safe"
    assert merged.state == here.state
    assert merged.transcript.capsule == here.state.capsule


def test_a_head_far_back_is_found_by_reading_again() -> None:
    here = started("report")
    there = here.claimed("7", epoch=1001)
    late = Story.claimed(here, "8", epoch=2002)
    late.events[-1] = moved(late.events[-1], clock=10 * RECENT)
    for number in range(2 * RECENT):
        here.hear(str(number))
    events = sorted({e.id: e for s in (here, there, late) for e in s.events}.values(), key=place_of)
    assert states_of(events).state(late.chain).unseen == ()
    assert states_of(events).state(late.chain).turn == here.state.turn


def moved(event: Event, *, clock: int) -> Event:
    header = msgspec.structs.replace(event.header, clock=Clock(clock))
    return msgspec.structs.replace(event, header=header)


def test_two_sides_of_a_cloned_machine_are_told_apart() -> None:
    here = Story()
    turn(here, "first")
    clone = here.copied()
    for number in range(3):
        turn(here, f"here {number}", "safe")
        turn(clone, f"clone {number}")
    merged = here.merged(clone)
    assert len(heads_of_log(merged.events)) == 2
    shown = texts(list(merged.transcript.entries))
    for number in range(3):
        at = shown.index(f"here {number}")
        assert shown[at : at + 3] == [f"here {number}", "reply+safe", "reply"]
        at = shown.index(f"clone {number}")
        assert shown[at : at + 2] == [f"clone {number}", "reply"]
    after = merged.claimed("9", epoch=5000)
    assert after.state.turn is None
    assert after.state.last == after.events[-1].id


def test_two_edits_of_the_notes_are_both_told() -> None:
    here, before = Story(), digest_of("notes")
    here.add(Memory(origin="created", before=None, result=before, text="notes"))
    there = here.claimed("7", epoch=1001)
    for story, text in ((here, "a"), (there, "b")):
        result = digest_of(text)
        story.add(Memory(origin="hand", before=before, result=result, text=text))
    merged = here.merged(there)
    told_of = [e for e in merged.transcript.entries if isinstance(e, Notice)]
    assert [notice.text for notice in told_of].count(TWO_EDITS) == 1
    (two,) = [notice for notice in told_of if notice.text == TWO_EDITS]
    assert {part.text for part in two.attached if isinstance(part, TextPart)} == {"a", "b"}


@settings(deadline=None, max_examples=150)
@given(worlds())
def test_merging_never_changes_the_own_state_and_keeps_every_entry(copies: list[Story]) -> None:
    whole = copies[0].merged(*copies[1:])
    for story in copies:
        assert states_of(whole.events).state(story.chain) == story.state
        merged = story.merged(*copies)
        entries = list(merged.transcript.entries)
        assert len({entry.event for entry in entries}) == len(entries)
        assert {e.event for one in copies for e in one.transcript.entries} == {
            entry.event for entry in entries
        }
        assert entries == list(told(whole.events, own=story.chain).entries)


@settings(deadline=None, max_examples=100)
@given(worlds(), st.data())
def test_entries_read_while_events_come_are_those_of_a_fresh_reading(
    copies: list[Story], data: st.DataObject
) -> None:
    """However often the order was asked for between, nothing of it goes stale."""
    whole = copies[0].merged(*copies[1:]).events
    own = data.draw(st.sampled_from([story.chain for story in copies]))
    asked = told((), own=own)
    for number, event in enumerate(whole):
        asked.apply(event)
        if data.draw(st.booleans()):
            assert list(asked.entries) == list(told(whole[: number + 1], own=own).entries)


def test_a_claim_goes_on_from_the_head_that_it_names_and_else_from_the_one_that_counts() -> None:
    here, there = two_copies()
    here.hear("open here")
    here.take()
    turn(there, "whole there")
    merged = here.merged(there)
    lines = {event.id: event for event in (here.events[-1], there.events[-1])}
    for named, is_open in ((here.events[-1].id, True), (there.events[-1].id, False), (None, False)):
        third = merged.claimed("9", epoch=2001, continues=named)
        states = states_of(third.events)
        assert states.strands.newest_of(2) == states.strands.of_chain(
            here.chain if is_open else there.chain
        )
        assert (states.state(third.chain).turn is not None) is is_open
        assert third.state == states.state(third.chain)
    stranger = merged.claimed("9", epoch=2001, continues=here.events[0].id)
    assert states_of(stranger.events).state(stranger.chain).turn is None
    assert set(lines) == {head.id for head in heads_of_log(merged.events)}
