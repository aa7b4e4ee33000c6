"""The checks of `sojourn doctor`: each looks, changes nothing that stays, and names a fix."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Final, Literal

from sojourn.agent import Look, Machine, Place
from sojourn.cli.capsules import standing_of
from sojourn.cli.people import ago, counted, size
from sojourn.cli.shapes import CheckShape
from sojourn.core.tenure import MayLook
from sojourn.drive.environment import environment_files, read_environment
from sojourn.errors import FormatError, SojournError
from sojourn.format import layout
from sojourn.format.failures import stops_running
from sojourn.models.choose import keys_seen, ollama_answers
from sojourn.store.mounts import network_type

OLDEST: Final = (3, 11)
SPACE_LOW: Final = 1_000_000_000
"""Bytes of free space below which there is a warning."""

SPACE_OUT: Final = 50_000_000
"""Bytes of free space below which a run would soon stop."""

SHOWN_FAILURES: Final = 5


def _check(
    name: str,
    result: Literal["ok", "note", "warning", "failed"],
    message: str,
    fix: str = "",
) -> CheckShape:
    return CheckShape(name=name, result=result, message=message, fix=fix)


def of_machine(machine: Machine) -> Iterator[CheckShape]:
    """Everything that a run needs of this machine."""
    yield _python()
    folder = _nearest(machine.home)
    yield _state_folder(machine.home, folder)
    yield _file_system(folder)
    yield _lock(folder)
    yield _space(folder)
    yield from _models(machine)
    yield _capsules(machine)


def of_capsule(machine: Machine, place: Place) -> Iterator[CheckShape]:
    """Everything that a run needs of one capsule."""
    name = machine.reference(place)
    yield from _bytes(machine, place, name)
    try:
        look = machine.look(place)
    except SojournError as failure:
        yield _check("capsule", "failed", f"{failure.message} [{failure.code}]", failure.hint)
        return
    if isinstance(look.admission, MayLook):
        admission = look.admission
        yield _check("may run", "failed", f"{admission.message} [{admission.code}]", admission.hint)
    else:
        yield _check("may run", "ok", "this machine holds it")
    yield _workspace(place)
    yield _environment(machine, look)
    yield _model(machine, place, look.model, name)
    if not look.damages:
        yield _turn(name, standing_of(look), look.waiting, ago(look.last_time))
    if look.refused:
        names = ", ".join(look.refused)
        yield _check("inbox", "warning", f"files that are no messages were set aside: {names}")


def _environment(machine: Machine, look: Look) -> CheckShape:
    """The spec as it is now: an edit is refused here before a run refuses it."""
    try:
        wanted = read_environment(environment_files(look.store))
    except FormatError as error:
        fix = f"Mend line {error.line} of {os.path.join(look.place.folder, layout.SPEC)}."
        return _check("environment", "failed", f"{error.message} [{error.code}]", fix)
    missing = [
        name
        for name, secret in wanted.secrets.items()
        if secret.required and name not in machine.environment
    ]
    if missing:
        fix = "Set them in the environment; their values never come into the capsule."
        return _check("environment", "warning", f"secrets not set: {', '.join(missing)}", fix)
    return _check("environment", "ok", "sound")


def _python() -> CheckShape:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST:
        return _check("python", "failed", version, "Use Python 3.11 or newer.")
    return _check("python", "ok", version)


def _nearest(folder: str) -> str:
    """The folder, or the nearest one above it that exists."""
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _state_folder(home: str, folder: str) -> CheckShape:
    name = "state folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        fix = "Make it writable for you, or set SOJOURN_HOME to a folder that is."
        return _check(name, "failed", f"{home} cannot be written", fix)
    if folder != home:
        return _check(name, "ok", f"{home}, made at first use")
    if os.stat(home).st_mode & 0o022:
        return _check(name, "warning", f"{home} can be written by others", f"chmod 700 {home}")
    return _check(name, "ok", home)


def _file_system(folder: str) -> CheckShape:
    kind = network_type(folder)
    if kind is not None:
        fix = (
            "Set SOJOURN_HOME to a folder on a local disk: locks and syncs promise too little here."
        )
        return _check("file system", "failed", f"{folder} is on {kind}", fix)
    return _check("file system", "ok", "local")


def _lock(folder: str) -> CheckShape:
    """Two openings of one file: the second must not get what the first has."""
    import fcntl

    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".sojourn-doctor-") as file:
            os.fsync(file.fileno())
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(file.name, "rb") as again:
                fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _check("locks and syncs", "ok", "work")
    except OSError as failure:
        return _check("locks and syncs", "failed", failure.strerror or "failed")
    fix = "Set SOJOURN_HOME to a folder on a local disk."
    return _check("locks and syncs", "failed", "a lock was given twice", fix)


def _space(folder: str) -> CheckShape:
    free = shutil.disk_usage(folder).free
    message = f"{size(free)} free"
    if free < SPACE_OUT:
        return _check("disk space", "failed", message, "Make room: a full disk stops every run.")
    return _check("disk space", "warning" if free < SPACE_LOW else "ok", message)


def _models(machine: Machine) -> Iterator[CheckShape]:
    seen = keys_seen(machine.environment)
    default = machine.environment.get("SOJOURN_MODEL", "")
    if seen:
        yield _check("model keys", "ok", ", ".join(seen))
    else:
        message = "none seen; scripted/FILE, echo and local servers need none"
        yield _check("model keys", "note", message)
    if default:
        yield _check("SOJOURN_MODEL", "ok", default)
    if ollama_answers(machine.environment):
        yield _check("ollama", "ok", "answers: use -m ollama/NAME")


def _capsules(machine: Machine) -> CheckShape:
    try:
        places = machine.places()
    except SojournError as failure:
        return _check("capsules", "failed", f"{failure.message} [{failure.code}]", failure.hint)
    return _check("capsules", "ok", f"{counted(len(places), 'capsule')} known here")


def _bytes(machine: Machine, place: Place, name: str) -> Iterator[CheckShape]:
    """What `verify` finds, the first few of it."""
    found = list(machine.verify(place))
    wrong = [one for one in found if stops_running(one.code)]
    for one in found[:SHOWN_FAILURES]:
        where = f"{one.file} line {one.line}" if one.line else one.file
        result = "failed" if stops_running(one.code) else "warning"
        yield _check("bytes", result, f"{where}: {one.message} [{one.code}]")
    if not wrong:
        yield _check("bytes", "ok", "all are what was written")
        return
    fix = (
        "Put the damaged file back from a copy, or set the damage aside with `sojourn repair`.\n"
        f"See all of it:  sojourn verify {name}"
    )
    yield _check("damage", "failed", f"{counted(len(wrong), 'thing')} wrong", fix)


def _workspace(place: Place) -> CheckShape:
    if place.workspace is None:
        return _check("workspace", "warning", "this machine knows none")
    if not os.path.isdir(place.workspace):
        return _check(
            "workspace", "failed", f"{place.workspace} is not there", "Put the folder back."
        )
    if not os.access(place.workspace, os.W_OK | os.X_OK):
        return _check("workspace", "warning", f"{place.workspace} cannot be written")
    return _check("workspace", "ok", place.workspace)


def _model(machine: Machine, place: Place, model: str | None, capsule: str) -> CheckShape:
    name = model or machine.environment.get("SOJOURN_MODEL", "")
    if not name:
        fix = f'Name one:  sojourn run {capsule} "..." -m PROVIDER/NAME'
        return _check("model", "warning", "none yet", fix)
    try:
        machine.model_of(place, model) if model else machine.model(name)
    except SojournError as failure:
        return _check(
            "model", "failed", f"{name}: {failure.message} [{failure.code}]", failure.hint
        )
    return _check("model", "ok", name)


def _turn(name: str, standing: str, waiting: int, last: str) -> CheckShape:
    words = standing.replace("_", " ")
    if waiting:
        words += f", {counted(waiting, 'message')} waiting"
    if standing in ("interrupted", "model_failed", "paused", "waiting"):
        return _check("turn", "note", f"{words}, last event {last}", f"sojourn resume {name}")
    if standing == "decision":
        fix = f"sojourn resume {name} --retry | --skip | --result FILE"
        return _check("turn", "note", f"a person must decide, last event {last}", fix)
    return _check("turn", "ok", f"{words}, last event {last}")
