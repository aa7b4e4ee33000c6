"""The tool `write`: a whole file of the workspace, made or replaced."""

from typing import Annotated

from msgspec import Meta

from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.beneath import spot
from sojourn.tools.declare import tool
from sojourn.tools.output import text_result, without_surrogates
from sojourn.tools.replace import digest_of, replace_file


@tool(replay="report", verify_with=("read",), name="write")
def write_file(
    path: Annotated[str, Meta(description="Path relative to the workspace.")],
    content: Annotated[str, Meta(description="The whole new content of the file.")],
    context: ToolContext,
) -> ToolResult:
    """Write a file of the workspace, in place of what it held; missing folders are made.

    To change a part of a file, use `edit`.
    """
    sound = without_surrogates(content)
    data = sound.encode()
    with spot(context.workspace, path, make_folders=True) as found:
        seen = found.stat()
        before = digest_of(found)
        change = replace_file(found, data, key=context.key, before=before, seen=seen)
    size = f"{len(data):,} bytes"
    was = "new" if seen is None else f"replaced {seen.st_size:,} bytes"
    note = "" if sound == content else "; lone surrogates were written as U+FFFD"
    return text_result(f"{change.path}: wrote {size} ({was}{note})", files=(change,))
