"""Where another machine is: what people write for it, read into one of three ways."""

import re
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from sojourn.errors import UsageError

PORT: Final = 7477
"""The port of `https://HOST` where none is named."""

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9a-fA-F:.]+")
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Near:
    """A daemon on this host, by the path of its socket."""

    path: str

    def __str__(self) -> str:
        return f"unix://{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    """A machine that ssh reaches; `user` and `port` are left to its configuration when None."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"ssh://{user}{host}" + (f":{self.port}" if self.port else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """A daemon that listens on the network."""

    host: str
    port: int = PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"


Way: TypeAlias = Near | Ssh | Tls


def read_way(text: str) -> Way | None:
    """`user@host`, `ssh://`, `https://`, `unix://`; None for a plain word, which may be a name.

    Raises: UsageError `address_refused`.
    """
    if "://" not in text:
        user, at, host = text.rpartition("@")
        return _ssh(user, host, None, text) if at else None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _refused(text) from None
    if parts.query or parts.fragment or parts.password is not None:
        raise _refused(text)
    match parts.scheme:
        case "ssh":
            return _at_root(parts, text, _ssh(parts.username or "", _host(parts), port, text))
        case "https":
            host = _host(parts)
            if parts.username or not _HOST.fullmatch(host):
                raise _refused(text)
            return _at_root(parts, text, Tls(host=host, port=port or PORT))
        case "unix":
            if parts.netloc or not parts.path.startswith("/"):
                raise _refused(text)
            return Near(parts.path)
        case _:
            raise _refused(text)


def _host(parts: SplitResult) -> str:
    return parts.hostname or ""


def _at_root(parts: SplitResult, text: str, way: Way) -> Way:
    if parts.path not in ("", "/"):
        raise _refused(text)
    return way


def _ssh(user: str, host: str, port: int | None, text: str) -> Ssh:
    """Only what ssh cannot take for an option."""
    if not _HOST.fullmatch(host) or (user and not _USER.fullmatch(user)):
        raise _refused(text)
    return Ssh(host=host, user=user or None, port=port)


def _refused(text: str) -> UsageError:
    return UsageError(
        f"{text} is no address of a machine",
        code="address_refused",
        state="Nothing was sent.",
        hint="Write user@host, ssh://user@host:port, https://host:port, unix:///path/daemon.sock, "
        "or a name that `sojourn remote list` shows.",
    )
