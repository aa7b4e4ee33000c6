"""The reader finds every fault, tells a torn tail from damage, and never depends on the chunks."""

from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from format.logs import BIRTH, START, all_of, append, log, read, said
from sojourn.format.body import Head
from sojourn.format.event import Event, TurnTaken
from sojourn.format.timeline_read import Damage, Ending, Known
from sojourn.ids import CapsuleId, EventId, RunnerId, TurnId

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=6)


def codes(damages: Sequence[Damage]) -> list[str]:
    return [damage.code for damage in damages]


def in_short(ending: Ending) -> tuple[object, ...]:
    return (
        ending.length,
        ending.lines,
        ending.heads,
        ending.clock,
        ending.digest.hexdigest(),
        ending.torn,
        ending.run_allowed,
    )


def test_a_sound_log_is_read_whole() -> None:
    data, _, chain = log(1, 3, 2)
    events, damages, ending = read(data, known=[all_of(data, chain)], same_boot=True)
    assert (len(events), damages, ending.torn) == (6, [], None)
    assert ending.run_allowed
    assert (ending.length, ending.lines, ending.events) == (len(data), 6, 6)
    assert (ending.last, ending.clock) == (chain.head, chain.clock)
    assert dict(ending.epochs) == {CapsuleId(events[0].id): chain.epoch}
    assert ending.identities == (events[0].id,)
    assert ending.digest.hexdigest() == sha256(data).hexdigest()
    assert [head.id for head in ending.heads] == [chain.head]


def test_an_empty_log_is_a_valid_log() -> None:
    events, damages, ending = read(b"", known=[Known(length=0)])
    assert (events, damages, ending.torn, ending.run_allowed) == ([], [], None, True)
    assert (ending.length, ending.lines, ending.last, ending.heads) == (0, 0, None, ())


def test_the_digest_goes_on_with_the_next_append() -> None:
    data, _, chain = log(1, 2)
    digest = read(data)[2].digest.copy()
    batch = append(chain, said("more"))
    digest.update(batch.data)
    assert digest.hexdigest() == sha256(data + batch.data).hexdigest()


@given(SIZES, st.data())
@settings(max_examples=300)
def test_every_flipped_bit_is_noticed(sizes: list[int], draw: st.DataObject) -> None:
    data, _, chain = log(*sizes)
    known = all_of(data, chain)
    bit = draw.draw(st.integers(0, 8 * len(data) - 1))
    flipped = flip(data, bit)
    _, damages, ending = read(flipped, known=[known], same_boot=draw.draw(st.booleans()))
    assert damages
    assert not ending.run_allowed
    assert ending.torn is None


@given(SIZES, st.data())
@settings(max_examples=300)
def test_a_flipped_bit_that_nobody_knows_of_is_damage_or_torn(
    sizes: list[int], draw: st.DataObject
) -> None:
    """All but the last header, which nothing covers (docs/format.md#events)."""
    data, starts, _ = log(*sizes)
    covered = data.rindex(b',"header":') + len(b',"header":')
    bit = draw.draw(st.integers(0, 8 * covered - 1))
    flipped = flip(data, bit)
    _, damages, ending = read(flipped, same_boot=False)
    if damages:
        assert not ending.run_allowed
    else:
        assert ending.torn is not None
        assert bit // 8 >= starts[-2] or ending.torn.offset >= starts[-2]


def flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(SIZES, st.data())
@settings(max_examples=200)
def test_what_a_crash_leaves_is_torn_and_the_acknowledged_part_is_read(
    sizes: list[int], draw: st.DataObject
) -> None:
    """After a crash of the machine: the last append cut anywhere, some of its bytes NUL."""
    data, starts, _ = log(*sizes)
    begun = starts[-2]
    end = draw.draw(st.integers(begun, len(data)))
    first = draw.draw(st.integers(begun, end))
    last = draw.draw(st.integers(first, end))
    left = data[:first] + bytes(last - first) + data[last:end]
    events, damages, ending = read(left, known=[Known(length=begun)], same_boot=False)
    assert damages == []
    assert ending.run_allowed
    assert ending.length >= begun
    assert ending.length + (ending.torn.length if ending.torn else 0) == len(left)
    whole = read(data)[0]
    assert events == whole[: len(events)]
    assert len(events) >= sum(sizes[:-1])


