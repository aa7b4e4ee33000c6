"""What is written is read again, and nothing else can be written."""

from base64 import urlsafe_b64decode

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from format.bodies import bodies
from format.logs import BIRTH, START, TIME, append, read, said
from sojourn.errors import FormatError, LimitError
from sojourn.format import layout
from sojourn.format.body import Head
from sojourn.format.event import (
    AnyBody,
    Configured,
    Failure,
    Input,
    Issuer,
    Memory,
    ModelOutcome,
    ToolOutcome,
    TurnTaken,
)
from sojourn.format.parts import BlobRef, ReasoningPart, TextPart
from sojourn.format.timeline_write import salts, write, write_line
from sojourn.ids import (
    BlobId,
    CallKey,
    Clock,
    Epoch,
    EventId,
    MachineId,
    RequestId,
    RunnerId,
    Seq,
    TurnId,
)

TURN, CALL = TurnId("a" * 64), CallKey("b" * 64)


def outcome(text: str, *more: str) -> ToolOutcome:
    parts = tuple(TextPart(text=item) for item in (text, *more))
    return ToolOutcome(turn=TURN, call=CALL, status="done", parts=parts)


@given(st.lists(bodies(), max_size=5))
@settings(max_examples=300)
def test_every_body_that_is_written_is_read_again(written: list[AnyBody]) -> None:
    batch = append(START, BIRTH, *written)
    events, damages, ending = read(batch.data, blobs=batch.blobs)
    assert damages == []
    assert tuple(events) == batch.events
    assert [ending.last, ending.clock] == [batch.chain.head, batch.chain.clock]
    plain = [msgspec.structs.replace(event.body, salt="") for event in events[1:]]
    assert plain == written


@given(st.lists(bodies(surrogates=True), min_size=1, max_size=3))
def test_no_lone_surrogate_and_no_raw_line_feed_is_ever_written(written: list[AnyBody]) -> None:
    batch = append(START, BIRTH, *written)
    events, damages, _ = read(batch.data, blobs=batch.blobs)
    assert (tuple(events), damages) == (batch.events, [])
    assert batch.data.count(b"\n") == 1 + len(written)


def test_replaced_surrogates_are_counted_in_the_body() -> None:
    event = append(
        START, BIRTH, outcome("cut \ud83d", "\udc00\udc00", "whole \ud83d\ude00")
    ).events[1]
    assert isinstance(event.body, ToolOutcome)
    assert [part.text for part in event.body.parts if isinstance(part, TextPart)] == [
        "cut \ufffd",
        "\ufffd\ufffd",
        "whole \U0001f600",
    ]
    assert event.body.mended == 3


