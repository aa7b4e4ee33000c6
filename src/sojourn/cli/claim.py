"""`sojourn claim`: make this machine the holder of a capsule that another held."""

from typing import TYPE_CHECKING

import click

from sojourn.cli.capsules import complete_capsule, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice

if TYPE_CHECKING:
    from sojourn.agent import Place
    from sojourn.drive.claim import ClaimedCapsule, Risks


@click.command(
    "claim",
    cls=Command,
    examples=[
        "sojourn claim ./research-from-the-old-laptop",
        "sojourn claim ./research --yes --reason 'the old laptop is gone'",
        "sojourn claim research --forced",
    ],
)
@click.argument(
    "capsule", metavar="CAPSULE", shell_complete=complete_capsule, help="A path or a name."
)
@click.option("--forced", is_flag=True, help="Also when another machine may still run it.")
@click.option("--yes", is_flag=True, help="Agree to the risks without being asked.")
@click.option("--reason", metavar="TEXT", default="", help="Why; it is kept in the log.")
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="The folder it works in; what lies there stays.",
)
@click.pass_obj
def command(
    settings: Settings,
    capsule: str,
    forced: bool,
    yes: bool,
    reason: str,
    workspace: str | None,
) -> int:
    """Make this machine the holder of CAPSULE: a copy, a backup, or one whose sides parted.

    It says what that risks, and asks. Nothing can promise that no other machine runs the capsule:
    that is the person's word. Where it may be, --forced says so, and raises the epoch by 1,000.
    A workspace that is not here is filled from the last snapshot; a file of it that differs from
    what lies in DIR stops the command before anything is changed.
    The exit code is 7 when nobody agreed.
    """
    import asyncio

    from sojourn.agent.taking_over import claim
    from sojourn.cli.agreeing import Notes, agree, not_agreed
    from sojourn.cli.snapshot_words import Work

    machine, place = find(capsule)
    voice = Voice(settings)
    word, flag = ("forced", " --forced") if forced else ("claim", "")

    def agreed(risks: "Risks") -> bool:
        again = f"sojourn claim {capsule}{flag}"
        return agree(voice, word, risk_lines(risks, forced=forced), yes=yes, again=again)

    with Work(voice, "wrote", asks=False) as work:
        taken = asyncio.run(
            claim(
                machine,
                place,
                agreed=agreed,
                forced=forced,
                reason=reason,
                workspace=workspace,
                observer=Notes(voice),
                progress=work.progress,
            )
        )
    if taken is None:
        return not_agreed(voice)
    place = machine.find(place.folder)
    _print(voice, place, machine.reference(place), taken, forced=forced)
    return 0


def risk_lines(risks: "Risks", *, forced: bool) -> list[str]:
    """What a claim means, in sentences for the person who must agree."""
    lines = [reason.message for reason in risks.reasons]
    if risks.lost:
        lines.append(
            f"What this machine remembers of {size(risks.lost)} at the end of its log is lost then."
        )
    codes = {reason.code for reason in risks.reasons}
    if codes & {"equivocation", "divergence"}:
        lines.append("Both sides stay in the log, and the agent goes on after both.")
    if forced:
        lines.append(
            "Another machine may still run it. Then both act: calls happen twice, messages reach "
            "one of the two, and their logs part for good. This is the one command that allows it."
        )
    else:
        lines.append(
            "If another machine, or another copy, still runs it, both act and their logs part for "
            "good. Agree only when that one is gone, or will not run it again."
        )
    return lines


def _print(
    voice: Voice, place: "Place", named: str, taken: "ClaimedCapsule", *, forced: bool
) -> None:
    from sojourn.cli.shapes import FaultShape
    from sojourn.cli.shapes_carry import ClaimAnswer

    if voice.settings.json:
        reasons = tuple(
            FaultShape(code=reason.code, message=reason.message) for reason in taken.risks.reasons
        )
        voice.answer(
            ClaimAnswer(
                capsule=shape_of(place),
                done=taken.done,
                forced=forced and taken.done == "claimed",
                epoch=taken.record.epoch,
                reasons=reasons,
                lost_bytes=taken.risks.lost,
            )
        )
        return
    words = {
        "claimed": "is held here now",
        "finished": "is held here: an earlier claim is finished now",
        "held": "was held here already; nothing was claimed",
    }[taken.done]
    voice.data(Painted(place.name, "name"), f" {words}, at epoch {taken.record.epoch}")
    voice.talk(f"it works in {place.workspace}")
    voice.talk(Painted(f"next:  sojourn status {named}", "dim"))
