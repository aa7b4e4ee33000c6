"""Signing with the machine's key, and checking what other machines signed: the `Identity` port."""

from functools import cached_property
from typing import TYPE_CHECKING

from sojourn.ids import MachineId, machine_id
from sojourn.keys.machine import FileMachineKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class KeyIdentity:
    """The machine's key in its folder; it is read once, when it is first needed.

    Every property raises as `FileMachineKey.machine` does.
    """

    def __init__(self, key: FileMachineKey) -> None:
        self._key = key

    @cached_property
    def _private(self) -> "Ed25519PrivateKey":
        return self._key.private()

    @cached_property
    def _public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    @property
    def public(self) -> bytes:
        """The raw public part."""
        return self._public

    @property
    def machine(self) -> MachineId:
        """The machine's id, which is the sha256 of the public part."""
        return machine_id(self.public)

    def sign(self, data: bytes) -> bytes:
        """An Ed25519 signature."""
        return self._private.sign(data)

    def verify(self, public: bytes, signature: bytes, data: bytes) -> bool:
        """Whether the owner of `public` signed `data`."""
        return verified(public, signature, data)


def verified(public: bytes, signature: bytes, data: bytes) -> bool:
    """Whether the owner of this raw Ed25519 key signed `data`; False for malformed keys too."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True
