"""Writes docs/cli.md and the JSON Schemas of cli/schemas/ from the commands themselves.

python -m sojourn.cli.reference           write them
python -m sojourn.cli.reference --check   exit 1 when they are not up to date
"""

import json
import sys
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click
import msgspec

from sojourn import errors
from sojourn.cli.answers import ANSWERS
from sojourn.cli.capsules import STANDINGS
from sojourn.cli.commands import COMMANDS
from sojourn.cli.group import Command
from sojourn.cli.main import HELP_NAMES, NAME, root
from sojourn.cli.settings import GLOBAL_OPTIONS
from sojourn.cli.shapes import SCHEMA, ErrorAnswer

SCHEMAS: Final = Path(__file__).parent / "schemas"
DOCUMENT: Final = Path("docs/cli.md")

HEAD: Final = """\
# The command line

This page is written by `python -m sojourn.cli.reference` from the commands themselves.

stdout carries data, stderr talk and progress. `-h` works everywhere. Colours and passing lines are
for terminals only. What models, tools and capsules say is shown with every character made visible
that could act on the terminal (escape sequences, bidirectional overrides, zero-width characters).

## Naming

A capsule is named by the path of its folder or by its name on this machine. Without a name it is
the current folder when that is a capsule, else the one that was held last. `run` and `send` take
one argument as the text when it has several words or is `-`; a single word is never a message
without a capsule's name before it. Advice names a capsule by its
name where that means this one alone, else by its path.

## Numbers

The number of an event is that of its line in the log, `memory/timeline_events.jsonl`, counted from
1: the same number that `verify` and `scan` give for a line, and that `sed -n 12p` takes. Commands
show it, take it where an EVENT is named, and give it as `number` with `--json`. A number is short
for an event in this copy of the log. It stays while events are appended; after a merge or a repair
it may be another one's, and another copy may count otherwise. The id never changes, and its first
digits, four or more, name the event as well. `seq` in a header is something else: the place in the
chain that wrote the event, from 0. In a log with one chain the number is `seq` plus 1.
"""

JSON_TEXT: Final = """\
## JSON

With `--json` stdout holds one object on one line; `log`, `run`, `resume` and `work` print one
object a line, told apart by `type`. Each has `"schema": "{schema}"`. A failure is an object too,
on stdout like any other, and the last line of a stream:

    {{"schema":"{schema}","error":{{"code":"...","message":"...","state":"...","hint":"...",
     "exit":1,"file":null,"line":null}}}}

The JSON Schemas are in the package, in `sojourn/cli/schemas/`: one named after each command, and
`error.json`. A later version may add fields; one that changes its meaning or goes changes the name
of the schema. Characters that could act on a terminal are escaped (`\\u001b`).
"""

ERRORS_TEXT: Final = """\
## Errors

    error: what happened   [code]
      what the state is now
      what to do next

The code is stable. Codes of damage are listed in [format.md](format.md#failures), those of model
calls in [models.md](models.md#failures). `-vv` adds the traceback. A failure that sojourn has no
name for is `unexpected`: a defect, to be reported. Each kind of error says who acts:

| kind | code if none is nearer | exit | what it means |
| --- | --- | --- | --- |
"""

ENVIRONMENT_TEXT: Final = """\
## Environment

| variable | what it does |
| --- | --- |
| `SOJOURN_HOME` | the state folder (default `$XDG_STATE_HOME/sojourn`, `~/.local/state/sojourn`) |
| `SOJOURN_SSH` | the program that stands for `ssh`, with its options |
| `SOJOURN_MODEL` | the model of capsules that name none |
| `NO_COLOR` | no colours, when set and not empty |

Keys of models are read from the providers' own variables; `sojourn doctor` names those it sees.
"""


def document() -> str:
    """The text of docs/cli.md."""
    parts = [HEAD, *map(_command, COMMANDS), _everywhere(), _standings(), _exit_codes()]
    parts += [ERRORS_TEXT + "".join(map(_error, _errors())), JSON_TEXT.format(schema=SCHEMA)]
    return "\n".join([*parts, ENVIRONMENT_TEXT])


