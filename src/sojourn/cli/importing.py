"""`sojourn import`: take a capsule in from a file."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from sojourn.cli.archive_options import identity_option, signers_option
from sojourn.cli.group import Command
from sojourn.cli.people import counted
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import DecisionError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.agent import Machine, Observer, Place
    from sojourn.agent.arrive import Arrival, Imported
    from sojourn.cli.shapes_archive import ImportAnswer

PROMPT_LINES = 4
"""Lines of the system prompt that the report shows."""


@click.command(
    "import",
    cls=Command,
    examples=[
        "sojourn import research.tar",
        "sojourn import research.tar.zst.age --identity ~/.ssh/id_ed25519",
        "sojourn import theirs.tar --as-new --as mine --workspace ~/code/mine",
        "sojourn import theirs.tar --allowed-signers ~/.ssh/allowed_signers --as theirs",
    ],
)
@click.argument(
    "archive", metavar="FILE", type=click.Path(dir_okay=False), help="An archive of `export`."
)
@click.option("--as", "name", metavar="NAME", help="Its name here, or the path of its new folder.")
@identity_option("it")
@signers_option("Refuse it")
@click.option("--as-new", is_flag=True, help="Make a capsule of its own of it, held and run here.")
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="With --as-new: the folder it works in.",
)
@click.option("-y", "--yes", is_flag=True, help="Keep it without asking.")
@click.pass_obj
def command(
    settings: Settings,
    archive: str,
    name: str | None,
    identity: tuple[str, ...],
    allowed_signers: str | None,
    as_new: bool,
    workspace: str | None,
    yes: bool,
) -> None:
    """Check the archive FILE, show what is in it, and keep the capsule when you say so.

    It keeps its id, and opens for reading: nothing of it runs. Whatever is not exactly what was
    sealed is refused, and nothing is left behind.

    With --as-new it is forked as it comes in: the new capsule is held here and ready to run, and
    the one in FILE is not kept.
    """
    from sojourn.agent import Machine
    from sojourn.cli.carrying import Noting, confirmed, progress

    if workspace is not None and not as_new:
        raise UsageError(
            "--workspace is for --as-new: what only arrives does not run",
            code="options_conflict",
            state="Nothing was imported.",
            hint="Give --as-new, too, or leave --workspace out.",
        )

    voice = Voice(settings)

    def accept(arrival: "Arrival") -> bool:
        if not (settings.json or (settings.quiet and yes)):
            _report(voice, arrival)
        answer = True if yes else confirmed(voice, "Keep it?")
        if answer is None:
            raise DecisionError(
                "nobody is here to say whether the capsule should be kept",
                code="decision_needed",
                state="Nothing was imported.",
                hint="Look at the report, then run the same command with --yes.",
            )
        return answer

    machine = Machine()
    take = _Take(archive, name, identity, allowed_signers, accept, progress(voice, "reading"))
    if as_new:
        done = take.as_new(machine, workspace, Noting(voice))
    else:
        done = take.whole(machine)
    _say(voice, machine, done)


@dataclass(frozen=True, slots=True)
class _Take:
    """How an archive is to be taken in."""

    file: str
    name: str | None
    identities: tuple[str, ...]
    allowed_signers: str | None
    accept: "Callable[[Arrival], bool]"
    progress: "Callable[[int, int], None] | None"

    def whole(self, machine: "Machine") -> "Imported":
        from sojourn.agent.arrive import import_archive

        return import_archive(
            machine,
            self.file,
            name=self.name,
            identities=self.identities,
            allowed_signers=self.allowed_signers,
            accept=self.accept,
            progress=self.progress,
        )

    def as_new(self, machine: "Machine", workspace: str | None, observer: "Observer") -> "Imported":
        import asyncio

        from sojourn.agent.arrive import import_as_new

        making = import_as_new(
            machine,
            self.file,
            name=self.name,
            workspace=workspace,
            identities=self.identities,
            allowed_signers=self.allowed_signers,
            accept=self.accept,
            observer=observer,
            progress=self.progress,
        )
        return asyncio.run(making)


def _say(voice: Voice, machine: "Machine", done: "Imported") -> None:
    """What became of it."""
    answer = _answer(done)
    if voice.settings.json:
        voice.answer(answer)
        return
    if answer.outcome == "same":
        voice.talk(f"{answer.name} is here already, just as it is in the archive.")
        voice.data(done.arrival.here or "")
    elif answer.outcome == "declined":
        voice.talk("Nothing was kept.")
    elif done.place is not None:
        voice.data(done.place.folder)
        _next(voice, machine, done, done.place)


def _next(voice: Voice, machine: "Machine", done: "Imported", place: "Place") -> None:
    """What can be done with it now."""
    made = done.forked
    if made is None:
        voice.talk(Painted(f"look at it:  sojourn log {place.folder}", "dim"))
        return
    parent = done.arrival.found.manifest.name
    voice.talk(
        Painted(place.name, "name"),
        f" goes on from event {made.at[:8]} of {parent}, in {place.workspace}",
    )
    if made.restored is not None and made.restored.missing:
        calls = counted(len(made.restored.missing), "call")
        voice.talk(f"its workspace may lack what {calls} did; the agent is told so")
    voice.talk(Painted(f'next:  sojourn run {machine.reference(place)} "what to do"', "dim"))


def _answer(done: "Imported") -> "ImportAnswer":
    from sojourn.cli.carrying import seal_shape, signature_shape
    from sojourn.cli.shapes import FaultShape
    from sojourn.cli.shapes_archive import ImportAnswer
    from sojourn.drive.importing import DOUBTS

    arrival, found = done.arrival, done.arrival.found
    seal = seal_shape(found.manifest, found.manifest_digest)
    if seal is None:
        raise RuntimeError("an import without a seal")
    kept = done.place is not None
    outcome = (
        "forked"
        if done.forked
        else "imported"
        if kept
        else "same"
        if arrival.relation == "same"
        else "declined"
    )
    configured = found.folded.transcript.configured
    made = done.forked
    return ImportAnswer(
        outcome=outcome,
        id=found.manifest.capsule,
        name=found.manifest.name,
        made=None if made is None else made.capsule,
        folder=arrival.here if done.place is None else done.place.folder,
        seal=seal,
        signature=signature_shape(arrival.signed),
        doubts=tuple(FaultShape(code=doubt, message=DOUBTS[doubt]) for doubt in arrival.doubts),
        holder=found.manifest.holder,
        epoch=found.epoch,
        machines=len(found.machines),
        events=found.folded.ending.events,
        size=arrival.size,
        first_time=found.first_time,
        last_time=found.folded.last_time,
        model=None if configured is None else configured[1].model or None,
        entries=found.entries,
        missing_secrets=arrival.secrets,
        missing_tools=arrival.tools,
    )


def _report(voice: Voice, arrival: "Arrival") -> None:
    """What is in the archive, for the person who must decide."""
    from sojourn.cli.carrying import said_of, seal_shape, signature_shape, signed_by
    from sojourn.cli.people import ago, size
    from sojourn.drive.importing import DOUBTS

    found = arrival.found
    seal = seal_shape(found.manifest, found.manifest_digest)
    configured = found.folded.transcript.configured
    ending = found.folded.ending
    voice.err.line(Painted(found.manifest.name, "name"), f"  {size(arrival.size)}")

    def row(name: str, *pieces: str | Painted) -> None:
        voice.err.line(f"  {name:<10}", *pieces)

    row("capsule", found.manifest.capsule)
    row("sealed", said_of(seal) if seal is not None else "no")
    row("signed by", *signed_by(signature_shape(arrival.signed)))
    row("holder", f"{found.manifest.holder}, epoch {found.epoch}")
    since, last = ago(found.first_time), ago(found.folded.last_time)
    by = counted(len(found.machines), "machine")
    row("log", f"{counted(ending.events, 'event')} by {by}, from {since} to {last}")
    entries = counted(found.entries, "entry", "entries")
    row("workspace", f"{entries}, {size(found.workspace_bytes)}")
    if configured is not None:
        row("model", configured[1].model or "none")
        row("tools", ", ".join(spec.name for spec in configured[1].tools) or "none")
        system = configured[1].system
        text = system if isinstance(system, str) else system.preview
        for line in list(filter(str.strip, text.splitlines()))[:PROMPT_LINES]:
            row("is told", line)
    if found.environment.env:
        row("sets", ", ".join(sorted(found.environment.env)))
    if arrival.secrets:
        row("needs", Painted(f"secrets that are not here: {', '.join(arrival.secrets)}", "warn"))
    if arrival.tools:
        row("needs", Painted(f"tools that are not here: {', '.join(arrival.tools)}", "warn"))
    for doubt in arrival.doubts:
        row("beware", Painted(f"{DOUBTS[doubt]} [{doubt}]", "alarm"))
    row("goes to", arrival.target)
