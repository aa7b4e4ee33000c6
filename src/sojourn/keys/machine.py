"""The machine's own key: Ed25519, made at first use, never leaving its folder.

The id and the public key stand beside it in `machine.json`, so that asking for the id needs no
cryptography (docs/protocol.md#state-folder).
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import TYPE_CHECKING, Final

import msgspec

from sojourn.errors import DecisionError, FormatError
from sojourn.format.canon import encode, load
from sojourn.ids import MachineId, machine_id
from sojourn.ports import Files

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY: Final = "machine_key"
"""The private key, in OpenSSH's form without a comment and without a passphrase, mode 0600."""

CARD: Final = "machine.json"
"""What is known of the key: id, public key, and which host made it."""

CARD_LIMIT: Final = 4096
"""Bytes of the card."""

_RAW: Final = 32
"""Bytes of a raw Ed25519 public key."""


class _Card(msgspec.Struct, frozen=True, kw_only=True):
    v: int
    machine: MachineId
    public_key: str
    host: str | None


class FileMachineKey:
    """The `MachineKey` port in a folder; `host` is what `store.system.host_digest` says."""

    def __init__(self, folder: str, *, files: Files, host: str | None) -> None:
        self._folder = folder
        self._files = files
        self._host = host
        self._machine: MachineId | None = None

    def machine(self) -> MachineId:
        """The machine's id; at first use its key is made, durable before the id is told.

        Raises: DecisionError `machine_key_copied` when the state folder came from another host;
        FormatError `machine_key_missing` or `machine_key_damaged`; StorageError.
        """
        if self._machine is None:
            self._machine = self._known() or self._introduced()
        return self._machine

    def renew(self) -> MachineId:
        """Become a new machine: the key that came from elsewhere is set aside, another is made.

        The key goes first: while the card is there it tells whose host it was.
        Raises: as `machine`.
        """
        self._files.set_aside(self._path(KEY))
        self._files.set_aside(self._path(CARD))
        self._machine = None
        return self.machine()

    def private(self) -> "Ed25519PrivateKey":
        """The key itself, to sign with; it is the one that the machine's id is made of.

        Raises: as `machine`; FormatError `machine_key_damaged` when another key lies there.
        """
        machine, path = self.machine(), self._path(KEY)
        key = _private(self._files.read(path) or b"", path)
        if machine_id(key.public_key().public_bytes_raw()) != machine:
            raise _damaged(path)
        return key

    def _known(self) -> MachineId | None:
        """The id by the card; None when there is no usable card."""
        data = self._files.read(self._path(CARD))
        card = None if data is None else _parse(data)
        if data is not None and card is None:
            self._files.set_aside(self._path(CARD))
        if card is None:
            return None
        if card.host is not None and card.host != self._host:
            raise self._copied()
        if self._files.read(self._path(KEY)) is None:
            raise FormatError(
                "this machine's key is gone",
                code="machine_key_missing",
                state="Nothing was changed.",
                hint=f"Put {KEY} back, or remove {CARD} to become a new machine.",
                file=self._path(KEY),
            )
        return card.machine

    def _introduced(self) -> MachineId:
        """The id by the key, which is made if need be; the card is written for the next time."""
        data = self._files.read(self._path(KEY))
        self._files.make_folder(self._folder)
        # Also when it is there: whoever made it may have died before its name was durable.
        made = data or _made()
        created = self._files.create(self._path(KEY), made)
        data = made if created else self._files.read(self._path(KEY))
        public = _public(data or b"", self._path(KEY))
        card = _Card(
            v=1,
            machine=machine_id(public),
            public_key=b64encode(public).decode(),
            host=self._host,
        )
        self._files.create(self._path(CARD), encode(card) + b"\n")
        return card.machine

    def _copied(self) -> DecisionError:
        return DecisionError(
            "the state folder was copied from another host, and two machines must not share a key",
            code="machine_key_copied",
            state="Nothing was changed. Capsules may be looked at.",
            hint="`sojourn adopt` makes this a machine of its own and lists the capsules that it "
            "may then take over.",
        )

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _parse(data: bytes) -> _Card | None:
    try:
        card = msgspec.convert(load(data, what=CARD, limit=CARD_LIMIT), _Card)
        public = b64decode(card.public_key, validate=True)
    except (FormatError, msgspec.ValidationError, NotBase64):
        return None
    fits = card.v == 1 and len(public) == _RAW and machine_id(public) == card.machine
    return card if fits else None


def _made() -> bytes:
    """A new private key in OpenSSH's form."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )


def _public(data: bytes, path: str) -> bytes:
    """The raw public part of a private key."""
    return _private(data, path).public_key().public_bytes_raw()


def _private(data: bytes, path: str) -> "Ed25519PrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        key = load_ssh_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as failure:
        raise _damaged(path) from failure
    if not isinstance(key, Ed25519PrivateKey):
        raise _damaged(path)
    return key


def _damaged(path: str) -> FormatError:
    return FormatError(
        "this machine's key cannot be read: it must be an Ed25519 key without a passphrase",
        code="machine_key_damaged",
        state="Nothing was changed.",
        hint=f"Put the right {KEY} back, or remove it to become a new machine.",
        file=path,
    )
