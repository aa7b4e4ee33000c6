"""A whole capsule is looked through, and findings name places and no values."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.stage import Stage
from sojourn.core.scan import LONGEST
from sojourn.drive.scan import Suspect, scan
from sojourn.format import layout, snapshot
from sojourn.format.blob import blob_id
from sojourn.format.event import ModelOutcome
from sojourn.store.files import FolderFiles

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
        data = self._files.get(path, b"")
        for at in range(0, len(data), self._piece):
            yield data[at : at + self._piece]


def found(files: Mapping[str, bytes], **more: int) -> list[Suspect]:
    return list(scan(Files(files, **more)))


def test_a_secret_in_an_event_is_named_by_line_and_field() -> None:
    line = b'{"body":{"parts":[{"text":"a \\"%s\\""}],"salt":"x"},"header":{}}\n'
    log = line % b"nothing" + line % KEY
    (suspect,) = found({layout.TIMELINE: log})
    assert (suspect.file, suspect.line) == (layout.TIMELINE, 2)
    assert (suspect.rule, suspect.within) == ("GitHub token", "parts[0].text")


def test_the_event_of_the_line_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, [{"text": KEY.decode()}])
    stage.run()
    (suspect,) = scan(FolderFiles(str(stage.capsule)))
    said = next(event for event in stage.events() if isinstance(event.body, ModelOutcome))
    assert (suspect.event, suspect.number) == (said.id, said.header.seq + 1)


def test_a_line_that_is_no_json_is_looked_at_too() -> None:
    (suspect,) = found({layout.TIMELINE: b"\xff{" + KEY})
    assert suspect.line == 1


def test_a_secret_in_a_blob_is_named_by_the_path_in_the_workspace() -> None:
    data = b"a\nb\n" + KEY + b"\n"
    name = blob_id(data)
    entry = snapshot.Entry(path="config/app.ini", type="file", sha256=name, size=len(data))
    files = {
        layout.blob_path(name): data,
        layout.SNAPSHOT: snapshot.encode(snapshot.make((entry,))),
    }
    (suspect,) = found(files)
    assert (suspect.file, suspect.line) == (layout.blob_path(name), 3)
    assert suspect.within == "config/app.ini"


@pytest.mark.parametrize("path", [layout.WORKING_MEMORY, layout.SPEC, layout.MANIFEST])
def test_every_other_file_is_looked_at(path: str) -> None:
    (suspect,) = found({path: KEY})
    assert suspect.file == path


def test_no_finding_holds_the_value() -> None:
    (suspect,) = found({layout.WORKING_MEMORY: KEY})
    assert KEY.decode() not in str(suspect)


@given(st.integers(0, 3 * LONGEST), st.sampled_from([1 << 10, LONGEST, LONGEST + 7, 1 << 16]))
def test_no_cut_between_pieces_hides_or_doubles_a_secret(before: int, piece: int) -> None:
    data = b"\n" * before + KEY + b"\n" * LONGEST
    (suspect,) = found({layout.WORKING_MEMORY: data}, piece=piece)
    assert suspect.line == before + 1
    assert [suspect] == found({layout.WORKING_MEMORY: data})
