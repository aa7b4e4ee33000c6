"""What `merge.py` measures in a process of its own: `merge OURS THEIRS OUT` or `load LOG`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sojourn.core.merge import merge

CHUNK = 1 << 20


def chunks(path: Path) -> Iterator[bytes]:
    """Read a file in pieces."""
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            yield data


def no_blob(ref: Any) -> bytes | None:
    """Refuse: the logs that are made name no blob."""
    raise RuntimeError(f"the log that was made names a blob: {ref.sha256}")


def merge_into(ours: Path, theirs: Path, out: Path) -> None:
    """Merge as `sojourn merge` does, which has read both logs and knows what they redact."""
    with out.open("wb") as file:
        for piece in merge(chunks(ours), chunks(theirs), redacted=frozenset()):
            file.write(piece)


def load(path: Path) -> None:
    """Read, check and fold a log as an opening does, and ask for the order of its entries."""
    from sojourn.core.turn_states import TurnStates
    from sojourn.core.view import Transcript
    from sojourn.format.event import Event
    from sojourn.format.timeline_read import Reader

    reader, states, transcript = Reader(read_blob=no_blob), TurnStates(), Transcript()

    def take(items: Sequence[object]) -> None:
        for item in items:
            if not isinstance(item, Event):
                raise TypeError(f"the merged log is not sound: {item}")
            states.apply(item)
            transcript.apply(item)

    for piece in chunks(path):
        take(reader.feed(piece))
    take(reader.finish(same_boot=True).rest)
    sys.stdout.write(f"{len(transcript.entries)}\n")


def main() -> None:
    """Do what the first argument names."""
    what, *paths = sys.argv[1:]
    if what == "merge":
        ours, theirs, out = map(Path, paths)
        merge_into(ours, theirs, out)
    else:
        load(Path(paths[0]))


if __name__ == "__main__":
    main()
