"""Server-sent events are read as their specification says, wherever the chunks end."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.models.sse import EventTooLong, SseReader
from sojourn.ports import ServerEvent

BODY = (
    b"\xef\xbb\xbf: hello\r\n\r\n"
    b"event: one\r\ndata: a\r\ndata:b\r\ndata:  c\r\nid: 7\r\nretry: 10\r\n\r\n"
    b"data: \xc3\xa9\xf0\x9f\x98\x80\n\n"
    b"data:x\xe2\x80\xa8y\x0bz\r\r"
    b"event: nothing\n\n"
    b"data\n\n"
    b"data: {}\n\n"
)
EVENTS = [
    ServerEvent(event="one", data="a\nb\n c"),
    ServerEvent(event="", data="é😀"),
    ServerEvent(event="", data="x\u2028y\x0bz"),
    ServerEvent(event="", data=""),
    ServerEvent(event="", data="{}"),
]


def read(*chunks: bytes, limit: int = 1000) -> list[ServerEvent]:
    reader = SseReader(limit=limit)
    return [event for chunk in chunks for event in reader.feed(chunk)]


def test_the_three_line_ends_comments_and_a_byte_order_mark_are_read() -> None:
    assert read(BODY) == EVENTS


@pytest.mark.parametrize("at", range(len(BODY) + 1))
def test_a_chunk_may_end_anywhere(at: int) -> None:
    assert read(BODY[:at], b"", BODY[at:]) == EVENTS


def test_bytes_may_come_one_by_one() -> None:
    assert read(*(bytes([byte]) for byte in BODY)) == EVENTS


@given(st.lists(st.text("ab\n\r: é\u2028"), max_size=6), st.lists(st.integers(0, 60), max_size=3))
def test_any_cut_of_any_bytes_gives_the_same_events(lines: list[str], places: list[int]) -> None:
    data = "data: x\r\n".join(lines).encode()
    cuts = [0, *sorted(places), max(len(data), 60)]
    parts = [data[start:end] for start, end in itertools.pairwise(cuts)]
    assert read(*parts) == read(data)


def test_only_the_first_line_may_have_a_byte_order_mark() -> None:
    assert read(b"\xef\xbb\xbfdata: a\n\n") == [ServerEvent(event="", data="a")]
    assert read(b"data: a\n\n\xef\xbb\xbfdata: b\n\n") == [ServerEvent(event="", data="a")]


def test_broken_utf_8_becomes_a_replacement_character() -> None:
    assert read(b"data: a\xff\xc3\n\n") == [ServerEvent(event="", data="a\ufffd\ufffd")]


def test_an_event_without_its_blank_line_is_unfinished() -> None:
    reader = SseReader(limit=100)
    assert list(reader.feed(b"event: e\ndata: a\ndata: [DO")) == []
    assert reader.unfinished() == ServerEvent(event="e", data="a\n[DO")
    assert reader.unfinished() is None


def test_an_event_longer_than_the_limit_is_refused() -> None:
    assert len(read(b"data: 1234\n\n", limit=10)) == 1
    for chunks in ([b"data: 12345\n\n"], [b"data:1\n", b"data:2\n"], [b"d"] * 11):
        with pytest.raises(EventTooLong):
            read(*chunks, limit=10)


def test_any_number_of_comments_and_events_stays_within_the_limit() -> None:
    assert len(read(*[b": 12345678\n"] * 50, *[b"data: 1234\n\n"] * 50, limit=10)) == 50
