"""Two copies of a capsule: what each has that the other lacks, and one made of both."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from sojourn.agent.aftermath import Target, of_merge, telling
from sojourn.agent.arrive import Arrival, staged
from sojourn.agent.look import Look
from sojourn.agent.machine import Machine
from sojourn.agent.places import Place, place_at
from sojourn.agent.writing import interrupted_at_once
from sojourn.core.chart import Chart
from sojourn.drive.compare import Comparison, compare
from sojourn.drive.importing import DOUBTS
from sojourn.drive.merge import Merged, merge_capsules
from sojourn.drive.observe import Observer, Unwatched
from sojourn.errors import FormatError
from sojourn.format import layout, snapshot


async def merge(
    machine: Machine,
    place: Place,
    other: str,
    *,
    dry_run: bool = False,
    observer: Observer | None = None,
) -> Merged:
    """Take into the capsule all that the one in folder `other` has (docs/protocol.md#merge).

    Raises: NotFoundError `no_capsule`; as `drive.merge.merge_capsules`.
    """
    there = place_at(machine.ports, os.path.realpath(other))
    log = Target(os.path.join(place.folder, layout.TIMELINE))
    with telling(lambda: of_merge(log)):
        return await merge_capsules(
            machine.ports,
            place.folder,
            there.folder,
            dry_run=dry_run,
            observer=observer or Unwatched(),
        )


async def merge_archive(
    machine: Machine,
    place: Place,
    file: str,
    *,
    identities: Sequence[str] = (),
    dry_run: bool = False,
    observer: Observer | None = None,
) -> tuple[Merged, Arrival]:
    """The same with the capsule in an archive: it is checked like one that is imported.

    Nothing is kept of it but what the capsule lacks. Raises: as `import_archive` and `merge`.
    """
    log = Target(os.path.join(place.folder, layout.TIMELINE))
    with telling(lambda: of_merge(log)), ExitStack() as stack:
        with interrupted_at_once():
            staging, arrival = stack.enter_context(staged(machine, file, identities=identities))
        _refuse_doubts(arrival)
        merged = await merge_capsules(
            machine.ports,
            place.folder,
            staging.folder,
            dry_run=dry_run,
            observer=observer or Unwatched(),
        )
        return merged, arrival


def _refuse_doubts(arrival: Arrival) -> None:
    """Nothing, when the signature is what this machine knows of the capsule.

    Raises: FormatError `signature_stripped` or `other_signer`.
    """
    for doubt in arrival.doubts:
        if doubt != "older_copy":
            raise FormatError(
                DOUBTS[doubt],
                code=doubt,
                state="Nothing was merged.",
                hint="Ask its sender for one that is signed as before, or look at it from another "
                "state folder (SOJOURN_HOME) with `sojourn import`.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What two capsules of one origin have that the other lacks.

    `notes` are both texts of the working memory, the same object where they are equal. Paths are
    of the current snapshots: in both with other content, and in one alone.
    """

    comparison: Comparison
    notes: tuple[str, str]
    changed: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


def difference(machine: Machine, one: Place, other: Place) -> Difference:
    """Compare two capsules, neither of which needs to be held here; nothing is changed.

    Raises: UsageError `other_lineage`; FormatError where one cannot be read.
    """
    looks = [machine.look(place) for place in (one, other)]
    logs = [look.store.read_log(0, look.length) for look in looks]
    before, after = (_entries(look) for look in looks)
    both = before.keys() & after.keys()
    return Difference(
        comparison=compare(logs[0], logs[1]),
        notes=(_notes(looks[0]), _notes(looks[1])),
        changed=tuple(sorted(path for path in both if before[path] != after[path])),
        ours=tuple(sorted(before.keys() - both)),
        theirs=tuple(sorted(after.keys() - both)),
    )


def chart(look: Look) -> Chart:
    """The strands of a capsule and what each did."""
    made = Chart()
    for number, event in look.numbered():
        made.apply(event, number)
    return made


def _notes(look: Look) -> str:
    return look.text(look.folded.memory.text)


def _entries(look: Look) -> dict[str, object]:
    """The files of the current snapshot by path.

    Raises: FormatError `snapshot_malformed`.
    """
    data = look.store.read_file(layout.SNAPSHOT)
    if data is None:
        raise FormatError("there is no snapshot.json", code="file_missing", file=layout.SNAPSHOT)
    return {entry.path: entry for entry in snapshot.load(data).entries}
