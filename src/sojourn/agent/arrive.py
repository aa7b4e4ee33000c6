"""Importing an archive: into a private folder, verified, shown, and only then kept.

docs/format.md#archive. Nothing of what arrives runs, and nothing outside staging is written before
the answer.
"""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from sojourn.agent.aftermath import Target, of_import, telling
from sojourn.agent.archives import check_signature, decrypting
from sojourn.agent.forking import fork, free_name
from sojourn.agent.machine import Machine
from sojourn.agent.places import Place, check_name, is_capsule, known_places, place_at
from sojourn.agent.writing import Progress, interrupted_at_once, watched
from sojourn.drive.fork import ForkedCapsule
from sojourn.drive.importing import (
    Arrived,
    Doubt,
    Relation,
    arrived,
    doubts,
    record_after,
    relation,
)
from sojourn.drive.observe import Observer
from sojourn.errors import FormatError, HeldElsewhereError, SojournError
from sojourn.format import archive, layout
from sojourn.format.failures import finding
from sojourn.format.signature import Signed
from sojourn.format.verify import verify
from sojourn.ids import Incarnation
from sojourn.ports import Store
from sojourn.store.archive_file import Wrapping, open_archive
from sojourn.store.files import FolderFiles
from sojourn.store.staging import STAGED, Staging, exists


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What an import found, before it is kept; `here` is where a capsule of the same id lies.

    `tools` and `secrets` are names that the capsule needs and that are not here.
    """

    found: Arrived
    target: str
    size: int
    relation: Relation
    here: str | None
    doubts: tuple[Doubt, ...]
    signed: Signed | None
    wrapped: tuple[Wrapping, ...]
    tools: tuple[str, ...]
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How an import ended; `place` is None when it was declined, or when it is here already.

    `forked` is the capsule that was made of it, None when it is here under its own id.
    """

    arrival: Arrival
    place: Place | None
    forked: ForkedCapsule | None = None


def import_archive(
    machine: Machine,
    file: str,
    *,
    name: str | None = None,
    identities: Sequence[str] = (),
    allowed_signers: str | None = None,
    accept: Callable[[Arrival], bool],
    progress: Progress | None = None,
) -> Imported:
    """Take the capsule in a file in, once `accept` said yes to what was found.

    `name` is a name, or the path of its new folder (default: the capsule's own name). The capsule
    keeps its id and opens for reading.

    Raises: FormatError for whatever is wrong with it; HeldElsewhereError `older_copy` or
    `merge_needed` when the same capsule is here; UsageError `exists`; StorageError; LimitError.
    """
    taking = _Taking(machine, name)
    with (
        telling(taking.state),
        staged(
            machine,
            file,
            name=name,
            identities=identities,
            allowed_signers=allowed_signers,
            progress=progress,
        ) as (staging, arrival),
    ):
        _refuse_known(arrival)
        taking.target = Target(arrival.target)
        if arrival.relation == "same" or not accept(arrival):
            return Imported(arrival=arrival, place=None)
        return Imported(arrival=arrival, place=_keep(machine, staging, arrival))


async def import_as_new(
    machine: Machine,
    file: str,
    *,
    name: str | None = None,
    workspace: str | None = None,
    identities: Sequence[str] = (),
    allowed_signers: str | None = None,
    accept: Callable[[Arrival], bool],
    observer: Observer,
    progress: Progress | None = None,
) -> Imported:
    """Make a capsule of its own of the one in a file: held here, and ready to run.

    The id in the archive is not remembered. `name` as for `import_archive`; without one it is the
    capsule's own, or `<name>-fork` where that is taken.

    Raises: as `import_archive`, but for what is here already; as `forking.fork`.
    """
    taking = _Taking(machine, name)
    with telling(taking.state), ExitStack() as stack:
        with interrupted_at_once():
            staging, arrival = stack.enter_context(
                staged(
                    machine,
                    file,
                    name=name,
                    identities=identities,
                    allowed_signers=allowed_signers,
                    progress=progress,
                    as_new=True,
                )
            )
            if os.path.lexists(arrival.target):
                raise exists(arrival.target)
            taking.target = Target(arrival.target)
            if not accept(arrival):
                return Imported(arrival=arrival, place=None)
        made = await fork(
            machine,
            place_at(machine.ports, staging.folder),
            arrival.target,
            workspace=workspace,
            observer=observer,
        )
        return Imported(arrival=arrival, place=place_at(machine.ports, made.folder), forked=made)


class _Taking:
    """Where an import is: what it left can be told from it."""

    def __init__(self, machine: Machine, name: str | None) -> None:
        self._staged_in = Target(os.path.join(_parent(machine, name), STAGED))
        self.target: Target | None = None

    def state(self) -> str:
        """The state now that it failed."""
        return of_import(self.target, self._staged_in)


