"""`sojourn scan`: find likely secrets before a capsule leaves."""

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import FormatError


@click.command(
    "scan",
    cls=Command,
    examples=["sojourn scan research", "sojourn scan research --json | jq .suspects"],
)
@capsule_argument()
@click.pass_obj
def command(settings: Settings, capsule: str | None) -> int:
    """Look through CAPSULE for what is likely a secret: keys, tokens, passwords in addresses.

    It names kind, file and line, never the value. Log, notes, environment and every blob are looked
    at. The exit code is 4 when something was found. It finds likely secrets and may be wrong;
    `sojourn redact` takes an event's text away for good.
    """
    from sojourn.agent.trust import scan
    from sojourn.cli.shapes_trust import ScanAnswer, SuspectShape

    machine, place = find(capsule)
    suspects = tuple(
        SuspectShape(
            id=one.id,
            rule=one.rule,
            file=one.file,
            line=one.line,
            event=one.event,
            number=one.number,
            within=one.within,
        )
        for one in scan(place)
    )
    voice = Voice(settings)
    if settings.json:
        voice.answer(ScanAnswer(capsule=shape_of(place), suspects=suspects))
        return FormatError.exit_code if suspects else 0
    for one in suspects:
        within = f" ({one.within})" if one.within else ""
        where = Painted(f"{one.file} line {one.line}{within}", "bold")
        event = "" if one.event is None else f", event {one.number} {one.event[:12]}"
        voice.data(Painted(one.id + "  ", "dim"), where, event, f": {one.rule}")
    if not suspects:
        voice.data(Painted("nothing found", "good"), f"  {place.name} holds no likely secret")
        return 0
    voice.talk(f"{counted(len(suspects), 'likely secret')}. Nothing was changed.")
    known_as = machine.reference(place)
    voice.talk(
        f"Take an event's text away for good:  sojourn redact {known_as} EVENT --reason TEXT"
    )
    return FormatError.exit_code