def schemas() -> Mapping[str, str]:
    """The text of each schema file by its name."""
    made = {f"{name.replace(' ', '-')}.json": _schema(shape) for name, shape in ANSWERS.items()}
    return {**made, "error.json": _schema(ErrorAnswer)}


def _schema(shape: object) -> str:
    """The schema of one answer; every field is always there, those with a default too."""
    schema = msgspec.json.schema(shape, schema_hook=_anything)
    for definition in schema["$defs"].values():
        definition["required"] = sorted(definition["properties"])
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def _anything(kind: type) -> dict[str, object]:
    """JSON of any shape is allowed where the struct says `object`."""
    if kind is object:
        return {"type": ["object", "array", "string", "number", "boolean", "null"]}
    raise NotImplementedError(kind)


def _context(command: click.Command, name: str) -> click.Context:
    """A context in which the command explains itself as it does when it is run."""
    top = click.Context(root, info_name=NAME, help_option_names=HELP_NAMES)
    return top if command is root else click.Context(command, top, name)


def _command(name: str) -> str:
    command = root.get_command(_context(root, NAME), name)
    if not isinstance(command, Command):
        raise TypeError(f"{name} is not a Command")
    context = _context(command, name)
    usage = context.get_usage().removeprefix("Usage: ")
    text = cleandoc(command.help or "")
    lines = [f"## {name}", "", COMMANDS[name].summary, "", f"    {usage}", "", text, ""]
    rows = [
        record
        for param in command.get_params(context)
        if "--help" not in param.opts and not set(param.opts) & set(GLOBAL_OPTIONS)
        if (record := param.get_help_record(context)) is not None
    ]
    if rows:
        lines += ["| option | what it does |", "| --- | --- |"]
        lines += [f"| `{option}` | {words} |" for option, words in rows] + [""]
    examples = [f"    {example}" for example in command.examples]
    return "\n".join([*lines, *examples, ""])


def _everywhere() -> str:
    context = _context(root, NAME)
    rows = [
        record
        for param in root.get_params(context)
        if (record := param.get_help_record(context)) is not None
    ]
    lines = ["## Everywhere", "", "These stand before the command or after it.", ""]
    lines += ["| option | what it does |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| `{option}` | {words} |" for option, words in rows), ""])


def _standings() -> str:
    lines = ["## Standings", "", "How a capsule stands, in `ps` and `status`.", ""]
    lines += ["| standing | what it means |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {name} | {STANDINGS[name][1]} |" for name in STANDINGS), ""])


def _exit_codes() -> str:
    lines = ["## Exit codes", "", "| code | meaning |", "| --- | --- |"]
    rows = (f"| {code} | {words} |" for code, words in errors.EXIT_CODES.items())
    return "\n".join([*lines, *rows, ""])


def _errors() -> Iterator[type[errors.SojournError]]:
    """Every kind of error, in the order of errors.py."""
    for found in vars(errors).values():
        if isinstance(found, type) and issubclass(found, errors.SojournError):
            yield found


def _error(kind: type[errors.SojournError]) -> str:
    words = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    return f"| {kind.__name__} | `{kind.default_code}` | {kind.exit_code} | {words} |\n"


def stale() -> list[Path]:
    """Which files are not as they would be written now."""
    wanted = {SCHEMAS / name: text for name, text in schemas().items()}
    wanted[DOCUMENT] = document()
    surplus = [path for path in SCHEMAS.glob("*.json") if path not in wanted]
    return surplus + [
        path
        for path, text in wanted.items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def write() -> None:
    """Write the document and the schemas."""
    for path in SCHEMAS.glob("*.json"):
        path.unlink()
    SCHEMAS.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (SCHEMAS / name).write_text(text, "utf-8")
    DOCUMENT.write_text(document(), "utf-8")


def main(arguments: list[str]) -> int:
    """Write, or check with --check; the exit code."""
    if not DOCUMENT.parent.is_dir():
        sys.stderr.write("run this where docs/ is\n")
        return 2
    if arguments != ["--check"]:
        write()
        return 0
    found = stale()
    for path in found:
        sys.stderr.write(f"{path} is stale: run python -m sojourn.cli.reference\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