@given(SIZES, st.data())
def test_what_a_killed_process_leaves_is_torn(sizes: list[int], draw: st.DataObject) -> None:
    data, starts, _ = log(*sizes)
    end = draw.draw(st.integers(starts[-2], len(data)))
    _, damages, ending = read(data[:end], known=[Known(length=starts[-2])], same_boot=True)
    assert damages == []
    assert (ending.torn is None) == data[:end].endswith(b"\n") or end == 0
    assert ending.length == data[:end].rfind(b"\n") + 1


@given(SIZES, st.data())
@settings(max_examples=200)
def test_the_chunks_change_nothing(sizes: list[int], draw: st.DataObject) -> None:
    data, starts, _ = log(*sizes)
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(0, 3))):
        at = draw.draw(st.integers(0, len(data) - 1))
        changed[at] = draw.draw(st.sampled_from([0, 10, changed[at] ^ 1]))
    known = [Known(length=draw.draw(st.sampled_from(starts)))]
    boot = draw.draw(st.booleans())
    whole = read(bytes(changed), known=known, same_boot=boot)
    parts = read(bytes(changed), known=known, same_boot=boot, chunk=draw.draw(st.integers(1, 700)))
    assert (whole[0], whole[1]) == (parts[0], parts[1])
    assert in_short(whole[2]) == in_short(parts[2])
    assert whole[2].digest.hexdigest() == sha256(bytes(changed)[: whole[2].length]).hexdigest()


@given(SIZES, st.binary(max_size=300), st.integers(0, 10**6))
def test_no_bytes_crash_the_reader(sizes: list[int], noise: bytes, at: int) -> None:
    data, _, _ = log(*sizes)
    at %= len(data) + 1
    events, damages, ending = read(data[:at] + noise + data[at:])
    assert ending.events == len(events)
    assert ending.damaged == len(damages)


def test_all_later_events_are_read_after_a_damaged_span() -> None:
    data, _, _ = log(*([1] * 8))
    lines = data.splitlines(keepends=True)
    lines[3] = bytes(len(lines[3]) - 1) + b"\n"
    events, damages, ending = read(b"".join(lines))
    assert codes(damages) == ["nul_bytes"]
    assert [event.header.seq for event in events] == [0, 1, 2, 4, 5, 6, 7]
    assert not ending.run_allowed
    place = damages[0]
    assert place.line == 4
    assert (place.offset, place.length) == (sum(map(len, lines[:3])), len(lines[3]))


def test_the_events_of_a_tail_that_was_not_torn_are_given_at_the_end() -> None:
    data, starts, _ = log(1, 1, 3)
    lines = data.splitlines(keepends=True)
    lines[2] = bytes(len(lines[2]) - 1) + b"\n"
    known = [Known(length=starts[2])]
    torn = read(b"".join(lines), known=known, same_boot=False)
    assert (len(torn[0]), codes(torn[1])) == (2, [])
    assert torn[2].torn is not None
    assert (torn[2].torn.line, torn[2].torn.reason) == (3, "nul_bytes")
    damaged = read(b"".join(lines), known=known, same_boot=True)
    assert (len(damaged[0]), codes(damaged[1])) == (4, ["nul_bytes"])
    assert damaged[2].torn is None


@pytest.mark.parametrize("ledger", [True, False])
def test_a_known_line_is_never_torn(ledger: bool) -> None:
    data, starts, _ = log(1, 1, 1)
    lines = data.splitlines(keepends=True)
    lines[2] = bytes(len(lines[2]) - 1) + b"\n"
    manifest, other = Known(length=starts[1]), Known(length=len(data) if ledger else starts[2])
    _, damages, ending = read(b"".join(lines), known=[manifest, other], same_boot=False)
    assert (codes(damages) == ["nul_bytes"]) == ledger
    assert (ending.torn is None) == ledger


