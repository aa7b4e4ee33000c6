"""A certificate is checked, and the environment may name further ones to trust."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from models.loopback import Clock, model_at, once, saying, served, stream
from sojourn.errors import CallError

BODY = b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def self_signed(folder: Path, host: str) -> Path:
    """A file with a key and its own certificate for this host."""
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    path = folder / f"{host}.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    return path


def call(certificate: Path, clock: Clock) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def run() -> int:
        async with served(saying(stream(BODY)), context) as url:
            named = url.replace("127.0.0.1", "localhost")
            return len(await once(model_at(named, clock=clock)))

    return asyncio.run(run())


@pytest.mark.parametrize("host", ["localhost", "elsewhere.example"])
def test_a_certificate_that_nobody_vouches_for_is_refused_once(tmp_path: Path, host: str) -> None:
    clock = Clock()
    with pytest.raises(CallError, match="certificate is not trusted") as caught:
        call(self_signed(tmp_path, host), clock)
    assert (caught.value.code, caught.value.retry, clock.waits) == ("unreachable", False, [])
    assert "SSL_CERT_FILE" in caught.value.hint


def test_a_certificate_that_the_environment_names_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert call(certificate, Clock()) == 2


def test_a_certificate_for_another_host_stays_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed(tmp_path, "elsewhere.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with pytest.raises(CallError, match="certificate is not trusted") as caught:
        call(certificate, Clock())
    assert "elsewhere" not in caught.value.message
