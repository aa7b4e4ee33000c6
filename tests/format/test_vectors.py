"""Every vector says what a reader must find, and three readers agree: the room, the page's own
verifier, and the one that is fed byte by byte."""

import ast
import contextlib
import io
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from format.vectors import ARCHIVES, FOLDER, VALUES, Vector, content, every, load, values
from sojourn.errors import FormatError
from sojourn.format import documents, environment, index, snapshot
from sojourn.format.canon import load as load_json
from sojourn.format.event import DocumentChange
from sojourn.format.failures import CODES

PAGE = Path(__file__).resolve().parent.parent.parent / "docs"
ALONE = PAGE / "verify_capsule.py"
MERGES = FOLDER.parent / "merge"


def said(vector: Vector, chunk: int) -> list[tuple[str, str, int | None]]:
    return [(found.code, found.file, found.line) for found in vector.verify(chunk)]


def by_name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", every(), ids=by_name)
def test_a_vector_is_judged_as_it_says(path: Path) -> None:
    vector = load(path)
    assert said(vector, 1 << 20) == vector.expect


@pytest.mark.parametrize("path", every(), ids=by_name)
def test_the_size_of_the_chunks_changes_nothing(path: Path) -> None:
    vector = load(path)
    size = len(vector.files.get("memory/timeline_events.jsonl", b""))
    assert said(vector, 1 if size < 20_000 else 1_000_003) == vector.expect


@pytest.mark.parametrize("path", every(), ids=by_name)
def test_the_verifier_of_the_page_names_the_same_failure_and_line(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = load(path)
    write(vector, tmp_path)
    arguments = [str(ALONE), str(tmp_path), *(["--same-boot"] if vector.same_boot else [])]
    monkeypatch.setattr(sys, "argv", arguments)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        runpy.run_path(str(ALONE), run_name="__main__")
    assert out.getvalue().strip() == first(vector)


def test_the_verifier_of_the_page_runs_on_its_own(tmp_path: Path) -> None:
    for name, status in (("whole_turn", 0), ("altered_body", 1)):
        vector = load(FOLDER / f"{name}.json")
        write(vector, tmp_path / name)
        command = [sys.executable, "-I", str(ALONE), str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (status, first(vector))


def test_the_verifier_of_the_page_is_readable_and_needs_nothing() -> None:
    for path, also in ((ALONE, {"read_capsule"}), (ALONE.with_name("read_capsule.py"), set[str]())):
        lines = path.read_text("utf-8").splitlines()
        steps = list(ast.walk(ast.parse("\n".join(lines))))
        imports = [step for step in steps if isinstance(step, ast.Import)]
        names = {alias.name for step in imports for alias in step.names}
        names |= {str(step.module) for step in steps if isinstance(step, ast.ImportFrom)}
        assert len(lines) <= 350
        assert max(map(len, lines)) <= 100
        assert names and names <= {*sys.stdlib_module_names, *also}


def first(vector: Vector) -> str:
    if not vector.expect:
        return "sound"
    code, file, line = vector.expect[0]
    return f"{code} {file} {line or '-'}"


def write(vector: Vector, folder: Path) -> None:
    for name, data in vector.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


READERS = {
    "snapshot": snapshot.load,
    "index": index.load,
    "environment": environment.load,
    "document": lambda data: documents.check(
        DocumentChange(**load_json(data, what="document")), line=1
    ),
}


@pytest.mark.parametrize("path", values(), ids=by_name)
def test_a_value_is_judged_as_its_vector_says(path: Path) -> None:
    stored = json.loads(path.read_text("utf-8"))
    found: list[list[object]] = []
    try:
        READERS[stored["read"]](content(stored["data"]))
    except FormatError as error:
        found = [[error.code, error.line]]
    assert found == stored["expect"]


def test_every_failure_has_a_vector_and_most_vectors_fail() -> None:
    expected = [json.loads(path.read_text("utf-8"))["expect"] for path in [*every(), *values()]]
    assert {failure[0] for failures in expected for failure in failures} == set(CODES)
    assert sum(map(bool, expected)) > 0.7 * len(expected)


def test_the_vectors_are_those_that_their_script_makes() -> None:
    made = runpy.run_path(str(FOLDER.parent / "make_format.py"))["texts"]()
    stored = {
        f"{path.parent.name}/{path.name}": path.read_text("utf-8")
        for path in [*every(), *values(), *ARCHIVES.glob("*.json"), *MERGES.glob("*.json")]
    }
    assert VALUES.is_dir()
    assert stored == made
