"""A second reader of archives, from docs/format.md#archive alone: it names the first failure.

Slow and whole in memory, so that it is short; the vectors and the fuzzing compare it with the room.
"""

import re
from collections.abc import Callable

LIMITS = {
    "manifest.json": 2**26,
    "artifacts/snapshot.json": 2**26,
    "memory/vector_index/index.json": 2**26,
    "environment/spec.json": 2**20,
    "memory/working_memory.md": 2**20,
    "SHA256SUMS": 2**28,
    "VERIFY.txt": 2**14,
    "manifest.json.sig": 2**16,
}
LOG, BLOBS = "memory/timeline_events.jsonl", "artifacts/blobs/"


class Fault(Exception):
    """The name of what is wrong."""


def header(name: bytes, mode: bytes, size: int, kind: bytes) -> bytes:
    block = bytearray(512)
    for at, data in (
        (0, name[:100]),
        (100, mode),
        (108, b"0000000"),
        (116, b"0000000"),
        (124, b"%011o" % size),
        (136, b"0" * 11),
        (148, b" " * 8),
        (156, kind),
        (257, b"ustar"),
        (263, b"00"),
    ):
        block[at : at + len(data)] = data
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def record(key: str, value: str) -> bytes:
    for digits in range(1, 6):
        line = f"{{:0{digits}}} {key}={value}\n".format(0)
        if len(str(len(line))) == digits:
            return f"{len(line)} {key}={value}\n".encode()
    raise ValueError("too long")


def front(path: str, size: int) -> bytes:
    """What stands before a member's content."""
    records = record("path", path) if len(path) > 100 else b""
    records += record("size", str(size)) if size > 8**11 - 1 else b""
    own = header(path.encode(), b"0000644", 0 if size > 8**11 - 1 else size, b"0")
    if not records:
        return own
    pax = header(b"././@PaxHeader", b"0000000", len(records), b"x")
    return pax + records + bytes(-len(records) % 512) + own


def names(data: bytes, pattern: str) -> list[tuple[str, int]]:
    """Path and size of each member; `pattern` is that of paths in docs/format.md.

    Raises: Fault.
    """
    if data and len(data) >= 512 and data[257:263] != b"ustar\0":
        raise Fault("archive_empty")
    at, found = 0, list[tuple[str, int]]()

    def take(size: int) -> bytes:
        nonlocal at
        if at + size > len(data):
            raise Fault("archive_cut")
        at += size
        return data[at - size : at]

    while (block := take(512)).strip(b"\0"):
        start = at - 512
        path, size = one(block, take)
        check(path, size, pattern)
        if front(path, size) != data[start:at]:
            raise Fault("archive_pax")
        check_order(path, found)
        found.append((path, size))
        take(size)
        if take(-size % 512).strip(b"\0"):
            raise Fault("archive_padding")
    if take(512).strip(b"\0"):
        raise Fault("archive_header")
    if at < len(data):
        raise Fault("archive_trailing")
    return found


def one(block: bytes, take: Callable[[int], bytes]) -> tuple[str, int]:
    name, size, kind = parse(block)
    if kind == b"0":
        return text(name), size
    if kind != b"x":
        raise Fault("archive_type")
    if name != b"././@PaxHeader" or not 0 < size <= 2048:
        raise Fault("archive_pax")
    records, padding, block = take(size), take(-size % 512), take(512)
    known = re.fullmatch(
        rb"(?:\d+ path=([^\n]{101,1024})\n)?(?:[1-9]\d size=([1-9]\d{9,15})\n)?", records
    )
    if known is None or padding.strip(b"\0"):
        raise Fault("archive_pax")
    name, size, kind = parse(block)
    if kind != b"0":
        raise Fault("archive_type")
    return text(known[1] or name), int(known[2] or size)


def parse(block: bytes) -> tuple[bytes, int, bytes]:
    name, kind = block[:100].rstrip(b"\0"), block[156:157]
    digits = block[124:135]
    well = re.fullmatch(rb"[0-7]{11}", digits) is not None
    mode = b"0000644" if kind == b"0" else b"0000000"
    if not well or header(name, mode, int(digits, 8), kind) != block:
        other = block[257:263] == b"ustar\0" and kind not in b"0x" and well
        raise Fault("archive_type" if other else "archive_header")
    return name, int(digits, 8), kind


def text(name: bytes) -> str:
    try:
        return name.decode("ascii")
    except UnicodeDecodeError:
        raise Fault("archive_path") from None


def check(path: str, size: int, pattern: str) -> None:
    blob = path.removeprefix(BLOBS)
    fits = re.search(pattern, path) or path in ("manifest.json", LOG)
    if not (re.fullmatch("[0-9a-f]{64}", blob) if blob != path else fits):
        raise Fault("archive_path")
    limit = 2**53 - 1 if blob != path or path == LOG else LIMITS.get(path, 2**26)
    if size > limit:
        raise Fault("archive_too_large")


def check_order(path: str, found: list[tuple[str, int]]) -> None:
    if found and path <= found[-1][0]:
        raise Fault("archive_order")
    if any(path.startswith(f"{other}/") for other, _ in found):
        raise Fault("archive_path")
