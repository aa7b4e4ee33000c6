"""What every tool must do, as rules to run on it; for the built-in tools and for anybody's own.

    @pytest.mark.parametrize("rule", TOOL_RULES)
    def test_my_tool_keeps_the_rules(rule, tmp_path):
        asyncio.run(rule(ToolCase(tool=my_tool, args={"path": "x"}), tmp_path))

Each rule gets an empty folder of its own and raises AssertionError with what is wrong. A tool that
acts on the outside world acts there during the rules too: give it a stand-in to talk to.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias, cast, get_args

from msgspec.structs import replace

from sojourn.errors import CallError
from sojourn.format.event import ReplayRule
from sojourn.format.parts import TextPart
from sojourn.ids import CallKey, CapsuleId
from sojourn.ports import Tool, ToolContext, ToolResult
from sojourn.sandboxes.host import HostSandbox
from sojourn.tools.declare import LETTERS, NAME_LENGTH
from sojourn.tools.output import TO_MODEL

KEY: Final = CallKey("5e" * 32)
CAPSULE: Final = CapsuleId("ca" * 32)
WORKSPACE: Final = "workspace"
UNKNOWN_ARGUMENT: Final = "no_such_argument"

JsonObject: TypeAlias = dict[str, object]
_WRONG: Final[Mapping[str, object]] = {
    "string": 7, "integer": "x", "number": "x", "boolean": "x", "array": 7, "object": 7, "null": 7
}  # fmt: skip


def _nothing(workspace: Path) -> None:
    """The workspace stays empty."""


@dataclass(frozen=True, kw_only=True)
class ToolCase:
    """A tool and arguments that it takes.

    `loud` are arguments with which it says very much; `prepare` makes in the workspace what they
    need; `context` has what the tool asks its context for (its folder is put in by the rules).
    """

    tool: Tool
    args: Mapping[str, object] = field(default_factory=dict[str, object])
    loud: Mapping[str, object] | None = None
    prepare: Callable[[Path], None] = _nothing
    context: ToolContext | None = None


ToolRule: TypeAlias = Callable[[ToolCase, Path], Awaitable[None]]


async def declares_a_rule_a_name_and_what_it_does(case: ToolCase, _: Path) -> None:
    """Every provider takes the name, and the rule is one of the five."""
    spec = case.tool.spec
    for name in (spec.name, *spec.verify_with):
        _demand(0 < len(name) <= NAME_LENGTH, f"the name {name!r} is empty or too long")
        _demand(LETTERS.issuperset(name), f"the name {name!r} has letters that providers refuse")
    _demand(spec.replay in get_args(ReplayRule), f"{spec.replay!r} is no replay rule")
    _demand(bool(spec.description.strip()), "there is no description for the model")


async def has_a_schema_of_one_object(case: ToolCase, _: Path) -> None:
    """The schema is JSON, an object in place, each property with a type, all names known."""
    schema = _schema(case.tool)
    properties = _properties(case.tool)
    _demand(schema.get("type") == "object", "the schema's outermost type is not object")
    _demand(schema.get("additionalProperties") is False, "the schema allows unknown arguments")
    required = cast("list[str]", schema.get("required", []))
    _demand(set(required) <= properties.keys(), "the schema requires what it does not describe")
    _demand(set(case.args) <= properties.keys(), "the case's args are not in the schema")
    for name, given in properties.items():
        known = given.keys() & {"type", "anyOf", "enum", "const", "$ref"}
        _demand(bool(known) or not given, f"the schema does not say what {name!r} is")


async def works_in_an_empty_workspace(case: ToolCase, folder: Path) -> None:
    """A call gives a result whose text is not empty and has no lone surrogate."""
    result = await _run(case, folder, case.args)
    _demand(bool(result.parts), "the result has no part")
    for part in result.parts:
        text = part.text if isinstance(part, TextPart) else "media"
        if not isinstance(text, str):
            raise AssertionError("a text is a blob reference, and a tool cannot make blobs")
        _demand(bool(text), "a text part is empty, which providers refuse")
        _demand(_encodes(text), "a text has a lone surrogate")
    _demand(bool(result.code) == result.failed, "a failure has a code, and only a failure")


async def refuses_an_unknown_argument(case: ToolCase, folder: Path) -> None:
    """The model is told the name, and nothing was done."""
    await _refused(case, folder, {**case.args, UNKNOWN_ARGUMENT: 1}, UNKNOWN_ARGUMENT)


async def refuses_arguments_of_another_type(case: ToolCase, folder: Path) -> None:
    """Each in turn; nothing is converted by guess."""
    for name, given in _properties(case.tool).items():
        kind = given.get("type")
        if isinstance(kind, str):
            await _refused(case, folder, {**case.args, name: _WRONG[kind]}, name)


async def refuses_a_missing_argument(case: ToolCase, folder: Path) -> None:
    """Each required one in turn."""
    for name in cast("list[str]", _schema(case.tool).get("required", [])):
        args = {key: value for key, value in case.args.items() if key != name}
        await _refused(case, folder, args, name)


async def limits_its_output(case: ToolCase, folder: Path) -> None:
    """A model gets little; where something was left out, `full` has it."""
    for args in (case.args, case.loud):
        if args is None:
            continue
        result = await _run(case, folder, args)
        size = sum(len(text.encode()) for text in _texts(result))
        _demand(size <= TO_MODEL, f"the result has {size} bytes of text, at most {TO_MODEL} wanted")
        full = result.full
        _demand(full is None or len(full) > size, "`full` is not more than the model got")


async def a_safe_call_may_run_twice(case: ToolCase, folder: Path) -> None:
    """The second run, from the same context, says and leaves the same as the first."""
    if case.tool.spec.replay != "safe":
        return
    first = await _run(case, folder, case.args)
    left = tree(folder / WORKSPACE)
    second = await _run(case, folder, case.args)
    _demand(first == second, f"the second run said {second!r}, the first {first!r}")
    _demand(tree(folder / WORKSPACE) == left, "the second run changed the workspace")


async def files_it_names_are_as_it_says(case: ToolCase, folder: Path) -> None:
    """A digest recorded of a file is the digest of the file, and the path is a relative one."""
    result = await _run(case, folder, case.args)
    left = tree(folder / WORKSPACE)
    for file in result.files:
        _demand(left.get(file.path) == file.after, f"{file.path}: the digest is another")
        _demand(not file.path.startswith("/"), f"{file.path}: a path must be relative")


TOOL_RULES: Final[tuple[ToolRule, ...]] = (
    declares_a_rule_a_name_and_what_it_does,
    has_a_schema_of_one_object,
    works_in_an_empty_workspace,
    refuses_an_unknown_argument,
    refuses_arguments_of_another_type,
    refuses_a_missing_argument,
    limits_its_output,
    a_safe_call_may_run_twice,
    files_it_names_are_as_it_says,
)


def tree(folder: Path) -> dict[str, str]:
    """Every file below, by its path from the folder: the sha256 of it, or what else it is."""
    found: dict[str, str] = {}
    for place in sorted(folder.rglob("*")):
        path = place.relative_to(folder).as_posix()
        if place.is_symlink():
            found[path] = f"link to {place.readlink()}"
        elif place.is_file():
            found[path] = sha256(place.read_bytes()).hexdigest()
        else:
            found[path] = "folder"
    return found


async def _run(case: ToolCase, folder: Path, args: Mapping[str, object]) -> ToolResult:
    workspace = folder / WORKSPACE
    if not workspace.exists():
        workspace.mkdir()
        case.prepare(workspace)
    sandbox = HostSandbox(capsule=CAPSULE, runs=folder / "runs", boot="boot")
    context = case.context or ToolContext(key=KEY, attempt=1, workspace="", sandbox=sandbox)
    context = replace(context, workspace=str(workspace), sandbox=sandbox)
    try:
        return await case.tool.run(args, context)
    except CallError as error:
        text = TextPart(text=error.message)
        return ToolResult(parts=(text,), failed=True, code=error.code)


async def _refused(case: ToolCase, folder: Path, args: Mapping[str, object], named: str) -> None:
    result = await _run(case, folder, args)
    left = tree(folder / WORKSPACE)
    _demand(result.failed, f"{args!r} was not refused")
    _demand(named in "".join(_texts(result)), f"the refusal does not name {named!r}")
    again = await _run(case, folder, args)
    unchanged = again.failed and tree(folder / WORKSPACE) == left
    _demand(unchanged, f"{args!r} was refused and still did something")


def _texts(result: ToolResult) -> list[str]:
    parts = (part.text for part in result.parts if isinstance(part, TextPart))
    return [text for text in parts if isinstance(text, str)]


def _encodes(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _schema(tool: Tool) -> JsonObject:
    text = tool.spec.schema
    if not isinstance(text, str):
        raise AssertionError("a schema is text")
    return cast("JsonObject", json.loads(text))


def _properties(tool: Tool) -> dict[str, JsonObject]:
    return cast("dict[str, JsonObject]", _schema(tool).get("properties", {}))


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
