"""Writes `memory/vector_index/index.json`: derived, so only when nothing else is going on.

Never part of a step (docs/recall.md#index-file).
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from sojourn.core.passages import DOCUMENT, MEMORY
from sojourn.core.tenure import MayRun, admit
from sojourn.drive.hold import Hold
from sojourn.drive.machine import Ports
from sojourn.drive.observe import Unwatched
from sojourn.drive.opening import examine
from sojourn.drive.recall import Recaller
from sojourn.errors import HeldElsewhereError
from sojourn.format import index, layout
from sojourn.format.working_memory import compare
from sojourn.ids import CapsuleId
from sojourn.ports import Store
from sojourn.ports_recall import WorkingIndex

WORTH: Final = 8
"""The file is written again when an eighth of its entries are new, or any went."""


def index_bytes(recaller: Recaller) -> bytes:
    """The file's bytes for what the working index holds; the newest entries, when it is large."""
    embedder = recaller.embedder
    mark = index.EmbedderMark(
        name=embedder.name, digest=embedder.digest, dimensions=embedder.dimensions
    )
    return index.encode(mark, _entries(recaller.index))


def _entries(working: WorkingIndex) -> Iterator[index.Entry]:
    for kept, vector in working.with_vectors():
        space, place, part = kept.key
        yield index.Entry(
            event=None if space else place,
            memory=place if space == MEMORY else None,
            document=place if space == DOCUMENT else None,
            part=part,
            text=kept.digest,
            vector=index.vector_text(vector),
        )


async def write_index(
    ports: Ports, folder: str, capsule: CapsuleId, data: bytes, *, always: bool = False
) -> bool:
    """Write the file where that disturbs nobody; whether it is as it should be now.

    The capsule must be held here, be used by no process, and have nothing to recover. Unless
    `always`, a file that lacks but few entries is left as it is.

    Raises: StorageError when the write failed.
    """
    store = ports.store_at(folder)
    try:
        if not always and not _worth_it(store.read_file(layout.INDEX), data):
            return True
        with ports.lock.acquire(capsule) as left:
            if left is not None:
                return False
            return await _write(ports, store, folder, data)
    except HeldElsewhereError:
        return False
    finally:
        store.close()


async def _write(ports: Ports, store: Store, folder: str, data: bytes) -> bool:
    folded, evidence = examine(ports, store, folder, left=None, recover=False)
    admission = admit(evidence)
    notes = compare(folded.memory, store.read_file(layout.WORKING_MEMORY) or b"")
    quiet = folded.ending.torn is None and notes == "equal"
    if not isinstance(admission, MayRun) or admission.moved or not quiet:
        return False
    hold = Hold(
        ports=ports,
        store=store,
        record=admission.record,
        folded=folded,
        machine=ports.key.machine(),
        observer=Unwatched(),
    )
    hold.project(layout.INDEX, data)
    await hold.refresh()
    return True


def _worth_it(there: bytes | None, wanted: bytes) -> bool:
    """Whether the file is gone, damaged, foreign, lacks much, or names what is gone."""
    if there == wanted:
        return False
    if there is None or _around(there) != _around(wanted):
        return True
    before, after = _digests(there), _digests(wanted)
    return not before <= after or len(after - before) * WORTH >= len(after)


def _around(data: bytes) -> tuple[bytes, bytes]:
    """What stands before and after the entries: format and embedder."""
    head, _, rest = data.partition(b'"entries":[')
    return head, rest.rpartition(b"]")[2]


def _digests(data: bytes) -> set[bytes]:
    """The digests of the entries, which are not read as JSON."""
    entries = data.partition(b'"entries":[{')[2].rpartition(b"}]")[0]
    return {sha256(entry).digest() for entry in entries.split(b"},{")}
