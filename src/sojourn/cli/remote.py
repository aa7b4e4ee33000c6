"""`sojourn remote`: the machines that this one knows."""

from typing import TYPE_CHECKING, Final

import click

from sojourn.cli.group import Command
from sojourn.cli.people import clock_time, table, took
from sojourn.cli.remotes import close_by, complete_remote
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Machine
    from sojourn.cli.shapes_link import RemoteShape
    from sojourn.peers.book import Known

RIGHTS: Final = ("look", "send", "move")


def remote_shape(known: "Known") -> "RemoteShape":
    """The machine as --json names it."""
    from sojourn.cli.shapes_link import RemoteShape

    return RemoteShape(
        name=known.name,
        machine=known.machine,
        address=known.address,
        pin=known.pin or None,
        rights=known.rights,
        capsules=known.capsules,
        since=known.since,
    )


@click.command(
    "add",
    cls=Command,
    examples=[
        "sojourn remote add box user@box.example",
        "sojourn remote add box ssh://user@box.example:2222",
        "sojourn remote add box https://box.example:7477",
    ],
)
@click.argument("name", metavar="NAME", help="How it is called here.")
@click.argument("address", metavar="ADDRESS", help="Where it is; https:// only when it is paired.")
@click.pass_obj
def add(settings: Settings, name: str, address: str) -> None:
    """Give a machine a name, and keep its key: another one at that ADDRESS is refused from then on.

    It is asked who it is, so it must be reachable now.
    """
    import asyncio

    from sojourn.agent import Machine
    from sojourn.agent.acquaint import introduced
    from sojourn.cli.shapes_link import RemoteAnswer

    machine, voice = Machine(), Voice(settings)
    known = asyncio.run(introduced(machine, name, close_by(address, machine)))
    if settings.json:
        voice.answer(RemoteAnswer(remote=remote_shape(known)))
        return
    voice.data(Painted(name, "name"), f"  machine {known.machine[:12]}  {known.address}")


@click.command("list", cls=Command, examples=["sojourn remote list", "sojourn remote list --json"])
@click.pass_obj
def listing(settings: Settings) -> None:
    """List the machines that this one knows, where they are, and what they may do here."""
    from sojourn.agent import Machine
    from sojourn.agent.links import book_of
    from sojourn.cli.shapes_link import RemoteList

    machine, voice = Machine(), Voice(settings)
    known = book_of(machine).known()
    if settings.json:
        own = machine.ports.key.machine()
        voice.answer(RemoteList(machine=own, remotes=tuple(map(remote_shape, known))))
        return
    if known:
        head = ("NAME", "MACHINE", "ADDRESS", "MAY HERE", "SINCE")
        table(voice.out, head, [_row(one) for one in known])
    else:
        voice.talk("no other machines are known; user@host works without")


def _row(one: "Known") -> tuple[str | Painted, ...]:
    limits = f" ({', '.join(one.capsules)})" if one.capsules else ""
    return (
        Painted(one.name, "name"),
        one.machine[:12],
        one.address or "-",
        (", ".join(one.rights) or "-") + limits,
        clock_time(one.since),
    )


@click.command("rm", cls=Command, examples=["sojourn remote rm box"])
@click.argument("name", metavar="NAME", shell_complete=complete_remote, help="A known machine.")
@click.pass_obj
def remove(settings: Settings, name: str) -> None:
    """Forget a machine: it is not let in by TLS any more, not even by a daemon that runs."""
    from sojourn.agent import Machine
    from sojourn.agent.links import book_of
    from sojourn.cli.shapes_link import RemoteAnswer

    voice = Voice(settings)
    gone = book_of(Machine()).drop(name)
    if settings.json:
        voice.answer(RemoteAnswer(remote=remote_shape(gone)))
        return
    voice.data(f"forgotten: {name}, machine {gone.machine[:12]}")


@click.command(
    "test", cls=Command, examples=["sojourn remote test box", "sojourn remote test user@host"]
)
@click.argument(
    "where", metavar="R", shell_complete=complete_remote, help="A known machine, or an address."
)
@click.pass_obj
def test(settings: Settings, where: str) -> None:
    """Reach a machine, check that it is the known one, and say how long that took."""
    import asyncio

    from sojourn.agent import Machine

    machine = Machine()
    asyncio.run(_test(machine, Voice(settings), close_by(where, machine)))


async def _test(machine: "Machine", voice: Voice, where: str) -> None:
    from sojourn.agent.links import open_peer
    from sojourn.cli.shapes_link import RemoteTest

    clock = machine.ports.clock
    begun = clock.monotonic()
    async with open_peer(machine, where) as peer:
        connected = clock.monotonic()
        hello = await peer.again()
        answered = clock.monotonic()
        first, second = (connected - begun) * 1000, (answered - connected) * 1000
        if voice.settings.json:
            voice.answer(
                RemoteTest(
                    machine=hello.machine,
                    address=peer.address,
                    version=hello.version,
                    connected_milliseconds=first,
                    answer_milliseconds=second,
                )
            )
            return
        voice.data(
            Painted("ok  ", "good"),
            f"machine {hello.machine[:12]} at {peer.address}, sojourn {hello.version}",
        )
        voice.talk(Painted(f"reached in {took(first)}, one answer in {took(second)}", "dim"))
