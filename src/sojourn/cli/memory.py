"""`sojourn memory`: the agent's notes, how they came about, and edits of them."""

from collections.abc import Iterable, Sequence
from difflib import unified_diff
from hashlib import sha256
from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import ago
from sojourn.cli.settings import Settings
from sojourn.cli.show import chosen
from sojourn.cli.voice import Painted, Voice
from sojourn.cli.words_in import file_text
from sojourn.errors import UsageError

if TYPE_CHECKING:
    from sojourn.agent import Look
    from sojourn.agent.notes import Edit
    from sojourn.cli.shapes_memory import EditShape, LineShape
    from sojourn.format.event import Event

MADE = {"hand": "by hand", "tool": "by the agent", "created": "at the start"}
"""Who made an edit, in words."""

NOW = "not in the log yet"


@click.command(
    "memory show",
    cls=Command,
    examples=[
        "sojourn memory show research",
        "sojourn memory show research --at 120",
        "sojourn memory show research --blame",
    ],
)
@capsule_argument()
@click.option("--at", "at", metavar="EVENT", help="The notes as they were after that event.")
@click.option("--blame", "blamed", is_flag=True, help="Say which event wrote each line.")
@click.pass_obj
def show(settings: Settings, capsule: str | None, at: str | None, blamed: bool) -> None:
    """Print the notes of the agent in CAPSULE, as the next turn would read them.

    EVENT is a number as `sojourn log` prints it, or the beginning of an id.
    """
    from sojourn.agent.notes import edits_of, notes_at, notes_on_disk
    from sojourn.cli.shapes_memory import MemoryShowAnswer
    from sojourn.core.blame import blame

    machine, place = find(capsule)
    look = machine.look(place)
    event = None if at is None else chosen(look, at, capsule=machine.reference(place)).event
    text = notes_on_disk(look) if event is None else notes_at(look, event)
    lines: list[tuple[Edit | None, str]] = []
    if blamed:
        texts: list[tuple[Edit | None, str]] = [
            (edit, edit.text)
            for edit in edits_of(look)
            if event is None or edit.event.header.clock <= event.header.clock
        ]
        lines = blame([*texts, (None, text)])
    voice = Voice(settings)
    if settings.json:
        shapes = (_line(edit, line) for edit, line in lines)
        voice.answer(
            MemoryShowAnswer(
                capsule=shape_of(place),
                event=None if event is None else event.id,
                sha256=_digest(text),
                text=text,
                lines=tuple(shapes) if blamed else None,
            )
        )
        return
    for edit, line in lines if blamed else ((None, line) for line in _lines(text)):
        voice.data(*((Painted(_who(edit), "dim"), line) if blamed else (line,)))


@click.command(
    "memory log",
    cls=Command,
    examples=["sojourn memory log research", "sojourn memory log research --json | jq .edits"],
)
@capsule_argument()
@click.pass_obj
def log(settings: Settings, capsule: str | None) -> None:
    """List every edit of the notes in CAPSULE: when, by whom, how much.

    `sojourn memory diff CAPSULE EVENT` shows what one of them changed.
    """
    from sojourn.agent.notes import edits_of, notes_on_disk
    from sojourn.cli.shapes_memory import MemoryLogAnswer

    machine, place = find(capsule)
    look = machine.look(place)
    edits = edits_of(look)
    last = edits[-1].text if edits else ""
    unrecorded = notes_on_disk(look) != last
    shapes = _shapes(edits)
    voice = Voice(settings)
    if settings.json:
        voice.answer(MemoryLogAnswer(capsule=shape_of(place), edits=shapes, unrecorded=unrecorded))
        return
    for shape in shapes:
        change = f"+{shape.added} -{shape.removed}"
        when = Painted(f"  {ago(shape.time)}", "dim")
        voice.data(
            Painted(f"{shape.number:>6} ", "name"), f"{change:<10}", MADE[shape.origin], when
        )
    if unrecorded:
        voice.talk(Painted(f"working_memory.md holds an edit that is {NOW}", "warn"))


@click.command(
    "memory diff",
    cls=Command,
    examples=[
        "sojourn memory diff research",
        "sojourn memory diff research 120",
        "sojourn memory diff research 80 120",
    ],
)
@click.argument(
    "words",
    metavar="[CAPSULE] [EVENT [EVENT]]",
    nargs=-1,
    help="The capsule, and one or two events by number or the beginning of an id.",
)
@click.pass_obj
def diff(settings: Settings, words: tuple[str, ...]) -> None:
    """Show what changed in the notes of CAPSULE.

    Without an event: what the file holds that is not in the log yet. With one: what that edit
    changed. With two: from the notes after the first to those after the second.
    """
    from sojourn.agent.notes import edits_of, notes_at, notes_on_disk
    from sojourn.cli.shapes_memory import MemoryDiffAnswer

    if len(words) > 3:
        raise click.UsageError("name a capsule and at most two events")
    machine, place = find(words[0] if words else None)
    look = machine.look(place)
    known_as = machine.reference(place)
    events = [chosen(look, word, capsule=known_as) for word in words[1:]]
    if len(events) == 2:
        names = [f"notes after {_named(*one)}" for one in events]
        before, after = (notes_at(look, one.event) for one in events)
    elif events:
        before, after = _around(look, events[0].event.id, capsule=known_as)
        names = [f"notes {when} {_named(*events[0])}" for when in ("before", "after")]
    else:
        edits = edits_of(look)
        last = edits[-1] if edits else None
        before, after = "" if last is None else last.text, notes_on_disk(look)
        made = "" if last is None else f" after {_named(last.number, last.event)}"
        names = [f"notes{made or ' before any edit'}", "working_memory.md as it is now"]
    found = _diff(before, after, names)
    voice = Voice(settings)
    if settings.json:
        voice.answer(
            MemoryDiffAnswer(
                capsule=shape_of(place),
                before=events[0].event.id if len(events) == 2 else None,
                after=events[-1].event.id if events else None,
                diff="".join(found),
            )
        )
        return
    for line in found:
        voice.data(Painted(line.rstrip("\n"), _style(line)))
    if not found:
        voice.talk(Painted("nothing changed", "dim"))


