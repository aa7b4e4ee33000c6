"""`sojourn sign`: sign an archive with an SSH key."""

import click

from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice


@click.command(
    "sign",
    cls=Command,
    examples=[
        "sojourn sign research.tar --key ~/.ssh/id_ed25519",
        "sojourn sign research.tar --key ~/.ssh/id_ed25519_sk.pub",
    ],
)
@click.argument(
    "archive", metavar="FILE", type=click.Path(dir_okay=False), help="An archive of `export`."
)
@click.option(
    "--key",
    metavar="KEY",
    required=True,
    type=click.Path(dir_okay=False),
    help="The SSH key in KEY; a public key asks ssh-agent.",
)
@click.pass_obj
def command(settings: Settings, archive: str, key: str) -> None:
    """Check the archive FILE and put a signature of its manifest into it, in place of another.

    An encrypted archive is signed when it is exported. Keys with a passphrase, in ssh-agent or on
    hardware are used through ssh-keygen, which may ask at the terminal.
    """
    from sojourn.agent.archives import sign_archive
    from sojourn.cli.carrying import signature_shape
    from sojourn.cli.shapes_archive import SignAnswer

    signed = signature_shape(sign_archive(archive, key=key))
    if signed is None:
        raise RuntimeError("a signing without a signature")
    voice = Voice(settings)
    if settings.json:
        voice.answer(SignAnswer(file=archive, signature=signed))
        return
    voice.data(archive)
    voice.talk("signed with ", Painted(f"{signed.kind} {signed.fingerprint}", "good"))
