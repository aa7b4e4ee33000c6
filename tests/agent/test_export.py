"""Exporting: sealed once, the same bytes again, opened and checked by other people's tools."""

import asyncio
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agent.stage import Stage
from sojourn.agent import archives
from sojourn.agent.archives import Exported, Wanted
from sojourn.agent.trust import scan
from sojourn.drive.observe import Unwatched
from sojourn.drive.scan import Suspect
from sojourn.errors import FormatError, NotFoundError, SojournError, UsageError
from sojourn.format import layout, manifest
from sojourn.format.capsule_kinds import Sealed

SAYS = [{"text": f"Answer {number}."} for number in range(9)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, SAYS)
    made.run("hello")
    return made


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path


def export(stage: Stage, file: str = "box.tar", **options: Any) -> Exported:
    wanted = Wanted(file=str(stage.folder / file), **options)
    return asyncio.run(archives.export_capsule(stage.machine, stage.make(), wanted))


def shell(folder: Path, command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


def test_what_a_killed_export_left_is_removed_by_the_next_one(stage: Stage) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = stage.folder / f".sojourn-box.tar.{gone.pid}.0.tmp"
    others = [
        stage.folder / f".sojourn-box.tar.{os.getpid()}.7.tmp",
        stage.folder / f".sojourn-other.tar.{gone.pid}.0.tmp",
    ]
    for path in (left, *others):
        path.write_bytes(b"half an archive")
    export(stage)
    assert not left.exists()
    assert all(path.exists() for path in others)
    left.write_bytes(b"half an archive")
    with pytest.raises(UsageError):
        export(stage)
    assert not left.exists()


def test_an_unchanged_capsule_gives_the_same_bytes_again(stage: Stage) -> None:
    first, again = export(stage), export(stage, "again.tar")
    assert (first.new, again.new) == (True, False)
    assert (stage.folder / "again.tar").read_bytes() == (stage.folder / "box.tar").read_bytes()
    assert len(stage.bodies(Sealed)) == 1
    packed, twice = (export(stage, name, compress=True) for name in ("a.zst", "b.zst"))
    assert packed.digest == twice.digest == first.digest
    assert (stage.folder / "a.zst").read_bytes() == (stage.folder / "b.zst").read_bytes()


def test_another_purpose_and_every_change_is_another_seal(stage: Stage) -> None:
    first = export(stage)
    share = export(stage, "share.tar", purpose="share")
    bare = export(stage, "bare.tar", without_workspace=True)
    stage.run("more")
    last = export(stage, "last.tar")
    seals = [made.manifest.seal for made in (first, share, bare, last)]
    assert [seal and seal.number for seal in seals] == [1, 2, 3, 4]
    assert [seal and seal.previous for seal in seals] == [
        None,
        first.digest,
        share.digest,
        bare.digest,
    ]
    assert stage.verify() == []


def test_a_capsule_with_an_open_turn_is_sealed_and_goes_on(stage: Stage) -> None:
    stage.rewrite([*SAYS[:1], {"fail": "overloaded"}, *SAYS])
    assert stage.run("more").reason == "model"
    export(stage)
    assert archives.verify_archive(str(stage.folder / "box.tar")).findings == ()
    stage.rewrite(SAYS)
    assert stage.resume().reason == "rest"
    assert stage.verify() == []


def test_stock_tools_unpack_and_check_what_was_written(stage: Stage, key: Path) -> None:
    export(stage, sign=str(key))
    place = stage.folder / "elsewhere"
    place.mkdir()
    (place / "allowed").write_text(f"ann {key.with_suffix('.pub').read_text()}")
    text = shell(stage.folder, f"tar -xOf box.tar {layout.VERIFY}").stdout
    steps = text.replace("-f allowed_signers", "-f ../allowed")
    unpack, *commands = [part for part in steps.split("\n\n") if part.startswith("     ")]
    assert len(commands) == 3
    assert shell(place, unpack.replace("FILE", "../box.tar")).stderr == ""
    folder = place / "capsule"
    assert sorted(one.name for one in place.iterdir()) == ["allowed", "capsule"]
    for command in commands:
        done = shell(folder, command.replace("-I NAME", "-I ann"))
        assert (done.returncode, done.stderr) == (0, ""), done
    alone = Path(__file__).resolve().parents[2] / "docs" / "verify_capsule.py"
    assert shell(folder, f"{sys.executable} -I {alone} .").stdout == "sound\n"
    blob = next((folder / layout.BLOBS).iterdir())
    blob.write_bytes(b"x")
    assert shell(folder, commands[0]).returncode == 1


def test_a_changed_list_of_sums_is_found_with_stock_tools_alone(stage: Stage, key: Path) -> None:
    """Whoever changes a file and its sum is found by the third step."""
    export(stage, sign=str(key))
    folder = stage.folder / "unpacked"
    folder.mkdir()
    shell(folder, "tar -xf ../box.tar")
    (folder / layout.WORKING_MEMORY).write_text("forged")
    shell(folder, "(grep -v working_memory SHA256SUMS; sha256sum memory/working_memory.md) > s")
    shell(folder, "sort -k2 s > SHA256SUMS; rm s")
    steps = (folder / layout.VERIFY).read_text().split("\n\n")
    _, sums, _, named = [part for part in steps if part.startswith("     ")]
    assert [shell(folder, sums).returncode, shell(folder, named).returncode] == [0, 1]


def test_zstd_and_age_of_others_open_what_was_written(stage: Stage, key: Path) -> None:
    identity = stage.folder / "identity"
    shell(stage.folder, "age-keygen -o identity")
    public = identity.read_text().split("public key: ")[1].split()[0]
    export(stage, "plain.tar")
    export(stage, "box.age", compress=True, encrypt_to=[public, f"{key}.pub"])
    for given in (identity, key):
        done = shell(stage.folder, f"age -d -i {given} box.age | zstd -dc | cmp - plain.tar")
        assert (done.returncode, done.stderr) == (0, "")
        checked = archives.verify_archive(str(stage.folder / "box.age"), identities=[str(given)])
        assert (checked.findings, checked.refused) == ((), None)
    with pytest.raises(UsageError) as refused:
        archives.verify_archive(str(stage.folder / "box.age"))
    assert refused.value.code == "identity_needed"
    other = stage.folder / "other"
    shell(stage.folder, f"age-keygen -o {other}")
    with pytest.raises(FormatError) as wrong:
        archives.verify_archive(str(stage.folder / "box.age"), identities=[str(other)])
    assert wrong.value.code == "decryption_failed"


def test_python_lists_plain_files_of_nobody(stage: Stage) -> None:
    export(stage)
    with tarfile.open(stage.folder / "box.tar") as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(m.mode, m.uid, m.gid, m.uname, m.gname, m.mtime, m.type) for m in members} == {
        (0o644, 0, 0, "", "", 0, tarfile.REGTYPE)
    }


