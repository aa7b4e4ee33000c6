"""`sojourn search`: find what was said and done, by meaning and by words."""

import asyncio
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import ago, clock_time
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import UsageError

if TYPE_CHECKING:
    from sojourn.cli.shapes import FoundShape
    from sojourn.drive.recall import Found
    from sojourn.ports_recall import Recalled


@click.command(
    "search",
    cls=Command,
    examples=[
        "sojourn search 'which library did we choose for spreadsheets'",
        "sojourn search research 'rate limit' --words",
        "sojourn search research deadlines --kind input --kind memory -n 3",
        "sojourn search research deadlines --json | jq .found[].event",
    ],
)
@click.argument(
    "words",
    metavar="[CAPSULE] QUESTION",
    nargs=-1,
    required=True,
    shell_complete=complete_capsule,
    help="The capsule, and what to look for, in quotes where it is several words.",
)
@click.option("--words", "words_only", is_flag=True, help="By words alone, not by meaning.")
@click.option(
    "-n",
    "most",
    type=click.IntRange(min=1, max=100),
    default=10,
    metavar="N",
    help="At most N places (10).",
)
@click.option(
    "--kind",
    "kinds",
    metavar="K",
    multiple=True,
    help="Only in what is of kind K, or of kinds that begin so; may be repeated.",
)
@click.option("--rebuild", is_flag=True, help="Make the index anew from the log first.")
@click.pass_obj
def command(
    settings: Settings,
    words: tuple[str, ...],
    words_only: bool,
    most: int,
    kinds: tuple[str, ...],
    rebuild: bool,
) -> None:
    """Find passages of the events, the notes and the documents of CAPSULE.

    What is near in meaning and what has the words are ranked together, the nearest first. Each
    event is named by its number, as `sojourn show` takes it.
    """
    from sojourn.agent.recalling import rebuild_index, search

    *where, question = words
    if len(where) > 1:
        raise click.UsageError("put the question in quotes")
    wanted = checked_kinds(kinds)
    machine, place = find(where[0] if where else None)
    voice = Voice(settings)
    if rebuild and not asyncio.run(rebuild_index(machine, place)):
        voice.talk("The index in the capsule was left: the capsule is in use, or not held here.")
    found = asyncio.run(
        search(machine, place, question, most=most, kinds=wanted, words_only=words_only)
    )
    if found.without_vectors:
        voice.talk(Painted("by words alone: ", "warn"), found.without_vectors)
    if settings.json:
        from sojourn.cli.shapes import SearchAnswer

        shapes = tuple(_shape(one) for one in found.passages)
        by_meaning = not words_only and not found.without_vectors
        voice.answer(SearchAnswer(capsule=shape_of(place), by_meaning=by_meaning, found=shapes))
        return
    _print(voice, found)


def checked_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds that these are or begin.

    Raises: UsageError `kind_unknown`.
    """
    from sojourn.core.passages import KINDS

    for kind in kinds:
        if not any(name.startswith(kind) for name in KINDS):
            raise UsageError(
                f"nothing of kind {kind} can be found by searching",
                code="kind_unknown",
                hint=f"Kinds: {', '.join(sorted(KINDS))}.",
            )
    return tuple(name for name in KINDS if name.startswith(kinds)) if kinds else ()


def _shape(one: "Recalled") -> "FoundShape":
    from sojourn.cli.shapes import FoundShape

    passage = one.passage
    return FoundShape(
        kind=passage.kind,
        place=passage.place,
        event=passage.event,
        number=passage.number,
        time=passage.time,
        score=round(one.score, 6),
        snippet=one.snippet,
    )


def _print(voice: Voice, found: "Found") -> None:
    if not found.passages:
        voice.talk("Nothing was found.")
    for one in found.passages:
        passage = one.passage
        kind = Painted(f"{passage.kind:<14}", "name")
        when = Painted(f"  {clock_time(passage.time)}, {ago(passage.time)}", "dim")
        number, short = f"{passage.number:>5} ", Painted(f"{passage.event[:8]} ", "dim")
        named = "" if passage.place == passage.event else f"  {passage.place or 'beginning'}"
        voice.data(number, short, kind, named, when)
        voice.data("      ", one.snippet)
