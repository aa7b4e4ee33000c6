"""`sojourn scan`: find likely secrets before a capsule leaves."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import FormatError

if TYPE_CHECKING:
    from sojourn.cli.shapes_trust import SuspectShape, UnseenShape
    from sojourn.drive.scan import Suspect, Unseen


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
    at. What it could not read is named, and so is how many files hide their text: what is
    compressed, enciphered or in UTF-16 is not looked into. The exit code is 4 when something was
    found, or could not be read. It finds likely secrets and may be wrong; `sojourn redact` takes an
    event's text away for good.
    """
    from sojourn.agent.trust import scan
    from sojourn.cli.shapes_trust import ScanAnswer
    from sojourn.drive.scan import Suspect, Unseen

    machine, place = find(capsule)
    found = tuple(scan(place))
    suspects = [one for one in found if isinstance(one, Suspect)]
    unseen = [one for one in found if isinstance(one, Unseen)]
    sound = not suspects and all(one.why != "unreadable" for one in unseen)
    voice = Voice(settings)
    if settings.json:
        voice.answer(
            ScanAnswer(
                capsule=shape_of(place),
                suspects=tuple(map(_suspect_shape, suspects)),
                unseen=tuple(map(_unseen_shape, unseen)),
            )
        )
        return 0 if sound else FormatError.exit_code
    for one in suspects:
        _say_suspect(voice, one)
    if sound:
        voice.data(Painted("nothing found", "good"), f"  {place.name} holds no likely secret")
    _say_unseen(voice, unseen)
    if suspects:
        voice.talk(f"{counted(len(suspects), 'likely secret')}. Nothing was changed.")
        known_as = machine.reference(place)
        voice.talk(
            f"Take an event's text away for good:  sojourn redact {known_as} EVENT --reason TEXT"
        )
    return 0 if sound else FormatError.exit_code


def _say_suspect(voice: Voice, one: "Suspect") -> None:
    within = f" ({one.within})" if one.within else ""
    where = Painted(f"{one.file} line {one.line}{within}", "bold")
    event = "" if one.event is None else f", event {one.number} {one.event[:12]}"
    voice.data(Painted(one.id + "  ", "dim"), where, event, f": {one.rule}")


def _say_unseen(voice: Voice, unseen: "list[Unseen]") -> None:
    """Each file that could not be read, and how many hide their text."""
    from sojourn.agent.trust import said_of

    for one in unseen:
        if one.why == "unreadable":
            voice.data(Painted("not read  ", "bad"), Painted(one.file, "bold"), f": {one.message}")
    hidden = [one for one in unseen if one.why != "unreadable"]
    if hidden:
        voice.talk(Painted(said_of(hidden), "warn"))


def _suspect_shape(one: "Suspect") -> "SuspectShape":
    from sojourn.cli.shapes_trust import SuspectShape

    return SuspectShape(
        id=one.id,
        rule=one.rule,
        file=one.file,
        line=one.line,
        event=one.event,
        number=one.number,
        within=one.within,
    )


def _unseen_shape(one: "Unseen") -> "UnseenShape":
    from sojourn.cli.shapes_trust import UnseenShape

    return UnseenShape(file=one.file, within=one.within, why=one.why, message=one.message)
