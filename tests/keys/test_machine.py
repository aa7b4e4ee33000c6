"""The machine's key: made once, kept for its user alone, never shared by two hosts."""

import shutil
import subprocess
import sys
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from sojourn.errors import DecisionError, FormatError
from sojourn.ids import MachineId, machine_id
from sojourn.keys.machine import CARD, KEY, FileMachineKey
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable


def key(folder: Path, host: str | None = "h") -> FileMachineKey:
    return FileMachineKey(str(folder), files=Durable(OsDisk()), host=host)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    key(tmp_path / "state").machine()
    return tmp_path / "state"


def test_it_is_made_at_first_use_and_stays(tmp_path: Path) -> None:
    first = key(tmp_path / "state").machine()
    assert len(first) == 64
    assert key(tmp_path / "state").machine() == first
    assert key(tmp_path / "other").machine() != first


def test_its_files_are_for_their_user_alone(folder: Path) -> None:
    assert (folder / KEY).stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in folder.iterdir()) == sorted([KEY, CARD])


def test_the_card_holds_the_public_key_and_no_name_of_anybody(folder: Path) -> None:
    card = msgspec.json.decode((folder / CARD).read_bytes())
    assert card.keys() == {"v", "machine", "public_key", "host"}
    assert machine_id(b64decode(card["public_key"])) == card["machine"] == key(folder).machine()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_ssh_keygen_reads_it(folder: Path) -> None:
    asked = ["ssh-keygen", "-y", "-P", "", "-f", str(folder / KEY)]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True)
    kind, public, *comment = answer.stdout.split()
    assert (kind, comment) == ("ssh-ed25519", [])
    assert machine_id(b64decode(public)[-32:]) == key(folder).machine()


def test_asking_again_needs_no_cryptography(folder: Path) -> None:
    program = f"""
import sys
from sojourn.keys.machine import FileMachineKey
from sojourn.store.disk import OsDisk
from sojourn.store.durable import Durable
FileMachineKey({str(folder)!r}, files=Durable(OsDisk()), host="h").machine()
assert not [name for name in sys.modules if name.startswith("cryptography")]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_two_at_once_make_one_key(tmp_path: Path) -> None:
    for n in range(5):
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _, n=n: key(tmp_path / f"{n}").machine(), range(4)))
        assert len(set(found)) == 1


def test_a_lost_or_damaged_card_is_made_again_from_the_key(folder: Path) -> None:
    machine = key(folder).machine()
    (folder / CARD).unlink()
    assert key(folder).machine() == machine
    damages = [b"", b"{}", b"[]", b"\0" * 99]
    card = (folder / CARD).read_bytes()
    damages.append(card.replace(machine.encode(), b"0" * 64))
    for damage in damages:
        (folder / CARD).write_bytes(damage)
        assert key(folder).machine() == machine
    kept = [path.read_bytes() for path in sorted(folder.glob(f"{CARD}.damaged-*"))]
    assert kept == damages


@pytest.mark.parametrize("host", ["another", None])
def test_a_copied_state_folder_asks_a_person(host: str | None, folder: Path) -> None:
    before = (folder / CARD).read_bytes()
    with pytest.raises(DecisionError) as refused:
        key(folder, host).machine()
    assert refused.value.code == "machine_key_copied"
    assert (folder / CARD).read_bytes() == before
    assert "`sojourn adopt`" in refused.value.hint
    for name in (KEY, CARD):
        (folder / name).unlink()
    assert key(folder, host).machine()


def test_a_renewed_key_is_another_and_the_old_one_is_kept(folder: Path) -> None:
    old, data = key(folder).machine(), (folder / KEY).read_bytes()
    new = key(folder, "another").renew()
    assert new != old
    assert key(folder, "another").machine() == new
    assert (folder / f"{KEY}.damaged-1").read_bytes() == data


def test_a_host_without_an_id_proves_nothing(tmp_path: Path) -> None:
    machine = key(tmp_path, None).machine()
    assert key(tmp_path, "h").machine() == machine


def test_a_lost_key_is_named(folder: Path) -> None:
    (folder / KEY).unlink()
    with pytest.raises(FormatError) as refused:
        key(folder).machine()
    assert refused.value.code == "machine_key_missing"


def test_a_damaged_or_foreign_key_is_named_and_kept(folder: Path) -> None:
    (folder / CARD).unlink()
    rsa = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm90aGluZw==\n-----END OPENSSH PRIVATE KEY-----\n"
    for data in (b"\0" * 400, rsa.encode(), (folder / KEY).read_bytes()[:200]):
        (folder / KEY).write_bytes(data)
        with pytest.raises(FormatError) as refused:
            key(folder).machine()
        assert refused.value.code == "machine_key_damaged"
        assert (folder / KEY).read_bytes() == data


def test_the_id_is_asked_for_once(folder: Path) -> None:
    asked = key(folder)
    machine: MachineId = asked.machine()
    shutil.rmtree(folder)
    assert asked.machine() == machine
