"""How `sojourn` and its commands are parsed and explain themselves."""

import importlib
from collections.abc import Sequence
from typing import Any

import click

from sojourn.cli.commands import COMMANDS
from sojourn.cli.settings import global_options


class Command(click.Command):
    """A command with examples, which takes the global options too."""

    def __init__(self, name: str | None, *, examples: Sequence[str] = (), **rest: Any) -> None:
        params: list[click.Parameter] = [*(rest.pop("params", None) or []), *global_options()]
        super().__init__(name, params=params, **rest)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options first, those of every command after them."""
        format_options(self, ctx, formatter)

    def format_epilog(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """Examples, as they would be typed."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"  {example}\n")

    def get_short_help_str(self, limit: int = 45) -> str:
        """The line of the table of commands."""
        listed = COMMANDS.get(self.name or "")
        return listed.summary if listed is not None else super().get_short_help_str(limit)


class LazyGroup(click.Group):
    """`sojourn`: its commands are those of the table, imported when they are named."""

    def __init__(self, name: str, **rest: Any) -> None:
        params: list[click.Parameter] = [*(rest.pop("params", None) or []), *global_options()]
        super().__init__(name, params=params, **rest)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every command, in the order of the help."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """The command of that name, imported now; None when there is none."""
        listed = COMMANDS.get(cmd_name)
        if listed is None:
            return None
        module, _, attribute = listed.place.partition(":")
        return getattr(importlib.import_module(module), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to run.

        Raises: click.NoSuchCommand with names that come near.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=list(COMMANDS), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        """The table of commands by group; no command is imported."""
        width = max(map(len, COMMANDS))
        for group in dict.fromkeys(listed.group for listed in COMMANDS.values()):
            rows = [
                (name.ljust(width), listed.summary)
                for name, listed in COMMANDS.items()
                if listed.group == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first, then the options."""
        self.format_commands(ctx, formatter)
        format_options(self, ctx, formatter)


def format_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """A command's own options, then those that all take."""
    everywhere = {param.name for param in global_options()} | {"version"}
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        row = param.get_help_record(ctx)
        if row is not None and not isinstance(param, click.Argument):
            shared_by_all = param.name in everywhere or "--help" in param.opts
            (shared if shared_by_all else own).append(row)
    for title, rows in (("Options", own), ("Everywhere", shared)):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
