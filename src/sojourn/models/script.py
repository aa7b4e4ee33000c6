"""The file of a scripted model: its steps as values, or a refusal with file and line.

docs/models.md#scripted-models is the description. JSON, or TOML when the name ends in `.toml`.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self, TypeVar, cast

import msgspec

from sojourn.errors import NotFoundError, UsageError
from sojourn.models.limits import SCRIPT_BYTES

JSON_SPACE: Final = re.compile(r"[ \t\r\n]*")
T = TypeVar("T")
TOML_STEP: Final = re.compile(r"(?m)^\s*\[\[\s*steps\s*\]\]")


class ScriptCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call that a step asks for; `args` may be a string, which is then sent as it stands."""

    tool: str
    args: dict[str, object] | str = {}

    @property
    def arguments(self) -> str:
        """The arguments as a model writes them."""
        if isinstance(self.args, str):
            return self.args
        return json.dumps(self.args, ensure_ascii=False)


class Jump(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Go to the step named `go` where the regular expression `matches` is found."""

    matches: str
    go: str

    def fits(self, text: str) -> bool:
        return re.search(self.matches, text) is not None


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply; where the script goes after it is said by its last five fields.

    `fail` is the code of a failure instead of a reply, after `fail_after` pieces of it, unless the
    file `unless` exists; the reply begins once the file `wait_for` exists.
    """

    name: str = ""
    text: str = ""
    reasoning: str = ""
    calls: tuple[ScriptCall, ...] = ()
    wait_for: str | None = None
    fail: str | None = None
    fail_after: int = 0
    unless: str | None = None
    next: str | None = None
    if_unknown: str | None = None
    if_result: tuple[Jump, ...] = ()

    def targets(self) -> Iterator[str]:
        """The names of all steps that it may go to."""
        yield from (name for name in (self.next, self.if_unknown) if name is not None)
        yield from (jump.go for jump in self.if_result)


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A script without its steps."""

    ledger: str | None = None
    inputs: tuple[Jump, ...] = ()
    steps: object = None


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Steps in the order of the file, each with a name; paths are relative to `folder`."""

    file: str
    folder: str
    steps: tuple[Step, ...]
    inputs: tuple[Jump, ...]
    ledger: str | None

    @classmethod
    def read(cls, file: str) -> Self:
        """The script in this file.

        Raises: NotFoundError `script_missing`; UsageError `script_malformed` with file and line.
        """
        path = Path(file)
        try:
            with path.open("rb") as opened:
                data = opened.read(SCRIPT_BYTES + 1)
        except OSError as error:
            raise NotFoundError(
                f"the script {file} cannot be read: {error.strerror}",
                code="script_missing",
                hint="The name is a path, from the folder where you are: scripted/PATH.",
            ) from None
        if len(data) > SCRIPT_BYTES:
            raise _malformed(file, None, f"it has more than {SCRIPT_BYTES} bytes")
        raw, lines = _parse(file, data)
        return cls._build(file, raw, lines)

    @classmethod
    def _build(cls, file: str, raw: Mapping[str, object], lines: list[int]) -> Self:
        head = _convert(raw, Head, file, 1 if lines else None)
        given = raw.get("steps")
        if not isinstance(given, list) or not given:
            raise _malformed(file, None, "it has no `steps`, a list of at least one")
        steps: list[Step] = []
        for number, value in enumerate(cast("list[object]", given)):
            line = lines[number] if number < len(lines) else None
            step = _convert(value, Step, file, line)
            steps.append(msgspec.structs.replace(step, name=step.name or f"step {number + 1}"))
        _check(file, steps, head.inputs, lines)
        return cls(
            file=file,
            folder=str(Path(file).parent),
            steps=tuple(steps),
            inputs=head.inputs,
            ledger=head.ledger,
        )

    def named(self, name: str) -> int:
        """The place of the step with this name."""
        return next(place for place, step in enumerate(self.steps) if step.name == name)


def _check(file: str, steps: list[Step], inputs: tuple[Jump, ...], lines: list[int]) -> None:
    """Refuse what could only be found out in the middle of a run."""
    names = {step.name for step in steps}
    seen: set[str] = set()
    for number, step in enumerate(steps):
        line = lines[number] if number < len(lines) else None
        if step.name in seen:
            raise _malformed(file, line, f"a second step is named {step.name!r}")
        seen.add(step.name)
        if not (step.text.strip() or step.calls or step.fail):
            raise _malformed(file, line, f"{step.name!r} has no text, no calls and no `fail`")
        if (step.if_unknown or step.if_result) and not step.calls:
            raise _malformed(file, line, f"{step.name!r} has no calls whose results could decide")
        if step.calls and step.next is None and number + 1 == len(steps):
            raise _malformed(file, line, f"{step.name!r} is the last and has calls: what follows?")
        for name in step.targets():
            if name not in names:
                raise _malformed(file, line, f"{step.name!r} goes to {name!r}, which is no step")
        for jump in step.if_result:
            _check_pattern(file, line, jump)
    for jump in inputs:
        if jump.go not in names:
            raise _malformed(file, None, f"an input goes to {jump.go!r}, which is no step")
        _check_pattern(file, None, jump)


def _check_pattern(file: str, line: int | None, jump: Jump) -> None:
    try:
        re.compile(jump.matches)
    except re.error as error:
        text = f"{jump.matches!r} is no regular expression: {error}"
        raise _malformed(file, line, text) from None


def _convert(value: object, kind: type[T], file: str, line: int | None) -> T:
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        raise _malformed(file, line, str(error)) from None


def _parse(file: str, data: bytes) -> tuple[dict[str, object], list[int]]:
    """The values, and the line on which each step begins."""
    try:
        text = data.decode()
        if file.endswith(".toml"):
            starts = [found.end() for found in TOML_STEP.finditer(text)]
            return tomllib.loads(text), [_line(text, start) for start in starts]
        value = json.loads(text)
        starts = _step_starts(text) if isinstance(value, dict) else []
    except UnicodeDecodeError as error:
        raise _malformed(file, data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _malformed(file, error.lineno, error.msg) from None
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else data.count(b"\n") + 1
        raise _malformed(file, line, str(error)) from None
    except RecursionError:
        raise _malformed(file, None, "it is nested too deeply") from None
    if not isinstance(value, dict):
        raise _malformed(file, 1, "it is not an object with `steps`")
    return cast("dict[str, object]", value), [_line(text, start) for start in starts]


def _step_starts(text: str) -> list[int]:
    """Where the members of the top-level list `steps` begin, in JSON that is known to be sound."""
    decoder = json.JSONDecoder()
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, at = cast("tuple[object, int]", decoder.raw_decode(text, at))
        at = _skip(text, _skip(text, at) + 1)
        if key == "steps" and text[at] == "[":
            return list(_members(text, at))
        at = _skip(text, decoder.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at
    return []


def _members(text: str, at: int) -> Iterator[int]:
    decoder = json.JSONDecoder()
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _skip(text, decoder.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    """The next place that is no white space."""
    found = JSON_SPACE.match(text, at)
    return found.end() if found else at


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _malformed(file: str, line: int | None, what: str) -> UsageError:
    where = f"{file}:{line}" if line else file
    return UsageError(
        f"{where}: {what}",
        code="script_malformed",
        state="Nothing was run.",
        hint="docs/models.md describes the file of a scripted model.",
        file=file,
        line=line,
    )
