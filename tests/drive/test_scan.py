"""A whole capsule is looked through, and findings name places and no values."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.stage import Stage
from sojourn.core.scan import LONGEST
from sojourn.drive.scan import Found, Suspect, Unseen, scan
from sojourn.errors import StorageError
from sojourn.format import layout, snapshot
from sojourn.format.blob import blob_id
from sojourn.format.event import ModelOutcome
from sojourn.store.files_strict import StrictFiles

KEY = b"ghp_" + sha256(b"no real key").hexdigest()[:36].encode()


class Files:
    """Files in memory, given in pieces of one size."""

    def __init__(self, files: Mapping[str, bytes], *, piece: int = 1 << 16) -> None:
        self._files = files
        self._piece = piece

    def paths(self) -> list[str]:
        return [path for path in self._files if not path.startswith(layout.BLOBS)]

    def blobs(self) -> list[str]:
        blobs = (path for path in self._files if path.startswith(layout.BLOBS))
        return [path.removeprefix(layout.BLOBS + "/") for path in blobs]

    def chunks(self, path: str) -> Iterator[bytes]:
        if path not in self._files:
            raise StorageError(f"{path} could not be read", file=path)
        data = self._files[path]
        for at in range(0, len(data), self._piece):
            yield data[at : at + self._piece]


def found(files: Mapping[str, bytes], **more: int) -> list[Found]:
    return list(scan(Files(files, **more)))


def suspects(files: Mapping[str, bytes], **more: int) -> list[Suspect]:
    return [one for one in found(files, **more) if isinstance(one, Suspect)]


def test_a_secret_in_an_event_is_named_by_line_and_field() -> None:
    line = b'{"body":{"parts":[{"text":"a \\"%s\\""}],"salt":"x"},"header":{}}\n'
    log = line % b"nothing" + line % KEY
    (suspect,) = suspects({layout.TIMELINE: log})
    assert (suspect.file, suspect.line) == (layout.TIMELINE, 2)
    assert (suspect.rule, suspect.within) == ("GitHub token", "parts[0].text")


def test_the_event_of_the_line_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": KEY.decode()}])
    stage.run()
    (suspect,) = scan(StrictFiles(str(stage.capsule)))
    said = next(event for event in stage.events() if isinstance(event.body, ModelOutcome))
    assert isinstance(suspect, Suspect)
    assert (suspect.event, suspect.number) == (said.id, said.header.seq + 1)


def test_a_line_that_is_no_json_is_looked_at_too() -> None:
    (suspect,) = suspects({layout.TIMELINE: b"\xff{" + KEY})
    assert suspect.line == 1


def test_a_secret_in_a_blob_is_named_by_the_path_in_the_workspace() -> None:
    data = b"a\nb\n" + KEY + b"\n"
    name = blob_id(data)
    entry = snapshot.Entry(path="config/app.ini", type="file", sha256=name, size=len(data))
    files = {
        layout.blob_path(name): data,
        layout.SNAPSHOT: snapshot.encode(snapshot.make((entry,))),
    }
    (suspect,) = suspects(files)
    assert (suspect.file, suspect.line) == (layout.blob_path(name), 3)
    assert suspect.within == "config/app.ini"


@pytest.mark.parametrize("path", [layout.WORKING_MEMORY, layout.SPEC, layout.MANIFEST])
def test_every_other_file_is_looked_at(path: str) -> None:
    (suspect,) = suspects({path: KEY})
    assert suspect.file == path


def test_no_finding_holds_the_value() -> None:
    (suspect,) = suspects({layout.WORKING_MEMORY: KEY})
    assert KEY.decode() not in str(suspect)


@given(st.integers(0, 3 * LONGEST), st.sampled_from([1 << 10, LONGEST, LONGEST + 7, 1 << 16]))
def test_no_cut_between_pieces_hides_or_doubles_a_secret(before: int, piece: int) -> None:
    data = b"\n" * before + KEY + b"\n" * LONGEST
    (suspect,) = suspects({layout.WORKING_MEMORY: data}, piece=piece)
    assert suspect.line == before + 1
    assert [suspect] == suspects({layout.WORKING_MEMORY: data})


def test_what_stands_beside_the_body_of_a_line_is_looked_at_too() -> None:
    (suspect,) = suspects({layout.TIMELINE: b'{"other":["%s"]}\n' % KEY})
    assert suspect.within == "other[0]"


def test_a_secret_in_a_line_without_end_is_found_in_its_line() -> None:
    log = b"{}\n" + b"x " * layout.MAX_LINE + KEY + b" x" * layout.MAX_LINE
    assert {suspect.line for suspect in suspects({layout.TIMELINE: log})} == {2}


@given(st.integers(1, 40), st.data())
def test_each_of_many_lines_with_a_secret_is_named(count: int, data: st.DataObject) -> None:
    """Lines are looked at together first, and a finding is in its own line all the same."""
    holding = data.draw(st.sets(st.integers(1, count)))
    lines = (KEY if line in holding else b"n" * 20_000 for line in range(1, count + 1))
    log = b"".join(b'{"body":{"text":"%s"},"header":{}}\n' % text for text in lines)
    named = [suspect.line for suspect in suspects({layout.TIMELINE: log}, piece=1 << 14)]
    assert named == sorted(holding)


class Broken(Files):
    """A disk that fails after the first piece of one file."""

    def chunks(self, path: str) -> Iterator[bytes]:
        for piece in super().chunks(path):
            yield piece
            if path == layout.WORKING_MEMORY:
                raise StorageError("the disk reported an error", file=path)


def test_a_file_that_cannot_be_read_to_its_end_is_named_and_the_rest_is_looked_at() -> None:
    files = Broken({layout.MANIFEST: KEY, layout.WORKING_MEMORY: KEY, layout.SPEC: KEY})
    named = [(type(one), one.file) for one in scan(files)]
    assert named == [
        (Suspect, layout.SPEC),
        (Suspect, layout.MANIFEST),
        (Suspect, layout.WORKING_MEMORY),
        (Unseen, layout.WORKING_MEMORY),
    ]


@pytest.mark.parametrize("path", [layout.TIMELINE, layout.SPEC, f"{layout.BLOBS}/{'a' * 64}"])
def test_what_is_no_regular_file_was_not_read(tmp_path: Path, path: str) -> None:
    place = tmp_path / path
    place.parent.mkdir(parents=True)
    (tmp_path / layout.BLOBS).mkdir(parents=True, exist_ok=True)
    place.symlink_to("/dev/null")
    (one,) = scan(StrictFiles(str(tmp_path)))
    assert isinstance(one, Unseen)
    assert (one.file, one.why) == (path, "unreadable")
    assert "could not be read" in one.message


def test_a_folder_of_blobs_that_is_none_was_not_read(tmp_path: Path) -> None:
    (tmp_path / layout.BLOBS).parent.mkdir(parents=True)
    (tmp_path / layout.BLOBS).write_bytes(b"")
    (one,) = scan(StrictFiles(str(tmp_path)))
    assert isinstance(one, Unseen)
    assert (one.file, one.why) == (layout.BLOBS, "unreadable")


def test_a_file_among_the_blobs_that_has_no_blobs_name_is_named() -> None:
    assert found({f"{layout.BLOBS}/notes.txt": KEY}) == [
        Unseen(file=f"{layout.BLOBS}/notes.txt", within="", why="misnamed")
    ]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (gzip.compress(KEY, mtime=0), "compressed"),
        (zlib.compress(b"blob 9\0" + KEY), "compressed"),
        (bz2.compress(KEY), "compressed"),
        (lzma.compress(KEY), "compressed"),
        (b"PK\3\4" + KEY, "compressed"),
        (b"age-encryption.org/v1\n", "enciphered"),
        (KEY.decode().encode("utf-16"), "in wide characters"),
    ],
)
def test_a_blob_that_hides_its_text_is_named_with_its_path(data: bytes, why: str) -> None:
    name = blob_id(data)
    entry = snapshot.Entry(path="a.bin", type="file", sha256=name, size=len(data))
    files = {
        layout.blob_path(name): data,
        layout.SNAPSHOT: snapshot.encode(snapshot.make((entry,))),
    }
    hidden = [one for one in found(files) if isinstance(one, Unseen)]
    assert [(one.file, one.within, one.why) for one in hidden] == [
        (layout.blob_path(name), "a.bin", why)
    ]


@pytest.mark.parametrize("data", [b"", b"x^2 + y", b"text", b"\x89PNG\r\n", b"\x7fELF"])
def test_what_hides_nothing_known_is_not_named(data: bytes) -> None:
    assert found({layout.blob_path(blob_id(data)): data}) == []
