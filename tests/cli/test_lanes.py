"""The lanes of `sojourn graph`: what ran beside another strand has a lane of its own."""

from sojourn.cli.lanes import PLAIN, Step, draw, upside_down


def drawn(*steps: Step) -> list[str]:
    return [line for line, _ in draw(steps)]


def begin(strand: int, *over: int) -> Step:
    return Step(strand=strand, begins=True, over=over)


def at(strand: int) -> Step:
    return Step(strand=strand)


def test_one_strand_has_one_lane() -> None:
    assert drawn(begin(0), at(0), at(0)) == ["●", "●", "●"]


def test_who_takes_over_what_ended_stays_in_its_lane() -> None:
    assert drawn(begin(0), at(0), begin(1, 0), at(1)) == ["●", "●", "●", "●"]


def test_what_runs_beside_gets_a_lane_of_its_own() -> None:
    lines = drawn(begin(0), begin(1, 0), at(0), at(1), at(0))
    assert lines == ["●", "├─╮", "│ ●", "● │", "│ ●", "●"]


def test_lanes_join_where_both_are_taken_over() -> None:
    lines = drawn(begin(0), begin(1, 0), at(0), at(1), begin(2, 1, 0), at(2))
    assert lines == ["●", "├─╮", "│ ●", "● │", "│ ●", "╰─┤", "  ●", "  ●"]


def test_a_strand_that_was_taken_over_once_keeps_no_lane_for_those_that_name_it_again() -> None:
    lines = drawn(begin(0), begin(1, 0), begin(2, 1, 0), begin(3, 2, 1, 0))
    assert lines == ["●"] * 4


def test_a_lane_that_is_crossed_stays() -> None:
    lines = drawn(begin(0), begin(1, 0), begin(2, 0), at(0), at(1), at(2))
    assert lines[3:5] == ["├─┼─╮", "│ │ ●"]


def test_a_free_lane_is_used_again() -> None:
    lines = drawn(begin(0), begin(1, 0), at(0), begin(2, 0), at(2), at(0))
    assert lines == ["●", "├─╮", "│ ●", "●", "├─╮", "│ ●", "│ ●", "●"]


def test_a_strand_that_goes_on_from_nothing_known_begins_alone() -> None:
    assert drawn(begin(0), begin(1), at(0)) == ["●", "│ ●", "●"]


def test_every_row_is_named_once_and_plain_signs_are_ascii() -> None:
    steps = (begin(0), begin(1, 0), at(0), begin(2, 1, 0))
    numbers = [number for _, number in draw(steps) if number is not None]
    assert numbers == [0, 1, 2, 3]
    assert all(line.translate(PLAIN).isascii() for line, _ in draw(steps))


def test_upside_down_the_newest_is_on_top_and_lanes_part_and_join_the_other_way() -> None:
    lines = list(draw([begin(0), begin(1, 0), at(0), at(1), begin(2, 1, 0), at(2)]))
    turned = upside_down(lines)
    assert [line for line, _ in turned] == ["  ●", "  ●", "╭─┤", "│ ●", "● │", "│ ●", "├─╯", "●"]
    assert [number for _, number in turned if number is not None] == [5, 4, 3, 2, 1, 0]
    assert upside_down(turned) == lines
