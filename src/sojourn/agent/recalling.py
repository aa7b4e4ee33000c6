"""Searching a capsule: by a person from outside, and by its agent from within."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sojourn.agent.places import Place
from sojourn.drive.index_file import index_bytes, write_index
from sojourn.drive.recall import Found, Recaller
from sojourn.embedders.static import StaticEmbedder
from sojourn.errors import CallError, FormatError, StorageError
from sojourn.ids import EventId
from sojourn.ports_recall import Embedder, Recalled, RecallExcept
from sojourn.store.working_index import SqliteWorkingIndex

if TYPE_CHECKING:
    from sojourn.agent.machine import Machine


def recaller_of(machine: "Machine", place: Place, *, embedder: Embedder | None = None) -> Recaller:
    """What searches the capsule; nothing is read yet."""
    return Recaller(
        capsule=place.capsule,
        store=machine.ports.store_at(place.folder),
        index=SqliteWorkingIndex(machine.state.working_index(place.capsule, place.folder)),
        embedder=embedder or StaticEmbedder(),
    )


async def search(
    machine: "Machine",
    place: Place,
    question: str,
    *,
    most: int = 10,
    kinds: Sequence[str] = (),
    words_only: bool = False,
    embedder: Embedder | None = None,
) -> Found:
    """Find passages of the capsule's events, notes and documents, the nearest first.

    Takes in what was added to the log, in the state folder. The capsule's own index file follows
    when nobody uses the capsule (docs/recall.md#index-file).

    Raises: StorageError.
    """
    recaller = recaller_of(machine, place, embedder=embedder)

    def find() -> Found:
        with recaller.index.alone():
            recaller.bring_up(whole=True)
            return recaller.find(question, most=most, kinds=kinds, words_only=words_only)

    found = await asyncio.to_thread(_twice, find)
    if not words_only and not found.without_vectors:
        try:
            await _write(machine, place, recaller, always=False)
        except (FormatError, StorageError):
            # On a read-only disk, or where no plain file lies, it is searched all the same.
            return found
    return found


async def rebuild_index(
    machine: "Machine", place: Place, *, embedder: Embedder | None = None
) -> bool:
    """Make the index anew from the log, and the capsule's file of it.

    False when the file had to be left: another process uses the capsule, it is not held here, or
    it has something to recover. Raises: StorageError, CallError.
    """
    recaller = recaller_of(machine, place, embedder=embedder)

    def rebuild() -> None:
        with recaller.index.alone():
            recaller.rebuild()
            recaller.embed()

    await asyncio.to_thread(rebuild)
    return await _write(machine, place, recaller, always=True)


def _twice(find: Callable[[], Found]) -> Found:
    """What is found; an index that shows damage while it is used is gone the second time."""
    try:
        return find()
    except StorageError as error:
        if error.code != "index_unusable":
            raise
        return find()


async def _write(machine: "Machine", place: Place, recaller: Recaller, *, always: bool) -> bool:
    def make() -> bytes:
        with recaller.index.alone():
            return index_bytes(recaller)

    data = await asyncio.to_thread(make)
    return await write_index(machine.ports, place.folder, place.capsule, data, always=always)


def recall_of(machine: "Machine", place: Place) -> RecallExcept:
    """What the agent's tool asks: this capsule alone, but for one event, the message it answers."""
    recaller = recaller_of(machine, place)

    async def recall(question: str, most: int, leave_out: EventId | None) -> Sequence[Recalled]:
        def find() -> Found:
            with recaller.index.alone():
                recaller.bring_up(whole=False)
                return recaller.find(question, most=most, leave_out=leave_out)

        try:
            return (await asyncio.to_thread(_twice, find)).passages
        except StorageError as error:
            raise CallError(error.message, code=error.code, hint=error.hint) from error

    return recall
