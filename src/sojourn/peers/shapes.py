"""What the link carries beside the messages of a move, as JSON (docs/link.md#paths)."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from sojourn.ids import CapsuleId, MachineId, RequestId

Right: TypeAlias = Literal["look", "send", "move"]
"""What a paired machine may do here: see the capsules, send messages to them, move one here."""

RIGHTS: tuple[Right, ...] = ("look", "send", "move")

Name = Annotated[str, msgspec.Meta(max_length=64)]
Hex64 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Hex32 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
Key = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9+/]{43}=$")]
"""A raw Ed25519 key in base64."""


class _Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A value on the link; what a later version adds is passed over."""


class Hello(_Shape, frozen=True, kw_only=True):
    """Who answers, and since which start. Nothing is promised by it."""

    protocol: int
    version: str
    machine: MachineId
    boot: Hex32
    format_write: int
    format_read: int


class Fault(_Shape, frozen=True, kw_only=True):
    """Why a request was not done: a stable code, and words."""

    code: str
    message: str
    state: str = ""
    hint: str = ""


class Refusal(_Shape, frozen=True, kw_only=True):
    """The body of every answer that is not 200."""

    error: Fault


class Done(_Shape, frozen=True, kw_only=True):
    """It was done, and there is nothing to tell."""


class HeldBy(_Shape, frozen=True, kw_only=True):
    """The process that holds a capsule; `since` in RFC 3339."""

    pid: int
    since: str
    command: str


class Listed(_Shape, frozen=True, kw_only=True):
    """One capsule of a machine; `standing` as docs/cli.md#standings has it."""

    capsule: CapsuleId
    name: str
    folder: str
    standing: str
    model: str | None
    held_by: HeldBy | None
    events: int
    last_time: str | None
    waiting: int
    reason: Fault | None


class Listing(_Shape, frozen=True, kw_only=True):
    """All capsules of a machine that the asker may see."""

    capsules: tuple[Listed, ...]


class Said(_Shape, frozen=True, kw_only=True):
    """A message for an agent; under the same request id it is accepted once."""

    request: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    text: str


class Taken(_Shape, frozen=True, kw_only=True):
    """The message is durable; `already` when it was there before."""

    capsule: CapsuleId
    request: RequestId
    already: bool


class Offered(_Shape, frozen=True, kw_only=True):
    """The first word of a pairing: who asks, and the digest of a nonce that is told later.

    `certificate` is the sender's for TLS: DER in base64. `address` is where the sender can be
    reached by TLS itself, empty when it cannot be.
    """

    name: Name
    address: Annotated[str, msgspec.Meta(max_length=256)] = ""
    certificate: Annotated[str, msgspec.Meta(max_length=8192)]
    commitment: Hex64


class Countered(_Shape, frozen=True, kw_only=True):
    """The answer to it: who answers, and its nonce."""

    pairing: Hex32
    name: Name
    certificate: Annotated[str, msgspec.Meta(max_length=8192)]
    nonce: Hex64


class Revealed(_Shape, frozen=True, kw_only=True):
    """The nonce whose digest was told first."""

    nonce: Hex64


class Pairing(_Shape, frozen=True, kw_only=True):
    """How a pairing stands at the machine that was asked.

    `open`: nobody came yet. `asked`: somebody came, the nonce is not told. `shown`: `code` can be
    compared. `agreed` or `refused`: the person there decided. `closed`: there is none.
    """

    state: Literal["closed", "open", "asked", "shown", "agreed", "refused"]
    code: str = ""
    machine: str = ""
    name: str = ""


class Window(_Shape, frozen=True, kw_only=True):
    """Opens this machine for one pairing; `rights` are what the other one may do here then.

    `own` is what this machine calls itself, `name` what the other one is called here (empty: what
    it calls itself). `capsules` are names or ids of those it is limited to; empty for all.
    """

    own: Name
    name: Name = ""
    rights: tuple[Right, ...] = RIGHTS
    capsules: tuple[str, ...] = ()


class Log(_Shape, frozen=True, kw_only=True):
    """Which part of a log is wanted: from byte `start` on; `follow` 1 to be told what is added."""

    start: Annotated[int, msgspec.Meta(ge=0)] = 0
    follow: Literal[0, 1] = 0


class Contents(_Shape, frozen=True, kw_only=True):
    """Of which capsule the contents are."""

    capsule: Hex64


class Verdict(_Shape, frozen=True, kw_only=True):
    """What the person at this machine said of the code, which is repeated: none is mistaken."""

    code: str
    agreed: bool