def test_what_the_ledger_knows_is_compared_at_its_length() -> None:
    data, starts, chain = log(1, 2, 1)
    events = read(data)[0]
    cases: list[tuple[int, EventId | None, list[str]]] = [
        (starts[2], events[2].id, []),
        (len(data), chain.head, []),
        (starts[2], events[1].id, ["log_replaced"]),
        (starts[2] - 1, None, ["log_replaced"]),
        (len(data) + 1, chain.head, ["log_shorter"]),
    ]
    for length, last, expected in cases:
        _, damages, ending = read(data, known=[Known(length=length, last=last)])
        assert codes(damages) == expected
        assert [damage.line for damage in damages] == [0] * len(expected)
        assert ending.run_allowed == (not expected)


def test_manifest_and_ledger_report_one_failure_once() -> None:
    data, _, chain = log(1, 1)
    known = [Known(length=len(data) + 9), Known(length=len(data) + 5, last=chain.head)]
    assert codes(read(data, known=known)[1]) == ["log_shorter"]


@given(SIZES, SIZES, st.integers(0, 5))
def test_another_log_in_its_place_is_noticed(old: list[int], new: list[int], cut: int) -> None:
    data, starts, chain = log(*old)
    other, _, _ = log(*new)
    assume(not other.startswith(data))
    known = all_of(data, chain)
    assert read(other, known=[known])[1]
    rolled = data[: starts[min(cut, len(old) - 1)]]
    assert codes(read(rolled, known=[known])[1]) == ["log_shorter"]


def test_many_damages_are_counted_and_the_first_are_kept() -> None:
    data, _, _ = log(1, 1)
    ending = read(data + b"x\n" * 2000, same_boot=True)[2]
    assert (ending.damaged, len(ending.damages)) == (2000, 1000)


def test_a_line_without_end_is_dropped_from_memory_and_named() -> None:
    data, _, _ = log(1, 1)
    endless = bytes(20 << 20)
    events, damages, ending = read(data + endless, chunk=1 << 20)
    assert (len(events), codes(damages), ending.torn) == (2, ["line_unended"], None)
    assert ending.digest.hexdigest() == sha256(data).hexdigest()
    after = append(log(1, 1)[2], said("z")).data
    events, damages, ending = read(data + endless + b"\n" + after, chunk=1 << 20)
    assert (len(events), codes(damages)) == (3, ["line_too_long"])
    assert ending.digest.hexdigest() == sha256(data + endless + b"\n" + after).hexdigest()


@pytest.mark.parametrize("at", [0, 1, 6])
def test_a_byte_of_the_frame_that_is_wrong_is_damage(at: int) -> None:
    """The pieces of the line are sound: nothing but the frame around them tells."""
    data, starts, _ = log(1, 1, 1)
    changed = bytearray(data)
    changed[starts[1] + at] ^= 1
    assert read(bytes(changed), known=[Known(length=len(data))])[1]
    line_end = starts[2] - 2
    changed = bytearray(data)
    changed[line_end] = ord("]")
    assert codes(read(bytes(changed), known=[Known(length=len(data))])[1]) == ["not_json"]


def test_a_head_may_be_an_event_of_the_same_append() -> None:
    """Events that are read together are known to each other."""
    data, _, chain = log(2)
    batch = append(chain, said("a"))
    (said_now,) = batch.events
    header = said_now.header
    head = Head(
        machine=header.machine, incarnation=header.incarnation, seq=header.seq, id=said_now.id
    )
    taken = TurnTaken(turn=TurnId(said_now.id), runner=RunnerId("r"), boot="b", heads=(head,))
    both = data + batch.data + append(batch.chain, taken).data
    events, damages, _ = read(both)
    assert (len(events), damages) == (4, [])
    missing = Head(
        machine=header.machine, incarnation=header.incarnation, seq=header.seq, id=EventId("0" * 64)
    )
    taken = TurnTaken(turn=TurnId(said_now.id), runner=RunnerId("r"), boot="b", heads=(missing,))
    both = data + batch.data + append(batch.chain, taken).data
    assert codes(read(both)[1]) == ["head_unknown"]


def test_events_are_equal_to_those_that_were_written() -> None:
    batch = append(START, BIRTH, said("a"))
    assert read(batch.data)[0] == list(batch.events)
    assert all(isinstance(event, Event) for event in batch.events)
