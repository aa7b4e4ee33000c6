"""A capsule is always named so that the same machine finds the same capsule by that name."""

import asyncio
import shlex
import shutil
from pathlib import Path

import pytest

from sojourn import Machine
from sojourn.agent import Place
from sojourn.errors import NotFoundError


def machine(folder: Path) -> Machine:
    return Machine({"SOJOURN_HOME": str(folder / "state")})


def made(folder: Path, where: str | None, name: str) -> Place:
    return asyncio.run(machine(folder).create(where, name=name, model="echo"))


def check_found(folder: Path, *places: Place) -> list[str]:
    """Each is found by how it is named; these names."""
    named = [machine(folder).reference(place) for place in places]
    for place, words in zip(places, named, strict=True):
        (word,) = shlex.split(words)
        assert machine(folder).find(word).folder == place.folder
    return named


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_capsule_alone_of_its_name_is_named_by_it(tmp_path: Path) -> None:
    assert check_found(tmp_path, made(tmp_path, "one", "box")) == ["box"]


def test_capsules_that_share_a_name_are_named_by_their_paths(tmp_path: Path) -> None:
    one, two = made(tmp_path, "one", "box"), made(tmp_path, "two of them", "box")
    assert check_found(tmp_path, one, two) == [one.folder, shlex.quote(two.folder)]


def test_a_copy_is_named_by_its_path(tmp_path: Path) -> None:
    one = made(tmp_path, "one", "box")
    shutil.copytree("one", "copy")
    copy = machine(tmp_path).find("copy")
    assert (one.name, one.capsule) == (copy.name, copy.capsule)
    assert check_found(tmp_path, one, copy) == ["box", copy.folder]


def test_a_folder_here_that_bears_the_name_takes_it_away(tmp_path: Path) -> None:
    one = made(tmp_path, None, "box")
    shutil.copytree(one.folder, "box")
    assert check_found(tmp_path, one, machine(tmp_path).find("box")) == [
        one.folder,
        str(tmp_path / "box"),
    ]


def test_a_message_to_a_copy_reaches_the_capsule_that_runs(tmp_path: Path) -> None:
    one = made(tmp_path, "one", "box")
    shutil.copytree("one", "copy")
    copy = machine(tmp_path).find("copy")
    assert machine(tmp_path).live(copy) == one
    asyncio.run(machine(tmp_path).send(copy, "hello"))
    (job,) = machine(tmp_path).jobs()
    assert job.folder == one.folder


def test_another_capsule_in_the_old_folder_is_not_taken_for_the_live_one(tmp_path: Path) -> None:
    one = made(tmp_path, "one", "box")
    shutil.move("one", "moved")
    made(tmp_path, "one", "new")
    moved = machine(tmp_path).find("moved")
    assert (moved.capsule, machine(tmp_path).live(moved)) == (one.capsule, moved)


@pytest.mark.parametrize(
    ("where", "message", "advice"),
    [
        ("nobody", "no capsule called nobody", "sojourn init -n nobody"),
        ("a/b", "nothing at a/b", "sojourn init a/b"),
        ("a b", "nothing at a b", "sojourn init 'a b'"),
        ("file", "file is a file", "sojourn ps -a"),
        ("folder", "the folder folder holds no capsule", "sojourn init folder"),
        ("desk", "the folder that box works in", "sojourn ps -a"),
        ("link", "link is a file", "sojourn ps -a"),
    ],
)
def test_what_is_no_capsule_is_called_what_it_is(
    where: str, message: str, advice: str, tmp_path: Path
) -> None:
    for folder in ("folder", "desk"):
        (tmp_path / folder).mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    asyncio.run(machine(tmp_path).create(None, name="box", model="echo", workspace="desk"))
    with pytest.raises(NotFoundError) as refused:
        machine(tmp_path).find(where)
    assert refused.value.code == "no_capsule"
    assert message in refused.value.message and advice in refused.value.hint
    assert "Known here (`sojourn ps -a`): box." in refused.value.hint
