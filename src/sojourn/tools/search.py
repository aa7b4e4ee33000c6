"""The tool `search`: lines of files in the workspace that match a pattern."""

import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from sojourn.errors import CallError
from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.declare import tool
from sojourn.tools.output import text_result
from sojourn.tools.scan import FILE_BYTES, LINE_CHARACTERS, MATCHES, Answer, Request

SECONDS: Final = 20

_PASSED: Final = ("LANG", "LC_ALL", "LD_LIBRARY_PATH")

# -I keeps the workspace and the user's PYTHON* variables out of what is imported.
_SCAN: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from sojourn.tools.scan import main; main()"
)


@tool(replay="safe", name="search")
async def search_files(
    pattern: Annotated[str, Meta(description="Regular expression (Python), matched per line.")],
    context: ToolContext,
    path: Annotated[str, Meta(description="Folder or file, relative to the workspace.")] = ".",
    glob: Annotated[
        str, Meta(description="Only files of this name (`*.py`) or path (`src/**/*.py`).")
    ] = "",
    literal: Annotated[bool, Meta(description="The pattern is plain text.")] = False,
    ignore_case: Annotated[bool, Meta(description="Letters match in either case.")] = False,
    hidden: Annotated[bool, Meta(description="Also names that begin with a dot.")] = False,
) -> ToolResult:
    """Search the text files of the workspace, line by line.

    The answer has one match a line: `path:line: text`. Binary files and `.git` are passed over.
    """
    request = Request(
        workspace=context.workspace,
        path=path,
        pattern=pattern,
        literal=literal,
        ignore_case=ignore_case,
        glob=glob,
        hidden=hidden,
        seconds=SECONDS,
    )
    answer = await _scanned(request)
    if answer is None:
        return text_result(
            f"the search was not done after {SECONDS} s and was ended; take a narrower path or"
            " glob, or a simpler pattern",
            failed=True,
            code="timeout",
        )
    if answer.refused:
        return text_result(answer.refused, failed=True, code=answer.code)
    return text_result(_told(answer))


async def _scanned(request: Request) -> Answer | None:
    """The answer of a process of its own; None when time was up."""
    root = str(Path(__file__).resolve().parents[2])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", _SCAN, root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _PASSED if name in os.environ},
        start_new_session=True,
    )  # fmt: skip
    asked = json.dumps(asdict(request)).encode()
    try:
        async with asyncio.timeout(request.seconds):
            answered, _ = await process.communicate(asked)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        return msgspec.json.decode(answered, type=Answer)
    except msgspec.DecodeError:
        raise CallError(
            "the search's process ended without an answer", code="search_died"
        ) from None


def _told(answer: Answer) -> str:
    lines = [f"{path}:{number}: {text}" for path, number, text in answer.found]
    if answer.more:
        lines.append(f"[more than {MATCHES} matches; the others are left out]")
    notes = [
        (answer.large, f"larger than {FILE_BYTES:,} bytes"),
        (answer.unread, "unreadable"),
        (answer.binary if not lines else 0, "binary"),
    ]
    passed = [f"{count} {why}" for count, why in notes if count]
    if passed:
        lines.append(f"[files passed over: {', '.join(passed)}]")
    if answer.cut_lines:
        lines.append(f"[of {answer.cut_lines} long lines only {LINE_CHARACTERS:,} characters each]")
    if not answer.found:
        lines.insert(0, f"[no match in {answer.files} files]")
    return "\n".join(lines)
