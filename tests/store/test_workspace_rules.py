"""Ignore files: what they leave out of a snapshot, and when a change of them counts."""

from pathlib import Path

import pytest

from store.workspaces import Place, paths


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


IGNORED = {
    "plain": (["*.log", "!keep.log", "/top", "build/"], False),
    "with git's": (["#include .gitignore", "!never.tmp"], True),
}


@pytest.mark.parametrize("name", IGNORED)
def test_ignore_files_leave_out_what_they_name(place: Place, name: str) -> None:
    lines, git = IGNORED[name]
    place.write(
        {
            ".sojournignore": "\n".join(lines),
            ".gitignore": "*.tmp\n",
            "a.log": "", "keep.log": "", "top": "", "sub/top": "", "build/x": "", "sub/build/y": "",
            "a.tmp": "", "never.tmp": "",
            "sub/.sojournignore": "!b.log\nonly\n", "sub/b.log": "", "sub/only": "", "only": "",
            "sub/.gitignore": "mine\n", "sub/mine": "",
        }
    )  # fmt: skip
    found = set(paths(place.take().listed))
    always = {".sojournignore", ".gitignore", "sub/.sojournignore", "sub/.gitignore", "only"}
    assert always <= found
    assert "sub/only" not in found
    if git:
        assert {"a.log", "build/x", "never.tmp", "sub/b.log"} <= found
        assert not {"a.tmp", "sub/mine"} & found
    else:
        assert {"keep.log", "sub/top", "sub/b.log", "a.tmp", "sub/mine"} <= found
        assert not {"a.log", "top", "build/x", "sub/build/y"} & found


def test_a_change_of_the_rules_counts_for_files_that_did_not_change(place: Place) -> None:
    place.write({"a.log": "1", "sub/b.log": "2"})
    assert paths(place.take().listed) == ["a.log", "sub/b.log"]
    place.write({".sojournignore": "*.log"})
    assert paths(place.take().listed) == [".sojournignore", "sub"]
    place.write({".sojournignore": "[\n/a.log"})
    assert paths(place.take().listed) == [".sojournignore", "sub/b.log"]
    (place.root / ".sojournignore").unlink()
    assert paths(place.take().listed) == ["a.log", "sub/b.log"]
