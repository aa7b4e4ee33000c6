"""The tool `memory`: the agent's notes, a section at a time (docs/format.md#memory)."""

from typing import Annotated, Final

from msgspec import Meta

from sojourn.errors import UsageError
from sojourn.format.sections import with_section
from sojourn.format.working_memory import MAX_EDIT
from sojourn.ports import ToolContext, ToolResult
from sojourn.tools.declare import tool
from sojourn.tools.output import text_result

EMPTY: Final = "(the notes are empty)"


@tool(replay="safe", name="memory")
async def keep_notes(
    context: ToolContext,
    section: Annotated[
        str | None,
        Meta(description="Title of the section to write; leave out to read all notes."),
    ] = None,
    text: Annotated[
        str,
        Meta(description="The section's whole new text in Markdown; empty takes it away."),
    ] = "",
) -> ToolResult:
    """Keep notes that outlast this conversation, in sections, and read them.

    Write down what you will need later: decisions, names, what works and what does not. The text
    replaces the whole section; the other sections stay as they are.
    """
    if section is None:
        return text_result(context.memory or EMPTY)
    changed = with_section(context.memory, section, text)
    if len(changed.encode(errors="surrogatepass")) > MAX_EDIT:
        raise UsageError(
            f"the notes would be longer than {MAX_EDIT:,} bytes; shorten a section first",
            code="memory_too_long",
        )
    if changed == context.memory:
        return text_result("nothing changed: the section reads so already")
    return text_result("written" if text.strip() else "taken away", memory=changed)
