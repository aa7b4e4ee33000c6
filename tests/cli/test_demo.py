"""The demo shows what it says, and fails when one of its claims does not hold."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from cli.running import Place
from sojourn.cli.demo_proofs import Killed, proofs_of


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, dict[str, object]]:
    """One real demo in JSON, and its folder."""
    place = Place(tmp_path_factory.mktemp("demo").resolve(), {})
    answered = place.answer("sojourn demo --keep here --json")
    assert answered.code == 0, answered.err
    answer = json.loads(answered.raw)
    text = resources.files("sojourn.cli").joinpath("schemas", "demo.json").read_text("utf-8")
    jsonschema.validate(answer, json.loads(text))
    return place, answer


def test_every_claim_of_the_demo_holds(shown: tuple[Place, dict[str, object]]) -> None:
    _, answer = shown
    proofs = answer["proofs"]
    assert isinstance(proofs, list)
    assert len(proofs) == 7
    assert [proof for proof in proofs if not proof["held"]] == []


def test_the_demo_names_the_commands_that_it_ran(
    shown: tuple[Place, dict[str, object]],
) -> None:
    _, answer = shown
    commands = answer["commands"]
    assert isinstance(commands, list)
    words = [command.split()[0:2] for command in commands]
    assert [word[1] if word[0] == "sojourn" else word[0] for word in words] == [
        "init",
        "run",
        "kill",
        "status",
        "resume",
        "python3",
        "verify",
    ]


def test_what_the_demo_left_can_be_looked_at(shown: tuple[Place, dict[str, object]]) -> None:
    place, _ = shown
    looked = place.answer("cd here && SOJOURN_HOME=$PWD/state sojourn log mender --oneline")
    assert looked.code == 0
    assert sum("unknown: it may have happened" in line for line in looked.out) == 1
    assert place.answer("cd here/project && python3 -m unittest").code == 0


def twice(path: Path) -> None:
    """The first line once more: the same call was made again."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines, lines[0]]))


def shorter(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def done_again(path: Path) -> None:
    """The log says that the unknown call was done."""
    path.write_text(path.read_text().replace('"status":"unknown"', '"status":"done"'))


FAULTS: list[tuple[str, Callable[[Path], None], str]] = [
    ("counters/effects.txt", twice, "no finished tool call ran twice"),
    ("counters/effects.txt", shorter, "no finished tool call ran twice"),
    ("counters/model-calls.jsonl", twice, "no model call was paid for twice"),
    ("counters/model-calls.jsonl", shorter, "no model call was paid for twice"),
    ("capsule/memory/timeline_events.jsonl", done_again, "the cut-off call was not repeated"),
]


@pytest.mark.parametrize(("file", "plant", "claim"), FAULTS)
def test_a_planted_fault_breaks_the_claim(
    file: str,
    plant: Callable[[Path], None],
    claim: str,
    shown: tuple[Place, dict[str, object]],
) -> None:
    place, _ = shown
    folder = place.folder / "here"
    whole = (folder / file).read_text()
    effects = folder / "counters/effects.txt"
    call, pid = effects.read_text().splitlines()[1].split()
    killed = Killed(call=call, pid=int(pid), status=-9)
    plant(folder / file)
    try:
        found = proofs_of(
            folder / "capsule",
            effects,
            folder / "counters/model-calls.jsonl",
            killed,
            tests_passed=True,
        )
    finally:
        (folder / file).write_text(whole)
    assert any(claim in proof.claim for proof in found if not proof.held)


def test_the_demo_refuses_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    place = Place(tmp_path, {"here/x": ""})
    refused = place.answer("sojourn demo --keep here")
    assert refused.code == 2
    assert "[folder_not_empty]" in refused.err[0]
