"""Signing with the machine's key, and the certificate that others pin."""

import os
import ssl
from pathlib import Path

import pytest

from sojourn.errors import FormatError
from sojourn.ids import MachineId, machine_id
from sojourn.keys.certificate import FileCertificate
from sojourn.keys.identity import KeyIdentity, verified
from sojourn.keys.machine import KEY, FileMachineKey
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable


def key_in(folder: Path) -> FileMachineKey:
    return FileMachineKey(str(folder), files=Durable(OsDisk()), host=None)


def certificate_in(folder: Path, machine: str = "a" * 64) -> FileCertificate:
    return FileCertificate(str(folder), files=Durable(OsDisk()), machine=MachineId(machine))


def test_the_identity_is_that_of_the_machine(tmp_path: Path) -> None:
    identity = KeyIdentity(key_in(tmp_path))
    assert identity.machine == key_in(tmp_path).machine() == machine_id(identity.public)


def test_a_signature_holds_for_its_key_and_its_words_alone(tmp_path: Path) -> None:
    one, other = KeyIdentity(key_in(tmp_path / "a")), KeyIdentity(key_in(tmp_path / "b"))
    signature = one.sign(b"words")
    assert other.verify(one.public, signature, b"words")
    assert not other.verify(one.public, signature, b"other words")
    assert not other.verify(other.public, signature, b"words")
    assert not verified(one.public, os.urandom(64), b"words")


@pytest.mark.parametrize("public", [b"", b"x" * 31, b"\xff" * 32])
def test_a_malformed_key_verifies_nothing(public: bytes) -> None:
    assert not verified(public, b"s" * 64, b"words")


def test_a_key_that_was_exchanged_signs_nothing(tmp_path: Path) -> None:
    key_in(tmp_path / "a").machine()
    key_in(tmp_path / "b").machine()
    (tmp_path / "a" / KEY).write_bytes((tmp_path / "b" / KEY).read_bytes())
    with pytest.raises(FormatError) as caught:
        KeyIdentity(key_in(tmp_path / "a")).sign(b"words")
    assert caught.value.code == "machine_key_damaged"


def test_a_certificate_is_made_once_and_for_this_account_alone(tmp_path: Path) -> None:
    made = certificate_in(tmp_path)
    assert certificate_in(tmp_path).der == made.der
    assert os.stat(made.path).st_mode & 0o777 == 0o600


def test_a_certificate_serves_tls(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_in(tmp_path).path)


def test_another_machine_gets_another_certificate(tmp_path: Path) -> None:
    first = certificate_in(tmp_path, "a" * 64).der
    second = certificate_in(tmp_path, "b" * 64)
    assert second.der != first
    assert certificate_in(tmp_path, "b" * 64).der == second.der


def test_a_damaged_certificate_is_set_aside_and_made_anew(tmp_path: Path) -> None:
    made = certificate_in(tmp_path)
    Path(made.path).write_bytes(b"rubbish")
    assert certificate_in(tmp_path).der
    assert any(path.name.endswith(".damaged-1") for path in tmp_path.iterdir())
