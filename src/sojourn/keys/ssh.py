"""Signing and checking sealed manifests with SSH keys (docs/format.md#signature).

A plain Ed25519 key file is used directly; every other key, in an agent, with a passphrase or on
hardware, through `ssh-keygen -Y sign`. Signatures are checked by `ssh-keygen` alone, so that lists
of allowed signers mean exactly what OpenSSH says.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from sojourn.errors import CallError, FormatError, NotFoundError, UsageError
from sojourn.format import layout
from sojourn.format.signature import NAMESPACE, Signature, Signed, armored, load, string, to_sign

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_LIMIT: Final = 1 << 20
"""Bytes of a key file."""


def sign(manifest: bytes, *, key: str) -> bytes:
    """The armored signature of a manifest by the key in the file `key`, private or public.

    With the public part of a key, the agent or the hardware that has the private one is asked;
    ssh-keygen may ask for a passphrase or a touch at the terminal.

    Raises: NotFoundError `key_missing`; UsageError `signing_failed`; CallError
    `ssh_keygen_missing`.
    """
    plain = _plain_key(key)
    if plain is not None:
        return _signed(plain, manifest)
    done = _ssh_keygen(("-Y", "sign", "-q", "-n", NAMESPACE, "-f", key), manifest, talk=True)
    if done.returncode:
        raise UsageError(
            f"ssh-keygen could not sign with {key}",
            code="signing_failed",
            state="Nothing was written.",
            hint="Give the file of a private key, or of a public one whose private part is in "
            "ssh-agent.",
        )
    load(done.stdout)
    return done.stdout


def check(manifest: bytes, signature: bytes, *, allowed_signers: str | None) -> Signed:
    """Who signed these bytes; by the list of that file, when one is given.

    Raises: FormatError `signature_malformed`, `signature_namespace`, `signature_wrong`,
    `signer_unknown`, `signer_refused`; NotFoundError `signers_missing`; CallError
    `ssh_keygen_missing`.
    """
    found = load(signature)
    if allowed_signers is not None and not os.path.isfile(allowed_signers):
        raise NotFoundError(
            f"there is no list of allowed signers at {allowed_signers}",
            code="signers_missing",
            hint="It has the form of ssh-keygen's ALLOWED SIGNERS: a name and a public key a line.",
        )
    with TemporaryDirectory(prefix="sojourn-") as folder:
        path = os.path.join(folder, layout.SIGNATURE)
        with open(path, "wb") as file:
            file.write(signature)
        done = _ssh_keygen(("-Y", "check-novalidate", "-n", NAMESPACE, "-s", path), manifest)
        if done.returncode:
            raise _refused("signature_wrong", "the signature is not one of this manifest", found)
        name = None if allowed_signers is None else _name(path, manifest, allowed_signers, found)
    return Signed(fingerprint=found.fingerprint, kind=found.kind, principal=name)


def can_check() -> bool:
    """Whether signatures can be checked here."""
    return shutil.which("ssh-keygen") is not None


def _name(path: str, manifest: bytes, allowed: str, found: Signature) -> str:
    """Who signed, by the list; the first of the key's names that may."""
    done = _ssh_keygen(("-Y", "find-principals", "-s", path, "-f", allowed), b"")
    names = done.stdout.decode("utf-8", "replace").splitlines() if not done.returncode else []
    if not names:
        raise _refused("signer_unknown", f"no allowed signer in {allowed} has this key", found)
    for name in names:
        options = ("-Y", "verify", "-f", allowed, "-I", name, "-n", NAMESPACE, "-s", path)
        if not _ssh_keygen(options, manifest).returncode:
            return name
    who = ", ".join(names)
    raise _refused("signer_refused", f"{who} may not sign capsules by {allowed}", found)


def _refused(code: str, message: str, found: Signature) -> FormatError:
    return FormatError(
        f"{message}: {found.kind} {found.fingerprint}",
        code=code,
        hint="Do not trust the capsule because of this signature.",
        file=layout.SIGNATURE,
    )


def _ssh_keygen(
    options: Sequence[str], data: bytes, *, talk: bool = False
) -> "subprocess.CompletedProcess[bytes]":
    """Run it with `data` on stdin; what it says goes to the terminal when it may `talk`."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise CallError(
            "ssh-keygen is not here, and nothing else can do this",
            code="ssh_keygen_missing",
            state="Nothing was changed.",
            hint="Install OpenSSH's client (on Debian: apt-get install openssh-client).",
        )
    return subprocess.run(
        [program, *options],
        input=data,
        stdout=subprocess.PIPE,
        stderr=None if talk else subprocess.PIPE,
        check=False,
    )


def _plain_key(path: str) -> "Ed25519PrivateKey | None":
    """The Ed25519 key in a private key's file without a passphrase; None for every other key.

    Raises: NotFoundError `key_missing`; UsageError `key_too_long`.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        with open(path, "rb") as file:
            data = file.read(KEY_LIMIT + 1)
    except OSError as failure:
        raise NotFoundError(
            f"cannot read the key {path}: {failure.strerror}",
            code="key_missing",
            state="Nothing was written.",
            hint="Give the file of a private SSH key, or of a public one that ssh-agent has.",
        ) from failure
    if len(data) > KEY_LIMIT:
        raise UsageError(f"{path} is no key: it is too long", code="key_too_long")
    if b"PRIVATE KEY" not in data:
        return None
    try:
        key = serialization.load_ssh_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def _signed(key: "Ed25519PrivateKey", manifest: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization

    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    kind = string(b"ssh-ed25519")
    made = key.sign(to_sign(manifest))
    return armored(key=kind + string(raw), signature=kind + string(made))
