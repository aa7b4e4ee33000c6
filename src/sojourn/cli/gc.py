"""`sojourn gc`: remove blobs that nothing names."""

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted, size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice


@click.command(
    "gc",
    cls=Command,
    examples=["sojourn gc research", "sojourn gc research --prune", "sojourn gc --grace 60"],
)
@capsule_argument()
@click.option("--prune", is_flag=True, help="Remove them; without it they are only listed.")
@click.option(
    "--grace",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=14.0,
    show_default=True,
    help="Leave what was written in the last DAYS days.",
)
@click.pass_obj
def command(settings: Settings, capsule: str | None, prune: bool, grace: float) -> int:
    """List the blobs of CAPSULE that nothing names, and remove them with --prune.

    A crash can leave such blobs. Only files that are blobs by name and by content are removed, and
    only by the machine that holds the capsule, while nobody runs it.
    """
    import asyncio

    from sojourn.agent.trim import DAY, collect
    from sojourn.cli.shapes_trim import GcAnswer, UnnamedShape

    machine, place = find(capsule)
    done = asyncio.run(collect(machine, place, prune=prune, grace_days=grace))
    voice = Voice(settings)
    if settings.json:
        blobs = tuple(
            UnnamedShape(blob=one.name, bytes=one.size, days=int(one.age // DAY))
            for one in done.blobs
        )
        voice.answer(GcAnswer(capsule=shape_of(place), removed=done.removed, blobs=blobs))
        return 0
    for one in done.blobs:
        days = counted(int(one.age // DAY), "day")
        voice.data(Painted(one.name, "name"), f"  {size(one.size)}, {days} old")
    total = size(sum(one.size for one in done.blobs))
    what = f"{counted(len(done.blobs), 'blob')} that nothing names, {total}"
    if not done.blobs:
        voice.data(Painted("nothing to remove", "good"))
    elif done.removed:
        voice.data(Painted("removed", "good"), f"  {what}")
    else:
        voice.talk(f"{what}. Nothing was changed.")
        voice.talk(Painted(f"next:  sojourn gc {machine.reference(place)} --prune", "dim"))
    return 0
