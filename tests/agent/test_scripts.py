"""The script of a scripted model is found from any folder, and no path of it is in the capsule."""

import asyncio
import json
from pathlib import Path

import pytest

from sojourn import Machine
from sojourn.agent import Place
from sojourn.errors import NotFoundError


def script(path: Path, text: str = "Hello.") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"steps": [{"text": text}]}))
    return path


class Case:
    """A machine, a workspace, and the folder where its commands run."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        (folder / "desk").mkdir()
        self.go("here")

    def go(self, name: str) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        self._monkeypatch.chdir(self.folder / name)

    @property
    def machine(self) -> Machine:
        return Machine({"SOJOURN_HOME": str(self.folder / "state")})

    def create(self, model: str) -> Place:
        desk, capsule = str(self.folder / "desk"), str(self.folder / "capsule")
        return asyncio.run(self.machine.create(capsule, model=model, workspace=desk))

    def run(self, place: Place, model: str | None = None) -> str:
        async def inside() -> str:
            async with self.machine.hold(place, model=model) as agent:
                return (await agent.run("hi")).text

        return asyncio.run(inside())

    def recorded(self, place: Place) -> str | None:
        return self.machine.look(place).model


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(tmp_path, monkeypatch)


@pytest.mark.parametrize("form", ["{folder}/here/sub/s.json", "sub/s.json", "../here/sub/s.json"])
def test_a_script_is_found_from_another_folder_and_its_path_is_in_no_file(
    form: str, case: Case
) -> None:
    script(case.folder / "here/sub/s.json")
    model = "scripted/" + form.format(folder=case.folder)
    place = case.create(model)
    case.go("there")
    script(case.folder / "there/s.json", "Another.")
    assert case.run(place) == "Hello."
    assert case.recorded(place) == "scripted/s.json"
    for file in (case.folder / "capsule").rglob("*"):
        assert not file.is_file() or str(case.folder).encode() not in file.read_bytes()


def test_a_script_named_at_a_run_is_the_one_from_then_on(case: Case) -> None:
    place = case.create("scripted/" + str(script(case.folder / "a/s.json", "First.")))
    script(case.folder / "here/s.json", "Second.")
    assert case.run(place, "scripted/s.json") == "Second."
    case.go("there")
    (case.folder / "here/s.json").write_text('{"steps": [{"text": "Second."}, {"text": "Third."}]}')
    assert case.run(place) == "Third."


def test_a_script_that_went_is_looked_for_here_and_in_the_workspace(case: Case) -> None:
    gone = script(case.folder / "a/s.json")
    place = case.create(f"scripted/{gone}")
    gone.unlink()
    with pytest.raises(NotFoundError) as refused:
        case.run(place)
    assert refused.value.code == "script_missing"
    for path in (gone, case.folder / "here/s.json", case.folder / "desk/s.json"):
        assert str(path) in refused.value.message
    assert case.machine.look(place).waiting == 0
    script(case.folder / "desk/s.json", "At the desk.")
    assert case.run(place) == "At the desk."


def test_the_folder_where_one_is_comes_before_the_workspace(case: Case) -> None:
    gone = script(case.folder / "a/s.json")
    place = case.create(f"scripted/{gone}")
    gone.unlink()
    script(case.folder / "desk/s.json", "At the desk.")
    script(case.folder / "here/s.json", "Here.")
    assert case.run(place) == "Here."


@pytest.mark.parametrize("kept", [b"", b"\xff\xfe", b"/nowhere/other.json", b"x" * 9000])
def test_a_kept_place_that_is_wrong_does_no_harm(kept: bytes, case: Case) -> None:
    place = case.create("scripted/" + str(script(case.folder / "here/s.json")))
    (case.folder / "state/scripts" / place.capsule).write_bytes(kept)
    assert case.run(place) == "Hello."


def test_a_kept_place_of_another_script_is_not_taken(case: Case) -> None:
    other = script(case.folder / "a/other.json", "Another.")
    place = case.create("scripted/" + str(script(case.folder / "here/s.json")))
    (case.folder / "state/scripts" / place.capsule).write_bytes(bytes(other))
    assert case.run(place) == "Hello."
