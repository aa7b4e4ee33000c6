"""Completion works in a real shell: commands, options and names of capsules."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cli.running import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve(), {})


@pytest.fixture
def two(place: Place) -> Place:
    """With two capsules."""
    assert place.answer("sojourn init box -n box; sojourn init other -n other").code == 0
    return place


def completed(place: Place, *words: str) -> list[str]:
    """What bash offers for the last word: the script's own function, called as bash calls it."""
    typed = " ".join(f"'{word}'" for word in words)
    done = place.answer(
        f'eval "$(sojourn completion bash)"; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; '
        'set -- $(complete -p sojourn); while [ "$1" != -F ]; do shift; done; '
        '"$2" sojourn 2>/dev/null; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert done.code == 0, done.err
    return [line for line in done.out if line]


def test_bash_completes_commands(place: Place) -> None:
    assert completed(place, "sojourn", "re") == ["resume", "remote", "redact", "repair"]
    assert {"run", "ps", "demo", "version"} <= set(completed(place, "sojourn", ""))


@pytest.mark.slow
def test_bash_completes_options_and_values(place: Place) -> None:
    assert completed(place, "sojourn", "run", "--max") == ["--max-turns"]
    assert completed(place, "sojourn", "log", "--one") == ["--oneline"]
    assert completed(place, "sojourn", "completion", "z") == ["zsh"]


@pytest.mark.slow
def test_bash_completes_names_of_capsules(two: Place) -> None:
    assert completed(two, "sojourn", "status", "o")[0] == "other"
    assert completed(two, "sojourn", "run", "b")[0] == "box"
    assert {"box", "other"} <= set(completed(two, "sojourn", "work", "box", ""))


@pytest.mark.slow
def test_a_broken_state_folder_completes_nothing_and_says_nothing(two: Place) -> None:
    shutil.rmtree(two.folder / "state")
    (two.folder / "state").write_text("not a folder")
    assert "other" not in completed(two, "sojourn", "status", "o")


@pytest.mark.parametrize(("shell", "check"), [("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_the_script_for_another_shell_is_sound(
    shell: str, check: list[str], place: Place, tmp_path: Path
) -> None:
    done = place.answer(f"sojourn completion {shell}")
    assert done.code == 0
    assert "_SOJOURN_COMPLETE" in done.raw
    program = shutil.which(shell)
    if program is not None:
        (tmp_path / "script").write_text(done.raw)
        subprocess.run([program, *check, str(tmp_path / "script")], check=True)
