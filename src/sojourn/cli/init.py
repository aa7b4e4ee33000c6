"""`sojourn init`: make a capsule."""

import click

from sojourn.cli.capsules import shape_of
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.cli.words_in import file_text


@click.command(
    "init",
    cls=Command,
    examples=[
        "sojourn init -n research -m anthropic/claude-sonnet-4-5",
        "sojourn init -n site --workspace ~/code/site",
        "sojourn init ./agents/night -m ollama/qwen3 --system prompt.md",
    ],
)
@click.argument(
    "folder",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False),
    help="The capsule's folder (default: in the state folder, by its name).",
)
@click.option("-n", "--name", metavar="NAME", help="Call it NAME (default: the folder's name).")
@click.option("-m", "--model", metavar="MODEL", help="Its model, as PROVIDER/NAME.")
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The existing folder it works in (default: a new one in the state folder).",
)
@click.option("--system", metavar="FILE", help="Its system prompt, from FILE (- for stdin).")
@click.pass_obj
def command(
    settings: Settings,
    folder: str | None,
    name: str | None,
    model: str | None,
    workspace: str | None,
    system: str | None,
) -> None:
    """Make a capsule: a folder that holds the whole state of a new agent.

    DIR is the capsule's folder; by default it lies in the state folder under its name. The agent
    works in its workspace, which never lies inside the capsule, nor the capsule in it.
    """
    prompt = None if system is None else file_text(system)

    import asyncio

    from sojourn.agent import Machine
    from sojourn.cli.shapes import InitAnswer

    machine = Machine()
    making = machine.create(folder, name=name, model=model, system=prompt, workspace=workspace)
    place = asyncio.run(making)
    chosen, voice = machine.look(place).model, Voice(settings)
    if settings.json:
        voice.answer(InitAnswer(capsule=shape_of(place), model=chosen))
        return
    voice.data(place.folder)
    voice.talk(Painted(place.name, "name"), f" works in {place.workspace}")
    voice.talk(f"model: {chosen}" if chosen else "no model yet: give run -m PROVIDER/NAME")
    voice.talk(Painted(f'next:  sojourn run {machine.reference(place)} "what to do"', "dim"))
