"""`sojourn send`: leave a message for an agent, whoever runs it."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.remotes import close_by, find_there, remote_option, there_shape
from sojourn.cli.run import addressed, check_two
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.cli.words_in import given_text

if TYPE_CHECKING:
    from sojourn.cli.shapes import SendAnswer


@click.command(
    "send",
    cls=Command,
    examples=[
        'sojourn send research "use the other branch"',
        'sojourn send research "nightly check" --request "$(date +%F)"',
        "sojourn send research - < task.md",
        'sojourn send research "go on" --remote box',
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
@remote_option()
@click.pass_obj
def command(
    settings: Settings, words: tuple[str, ...], request: str | None, remote: str | None
) -> None:
    """Leave TEXT for the agent in CAPSULE and return once it is durable.

    A turn that runs now sees it at its next step; otherwise it waits for `sojourn work`, `resume`
    or `run`. It works while another process holds the capsule.
    """
    where, text = addressed(words, "send")
    text = given_text(text)

    import asyncio

    from sojourn.cli.shapes import SendAnswer

    voice = Voice(settings)
    if remote is None:
        machine, place = find(where)
        accepted = asyncio.run(machine.send(place, text, request=request))
        shape, name = shape_of(place), machine.reference(machine.live(place))
        answer = SendAnswer(capsule=shape, request=accepted.request, already=accepted.already)
    else:
        answer = asyncio.run(_send_there(remote, where, text, request))
        name = f"{answer.capsule.name} at {remote}"
    if settings.json:
        voice.answer(answer)
        return
    voice.data(answer.request)
    if answer.already:
        said = f"it was there already: {name} was sent this under the same name; it is read once"
    else:
        said = f"accepted for {name}; it will be read once"
    voice.talk(Painted(said, "dim"))


async def _send_there(
    remote: str, where: str | None, text: str, request: str | None
) -> "SendAnswer":
    """Leave it on another machine; a lost answer is asked for again under the same request id."""
    from sojourn.agent import Machine
    from sojourn.agent.links import open_peer
    from sojourn.cli.shapes import SendAnswer
    from sojourn.errors import PeerError

    machine = Machine()
    chosen = request or machine.ports.randomness.token(16).hex()
    async with open_peer(machine, close_by(remote, machine)) as peer:
        listed = await find_there(peer, where)
        try:
            taken = await peer.say(listed.capsule, text, request=chosen)
        except PeerError as failure:
            if failure.code != PeerError.default_code:
                raise
            taken = await peer.say(listed.capsule, text, request=chosen)
    already = taken.already and request is not None
    return SendAnswer(capsule=there_shape(listed), request=taken.request, already=already)
