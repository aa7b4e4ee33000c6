"""The one table of providers: where each is, what it speaks, and which variables name its keys.

docs/models.md#providers shows it to people. A base URL may enter a hint, never a log: a capsule
keeps only `scope`, a short digest of a URL that is not the provider's own.
"""

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from sojourn.errors import CallError, UsageError

ACCOUNT_VARIABLE: Final = "SOJOURN_ACCOUNT"
"""An alias of the account in use: replies of different accounts are kept apart by it."""
HOST_LABEL: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider: `url` is its own base URL, `None` where a user must name one.

    `urls` and `keys` are the variables looked at, in order; `wants_key` says that its own endpoint
    answers nobody without a key.
    """

    name: str
    dialect: str = "openai_chat"
    url: str | None
    path: str = "/chat/completions"
    urls: tuple[str, ...]
    keys: tuple[str, ...]
    wants_key: bool = True


PROVIDERS: Final[Mapping[str, Provider]] = {
    provider.name: provider
    for provider in (
        Provider(
            name="anthropic",
            dialect="anthropic",
            url="https://api.anthropic.com",
            path="/v1/messages",
            urls=("ANTHROPIC_BASE_URL",),
            keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        ),
        Provider(
            name="openai",
            url="https://api.openai.com/v1",
            urls=("OPENAI_BASE_URL",),
            keys=("OPENAI_API_KEY",),
        ),
        Provider(
            name="deepseek",
            url="https://api.deepseek.com/v1",
            urls=("DEEPSEEK_BASE_URL",),
            keys=("DEEPSEEK_API_KEY",),
        ),
        Provider(
            name="groq",
            url="https://api.groq.com/openai/v1",
            urls=("GROQ_BASE_URL",),
            keys=("GROQ_API_KEY",),
        ),
        Provider(
            name="kimi",
            url="https://api.moonshot.ai/v1",
            urls=("MOONSHOT_BASE_URL",),
            keys=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
        ),
        Provider(
            name="openrouter",
            url="https://openrouter.ai/api/v1",
            urls=("OPENROUTER_BASE_URL",),
            keys=("OPENROUTER_API_KEY",),
        ),
        Provider(
            name="xai",
            url="https://api.x.ai/v1",
            urls=("XAI_BASE_URL",),
            keys=("XAI_API_KEY",),
        ),
        Provider(
            name="ollama",
            url="http://127.0.0.1:11434/v1",
            urls=("OLLAMA_HOST",),
            keys=("OLLAMA_API_KEY",),
            wants_key=False,
        ),
        Provider(
            name="llamacpp",
            url="http://127.0.0.1:8080/v1",
            urls=("LLAMACPP_BASE_URL",),
            keys=("LLAMACPP_API_KEY",),
            wants_key=False,
        ),
        Provider(
            name="vllm",
            url="http://127.0.0.1:8000/v1",
            urls=("VLLM_BASE_URL",),
            keys=("VLLM_API_KEY",),
            wants_key=False,
        ),
        Provider(
            name="openai-compatible",
            url=None,
            urls=("SOJOURN_BASE_URL",),
            keys=("SOJOURN_API_KEY",),
            wants_key=False,
        ),
    )
}


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A key and the variable that it came from; it shows itself by that name alone."""

    variable: str
    value: str

    def __repr__(self) -> str:
        return f"Key({self.variable})"

    def header(self) -> tuple[str, str]:
        """The header that carries it."""
        if self.variable == "ANTHROPIC_API_KEY":
            return ("x-api-key", self.value)
        return ("Authorization", f"Bearer {self.value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the calls of one model go: `url` to post to, `variable` that decides it, and a key."""

    provider: Provider
    url: str
    variable: str
    scope: str
    key: Key | None


def find_place(provider: Provider, environment: Mapping[str, str]) -> Place:
    """Where this provider is reached from here, and with which key.

    Raises: UsageError `base_url_malformed` or `base_url_missing`; CallError `key_missing` or
    `key_malformed`.
    """
    variable = next((name for name in provider.urls if environment.get(name, "").strip()), None)
    text = environment[variable].strip() if variable else provider.url
    if text is None:
        raise UsageError(
            f"{provider.name} has no address of its own, and {provider.urls[0]} is not set",
            code="base_url_missing",
            hint=f"Set {provider.urls[0]}, for example to http://127.0.0.1:8080/v1.",
        )
    start = _normal(text, variable or provider.urls[0], provider)
    own = provider.url is not None and start == _normal(provider.url, "", provider)
    scope = "default" if own else "at-" + sha256(start.encode()).hexdigest()[:12]
    if alias := account(environment):
        scope += f"+{alias}"
    key = find_key(provider, environment)
    if key is None and own and provider.wants_key:
        raise key_missing(provider)
    return Place(
        provider=provider,
        url=start + provider.path,
        variable=variable or provider.urls[0],
        scope=scope,
        key=key,
    )


def account(environment: Mapping[str, str]) -> str:
    """The alias of the account in use, empty when there is none; it enters the log.

    Raises: UsageError `account_malformed`.
    """
    alias = environment.get(ACCOUNT_VARIABLE, "").strip()
    if alias and not re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", alias):
        raise UsageError(
            f"{ACCOUNT_VARIABLE} is no alias",
            code="account_malformed",
            hint="An alias is at most 32 letters, digits, dots, `-` and `_`.",
        )
    return alias


def find_key(provider: Provider, environment: Mapping[str, str]) -> Key | None:
    """The first key that is set; a blank one counts as none.

    Raises: CallError `key_malformed` when a header could not carry it.
    """
    for variable in provider.keys:
        value = environment.get(variable, "").strip()
        if value and not (value.isascii() and value.isprintable() and " " not in value):
            error = CallError(
                f"the key in {variable} holds characters that no key has",
                code="key_malformed",
                state="Nothing was sent.",
                hint=f"Set {variable} again, without blanks, line breaks and signs beyond ASCII.",
            )
            error.exit = 6
            raise error
        if value:
            return Key(variable, value)
    return None


def key_missing(provider: Provider) -> CallError:
    """The failure of a provider that answers nobody without a key."""
    names = " and ".join(provider.keys)
    error = CallError(
        f"{provider.name} needs a key, and there is none: looked for {names}",
        code="key_missing",
        state="Nothing was sent.",
        hint=f"Set {provider.keys[0]}.",
    )
    error.exit = 6
    return error


def _normal(text: str, variable: str, provider: Provider) -> str:
    """A base URL in one spelling, without a slash at its end."""
    if provider.name == "ollama":
        text = _ollama(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _malformed(variable) from None
    usable = parts.scheme in ("http", "https") and _is_host(parts.hostname or "")
    if not usable or parts.query or parts.fragment or parts.username is not None:
        raise _malformed(variable)
    path = parts.path.rstrip("/")
    if provider.dialect == "anthropic":
        path = path.removesuffix("/v1")
    return urlunsplit((parts.scheme, _host(parts, port), path, "", ""))


def _is_host(name: str) -> bool:
    if ":" in name:
        with contextlib.suppress(ValueError):
            return IPv6Address(name).version == 6
        return False
    labels = name.removesuffix(".").split(".")
    return len(name) < 254 and all(HOST_LABEL.fullmatch(label) for label in labels)


def _host(parts: SplitResult, port: int | None) -> str:
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    usual = {"http": 80, "https": 443}[parts.scheme]
    return host if port in (None, usual) else f"{host}:{port}"


def _ollama(text: str) -> str:
    """OLLAMA_HOST is also what its server binds: a host alone, a port alone, or every address."""
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "http", text
    host, _, path = rest.partition("/")
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name, port = host, "" if found else "11434"
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)
    path = path.rstrip("/")
    path = path if path.endswith("v1") else f"{path}/v1".lstrip("/")
    return f"{scheme}://{name}{':' if port else ''}{port}/{path}"


def _malformed(variable: str) -> UsageError:
    return UsageError(
        f"{variable} is not the address of a model server",
        code="base_url_malformed",
        hint=f"{variable} looks like http://127.0.0.1:8080/v1: no user name, no query.",
    )
