"""What was asked of every command alike: the options that stand before or after its name."""

import os
import sys
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Final

import click

from sojourn.errors import NotFoundError


@dataclass(slots=True)
class Settings:
    """The global options of one run of the command line.

    `verbose` counts -v: from 1 on reasoning and tool output are shown, from 2 on tracebacks.
    """

    json: bool = False
    quiet: bool = False
    verbose: int = 0
    colour: bool = True


def fresh_settings() -> Settings:
    """What holds when no option is given; NO_COLOR counts when it is set and not empty."""
    return Settings(colour=not os.environ.get("NO_COLOR"))


def json_wanted(arguments: list[str]) -> bool:
    """Was --json among the arguments: asked before parsing, so that wrong use answers in JSON."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _settings(context: click.Context) -> Settings:
    return context.ensure_object(Settings)


def _go(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    try:
        os.chdir(value)
    except OSError as failure:
        if context.resilient_parsing:
            return
        raise NotFoundError(
            f"cannot go to {value}: {failure.strerror}",
            code="folder_missing",
            state="Nothing was done.",
            hint="Give -C a folder that exists.",
        ) from None


def _json(context: click.Context, _option: click.Parameter, value: bool) -> None:
    settings = _settings(context)
    settings.json = settings.json or value


def _quiet(context: click.Context, _option: click.Parameter, value: bool) -> None:
    settings = _settings(context)
    settings.quiet = settings.quiet or value


def _verbose(context: click.Context, _option: click.Parameter, value: int) -> None:
    _settings(context).verbose += value


def _no_colour(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        _settings(context).colour = False


GLOBAL_OPTIONS: Final = ("-C", "--json", "-q", "-v", "--no-color")


def global_options() -> list[click.Parameter]:
    """The options that every command takes, and `sojourn` itself before the command's name."""
    return [
        click.Option(
            ["-C", "go"],
            metavar="DIR",
            expose_value=False,
            is_eager=True,
            callback=_go,
            help="Go to DIR first.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_json,
            help="Answer in JSON: one object, or one a line for log, run, resume and work.",
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_quiet,
            help="No talk on stderr, only data and errors.",
        ),
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_verbose,
            help="Say more; -vv adds tracebacks to errors.",
        ),
        click.Option(
            ["--no-color"],
            is_flag=True,
            expose_value=False,
            callback=_no_colour,
            help="No colours; NO_COLOR in the environment means the same.",
        ),
    ]


def settle_streams() -> None:
    """A character that the terminal's encoding lacks is escaped instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
