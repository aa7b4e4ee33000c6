"""Compression of archives: one zstd frame, level 3, one thread (docs/format.md#archive)."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from sojourn.errors import FormatError, LimitError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC: Final = b"\x28\xb5\x2f\xfd"
LEVEL: Final = 3
PIECE: Final = 1 << 20
"""Bytes that are unpacked at once, at most."""

WINDOW: Final = 23
"""Binary logarithm of the largest window: 8 MiB of memory."""

MAX_RATIO: Final = 1000
FREE: Final = 1 << 30
"""An archive may unpack to this many bytes, or `MAX_RATIO` times its own if that is more."""


def compressed(pieces: Iterable[bytes], *, size: int) -> Iterator[bytes]:
    """The frame of these pieces, which are `size` bytes together."""
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: LEVEL,
        zstd.CompressionParameter.checksum_flag: 1,
        zstd.CompressionParameter.content_size_flag: 1,
        zstd.CompressionParameter.nb_workers: 0,
    }
    packer = zstd.ZstdCompressor(options=options)
    packer.set_pledged_input_size(size)
    for piece in pieces:
        made = packer.compress(piece)
        if made:
            yield made
    yield packer.flush()


def decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """What the one frame holds, in pieces of at most `PIECE`.

    Raises: FormatError `compression_broken`; LimitError `compression_bomb`.
    """
    unpacker = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW})
    taken = given = 0
    for piece in pieces:
        taken += len(piece)
        rest = piece
        while rest or not (unpacker.needs_input or unpacker.eof):
            if unpacker.eof:
                raise _broken("something follows the end of the compressed data")
            made = _unpack(unpacker, rest)
            rest = unpacker.unused_data if unpacker.eof else b""
            given += len(made)
            if given > max(FREE, MAX_RATIO * taken):
                raise _bomb(given, taken)
            yield made
    if not unpacker.eof:
        raise _broken("the compressed data ends before its end")


def _unpack(unpacker: zstd.ZstdDecompressor, data: bytes) -> bytes:
    try:
        return unpacker.decompress(data, PIECE)
    except (zstd.ZstdError, EOFError) as error:
        raise _broken(str(error)) from error


def _broken(why: str) -> FormatError:
    return FormatError(
        f"the archive cannot be decompressed: {why}",
        code="compression_broken",
        hint="Get the archive again from where it came from.",
    )


def _bomb(given: int, taken: int) -> LimitError:
    return LimitError(
        f"the archive unpacks to more than {MAX_RATIO} times its size ({taken:,} to {given:,})",
        code="compression_bomb",
        state="Nothing was kept.",
        hint="If you trust it, decompress it with zstd -d and give the result.",
    )
