"""docs/cli.md and the schemas are what the commands say of themselves."""

import importlib
import json
from pathlib import Path

import jsonschema
import pytest

from sojourn.cli import reference
from sojourn.cli.answers import ANSWERS
from sojourn.cli.commands import COMMANDS
from sojourn.errors import EXIT_CODES

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_document_and_the_schemas_are_up_to_date() -> None:
    assert reference.stale() == []
    assert reference.main(["--check"]) == 0


def test_a_stale_document_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert reference.main(["--check"]) == 1
    assert "docs/cli.md is stale" in capsys.readouterr().err


def test_every_command_has_a_schema_and_a_section() -> None:
    assert set(ANSWERS) == set(COMMANDS)
    text = reference.document()
    for name in COMMANDS:
        assert f"\n## {name}\n" in text
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        module, _, attribute = COMMANDS[name].place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert (command.help or "").partition("\n")[0] in section


def test_the_table_of_exit_codes_is_whole() -> None:
    text = reference.document()
    for code, words in EXIT_CODES.items():
        assert f"| {code} | {words} |" in text


@pytest.mark.parametrize("name", reference.schemas())
def test_a_schema_is_sound_and_refuses_what_it_does_not_name(name: str) -> None:
    schema = json.loads(reference.schemas()[name])
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    assert not validator(schema).is_valid({"schema": "sojourn.cli/1", "surprise": 1})
    assert not validator(schema).is_valid({})