def test_a_text_of_the_limit_stays_and_a_longer_one_becomes_a_blob() -> None:
    limit = layout.MAX_TEXT
    batch = append(START, BIRTH, outcome("x" * limit, "é" * (limit // 2), "é" * (limit // 2) + "x"))
    body = batch.events[1].body
    assert isinstance(body, ToolOutcome)
    short, even, ref = [part.text for part in body.parts if isinstance(part, TextPart)]
    assert (len(str(short)), len(str(even))) == (limit, limit // 2)
    assert isinstance(ref, BlobRef)
    assert batch.blobs == {ref.sha256: ("é" * (limit // 2) + "x").encode()}
    assert (ref.size, ref.media_type, ref.preview) == (limit + 1, "text/plain", "é" * 256)
    assert read(batch.data, blobs=batch.blobs)[1] == []


def test_texts_become_blobs_wherever_text_may_stand() -> None:
    long = "x" * (layout.MAX_TEXT + 1)
    failure = Failure(code="c", message=long)
    reply = ModelOutcome(
        turn=TURN,
        call=CALL,
        status="failed",
        issuer=Issuer(provider="p", api="a", scope="", model="m"),
        parts=(ReasoningPart(text=long),),
        failure=failure,
    )
    notes = Memory(origin="tool", before=None, result=BlobId("c" * 64), text=long)
    batch = append(START, BIRTH, reply, notes, Configured(model="m", system=long))
    assert len(batch.blobs) == 1
    assert b"x" * 300 not in batch.data


def test_a_large_body_sheds_its_largest_texts_first() -> None:
    texts = [f"{number:02d}" + "x" * (9_000 + 100 * number) for number in range(60)]
    batch = append(START, BIRTH, outcome(*texts))
    body = batch.events[1].body
    assert isinstance(body, ToolOutcome)
    left = [part.text for part in body.parts if isinstance(part, TextPart)]
    kept = [text for text in left if isinstance(text, str)]
    shed = [data.decode() for data in batch.blobs.values()]
    assert kept and shed and max(map(len, kept)) <= min(map(len, shed))
    assert len(batch.data.split(b"\n")[1]) < layout.MAX_BODY + 1_000
    assert read(batch.data)[1] == []


def test_a_body_that_cannot_be_made_small_goes_to_a_blob_whole() -> None:
    many = outcome("", *(str(number) for number in range(20_000)))
    batch = append(START, BIRTH, many, said("after"))
    assert len(batch.blobs) == 1
    assert len(batch.data) < 3_000
    events, damages, _ = read(batch.data, blobs=batch.blobs)
    assert (tuple(events), damages) == (batch.events, [])
    without = read(batch.data)
    assert [damage.code for damage in without[1]] == ["blob_missing"]
    assert [event.body is None for event in without[0]] == [False, True, False]


def test_header_salt_and_wrapper_cost_at_most_450_bytes() -> None:
    head = EventId("c" * 64)
    chain = replace(START, seq=Seq(999_999), clock=Clock(9_999_999), epoch=Epoch(999), head=head)
    for body in (outcome("x"), said("x"), Configured(model="m", system="s")):
        batch = append(chain, body, body)
        content = msgspec.json.encode(body)
        for line in batch.data.splitlines(keepends=True):
            assert len(line) - len(content) <= 450


def test_an_append_has_limits() -> None:
    with pytest.raises(LimitError):
        append(START, *([said("x")] * (layout.MAX_BATCH_EVENTS + 1)))
    wide = Input(request=RequestId("r"), author="x" * (layout.MAX_LARGE + 1), parts=())
    with pytest.raises(LimitError):
        append(START, wide)


def test_what_could_not_be_read_again_is_not_written() -> None:
    negative = ToolOutcome(turn=TURN, call=CALL, status="done", milliseconds=-1)
    huge = ToolOutcome(turn=TURN, call=CALL, status="done", milliseconds=2**53)
    for body in (negative, huge):
        with pytest.raises(FormatError) as caught:
            append(START, body)
        assert caught.value.code == "body_malformed"
    with pytest.raises(FormatError):
        write([said("x")], chain=START, time=TIME, salts=["short"])
    with pytest.raises(ValueError, match="shorter"):
        write([said("x"), said("y")], chain=START, time=TIME, salts=["s" * 22])


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert append(START, BIRTH, said("x")) == append(START, BIRTH, said("x"))


def test_one_append_is_one_batch_and_the_chain_goes_on() -> None:
    first = append(START, BIRTH, said("a"))
    second = append(first.chain, said("b"), said("c"))
    headers = [event.header for event in (*first.events, *second.events)]
    assert [header.batch for header in headers] == [0, 0, 2, 2]
    assert [header.seq for header in headers] == [0, 1, 2, 3]
    assert [header.clock for header in headers] == [1, 2, 3, 4]
    assert [header.prev for header in headers[1:]] == [
        event.id for event in (*first.events, *second.events)[:-1]
    ]


def test_an_append_may_be_made_line_by_line() -> None:
    first = append(START, BIRTH)
    salt = "s" * 22
    batch = first.chain.seq
    one = write_line(said("a"), {}, chain=first.chain, batch=batch, time=TIME, salt=salt)
    two = write_line(said("b"), {}, chain=one.chain, batch=batch, time=TIME, salt=salt)
    whole = write([said("a"), said("b")], chain=first.chain, time=TIME, salts=[salt, salt])
    assert one.data + two.data == whole.data
    assert (one.event, two.event) == whole.events
    assert two.chain == whole.chain


def test_a_salt_is_the_base64url_of_its_own_16_bytes() -> None:
    token = bytes(range(32))
    first, second = salts(token)
    assert [len(first), len(second)] == [22, 22]
    assert urlsafe_b64decode(first + "==") + urlsafe_b64decode(second + "==") == token


def test_a_later_chain_that_names_its_heads_is_sound() -> None:
    first = append(START, BIRTH, said("a"))
    last = first.events[1]
    head = Head(machine=START.machine, incarnation=START.incarnation, seq=Seq(1), id=last.id)
    machine = MachineId("d" * 64)
    other = replace(first.chain, machine=machine, epoch=Epoch(2), seq=Seq(0), head=None)
    taken = TurnTaken(turn=TURN, runner=RunnerId("r"), boot="b", heads=(head,))
    second = append(other, taken)
    assert read(first.data + second.data)[1] == []
