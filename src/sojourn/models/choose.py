"""From a model's name to the model, with errors that say what to do (docs/models.md)."""

import difflib
import socket
from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from sojourn.errors import CallError, NotFoundError, UsageError
from sojourn.format.event import Issuer
from sojourn.models.http import HttpModel
from sojourn.models.limits import LIMITS, PROBE_SECONDS, Limits
from sojourn.models.providers import PROVIDERS, Provider, find_place
from sojourn.models.script import Script
from sojourn.models.scripted import EchoModel, ScriptedModel
from sojourn.ports import Randomness, WallClock
from sojourn.render.profile import profile_for

AnyModel: TypeAlias = HttpModel | ScriptedModel | EchoModel
"""Every model there is; each is a `Model` and has `aclose()`."""

SCRIPTED: Final = "scripted"
ECHO: Final = "echo"


def open_model(
    name: str,
    *,
    environment: Mapping[str, str],
    clock: WallClock,
    randomness: Randomness,
    limits: Limits = LIMITS,
) -> AnyModel:
    """The model of this name: `provider/NAME`, `scripted/FILE` or `echo`; nothing is sent yet.

    Raises: NotFoundError `provider_unknown` or `script_missing`; UsageError `model_name`,
    `base_url_missing`, `base_url_malformed`, `account_malformed` or `script_malformed`; CallError
    `key_missing` or `key_malformed`.
    """
    if name == ECHO:
        profile = profile_for(SCRIPTED, ECHO)
        issuer = Issuer(provider=ECHO, api=profile.dialect, scope="default", model=ECHO)
        return EchoModel(issuer=issuer, profile=profile)
    provider_name, _, model = name.partition("/")
    if not model:
        raise _no_name(name)
    if provider_name == SCRIPTED:
        return _open_script(model, clock)
    provider = PROVIDERS.get(provider_name)
    if provider is None:
        raise _unknown(provider_name)
    try:
        place = find_place(provider, environment)
    except CallError as error:
        raise _with_ways_out(error, environment) from None
    profile = profile_for(provider.name, model)
    return HttpModel(
        issuer=Issuer(provider=provider.name, api=profile.dialect, scope=place.scope, model=model),
        profile=profile,
        place=place,
        clock=clock,
        randomness=randomness,
        limits=limits,
    )


def provider_names() -> tuple[str, ...]:
    """What may stand before the `/`, and `echo`."""
    return (*PROVIDERS, SCRIPTED, ECHO)


def keys_seen(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that hold a key of a known provider; never a value."""
    return tuple(name for name in _key_variables() if environment.get(name, "").strip())


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The keys themselves, for whoever must mask them in what is written."""
    return tuple(environment[name].strip() for name in keys_seen(environment))


def ollama_answers(environment: Mapping[str, str]) -> bool:
    """Whether something listens where Ollama is expected; takes a third of a second at most."""
    try:
        parts = urlsplit(find_place(PROVIDERS["ollama"], environment).url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), timeout=PROBE_SECONDS):
            return True
    except (OSError, CallError, UsageError):
        return False


def _open_script(file: str, clock: WallClock) -> ScriptedModel:
    profile = profile_for(SCRIPTED, file)
    # The name of the file alone: no path of this machine may enter a log.
    model = PurePath(file).name
    issuer = Issuer(provider=SCRIPTED, api=profile.dialect, scope="default", model=model)
    return ScriptedModel(issuer=issuer, profile=profile, script=Script.read(file), clock=clock)


def _key_variables() -> tuple[str, ...]:
    return tuple(key for provider in PROVIDERS.values() for key in provider.keys)


def _no_name(name: str) -> UsageError:
    known = name.removesuffix("/")
    what = f"{known}/NAME" if known in (*PROVIDERS, SCRIPTED) else "PROVIDER/NAME"
    return UsageError(
        f"{name!r} does not name a model",
        code="model_name",
        hint=f"A model is named {what}. Providers: {', '.join(provider_names())}.",
    )


def _unknown(name: str) -> NotFoundError:
    near = difflib.get_close_matches(name, provider_names(), n=1)
    ask = f"Did you mean {near[0]}? " if near else ""
    return NotFoundError(
        f"there is no provider {name!r}",
        code="provider_unknown",
        hint=f"{ask}Providers: {', '.join(provider_names())}.",
    )


def _with_ways_out(error: CallError, environment: Mapping[str, str]) -> CallError:
    """Add what would work without that key."""
    others = [provider.name for provider in PROVIDERS.values() if _has_key(provider, environment)]
    ways = [f"{name}/NAME" for name in others]
    if ollama_answers(environment):
        ways.append("ollama/NAME, which answers here")
    ways += ["scripted/FILE", "echo"]
    error.hint += f" Without it there are: {', '.join(ways)}; and `sojourn demo` needs no model."
    return error


def _has_key(provider: Provider, environment: Mapping[str, str]) -> bool:
    return any(environment.get(key, "").strip() for key in provider.keys)
