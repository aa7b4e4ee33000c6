"""Where the capsules of this machine are: by path, by name, or the one last used."""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.core.ledger_record import LedgerRecord
from sojourn.drive.machine import Ports
from sojourn.drive.reading import read_manifest
from sojourn.errors import FormatError, NotFoundError, SojournError, UsageError
from sojourn.format import layout
from sojourn.ids import CapsuleId
from sojourn.store.state import StateFolder

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A capsule in its folder; `workspace` is the live folder its agent works in.

    `capsule` is empty while the manifest cannot be read, and `workspace` is None when this machine
    knows none.
    """

    name: str
    folder: str
    capsule: CapsuleId
    workspace: str | None


def is_capsule(folder: str) -> bool:
    """Whether a capsule lies in the folder, sound or not."""
    return any(
        os.path.lexists(os.path.join(folder, name)) for name in (layout.MANIFEST, layout.TIMELINE)
    )


def place_at(ports: Ports, folder: str) -> Place:
    """The capsule in this folder.

    Raises: NotFoundError when there is none.
    """
    folder = os.path.realpath(folder)
    if not is_capsule(folder):
        raise NotFoundError(
            f"there is no capsule in {folder}",
            code="no_capsule",
            hint="`sojourn ps -a` lists the capsules of this machine; `sojourn init` makes one.",
        )
    try:
        found = read_manifest(ports.store_at(folder))
    except FormatError:
        return Place(
            name=os.path.basename(folder), folder=folder, capsule=CapsuleId(""), workspace=None
        )
    record = record_of(ports, found.capsule)
    workspace = None if record is None else record.workspace
    return Place(name=found.name, folder=folder, capsule=found.capsule, workspace=workspace)


def record_of(ports: Ports, capsule: CapsuleId) -> LedgerRecord | None:
    """The ledger's record, None when there is none that can be read."""
    try:
        return ports.ledger.load(capsule)
    except SojournError:
        return None


def known_places(ports: Ports) -> tuple[Place, ...]:
    """Every capsule that this machine holds, held or imported, and whose folder exists, by name."""
    found: list[Place] = []
    for capsule in ports.ledger.capsules():
        record = record_of(ports, capsule)
        if record is None or (record.state == "NONE" and not record.sealed.number):
            continue
        if is_capsule(record.folder):
            found.append(place_at(ports, record.folder))
    return tuple(sorted(found, key=lambda place: (place.name, place.folder)))


def reference(place: Place, known: Sequence[Place]) -> str:
    """How a person names this capsule in a shell so that `find_place` finds this one again.

    Its name, or its folder's path where that name means another capsule, several, or none; `known`
    are the capsules that this machine knows.
    """
    if NAME.fullmatch(place.name) is not None:
        found = {one.folder for one in known if one.name == place.name}
        if is_capsule(place.name):
            found.add(os.path.realpath(place.name))
        if found == {place.folder}:
            return place.name
    return shlex.quote(place.folder)


def missing_folders(ports: Ports) -> tuple[str, ...]:
    """Folders where the ledger expects a capsule and none is."""
    records = (record_of(ports, capsule) for capsule in ports.ledger.capsules())
    held = (r for r in records if r is not None and r.state != "NONE")
    return tuple(r.folder for r in held if not is_capsule(r.folder))


def find_place(ports: Ports, where: str | None, *, last_used: CapsuleId | None) -> Place:
    """The capsule that `where` names: a folder, or a name that this machine knows.

    Without `where`: the current folder when it is a capsule, else the one last used.

    Raises: NotFoundError with the choices; UsageError `name_twice` when a name fits several.
    """
    if where is None:
        if is_capsule(os.curdir):
            return place_at(ports, os.curdir)
        record = None if last_used is None else record_of(ports, last_used)
        if record is not None and is_capsule(record.folder):
            return place_at(ports, record.folder)
        raise _none_by_default(ports, None if record is None else record.folder)
    if is_capsule(where):
        return place_at(ports, where)
    places = known_places(ports)
    named = [place for place in places if place.name == where]
    fitting = named or [p for p in places if os.path.basename(p.folder) == where]
    if len(fitting) > 1:
        raise UsageError(
            f"{len(fitting)} capsules are called {where}",
            code="name_twice",
            hint="Name one by its folder: "
            + ", ".join(shlex.quote(place.folder) for place in fitting),
        )
    if fitting:
        return fitting[0]
    raise _no_capsule(ports, where, places)


