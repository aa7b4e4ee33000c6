"""Other machines on the command line: naming one, and the capsules that are there."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from sojourn.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from sojourn.agent import Machine
    from sojourn.cli.shapes import CapsuleShape, ListedShape
    from sojourn.core.standings import Standing
    from sojourn.peers.peer import LinkPeer
    from sojourn.peers.shapes import Listed

Command = TypeVar("Command", bound=Callable[..., object])


def complete_remote(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of known machines; a list that cannot be read completes nothing."""
    from sojourn.agent import Machine
    from sojourn.agent.links import book_of
    from sojourn.errors import SojournError

    try:
        known = book_of(Machine()).known()
    except (OSError, SojournError):
        known = ()
    return [CompletionItem(one.name) for one in known if one.name.startswith(incomplete)]


def remote_option() -> Callable[[Command], Command]:
    """The option --remote: another machine, by its name or its address."""
    return click.option(
        "--remote",
        metavar="R",
        shell_complete=complete_remote,
        help="On another machine: a name of `sojourn remote list`, or user@host.",
    )


def close_by(where: str, machine: "Machine") -> str:
    """`where`, unless it means the daemon of this machine, which runs on return then."""
    from sojourn.agent.links import socket_of
    from sojourn.daemon.start import ensure

    if where == f"unix://{socket_of(machine)}":
        ensure(machine)
    return where


async def find_there(peer: "LinkPeer", where: str | None) -> "Listed":
    """The capsule of that name, or id or its beginning, on the other machine.

    Raises: NotFoundError `no_capsule`; UsageError `name_twice`; PeerError.
    """
    listed = (await peer.capsules()).capsules
    fitting = [one for one in listed if where in (None, one.name, one.capsule)]
    if not fitting and where is not None and len(where) >= 8:
        fitting = [one for one in listed if one.capsule.startswith(where)]
    if len(fitting) == 1:
        return fitting[0]
    names = ", ".join(one.name for one in listed) or "none"
    if not fitting:
        raise NotFoundError(
            f"there is no capsule called {where} at {peer.address}",
            code="no_capsule",
            state="Nothing was done.",
            hint=f"There are: {names}.",
        )
    raise UsageError(
        f"{len(fitting)} capsules at {peer.address} could be meant",
        code="name_twice",
        state="Nothing was done.",
        hint="Name one by its id: " + ", ".join(one.capsule[:12] for one in fitting),
    )


def there_shape(listed: "Listed") -> "CapsuleShape":
    """The capsule as --json names it; its workspace is not told."""
    from sojourn.cli.shapes import CapsuleShape

    return CapsuleShape(id=listed.capsule, name=listed.name, folder=listed.folder, workspace=None)


def row_shape(listed: "Listed") -> "ListedShape":
    """A row of `ps`."""
    from sojourn.cli.shapes import FaultShape, HeldShape, ListedShape

    held, why = listed.held_by, listed.reason
    return ListedShape(
        capsule=there_shape(listed),
        standing=_standing(listed.standing),
        model=listed.model,
        held_by=None
        if held is None
        else HeldShape(pid=held.pid, since=held.since, command=held.command),
        events=listed.events,
        last_time=listed.last_time,
        waiting=listed.waiting,
        reason=None if why is None else FaultShape(code=why.code, message=why.message),
    )


def _standing(text: str) -> "Standing":
    """One of those that this version knows; what a later one says may be looked at, at least."""
    import msgspec

    from sojourn.core.standings import Standing

    try:
        return msgspec.convert(text, Standing)
    except msgspec.ValidationError:
        return "look_only"
