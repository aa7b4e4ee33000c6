"""`sojourn completion`: completion for bash, zsh and fish."""

import click

from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

SHELLS = ("bash", "zsh", "fish")

INSTALL = {
    "bash": 'add to ~/.bashrc:  eval "$(sojourn completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(sojourn completion zsh)"',
    "fish": "run:  sojourn completion fish > ~/.config/fish/completions/sojourn.fish",
}


@click.command(
    "completion",
    cls=Command,
    examples=['eval "$(sojourn completion bash)"', "sojourn completion fish | source"],
)
@click.argument("shell", metavar="SHELL", type=click.Choice(SHELLS), help="bash, zsh or fish.")
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names of capsules in SHELL."""
    from click.shell_completion import get_completion_class

    from sojourn.cli.main import COMPLETE, NAME, root

    settings = context.ensure_object(Settings)
    voice, made = Voice(settings), get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    script = made(root, {}, NAME, COMPLETE).source()
    if settings.json:
        from sojourn.cli.shapes import CompletionAnswer

        voice.answer(CompletionAnswer(shell=shell, script=script))
        return
    voice.out.raw(script.rstrip("\n") + "\n")
    if voice.out.terminal:
        voice.talk(Painted(INSTALL[shell], "dim"))
