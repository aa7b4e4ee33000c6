"""The tools shell, ask and todo."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from sojourn.format.event import DocumentChange
from sojourn.format.parts import TextPart
from sojourn.ids import CallKey, CapsuleId
from sojourn.ports import Ran, Tool, ToolContext, ToolResult
from sojourn.sandboxes.host import HostSandbox
from sojourn.tools.ask import ask_person
from sojourn.tools.output import FULL, TO_MODEL, Output
from sojourn.tools.shell import run_shell
from sojourn.tools.todo import LARGEST, NAME, SCHEMA, todo_list


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    sandbox = HostSandbox(capsule=CapsuleId("ca" * 32), runs=tmp_path / "runs", boot="boot")
    (tmp_path / "w").mkdir()
    key = CallKey("5e" * 32)
    return ToolContext(key=key, attempt=1, workspace=str(tmp_path / "w"), sandbox=sandbox)


def run(context: ToolContext, tool: Tool, **args: object) -> ToolResult:
    return asyncio.run(tool.run(args, context))


def text(result: ToolResult) -> str:
    (part,) = result.parts
    assert isinstance(part, TextPart)
    return str(part.text)


# --- shell


@pytest.mark.parametrize(
    ("command", "said", "code"),
    [
        ("echo a; echo b >&2", "a\nb\n", ""),
        ("true", "[no output]", ""),
        ("printf a; exit 3", "a\n[exit status 3]", "exit_status"),
        ("false", "[exit status 1]", "exit_status"),
        ("[[ $(echo a | tr a b) == b ]] && echo bash", "bash\n", ""),
        ("pwd -P; sleep 1000 &", "[1 process still running in the background, ended now]", ""),
        (
            "printf 'a\\xff'",
            "[bytes that are not UTF-8 are shown as \N{REPLACEMENT CHARACTER}]",
            "",
        ),
        ("printf 'a\\xef\\xbf\\xbd'", "a\N{REPLACEMENT CHARACTER}\n", ""),
        ("read x || echo nobody answers", "nobody answers\n", ""),
    ],
)
def test_a_command_is_run_in_the_workspace(
    command: str, said: str, code: str, context: ToolContext
) -> None:
    result = run(context, run_shell, command=command)
    assert text(result).endswith(said)
    assert (result.failed, result.code, result.synced) == (bool(code), code, False)
    if "pwd" in command:
        assert text(result).startswith(str(Path(context.workspace).resolve()))


def test_time_is_limited_and_said(context: ToolContext) -> None:
    result = run(context, run_shell, command="echo a; sleep 1000", seconds=1)
    assert text(result) == "a\n[not finished after 1 s: ended, with everything that it started]"
    assert (result.failed, result.code) == (True, "timeout")
    assert run(context, run_shell, command="true", seconds=0).code == "bad_arguments"


def test_a_provider_key_does_not_reach_a_command(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GH_TOKEN"):
        monkeypatch.setenv(name, "sk-very-secret")
    monkeypatch.setenv("BASH_ENV", "/etc/profile")
    sandbox = HostSandbox(capsule=CapsuleId("ca" * 32), runs=tmp_path / "runs", boot="boot")
    said = text(run(replace(context, sandbox=sandbox), run_shell, command="env; set; export -p"))
    assert "sk-very-secret" not in said
    assert "SOJOURN_CALL=" in said
    assert "PATH=" in said


def test_a_huge_output_is_bounded_everywhere(context: ToolContext) -> None:
    pieces: list[int] = []
    watched = replace(context, on_output=lambda data: pieces.append(len(data)))
    result = run(watched, run_shell, command="echo first; yes | head -c 20000000; echo last")
    said = text(result)
    assert len(said.encode()) <= TO_MODEL
    assert said.startswith("first\n")
    assert said.endswith("last\n")
    assert result.full is not None
    assert len(result.full) <= FULL + 100
    assert b"bytes were too many to keep" in result.full
    assert sum(pieces) == 20_000_011


def test_the_sandbox_is_asked_for_the_call_itself(context: ToolContext) -> None:
    asked: dict[str, object] = {}

    class Recording:
        async def run(
            self,
            command: Sequence[str],
            *,
            key: CallKey,
            cwd: str,
            environment: Mapping[str, str],
            stdin: bytes = b"",
            seconds: float,
            on_output: Callable[[bytes], None],
        ) -> Ran:
            asked.update(command=command[-1], key=key, cwd=cwd, seconds=seconds, stdin=stdin)
            on_output(b"said")
            return Ran(status=0, ended=len(environment))

        def end_left_behind(self) -> tuple[int, ...]:
            return ()

    result = run(replace(context, sandbox=Recording()), run_shell, command="x", seconds=7)
    assert text(result) == "said\n"
    assert asked == {
        "command": "x",
        "key": context.key,
        "cwd": context.workspace,
        "seconds": 7,
        "stdin": b"",
    }


@pytest.mark.parametrize("pieces", [[b"abcdefgh"], [b"a"] * 8, [b"abc", b"", b"de"]])
def test_output_that_fits_is_kept_whole(pieces: list[bytes]) -> None:
    output = Output(limit=8)
    for piece in pieces:
        output.add(piece)
    assert (output.kept(), output.dropped) == (b"".join(pieces), 0)


@pytest.mark.parametrize("size", [9, 10, 16, 17, 100])
def test_of_too_much_output_the_beginning_and_the_end_are_kept(size: int) -> None:
    data = bytes(range(size))
    for step in (1, 3, size):
        output = Output(limit=8)
        for start in range(0, size, step):
            output.add(data[start : start + step])
        assert output.dropped == size - 8
        kept = output.kept()
        assert (kept[:4], kept[-4:]) == (data[:4], data[-4:])
        assert f"{size - 8} bytes were too many".encode() in kept


# --- ask


def answering(answer: str, asked: list[str]) -> Callable[[str], Awaitable[str]]:
    async def ask(question: str) -> str:
        asked.append(question)
        return answer

    return ask


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("blue\n", "blue"),
        ("2", "green"),
        ("3", "3"),
        ("0", "0"),
        ("²", "²"),
        ("", "(an empty answer)"),
    ],
)
def test_a_person_answers_in_words_or_by_the_number_of_a_choice(
    answer: str, said: str, context: ToolContext
) -> None:
    asked: list[str] = []
    watched = replace(context, ask=answering(answer, asked))
    result = run(watched, ask_person, question="Which?", choices=["red", "green"])
    assert (text(result), result.failed) == (said, False)
    assert asked == ["Which?\n  1. red\n  2. green"]


def test_where_nobody_can_answer_the_model_is_told(context: ToolContext) -> None:
    async def leave(_: str) -> str:
        raise EOFError

    assert run(context, ask_person, question="Which?").code == "nobody_to_ask"
    result = run(replace(context, ask=leave), ask_person, question="Which?")
    assert (result.failed, result.code) == (True, "no_answer")
    assert run(context, ask_person, question="").code == "bad_arguments"


# --- todo


def with_list(context: ToolContext, change: DocumentChange) -> ToolContext:
    return replace(context, documents={NAME: change})


def test_the_list_is_a_document_that_comes_with_the_result(context: ToolContext) -> None:
    items = [{"text": "a", "state": "done"}, {"text": "b"}, {"text": "é", "state": "doing"}]
    result = run(context, todo_list, items=items)
    assert text(result) == "1 of 3 done\n[x] a\n[ ] b\n[>] é"
    (change,) = result.documents
    assert (change.name, change.schema, change.version) == ("todo", "sojourn.todo/1", 1)
    assert json.loads(str(change.value)) == [
        {"text": "a", "state": "done"},
        {"text": "b", "state": "open"},
        {"text": "é", "state": "doing"},
    ]
    later = with_list(context, change)
    assert text(run(later, todo_list)) == text(result)
    assert run(later, todo_list).documents == ()
    (second,) = run(later, todo_list, items=[]).documents
    assert (second.version, second.value) == (2, "[]")
    assert run(later, todo_list, items=[]).documents == (second,)


def test_a_list_that_would_not_fit_in_its_event_is_refused(context: ToolContext) -> None:
    items = [{"text": "\N{SNOWMAN}" * 500}] * 9
    result = run(context, todo_list, items=items)
    assert (result.failed, result.code, result.documents) == (True, "too_large", ())
    (change,) = run(context, todo_list, items=items[:7]).documents
    assert len(str(change.value).encode()) <= LARGEST


def test_a_list_of_another_version_is_not_guessed_at_and_can_be_replaced(
    context: ToolContext,
) -> None:
    newer = with_list(
        context, DocumentChange(name=NAME, schema="sojourn.todo/2", version=7, value="{}")
    )
    assert run(newer, todo_list).code == "unknown_schema"
    (change,) = run(newer, todo_list, items=[{"text": "a"}]).documents
    assert (change.schema, change.version) == (SCHEMA, 8)