def test_a_file_that_is_there_is_not_replaced_unasked(stage: Stage) -> None:
    (stage.folder / "box.tar").write_text("mine")
    with pytest.raises(UsageError) as refused:
        export(stage)
    assert refused.value.code == "exists"
    assert (stage.folder / "box.tar").read_text() == "mine"
    assert stage.bodies(Sealed) == []
    export(stage, force=True)
    assert archives.verify_archive(str(stage.folder / "box.tar")).findings == ()


def test_a_damaged_blob_stops_the_export_and_leaves_nothing(stage: Stage) -> None:
    blob = next((stage.capsule / layout.BLOBS).iterdir())
    blob.write_bytes(bytes(len(blob.read_bytes())))
    with pytest.raises(FormatError) as refused:
        export(stage)
    assert refused.value.code == "blob_altered"
    assert left(stage) == []


def left(stage: Stage) -> list[str]:
    """Archives and half-made ones."""
    return [n for n in os.listdir(stage.folder) if "tar" in n or n.startswith(".sojourn-")]


def test_what_is_missing_is_said_before_anything_is_sealed(stage: Stage) -> None:
    for options, code in (
        ({"sign": "no/key"}, "key_missing"),
        ({"encrypt_to": ["age1nothing"]}, "recipient_unknown"),
        ({"encrypt_to": ["no/file"]}, "recipient_missing"),
    ):
        with pytest.raises(SojournError) as refused:
            export(stage, **options)
        assert refused.value.code == code
    with pytest.raises(NotFoundError):
        export(stage, "no/folder/box.tar")
    assert stage.bodies(Sealed) == [] and left(stage) == []


def test_what_is_likely_a_secret_stops_it_until_it_is_accepted(stage: Stage) -> None:
    token = "ghp_" + "aB3" * 12
    stage.run(f"my token is {token}")
    with pytest.raises(FormatError) as refused:
        export(stage)
    assert (refused.value.code, refused.value.file) == ("secrets_found", layout.TIMELINE)
    assert refused.value.line == 1 + next(
        at for at, event in enumerate(stage.events()) if token in repr(event.body)
    )
    assert token not in refused.value.message + refused.value.hint
    assert stage.bodies(Sealed) == [] and left(stage) == []
    found = [one.id for one in scan(stage.make()) if isinstance(one, Suspect)]
    assert export(stage, accept=found).new


@pytest.mark.parametrize("instead", ["nothing", "a folder"])
def test_a_blob_that_is_not_there_stops_the_export_before_anything_is_sealed(
    stage: Stage, instead: str
) -> None:
    blob = next((stage.capsule / layout.BLOBS).iterdir())
    blob.unlink()
    if instead == "a folder":
        blob.mkdir()
    with pytest.raises(FormatError) as refused:
        export(stage)
    path = f"{layout.BLOBS}/{blob.name}"
    assert (refused.value.code, refused.value.file) == ("blob_missing", path)
    assert stage.bodies(Sealed) == [] and left(stage) == []


