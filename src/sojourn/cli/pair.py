"""`sojourn pair`: two people introduce their machines to each other."""

import asyncio
import sys
from typing import TYPE_CHECKING, Final

import click

from sojourn.cli.group import Command
from sojourn.cli.remote import RIGHTS, remote_shape
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import DecisionError, PeerError

if TYPE_CHECKING:
    from sojourn.agent import Machine
    from sojourn.agent.acquaint import Wishes
    from sojourn.cli.shapes_link import PairAnswer
    from sojourn.peers.book import Known

POLL_SECONDS: Final = 0.3
WAIT_SECONDS: Final = 600.0
"""How long the other person may take."""


@click.command(
    "pair",
    cls=Command,
    examples=[
        "sojourn pair",
        "sojourn pair https://other.example:7477",
        "sojourn pair https://other.example --as other --allow look --allow send",
    ],
)
@click.argument("host", metavar="[HOST]", required=False, help="The machine that waits.")
@click.option("--as", "name", metavar="NAME", default="", help="How the other is called here.")
@click.option("--name", "own", metavar="NAME", default="", help="How this one is called there.")
@click.option(
    "--address", metavar="URL", default="", help="Where this machine serves by TLS, if it does."
)
@click.option(
    "--allow",
    "rights",
    type=click.Choice(RIGHTS),
    multiple=True,
    help="What the other may do here: see capsules, send messages, move capsules here; "
    "by default all three.",
)
@click.option(
    "--capsule", "capsules", metavar="C", multiple=True, help="Only with this capsule; repeatable."
)
@click.pass_obj
def command(
    settings: Settings,
    host: str | None,
    name: str,
    own: str,
    address: str,
    rights: tuple[str, ...],
    capsules: tuple[str, ...],
) -> int:
    """Introduce this machine and another one, so that they reach each other by TLS.

    One person runs `sojourn pair` and waits, the other gives HOST. Both screens show a code; each
    of the two says yes only when the other one reads out the same. Then each machine knows the key
    and the certificate of the other, and nobody can stand between them.
    By ssh nothing has to be paired. The exit code is 7 when somebody said no.
    """
    from sojourn.agent import Machine
    from sojourn.agent.acquaint import Wishes

    machine = Machine()
    wishes = Wishes(
        name=name,
        own=own or _own_name(),
        address=address,
        rights=tuple(right for right in RIGHTS if not rights or right in rights),
        capsules=capsules,
    )
    voice = Voice(settings)
    try:
        if host is not None:
            return asyncio.run(_go(machine, voice, host, wishes))
        from sojourn.daemon.start import ensure

        ensure(machine)
        return asyncio.run(_wait(machine, voice, wishes))
    except TimeoutError:
        raise PeerError(
            f"nothing came within {WAIT_SECONDS / 60:.0f} minutes",
            code="pairing_late",
            state="This machine is closed again.",
            hint="Run `sojourn pair` again when the other person is there.",
        ) from None


async def _go(machine: "Machine", voice: Voice, host: str, wishes: "Wishes") -> int:
    """The side of the person who goes to the other machine."""
    from sojourn.agent.acquaint import going
    from sojourn.cli.shapes_link import PairAnswer

    async with going(machine, host, wishes) as meeting:
        if not _same_code(voice, meeting.shown, meeting.other.name, meeting.other.machine):
            return _refused(voice)
        known = meeting.agree()
        voice.talk(Painted("waiting for the other person to say so too", "dim"))
        there = await meeting.there()
        async with asyncio.timeout(WAIT_SECONDS):
            while there == "waiting":
                await asyncio.sleep(POLL_SECONDS)
                there = await meeting.there()
    if there == "refused":
        from sojourn.agent.links import book_of

        book_of(machine).drop(known.name)
        return _refused(voice)
    _say(voice, PairAnswer(remote=remote_shape(known)), known)
    return 0


async def _wait(machine: "Machine", voice: Voice, wishes: "Wishes") -> int:
    """The side of the person whose machine waits."""
    from sojourn.agent.acquaint import waiting
    from sojourn.cli.shapes_link import PairAnswer

    async with waiting(machine, wishes) as meeting:
        voice.talk("waiting for the other machine; there:  sojourn pair https://THIS_MACHINE:PORT")
        voice.talk(Painted("this one must serve by TLS: sojourn serve --listen HOST:PORT", "dim"))
        state = await meeting.state()
        async with asyncio.timeout(WAIT_SECONDS):
            while state.state in ("open", "asked"):
                await asyncio.sleep(POLL_SECONDS)
                state = await meeting.state()
        if state.state == "closed":
            raise PeerError(
                "the other machine did not keep to the rules of a pairing",
                code="pairing_broken",
                state="Nobody was let in.",
                hint="Somebody may stand between the two machines. Try again over another network.",
            )
        agreed = _same_code(voice, state.code, state.name, state.machine)
        known = await meeting.decide(state.code, agreed=agreed)
    if known is None:
        return _refused(voice)
    _say(voice, PairAnswer(remote=remote_shape(known)), known)
    return 0


def _same_code(voice: Voice, code: str, name: str, machine: str) -> bool:
    """Whether the person says that the other screen shows the same."""
    voice.before_talk()
    voice.err.line("code  ", Painted(code, "alarm"), f"   ({name}, machine {machine[:12]})")
    voice.err.put("Does the other screen show the same code? Type yes or no: ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _refused(voice: Voice) -> int:
    voice.talk("Not paired: the codes were not the same for both. Nobody was let in.")
    return DecisionError.exit_code


def _say(voice: Voice, answer: "PairAnswer", known: "Known") -> None:
    if voice.settings.json:
        voice.answer(answer)
        return
    voice.data(Painted("paired ", "good"), f"{known.name}  machine {known.machine[:12]}")
    if known.rights:
        voice.talk(f"it may do here: {', '.join(known.rights)}")


def _own_name() -> str:
    """What this machine calls itself: the first part of its host's name."""
    import re
    import socket

    name = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname().partition(".")[0]).strip("-._")
    return name[:64] or "machine"
