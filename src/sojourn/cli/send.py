"""`sojourn send`: leave a message for an agent, whoever runs it."""

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.run import addressed, check_two
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.cli.words_in import given_text


@click.command(
    "send",
    cls=Command,
    examples=[
        'sojourn send research "use the other branch"',
        'sojourn send research "nightly check" --request "$(date +%F)"',
        "sojourn send research - < task.md",
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
@click.option(
    "--request",
    metavar="ID",
    help="Name this message; sent again under the same name it arrives once.",
)
@click.pass_obj
def command(settings: Settings, words: tuple[str, ...], request: str | None) -> None:
    """Leave TEXT for the agent in CAPSULE and return once it is durable.

    A turn that runs now sees it at its next step; otherwise it waits for `sojourn work`, `resume`
    or `run`. It works while another process holds the capsule.
    """
    where, text = addressed(words, "send")
    text = given_text(text)

    import asyncio

    from sojourn.cli.shapes import SendAnswer

    machine, place = find(where)
    accepted = asyncio.run(machine.send(place, text, request=request))
    voice = Voice(settings)
    if settings.json:
        voice.answer(
            SendAnswer(capsule=shape_of(place), request=accepted.request, already=accepted.already)
        )
        return
    voice.data(accepted.request)
    name = machine.reference(machine.live(place))
    if accepted.already:
        said = f"it was there already: {name} was sent this under the same name; it is read once"
    else:
        said = f"accepted for {name}; it will be read once"
    voice.talk(Painted(said, "dim"))
