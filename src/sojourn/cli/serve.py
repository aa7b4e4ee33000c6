"""`sojourn serve`: the daemon of this machine, by which others reach it."""

import os
from typing import TYPE_CHECKING

import click

from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.daemon.serve import Begun


@click.command(
    "serve",
    cls=Command,
    examples=[
        "sojourn serve",
        "sojourn serve --listen 0.0.0.0:7477",
        "ssh host sojourn serve --stdio",
    ],
)
@click.option("--listen", metavar="HOST:PORT", default="", help="Take paired machines by TLS, too.")
@click.option(
    "--stdio",
    is_flag=True,
    help="Be a pipe to the daemon, which is started if none runs: what ssh calls.",
)
@click.option("--no-work", is_flag=True, help="Do not take the turns that wait here.")
@click.option("--ready-fd", type=int, default=-1, hidden=True)
@click.pass_obj
def command(settings: Settings, listen: str, stdio: bool, no_work: bool, ready_fd: int) -> None:
    """Serve this machine's capsules on its socket, and by TLS if asked for, until SIGTERM.

    A machine has one daemon; commands that need it start it. Over the socket, and so by ssh, the
    account is what lets somebody in; by TLS only machines that were paired. Agents run in a process
    of their own, which takes the turns that wait as `sojourn work --watch` does.
    """
    from sojourn.agent import Machine

    machine = Machine()
    if stdio:
        from sojourn.daemon.stdio import pipe

        pipe(machine)
        return

    import asyncio

    from sojourn.daemon.serve import serve

    voice = Voice(settings)

    def begun(said: "Begun") -> None:
        _say(voice, machine.ports.key.machine(), said)
        if ready_fd >= 0:
            os.write(ready_fd, b"\n")
            os.close(ready_fd)

    asyncio.run(
        serve(
            machine,
            listen=listen,
            works=not no_work,
            begun=begun,
        )
    )


def _say(voice: Voice, machine: str, said: "Begun") -> None:
    if voice.settings.json:
        from sojourn.cli.shapes_link import ServeAnswer

        voice.answer(
            ServeAnswer(machine=machine, socket=said.socket, listen=said.listen, boot=said.boot)
        )
        return
    voice.data(Painted("serving ", "good"), said.socket)
    if said.listen:
        voice.data(Painted("and TLS ", "good"), f"https://{said.listen}")
    voice.talk(Painted(f"machine {machine}", "dim"))
