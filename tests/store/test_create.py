"""A new capsule appears whole or not at all."""

from pathlib import Path

import pytest

from sojourn.errors import StorageError, UsageError
from sojourn.format import layout
from sojourn.store.create import create_capsule

FILES = {layout.MANIFEST: b"{}\n", layout.TIMELINE: b"x\n", layout.SPEC: b"{}\n"}


def found_in(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("place", ["capsule", "a/b/c/capsule", "empty"])
def test_every_file_and_folder_is_there(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    create_capsule(str(tmp_path / place), FILES)
    assert found_in(tmp_path / place) == FILES
    for folder in layout.FOLDERS:
        assert (tmp_path / place / folder).is_dir()
    assert not list(tmp_path.rglob(".sojourn-*"))


def test_a_folder_that_is_not_empty_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file"):
        with pytest.raises(UsageError) as refused:
            create_capsule(str(tmp_path / name), FILES)
        assert refused.value.code == "exists"
    assert found_in(tmp_path) == {"mine/notes": b"mine", "file": b"mine"}


def test_a_folder_below_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError):
        create_capsule(str(tmp_path / "file" / "capsule"), FILES)
