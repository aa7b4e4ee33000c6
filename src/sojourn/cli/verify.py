"""`sojourn verify`: check every byte of a capsule."""

import os
from typing import TYPE_CHECKING

import click

from sojourn.cli.archive_options import identity_option, signers_option
from sojourn.cli.capsules import capsule_argument, find, shape_of
from sojourn.cli.group import Command
from sojourn.cli.people import counted, size
from sojourn.cli.settings import Settings
from sojourn.cli.voice import Painted, Voice
from sojourn.errors import FormatError
from sojourn.format import layout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.agent.archives import Checked
    from sojourn.cli.shapes import FaultShape
    from sojourn.cli.shapes_archive import VerifyAnswer
    from sojourn.format.failures import Finding


@click.command(
    "verify",
    cls=Command,
    examples=[
        "sojourn verify",
        "sojourn verify ./copy --json",
        "sojourn verify research.tar --allowed-signers ~/.ssh/allowed_signers",
    ],
)
@capsule_argument()
@identity_option("an archive")
@signers_option("Fail")
@click.pass_obj
def command(
    settings: Settings,
    capsule: str | None,
    identity: tuple[str, ...],
    allowed_signers: str | None,
) -> int:
    """Check every line, chain, blob and file of CAPSULE against what was written.

    CAPSULE may be an archive, too, which is not unpacked for that. Each thing that is wrong is one
    line with its name, file and line. Nothing is changed. The exit code is 4 when anything is
    wrong; a torn end and the like are notices.
    """
    from sojourn.agent.archives import verify_archive

    if capsule is not None and os.path.isfile(capsule):
        checked = verify_archive(capsule, identities=identity, allowed_signers=allowed_signers)
        answer, known_as = _of_archive(capsule, checked), ""
    else:
        answer, known_as = _of_folder(capsule, allowed_signers)
    voice = Voice(settings)
    if settings.json:
        voice.answer(answer)
    else:
        _print(voice, answer, known_as)
    return 0 if answer.sound else FormatError.exit_code


def _of_folder(capsule: str | None, allowed_signers: str | None) -> "tuple[VerifyAnswer, str]":
    """What was found, and how the capsule is named in advice."""
    from sojourn.agent.archives import check_folder
    from sojourn.cli.carrying import seal_shape, signature_shape
    from sojourn.cli.shapes_archive import VerifyAnswer

    machine, place = find(capsule)
    failures, notices = _sorted(machine.verify(place))
    checked = check_folder(place.folder, allowed_signers=allowed_signers)
    failures += _refusal(checked.refused)
    answer = VerifyAnswer(
        capsule=shape_of(place),
        sound=not failures,
        log_bytes=log_bytes(place.folder),
        blobs=blob_count(place.folder),
        failures=tuple(failures),
        notices=tuple(notices),
        seal=seal_shape(checked.manifest, checked.digest),
        signature=signature_shape(checked.signed),
    )
    return answer, machine.reference(place)


def _of_archive(file: str, checked: "Checked") -> "VerifyAnswer":
    from sojourn.cli.carrying import seal_shape, signature_shape
    from sojourn.cli.shapes import CapsuleShape
    from sojourn.cli.shapes_archive import VerifyAnswer

    failures, notices = _sorted(checked.findings)
    failures += _refusal(checked.refused)
    found = checked.manifest
    name = os.path.basename(file) if found is None else found.name
    return VerifyAnswer(
        capsule=CapsuleShape(
            id="" if found is None else found.capsule, name=name, folder=file, workspace=None
        ),
        sound=not failures and not notices,
        log_bytes=checked.log_bytes,
        blobs=checked.blobs,
        failures=(*failures, *notices),
        notices=(),
        seal=seal_shape(found, checked.digest),
        signature=signature_shape(checked.signed),
    )


def _sorted(findings: "Iterable[Finding]") -> "tuple[list[FaultShape], list[FaultShape]]":
    """What stops a capsule from running, and what does not."""
    from sojourn.cli.shapes import FaultShape
    from sojourn.format.failures import stops_running

    failures: list[FaultShape] = []
    notices: list[FaultShape] = []
    for found in findings:
        shape = FaultShape(
            code=found.code, message=found.message, file=found.file, line=found.line or None
        )
        (failures if stops_running(found.code) else notices).append(shape)
    return failures, notices


def _refusal(refused: FormatError | None) -> "list[FaultShape]":
    """What is wrong with the signature, or with the archive as a whole."""
    from sojourn.cli.shapes import FaultShape

    if refused is None:
        return []
    return [FaultShape(code=refused.code, message=refused.message, file=refused.file)]


def log_bytes(folder: str) -> int:
    """The length of the log, 0 when there is none."""
    try:
        return os.stat(os.path.join(folder, layout.TIMELINE)).st_size
    except OSError:
        return 0


def blob_count(folder: str) -> int:
    """How many blobs lie there."""
    try:
        names = os.listdir(os.path.join(folder, layout.BLOBS))
    except OSError:
        return 0
    return sum(layout.is_blob_name(name) for name in names)


def _print(voice: Voice, answer: "VerifyAnswer", known_as: str) -> None:
    for word, style, faults in (
        ("failure", "bad", answer.failures),
        ("notice", "warn", answer.notices),
    ):
        for fault in faults:
            place = f"{fault.file} line {fault.line}" if fault.line else fault.file or ""
            where = Painted(f"{place}: " if place else "", "bold")
            code = Painted(f"   [{fault.code}]", "dim")
            voice.data(Painted(f"{word}  ", style), where, fault.message, code)
    name = answer.capsule.name
    what = f"{size(answer.log_bytes)} of log, {counted(answer.blobs, 'blob')}"
    if answer.seal is not None:
        from sojourn.cli.carrying import said_of, signed_by

        what += f", {said_of(answer.seal)}"
        if not any(fault.file == layout.SIGNATURE for fault in answer.failures):
            voice.talk("signed by ", *signed_by(answer.signature))
    if answer.sound:
        voice.data(Painted("sound", "good"), f"  {name}: {what}")
        return
    wrong = counted(len(answer.failures), "thing")
    voice.data(Painted("not sound", "bad"), f"  {name}: {wrong} wrong, in {what}")
    if os.path.isfile(answer.capsule.folder):
        voice.talk("Nothing was changed. `sojourn import` will not take it.")
        return
    voice.talk("Nothing was changed. It opens for reading and will not run.")
    voice.talk(
        f"What can be read:  sojourn log {known_as}    What to do:  sojourn doctor {known_as}"
    )
