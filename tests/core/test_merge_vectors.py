"""Every vector of merging comes out as it says, from either side (docs/format.md#merge)."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.copies import merged
from format.logs import read
from format.vectors import content
from sojourn.errors import SojournError
from sojourn.format.event import Memory
from sojourn.format.working_memory import START, add

FOLDER = Path(__file__).resolve().parent.parent / "vectors" / "merge"
VECTORS = sorted(FOLDER.glob("*.json"))


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One file, read."""

    ours: bytes
    theirs: bytes
    merged: bytes
    failure: str | None
    notes: str | None


def load(path: Path) -> Pair:
    raw = json.loads(path.read_text())
    logs = {name: content(raw[name]) for name in ("ours", "theirs", "merged")}
    return Pair(**logs, failure=raw["failure"], notes=raw["notes"])


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
@pytest.mark.parametrize("size", [1, 1000, 1 << 20])
def test_a_pair_of_logs_merges_as_its_vector_says(path: Path, size: int) -> None:
    pair = load(path)
    for one, other in ((pair.ours, pair.theirs), (pair.theirs, pair.ours)):
        if pair.failure is None:
            assert merged(one, other, size=size) == pair.merged
            continue
        with pytest.raises(SojournError) as refused:
            merged(one, other, size=size)
        assert refused.value.code == pair.failure


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_the_notes_of_a_merged_log_are_as_its_vector_says(path: Path) -> None:
    pair = load(path)
    if pair.notes is None:
        return
    fold = START
    for event in read(pair.merged)[0]:
        if isinstance(event.body, Memory):
            fold = add(fold, event.body, read_text=str)
    assert fold.text == pair.notes


def test_there_are_vectors_of_what_is_merged_and_of_what_is_refused() -> None:
    failures = [load(path).failure for path in VECTORS]
    assert failures.count(None) >= 8
    assert {"other_lineage", "body_altered", "clock_jump", "file_order"} <= set(failures)
