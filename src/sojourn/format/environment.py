"""How to rebuild the sandbox: names of secrets, never values (docs/format.md#environment)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from sojourn.errors import FormatError
from sojourn.format import canon, layout, paths
from sojourn.format.blob import blob_id
from sojourn.format.environment_spec import Environment
from sojourn.format.event import LockFile
from sojourn.format.failures import Code, say
from sojourn.format.place import line_of

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


_SCOPE = re.compile(r"model|setup|(?:tool|mcp):[A-Za-z0-9_.-]{1,64}")
_DOMAIN = re.compile(r"(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9-]{1,63}")
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@")
_PLACE = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")

Path: TypeAlias = tuple[str | int, ...]
Fault: TypeAlias = tuple[Path, str]
"""Where a spec is not as it should be, and how."""


def load(data: bytes) -> Environment:
    """The environment in a spec's bytes.

    Raises: FormatError with file and line: the loader's codes, `environment_malformed` or
    `variable_refused`.
    """
    value = canon.load(data, what=layout.SPEC, limit=layout.MAX_SPEC)
    try:
        environment = msgspec.convert(value, Environment)
    except msgspec.ValidationError as error:
        message = str(error)
        line = line_of(data, _misfit(value, message))
        raise _error("environment_malformed", message, line) from None
    if environment.format != FORMAT:
        detail = f"format `{environment.format}`"
        raise _error("environment_malformed", detail, line_of(data, ("format",)))
    for place, detail in chain(_names(environment), _places(environment), _passwords(value, ())):
        raise _error("environment_malformed", detail, line_of(data, place))
    for name in environment.env:
        reason = variable_refusal(name)
        if reason is not None:
            raise _error("variable_refused", f"`{name}`: {reason}", line_of(data, ("env", name)))
    return environment


def _names(spec: Environment) -> Iterator[Fault]:
    """Names that are none, of variables, secrets, scopes and hosts."""
    for field, names in (("env", spec.env), ("secrets", spec.secrets)):
        for name in names:
            if not _NAME.fullmatch(name):
                yield (field, name), f"{name!r} is no name of a variable"
    for name, value in spec.env.items():
        if "\0" in value:
            yield ("env", name), f"the value of {name} holds a NUL"
    for name, secret in spec.secrets.items():
        scopes = (secret.scope,) if isinstance(secret.scope, str) else secret.scope
        for scope in scopes:
            if not _SCOPE.fullmatch(scope):
                yield ("secrets", name, "scope"), f"{scope!r} is no scope of a secret"
    for name, server in spec.mcp_servers.items():
        for secret in server.secrets:
            if secret not in spec.secrets:
                yield ("mcp_servers", name, "secrets"), f"{secret!r} is not under `secrets`"
    for index, domain in enumerate(() if spec.network is None else spec.network.allowed_domains):
        if len(domain) > 253 or not _DOMAIN.fullmatch(domain):
            yield ("network", "allowed_domains", index), f"{domain!r} is no name of a host"


def _places(spec: Environment) -> Iterator[Fault]:
    """Files that do not lie where files of the environment may lie."""
    for field, locked in (("python", spec.python), ("node", spec.nodejs)):
        if locked is None:
            continue
        if locked.lock is not None and not _is_beside(locked.lock):
            yield (field, "lock"), f"{locked.lock!r} is no file beside the spec"
        if locked.lock_sha256 is not None and locked.lock is None:
            yield (field, "lock_sha256"), "there is no `lock` that it is the sha256 of"
    for index, file in enumerate(spec.files):
        if not _is_beside(file.source):
            yield ("files", index, "from"), f"{file.source!r} is no file beside the spec"
        unsafe = paths.unsafe(file.path)
        if unsafe is not None:
            yield ("files", index, "path"), f"{file.path!r}: {unsafe}"
    ground = spec.ground
    if ground is not None and (ground.kind == "oci") != (ground.image is not None):
        yield ("base",), "an image goes with the kind `oci`, and with no other"


def _passwords(value: canon.JSON, path: Path) -> Iterator[Fault]:
    """Addresses with a password in them: a spec holds names of secrets, never values."""
    match value:
        case str():
            if _PASSWORD.search(value):
                yield path, "an address holds a password; list it under `secrets`"
        case list():
            for index, item in enumerate(value):
                yield from _passwords(item, (*path, index))
        case dict():
            for key, item in value.items():
                yield from _passwords(item, (*path, key))
        case _:
            return


def check_locks(environment: Environment, files: Mapping[str, bytes], *, spec: bytes) -> None:
    """Pass when every file that the spec names lies beside it, with the sha256 that it says.

    Raises: FormatError `environment_malformed` with the line of the spec.
    """
    wanted: list[tuple[Path, str, str | None]] = [
        (("files", index, "from"), file.source, None)
        for index, file in enumerate(environment.files)
    ]
    for field, locked in (("python", environment.python), ("node", environment.nodejs)):
        if locked is not None and locked.lock is not None:
            wanted.append(((field, "lock"), locked.lock, locked.lock_sha256))
    for path, name, digest in wanted:
        data = files.get(name)
        if data is None:
            raise _error("environment_malformed", f"{name} is not there", line_of(spec, path))
        if digest is not None and blob_id(data) != digest:
            detail = f"{name} has another sha256 than `lock_sha256` says"
            raise _error("environment_malformed", detail, line_of(spec, path))


def _is_beside(path: str) -> bool:
    inside = path.startswith(layout.ENVIRONMENT + "/") and path != layout.SPEC
    return inside and paths.may_be_listed(path)


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


def _misfit(value: canon.JSON, message: str) -> Path:
    """Where a value is not of its type, by the path in the message, such as `$.files[...].mode`.

    The message does not say which member `[...]` is: each is tried alone.
    """
    path: list[str | int] = []
    for name, index in _PLACE.findall(message.rpartition("`$")[2]):
        part = name or (int(index) if index != "..." else _wrong_member(value, path))
        if part is None:
            break
        path.append(part)
    return tuple(path)


def _wrong_member(value: canon.JSON, path: Sequence[str | int]) -> str | int | None:
    members = _at(value, path)
    if isinstance(members, dict):
        return next((key for key in members if _fails(path, {key: members[key]})), None)
    if isinstance(members, list):
        return next((i for i, item in enumerate(members) if _fails(path, [item])), None)
    return None


def _fails(path: Sequence[str | int], instead: canon.JSON) -> bool:
    """Whether the spec is still of the wrong shape when only `instead` stands at the path."""
    if not path:
        tried = instead
    else:
        # A copy: the outermost member alone, so that no other fault can be meant.
        tried = {"format": FORMAT}
        inner: canon.JSON = instead
        for part in reversed(path):
            inner = {part: inner} if isinstance(part, str) else [inner]
        if isinstance(inner, dict):
            tried |= inner
    try:
        msgspec.convert(tried, Environment)
    except msgspec.ValidationError as error:
        return "[...]" in str(error)
    return False


def _at(value: canon.JSON, path: Sequence[str | int]) -> canon.JSON:
    for part in path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
    return value


def _error(code: Code, detail: str, line: int = 1) -> FormatError:
    return FormatError(say(code, detail), code=code, file=layout.SPEC, line=line)
