"""Runs scripts of the command line: files of commands with what they answer.

A script is text. `<<< NAME` begins a file that ends with `>>>`; `$ ` begins a command line for
bash; `> ` and `! ` begin lines of its stdout and stderr, `? ` its exit code when it is not 0. A
line `> ...` or `! ...` stands for any lines. Ids, times and the like are replaced by their names.

    python tests/cli/running.py FILE...    write what the commands answer now into the scripts
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

import jsonschema

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts" / "cli"
BIN = Path(sys.executable).parent
SECONDS = 60

NAMES = [
    (r"\b[0-9a-f]{64}\b", "<id>"),
    (r"\b[0-9a-f]{32}\b", "<random>"),
    (r"(?<=log has )\d+ bytes and had \d+", "<n> bytes and had <n>"),
    (r"another machine, [0-9a-f]{12}", "another machine, <machine>"),
    (r"\b(call_|chatcmpl-)[0-9a-f]{22,24}\b", r"\1<random>"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<boot>"),
    (r"\b[0-9a-f]{12}\b", "<mark>"),
    (r"(?m)^( *\d+ +)[0-9a-f]{8}\b", r"\1<short>"),
    (
        r"\b(runner|event|chain|machine|from|to|snapshot|one,|restore box) [0-9a-f]{8}\b",
        r"\1 <short>",
    ),
    (r"(?m)^([●│*| ]+ (?:\d+|NN) )[0-9a-f]{8}\b", r"\1<short>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>"),
    (r"(?:\b\d+ (?:s|min) ago\b|\bnow\b(?= {2}))( *)(?= \S)", "<ago>"),
    (r"(?m)(?<= {2})now$", "<ago>"),
    (r"\b\d+ (s|min) ago\b|(?<=last )now\b|(?<=, )now\b", "<ago>"),
    (r"[\d,]+ tokens in, [\d,]+ out", "<tokens>"),
    (r"\b\d+ ms\b|\b\d+\.\d s\b", "<took>"),
    (r"\bpid \d+|(?<=\"pid\":)\d+", "<pid>"),
    (r"(?<=\"length\":)\d+|(?<=\"log_bytes\":)\d+", "<n>"),
    (r",\"milliseconds\":\d+", ""),
    (r"\"input\":\d+,\"output\":\d+", '"input":<n>,"output":<n>'),
    (r"(?<=milliseconds\":)[\d.]+", "<n>"),
    (r"(?<=\"bytes\":)\d+|(?<=\"bytes_frozen\":)\d+", "<n>"),
    (r"\b\d+(\.\d)? (B|kB|MB|GB|TB)\b", "<size>"),
    (r"(?<=\"size\":)\d+", "<n>"),
    (r"\bbyte [\d,]+", "byte <n>"),
    (r"SHA256:[A-Za-z0-9+/]{43}", "<key>"),
    (r"(\"salt\": ?\")[A-Za-z0-9_-]{22}(?=\")", r"\1<salt>"),
    (r"\b3\.1\d\.\d+\b", "<python>"),
]


@cache
def schema(name: str) -> jsonschema.Draft202012Validator:
    """What a command's answers with --json are to fit."""
    text = resources.files("sojourn.cli").joinpath("schemas", f"{name}.json").read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


@dataclass
class Asked:
    """One command of a script, and what the script says that it answers."""

    command: str
    out: list[str] = field(default_factory=list[str])
    err: list[str] = field(default_factory=list[str])
    code: int = 0


@dataclass
class Answered:
    """What a command answered, with names for what differs from run to run."""

    out: list[str]
    err: list[str]
    code: int
    raw: str


@dataclass
class Script:
    """Commands in their order, the files they find, and the lines between them."""

    files: dict[str, str]
    parts: list[Asked | str]

    @property
    def asked(self) -> list[Asked]:
        return [part for part in self.parts if isinstance(part, Asked)]


def read_script(text: str) -> Script:
    script, at = Script({}, []), ""
    for line in text.splitlines():
        last = script.parts[-1] if script.parts else None
        if at:
            at = _in_file(script, at, line)
        elif line.startswith("<<< "):
            at = line[4:]
            script.files[at] = ""
            script.parts.append(line)
        elif line.startswith("$ "):
            script.parts.append(Asked(line[2:]))
        elif isinstance(last, Asked) and line[:2] in ("> ", ">", "! ", "!", "? "):
            _expect(last, line)
        else:
            script.parts.append(line)
    return script


def _in_file(script: Script, name: str, line: str) -> str:
    script.parts.append(line)
    if line == ">>>":
        return ""
    script.files[name] += line + "\n"
    return name


def _expect(asked: Asked, line: str) -> None:
    if line[0] == "?":
        asked.code = int(line[2:])
    else:
        (asked.out if line[0] == ">" else asked.err).append(line[2:])


class Place:
    """A folder of its own for one script, with a state folder and no keys."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.folder = folder
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "SOJOURN_HOME": str(self.folder / "state"),
            "OLLAMA_HOST": "127.0.0.1:9",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "80",
        }

    def answer(self, command: str) -> Answered:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        raw = done.stdout.decode("utf-8", "surrogateescape")
        err = done.stderr.decode("utf-8", "surrogateescape")
        return Answered(self.named(raw), self.named(err), done.returncode, raw)

    def named(self, text: str) -> list[str]:
        text = text.replace(str(self.folder), "<dir>")
        for pattern, name in NAMES:
            text = re.sub(pattern, name, text)
        return text.splitlines()


def fits(expected: list[str], found: list[str]) -> bool:
    """Whether the lines are those expected, where `...` stands for any number of lines."""
    pattern = "".join(
        "(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(line + "\n" for line in found)) is not None


def written(asked: Asked, answered: Answered) -> list[str]:
    """A command and what it answered, as a script has them; parts left open stay so."""
    out = asked.out if fits(asked.out, answered.out) and "..." in asked.out else answered.out
    err = asked.err if fits(asked.err, answered.err) and "..." in asked.err else answered.err
    lines = [f"$ {asked.command}", *(f"> {line}" for line in out), *(f"! {line}" for line in err)]
    lines += [f"? {answered.code}"] if answered.code else []
    return [line.rstrip() if line[:2] in ("> ", "! ") and not line[2:] else line for line in lines]


def rewrite(path: Path) -> None:
    script = read_script(path.read_text())
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder).resolve(), script.files)
        for part in script.parts:
            if isinstance(part, Asked):
                lines += written(part, place.answer(part.command))
            else:
                lines.append(part)
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(map(str, SCRIPTS.glob("*.txt"))):
        rewrite(Path(name))
