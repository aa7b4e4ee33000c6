"""`sojourn demo`: an agent is killed in the middle of a call, goes on, and repeats nothing."""

import click

from sojourn.cli.group import Command
from sojourn.cli.settings import Settings


@click.command(
    "demo", cls=Command, examples=["sojourn demo", "sojourn demo --keep ./demo", "make demo"]
)
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Work in DIR, which must be new or empty (default: a new temporary folder).",
)
@click.pass_obj
def command(settings: Settings, keep: str | None) -> int:
    """See an agent mend a small project, be killed with SIGKILL in the middle of a call, and go on.

    It is a real run: real tools on real files, with a model whose replies come from a file, so no
    key is needed. Counters outside the agent show that no finished call ran twice. It takes some
    seconds and says where to look afterwards.
    """
    from sojourn.cli.demo_run import run_demo

    return run_demo(settings, keep)
