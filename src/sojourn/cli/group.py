"""How `sojourn` and its commands are parsed and explain themselves."""

import importlib
from collections.abc import Sequence
from typing import Any

import click

from sojourn.cli.commands import COMMANDS, GROUPS, Listed
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
        ctx: click.Context,  # noqa: ARG002 - as click calls it
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
    """`sojourn`, or the commands that begin with one word: imported when they are named.

    The table of commands says which there are; a name of two words lies in the group of its first.
    """

    def __init__(self, name: str, **rest: Any) -> None:
        params: list[click.Parameter] = [*(rest.pop("params", None) or []), *global_options()]
        super().__init__(name, params=params, **rest)
        self.prefix = ""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        """Every command, in the order of the help."""
        inside = (name.removeprefix(self.prefix) for name in self._inside())
        return list(dict.fromkeys(name.partition(" ")[0] for name in inside))

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - as click calls it
        cmd_name: str,
    ) -> click.Command | None:
        """The command of that name, imported now; None when there is none."""
        name = self.prefix + cmd_name
        listed = COMMANDS.get(name)
        if listed is not None:
            module, _, attribute = listed.place.partition(":")
            return getattr(importlib.import_module(module), attribute)
        if not any(other.startswith(name + " ") for other in COMMANDS):
            return None
        group = LazyGroup(cmd_name, help=GROUPS[name], invoke_without_command=True)
        group.prefix, group.callback = name + " ", _show_help
        return group

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command to run.

        Raises: click.NoSuchCommand with names that come near.
        """
        known = self.list_commands(ctx)
        two = " ".join(args[:2])
        if len(args) > 1 and args[0] in COMMANDS and two in COMMANDS:
            # A command that takes arguments and has commands of two words beside it.
            return two, self.get_command(ctx, two), args[2:]
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=known, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - as click calls it
        formatter: click.HelpFormatter,
    ) -> None:
        """The table of commands by group; no command is imported."""
        inside = self._inside()
        width = max(map(len, inside))
        for group in dict.fromkeys(listed.group for listed in inside.values()):
            rows = [
                (name.ljust(width), listed.summary)
                for name, listed in inside.items()
                if listed.group == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first, then the options."""
        self.format_commands(ctx, formatter)
        format_options(self, ctx, formatter)

    def _inside(self) -> dict[str, Listed]:
        return {name: row for name, row in COMMANDS.items() if name.startswith(self.prefix)}


def _show_help() -> None:
    """A group that is named without a command explains itself."""
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


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
