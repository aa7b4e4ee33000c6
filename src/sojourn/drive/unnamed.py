"""Which blobs of a capsule nothing names (docs/protocol.md#gc)."""

from collections.abc import Iterable, Iterator

from sojourn.drive.reading import blob_or_none
from sojourn.drive.rewrite import events_of
from sojourn.format import layout
from sojourn.format.event import Event
from sojourn.format.naming import digests, named_by
from sojourn.ids import BlobId
from sojourn.ports import Store


def unnamed(store: Store, blobs: Iterable[BlobId]) -> tuple[BlobId, ...]:
    """Those of the blobs that neither the log nor any file of the capsule names, sorted.

    Whatever looks like a digest counts as a name, wherever it stands, so a file that was made to
    mislead can keep a blob and never give one away.
    """
    left = set(blobs)
    for name in _named(store):
        left.discard(BlobId(name))
        if not left:
            break
    return tuple(sorted(left))


def _named(store: Store) -> Iterator[str]:
    for line, result in events_of(store):
        yield from digests(line)
        event = result if isinstance(result, Event) else result.event
        if event is not None:
            yield from named_by(line, event, lambda ref: blob_or_none(store, ref))
    for name in store.file_names():
        if name not in (layout.TIMELINE, layout.INDEX):
            yield from digests(store.read_file(name) or b"")
