"""The tool `ask`: a question to the person at the terminal."""

from typing import Annotated

from msgspec import Meta

from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.declare import tool
from sojourn.tools.output import text_result


@tool(replay="keyed", name="ask")
async def ask_person(
    question: Annotated[str, Meta(min_length=1, description="What you need to know.")],
    context: ToolContext,
    choices: Annotated[
        tuple[str, ...], Meta(max_length=20, description="Answers to choose from, if they are few.")
    ] = (),
) -> ToolResult:
    """Ask the person who runs you, and wait for the answer.

    Only for what you can neither find out nor decide yourself.
    """
    if context.ask is None:
        return text_result(
            "nobody can be asked now: decide by yourself, or say what you need and stop",
            failed=True,
            code="nobody_to_ask",
        )
    lines = [question, *(f"  {number}. {text}" for number, text in enumerate(choices, 1))]
    try:
        answer = (await context.ask("\n".join(lines))).strip()
    except EOFError:
        return text_result("the person left without an answer", failed=True, code="no_answer")
    return text_result(_chosen(answer, choices) or "(an empty answer)")


def _chosen(answer: str, choices: tuple[str, ...]) -> str:
    """The choice that the answer is the number of, else the answer itself."""
    if answer.isascii() and answer.isdigit() and 0 < int(answer) <= len(choices):
        return choices[int(answer) - 1]
    return answer
