"""Merging is the sorted union, whichever way it is done (docs/format.md#merge)."""

import tracemalloc

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.copies import Copy, begun, damages, merged, named
from format.logs import BIRTH, said
from sojourn.core.merge import merge, union
from sojourn.core.placed import place
from sojourn.errors import FormatError, UsageError
from sojourn.format.capsule_kinds import Redacted
from sojourn.format.layout import MAX_CLOCK_JUMP
from sojourn.ids import Clock


def two_copies() -> tuple[Copy, Copy]:
    """Two copies that went on from three events, each with three events of its own."""
    here = begun()
    there = here.claimed("there", epoch=1001)
    for number in range(3):
        here.add(said(f"here {number}"))
        there.add(said(f"there {number}"))
    return here, there


@st.composite
def worlds(draw: st.DrawFn, *, redact: bool) -> list[bytes]:
    """The logs of copies that wrote, took over, were cloned, merged and redacted."""
    copies = [begun(draw(st.integers(1, 4)))]
    kinds = ["say", "say", "claim", "clone", "merge", *(["redact"] if redact else [])]
    for number in range(draw(st.integers(0, 14))):
        copy = draw(st.sampled_from(copies))
        match draw(st.sampled_from(kinds)):
            case "say":
                copy.add(*(said(f"{number} {at}") for at in range(draw(st.integers(1, 3)))))
            case "claim" if len(copies) < 4:
                copies.append(copy.claimed(str(number), epoch=1000 * (number + 1)))
            case "clone" if len(copies) < 4:
                copies.append(copy.copied())
            case "merge":
                copy.merge(draw(st.sampled_from(copies)))
            case "redact" if copy.redactable():
                copy.redact(draw(st.sampled_from(copy.redactable())))
            case _:
                pass
    return [copy.log for copy in copies]


@settings(deadline=None)
@given(st.one_of(worlds(redact=False), worlds(redact=True)), st.integers(1, 400))
def test_any_order_of_merging_gives_the_same_bytes(logs: list[bytes], size: int) -> None:
    one, other, third = (*logs, *logs, *logs)[:3]
    both = merged(one, other, size=size)
    assert both == merged(other, one)
    assert merged(both, third) == merged(one, merged(other, third, size=size))
    assert merged(one, one, size=size) == one
    assert merged(both, one) == merged(both, other) == both


@settings(deadline=None)
@given(worlds(redact=True))
def test_every_event_is_kept_once_in_order_and_bodies_go_only_by_redaction(
    logs: list[bytes],
) -> None:
    whole = logs[0]
    for log in logs[1:]:
        whole = merged(whole, log)
    lines = [place(line) for line in whole.split(b"\n")[:-1]]
    ids = [line.id for line in lines]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {place(line).id for log in logs for line in log.split(b"\n")[:-1]}
    order = [(*_key(line.mark), line.id) for line in lines]
    assert order == sorted(order)
    taken = named(*logs).events
    assert {line.id for line in lines if line.is_null} == taken
    assert set(damages(whole)) <= {"equivocation", "divergence"}


def _key(mark):
    return (mark.clock, mark.machine, mark.incarnation, mark.seq)


def test_the_union_says_who_holds_each_line() -> None:
    here, there = two_copies()
    sides: dict[str, int] = {"both": 0, "ours": 0, "theirs": 0}
    for side, block in union((here.log,), (there.log,)):
        sides[side] += block.count(b"\n") + 1
    assert sides == {"both": 3, "ours": 3, "theirs": 4}


def test_a_copy_that_is_behind_adds_nothing() -> None:
    here = begun(5)
    behind = b"".join(line + b"\n" for line in here.log.split(b"\n")[:2])
    assert merged(here.log, behind) == merged(behind, here.log) == here.log


def test_both_sides_of_an_equivocation_are_kept() -> None:
    here = begun()
    clone = here.copied()
    first, second = here.add(said("here")), clone.add(said("clone"))
    both = merged(here.log, clone.log)
    assert {*first, *second} <= {place(line).id for line in both.split(b"\n")[:-1]}
    assert damages(both) == ["equivocation"]


