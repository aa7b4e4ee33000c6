"""The shape of `environment/spec.json`: what is wanted of a machine that runs the agent.

docs/format.md#environment is the specification. Fields that are not here are kept and not read.
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from sojourn.format.event import ReplayRule
from sojourn.format.layout import MAX_INT

_Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)]
_Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
_Version: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9]+(\.[0-9]+){0,2}$", max_length=32)
]
_Image: TypeAlias = Annotated[
    str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._/:-]*@sha256:[0-9a-f]{64}$", max_length=512)
]
_Mode: TypeAlias = Annotated[str, msgspec.Meta(pattern="^0[0-7]{3}$", max_length=4)]


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the spec."""


class Machine(_Part, frozen=True, kw_only=True):
    """What the sandbox is built on; an `image` is named by its digest, never by a tag alone."""

    kind: Literal["host", "debian", "oci", "none"]
    os: str | None = None
    arch: str | None = None
    suite: str | None = None
    image: _Image | None = None


class Locked(_Part, frozen=True, kw_only=True):
    """A language, its version, and a lock file beside the spec with its sha256."""

    version: _Version
    lock: str | None = None
    lock_sha256: _Digest | None = None
    scripts: bool = False


class Packages(_Part, frozen=True, kw_only=True):
    """Debian packages, each with its version, empty for any; `snapshot` a moment of the archive."""

    packages: dict[str, str] = {}
    snapshot: str | None = None


class PlacedFile(_Part, frozen=True, kw_only=True, rename={"source": "from"}):
    """A file of the sandbox, whose bytes lie beside the spec at `from`."""

    path: str
    source: str
    mode: _Mode = "0644"


class Secret(_Part, frozen=True, kw_only=True):
    """What a secret is for; its name is the key, its value is nowhere in a capsule.

    `scope` says whose calls may have it: `model`, `tool:NAME`, `mcp:NAME` or `setup`.
    """

    description: str = ""
    required: bool = True
    scope: str | tuple[str, ...] = ()
    documentation_url: str = ""


class Network(_Part, frozen=True, kw_only=True):
    """Which hosts programs may reach."""

    mode: Literal["none", "allowlist", "all"]
    allowed_domains: tuple[str, ...] = ()
    log: bool = True


class Filesystem(_Part, frozen=True, kw_only=True):
    """What programs may write beside the workspace, and what they may not read."""

    workspace: str | None = None
    allow_write: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()


class Limits(_Part, frozen=True, kw_only=True):
    """Limits of one call: MiB, seconds, processes, bytes."""

    memory_mb: _Positive | None = None
    cpu_seconds_per_call: _Positive | None = None
    wall_seconds_per_call: _Positive | None = None
    pids: _Positive | None = None
    disk_mb: _Positive | None = None
    output_bytes: _Positive | None = None


class Command(_Part, frozen=True, kw_only=True):
    """A command that sets the sandbox up."""

    run: str
    network: bool = False
    timeout_s: _Positive = 600


class ToolRule(_Part, frozen=True, kw_only=True):
    """What is asked of one tool beyond its own declaration."""

    sandbox: str | None = None
    replay: ReplayRule | None = None


class Server(_Part, frozen=True, kw_only=True):
    """A server of tools: how it is started, and which secrets it gets."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    secrets: tuple[str, ...] = ()
    trust_annotations: bool = False


class Needs(_Part, frozen=True, kw_only=True):
    """What the machine itself must have."""

    cpus: _Positive | None = None
    memory: str | None = None
    gpu: str | bool | None = None


NAMES: Final = {"ground": "base", "nodejs": "node"}
"""What these fields are called in the file."""


class Environment(_Part, frozen=True, kw_only=True, rename=NAMES):
    """What is wanted; a field that is absent asks for nothing."""

    format: str
    ground: Machine | None = None
    python: Locked | None = None
    nodejs: Locked | None = None
    apt: Packages | None = None
    files: tuple[PlacedFile, ...] = ()
    env: dict[str, str] = {}
    secrets: dict[str, Secret] = {}
    network: Network | None = None
    filesystem: Filesystem | None = None
    limits: Limits | None = None
    setup: tuple[Command, ...] = ()
    tools: dict[str, ToolRule] = {}
    mcp_servers: dict[str, Server] = {}
    host_requirements: Needs | None = None
