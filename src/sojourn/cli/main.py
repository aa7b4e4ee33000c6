"""The command line's way in: parse, run one command, turn whatever happens into an exit code."""

import os
import signal
import sys
from typing import Final, NoReturn

import click

from sojourn.cli.failure import tell
from sojourn.cli.group import LazyGroup
from sojourn.cli.settings import Settings, fresh_settings, json_wanted, settle_streams
from sojourn.cli.voice import silence

NAME: Final = "sojourn"
HELP_NAMES: Final = ["-h", "--help"]
INTERRUPTED: Final = 130
COMPLETE: Final = "_SOJOURN_COMPLETE"
"""The variable by which a shell asks for completions."""


def _version(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from sojourn.cli.version import say_version

        say_version(context.ensure_object(Settings))
        context.exit()


@click.group(
    NAME,
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": HELP_NAMES, "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            callback=_version,
            help="Print the version.",
        )
    ],
)
@click.pass_context
def root(context: click.Context) -> None:
    """Keep an AI agent's whole state in a folder of plain files, a capsule, and run it from there.

    A capsule is named by its path or by its name; without one it is the current folder, if that
    is a capsule, else the one that was used last. `sojourn demo` needs no key and no model.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: list[str]) -> int:
    """Run one command; the exit code (docs/cli.md#exit-codes)."""
    settle_streams()
    settings = fresh_settings()
    settings.json = json_wanted(arguments)
    try:
        with root.make_context(NAME, arguments, obj=settings) as context:
            answer = root.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        silence(sys.stdout)
        return 0
    except (Exception, KeyboardInterrupt) as failure:
        return tell(failure, settings)
    return answer if isinstance(answer, int) else 0


def complete(instruction: str) -> int:
    """Answer a shell that asks for completions (see `cli/completion.py`); the exit code."""
    from click.shell_completion import shell_complete

    return shell_complete(root, {}, NAME, COMPLETE, instruction)


def _quiet(_number: int, _frame: object) -> NoReturn:
    """Ctrl-C before anything began: end at once, without a word."""
    os._exit(INTERRUPTED)


def entry() -> NoReturn:
    """What `sojourn` and `python -m sojourn` start."""
    signal.signal(signal.SIGINT, _quiet)
    instruction = os.environ.get(COMPLETE)
    sys.exit(complete(instruction) if instruction else main(sys.argv[1:]))
