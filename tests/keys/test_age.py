"""Encryption: opened by the age program, and it opens what age wrote."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.errors import FormatError, NotFoundError, SojournError, UsageError
from sojourn.keys import age

TEXT = bytes(range(256)) * 1000
SEALED: list[tuple[str, bytes]] = []


def new_identity(folder: Path) -> tuple[str, str]:
    """An identity's file and its recipient."""
    file = folder / "identity"
    subprocess.run(["age-keygen", "-o", file], check=True, capture_output=True)
    return str(file), file.read_text().split("public key: ")[1].split()[0]


def new_key(folder: Path, kind: str) -> str:
    path = str(folder / kind)
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path], check=True)
    return path


def sealed(*to: str, size: int = 1000) -> bytes:
    made: list[bytes] = []
    pieces = (TEXT[at : at + size] for at in range(0, len(TEXT), size))
    age.encrypted(pieces, age.recipients(to), made.append)
    return b"".join(made)


def opened(data: bytes, *files: str, size: int = 1000) -> bytes:
    made: list[bytes] = []
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    age.decrypted(pieces, age.identities(files), made.append)
    return b"".join(made)


def test_the_age_program_opens_it_and_is_opened(tmp_path: Path) -> None:
    file, recipient = new_identity(tmp_path)
    keys = {kind: new_key(tmp_path, kind) for kind in ("ed25519", "rsa")}
    data = sealed(recipient, *(f"{key}.pub" for key in keys.values()))
    for identity in (file, *keys.values()):
        command = ["age", "-d", "-i", identity]
        assert subprocess.run(command, input=data, capture_output=True, check=True).stdout == TEXT
        assert opened(data, identity) == TEXT
    command = ["age", "-r", recipient]
    theirs = subprocess.run(command, input=TEXT, capture_output=True, check=True).stdout
    assert opened(theirs, file) == TEXT


def test_a_file_of_recipients_is_each_of_them(tmp_path: Path) -> None:
    file, recipient = new_identity(tmp_path)
    key = new_key(tmp_path, "ed25519")
    listed = tmp_path / "listed"
    listed.write_text(f"# ann\n{recipient}\n\n{Path(key + '.pub').read_text()}")
    data = sealed(str(listed))
    assert opened(data, file) == opened(data, key) == TEXT


def test_what_is_no_key_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nothing\n")
    for given_, code in (
        ("age1xx", "recipient_unknown"),
        ("ssh-ed25519 AAAA", "recipient_unknown"),
        (str(tmp_path / "empty"), "recipient_unknown"),
    ):
        with pytest.raises(UsageError) as failure:
            age.recipients([given_])
        assert failure.value.code == code
    with pytest.raises(NotFoundError):
        age.recipients([str(tmp_path / "no")])
    with pytest.raises(NotFoundError):
        age.identities([str(tmp_path / "no")])
    (tmp_path / "junk").write_text("junk")
    with pytest.raises(UsageError):
        age.identities([str(tmp_path / "junk")])


@settings(max_examples=40)
@given(st.data())
def test_a_changed_byte_is_never_taken_for_the_text(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    if not SEALED:  # Made once: the library adds what is random to the length, too.
        file, recipient = new_identity(tmp_path_factory.mktemp("age"))
        SEALED.append((file, sealed(recipient)))
    ((file, whole),) = SEALED
    changed = bytearray(whole)
    at = data.draw(st.integers(0, len(changed) - 1))
    changed[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(FormatError) as failure:
        opened(bytes(changed), file)
    assert failure.value.code == "decryption_failed"
    with pytest.raises(FormatError):
        opened(whole[: data.draw(st.integers(0, len(whole) - 1))], file)


def test_what_fails_on_either_side_is_what_the_caller_sees(tmp_path: Path) -> None:
    _, recipient = new_identity(tmp_path)

    def broken() -> Iterator[bytes]:
        yield b"x"
        raise SojournError("the disk")

    def full(_data: bytes) -> None:
        raise SojournError("no room")

    with pytest.raises(SojournError, match="the disk"):
        age.encrypted(broken(), age.recipients([recipient]), lambda _: None)
    with pytest.raises(SojournError, match="no room"):
        age.encrypted([b"x"], age.recipients([recipient]), full)
