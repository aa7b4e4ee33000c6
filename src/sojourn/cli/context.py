"""`sojourn context`: print exactly what a model would get now."""

import json
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted, size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import CallError

if TYPE_CHECKING:
    from sojourn.agent import Look, Machine
    from sojourn.render import Rendered, Target


@click.command(
    "context",
    cls=Command,
    examples=[
        "sojourn context research",
        "sojourn context research -m openai/gpt-5",
        "sojourn context research --bytes | sha256sum",
    ],
)
@capsule_argument()
@click.option("-m", "--model", metavar="MODEL", help="As this model would get it.")
@click.option("--bytes", "exact", is_flag=True, help="The very bytes that would be sent.")
@click.pass_obj
def command(settings: Settings, capsule: str | None, model: str | None, exact: bool) -> None:
    """Print the request that the log of CAPSULE renders to, as its model would get it now.

    Nothing is sent, and no key is needed. What the rendering had to drop or change is said on
    stderr.
    """
    machine, place = find(capsule)
    look = machine.look(place)
    name = model or look.model or machine.environment.get("SOJOURN_MODEL", "")
    if not name:
        from sojourn.cli.turns import first_model

        raise first_model(machine, place)
    target = target_of(machine, name)
    _print(Voice(settings), look, name, target, look.context(target), exact)


def target_of(machine: "Machine", name: str) -> "Target":
    """The model as rendering knows it; a missing key changes nothing of what would be sent.

    Raises: NotFoundError `provider_unknown`; UsageError `model_name`.
    """
    from sojourn.format.event import Issuer
    from sojourn.render import Target
    from sojourn.render.profile import profile_for

    try:
        opened = machine.model(name)
        return Target(issuer=opened.issuer, profile=opened.profile)
    except CallError:
        provider, _, model = name.partition("/")
        profile = profile_for(provider, model)
        issuer = Issuer(provider=provider, api=profile.dialect, scope="default", model=model)
        return Target(issuer=issuer, profile=profile)


def _print(
    voice: Voice, look: "Look", name: str, target: "Target", rendered: "Rendered", exact: bool
) -> None:
    from sojourn.cli.shapes import ContextAnswer, LossShape
    from sojourn.render import render_bytes

    sent, dialect = render_bytes(rendered.payload), target.profile.dialect
    if voice.settings.json:
        losses = tuple(
            LossShape(code=loss.code, event=loss.event, detail=loss.detail)
            for loss in rendered.losses
        )
        voice.answer(
            ContextAnswer(
                capsule=shape_of(look.place),
                model=name,
                dialect=dialect,
                bytes=len(sent),
                payload=rendered.payload,
                losses=losses,
            )
        )
        return
    if exact:
        voice.out.raw_bytes(sent)
    else:
        for line in json.dumps(rendered.payload, indent=2, ensure_ascii=False).splitlines():
            voice.data(line)
    voice.talk(Painted(f"{name}, {dialect}: {size(len(sent))} would be sent", "dim"))
    for loss in rendered.losses:
        where = f" (event {loss.event[:8]})" if loss.event else ""
        voice.talk(Painted("loss ", "warn"), f"{loss.code}: {loss.detail}{where}")
    if look.waiting:
        waits = counted(look.waiting, "message")
        voice.talk(Painted(f"in the inbox, to be added: {waits}", "dim"))
