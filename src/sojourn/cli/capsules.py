"""Naming a capsule on the command line, and how it stands (docs/cli.md#standings)."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Look, Machine, Place
    from sojourn.cli.shapes import CapsuleShape, FaultShape, HeldShape
    from sojourn.core.standings import Standing
    from sojourn.ports import HeldBy

Command = TypeVar("Command", bound=Callable[..., object])


def complete_capsule(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of this machine's capsules, and folders; a broken state folder completes nothing."""
    from sojourn.agent import Machine
    from sojourn.errors import SojournError

    try:
        places = Machine().places()
    except (OSError, SojournError):
        places = ()
    names = sorted({place.name for place in places if place.name.startswith(incomplete)})
    return [CompletionItem(incomplete, type="dir"), *map(CompletionItem, names)]


def capsule_argument(*, many: bool = False) -> Callable[[Command], Command]:
    """The CAPSULE argument: a path or a name; without it the current folder or the last used."""
    return click.argument(
        "capsules" if many else "capsule",
        metavar="[CAPSULE]..." if many else "[CAPSULE]",
        required=False,
        nargs=-1 if many else 1,
        shell_complete=complete_capsule,
        help="A path or a name; by default the current folder or the last one used.",
    )


def find(where: str | None, *, telling: bool = True) -> "tuple[Machine, Place]":
    """This machine, and the capsule that `where` names; `telling` says so of the one used last.

    Raises: NotFoundError, UsageError.
    """
    from sojourn.agent import Machine

    machine = Machine()
    place = machine.find(where)
    if telling and where is None and place.folder != os.path.realpath(os.curdir):
        _say_last_used(machine.reference(place))
    return machine, place


def _say_last_used(name: str) -> None:
    """Tell people which capsule was taken, since the current folder is none."""
    context = click.get_current_context(silent=True)
    settings = None if context is None else context.find_object(Settings)
    if settings is not None and not settings.json:
        Voice(settings).talk(Painted(f"capsule {name}: the one used last", "dim"))


def shape_of(place: "Place") -> "CapsuleShape":
    """The capsule as --json names it."""
    from sojourn.cli.shapes import CapsuleShape

    return CapsuleShape(
        id=place.capsule, name=place.name, folder=place.folder, workspace=place.workspace
    )


def held_shape(held_by: "HeldBy | None") -> "HeldShape | None":
    """The holding process as --json names it."""
    from sojourn.cli.shapes import HeldShape

    if held_by is None:
        return None
    return HeldShape(pid=held_by.pid, since=held_by.since, command=held_by.command)


def standing_of(look: "Look") -> "Standing":
    """How the capsule stands, in one word: what a person would want to know first."""
    from sojourn.agent import standing

    return standing.standing_of(look)


def reason_of(look: "Look") -> "FaultShape | None":
    """Why the capsule will not run here; None when it may."""
    from sojourn.cli.shapes import FaultShape
    from sojourn.core.tenure import MayLook

    if not isinstance(look.admission, MayLook):
        return None
    return FaultShape(code=look.admission.code, message=look.admission.message)


STANDINGS = {
    "running": ("good", "a process here runs its turn"),
    "held": ("good", "a process here holds it; no turn is open"),
    "frozen": ("warn", "it is being moved to another machine; `move status` shows how far"),
    "in_doubt": ("alarm", "a move is undecided: nobody runs it until the other machine answers"),
    "moved_away": ("dim", "it was moved to another machine and runs there"),
    "arriving": ("warn", "it is coming from another machine and not held here yet"),
    "look_only": ("warn", "it may be looked at and not run here; `status` says why"),
    "damaged": ("bad", "some of its bytes are not what was written; `verify` names them"),
    "decision": ("alarm", "a call may have happened, and a person must decide: `resume`"),
    "model_failed": ("warn", "the model failed; `resume` asks it again"),
    "paused": ("warn", "a person stopped the turn; `resume` goes on"),
    "interrupted": ("alarm", "the process that ran the turn is gone; `resume` or `work` goes on"),
    "waiting": ("name", "a message waits; `work` or `resume` takes it"),
    "resting": ("dim", "nothing to do"),
}
"""Each standing: its style, and what it means in docs/cli.md."""
