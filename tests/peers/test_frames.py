"""Contents go over the link in frames: nothing of them is lost, and a cut stream is never whole."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import PeerError
from sojourn.ids import BlobId
from sojourn.peers import frames
from sojourn.peers.frames import END, HEAD, PLAIN, ZSTD, Packer, Requests, pieces
from sojourn.peers.limits import CHUNK, STREAM
from sojourn.ports_move import Piece

NAME = BlobId(sha256(b"x").hexdigest())


def piece(data: bytes, *, offset: int = 0, size: int | None = None) -> Piece:
    whole = offset + len(data) if size is None else size
    return Piece(digest=BlobId(sha256(data).hexdigest()), size=whole, offset=offset, data=data)


async def given_out(parts: Iterable[Piece]) -> AsyncIterator[Piece]:
    for part in parts:
        yield part


async def bodies(parts: Sequence[Piece], *, compress: bool) -> list[bytes]:
    requests, made = Requests(given_out(parts), compress=compress), list[bytes]()
    while await requests.begin():
        made.append(b"".join([chunk async for chunk in requests.body()]))
    return made


async def cut_up(body: bytes, step: int) -> AsyncIterator[bytes]:
    for at in range(0, len(body), step):
        yield body[at : at + step]


async def taken(body: bytes, step: int = 65_536) -> list[Piece]:
    return [part async for part in pieces(cut_up(body, step))]


def back(parts: Sequence[Piece], *, compress: bool, step: int = 65_536) -> list[Piece]:
    async def through() -> list[Piece]:
        found: list[Piece] = []
        for body in await bodies(parts, compress=compress):
            found += await taken(body, step)
        return found

    return asyncio.run(through())


def refused(body: bytes) -> str:
    with pytest.raises(PeerError) as caught:
        asyncio.run(taken(body))
    assert caught.value.code == "bad_frames"
    return caught.value.message


def head(*, size: int, offset: int, kind: int, length: int, packed: int) -> bytes:
    return HEAD.pack(bytes.fromhex(NAME), size, offset, kind, length, packed)


@given(
    st.lists(st.binary(max_size=3000), max_size=8),
    st.booleans(),
    st.integers(min_value=1, max_value=5000),
)
def test_every_piece_comes_as_it_was_sent(contents: list[bytes], compress: bool, step: int) -> None:
    sent = [piece(data) for data in contents]
    assert back(sent, compress=compress, step=step) == sent


def test_a_long_piece_becomes_several_of_the_right_places() -> None:
    data = os.urandom(2 * CHUNK + 5)
    found = back([piece(data, offset=7, size=len(data) + 7)], compress=True)
    assert [len(part.data) for part in found] == [CHUNK, CHUNK, 5]
    assert [part.offset for part in found] == [7, 7 + CHUNK, 7 + 2 * CHUNK]
    assert b"".join(part.data for part in found) == data


def test_text_is_compressed_and_noise_is_not() -> None:
    packer = Packer(compress=True)
    text, noise = piece(b"the same again " * 5000), piece(os.urandom(CHUNK))
    assert len(packer.frames(text)) < len(text.data) / 10
    assert len(packer.frames(noise)) == HEAD.size + CHUNK
    assert len(Packer(compress=False).frames(text)) == HEAD.size + len(text.data)


def test_a_long_stream_is_cut_into_requests_that_are_short_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "STREAM", 10_000)
    sent = [piece(os.urandom(3000)) for _ in range(8)]
    made = asyncio.run(bodies(sent, compress=False))
    assert len(made) == 3
    assert all(len(body) <= 10_000 for body in made)
    assert back(sent, compress=False) == sent


def test_nothing_to_send_is_no_request() -> None:
    assert asyncio.run(bodies([], compress=False)) == []


def test_a_stream_that_is_cut_at_any_byte_is_refused() -> None:
    body = asyncio.run(bodies([piece(b"abc"), piece(b"de")], compress=False))[0]
    for at in range(len(body)):
        assert refused(body[:at]) == "the contents were cut"


def test_what_came_whole_before_the_cut_is_given_on() -> None:
    body = asyncio.run(bodies([piece(b"abc"), piece(b"de")], compress=False))[0]

    async def until_cut() -> list[bytes]:
        found: list[bytes] = []
        with pytest.raises(PeerError):
            async for part in pieces(cut_up(body[: -len(END) - 1], 10)):
                found.append(part.data)
        return found

    assert asyncio.run(until_cut()) == [b"abc"]


def test_a_piece_outside_its_content_is_refused() -> None:
    bad = head(size=4, offset=2, kind=PLAIN, length=3, packed=3) + b"abc"
    assert refused(bad + END) == "a piece does not lie within its content"
    bad = head(size=2**63, offset=0, kind=PLAIN, length=3, packed=3) + b"abc"
    assert refused(bad + END) == "a piece does not lie within its content"


def test_a_frame_that_is_too_long_is_refused_before_its_bytes_are_read() -> None:
    long = CHUNK + 1
    assert "longer" in refused(head(size=long, offset=0, kind=PLAIN, length=long, packed=long))
    assert "longer" in refused(head(size=9, offset=0, kind=ZSTD, length=9, packed=long))
    assert "longer" in refused(head(size=9, offset=0, kind=PLAIN, length=9, packed=8))


def test_an_empty_frame_of_something_is_refused() -> None:
    assert refused(head(size=9, offset=0, kind=PLAIN, length=0, packed=0)) == "a frame is empty"


def test_a_frame_that_unpacks_to_more_or_less_than_it_says_is_refused() -> None:
    packed = frames.zstd.compress(b"a" * 1000)
    for length in (999, 1001):
        given_head = head(size=5000, offset=0, kind=ZSTD, length=length, packed=len(packed))
        assert "does not hold" in refused(given_head + packed + END)


def test_a_frame_that_is_no_zstd_or_wants_much_memory_is_refused() -> None:
    rubbish = b"no zstd at all"
    bad = head(size=50, offset=0, kind=ZSTD, length=50, packed=len(rubbish)) + rubbish
    assert refused(bad + END) == "a frame cannot be decompressed"
    options = {frames.zstd.CompressionParameter.window_log: 27}
    packer = frames.zstd.ZstdCompressor(options=options)
    hungry = packer.compress(b"a" * 100) + packer.flush()
    bad = head(size=100, offset=0, kind=ZSTD, length=100, packed=len(hungry)) + hungry
    assert refused(bad + END) == "a frame cannot be decompressed"


def test_an_unknown_packing_is_refused() -> None:
    bad = head(size=1, offset=0, kind=7, length=1, packed=1) + b"a"
    assert "not known" in refused(bad + END)


def test_something_after_the_end_is_refused() -> None:
    assert refused(END + b"a") == "something follows the end of the contents"


def test_a_request_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "STREAM", 1000)
    one = head(size=100, offset=0, kind=PLAIN, length=100, packed=100) + b"a" * 100
    assert "bytes in one request" in refused(one * 10 + END)
    monkeypatch.setattr(frames, "STREAM", STREAM)
    monkeypatch.setattr(frames, "FRAMES", 5)
    assert "frames in one request" in refused(one * 6 + END)
