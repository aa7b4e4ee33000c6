"""Every built-in tool keeps the rules of a tool; and each rule finds a tool that breaks it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import msgspec
import pytest

from sojourn.core.passages import Passage
from sojourn.format.event import FileDigest, ToolSpec
from sojourn.format.parts import TextPart
from sojourn.ids import BlobId, CapsuleId, EventId
from sojourn.ports import ToolContext, ToolResult
from sojourn.ports_recall import Recalled
from sojourn.sandboxes.host import HostSandbox
from sojourn.testing.conformance import tool as suite
from sojourn.testing.conformance.tool import TOOL_RULES, ToolCase, ToolRule
from sojourn.testing.strict import anthropic, openai_chat
from sojourn.tools.declare import tool
from sojourn.tools.toolbox import built_in, toolbox

BOX = toolbox(built_in())


async def answer(question: str) -> str:
    return question[:1]


def with_files(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    (workspace / "long.txt").write_text("one two three\n" * 10_000)
    for number in range(100):
        (workspace / f"a file whose name is {'very ' * 35}long, number {number}").touch()


def asking(tmp: Path) -> ToolContext:
    sandbox = HostSandbox(capsule=CapsuleId("ca" * 32), runs=tmp, boot="boot")
    return ToolContext(key=suite.KEY, attempt=1, workspace="", sandbox=sandbox, ask=answer)


async def found(question: str, most: int) -> Sequence[Recalled]:
    passage = Passage(
        kind="input",
        place="e" * 64,
        part=0,
        event=EventId("e" * 64),
        number=3,
        time="2026-01-01T00:00:00.000Z",
        text=f"{question} " * 40,
    )
    return [Recalled(passage=passage, score=1.0, snippet=question)] * most


def recalling(tmp: Path) -> ToolContext:
    sandbox = HostSandbox(capsule=CapsuleId("ca" * 32), runs=tmp, boot="boot")
    return ToolContext(key=suite.KEY, attempt=1, workspace="", sandbox=sandbox, recall=found)


CASES = {
    "ask": ToolCase(tool=BOX["ask"], args={"question": "A?"}, context=asking(Path("unused"))),
    "edit": ToolCase(
        tool=BOX["edit"], args={"path": "a.txt", "old": "two", "new": "2"}, prepare=with_files
    ),
    "list": ToolCase(tool=BOX["list"], args={}, loud={"depth": 3}, prepare=with_files),
    "read": ToolCase(
        tool=BOX["read"], args={"path": "a.txt"}, loud={"path": "long.txt"}, prepare=with_files
    ),
    "recall": ToolCase(
        tool=BOX["recall"],
        args={"question": "what was it"},
        loud={"question": "what was it, " * 100, "most": 20},
        context=recalling(Path("unused")),
    ),
    "search": ToolCase(
        tool=BOX["search"], args={"pattern": "two"}, loud={"pattern": "."}, prepare=with_files
    ),
    "shell": ToolCase(tool=BOX["shell"], args={"command": "true"}, loud={"command": "seq 1 99999"}),
    "memory": ToolCase(tool=BOX["memory"], args={"section": "Plan", "text": "one"}),
    "todo": ToolCase(tool=BOX["todo"], args={"items": [{"text": "a"}, {"text": "b"}]}),
    "write": ToolCase(tool=BOX["write"], args={"path": "a/b.txt", "content": "one\n"}),
}
EMPTY = {
    "edit": ToolCase(tool=BOX["edit"], args={"path": "x", "old": "a", "new": "b"}),
    "list": ToolCase(tool=BOX["list"]),
    "read": ToolCase(tool=BOX["read"], args={"path": "x"}),
    "search": ToolCase(tool=BOX["search"], args={"pattern": "x"}),
}


@pytest.mark.parametrize("rule", TOOL_RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", BOX)
def test_a_built_in_tool_keeps_the_rule(name: str, rule: ToolRule, tmp_path: Path) -> None:
    asyncio.run(rule(CASES[name], tmp_path))


@pytest.mark.parametrize("name", EMPTY)
def test_a_file_tool_answers_in_an_empty_workspace(name: str, tmp_path: Path) -> None:
    asyncio.run(suite.works_in_an_empty_workspace(EMPTY[name], tmp_path))


@pytest.mark.parametrize("name", BOX)
def test_the_schema_is_one_that_allows_the_case(name: str) -> None:
    schema = msgspec.json.decode(str(BOX[name].spec.schema))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(dict(CASES[name].args), schema)


def test_the_strict_fakes_take_every_built_in_declaration() -> None:
    specs = [one.spec for one in built_in()]
    messages = [{"role": "user", "content": "hello"}]
    of_anthropic = [
        {
            "name": one.name,
            "description": one.description,
            "input_schema": msgspec.json.decode(str(one.schema)),
        }
        for one in specs
    ]
    of_openai = [
        {
            "type": "function",
            "function": {
                "name": one.name,
                "description": one.description,
                "parameters": msgspec.json.decode(str(one.schema)),
            },
        }
        for one in specs
    ]
    request = {"model": "m", "max_tokens": 100, "messages": messages}
    assert anthropic.check({**request, "tools": of_anthropic}) is None
    assert openai_chat.check({**request, "tools": of_openai}) is None
    of_anthropic[0]["name"] = "a b"
    assert anthropic.check({**request, "tools": of_anthropic}) is not None


class Broken:
    """A tool whose fault is named by the test that uses it."""

    def __init__(self, spec: ToolSpec, *results: ToolResult) -> None:
        self.spec = spec
        self._results = list(results)

    async def run(self, args: object, context: ToolContext) -> ToolResult:
        del args, context
        return self._results.pop(0) if len(self._results) > 1 else self._results[0]


@tool(replay="safe")
def sound(text: str = "x") -> str:
    """Say it."""
    return text


def spec(**changes: object) -> ToolSpec:
    return msgspec.structs.replace(sound.spec, **changes)


def said(*texts: str, **more: object) -> ToolResult:
    parts = tuple(TextPart(text=text) for text in texts)
    return ToolResult(parts=parts, **more)


OPEN = '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}'
LOOSE = '{"additionalProperties":false,"properties":{"text":{"title":"x"}},"type":"object"}'
FILE = FileDigest(path="x", before=None, after=BlobId("0" * 64))
FAULTS = [
    (suite.declares_a_rule_a_name_and_what_it_does, Broken(spec(name="a b"), said("x"))),
    (suite.declares_a_rule_a_name_and_what_it_does, Broken(spec(replay="never"), said("x"))),
    (suite.declares_a_rule_a_name_and_what_it_does, Broken(spec(description=" "), said("x"))),
    (suite.has_a_schema_of_one_object, Broken(spec(schema=OPEN), said("x"))),
    (suite.has_a_schema_of_one_object, Broken(spec(schema=LOOSE), said("x"))),
    (suite.works_in_an_empty_workspace, Broken(spec(), said())),
    (suite.works_in_an_empty_workspace, Broken(spec(), said(""))),
    (suite.works_in_an_empty_workspace, Broken(spec(), said("\ud800"))),
    (suite.works_in_an_empty_workspace, Broken(spec(), said("x", failed=True))),
    (suite.refuses_an_unknown_argument, Broken(spec(), said("x"))),
    (suite.refuses_an_unknown_argument, Broken(spec(), said("x", failed=True, code="bad"))),
    (suite.refuses_arguments_of_another_type, Broken(spec(), said("x"))),
    (suite.refuses_a_missing_argument, Broken(spec(schema=OPEN), said("x"))),
    (suite.limits_its_output, Broken(spec(), said("x" * 20_000))),
    (suite.limits_its_output, Broken(spec(), said("x", full=b""))),
    (suite.a_safe_call_may_run_twice, Broken(spec(), said("x"), said("y"))),
    (suite.files_it_names_are_as_it_says, Broken(spec(), said("x", files=(FILE,)))),
]


@pytest.mark.parametrize(("rule", "broken"), FAULTS)
def test_a_broken_tool_is_found(rule: ToolRule, broken: Broken, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        asyncio.run(rule(ToolCase(tool=broken), tmp_path))


def test_a_safe_tool_that_leaves_something_each_time_is_found(tmp_path: Path) -> None:
    @tool(replay="safe")
    def growing(context: ToolContext) -> str:
        """Leave a file more each time."""
        count = len(list(Path(context.workspace).iterdir()))
        Path(context.workspace, str(count)).write_text("x")
        return "done"

    with pytest.raises(AssertionError, match="changed the workspace"):
        asyncio.run(suite.a_safe_call_may_run_twice(ToolCase(tool=growing), tmp_path))


@pytest.mark.parametrize("rule", TOOL_RULES, ids=lambda rule: rule.__name__)
def test_a_plain_function_made_a_tool_keeps_the_rule(rule: ToolRule, tmp_path: Path) -> None:
    loud = {"text": "\N{SNOWMAN}" * 50_000}
    asyncio.run(rule(ToolCase(tool=sound, loud=loud), tmp_path))
