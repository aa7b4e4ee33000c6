"""`sojourn export`: write a capsule to one file."""

from typing import TYPE_CHECKING, Literal

import click

from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import UsageError

if TYPE_CHECKING:
    from sojourn.agent import Place
    from sojourn.agent.writing import Exported


@click.command(
    "export",
    cls=Command,
    examples=[
        "sojourn export research",
        "sojourn export research --zstd --sign ~/.ssh/id_ed25519",
        "sojourn export research --purpose share --encrypt-to age1...",
        "sojourn export research --at 42 -o earlier.tar",
    ],
)
@capsule_argument()
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write FILE (default: NAME.tar in the current folder).",
)
@click.option(
    "--purpose",
    type=click.Choice(["backup", "share"]),
    help="What it is for (default: backup).",
)
@click.option(
    "--at",
    "event",
    metavar="EVENT",
    help="Write a fork at this event, by number or id; it is for running elsewhere.",
)
@click.option(
    "--sign",
    metavar="KEY",
    type=click.Path(dir_okay=False),
    help="Sign it with the SSH key in KEY; a public key asks ssh-agent.",
)
@click.option(
    "--encrypt-to",
    metavar="RECIPIENT",
    multiple=True,
    help="Encrypt it with age, to an age or SSH public key or a file of them; may be repeated.",
)
@click.option(
    "--accept",
    metavar="ID",
    multiple=True,
    help="Let a likely secret go that `scan` names so; may be repeated.",
)
@click.option("--without-workspace", is_flag=True, help="Leave the files' contents out.")
@click.option("-z", "--zstd", "compress", is_flag=True, help="Compress it.")
@click.option("--force", is_flag=True, help="Replace FILE when it is there.")
@click.pass_obj
def command(
    settings: Settings,
    capsule: str | None,
    output: str | None,
    purpose: Literal["backup", "share"] | None,
    event: str | None,
    sign: str | None,
    encrypt_to: tuple[str, ...],
    accept: tuple[str, ...],
    without_workspace: bool,
    compress: bool,
    force: bool,
) -> None:
    """Seal CAPSULE and write it to FILE: one tar archive that stock tools open and check.

    Only the machine that holds the capsule exports it, while nothing runs it. What is likely a
    secret stops it. The file is read back and compared before it has its name. A capsule that did
    not change gives the same bytes again, unless they are encrypted. The archive says in VERIFY.txt
    how to check it without sojourn. Its files have no folder in common: unpack it with
    `mkdir box && tar -C box -xf FILE`.

    With --at the archive holds a capsule of its own that goes on from that event, and CAPSULE is
    only read: it may be running, or held elsewhere. `import --as-new` makes it ready to run.
    """
    import asyncio
    import os

    from sojourn.agent.archives import export_capsule
    from sojourn.agent.export_at import default_file, export_at
    from sojourn.agent.writing import Wanted
    from sojourn.cli.carrying import Noting, progress
    from sojourn.cli.show import chosen

    if event is not None and purpose is not None:
        raise UsageError(
            "--at makes an archive for a fork; --purpose cannot be given with it",
            code="options_conflict",
            state="Nothing was written.",
        )
    machine, place = find(capsule)
    voice = Voice(settings)
    ending = ".tar" + (".zst" if compress else "") + (".age" if encrypt_to else "")
    default = f"{place.name}{ending}" if event is None else default_file(place, ending)
    wanted = Wanted(
        file=os.path.abspath(output or default),
        purpose="fork" if event is not None else purpose or "backup",
        sign=sign,
        encrypt_to=encrypt_to,
        accept=accept,
        without_workspace=without_workspace,
        compress=compress,
        force=force,
    )
    watching, notes = progress(voice, "writing"), Noting(voice)
    if event is None:
        making = export_capsule(machine, place, wanted, observer=notes, progress=watching)
    else:
        at = chosen(machine.look(place), event, capsule=machine.reference(place)).event.id
        making = export_at(machine, place, wanted, at=at, observer=notes, progress=watching)
    _say(voice, place, asyncio.run(making), recipients=len(encrypt_to))


def _say(voice: Voice, place: "Place", made: "Exported", *, recipients: int) -> None:
    from sojourn.cli.carrying import said_of, seal_shape
    from sojourn.cli.people import counted, size
    from sojourn.cli.shapes_archive import ExportAnswer

    seal = seal_shape(made.manifest, made.digest)
    if seal is None:
        raise RuntimeError("an export without a seal")
    if voice.settings.json:
        voice.answer(
            ExportAnswer(
                capsule=shape_of(place),
                file=made.file,
                size=made.size,
                members=made.members,
                seal=seal,
                new=made.new,
                signer=made.signer,
                compressed="zstd" in made.wrapped,
                encrypted="age" in made.wrapped,
                redacted=made.redacted,
            )
        )
        return
    voice.data(made.file)
    what = f"{said_of(seal)}: {size(made.size)}, {counted(made.members, 'file')}"
    voice.talk(
        Painted(made.manifest.name, "name"), f"  {what}{'' if made.new else ', as sealed before'}"
    )
    if made.signer is not None:
        voice.talk(f"signed with {made.signer}")
    if made.redacted:
        times = counted(made.redacted, "redaction")
        text = f"{times} since the seal before: archives made until then hold what is gone here, "
        voice.talk(Painted(text + "and do not match it any more", "warn"))
    if recipients:
        voice.talk(f"encrypted to {counted(recipients, 'recipient')}")
