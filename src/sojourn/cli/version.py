"""`sojourn version`: which version this is, and which capsules it reads and writes."""

import click

from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Voice


def say_version(settings: Settings) -> None:
    """Print the version in the form that was asked for."""
    import platform
    from importlib.metadata import version

    voice, number, python = Voice(settings), version("sojourn"), platform.python_version()
    if settings.json:
        from sojourn.cli.shapes import VersionAnswer
        from sojourn.format.upgrade import READ_VERSION, WRITE_VERSION

        voice.answer(
            VersionAnswer(
                version=number,
                python=python,
                format_write=WRITE_VERSION,
                format_read=READ_VERSION,
            )
        )
        return
    voice.data(f"sojourn {number}")
    voice.detail(f"python {python}")


@click.command("version", cls=Command, examples=["sojourn version", "sojourn version --json"])
@click.pass_obj
def command(settings: Settings) -> None:
    """Print the version of sojourn; with -v that of Python too."""
    say_version(settings)
