"""Where the file of a scripted model lies: known to this machine, never to the capsule.

The log keeps the file's name alone (docs/models.md#scripted-models). The folder is the machine's
own to know, one small file a capsule in the state folder; when it is lost the current folder and
the workspace are looked at.
"""

import os
from typing import Final

from sojourn.agent.places import Place
from sojourn.errors import NotFoundError
from sojourn.format.layout import BLOB_NAME
from sojourn.ids import CapsuleId
from sojourn.store.state import StateFolder

PREFIX: Final = "scripted/"
PATH_BYTES: Final = 4096


def written_name(model: str) -> str:
    """The model's name as a capsule holds it: of a script's path only the file's name."""
    if not model.startswith(PREFIX):
        return model
    return PREFIX + os.path.basename(model.removeprefix(PREFIX))


def remember(state: StateFolder, capsule: CapsuleId, model: str) -> None:
    """Keep where the script lies that was named from the current folder; losing it loses little."""
    if not model.startswith(PREFIX) or BLOB_NAME.fullmatch(capsule) is None:
        return
    path = os.path.abspath(model.removeprefix(PREFIX))
    try:
        os.makedirs(state.scripts, mode=0o700, exist_ok=True)
        with open(_file(state, capsule), "wb") as file:
            file.write(os.fsencode(path))
    except OSError:
        return


def located(state: StateFolder, place: Place, model: str) -> str:
    """The model's name with the path of its script, as the log's name is meant on this machine.

    Raises: NotFoundError `script_missing` that names every place where it is not.
    """
    if not model.startswith(PREFIX):
        return model
    name = model.removeprefix(PREFIX)
    known = _remembered(state, place.capsule)
    looked: dict[str, str] = {}
    if os.path.basename(known) == os.path.basename(name):
        looked[known] = "where it was last"
    looked.setdefault(os.path.join(os.getcwd(), name), "the current folder")
    if place.workspace is not None:
        looked.setdefault(os.path.join(place.workspace, name), "the workspace")
    for path in looked:
        if os.path.isfile(path):
            return PREFIX + path
    places = ", ".join(f"{path} ({what})" for path, what in looked.items())
    raise NotFoundError(
        f"the script {name} of this agent's model is not there; looked at {places}",
        code="script_missing",
        state="Nothing was run.",
        hint="Put it into one of these places, or say where it is:  -m scripted/PATH",
    )


def _remembered(state: StateFolder, capsule: CapsuleId) -> str:
    """The path that was kept, empty when there is none."""
    try:
        handle = os.open(_file(state, capsule), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with open(handle, "rb") as file:
        return os.fsdecode(file.read(PATH_BYTES))


def _file(state: StateFolder, capsule: CapsuleId) -> str:
    return f"{state.scripts}/{capsule}"
