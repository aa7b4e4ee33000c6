"""What another line accounts for is no failure, and nothing else is pardoned."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.logs import BIRTH, START, append, read, said
from sojourn.format import pardons
from sojourn.format.capsule_kinds import Redacted, Repaired
from sojourn.format.event import Event
from sojourn.format.line import HEADER
from sojourn.ids import Seq

COUNT = 8


def lines_of(events: tuple[Event, ...], data: bytes) -> list[bytes]:
    lines = data.splitlines(keepends=True)
    assert len(lines) == len(events)
    return lines


def null(line: bytes) -> bytes:
    return b'{"body":null' + line[line.rindex(HEADER) :]


def redacted_log(named: set[int], nulled: set[int]) -> tuple[bytes, bytes]:
    """A log that names some events as redacted, and nulls some; also as it was before."""
    first = append(START, BIRTH, *(said(str(at)) for at in range(COUNT)))
    ids = [event.id for event in first.events]
    second = append(
        first.chain, *(Redacted(event=ids[at], by="you", reason="x") for at in sorted(named))
    )
    lines = lines_of(first.events, first.data)
    kept = [null(line) if at in nulled else line for at, line in enumerate(lines)]
    return b"".join(kept) + second.data, first.data + second.data


PLACES = st.sets(st.integers(1, COUNT), min_size=1)


@given(PLACES, PLACES)
def test_a_null_body_is_sound_just_when_it_is_named(named: set[int], nulled: set[int]) -> None:
    data, _ = redacted_log(named, nulled)
    events, damages, ending = read(data)
    assert [damage.line - 1 for damage in damages] == sorted(nulled - named)
    assert {damage.code for damage in damages} <= {"body_null"}
    assert ending.run_allowed == (nulled <= named)
    assert [at for at, event in enumerate(events) if event.body is None] == sorted(nulled)


@given(PLACES)
def test_every_id_stays_when_bodies_go(named: set[int]) -> None:
    data, before = redacted_log(named, named)
    assert [e.id for e in read(data)[0]] == [e.id for e in read(before)[0]]


@given(PLACES, st.data())
@settings(max_examples=200)
def test_every_flipped_bit_of_a_redacted_log_is_noticed(
    named: set[int], draw: st.DataObject
) -> None:
    data, _ = redacted_log(named, named)
    assert read(data)[1] == []
    bit = draw.draw(st.integers(0, 8 * len(data) - 1))
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    covered = data.rindex(HEADER) + len(HEADER)
    assert read(bytes(changed), same_boot=True)[1] or bit // 8 >= covered


@given(st.integers(1, COUNT), st.integers(1, COUNT), st.integers(0, 9), st.integers(0, 9))
def test_a_gap_is_accepted_just_when_every_place_is_named(
    one: int, other: int, first: int, last: int
) -> None:
    begin, end = min(one, other), max(one, other)
    made = append(START, BIRTH, *(said(str(at)) for at in range(COUNT)))
    said_so = Repaired(
        code="nul_bytes",
        machine=START.machine,
        incarnation=START.incarnation,
        first=Seq(first),
        last=Seq(last),
    )
    more = append(made.chain, said_so)
    lines = lines_of(made.events, made.data)
    data = b"".join(lines[:begin] + lines[end + 1 :]) + more.data
    codes = [damage.code for damage in read(data, same_boot=True)[1]]
    assert codes == ([] if first <= begin and end <= last else ["chain_gap"])


def test_no_more_than_so_many_failures_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit any more is decided at once, and is a failure then."""
    monkeypatch.setattr(pardons, "MAX_WAITING", 3)
    everything = set(range(1, COUNT + 1))
    data, _ = redacted_log(everything, everything)
    damages = read(data)[1]
    assert [damage.line for damage in damages] == list(range(2, COUNT + 2))
