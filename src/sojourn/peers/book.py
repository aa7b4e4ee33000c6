"""The machines that this one knows: the file `peers.json` (docs/link.md#pinning)."""

import re
from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from sojourn.errors import FormatError, NotFoundError, UsageError
from sojourn.format.canon import encode, load
from sojourn.ids import MachineId, machine_id
from sojourn.peers.shapes import Right
from sojourn.ports_link import Kept

NAME: Final = "peers.json"
LIMIT: Final = 4 * 1024 * 1024
"""Bytes of the file."""

MOST: Final = 1000
_NAMES: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that a person introduced: its key, where it is, and what it may do here.

    `certificate` (DER in base64) is there when it was paired; without one it may not come by TLS.
    `rights` are none for a machine that this one only goes to.
    """

    name: str
    machine: MachineId
    key: str
    address: str
    certificate: str = ""
    rights: tuple[Right, ...] = ()
    capsules: tuple[str, ...] = ()
    since: str = ""

    @property
    def pin(self) -> str:
        """The sha256 of its certificate; empty when it has none."""
        return sha256(b64decode(self.certificate)).hexdigest() if self.certificate else ""


class _File(msgspec.Struct, frozen=True, kw_only=True):
    v: int
    peers: tuple[Known, ...]


@dataclass(slots=True)
class Book:
    """The file in a state folder; read anew each time, since other processes change it."""

    folder: str
    files: Kept

    @property
    def path(self) -> str:
        """Where the file is."""
        return f"{self.folder}/{NAME}"

    def known(self) -> tuple[Known, ...]:
        """All, by name. Raises: FormatError `peers_damaged`; StorageError."""
        data = self.files.read(self.path)
        if data is None:
            return ()
        try:
            found = msgspec.convert(load(data, what=NAME, limit=LIMIT), _File)
            sound = found.v == 1 and all(_is_sound(one) for one in found.peers)
        except (FormatError, msgspec.ValidationError):
            sound, found = False, _File(v=1, peers=())
        if not sound:
            raise FormatError(
                "the list of known machines cannot be read",
                code="peers_damaged",
                state="Nothing was changed, and no other machine is let in.",
                hint="Mend the file, or remove it and introduce the machines again.",
                file=self.path,
            )
        return found.peers

    def named(self, name: str) -> Known:
        """The machine of this name. Raises: NotFoundError `remote_unknown`."""
        known = self.known()
        for one in known:
            if one.name == name:
                return one
        names = ", ".join(one.name for one in known) or "none"
        raise NotFoundError(
            f"no machine is called {name} here",
            code="remote_unknown",
            state=f"Known: {names}.",
            hint="`sojourn remote add NAME user@host` or `sojourn pair https://HOST` introduces "
            "one; user@host works without.",
        )

    def of(self, machine: MachineId) -> Known | None:
        """What is known of this machine."""
        return next((one for one in self.known() if one.machine == machine), None)

    def add(self, new: Known) -> None:
        """Keep it, in the place of what was known of the same machine.

        Raises: UsageError `name_taken`, `name_refused`; LimitError; StorageError.
        """
        if not _NAMES.fullmatch(new.name):
            raise UsageError(
                f"{new.name!r} cannot be a machine's name",
                code="name_refused",
                state="Nothing was kept.",
                hint="Use 1 to 64 letters, digits and `._-`, beginning with a letter or digit.",
            )
        others = [one for one in self.known() if one.machine != new.machine]
        if any(one.name == new.name for one in others) or len(others) >= MOST:
            raise UsageError(
                f"another machine is called {new.name} here",
                code="name_taken",
                state="Nothing was kept.",
                hint=f"Choose another name, or `sojourn remote rm {new.name}` first.",
            )
        self._write((*others, new))

    def drop(self, name: str) -> Known:
        """Forget it; it is not let in any more. Raises: NotFoundError; StorageError."""
        gone = self.named(name)
        self._write(tuple(one for one in self.known() if one.name != name))
        return gone

    def _write(self, peers: tuple[Known, ...]) -> None:
        ordered = tuple(sorted(peers, key=lambda one: one.name))
        self.files.make_folder(self.folder)
        self.files.replace(self.path, encode(_File(v=1, peers=ordered)) + b"\n")


def _is_sound(one: Known) -> bool:
    """Whether id and key belong together, and the certificate is base64."""
    try:
        b64decode(one.certificate, validate=True)
        return machine_id(b64decode(one.key, validate=True)) == one.machine
    except ValueError:
        return False
