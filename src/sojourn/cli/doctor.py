"""`sojourn doctor`: check this machine, or a capsule too, and say what to do."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import capsule_argument
from sojourn.cli.failure import NOT_READY
from sojourn.cli.group import Command
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.cli.shapes import CheckShape

MARKS = {
    "ok": ("ok     ", "good"),
    "note": ("note   ", "dim"),
    "warning": ("warning", "warn"),
    "failed": ("failed ", "bad"),
}


@click.command(
    "doctor",
    cls=Command,
    examples=["sojourn doctor", "sojourn doctor research", "sojourn doctor --json"],
)
@capsule_argument()
@click.pass_obj
def command(settings: Settings, capsule: str | None) -> int:
    """Check Python, the state folder, locks, disk space and keys; with CAPSULE that capsule too.

    Keys are named, never shown. Nothing is changed. The exit code is 6 when a check failed.
    """
    from sojourn.agent import Machine
    from sojourn.cli.checks import of_capsule, of_machine
    from sojourn.cli.shapes import DoctorAnswer

    machine = Machine()
    checks = list(of_machine(machine))
    if capsule is not None:
        checks += of_capsule(machine, machine.find(capsule))
    ready = all(check.result != "failed" for check in checks)
    voice = Voice(settings)
    if settings.json:
        voice.answer(DoctorAnswer(ready=ready, checks=tuple(checks)))
    else:
        _print(voice, checks)
    return 0 if ready else NOT_READY


def _print(voice: Voice, checks: "list[CheckShape]") -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark, style = MARKS[check.result]
        voice.data(Painted(mark, style), f"  {check.name:<{width}}  {check.message}")
        for line in check.fix.splitlines():
            voice.data(" " * (width + 11), Painted(line, "bold"))
