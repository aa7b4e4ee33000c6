"""Forking: a capsule of its own that goes on from an event of another.

docs/protocol.md#fork is the specification.
"""

import os

from sojourn.agent.aftermath import Target, of_fork, telling
from sojourn.agent.machine import Machine
from sojourn.agent.places import Place, check_apart, check_name, known_places
from sojourn.drive.fork import ForkedCapsule, Home, fork_capsule
from sojourn.drive.observe import Observer, Unwatched
from sojourn.ids import EventId
from sojourn.ports_workspace import Progress, Stop


async def fork(
    machine: Machine,
    place: Place,
    folder: str | None = None,
    *,
    at: EventId | None = None,
    name: str | None = None,
    workspace: str | None = None,
    observer: Observer | None = None,
    progress: Progress | None = None,
    stop: Stop | None = None,
) -> ForkedCapsule:
    """Make a capsule of its own that goes on from an event of this one, or from its end.

    Default name `<name>-fork`, default folder and workspace as for a new capsule. The workspace is
    filled from the last snapshot up to there; what lies in it stays.

    Raises: UsageError `exists`, `fork_too_early`, `folders_nested`, `restore_conflict`;
    FormatError; StoppedError; StorageError.
    """
    if name is None:
        name = (
            os.path.basename(os.path.realpath(folder)) if folder else free_name(machine, place.name)
        )
    check_name(name)
    target = os.path.realpath(folder or os.path.join(machine.state.capsules, name))
    chosen = None if workspace is None else os.path.realpath(workspace)
    check_apart(target, chosen or machine.state.workspaces)
    check_apart(target, place.folder)
    if chosen is not None:
        check_apart(place.folder, chosen)
    home = Home(workspace=lambda capsule: chosen or machine.state.workspace(capsule))
    made = Target(target)
    there = chosen if chosen is not None and os.path.isdir(chosen) else None
    with telling(lambda: of_fork(made, there)):
        return await fork_capsule(
            machine.ports,
            place.folder,
            target,
            name=name,
            at=at,
            home=home,
            observer=observer or Unwatched(),
            progress=progress,
            stop=stop,
        )


def free_name(machine: Machine, of: str) -> str:
    """The first of `NAME-fork`, `NAME-fork-2`, ... that no capsule has here."""
    taken = {known.name for known in known_places(machine.ports)}
    stem = f"{of[:50]}-fork"
    count, name = 1, stem
    while name in taken or os.path.lexists(os.path.join(machine.state.capsules, name)):
        count += 1
        name = f"{stem}-{count}"
    return name
