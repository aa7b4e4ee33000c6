"""`sojourn run`: send a message and take the turn here."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.words_in import given_text
from sojourn.errors import UsageError

if TYPE_CHECKING:
    from sojourn.agent import Agent, Report


def addressed(words: tuple[str, ...], verb: str) -> tuple[str | None, str]:
    """The capsule's name, if one was given, and the text; several words alone are a text.

    Raises: UsageError `text_missing` when the one word could be a name or a message.
    """
    if len(words) == 2:
        return words[0], words[1]
    word = words[0]
    if word == "-" or len(word.split()) > 1:
        return None, word
    raise UsageError(
        "the text is missing",
        code="text_missing",
        state="Nothing was sent.",
        hint=f'sojourn {verb} {word} "what to do"    (a single word is taken as a capsule\'s name)',
    )


def check_two(
    _context: click.Context, _option: click.Parameter, words: tuple[str, ...]
) -> tuple[str, ...]:
    """One or two words.

    Raises: click.UsageError for more.
    """
    if len(words) > 2:
        raise click.UsageError("the text is more than one argument; put it in quotes")
    return words


@click.command(
    "run",
    cls=Command,
    examples=[
        'sojourn run research "fix the failing test"',
        "git diff | sojourn run research -p -",
        'sojourn run research "go on" -m anthropic/claude-sonnet-4-5 --max-turns 20',
    ],
)
@click.argument(
    "words",
    metavar="[CAPSULE] TEXT",
    nargs=-1,
    required=True,
    callback=check_two,
    help="The capsule, and what to say to its agent; - reads that from stdin.",
    shell_complete=complete_capsule,
)
@click.option("-m", "--model", metavar="MODEL", help="Ask this model, as PROVIDER/NAME.")
@click.option("-p", "--print", "printed", is_flag=True, help="Print only the final text.")
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    metavar="N",
    help="End the turn after N calls of the model.",
)
@click.pass_obj
def command(
    settings: Settings,
    words: tuple[str, ...],
    model: str | None,
    printed: bool,
    max_turns: int | None,
) -> int:
    """Send TEXT to the agent in CAPSULE and run it here until it rests.

    TEXT is read from stdin when it is `-`. Each step is durable before the next one begins: when
    this process dies, `sojourn resume` or `sojourn work` goes on where it was. Ctrl-C pauses after
    the running call, a second one stops that call.
    """
    where, text = addressed(words, "run")
    text = given_text(text)

    from sojourn.cli.capsules import find
    from sojourn.cli.turns import take_turn

    machine, place = find(where, telling=not printed)
    return take_turn(
        settings,
        machine,
        place,
        model=model,
        printed=printed,
        act=lambda agent: _run(agent, text, max_turns),
        sends=True,
    )


async def _run(agent: "Agent", text: str, max_turns: int | None) -> "Report":
    """Send and run; in a turn that was open already the message does not begin a new one."""
    if agent.state.turn is not None and agent.state.question is None:
        agent.note("a turn was open here; your message joins it")
    return await agent.run(text, max_model_calls=max_turns)