def _none_by_default(ports: Ports, used: str | None) -> NotFoundError:
    """No capsule is named, and none is meant; `used` is where the one lay that was used last."""
    here, places = os.path.realpath(os.curdir), known_places(ports)
    working = [reference(place, places) for place in places if place.workspace == here]
    what = f"is where {', '.join(working)} works" if working else "holds none"
    gone = "none was used before" if used is None else f"the last one is not in {used} any more"
    known = ", ".join(reference(place, places) for place in places)
    return NotFoundError(
        f"no capsule is named; the current folder {what}, and {gone}",
        code="no_capsule",
        state="Nothing was done.",
        hint=f"Name one of these: {known}." if known else "Make one:  sojourn init -n NAME",
    )


def _no_capsule(ports: Ports, where: str, places: tuple[Place, ...]) -> NotFoundError:
    """What `where` is instead of a capsule, and how to find or make one."""
    path, name = shlex.quote(where), NAME.fullmatch(where) is not None
    here = os.path.realpath(where)
    working = [reference(place, places) for place in places if place.workspace == here]
    makes = f"`sojourn init -n {path}` makes one of that name." if name else ""
    if working:
        what = f"{where} is no capsule: it is the folder that {', '.join(working)} works in"
    elif os.path.isdir(where):
        what = f"the folder {where} holds no capsule"
        makes = f"`sojourn init {path}` makes one in it."
    elif os.path.lexists(where):
        what, makes = f"{where} is a file, and a capsule is a folder", ""
    elif name:
        what = f"there is no capsule called {where}, and no folder of that name here"
    else:
        what, makes = f"there is nothing at {where}", f"`sojourn init {path}` makes one there."
    known = ", ".join(reference(place, places) for place in places) or "none"
    gone = ", ".join(missing_folders(ports))
    return NotFoundError(
        what,
        code="no_capsule",
        state=f"These folders held capsules and are not there now: {gone}." if gone else "",
        hint=f"Known here (`sojourn ps -a`): {known}. {makes}".rstrip(),
    )


def last_used(state: StateFolder) -> CapsuleId | None:
    """The capsule that was held last, None when that is not known."""
    try:
        handle = os.open(_used(state), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(handle, "rb") as file:
        text = file.read(65).decode("ascii", "replace").strip()
    return CapsuleId(text) if layout.BLOB_NAME.fullmatch(text) else None


def use(state: StateFolder, capsule: CapsuleId) -> None:
    """Remember it as the last used one; losing this loses nothing."""
    try:
        os.makedirs(state.root, mode=0o700, exist_ok=True)
        with open(_used(state), "w", encoding="utf-8") as file:
            file.write(capsule)
    except OSError:
        return


def _used(state: StateFolder) -> str:
    return os.path.join(state.root, "last-used")


def check_name(name: str) -> str:
    """The name itself.

    Raises: UsageError `name_refused` when it is not 1 to 64 letters, digits and `._-`.
    """
    if NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} cannot be a capsule's name",
            code="name_refused",
            state="Nothing was made.",
            hint="Use 1 to 64 letters, digits and `._-`, beginning with a letter or digit.",
        )
    return name


def check_apart(folder: str, workspace: str) -> None:
    """Refuse a capsule inside its workspace, and the other way round.

    Raises: UsageError `folders_nested`.
    """
    parts = (os.path.realpath(folder), os.path.realpath(workspace))
    if os.path.commonpath(parts) in parts:
        raise UsageError(
            "neither the capsule nor its workspace may lie inside the other",
            code="folders_nested",
            state="Nothing was made.",
            hint="Choose another folder for one of them.",
        )


def is_other_folder(there: str, here: str) -> bool:
    """Whether something lies at `there` that is not the folder `here`."""
    return os.path.lexists(there) and not (os.path.exists(there) and os.path.samefile(there, here))
