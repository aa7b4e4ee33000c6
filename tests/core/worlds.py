"""Worlds of copies that run turns, take one another over and merge, for properties."""

from hypothesis import strategies as st

from core.stories import Story


def turn(story: Story, text: str, *tools: str) -> None:
    """A whole turn, with one call of each tool."""
    story.hear(text)
    story.take()
    if tools:
        story.reply(story.model(), *tools)
        for _ in tools:
            story.end(story.tool())
    story.reply(story.model())
    while story.state.turn is not None:
        story.next()


@st.composite
def worlds(draw: st.DrawFn) -> list[Story]:
    """Copies that each ran turns, took one another over, and merged; in any order."""
    copies = [Story()]
    turn(copies[0], "first", "safe")
    for number in range(draw(st.integers(1, 10))):
        story = draw(st.sampled_from(copies))
        match draw(st.sampled_from(("turn", "open", "go on", "claim", "merge"))):
            case "turn" if story.state.turn is None:
                turn(story, f"turn {number}", *draw(st.sampled_from(((), ("safe", "report")))))
            case "open" if story.state.turn is None:
                story.hear(f"open {number}")
                story.take()
                story.reply(story.model(), "safe", "report", "ask")
                if draw(st.booleans()):
                    story.tool()
            case "go on" if story.state.turn is not None and story.state.paused is None:
                story.take(f"runner {number}")
                story.next(f"runner {number}")
            case "claim" if len(copies) < 4:
                copies.append(story.claimed(str(len(copies)), epoch=1000 * (number + 1)))
            case "merge":
                other = draw(st.sampled_from(copies))
                copies[copies.index(story)] = story.merged(other)
            case _:
                pass
    return copies
