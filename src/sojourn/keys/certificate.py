"""The machine's certificate for TLS: self-signed, with a key of its own, made at first use.

Nobody vouches for it: the other side pins its sha256 when the two are paired (docs/link.md#tls). It
says nothing of times, since no decision may hang on a clock.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sojourn.ids import MachineId
from sojourn.ports import Files

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import Certificate

NAME: Final = "tls.pem"
"""Private key and certificate in one file, so that they are made and lost together; mode 0600."""

FROM: Final = datetime(2020, 1, 1, tzinfo=UTC)
UNTIL: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class FileCertificate:
    """The `Certificate` port in a folder; it names `machine`, and is made anew for another one."""

    def __init__(self, folder: str, *, files: Files, machine: MachineId) -> None:
        self._path = f"{folder}/{NAME}"
        self._folder = folder
        self._files = files
        self._machine = machine
        self._der: bytes | None = None

    @property
    def path(self) -> str:
        """The file, which is there on return. Raises: StorageError."""
        self._ready()
        return self._path

    @property
    def der(self) -> bytes:
        """The certificate's DER bytes. Raises: StorageError."""
        return self._ready()

    def _ready(self) -> bytes:
        if self._der is None:
            self._der = self._known() or self._made()
        return self._der

    def _known(self) -> bytes | None:
        data = self._files.read(self._path)
        der = None if data is None else _der_for(data, self._machine)
        if data is not None and der is None:
            self._files.set_aside(self._path)
        return der

    def _made(self) -> bytes:
        self._files.make_folder(self._folder)
        data = _made_for(self._machine)
        if not self._files.create(self._path, data):
            data = self._files.read(self._path) or b""
        der = _der_for(data, self._machine)
        if der is None:
            raise RuntimeError(f"{self._path} was replaced while it was made")
        return der


def _der_for(data: bytes, machine: MachineId) -> bytes | None:
    """The certificate in the file; None when it cannot be used or is another machine's."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
    from cryptography.x509.oid import NameOID

    try:
        key = load_pem_private_key(data, password=None)
        certificate = x509.load_pem_x509_certificate(data)
        if certificate.public_key() != key.public_key():
            return None
    except (ValueError, TypeError):
        return None
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    fits = [name.value for name in names] == [machine[:32]]
    return certificate.public_bytes(Encoding.DER) if fits else None


def _made_for(machine: MachineId) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + _certificate(key, machine).public_bytes(Encoding.PEM)


def _certificate(key: "Ed25519PrivateKey", machine: MachineId) -> "Certificate":
    """Self-signed; the name is the first half of the machine's id (64 characters are the limit)."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, machine[:32])])
    draft = x509.CertificateBuilder(subject_name=name, issuer_name=name)
    draft = draft.public_key(key.public_key()).serial_number(x509.random_serial_number())
    draft = draft.not_valid_before(FROM).not_valid_after(UNTIL)
    draft = draft.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    return draft.sign(key, algorithm=None)
