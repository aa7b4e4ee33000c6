"""`sojourn log`: what happened, event by event, and what happens next with -f."""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from sojourn.cli.capsules import capsule_argument, find
from sojourn.cli.group import Command
from sojourn.cli.people import ago, clock_time
from sojourn.cli.remotes import close_by, find_there, remote_option
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import UsageError

if TYPE_CHECKING:
    from sojourn.agent import Look
    from sojourn.agent.look import Numbered, Tail

FOLLOW_SECONDS: Final = 0.25
"""How often the length of a followed log is looked at; it is read only when that changed."""

TEXT_LINES: Final = 12
"""Lines of an event's text that are shown without -v."""

STYLES: Final = {
    "input": "name",
    "model_outcome": "bold",
    "tool_outcome": "plain",
    "turn_paused": "warn",
    "cut": "warn",
}


@click.command(
    "log",
    cls=Command,
    examples=[
        "sojourn log research -n 20 --oneline",
        "sojourn log research -f",
        "sojourn log research -f --remote box",
        "sojourn log research --kind tool --kind input",
        "sojourn log research --json | jq .event.kind",
    ],
)
@capsule_argument()
@click.option(
    "-n", "count", type=click.IntRange(min=0, max=10**9), metavar="N", help="The last N events."
)
@click.option("-f", "--follow", is_flag=True, help="Stay, and show events as they come.")
@click.option(
    "--kind",
    "kinds",
    metavar="K",
    multiple=True,
    help="Only events of kind K, or of kinds that begin so; may be repeated.",
)
@click.option("--oneline", is_flag=True, help="One line an event.")
@remote_option()
@click.pass_obj
def command(
    settings: Settings,
    capsule: str | None,
    count: int | None,
    follow: bool,
    kinds: tuple[str, ...],
    oneline: bool,
    remote: str | None,
) -> int:
    """Show the events of CAPSULE, the oldest first.

    A call that may have happened is marked so. With -v texts are shown whole, and the system prompt
    where it was set or changed.
    """
    check_kinds(kinds)
    if remote is not None:
        shown = _Shown(Voice(settings), "", kinds=kinds, oneline=oneline)
        return _there(shown, remote, capsule, count=count, follow=follow)
    machine, place = find(capsule)
    look, voice = machine.look(place), Voice(settings)
    shown, tail = _Shown(voice, place.capsule, kinds=kinds, oneline=oneline), look.tail()
    past = shown.fitting(tail.more() if follow else tail.all())
    for one in past if count is None else deque(past, maxlen=count):
        shown.show(one)
    if not follow:
        return 0
    try:
        for one in shown.fitting(_added(look, tail, shown.seen)):
            shown.show(one)
    except KeyboardInterrupt:
        return 130
    return 0


def check_kinds(kinds: Iterable[str]) -> None:
    """Every kind is one that this version knows, or the beginning of one.

    Raises: UsageError `kind_unknown`.
    """
    from sojourn.format.event import KINDS

    known = sorted(KINDS)
    for kind in kinds:
        if any(name.startswith(kind) for name in known):
            continue
        near = get_close_matches(kind, known, n=1)
        raise UsageError(
            f"there is no kind of event {kind}",
            code="kind_unknown",
            hint=(f"Did you mean {near[0]}? " if near else "") + f"Kinds: {', '.join(known)}.",
        )


class _Shown:
    """Shows events of some kinds, or of all, in the form that was asked for."""

    def __init__(
        self, voice: Voice, capsule: str, *, kinds: tuple[str, ...], oneline: bool
    ) -> None:
        self.seen = 0
        self._voice = voice
        self._kinds = kinds
        self._oneline = oneline
        self.of(capsule)

    def of(self, capsule: str) -> None:
        """Show events of this capsule from here on."""
        from sojourn.cli.events import Calls
        from sojourn.ids import CapsuleId

        self._capsule = capsule
        self._calls: Calls = Calls(CapsuleId(capsule))

    def fitting(self, events: "Iterable[Numbered]") -> "Iterator[Numbered]":
        """Those of the wanted kinds; what calls ask for is remembered from all."""
        for one in events:
            self.seen += 1
            self._calls.take(one.event)
            if not self._kinds or one.event.header.kind.startswith(self._kinds):
                yield one

    def all(self, events: "Iterable[Numbered]") -> None:
        """Those of them that are wanted."""
        for one in self.fitting(events):
            self.show(one)

    def show(self, one: "Numbered") -> None:
        """One event."""
        from sojourn.cli.events import shape_of_event, words_of

        event = one.event
        if self._voice.settings.json:
            from sojourn.cli.shapes import EventLine

            shape = shape_of_event(event, one.number)
            self._voice.answer(EventLine(capsule=self._capsule, event=shape))
            return
        words, header = words_of(event, self._calls), event.header
        kind = Painted(f"{header.kind:<14}", STYLES.get(header.kind, "dim"))
        number, short = f"{one.number:>5} ", Painted(f"{event.id[:8]} ", "dim")
        if self._oneline:
            self._voice.data(number, short, kind, " ", *words.line)
            return
        when = Painted(f"  {clock_time(header.time)}, {ago(header.time)}", "dim")
        self._voice.data(number, short, kind, when)
        self._voice.data("      ", *words.line)
        lines = words.text.splitlines()
        most = TEXT_LINES
        if self._voice.settings.verbose:
            lines += words.more.splitlines()
            most = len(lines)
        for line in lines[:most]:
            self._voice.data(Painted("      | ", "dim"), line)
        if len(lines) > most:
            self._voice.data(Painted(f"      | … {len(lines) - most} more lines: -v", "dim"))


def _added(look: "Look", tail: "Tail", seen: int) -> "Iterator[Numbered]":
    """Events as they are added, after the first `seen`; ends only by an interrupt.

    The log grows shorter only when a torn end is cut; it is then read again from its start.
    """
    length = -1
    while True:
        now = look.store.size()
        if now < length:
            tail = look.tail()
            yield from islice(tail.more(), seen, None)
        elif now > length:
            for one in tail.more():
                seen += 1
                yield one
        length = now
        time.sleep(FOLLOW_SECONDS)


def _there(
    shown: _Shown, remote: str, capsule: str | None, *, count: int | None, follow: bool
) -> int:
    """The log of a capsule on another machine."""
    import asyncio

    try:
        asyncio.run(_show_there(shown, remote, capsule, count=count, follow=follow))
    except KeyboardInterrupt:
        return 130
    return 0


async def _show_there(
    shown: _Shown, remote: str, capsule: str | None, *, count: int | None, follow: bool
) -> None:
    from sojourn.agent import Machine
    from sojourn.agent.far_log import FarLog
    from sojourn.agent.links import open_peer

    machine = Machine()
    async with open_peer(machine, close_by(remote, machine)) as peer:
        listed = await find_there(peer, capsule)
        shown.of(listed.capsule)
        far, past = FarLog(peer, listed.capsule), deque["Numbered"](maxlen=count)
        async for one in far.more(follow=False):
            past.extend(shown.fitting((one,)))
        if not follow:
            past.extend(shown.fitting(far.rest()))
        for one in past:
            shown.show(one)
        while follow:
            async for one in far.more(follow=True):
                shown.all((one,))
