"""Blocks stand whole, in the order of their last events, the own open one last."""

from sojourn.core.blocks import Blocks


def written(*steps: tuple[int, str]) -> Blocks[str]:
    """Each step is an event of a strand; `.` ends its turn, other text is an entry."""
    made = Blocks[str]()
    for strand, text in steps:
        made.touch(strand)
        if text == ".":
            made.end(strand)
        elif text:
            made.add(text)
    return made


def order(made: Blocks[str]) -> str:
    return "".join(made.in_order())


def test_without_concurrency_the_order_is_that_of_the_log_and_nothing_is_copied() -> None:
    made = written((0, "a"), (0, "b"), (0, "."), (1, "c"), (1, "."), (1, "d"))
    assert order(made) == "abcd"
    shown = made.in_order()
    made.add("e")
    assert made.in_order() is shown
    assert order(made) == "abcde"


def test_a_block_stands_where_its_last_event_stands() -> None:
    made = written((0, "a"), (1, "x"), (1, "."), (0, "b"), (1, "y"))
    assert order(made) == "xaby"
    late = written((0, "a"), (1, "x"), (0, ""))
    assert order(late) == "xa"


def test_the_own_open_block_stands_last_though_nothing_was_mixed() -> None:
    made = written((0, "a"), (1, "x"), (1, "."), (1, "y"))
    made.own(0)
    assert order(made) == "xya"
    made.own(None)
    assert order(made) == "axy"


def test_an_own_block_that_ended_stands_in_its_place() -> None:
    made = written((0, "a"), (0, "."), (1, "x"), (1, "."))
    made.own(0)
    assert order(made) == "ax"
    made.touch(0)
    made.add("b")
    assert order(made) == "axb"


def test_what_was_put_in_the_place_of_an_entry_is_shown_in_its_place() -> None:
    made = written((0, "a"), (1, "x"), (0, "b"))
    assert order(made) == "xab"
    made.put(0, "A")
    assert (order(made), made.get(0)) == ("xAb", "A")


def test_a_new_block_of_another_comes_before_the_own_open_one() -> None:
    made = written((0, "a"), (1, "x"), (0, "b"), (1, "."))
    made.own(0)
    assert order(made) == "xab"
    made.touch(1)
    made.add("y")
    assert order(made) == "xyab"