def test_capsules_of_another_origin_are_refused() -> None:
    other = Copy()
    other.add(msgspec.structs.replace(BIRTH, name="other"))
    with pytest.raises(UsageError) as refused:
        merged(begun().log, other.log)
    assert refused.value.code == "other_lineage"
    assert "--as-new" in refused.value.hint


def replace_name(body, name):
    import msgspec

    return msgspec.structs.replace(body, name=name)


def test_a_copy_with_the_body_wins_unless_it_was_redacted() -> None:
    here = begun()
    gone = here.ids()[1]
    lines = here.log.split(b"\n")
    robbed = here.log.replace(lines[1], place(lines[1]).without_body())
    assert merged(here.log, robbed) == merged(robbed, here.log) == here.log
    there = here.claimed("there", epoch=1001)
    there.redact(gone)
    both = merged(here.log, there.log)
    assert both == merged(there.log, here.log)
    assert both.split(b"\n")[1] == place(lines[1]).without_body()


def test_a_redaction_that_came_alone_takes_the_body_from_both() -> None:
    """As after a crash between the event and the body: the event counts."""
    here = begun()
    here.add(Redacted(event=here.ids()[1], by="you", reason="secret"))
    assert b"text 0" in here.log
    assert b"text 0" not in merged(here.log, here.log)


@pytest.mark.parametrize("kind", ["created", "redacted"])
def test_what_the_chain_is_made_of_is_never_redacted(kind: str) -> None:
    here = begun()
    here.redact(here.ids()[1])
    target = here.ids()[0 if kind == "created" else -1]
    there = here.claimed("there", epoch=1001)
    there.add(Redacted(event=target, by="you", reason="spite"))
    assert not any(
        place(line).is_null and place(line).mark.kind == kind
        for line in merged(here.log, there.log).split(b"\n")[:-1]
    )


def test_two_bodies_of_one_event_are_refused() -> None:
    here = begun()
    altered = here.log.replace(b"text 0", b"text 9")
    with pytest.raises(FormatError) as refused:
        merged(here.log, altered)
    assert refused.value.code == "body_altered"


def test_a_clock_that_jumps_is_refused_and_the_highest_step_is_not() -> None:
    for jump, refused in ((MAX_CLOCK_JUMP, False), (MAX_CLOCK_JUMP + 1, True)):
        here = begun()
        there = here.claimed("there", epoch=1001)
        there.chain = msgspec.structs.replace(
            there.chain, clock=Clock(there.chain.clock + jump - 1)
        )
        there.add(said("late"))
        if not refused:
            assert damages(merged(here.log, there.log)) == []
            continue
        with pytest.raises(FormatError) as error:
            merged(here.log, there.log)
        assert error.value.code == "clock_jump"


@pytest.mark.parametrize("turned", [0, 1])
def test_a_log_out_of_order_is_refused(turned: int) -> None:
    here, there = two_copies()
    logs = [here.log, there.log]
    lines = logs[turned].split(b"\n")[:-1]
    logs[turned] = b"".join(line + b"\n" for line in (*lines[:4], lines[5], lines[4]))
    with pytest.raises(FormatError) as refused:
        merged(*logs)
    assert refused.value.code == "file_order"


def test_a_line_that_cannot_be_read_and_an_empty_log_are_refused() -> None:
    here, there = two_copies()
    for broken, code in ((b"{}\n", "line_malformed"), (b"x" * (1 << 21), "line_too_long")):
        with pytest.raises(FormatError) as refused:
            merged(here.log + broken, there.log)
        assert refused.value.code == code
    with pytest.raises(FormatError) as empty:
        merged(here.log, b"")
    assert empty.value.code == "identity_missing"


def test_memory_does_not_grow_with_the_logs() -> None:
    peaks = [_peak(events) for events in (2_000, 8_000)]
    assert peaks[1] < 1.5 * peaks[0] + 300_000


def _peak(events: int) -> int:
    here = begun()
    there = here.claimed("there", epoch=1001)
    mine, other = _many(here, events), _many(there, events)
    tracemalloc.start()
    for _ in merge(iter(mine), iter(other), redacted=()):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _many(copy: Copy, events: int) -> list[bytes]:
    """The log in pieces, with that many events more."""
    found = [copy.log]
    for number in range(0, events, 500):
        copy.log = b""
        copy.add(*(said(f"{number} {at}") for at in range(500)))
        found.append(copy.log)
    return found