def test_an_export_says_how_many_files_hide_their_text(stage: Stage) -> None:
    class Listening(Unwatched):
        def note(self, text: str) -> None:
            notes.append(text)

    notes: list[str] = []
    hidden = gzip.compress(b"x")
    (stage.capsule / layout.BLOBS / sha256(hidden).hexdigest()).write_bytes(hidden)
    wanted = Wanted(file=str(stage.folder / "box.tar"))
    asyncio.run(archives.export_capsule(stage.machine, stage.make(), wanted, observer=Listening()))
    assert [note for note in notes if "1 compressed" in note]


def test_a_copy_is_not_exported(stage: Stage) -> None:
    shutil.copytree(stage.make().folder, stage.folder / "copy")
    place = stage.machine.find(str(stage.folder / "copy"))
    with pytest.raises(SojournError) as refused:
        asyncio.run(archives.export_capsule(stage.machine, place, Wanted(file="x.tar")))
    assert refused.value.code == "copied"


def test_the_end_of_an_interrupted_export_is_no_file(stage: Stage) -> None:
    """SIGINT while the archive is written: as Ctrl-C does it."""

    def interrupt(_done: int, _total: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    wanted = Wanted(file=str(stage.folder / "box.tar"))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(
            archives.export_capsule(stage.machine, stage.make(), wanted, progress=interrupt)
        )
    assert left(stage) == []
    assert not export(stage).new


@pytest.mark.parametrize("options", [{}, {"compress": True}, {"encrypt_to": ["key.pub"]}])
def test_what_the_disk_gives_back_is_compared_before_the_file_has_its_name(
    stage: Stage, key: Path, options: dict[str, Any]
) -> None:
    large = random.Random(1).randbytes(4 << 20)
    (stage.capsule / layout.BLOBS / sha256(large).hexdigest()).write_bytes(large)
    spoilt: list[str] = []

    def spoil(_done: int, _total: int) -> None:
        (half,) = [n for n in os.listdir(stage.folder) if n.startswith(".sojourn-")]
        path = stage.folder / half
        if path.stat().st_size > 1000 and not spoilt:
            with path.open("r+b") as file:
                file.seek(1000)
                byte = file.read(1)
                file.seek(1000)
                file.write(bytes([byte[0] ^ 1]))
            spoilt.append(half)

    if "encrypt_to" in options:
        options = {"encrypt_to": [f"{key}.pub"]}
    wanted = Wanted(file=str(stage.folder / "box.tar"), **options)
    with pytest.raises(FormatError):
        asyncio.run(archives.export_capsule(stage.machine, stage.make(), wanted, progress=spoil))
    assert spoilt
    assert left(stage) == []


def test_garbage_among_the_blobs_that_is_collected_is_a_change(stage: Stage) -> None:
    name = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    (stage.capsule / layout.BLOBS / name).write_bytes(b"x")
    first = export(stage)
    (stage.capsule / layout.BLOBS / name).unlink()
    second = export(stage, "second.tar")
    assert second.new and first.digest != second.digest
    assert second.manifest.seal is not None and second.manifest.seal.number == 2


def test_a_signature_is_put_in_and_replaced(stage: Stage, key: Path) -> None:
    export(stage, compress=True)
    file = str(stage.folder / "box.tar")
    signed = archives.sign_archive(file, key=str(key))
    assert archives.verify_archive(file).signed == signed
    other = stage.folder / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", other], check=True)
    again = archives.sign_archive(file, key=str(other))
    checked = archives.verify_archive(file)
    assert checked.signed == again and again.kind == "ssh-rsa" and checked.wrapped == ("zstd",)
    allowed = stage.folder / "allowed"
    allowed.write_text(f"ann {key.with_suffix('.pub').read_text()}")
    refused = archives.verify_archive(file, allowed_signers=str(allowed)).refused
    assert refused is not None and refused.code == "signer_unknown"


def test_what_is_not_sound_is_not_signed(stage: Stage, key: Path) -> None:
    export(stage)
    file = stage.folder / "box.tar"
    front, _, rest = file.read_bytes().rpartition(b"# Working memory")
    data = front + b"# Working Memory" + rest
    file.write_bytes(data)
    with pytest.raises(FormatError) as refused:
        archives.sign_archive(str(file), key=str(key))
    assert refused.value.code == "file_altered"
    assert file.read_bytes() == data


def test_the_live_manifest_stays_live(stage: Stage) -> None:
    export(stage)
    assert manifest.load((stage.capsule / layout.MANIFEST).read_bytes()).seal is None
    assert sorted(os.listdir(stage.capsule)) == [
        "artifacts",
        "environment",
        "manifest.json",
        "memory",
    ]