@click.command(
    "memory edit",
    cls=Command,
    examples=[
        "sojourn memory edit research",
        "sojourn memory edit research --file notes.md",
        "sojourn memory edit research --section Plan --file - < plan.md",
    ],
)
@capsule_argument()
@click.option("--file", "file", metavar="FILE", help="The new text; - reads stdin.")
@click.option("--section", metavar="TITLE", help="Only this section; an empty text removes it.")
@click.pass_obj
def edit(settings: Settings, capsule: str | None, file: str | None, section: str | None) -> None:
    """Edit the notes of CAPSULE in your $EDITOR, or from a file.

    It works while the agent runs: the edit is accepted like a message and becomes an event at the
    next step. When the agent edited the same notes meanwhile, both texts are kept.
    """
    import asyncio

    from sojourn.agent.notes import edit_notes, notes_on_disk
    from sojourn.cli.shapes_memory import MemoryEditAnswer
    from sojourn.format.sections import section_text, with_section

    machine, place = find(capsule)
    before = notes_on_disk(machine.look(place))
    shown = before if section is None else section_text(before, section)
    given = file_text(file) if file is not None else _edited(shown)
    after = given if section is None else with_section(before, section, given)
    request = recorded = None
    if after != before:
        done = asyncio.run(edit_notes(machine, place, before=before, after=after))
        request, recorded = done.request, done.recorded
    voice = Voice(settings)
    if settings.json:
        voice.answer(
            MemoryEditAnswer(
                capsule=shape_of(place),
                request=request,
                recorded=bool(recorded),
                sha256=_digest(after),
            )
        )
    elif request is None:
        voice.talk(Painted("nothing changed", "dim"))
    else:
        words = "the edit is in the log" if recorded else "accepted; it is read at the next step"
        voice.talk(Painted(words, "dim"))


def _edited(text: str) -> str:
    """What a person made of the text in $VISUAL or $EDITOR."""
    found = click.edit(text, extension=".md", require_save=False)
    if found is None:
        raise UsageError(
            "the editor brought nothing back",
            code="editor_failed",
            state="Nothing was changed.",
            hint="Set EDITOR to your editor, or give the text with --file.",
        )
    return found


def _around(look: "Look", event: str, *, capsule: str) -> tuple[str, str]:
    """The notes before and after one edit."""
    from sojourn.agent.notes import edits_of

    before = ""
    for one in edits_of(look):
        if one.event.id == event:
            return before, one.text
        before = one.text
    raise UsageError(
        "that event is no edit of the notes",
        code="no_edit",
        state="Nothing was changed.",
        hint=f"`sojourn memory log {capsule}` lists them.",
    )


def _named(number: int, event: "Event") -> str:
    """An event as the header of a diff names it."""
    return f"event {number} ({event.id[:12]})"


def _line(edit: "Edit | None", text: str) -> "LineShape":
    from sojourn.cli.shapes_memory import LineShape

    if edit is None:
        return LineShape(text=text, event=None, number=None)
    return LineShape(text=text, event=edit.event.id, number=edit.number)


def _shapes(edits: Iterable["Edit"]) -> "tuple[EditShape, ...]":
    from sojourn.cli.shapes_memory import EditShape

    shapes: list[EditShape] = []
    before = ""
    for one in edits:
        changes = _diff(before, one.text, ["", ""])[2:]
        shapes.append(
            EditShape(
                event=one.event.id,
                number=one.number,
                time=one.event.header.time,
                origin=one.origin,
                sha256=one.sha256,
                added=sum(line.startswith("+") for line in changes),
                removed=sum(line.startswith("-") for line in changes),
            )
        )
        before = one.text
    return tuple(shapes)


def _diff(before: str, after: str, names: Sequence[str]) -> list[str]:
    old, new = ([line + "\n" for line in _lines(text)] for text in (before, after))
    return list(unified_diff(old, new, fromfile=names[0], tofile=names[1]))


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "good", "-": "bad", "@": "name"}.get(line[:1], "plain")


def _who(edit: "Edit | None") -> str:
    words = NOW if edit is None else f"{edit.number} {MADE[edit.origin]}"
    return f"{words:<22} "


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
