"""What a link between two machines asks of the world: a key to sign with, and known machines."""

from typing import Protocol

from sojourn.ids import MachineId


class Identity(Protocol):
    """This machine's key, and how the signatures of others are checked."""

    @property
    def machine(self) -> MachineId: ...
    @property
    def public(self) -> bytes:
        """The raw public part: 32 bytes."""
        ...

    def sign(self, data: bytes) -> bytes:
        """An Ed25519 signature: 64 bytes."""
        ...

    def verify(self, public: bytes, signature: bytes, data: bytes) -> bool:
        """Whether the owner of `public` signed `data`; False for malformed keys too."""
        ...


class Certificate(Protocol):
    """This machine's own certificate for TLS; others pin it by the sha256 of its DER bytes."""

    @property
    def path(self) -> str:
        """The file that holds the certificate and its private key; made at first use.

        Raises: StorageError.
        """
        ...

    @property
    def der(self) -> bytes:
        """The certificate's bytes. Raises: StorageError."""
        ...


class Kept(Protocol):
    """One small file of the machine that is replaced whole."""

    def read(self, path: str) -> bytes | None:
        """All bytes, None when nothing is there. Raises: StorageError."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """The file holds `data`, durable on return. Raises: StorageError."""
        ...

    def make_folder(self, path: str) -> None:
        """The folder and its parents are there, durable on return. Raises: StorageError."""
        ...