@contextmanager
def staged(
    machine: Machine,
    file: str,
    *,
    name: str | None = None,
    identities: Sequence[str] = (),
    allowed_signers: str | None = None,
    progress: Progress | None = None,
    as_new: bool = False,
) -> Generator[tuple[Staging, Arrival]]:
    """An archive in a private folder, verified and judged; the folder goes when this ends.

    What an import that died left there is removed first. Raises: as `import_archive`.
    """
    parent = _parent(machine, name)
    with open_archive(file, decrypt=decrypting(identities)) as opened:
        staging = Staging(parent)
        try:
            staging.sweep(machine.ports.maker)
            size = staging.fill(archive.read(watched(opened.pieces(), 0, progress)))
            arrival = _arrival(
                machine,
                staging,
                target=_target(machine, name, staging, as_new=as_new),
                allowed_signers=allowed_signers,
                size=size,
                wrapped=opened.wrapped,
            )
            yield staging, arrival
        finally:
            staging.discard()


def _arrival(
    machine: Machine,
    staging: Staging,
    *,
    target: str,
    allowed_signers: str | None,
    size: int,
    wrapped: tuple[Wrapping, ...],
) -> Arrival:
    """Verify and judge what lies in staging."""
    files, store = FolderFiles(staging.folder), machine.ports.store_at(staging.folder)
    for path in files.odd():
        wrong = finding("path_unsafe", path)
        raise FormatError(wrong.message, code=wrong.code, file=path)
    for wrong in verify(files):
        raise FormatError(wrong.message, code=wrong.code, file=wrong.file, line=wrong.line)
    found = arrived(store)
    data = files.read(layout.MANIFEST, layout.MAX_MANIFEST) or b""
    signed = check_signature(files, data, allowed_signers=allowed_signers)
    record = machine.ports.ledger.load(found.manifest.capsule)
    here = None if record is None or not is_capsule(record.folder) else record.folder
    near: Store | None = None if here is None else machine.ports.store_at(here)
    return Arrival(
        found=found,
        target=target,
        size=size,
        relation=relation(found, arrived_in=store, here=near),
        here=here,
        doubts=doubts(found, arrived_in=store, record=record, signed=signed),
        signed=signed,
        wrapped=wrapped,
        tools=_missing_tools(found),
        secrets=tuple(
            name
            for name, secret in sorted(found.environment.secrets.items())
            if secret.required and name not in machine.environment
        ),
    )


def _refuse_known(arrival: Arrival) -> None:
    """Guard: a capsule that is here already is not put beside itself."""
    if arrival.relation == "same":
        return
    if arrival.relation == "new":
        if os.path.lexists(arrival.target):
            raise exists(arrival.target)
        return
    if arrival.relation == "older":
        raise HeldElsewhereError(
            f"{arrival.here} holds all that is in this archive, and more",
            code="older_copy",
            state="Nothing was imported.",
            hint="Look at the earlier state there:  sojourn log",
        )
    more = "and lacks some of what is there" if arrival.relation == "parted" else "and all of that"
    raise HeldElsewhereError(
        f"the archive has events that the same capsule in {arrival.here} lacks, {more}",
        code="merge_needed",
        state="Nothing was imported.",
        hint=f"Take its events in:  sojourn merge {arrival.here} FILE",
    )


def _keep(machine: Machine, staging: Staging, arrival: Arrival) -> Place:
    """Rename the folder, then remember it: a crash between leaves a copy that nobody holds."""
    capsule, ports = arrival.found.manifest.capsule, machine.ports
    with ports.lock.acquire(capsule):
        before = ports.ledger.load(capsule)
        if before is not None and is_capsule(before.folder):
            raise exists(before.folder)
        staging.keep(arrival.target)
        ports.ledger.save(
            record_after(
                arrival.found,
                before=before,
                folder=arrival.target,
                workspace=machine.state.workspace(capsule),
                incarnation=Incarnation(ports.randomness.token(16).hex()),
                signed=arrival.signed,
                doubtful=arrival.doubts,
            )
        )
    return place_at(ports, arrival.target)


def _missing_tools(found: Arrived) -> tuple[str, ...]:
    """Names of tools that the agent was given and that are not built in."""
    from sojourn.tools.toolbox import built_in, toolbox

    configured = found.folded.transcript.configured
    known = toolbox(built_in())
    specs = () if configured is None else configured[1].tools
    return tuple(sorted(spec.name for spec in specs if spec.name not in known))


def _parent(machine: Machine, name: str | None) -> str:
    if name is not None and os.sep in name:
        return os.path.dirname(os.path.realpath(name))
    return machine.state.capsules


def _target(machine: Machine, name: str | None, staging: Staging, *, as_new: bool) -> str:
    """Where the capsule shall lie.

    Raises: UsageError `name_refused`.
    """
    if name is not None and os.sep in name:
        return os.path.realpath(name)
    parent = os.path.dirname(staging.folder)
    chosen = check_name(name or _own_name(machine, staging))
    taken = {known.name for known in known_places(machine.ports)} if as_new else set[str]()
    if as_new and name is None and (chosen in taken or os.path.lexists(f"{parent}/{chosen}")):
        chosen = free_name(machine, chosen)
    return f"{parent}/{chosen}"


def _own_name(machine: Machine, staging: Staging) -> str:
    """The name by which the archive's capsule calls itself, as far as it can be read."""
    try:
        return place_at(machine.ports, staging.folder).name
    except SojournError:
        return "capsule"
