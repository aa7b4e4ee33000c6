"""Signatures: byte for byte those of ssh-keygen, checked by it, refused by name."""

import os
import subprocess
from pathlib import Path

import pytest

from sojourn.errors import FormatError, NotFoundError, SojournError, UsageError
from sojourn.format import layout, signature
from sojourn.keys import ssh

MANIFEST = b'{"a":1}\n'


def new_key(folder: Path, name: str = "key", *, kind: str = "ed25519", phrase: str = "") -> str:
    path = str(folder / name)
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", phrase, "-f", path], check=True)
    return path


def by_ssh_keygen(key: str, namespace: str = "sojourn-capsule@v1") -> bytes:
    command = ["ssh-keygen", "-Y", "sign", "-q", "-n", namespace, "-f", key]
    return subprocess.run(command, input=MANIFEST, capture_output=True, check=True).stdout


def refused(made: bytes, *, manifest: bytes = MANIFEST, allowed: str | None = None) -> str:
    with pytest.raises(SojournError) as failure:
        ssh.check(manifest, made, allowed_signers=allowed)
    return failure.value.code


def test_a_plain_key_signs_byte_for_byte_as_ssh_keygen_does(tmp_path: Path) -> None:
    key = new_key(tmp_path)
    assert ssh.sign(MANIFEST, key=key) == by_ssh_keygen(key)


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_every_kind_of_key_signs_and_is_known_again(tmp_path: Path, kind: str) -> None:
    key = new_key(tmp_path, kind=kind)
    made = ssh.sign(MANIFEST, key=key)
    found = ssh.check(MANIFEST, made, allowed_signers=None)
    told = subprocess.run(["ssh-keygen", "-l", "-f", key], capture_output=True, check=True).stdout
    assert found.principal is None
    assert found.fingerprint in told.decode().split()
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ann {Path(key + '.pub').read_text()}")
    assert ssh.check(MANIFEST, made, allowed_signers=str(allowed)).principal == "ann"


def test_a_key_in_the_agent_signs_by_its_public_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_key(tmp_path)
    socket = str(tmp_path / "agent")
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", socket)
        while not os.path.exists(socket) and agent.poll() is None:
            os.sched_yield()
        subprocess.run(["ssh-add", "-q", key], check=True)
        plain = ssh.sign(MANIFEST, key=key)
        os.unlink(key)
        assert ssh.sign(MANIFEST, key=f"{key}.pub") == plain
    finally:
        agent.terminate()
        agent.wait()


def test_a_key_that_cannot_sign_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = new_key(tmp_path)
    os.unlink(key)
    with pytest.raises(UsageError) as failure:
        ssh.sign(MANIFEST, key=f"{key}.pub")
    assert failure.value.code == "signing_failed"
    with pytest.raises(NotFoundError):
        ssh.sign(MANIFEST, key=key)


def test_other_bytes_another_use_and_half_a_signature_are_told_apart(tmp_path: Path) -> None:
    key = new_key(tmp_path)
    made = ssh.sign(MANIFEST, key=key)
    assert refused(made, manifest=MANIFEST + b" ") == "signature_wrong"
    for namespace in ("git", "file", "sojourn-capsule@v2"):
        assert refused(by_ssh_keygen(key, namespace)) == "signature_namespace"
    for broken in (b"", made[:-40], made.replace(b"BEGIN", b"BEGUN"), b"x" + made, made * 2):
        assert refused(broken) == "signature_malformed"
    assert refused(b"-----BEGIN SSH SIGNATURE-----\n" + b"A" * (layout.MAX_SIGNATURE)) == (
        "signature_malformed"
    )


def test_the_list_of_allowed_signers_means_what_openssh_says(tmp_path: Path) -> None:
    key, other = new_key(tmp_path), new_key(tmp_path, "other")
    public, made = Path(f"{key}.pub").read_text(), ssh.sign(MANIFEST, key=key)
    allowed = tmp_path / "allowed"
    for text, code in (
        (f"ann {Path(other + '.pub').read_text()}", "signer_unknown"),
        (f'ann namespaces="git" {public}', "signer_refused"),
        (f'ann valid-before="20200101" {public}', "signer_unknown"),
        (f'ann valid-after="29990101" {public}', "signer_unknown"),
        ("", "signer_unknown"),
    ):
        allowed.write_text(text)
        assert refused(made, allowed=str(allowed)) == code
    allowed.write_text(f'ann namespaces="git,sojourn-capsule@v1" {public}')
    assert ssh.check(MANIFEST, made, allowed_signers=str(allowed)).principal == "ann"
    assert refused(made, allowed=str(tmp_path / "none")) == "signers_missing"


def test_the_fields_of_a_signature_are_read_without_trust(tmp_path: Path) -> None:
    key = new_key(tmp_path)
    found = signature.load(ssh.sign(MANIFEST, key=key))
    public = Path(f"{key}.pub").read_text().split()
    assert (found.kind, found.fingerprint[:7]) == (public[0], "SHA256:")
    with pytest.raises(FormatError) as failure:
        signature.load(signature.armored(key=b"", signature=b""))
    assert failure.value.code == "signature_malformed"
