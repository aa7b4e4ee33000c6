"""What can happen to machines in the middle of a move."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from machines.host import Host, Role
from machines.switch import Switch


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The two machines of a move, and the switch between them."""

    source: Host
    target: Host
    switch: Switch
    dice: Random


Trouble = Callable[[Scene], None]


def nothing(scene: Scene) -> None:
    """All goes well."""


def killed(role: Role, *, there: bool) -> Trouble:
    """SIGKILL to the processes of that role, on the source or `there`."""

    def happens(scene: Scene) -> None:
        _signal(scene.target if there else scene.source, role, signal.SIGKILL)

    return happens


def stopped(role: Role, *, there: bool) -> Trouble:
    """SIGSTOP, and SIGCONT up to three seconds later."""

    def happens(scene: Scene) -> None:
        host = scene.target if there else scene.source
        pids = _signal(host, role, signal.SIGSTOP)
        time.sleep(scene.dice.uniform(0.1, 3))
        for pid in pids:
            _kill(pid, signal.SIGCONT)

    return happens


def crashed(*, there: bool) -> Trouble:
    """The whole machine loses its power, and comes back."""

    def happens(scene: Scene) -> None:
        host = scene.target if there else scene.source
        host.crash()
        time.sleep(scene.dice.uniform(0, 1))
        host.boot()
        host.serve()

    return happens


def unplugged(scene: Scene) -> None:
    """The source's cable is out for a while; nobody is told."""
    scene.switch.cut.add(scene.source.name)
    time.sleep(scene.dice.uniform(0.2, 4))
    scene.switch.cut.clear()


ALL: Mapping[str, Trouble] = {
    "nothing": nothing,
    "unplugged": unplugged,
    "mover killed": killed("mover", there=False),
    "mover stopped": stopped("mover", there=False),
    "source daemon killed": killed("daemon", there=False),
    "source daemon stopped": stopped("daemon", there=False),
    "target daemon killed": killed("daemon", there=True),
    "target daemon stopped": stopped("daemon", there=True),
    "source worker killed": killed("worker", there=False),
    "source worker stopped": stopped("worker", there=False),
    "target worker killed": killed("worker", there=True),
    "target worker stopped": stopped("worker", there=True),
    "target pipes killed": killed("pipe", there=True),
    "source crashed": crashed(there=False),
    "target crashed": crashed(there=True),
}


def _signal(host: Host, role: Role, number: int) -> list[int]:
    pids = host.pids(role)
    for pid in pids:
        _kill(pid, number)
    return pids


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
