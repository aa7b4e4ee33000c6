"""`sojourn snapshot`: keep the workspace as it is, list and compare, put an earlier one back."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument, complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Voice
from sojourn.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from sojourn.agent import Machine, Place
    from sojourn.ids import EventId


@click.command(
    "snapshot take",
    cls=Command,
    examples=["sojourn snapshot take", "sojourn snapshot take research --json"],
)
@capsule_argument()
@click.pass_obj
def take(settings: Settings, capsule: str | None) -> None:
    """Snapshot the workspace of CAPSULE now, as it is done at the end of each turn.

    Only changed files are read, and nothing is written when nothing changed. Files named in
    .sojournignore (with the syntax of .gitignore) are left alone; a line `#include .gitignore` in
    it counts those of git, too. Without one everything is held: `.git`, so that a repository that
    is put back works, and caches as well, until a line such as `__pycache__/` or `node_modules/`
    names them. Names that no snapshot can hold (sockets, pipes, names that are not UTF-8) are left
    out and listed.
    """
    from sojourn.cli.snapshot_words import Work, hold_and, say_taken

    machine, place = find(capsule)
    voice = Voice(settings)
    with Work(voice, "read") as work:
        taken = hold_and(
            machine,
            place,
            voice,
            lambda agent: agent.workspace.snapshot(progress=work.progress, stop=work.stop),
        )
    say_taken(voice, place, taken)


@click.command(
    "snapshot list",
    cls=Command,
    examples=["sojourn snapshot list", "sojourn snapshot list research --json"],
)
@capsule_argument()
@click.pass_obj
def listing(settings: Settings, capsule: str | None) -> None:
    """List the snapshots of CAPSULE, the oldest first.

    The number is that of the event, as `sojourn log` prints it.
    """
    from sojourn.cli.snapshot_words import say_list

    machine, place = find(capsule)
    say_list(Voice(settings), place, machine.look(place), called=machine.reference(place))


@click.command(
    "snapshot diff",
    cls=Command,
    examples=[
        "sojourn snapshot diff",
        "sojourn snapshot diff research 12",
        "sojourn snapshot diff research 12 27",
    ],
)
@click.argument(
    "words",
    metavar="[CAPSULE] [A [B]]",
    nargs=-1,
    shell_complete=complete_capsule,
    help="The capsule, and two events by number or the beginning of their ids.",
)
@click.pass_obj
def diff(settings: Settings, words: tuple[str, ...]) -> None:
    """Compare two snapshots of CAPSULE, path by path.

    A and B are events; each stands for the last snapshot up to there. Without B it is the last of
    all, and without A the one before that. A path is marked A (added), M (modified), D (removed) or
    T (it is now of another type).
    """
    from sojourn.cli.snapshot_words import say_diff, snapshot_before, snapshot_named

    where, names = split_words(words, most=2)
    machine, place = find(where)
    look, called = machine.look(place), machine.reference(place)
    last = look.folded.snapshots.current
    after = snapshot_named(look, names[1], called=called) if len(names) > 1 else last
    before = snapshot_named(look, names[0], called=called) if names else snapshot_before(look, last)
    say_diff(Voice(settings), look, before, after, called=called)


@click.command(
    "snapshot restore",
    cls=Command,
    examples=[
        "sojourn snapshot restore research 12",
        "sojourn snapshot restore research 12 --to ./then",
        "sojourn snapshot restore research 9f31c0",
    ],
)
@click.argument(
    "words",
    metavar="[CAPSULE] EVENT",
    nargs=-1,
    required=True,
    shell_complete=complete_capsule,
    help="The capsule, and an event by its number or the beginning of its id.",
)
@click.option("--to", "folder", metavar="DIR", help="Put it there, and leave the workspace alone.")
@click.pass_obj
def restore(settings: Settings, words: tuple[str, ...], folder: str | None) -> None:
    """Put the workspace of CAPSULE back to what it was at EVENT.

    That is the last snapshot up to there. What is there now is snapshotted first, so nothing is
    lost, and the agent is told what its files now lack. Files that no snapshot holds are never
    touched; one that lies in the way stops the command before anything changes. Links that would
    lead out of the workspace, or in a circle, are not made.
    """
    from sojourn.cli.snapshot_words import snapshot_named

    where, names = split_words(words, most=1)
    if not names:
        raise click.UsageError("name one event")
    machine, place = find(where)
    called = machine.reference(place)
    event = snapshot_named(machine.look(place), names[0], called=called)
    if event is None:
        raise NotFoundError(
            f"no snapshot was taken up to event {names[0]}",
            code="no_snapshot",
            state="No file was changed.",
            hint=f"`sojourn snapshot list {called}` names them; the first is the earliest.",
        )
    voice = Voice(settings)
    if folder is not None:
        _restore_to(voice, machine, place, event, folder)
    else:
        _restore_here(voice, machine, place, event)


def _restore_here(
    voice: Voice, machine: "Machine", place: "Place", event: "EventId | None"
) -> None:
    from sojourn.cli.shapes_snapshot import SnapshotRestored
    from sojourn.cli.snapshot_words import Work, conflicts, hold_and, say_restored

    with Work(voice, "wrote") as work:
        put = hold_and(
            machine,
            place,
            voice,
            lambda agent: agent.workspace.restore(event, progress=work.progress, stop=work.stop),
        )
    answer = SnapshotRestored(
        capsule=shape_of(place),
        snapshot=event,
        folder=place.workspace or "",
        before=put.before,
        made=put.made,
        removed=put.removed,
        not_made=conflicts(put.refused),
        missing=put.missing,
    )
    say_restored(voice, answer, called=machine.reference(place))


def _restore_to(
    voice: Voice, machine: "Machine", place: "Place", event: "EventId | None", folder: str
) -> None:
    import os

    from sojourn.agent.workspace import extract
    from sojourn.cli.shapes_snapshot import SnapshotRestored
    from sojourn.cli.snapshot_words import Work, conflicts, listed_at, say_restored

    target = os.path.realpath(folder)
    if place.workspace is not None and target == os.path.realpath(place.workspace):
        raise UsageError(
            f"{folder} is the workspace itself",
            code="workspace_live",
            state="Nothing was changed.",
            hint="Leave --to out: then the log says what is put back.",
        )
    look = machine.look(place)
    listed, gone = listed_at(look, event), look.folded.ending.gone
    with Work(voice, "wrote") as work:
        plan = extract(
            machine.ports,
            place,
            listed,
            target,
            gone=gone,
            progress=work.progress,
            stop=work.stop,
        )
    answer = SnapshotRestored(
        capsule=shape_of(place),
        snapshot=event,
        folder=target,
        before=None,
        made=len(plan.make) + len(plan.links),
        removed=0,
        not_made=conflicts(plan.refused),
        missing=(),
    )
    say_restored(voice, answer, called=machine.reference(place))


def split_words(words: tuple[str, ...], *, most: int) -> tuple[str | None, tuple[str, ...]]:
    """The capsule, where one is named, and the events after it.

    A first word is an event when as many events may follow and it looks like one.

    Raises: click.UsageError for too many words.
    """
    if len(words) > most + 1:
        raise click.UsageError("too many words: name a capsule and events")
    if len(words) > most or (words and not looks_like_event(words[0])):
        return words[0], words[1:]
    return None, words


def looks_like_event(word: str) -> bool:
    """Whether a word may be the number of an event or the beginning of its id."""
    from sojourn.cli.show import SHORTEST

    if word.isdecimal():
        return True
    return len(word) >= SHORTEST and not set(word.lower()) - set("0123456789abcdef")
