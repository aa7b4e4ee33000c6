"""What the commands about other machines print with --json."""

from typing import Literal

from sojourn.cli.shapes import Answer, Shape


class RemoteShape(Shape, frozen=True, kw_only=True):
    """A known machine; `pin` is the sha256 of its certificate, null when it was never paired.

    `rights` are what it may do here, `capsules` those it is limited to (none: all).
    """

    name: str
    machine: str
    address: str
    pin: str | None
    rights: tuple[Literal["look", "send", "move"], ...]
    capsules: tuple[str, ...]
    since: str


class RemoteAnswer(Answer, frozen=True, kw_only=True):
    """`remote add`, `remote rm`: the machine that it was about."""

    remote: RemoteShape


class PairAnswer(Answer, frozen=True, kw_only=True):
    """`pair`: the other machine, which is known here now."""

    remote: RemoteShape


class RemoteList(Answer, frozen=True, kw_only=True):
    """`remote list`: the machines that this one knows."""

    machine: str
    remotes: tuple[RemoteShape, ...]


class RemoteTest(Answer, frozen=True, kw_only=True):
    """`remote test`: who answered, and how long the connection and one more question took."""

    machine: str
    address: str
    version: str
    connected_milliseconds: float
    answer_milliseconds: float


class ServeAnswer(Answer, frozen=True, kw_only=True):
    """`serve`: printed once the daemon serves; `listen` is empty without TLS."""

    machine: str
    socket: str
    listen: str
    boot: str
