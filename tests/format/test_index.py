"""The index file: what is written is read again, sorted, and never larger than its limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.format import index, layout

MARK = index.EmbedderMark(name="a/1", digest="d" * 64, dimensions=2)


def entry(vector: bytes = b"\x81\x7f", *, part: int = 0, **place: str) -> index.Entry:
    return index.Entry(**place, part=part, text="f" * 64, vector=index.vector_text(vector))


def test_entries_are_sorted_whatever_order_they_come_in() -> None:
    sorted_ones = [
        entry(event="0" * 64),
        entry(event="0" * 64, part=2),
        entry(event="0" * 64, part=10),
        entry(event="f" * 64),
        entry(memory="# A"),
        entry(document="todo"),
    ]
    data = index.encode(MARK, reversed(sorted_ones))
    assert index.load(data).entries == tuple(sorted_ones)
    assert index.encode(MARK, sorted_ones) == data


@given(st.binary(min_size=2, max_size=2))
def test_any_vector_is_read_as_it_was_written(vector: bytes) -> None:
    (found,) = index.load(index.encode(MARK, [entry(vector, event="e" * 64)])).entries
    assert index.entry_vector(found) == vector


def test_what_does_not_fit_is_left_out_from_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [entry(event=f"{number:064x}") for number in range(100)]
    monkeypatch.setattr(layout, "MAX_INDEX", 5000)
    data = index.encode(MARK, reversed(entries))
    kept = index.load(data).entries
    assert len(data) <= 5000
    assert 0 < len(kept) < 100
    assert kept == tuple(entries[-len(kept) :])


def test_names_with_any_character_are_kept() -> None:
    name = 'a "quoted" },{ name \U0001f600'
    assert index.load(index.encode(MARK, [entry(memory=name)])).entries[0].memory == name
