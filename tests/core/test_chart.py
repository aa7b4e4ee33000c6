"""The chart of a log: strands, what they go on from, and their turns (docs/protocol.md#lineage)."""

from core.stories import Story
from core.worlds import turn
from sojourn.core.chart import Chart
from sojourn.core.turn import Pause


def chart_of(story: Story) -> Chart:
    made = Chart()
    for event in story.events:
        made.apply(event, event.header.seq + 1)
    return made


def test_a_log_of_one_machine_is_one_strand_with_a_row_for_each_turn() -> None:
    story = Story()
    turn(story, "first", "safe", "report")
    turn(story, "second")
    made = chart_of(story)
    (strand,) = made.strands
    assert (strand.events, strand.head, strand.begin) == (
        len(story.events),
        story.events[-1].id,
        story.events[0].id,
    )
    assert [(row.kind, row.said, row.ended) for row in made.rows] == [
        ("created", "", "open"),
        ("turn", "first", "rest"),
        ("turn", "second", "rest"),
    ]
    assert (made.rows[1].model_calls, made.rows[1].tool_calls) == (2, 2)


def test_a_turn_that_waits_and_one_that_was_taken_again_are_one_row_each() -> None:
    story = Story()
    story.hear("go")
    story.take()
    story.give(Pause())
    assert chart_of(story).rows[-1].ended == "stopped"
    story.take("second")
    made = chart_of(story)
    assert [row.kind for row in made.rows] == ["created", "turn"]
    assert made.rows[-1].ended == "open"


def test_who_took_over_whom_and_the_other_side_of_a_clone_are_told() -> None:
    here = Story()
    turn(here, "first")
    there, clone = here.claimed("7", epoch=1001), here.copied()
    turn(here, "mine")
    turn(clone, "its")
    merged = here.merged(there, clone)
    after = merged.claimed("9", epoch=3000)
    made = chart_of(after)
    begins = [row for row in made.rows if row.kind != "turn"]
    assert {row.kind for row in begins} == {"created", "claimed", "second_side"}
    assert [strand.second_side for strand in made.strands].count(True) == 1
    last = begins[-1]
    assert set(last.over) == set(range(len(made.strands) - 1))
    assert made.strands[last.over[0]].epoch == max(s.epoch for s in made.strands[:-1])
    assert {strand.capsule for strand in made.strands} == {here.events[0].id}
