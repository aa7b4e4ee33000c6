"""Blobs, paths, snapshots and the files of a new capsule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import FormatError
from sojourn.format import blob, environment, index, layout, paths, snapshot
from sojourn.format.event import LockFile, ToolOutcome
from sojourn.format.parts import BlobRef, MediaPart, TextPart
from sojourn.format.snapshot import Entry
from sojourn.ids import BlobId, CallKey, TurnId

PART = st.text("ab.éC", min_size=1, max_size=3)


def test_the_files_of_a_new_capsule_are_read() -> None:
    assert snapshot.load(snapshot.encode(snapshot.EMPTY)) == snapshot.EMPTY
    assert index.load(index.EMPTY).entries == ()
    assert environment.load(environment.MINIMAL).env == {}


def test_references_are_found_in_every_typed_position_and_nowhere_else() -> None:
    refs = [blob.ref(bytes([number]), media_type="x") for number in range(4)]
    body = ToolOutcome(
        turn=TurnId("t"),
        call=CallKey("c"),
        status="done",
        parts=(
            TextPart(text=refs[0]),
            MediaPart(media_type="x", blob=refs[1]),
            TextPart(text=f'{{"sha256":"{"0" * 64}","size":1,"media_type":"x"}}'),
            TextPart(text="x", citations=refs[2]),
        ),
        full=refs[3],
    )
    assert sorted(ref.sha256 for ref in blob.refs(body)) == sorted(ref.sha256 for ref in refs)


def test_a_blob_is_compared_by_size_before_its_digest() -> None:
    name = blob.blob_id(b"abc")
    assert blob.check(name, b"abc", size=3) == b"abc"
    cases: list[tuple[bytes | None, int, str]] = [
        (None, 3, "blob_missing"),
        (b"ab", 3, "blob_size"),
        (b"abd", 3, "blob_altered"),
    ]
    for data, size, code in cases:
        with pytest.raises(FormatError) as caught:
            blob.check(name, data, size=size)
        assert (caught.value.code, caught.value.file) == (code, layout.blob_path(name))


def test_a_preview_is_short() -> None:
    assert len(blob.ref(b"", media_type="x", preview="é" * 999).preview) == layout.MAX_PREVIEW


@given(st.sets(st.lists(PART, min_size=1, max_size=3).map("/".join), max_size=8))
def test_a_snapshot_is_read_as_it_was_made_or_never_made(found: set[str]) -> None:
    entries = [Entry(path=path, type="file", sha256=BlobId("0" * 64), size=1) for path in found]
    unsafe = any(paths.unsafe(path) for path in found)
    inside = any(one != two and two.startswith(one + "/") for one in found for two in found)
    if unsafe or inside:
        with pytest.raises(FormatError):
            snapshot.make(tuple(entries))
        return
    made = snapshot.make(tuple(entries))
    assert snapshot.load(snapshot.encode(made)) == made
    assert {entry.path for entry in made.entries} == found


def test_merely_unportable_names_are_kept_and_flagged() -> None:
    names = ["a", "A", "con", "nul.txt", "a:b", "end.", "end ", "e\u0301", "fine/x", "console"]
    assert all(paths.unsafe(name) is None for name in names)
    assert set(paths.flagged(names)) == set(names) - {"fine/x", "console"}


@given(st.text(max_size=20))
def test_a_path_that_may_be_listed_is_safe_and_portable(path: str) -> None:
    if paths.may_be_listed(path):
        assert paths.unsafe(path) is None
        assert paths.unportable(path) is None


@pytest.mark.parametrize(
    ("path", "fine"),
    [
        ("environment/pylock.toml", True),
        ("environment/sub/package-lock.json", True),
        ("environment", False),
        ("manifest.json", False),
        ("environment/../manifest.json", False),
        ("environment/a b", False),
        ("environment/CON.txt", False),
    ],
)
def test_files_of_the_environment_lie_in_its_folder(path: str, fine: bool) -> None:
    files = [LockFile(path=path, blob=BlobRef(sha256=BlobId("0" * 64), size=1, media_type="x"))]
    if fine:
        environment.check_files(files)
        return
    with pytest.raises(FormatError) as caught:
        environment.check_files(files)
    assert caught.value.code == "path_unsafe"


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "KEYBOARD", "PYTHONUNBUFFERED", "X"])
def test_variables_that_only_look_like_secrets_pass(name: str) -> None:
    assert environment.variable_refusal(name) is None


def test_temporary_files_are_told_by_their_names() -> None:
    assert layout.is_temporary("memory/.sojourn-12")
    assert not layout.is_temporary(".sojourn-1/x")
    assert layout.is_blob_name("0" * 64)
    assert not layout.is_blob_name("0" * 64 + "\n")
