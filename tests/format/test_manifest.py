"""A manifest is read, kept and replaced without losing what a later version put there."""

from dataclasses import replace
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.logs import all_of, log, read
from sojourn.errors import FormatError
from sojourn.format import canon, manifest
from sojourn.format.manifest import CURRENT, Features, FileMark, Manifest, TimelineMark
from sojourn.ids import BlobId, CapsuleId, Epoch, EventId, MachineId

HEX = BlobId(sha256(b"").hexdigest())


def example(**changes: object) -> Manifest:
    made = Manifest(
        capsule=CapsuleId("c" * 64),
        epoch=Epoch(3),
        features=Features(optional=("colour",), required=()),
        files={
            "artifacts/snapshot.json": FileMark(sha256=HEX, size=0, derived=True),
            "environment/spec.json": FileMark(sha256=HEX, size=0),
        },
        format=CURRENT,
        holder=MachineId("a" * 64),
        name="example",
        timeline=TimelineMark(heads=(), length=0, sha256=HEX),
    )
    return msgspec.structs.replace(made, **changes)


def test_a_manifest_is_read_as_it_was_written() -> None:
    data = manifest.encode(example())
    assert manifest.load(data) == example()
    assert data == canon.encode(canon.load(data, what="manifest.json")) + b"\n"
    assert data.count(b"\n") == 1


def test_unknown_fields_are_kept_byte_for_byte() -> None:
    data = manifest.encode(example())
    extra = b'{"b": 1.50,\n "a":[ ]}'
    later = (
        data[:-2] + b',"aaa":' + extra + b',"\xf0\x9f\x98\x80":1,"\xef\xbd\x9e":2,"unknown":0}\n'
    )
    found = manifest.load(later)
    assert found.unknown["aaa"] == extra
    again = manifest.encode(msgspec.structs.replace(found, name="renamed"))
    assert extra in again
    assert manifest.load(again) == msgspec.structs.replace(found, name="renamed")
    # RFC 8785 sorts keys by UTF-16, in which the emoji comes before the full-width tilde.
    assert again.index("\U0001f600".encode()) < again.index("\uff5e".encode())
    assert again.startswith(b'{"aaa":')


def test_what_the_manifest_knows_agrees_with_the_log() -> None:
    data, _, chain = log(1, 2)
    ending = read(data)[2]
    found = example(timeline=manifest.mark(ending))
    assert manifest.known(found) == replace(all_of(data, chain), last=None)
    assert read(data, known=[manifest.known(found)])[1] == []


def test_a_newer_write_version_is_for_reading_only() -> None:
    newer = msgspec.structs.replace(CURRENT, write=2)
    assert manifest.access(manifest.load(manifest.encode(example(format=newer)))) == "read"
    assert manifest.access(example()) == "write"


@pytest.mark.parametrize(
    ("changes", "code", "says"),
    [
        ({"format": msgspec.structs.replace(CURRENT, read=7)}, "read_version_newer", "version 7"),
        ({"format": msgspec.structs.replace(CURRENT, name="other")}, "format_unknown", "other"),
        ({"features": Features(optional=(), required=("folding",))}, "feature_unknown", "folding"),
    ],
)
def test_a_refusal_names_what_it_needs(changes: dict[str, object], code: str, says: str) -> None:
    with pytest.raises(FormatError, match=says) as caught:
        manifest.load(manifest.encode(example(**changes)))
    assert (caught.value.code, caught.value.file) == (code, "manifest.json")


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_never_crashes_the_reader_of_the_manifest(at: int, byte: int) -> None:
    data = bytearray(manifest.encode(example()))
    data[at % len(data)] = byte
    try:
        manifest.load(bytes(data))
    except FormatError as error:
        assert error.file == "manifest.json"


def test_a_capsule_is_known_by_its_identity() -> None:
    assert manifest.check(example(), identities=[EventId("c" * 64)]) == ()
    found = manifest.check(example(), identities=[EventId("d" * 64)])
    assert [item.code for item in found] == ["identity_unknown"]
