"""The little of HTTP/1.1 that a loopback server needs: read a request, write a response's head."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

MAX_HEAD: Final = 64 * 1024
"""Bytes of a request's head; a longer one closes the connection."""
MAX_KEPT: Final = 64 * 1024 * 1024
"""Bytes of a body that are kept; the rest is read and dropped, so that the answer arrives."""
_READ: Final = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpRequest:
    """One request; header names are in lower case, the path is without its query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class BrokenRequest(Exception):
    """The bytes are no request: the connection is closed without an answer."""


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> HttpRequest | None:
    """The next request of a connection, or None when it has ended.

    Raises: BrokenRequest.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BrokenRequest("cut head") from None
        return None
    except asyncio.LimitOverrunError:
        raise BrokenRequest("head too long") from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        raise BrokenRequest("no request line")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
    body = await _read_body(reader, headers)
    path = words[1].partition("?")[0]
    return HttpRequest(method=words[0], path=path, headers=headers, body=body)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    try:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return await _read_chunks(reader)
        return await _read_exactly(reader, int(headers.get("content-length", "0")), MAX_KEPT)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise BrokenRequest("cut body") from None


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        kept += await _read_exactly(reader, size, max(0, MAX_KEPT - len(kept)))
        await reader.readuntil(b"\r\n")
        if size == 0:
            return bytes(kept)


async def _read_exactly(reader: asyncio.StreamReader, size: int, keep: int) -> bytes:
    kept = bytearray()
    left = size
    while left > 0:
        part = await reader.readexactly(min(left, _READ))
        left -= len(part)
        kept += part[: max(0, keep - len(kept))]
    return bytes(kept)


def response_head(status: int, headers: Mapping[str, str]) -> bytes:
    """The status line and the headers, with the blank line after them."""
    known = {one.value: one.phrase for one in HTTPStatus}
    lines = [f"HTTP/1.1 {status} {known.get(status, 'Overloaded')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(body: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


LAST_CHUNK: Final = b"0\r\n\r\n"
