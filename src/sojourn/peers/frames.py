"""Contents on the way: frames, each a piece of one content, maybe compressed (docs/link.md#frames).

A frame's head is 57 bytes: digest (32), size of the whole content (8), offset (8), how the bytes
are packed (1), their length (4), the length as sent (4). A stream ends with a head of zeros, so
that one that was cut is never taken for whole.
"""

import struct
import sys
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from typing import Final

from sojourn.errors import PeerError
from sojourn.ids import BlobId
from sojourn.peers.limits import CHUNK, CONTENT, FRAMES, STREAM
from sojourn.ports_move import Piece

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEAD: Final = struct.Struct(">32sQQBII")
END: Final = bytes(HEAD.size)
PLAIN: Final = 0
ZSTD: Final = 1
LEVEL: Final = 1
WORTH: Final = 0.9
"""Compression goes on for a content while its pieces shrink below this part of themselves."""

WINDOW: Final = 20
"""Binary logarithm of the most memory that a frame may ask for to be unpacked."""

LEAST: Final = 512
"""Bytes below which nothing is compressed."""


class Packer:
    """Pieces as bytes of frames; compresses where it gains, when it may at all."""

    def __init__(self, *, compress: bool) -> None:
        self._options: dict[int, int] = {
            zstd.CompressionParameter.compression_level: LEVEL,
            zstd.CompressionParameter.nb_workers: 0,
        }
        self._compress = compress
        self._hopeless: BlobId | None = None

    def frames(self, piece: Piece) -> bytes:
        """The frames of one piece; a long piece becomes several."""
        if len(piece.data) <= CHUNK:
            return self._frame(piece.digest, piece.size, piece.offset, piece.data)
        view = memoryview(piece.data)
        return b"".join(
            self._frame(piece.digest, piece.size, piece.offset + at, bytes(view[at : at + CHUNK]))
            for at in range(0, len(view), CHUNK)
        )

    def _frame(self, name: BlobId, size: int, offset: int, data: bytes) -> bytes:
        kind, packed = PLAIN, data
        if self._compress and len(data) >= LEAST and self._hopeless != name:
            made = zstd.compress(data, options=self._options)
            if len(made) < WORTH * len(data):
                kind, packed = ZSTD, made
            else:
                self._hopeless = name
        head = HEAD.pack(bytes.fromhex(name), size, offset, kind, len(data), len(packed))
        return head + packed


class Requests:
    """The frames of a stream of pieces, cut into requests of at most `STREAM` bytes."""

    def __init__(self, pieces: AsyncIterable[Piece], *, compress: bool) -> None:
        self._pieces = aiter(pieces)
        self._packer = Packer(compress=compress)
        self._next: bytes | None = None
        self.over = False

    async def begin(self) -> bool:
        """Whether there is anything left to send."""
        if self._next is None and not self.over:
            await self._fetch()
        return not self.over

    async def body(self) -> AsyncIterator[bytes]:
        """The body of one request, in pieces of about `CHUNK` bytes or more."""
        waiting, size, frames, ready = list[bytes](), 0, 0, 0
        while await self.begin() and self._next is not None:
            if size and (size + len(self._next) > STREAM - HEAD.size or frames >= FRAMES - 1):
                break
            waiting.append(self._next)
            ready += len(self._next)
            size += len(self._next)
            frames += 1
            self._next = None
            if ready >= CHUNK:
                yield b"".join(waiting)
                waiting, ready = [], 0
        yield b"".join((*waiting, END))

    async def _fetch(self) -> None:
        try:
            self._next = self._packer.frames(await anext(self._pieces))
        except StopAsyncIteration:
            self.over = True

    async def aclose(self) -> None:
        """Nothing more is asked of whoever gives the pieces."""
        close = getattr(self._pieces, "aclose", None)
        if close is not None:
            with suppress(RuntimeError):
                await close()


async def pieces(chunks: AsyncIterable[bytes]) -> AsyncIterator[Piece]:
    """The pieces that a body holds, one after the other; at most two frames are in memory.

    Raises: PeerError `bad_frames` for what is no sound stream of frames, or is cut.
    """
    reading = _Reading(chunks)
    for _ in range(FRAMES):
        head = await reading.take(HEAD.size)
        if head == END:
            if await reading.more():
                raise _bad("something follows the end of the contents")
            return
        yield await _piece(reading, head)
    raise _bad(f"there are more than {FRAMES:,} frames in one request")


async def _piece(reading: "_Reading", head: bytes) -> Piece:
    name, size, offset, kind, length, packed = HEAD.unpack(head)
    if size > CONTENT or offset + length > size:
        raise _bad("a piece does not lie within its content")
    if length > CHUNK or packed > CHUNK or (kind == PLAIN and packed != length):
        raise _bad("a frame is longer than it may be")
    if not length and (size or kind != PLAIN):
        raise _bad("a frame is empty")
    data = await reading.take(packed)
    if kind == ZSTD:
        data = _unpacked(data, length)
    elif kind != PLAIN:
        raise _bad("a frame is packed in a way that is not known here")
    return Piece(digest=BlobId(name.hex()), size=size, offset=offset, data=data)


def _unpacked(data: bytes, length: int) -> bytes:
    unpacker = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW})
    try:
        made = unpacker.decompress(data, max_length=length)
    except (zstd.ZstdError, EOFError):
        raise _bad("a frame cannot be decompressed") from None
    if len(made) != length or not unpacker.eof or unpacker.unused_data:
        raise _bad("a frame does not hold what its head says")
    return made


class _Reading:
    """Exact numbers of bytes out of chunks of any size."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks = aiter(chunks)
        self._data = b""
        self._at = 0
        self._size = 0

    async def take(self, count: int) -> bytes:
        have = len(self._data) - self._at
        if have < count:
            parts, self._at, self._data = [self._data[self._at :]], 0, b""
            while have < count:
                chunk = await self._chunk()
                if not chunk:
                    raise _bad("the contents were cut")
                parts.append(chunk)
                have += len(chunk)
            self._data = b"".join(parts)
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    async def more(self) -> bool:
        """Whether anything is left."""
        return self._at < len(self._data) or bool(await self._chunk())

    async def _chunk(self) -> bytes:
        chunk = b""
        with suppress(StopAsyncIteration):
            while not chunk:
                chunk = await anext(self._chunks)
        self._size += len(chunk)
        if self._size > STREAM:
            raise _bad(f"there are more than {STREAM:,} bytes in one request")
        return chunk


def _bad(what: str) -> PeerError:
    return PeerError(what, code="bad_frames", state="What came whole before is kept.")
