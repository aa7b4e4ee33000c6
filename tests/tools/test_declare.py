"""Tools made of plain functions: their schema, their arguments, what they return and raise."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from sojourn.errors import CallError, UsageError
from sojourn.format.parts import TextPart
from sojourn.ids import CallKey
from sojourn.ports import Ran, Tool, ToolContext, ToolResult
from sojourn.tools.declare import tool
from sojourn.tools.output import TO_MODEL
from sojourn.tools.toolbox import RuleWarning, built_in, toolbox


class NoSandbox:
    """These tools start nothing."""

    async def run(self, *_: object, **__: object) -> Ran:
        raise NotImplementedError

    def end_left_behind(self) -> tuple[int, ...]:
        return ()


CONTEXT = ToolContext(key=CallKey("k"), attempt=1, workspace="/w", sandbox=NoSandbox())


@dataclasses.dataclass
class Place:
    """Where it is."""

    street: str
    number: int = 1


@tool(replay="keyed", verify_with=("look",))
def visit(
    place: Place,
    mood: Literal["good", "bad"],
    context: ToolContext,
    guests: Annotated[int, Meta(ge=1, description="How many come.")] = 2,
    note: str | None = None,
    tags: list[str] = ["a"],  # noqa: B006 - what the test is about
) -> dict[str, object]:
    """Visit a place.

    Once.
    """
    tags.append(mood)
    return {
        "place": dataclasses.asdict(place),
        "guests": guests,
        "tags": tags,
        "key": context.key,
        "note": note,
    }


def run(given: Tool, /, **args: object) -> ToolResult:
    return asyncio.run(given.run(args, CONTEXT))


def text(result: ToolResult) -> str:
    (part,) = result.parts
    assert isinstance(part, TextPart)
    return str(part.text)


GOOD: Mapping[str, object] = {"place": {"street": "s"}, "mood": "good"}


def test_the_declaration_comes_from_the_function() -> None:
    spec = visit.spec
    assert (spec.name, spec.description) == ("visit", "Visit a place.\n\nOnce.")
    assert (spec.replay, spec.verify_with) == ("keyed", ("look",))
    schema = json.loads(str(spec.schema))
    assert list(schema["properties"]) == sorted(["place", "mood", "guests", "note", "tags"])
    assert schema["required"] == ["place", "mood"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["properties"]["guests"] == {
        "default": 2,
        "description": "How many come.",
        "minimum": 1,
        "type": "integer",
    }
    assert schema["properties"]["mood"] == {"enum": ["bad", "good"]}
    assert schema["properties"]["place"] == {"$ref": "#/$defs/Place"}
    assert schema["$defs"]["Place"]["properties"]["number"] == {"default": 1, "type": "integer"}


def test_a_call_converts_fills_in_and_encodes() -> None:
    for _ in range(2):
        # Twice, since a default that is a list must not be shared by calls.
        assert json.loads(text(run(visit, **GOOD))) == {
            "place": {"street": "s", "number": 1},
            "guests": 2,
            "tags": ["a", "good"],
            "key": "k",
            "note": None,
        }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"guests": "2"}, "`guests`"),
        ({"guests": 2.5}, "`guests`"),
        ({"guests": 0}, "`guests`"),
        ({"guests": True}, "`guests`"),
        ({"mood": "so"}, "`mood`"),
        ({"place": {"street": 1}}, "`place.street`"),
        ({"place": {}}, "`street`"),
        ({"tags": ["a", 1]}, "`tags[1]`"),
        ({"gusts": 1}, "unknown argument `gusts`"),
        ({"context": {}}, "unknown argument `context`"),
    ],
)
def test_bad_arguments_are_a_failed_result_that_names_them(
    change: dict[str, object], named: str
) -> None:
    result = run(visit, **{**GOOD, **change})
    assert (result.failed, result.code) == (True, "bad_arguments")
    assert named in text(result)
    assert "Nothing was done" in text(result)


def test_a_missing_argument_is_named() -> None:
    assert "missing argument `mood`" in text(run(visit, place={"street": "s"}))


def test_the_function_itself_can_be_called() -> None:
    assert visit(Place("s"), "bad", CONTEXT, tags=[])["tags"] == ["bad"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("as it is", "as it is"),
        ("", "(nothing)"),
        (None, "(nothing)"),
        (Place("s"), '{"street":"s","number":1}'),
        ([1, 2.5, True], "[1,2.5,true]"),
        (object, "\"<class 'object'>\""),
        ({"a": "\ud800"}, "{'a': '\\ud800'}"),
        ("a\ud800b \ud83d\ude00", "a\N{REPLACEMENT CHARACTER}b \N{GRINNING FACE}"),
    ],
)
def test_whatever_is_returned_becomes_text(value: object, said: str) -> None:
    @tool(replay="safe")
    def give() -> object:
        """Give it."""
        return value

    result = run(give)
    assert (text(result), result.failed, result.full) == (said, False, None)


def test_a_long_text_is_shortened_by_code_points_and_kept_whole() -> None:
    whole = "\N{GRINNING FACE}" * 10_000

    @tool(replay="safe")
    def shout() -> str:
        """Shout."""
        return whole

    result = run(shout)
    said = text(result)
    assert len(said.encode()) <= TO_MODEL
    assert result.full == whole.encode()
    head, note, tail = said.split("\n")
    assert set(head + tail) == {"\N{GRINNING FACE}"}
    assert note == f"[... {10_000 - len(head + tail):,} characters are left out here ...]"


def test_a_result_of_the_tools_own_is_shortened_too() -> None:
    @tool(replay="safe")
    def shout() -> ToolResult:
        """Shout."""
        parts = (TextPart(text="a" * 20_000), TextPart(text="b" * 20_000))
        return ToolResult(parts=parts, code="c", failed=True)

    result = run(shout)
    texts = [part.text for part in result.parts if isinstance(part, TextPart)]
    assert sum(len(str(one)) for one in texts) <= TO_MODEL
    assert result.full == b"a" * 20_000 + b"\n" + b"b" * 20_000
    assert (result.failed, result.code) == (True, "c")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("by zero"), "tool_error", "ZeroDivisionError: by zero"),
        (KeyError(), "tool_error", "KeyError"),
        (StopIteration("x"), "tool_error", "RuntimeError: StopIteration: x"),
        (TimeoutError(), "tool_error", "TimeoutError"),
        (UsageError("no", code="own"), "own", "no"),
    ],
)
def test_what_a_function_raises_is_a_failed_result(error: Exception, code: str, said: str) -> None:
    @tool(replay="safe")
    def fail() -> str:
        """Fail."""
        raise error

    result = run(fail)
    assert (result.failed, result.code, text(result)) == (True, code, said)


@pytest.mark.parametrize("error", [CallError("c", may_have_happened=True), KeyboardInterrupt()])
def test_a_call_error_and_what_is_no_exception_pass(error: BaseException) -> None:
    @tool(replay="safe")
    async def fail() -> str:
        """Fail."""
        raise error

    with pytest.raises(type(error)) as raised:
        run(fail)
    assert raised.value is error


def test_a_call_error_passes_from_a_thread_too() -> None:
    @tool(replay="safe")
    def fail() -> str:
        """Fail."""
        raise CallError("c", code="own")

    with pytest.raises(CallError, match="c"):
        run(fail)


def test_a_sync_function_leaves_the_loop_free_and_an_async_one_is_on_it() -> None:
    reached = threading.Event()

    @tool(replay="safe")
    def wait() -> str:
        """Wait until the loop has done something else."""
        return str(reached.wait(30)) + threading.current_thread().name

    @tool(replay="safe")
    async def here() -> str:
        """Say where."""
        return threading.current_thread().name

    async def both() -> str:
        waiting = asyncio.ensure_future(wait.run({}, CONTEXT))
        await asyncio.sleep(0)
        reached.set()
        return text(await waiting)

    assert asyncio.run(both()) == "Truesojourn-tool"
    assert text(run(here)) == threading.current_thread().name


def test_a_stopped_call_of_a_sync_function_does_not_hold_the_loop() -> None:
    release, ended = threading.Event(), threading.Event()

    @tool(replay="safe")
    def hang() -> str:
        """Hang."""
        release.wait(30)
        ended.set()
        return "late"

    async def stop() -> None:
        async with asyncio.timeout(0.05):
            await hang.run({}, CONTEXT)

    with pytest.raises(TimeoutError):
        asyncio.run(stop())
    assert not ended.is_set()
    release.set()
    assert ended.wait(30)


def test_a_function_that_returns_a_coroutine_is_awaited() -> None:
    @tool(replay="safe")
    async def inner() -> str:
        """Say it."""
        return "said"

    @tool(replay="safe")
    def outer() -> object:
        """Hand it on."""
        return inner()

    assert text(run(outer)) == "said"


def unhinted(a):
    return a


def positional(a: int, /) -> int:
    return a


def many(*a: int) -> tuple[int, ...]:
    return a


def opaque(a: threading.Event) -> None:
    del a


def unknown(a: "NoSuchName") -> None:  # noqa: F821 - what the test is about
    del a


@pytest.mark.parametrize("function", [unhinted, positional, many, opaque, unknown])
def test_a_signature_that_cannot_be_asked_of_a_model_is_refused(function: object) -> None:
    with pytest.raises(UsageError) as refused:
        tool(replay="safe")(function)
    assert refused.value.code == "tool_signature"
    assert getattr(function, "__name__", "") in str(refused.value)


@pytest.mark.parametrize("name", ["a b", "x" * 65, "é", "a.b", "<lambda>"])
def test_a_name_that_some_provider_refuses_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        tool(replay="safe", name=name)(lambda: "x")
    assert refused.value.code == "tool_name"
    tool(replay="safe", name="A-b_9" + "x" * 59)(lambda: "x")


@pytest.mark.parametrize(("rule", "code"), [("probe", "probe_not_yet"), ("never", "replay_rule")])
def test_a_rule_that_cannot_be_obeyed_is_refused(rule: str, code: str) -> None:
    with pytest.raises(UsageError) as refused:
        tool(replay=rule)(plain)
    assert refused.value.code == code


def plain(a: int) -> int:
    """Give it back."""
    return a


def test_a_function_without_a_rule_is_report_and_warned_of_at_registration() -> None:
    bare = tool(plain)
    assert (bare.declared, bare.spec.replay) == (False, "report")
    for given in (plain, bare):
        with pytest.warns(RuleWarning, match="'plain' declares no replay rule"):
            box = toolbox([given])
        assert box["plain"].spec == bare.spec
    assert text(run(bare, a=3)) == "3"


def test_a_declared_tool_is_registered_without_a_word() -> None:
    assert list(toolbox([visit, *built_in()]))[:2] == ["visit", "ask"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError) as refused:
        toolbox([visit, tool(replay="safe", name="visit")(plain)])
    assert refused.value.code == "tool_twice"


def test_a_tool_that_is_no_function_is_checked_by_name() -> None:
    class Own:
        spec = msgspec.structs.replace(visit.spec, name="not legal")

        async def run(self, args: object, context: ToolContext) -> ToolResult:
            raise NotImplementedError

    with pytest.raises(UsageError) as refused:
        toolbox([Own()])
    assert refused.value.code == "tool_name"


def test_the_built_in_tools_have_their_rules() -> None:
    rules = {one.spec.name: (one.spec.replay, one.spec.verify_with) for one in built_in()}
    assert rules == {
        "memory": ("safe", ()),
        "ask": ("keyed", ()),
        "edit": ("report", ("read",)),
        "list": ("safe", ()),
        "read": ("safe", ()),
        "recall": ("safe", ()),
        "search": ("safe", ()),
        "shell": ("report", ("read", "search")),
        "todo": ("safe", ()),
        "write": ("report", ("read",)),
    }
