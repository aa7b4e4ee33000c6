"""A script is read whole or refused with its file and line, before anything runs."""

from pathlib import Path

import pytest

from sojourn.errors import NotFoundError, UsageError
from sojourn.models.script import Script

STEPS = """\
{
  "ledger": "calls.jsonl",
  "note": %s,
  "steps": [
    {"name": "one", "text": "a \\"steps\\": [ ] }", "calls": [{"tool": "t", "args": {"x": 1}}]},

    {"name": "two",
     "text": "b"%s}
  ]%s
}
"""


def read(folder: Path, text: str, name: str = "s.json") -> Script:
    path = folder / name
    path.write_text(text)
    return Script.read(str(path))


def refused(folder: Path, text: str, name: str = "s.json") -> tuple[int | None, str]:
    with pytest.raises(UsageError) as caught:
        read(folder, text, name)
    error = caught.value
    assert error.code == "script_malformed"
    assert error.file == str(folder / name)
    assert error.line is None or f"{error.file}:{error.line}: " in error.message
    return error.line, error.message


def test_json_and_toml_are_the_same_script(tmp_path: Path) -> None:
    toml = read(
        tmp_path,
        '[[steps]]\ntext = "a"\n\n[[steps.calls]]\ntool = "t"\nargs = {x = 1}\n\n'
        '[[steps]]\nname = "end"\ntext = "b"\n',
        "s.toml",
    )
    json = read(
        tmp_path,
        '{"steps": [{"text": "a", "calls": [{"tool": "t", "args": {"x": 1}}]},'
        '{"name": "end", "text": "b"}]}',
    )
    assert toml.steps == json.steps
    assert [step.name for step in json.steps] == ["step 1", "end"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("[]", 1),
        ("{\n\n x}", 3),
        (STEPS % ("1", "", ""), 1),
        (STEPS.replace('"note": %s,', "") % (', "next": "three"', ""), 7),
        (STEPS.replace('"note": %s,', "") % (', "nxt": "one"', ""), 7),
        (STEPS.replace('"note": %s,', "") % (', "text": 7', ""), 7),
        (STEPS.replace('"note": %s,', "") % (', "name": "one"', ""), 7),
        (STEPS.replace('"note": %s,', "") % (', "text": " "', ""), 7),
        (STEPS.replace('"note": %s,', "") % (', "if_unknown": "one"', ""), 7),
        (STEPS.replace('"note": %s,', "") % (', "calls": [{"tool": "t"}]', ""), 7),
        (STEPS.replace('"note": %s,', "") % (', "calls": [{"args": {}}], "next": "one"', ""), 7),
        (
            '{"steps": [\n{"calls": [{"tool": "t"}], "if_result": [{"matches": "(", "go": "e"}]},'
            '\n{"name": "e", "text": "x"}]}',
            2,
        ),
    ],
)
def test_a_bad_script_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    assert refused(tmp_path, text)[0] == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[[steps]]\ntext = "a"\n[[steps]]\nnext = "x"\ntext = "b"\n', 3),
        ("[[steps]]\ntext = \n", 2),
        ('[[steps]]\ntext = "a"\ntext = "b"\n', 3),
    ],
)
def test_a_bad_script_in_toml_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int
) -> None:
    assert refused(tmp_path, text, "s.toml")[0] == line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "no `steps`"),
        ('{"steps": []}', "no `steps`"),
        ('{"steps": "x"}', "no `steps`"),
        ('{"steps": [{"text": "x"}], "inputs": [{"matches": "a", "go": "b"}]}', "'b'"),
        ('{"steps": [{"text": "x"}], "inputs": [{"matches": "(", "go": "step 1"}]}', "expression"),
        ('{"steps": ' + "[" * 100_000, "nested"),
    ],
)
def test_what_is_wrong_with_a_script_is_said(tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(tmp_path, text)[1]


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(b'{"steps":\n\n"\xff"}')
    with pytest.raises(UsageError) as caught:
        Script.read(str(tmp_path / "s.json"))
    assert caught.value.line == 3


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "s.json").open("wb") as opened:
        opened.truncate(100_000_000)
    with pytest.raises(UsageError, match="more than"):
        Script.read(str(tmp_path / "s.json"))


def test_a_folder_and_a_missing_file_are_not_found(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(NotFoundError):
            Script.read(str(path))
