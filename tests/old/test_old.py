"""Every capsule of an earlier version is opened by this one (tests/old/README.md)."""

import subprocess
import sys
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from sojourn import Machine
from sojourn.agent import Place
from sojourn.agent.arrive import import_archive
from sojourn.agent.archives import verify_archive
from sojourn.agent.trust import scan
from sojourn.format.capsule_kinds import (
    Claimed,
    Forked,
    Redacted,
    Repaired,
    Restored,
    Sealed,
    Snapshotted,
)
from sojourn.format.event import AnyBody, Issuer, Memory, ToolOutcome
from sojourn.render import Target, render_bytes
from sojourn.render.profile import profile_for

HERE = Path(__file__).resolve().parent
FOLDERS = sorted(HERE.glob("v*/folders/*.tar.gz"))
ARCHIVES = sorted(path for path in HERE.glob("v*/archives/*.tar*"))
ALONE = HERE.parent.parent / "docs/verify_capsule.py"
TARGET = Target(
    issuer=Issuer(provider="openai", api="openai_chat", scope="default", model="any"),
    profile=profile_for("openai", "any"),
)

HOLDS: dict[str, Callable[[AnyBody], bool]] = {
    "v1/turn_with_tools": lambda body: isinstance(body, ToolOutcome) and body.status == "done",
    "v1/notes_edited": lambda body: isinstance(body, Memory) and body.origin == "hand",
    "v1/snapshots": lambda body: isinstance(body, Snapshotted) and body.full is not None,
    "v1/unknown_settled": lambda body: isinstance(body, ToolOutcome) and body.status == "unknown",
    "v1/forked": lambda body: isinstance(body, Forked),
    "v1/forked_in_a_turn": lambda body: isinstance(body, Restored) and body.why == "fork",
    "v1/claimed": lambda body: isinstance(body, Claimed) and body.forced,
    "v1/merged": lambda body: isinstance(body, Claimed) and body.forced,
    "v1/redacted": lambda body: isinstance(body, Redacted) and body.event is not None,
    "v1/snapshot_redacted": lambda body: isinstance(body, Redacted) and len(body.blobs) == 2,
    "v1/repaired": lambda body: isinstance(body, Repaired) and body.blob is not None,
    "v1/merged_and_claimed": lambda body: isinstance(body, Claimed) and len(body.heads) == 2,
}
"""What makes a shape what it is; at least one event of the log is so."""


def name_of(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.name.split('.')[0]}"


def opens(machine: Machine, place: Place) -> list[AnyBody]:
    """The capsule can be looked at, verified, and rendered for a model; the events' bodies."""
    look = machine.look(place)
    assert list(look.damages) == []
    assert [str(found) for found in machine.verify(place)] == []
    assert render_bytes(look.context(TARGET).payload)
    assert list(scan(place)) == []
    return [event.body for event in look.events_of()]


@pytest.mark.parametrize("file", FOLDERS, ids=name_of)
def test_a_folder_of_an_earlier_version_opens(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "capsule"
    with tarfile.open(file) as tar:
        tar.extractall(folder, filter="data")
    machine = Machine()
    bodies = opens(machine, machine.find(str(folder)))
    holds = HOLDS.get(name_of(file))
    assert holds is None or any(map(holds, bodies))
    command = [sys.executable, str(ALONE), str(folder)]
    alone = subprocess.run(command, capture_output=True, text=True, check=False)
    assert alone.stdout.strip() == "sound"


@pytest.mark.parametrize("file", ARCHIVES, ids=name_of)
def test_an_archive_of_an_earlier_version_is_sound_and_arrives(file: Path) -> None:
    signed = file.name.startswith("signed")
    allowed = str(file.parent.parent / "allowed_signers") if signed else None
    checked = verify_archive(str(file), allowed_signers=allowed)
    assert (checked.findings, checked.refused) == ((), None)
    machine = Machine()
    done = import_archive(machine, str(file), allowed_signers=allowed, accept=lambda _: True)
    assert done.place is not None
    bodies = opens(machine, done.place)
    assert isinstance(bodies[-1], Sealed)
    assert bodies[-1].without_workspace == file.name.startswith("without_workspace")


def test_every_shape_is_there() -> None:
    assert {name_of(file) for file in FOLDERS} >= {*HOLDS, "v1/fresh", "v1/large_bodies"}
    assert len(ARCHIVES) >= 8
    assert sum(file.stat().st_size for file in (*FOLDERS, *ARCHIVES)) < 2_000_000


def test_large_bodies_lie_in_blobs(tmp_path: Path) -> None:
    with tarfile.open(HERE / "v1/folders/large_bodies.tar.gz") as tar:
        log = tar.extractfile("./memory/timeline_events.jsonl")
        assert log is not None and b'"body":{"large":{' in log.read()


def test_no_file_of_an_earlier_version_was_changed() -> None:
    names = sorted((*FOLDERS, *ARCHIVES, *HERE.glob("v*/allowed_signers")))
    lines = (HERE / "SHA256SUMS").read_text().splitlines()
    listed = dict(reversed(line.split("  ")) for line in lines)
    there = {str(path.relative_to(HERE)): sha256(path.read_bytes()).hexdigest() for path in names}
    assert there == listed
