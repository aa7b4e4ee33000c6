"""`sojourn adopt`: go on after the state folder was lost, restored or copied."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from sojourn.cli.capsules import complete_capsule, shape_of
from sojourn.cli.claim import risk_lines
from sojourn.cli.group import Command
from sojourn.cli.people import counted, size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import NotFoundError, SojournError

if TYPE_CHECKING:
    from sojourn.agent import Machine
    from sojourn.agent.taking_over import Orphan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    orphan: "Orphan"
    state: Literal["waiting", "adopted", "refused"]
    epoch: int | None = None
    why: str = ""


@click.command(
    "adopt",
    cls=Command,
    examples=["sojourn adopt", "sojourn adopt --all --yes", "sojourn adopt research"],
)
@click.argument(
    "capsule",
    metavar="[CAPSULE]",
    required=False,
    shell_complete=complete_capsule,
    help="The one to go on with; without it, and without --all, they are listed.",
)
@click.option("--all", "every", is_flag=True, help="Go on with every capsule of the list.")
@click.option("--forced", is_flag=True, help="Also when another copy may still run them.")
@click.option("--yes", is_flag=True, help="Agree to the risks without being asked.")
@click.pass_obj
def command(settings: Settings, capsule: str | None, every: bool, forced: bool, yes: bool) -> int:
    """Go on after this machine's state folder was lost, restored from a backup, or copied here.

    A machine knows what it holds from its state folder alone. When that is not the one it wrote
    last, every capsule opens for reading only, since it may have run elsewhere meanwhile. This
    command lists them, and makes this machine their holder again. When the folder came from
    another host this becomes a machine of its own, with a new key.
    """
    from sojourn.agent import Machine
    from sojourn.agent.taking_over import key_is_copied, orphans
    from sojourn.cli.agreeing import agree, not_agreed

    if capsule is not None and every:
        raise click.UsageError("name one capsule, or --all")
    machine, voice = Machine(), Voice(settings)
    new_key = key_is_copied(machine)
    found = [_one(machine, capsule)] if capsule is not None else list(orphans(machine))
    rows = [_waiting(orphan) for orphan in found]
    if capsule is None and not every:
        _print(voice, machine, rows, new_key=new_key, listed=True)
        return 0
    if rows or new_key:
        again = f"sojourn adopt {'--all' if capsule is None else capsule}"
        again += " --forced" if forced else ""
        risks = _risks(rows, new_key=new_key, forced=forced)
        if not agree(voice, "adopt", risks, yes=yes, again=again):
            return not_agreed(voice)
    rows = [_adopted(machine, voice, row, forced=forced) for row in rows]
    if new_key:
        from sojourn.agent.taking_over import renew_key

        renew_key(machine)
    _print(voice, machine, rows, new_key=new_key, listed=False)
    return 5 if any(row.state == "refused" for row in rows) else 0


def _one(machine: "Machine", where: str) -> "Orphan":
    """The capsule that is named, by path, by name, or by its name in the default folder."""
    from sojourn.agent.taking_over import Orphan, orphan_at, orphans

    try:
        place = machine.find(where)
    except NotFoundError:
        named = [orphan for orphan in orphans(machine) if orphan.place.name == where]
        if len(named) != 1:
            raise
        return named[0]
    found = orphan_at(machine, place)
    if found is not None:
        return found
    from sojourn.drive.claim import risks_of

    return Orphan(place=place, risks=risks_of(machine.look(place).evidence))


def _waiting(orphan: "Orphan") -> _Row:
    if orphan.obstacle is None:
        return _Row(orphan=orphan, state="waiting")
    return _Row(orphan=orphan, state="refused", why=orphan.obstacle.message)


def _risks(rows: list[_Row], *, new_key: bool, forced: bool) -> list[str]:
    lines: list[str] = []
    if new_key:
        lines.append("This state folder came from another host; here it gets a key of its own.")
    wanted = [row for row in rows if row.state == "waiting"]
    for row in wanted:
        first = row.orphan.risks.reasons[:1]
        lines += [f"{row.orphan.place.name}: {reason.message}" for reason in first]
        if row.orphan.risks.lost:
            lost = size(row.orphan.risks.lost)
            lines.append(f"{row.orphan.place.name}: {lost} at the end of its log are lost then.")
    if wanted:
        lines += risk_lines(wanted[0].orphan.risks, forced=forced)[-1:]
    return lines


def _adopted(machine: "Machine", voice: Voice, row: _Row, *, forced: bool) -> _Row:
    import asyncio

    from sojourn.agent.taking_over import adopt
    from sojourn.cli.agreeing import Notes

    if row.state == "refused":
        return row
    try:
        taken = asyncio.run(adopt(machine, row.orphan.place, forced=forced, observer=Notes(voice)))
    except SojournError as failure:
        return _Row(orphan=row.orphan, state="refused", why=f"{failure.message} [{failure.code}]")
    return _Row(orphan=row.orphan, state="adopted", epoch=taken.record.epoch)


def _print(
    voice: Voice, machine: "Machine", rows: list[_Row], *, new_key: bool, listed: bool
) -> None:
    if voice.settings.json:
        _answer(voice, machine, rows, new_key=new_key, listed=listed)
        return
    for row in rows:
        name = Painted(row.orphan.place.name, "name")
        match row.state:
            case "adopted":
                voice.data(name, f"  is held here, at epoch {row.epoch}")
            case "waiting":
                voice.data(name, f"  {row.orphan.place.folder}")
                if not row.orphan.risks.reasons:
                    voice.data("  it was adopted or claimed, and that was not finished")
                for reason in row.orphan.risks.reasons:
                    voice.data(f"  {reason.message} [{reason.code}]")
            case "refused":
                voice.data(name, Painted("  not adopted: ", "warn"), row.why)
                voice.talk(
                    Painted(f"see:  sojourn explain {machine.reference(row.orphan.place)}", "dim")
                )
    if not rows:
        voice.talk("no capsule waits to be adopted")
    if new_key and listed:
        voice.talk("this state folder came from another host; adopting gives it a new key")
    waiting = sum(row.state == "waiting" for row in rows)
    if listed and (waiting or new_key):
        what = f"{counted(waiting, 'capsule')} to go on with:  " if waiting else ""
        voice.talk(Painted(f"{what}sojourn adopt --all", "dim"))


def _answer(
    voice: Voice, machine: "Machine", rows: list[_Row], *, new_key: bool, listed: bool
) -> None:
    from sojourn.cli.shapes import FaultShape
    from sojourn.cli.shapes_carry import AdoptAnswer, OrphanShape

    shapes = tuple(
        OrphanShape(
            capsule=shape_of(row.orphan.place),
            state=row.state,
            reasons=tuple(
                FaultShape(code=one.code, message=one.message) for one in row.orphan.risks.reasons
            ),
            lost_bytes=row.orphan.risks.lost,
            epoch=row.epoch,
            why=row.why,
        )
        for row in rows
    )
    own = None if new_key and listed else machine.ports.key.machine()
    voice.answer(AdoptAnswer(machine=own, new_key=new_key, capsules=shapes))
