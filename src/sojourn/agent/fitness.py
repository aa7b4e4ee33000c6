"""How far this machine is fit to run a capsule that arrives: the checklist of a move.

docs/moving.md#prepare. Nothing of what arrived runs; what is not known to be missing is not red.
"""

import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sojourn.agent.places import Place
from sojourn.core.migration_messages import Problem
from sojourn.drive.reading import Folded, read_blobs
from sojourn.errors import SojournError
from sojourn.format import environment, layout
from sojourn.format.parts import Text
from sojourn.ids import CapsuleId
from sojourn.ports import Model, Store
from sojourn.render import Target, blobs_needed, dialect

if TYPE_CHECKING:
    from sojourn.agent.machine import Machine


async def judge(machine: "Machine", folded: Folded, store: Store) -> tuple[Problem, ...]:
    """What this machine has and lacks of what the agent needs, one item each."""
    items = [*_environment(machine, store), _tools(folded)]
    configured = folded.transcript.configured
    name = "" if configured is None else configured[1].model
    if not name:
        return (*items, Problem(what="model", ok=True, message="none was chosen yet"))
    place = Place(name="", folder="", capsule=folded.capsule or CapsuleId(""), workspace=None)
    try:
        model = machine.model_of(place, name)
    except SojournError as error:
        items.append(_red("model", error))
        return tuple(items)
    try:
        items.append(Problem(what="model", ok=True, message=name))
        items.append(_rendered(folded, store, model))
    finally:
        await model.aclose()
    return tuple(items)


def _environment(machine: "Machine", store: Store) -> Iterator[Problem]:
    """Secrets by name, Python and programs that the environment's spec asks for."""
    try:
        spec = environment.load(store.read_file(layout.SPEC) or b"")
    except SojournError as error:
        yield _red("environment", error)
        return
    lacking = [
        name
        for name, secret in sorted(spec.secrets.items())
        if secret.required and name not in machine.environment
    ]
    yield _item("secrets", lacking, "secrets_missing", "not set on that machine")
    wanted = None if spec.python is None else spec.python.version
    here = ".".join(str(part) for part in sys.version_info[:3])
    other = wanted is not None and not f"{here}.".startswith(f"{wanted}.")
    yield _item(
        "python", [str(wanted)] if other else [], "python_differs", f"Python there is {here}"
    )
    path = machine.environment.get("PATH")
    programs = [server.command[0] for _, server in sorted(spec.mcp_servers.items())]
    programs += ["node"] if spec.nodejs is not None else []
    gone = [name for name in programs if shutil.which(name, path=path) is None]
    yield _item("programs", gone, "programs_missing", "not found on that machine")


def _tools(folded: Folded) -> Problem:
    from sojourn.tools.toolbox import built_in, toolbox

    configured = folded.transcript.configured
    known = toolbox(built_in())
    specs = () if configured is None else configured[1].tools
    gone = sorted(spec.name for spec in specs if spec.name not in known)
    return _item("tools", gone, "tools_missing", "not among the tools of that machine")


def _rendered(folded: Folded, store: Store, model: Model) -> Problem:
    """Whether the log can be made into a request for the model."""
    transcript, gone = folded.transcript, folded.ending.gone

    def text(text: Text) -> str:
        if isinstance(text, str):
            return text
        return read_blobs(store, (text.sha256,), gone=gone)[text.sha256].decode("utf-8", "replace")

    try:
        configured = transcript.configured
        system: Text = "" if configured is None else configured[1].system
        prompt = transcript.prompt(system=system, memory=text(transcript.first_memory))
        blobs = read_blobs(store, blobs_needed(prompt), gone=gone)
        target = Target(issuer=model.issuer, profile=model.profile)
        dialect(model.profile.dialect).render(prompt, target, blobs)
    except SojournError as error:
        return _red("rendering", error)
    return Problem(what="rendering", ok=True)


def _item(what: str, lacking: list[str], code: str, words: str) -> Problem:
    if not lacking:
        return Problem(what=what, ok=True)
    return Problem(what=what, ok=False, code=code, message=f"{', '.join(lacking)}: {words}")


def _red(what: str, error: SojournError) -> Problem:
    return Problem(what=what, ok=False, code=error.code, message=error.message, hint=error.hint)
