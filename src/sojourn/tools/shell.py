"""The tool `shell`: a command line in the workspace folder, not confined to it."""

import os
from typing import Annotated, Final

from msgspec import Meta

from sojourn.ports import Ran, ToolContext, ToolResult
from sojourn.tools.declare import tool
from sojourn.tools.output import Output, text_result

SECONDS: Final = 120
LONGEST: Final = 3600
SHELLS: Final = (
    ("/bin/bash", "--noprofile", "--norc", "-c"),
    ("/usr/bin/bash", "--noprofile", "--norc", "-c"),
    ("/bin/sh", "-c"),
)


@tool(replay="report", verify_with=("read", "search"), name="shell")
async def run_shell(
    command: Annotated[str, Meta(description="What bash is to run, in the workspace folder.")],
    context: ToolContext,
    seconds: Annotated[int, Meta(ge=1, le=LONGEST, description="Time limit.")] = SECONDS,
) -> ToolResult:
    """Run a command line in the workspace and return its output and errors, in their order.

    Nobody can answer questions that it asks. When it ends, or its time is up, what it left running
    in the background is ended too.
    """
    output = Output()

    def take(data: bytes) -> None:
        output.add(data)
        if context.on_output is not None:
            context.on_output(data)

    ran = await context.sandbox.run(
        (*_shell(), command),
        key=context.key,
        cwd=context.workspace,
        environment={},
        seconds=seconds,
        on_output=take,
    )
    return _told(ran, output, seconds)


def _shell() -> tuple[str, ...]:
    return next((shell for shell in SHELLS if os.access(shell[0], os.X_OK)), SHELLS[-1])


def _told(ran: Ran, output: Output, seconds: int) -> ToolResult:
    kept = output.kept()
    text = kept.decode(errors="replace")
    notes: list[str] = []
    if "\N{REPLACEMENT CHARACTER}" in text and b"\xef\xbf\xbd" not in kept:
        notes.append("[bytes that are not UTF-8 are shown as \N{REPLACEMENT CHARACTER}]")
    if ran.ended and ran.status is not None:
        many = "process" if ran.ended == 1 else "processes"
        notes.append(f"[{ran.ended} {many} still running in the background, ended now]")
    if ran.status is None:
        notes.append(f"[not finished after {seconds} s: ended, with everything that it started]")
    elif ran.status:
        notes.append(f"[exit status {ran.status}]")
    elif not text:
        notes.append("[no output]")
    if text and not text.endswith("\n"):
        text += "\n"
    return text_result(
        text + "\n".join(notes),
        failed=ran.status != 0,
        code="timeout" if ran.status is None else "exit_status" if ran.status else "",
        synced=False,
    )
