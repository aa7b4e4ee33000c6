"""`sojourn resume`: go on with an open turn, and answer the question it waits with."""

from typing import TYPE_CHECKING, Literal

import click

from sojourn.cli.capsules import capsule_argument
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.words_in import file_text
from sojourn.errors import UsageError

if TYPE_CHECKING:
    from sojourn.agent import Agent, Report

Decision = Literal["retry", "skip", "done"]


def decision_of(retry: bool, skip: bool, result: str | None) -> tuple[Decision | None, str]:
    """The person's decision and the words that go with it.

    Raises: click.UsageError for more than one decision.
    """
    if retry + skip + (result is not None) > 1:
        raise click.UsageError("choose one of --retry, --skip and --result")
    if retry:
        return "retry", ""
    if skip:
        return "skip", ""
    return (None, "") if result is None else ("done", file_text(result))


@click.command(
    "resume",
    cls=Command,
    examples=[
        "sojourn resume research",
        "sojourn resume research -m openai/gpt-5",
        "sojourn resume research --retry",
        "echo 'order 17 was placed' | sojourn resume research --result -",
    ],
)
@capsule_argument()
@click.option("-m", "--model", metavar="MODEL", help="Ask this model, as PROVIDER/NAME.")
@click.option("-p", "--print", "printed", is_flag=True, help="Print only the final text.")
@click.option("--retry", is_flag=True, help="Call it once more, with the same key.")
@click.option("--skip", is_flag=True, help="Leave its outcome unknown; the model is told so.")
@click.option(
    "--result", metavar="FILE", help="It happened; the text of FILE (- for stdin) came out."
)
@click.pass_obj
def command(
    settings: Settings,
    capsule: str | None,
    model: str | None,
    printed: bool,
    retry: bool,
    skip: bool,
    result: str | None,
) -> int:
    """Go on with the open turn of CAPSULE, after a crash, a pause or a failure of the model.

    Finished calls never run again. When the turn waits for a decision about a call that may have
    happened, say one of --retry, --skip and --result.
    """
    decision, text = decision_of(retry, skip, result)

    from sojourn.cli.capsules import find
    from sojourn.cli.turns import take_turn

    machine, place = find(capsule, telling=not printed)
    return take_turn(
        settings,
        machine,
        place,
        model=model,
        printed=printed,
        act=lambda agent: _go_on(agent, decision, text, machine.reference(place)),
    )


async def _go_on(agent: "Agent", decision: Decision | None, text: str, name: str) -> "Report":
    """Go on; a decision that nobody waits for is a mistake to be told, not to be passed over."""
    if decision is not None and agent.state.question is None:
        raise UsageError(
            "no call waits for a decision",
            code="no_question",
            state="Nothing was changed.",
            hint=f"Go on without one:  sojourn resume {name}",
        )
    return await agent.resume(decision, text)
