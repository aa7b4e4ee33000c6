"""How to rebuild the sandbox: names of secrets, never values (docs/format.md#environment)."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from sojourn.errors import FormatError
from sojourn.format import canon, layout, paths
from sojourn.format.event import LockFile
from sojourn.format.failures import Code, say

FORMAT: Final = "sojourn.environment/1"

MINIMAL: Final = b'{\n  "format": "' + FORMAT.encode() + b'",\n  "env": {},\n  "secrets": {}\n}\n'
"""The bytes of the spec of a new capsule; people edit it, so it is laid out for them."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET = re.compile(r"(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(?:_|$)")
_START_UP: Final = frozenset(
    (
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "PYTHONBREAKPOINT",
        "PYTHONWARNINGS",
        "PYTHONEXECUTABLE",
        "PYTHONUSERBASE",
        "PYTHONPLATLIBDIR",
        "PYTHONPYCACHEPREFIX",
    )
)


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """What a secret is for; its name is the key, its value is nowhere in a capsule."""

    description: str = ""
    required: bool = True
    scope: str | tuple[str, ...] = ()


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """What this version reads of the spec; the file keeps the rest."""

    format: str
    env: dict[str, str] = {}
    secrets: dict[str, Secret] = {}


def load(data: bytes) -> Environment:
    """The environment in a spec's bytes.

    Raises: FormatError with file and line: the loader's codes, `environment_malformed` or
    `variable_refused`.
    """
    value = canon.load(data, what=layout.SPEC, limit=layout.MAX_SPEC)
    try:
        environment = msgspec.convert(value, Environment)
    except msgspec.ValidationError as error:
        raise _error("environment_malformed", str(error)) from None
    if environment.format != FORMAT:
        raise _error("environment_malformed", f"format `{environment.format}`")
    for name in (*environment.env, *environment.secrets):
        if not _NAME.fullmatch(name):
            raise _error("environment_malformed", f"{name!r} is no name of a variable")
    for name in environment.env:
        reason = variable_refusal(name)
        if reason is not None:
            line = _line_of(name, data)
            raise _error("variable_refused", f"`{name}`: {reason}", line)
    return environment


def check_files(files: Iterable[LockFile]) -> None:
    """Pass when an event's files of the environment all lie in its folder.

    Raises: FormatError `path_unsafe`.
    """
    for file in files:
        inside = file.path.startswith(layout.ENVIRONMENT + "/")
        if not (inside and paths.may_be_listed(file.path)):
            raise FormatError(
                say("path_unsafe", repr(file.path)), code="path_unsafe", file=layout.TIMELINE
            )


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is taken for a secret.

    A part between underscores equals or ends in TOKEN, KEY, SECRET, PASSWORD, PASSWD or CREDENTIAL,
    or in its plural, so TOKENIZERS_PARALLELISM is none.
    """
    return _SECRET.search(name.upper()) is not None


def variable_refusal(name: str) -> str | None:
    """Why no variable of this name may be set in the environment, or None."""
    upper = name.upper()
    if is_secret_name(name):
        return "it is named like a secret; list it under `secrets`"
    if upper == "PATH" or upper.startswith(("LD_", "GIT_")) or upper in _START_UP:
        return "it would change which programs run"
    return None


def _line_of(name: str, data: bytes) -> int:
    """The first line that holds the quoted name, 1 when an escape hides it."""
    at = data.find(b'"' + name.encode() + b'"')
    return data.count(b"\n", 0, max(at, 0)) + 1


def _error(code: Code, detail: str, line: int = 1) -> FormatError:
    return FormatError(say(code, detail), code=code, file=layout.SPEC, line=line)
