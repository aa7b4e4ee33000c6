"""Archives: one form, which two readers and Python's tarfile agree about."""

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format import plain_archive
from format.tables import patterns
from format.vectors import ARCHIVES, BLOBS, Files, content
from sojourn.errors import FormatError
from sojourn.format import archive, layout, manifest
from sojourn.format.archive import Member
from sojourn.format.verify import verify

PATTERN = patterns()["path"]
ALL = sorted(ARCHIVES.glob("*.json"))
SOUND = content(json.loads((ARCHIVES / "whole.json").read_text("utf-8"))["data"])


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def unpacked(data: bytes, *, size: int = 1 << 20, limit: int = 10**6) -> dict[str, bytes]:
    """The members of an archive, read in pieces of `size` bytes."""
    found: dict[str, bytes] = {}
    path = ""
    for item in archive.read(cut(data, size), limit=limit):
        if isinstance(item, Member):
            path = item.path
            found[path] = b""
            assert data[item.offset : item.offset + 8] in (b"",) or item.offset % 512 == 0
        else:
            found[path] += item
    return found


def judged(data: bytes, *, size: int = 1 << 20) -> str | None:
    """The first failure of an archive as the room names it; a capsule's own, when it holds one."""
    try:
        files = unpacked(data, size=size)
        if layout.MANIFEST in files and manifest.load(files[layout.MANIFEST]).seal is None:
            return "archive_live"
    except FormatError as error:
        return error.code
    if layout.TIMELINE not in files:
        return None
    return next((found.code for found in verify(Files(files))), None)


def plainly(data: bytes) -> str | None:
    """The first failure of the form as the second reader names it."""
    try:
        plain_archive.names(data, PATTERN)
    except plain_archive.Fault as fault:
        return str(fault)
    return None


def stored(path: Path) -> tuple[bytes, str | None]:
    value = json.loads(path.read_text("utf-8"))
    return content(value["data"]), next(iter(value["expect"]), None)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_an_archive_is_judged_as_its_vector_says(path: Path) -> None:
    data, expect = stored(path)
    assert judged(data) == expect
    assert judged(data, size=7 if len(data) < 100_000 else 1000) == expect
    formal = expect if expect is not None and expect.startswith("archive_") else None
    assert plainly(data) == (None if formal == "archive_live" else formal)


def test_every_failure_of_an_archive_has_a_vector() -> None:
    expected = {stored(path)[1] for path in ALL}
    assert {code for code in expected if code and code.startswith("archive_")} == {
        *archive.CODES
    } - {"archive_too_many"}


def test_members_are_counted_while_they_are_read() -> None:
    data = b"".join(archive.write([("SHA256SUMS", 0, ()), ("VERIFY.txt", 0, ())]))
    assert len(unpacked(data, limit=2)) == 2
    with pytest.raises(FormatError) as refused:
        unpacked(data, limit=1)
    assert refused.value.code == "archive_too_many"


NAMES = st.one_of(
    st.sampled_from(["manifest.json", layout.TIMELINE, layout.SUMS, layout.SPEC]),
    st.integers(0, 2**256 - 1).map(lambda number: f"{BLOBS}{number:064x}"),
    st.from_regex(r"\A[a-z]{1,90}/[a-z]{1,90}\.[a-z]{2}x\Z"),
)
FILES = st.dictionaries(NAMES, st.binary(max_size=1500), min_size=1, max_size=8)


@given(FILES, st.integers(1, 2000))
def test_what_is_written_is_read_and_is_the_tar_of_python(
    files: dict[str, bytes], size: int
) -> None:
    members = [(path, len(data), [data]) for path, data in sorted(files.items())]
    data = b"".join(archive.write(members))
    assert len(data) == archive.length((path, size) for path, size, _ in members)
    assert unpacked(data, size=size) == files
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, length, pieces in members:
            info = tarfile.TarInfo(path)
            info.size = length
            tar.addfile(info, io.BytesIO(pieces[0]))
    assert packed.getvalue()[: len(data)] == data
    assert not packed.getvalue()[len(data) :].strip(b"\0")


@pytest.mark.parametrize("size", [0, 1, 8**11 - 1, 8**11, 10**10, 2**53 - 1])
@pytest.mark.parametrize("path", [f"{BLOBS}{'a' * 64}", layout.TIMELINE])
def test_a_size_of_any_magnitude_is_said_as_python_says_it(size: int, path: str) -> None:
    info = tarfile.TarInfo(path)
    info.size = size
    assert (
        archive.head(path, size)
        == info.tobuf(tarfile.PAX_FORMAT)
        == plain_archive.front(path, size)
    )


def test_what_no_archive_may_hold_is_not_written() -> None:
    for path, size, code in (
        ("../x", 1, "archive_path"),
        (layout.WORKING_MEMORY, 2**20 + 1, "archive_too_large"),
        (f"{BLOBS}{'a' * 64}", 2**53, "archive_too_large"),
    ):
        with pytest.raises(FormatError) as refused:
            archive.head(path, size)
        assert refused.value.code == code
    for members, code in (
        ([("VERIFY.txt", 0, ()), ("SHA256SUMS", 0, ())], "archive_order"),
        ([("VERIFY.txt", 2, [b"x"])], "archive_cut"),
    ):
        with pytest.raises(FormatError) as refused:
            b"".join(archive.write(members))
        assert refused.value.code == code


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A vector's archive with bits flipped, spans cut out, put twice or exchanged."""
    data = bytearray(stored(draw(st.sampled_from(ALL[:60])))[0][:40_000])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        span = draw(st.sampled_from([1, 8, 100, 512, 1024]))
        match draw(st.sampled_from(["flip", "cut", "twice", "digits", "zero"])):
            case "flip" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[at : at + span]
            case "twice":
                data[at:at] = data[at : at + span]
            case "digits":
                data[at : at + 11] = b"00000000777"
            case _:
                data[at : at + span] = bytes(len(data[at : at + span]))
    return bytes(data)


@settings(max_examples=300)
@given(damaged(), st.sampled_from([1 << 20, 511, 13]))
def test_two_readers_name_the_same_failure_of_any_bytes(data: bytes, size: int) -> None:
    found: str | None = None
    try:
        unpacked(data, size=size)
    except FormatError as error:
        found = error.code
    assert found == plainly(data)


@settings(max_examples=300)
@given(st.data())
def test_no_flipped_bit_of_an_archive_goes_unnoticed(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(SOUND) - 1))
    changed = bytearray(SOUND)
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    assert judged(bytes(changed)) is not None
