"""Repair sets damaged bytes aside and records them; the capsule is sound and runs again."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.stage import Stage
from sojourn.agent.trim import repair
from sojourn.drive.repair import RepairReport
from sojourn.errors import FormatError, HeldElsewhereError, SojournError
from sojourn.format.capsule_kinds import Repaired
from sojourn.format.event import ToolOutcome
from sojourn.format.layout import BLOBS, MANIFEST

STEPS = [
    {"calls": [{"tool": "shell", "args": {"command": "seq 5000"}}]},
    {"text": "Counted."},
    {"text": "Again."},
    {"text": "And again."},
]


def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, STEPS)
    made.run("count")
    return made


def mend(made: Stage, *, dry_run: bool = False) -> RepairReport:
    return asyncio.run(repair(made.machine, made.make(), dry_run=dry_run))


def lines(made: Stage) -> list[bytes]:
    return made.timeline().read_bytes().splitlines(keepends=True)


def damage(made: Stage, at: int, how: str) -> bytes:
    """Damage a line (from 0); the bytes that were there."""
    found = lines(made)
    before = found[at]
    match how:
        case "nul":
            found[at] = bytes(len(before) - 1) + b"\n"
        case "half":
            found[at] = before[: len(before) // 2] + b"\n"
        case "glued":
            found[at] = before[:-1]
        case "altered":
            found[at] = before.replace(b'"salt":"', b'"salt":"x', 1)
        case "header":
            found[at] = before.replace(b'"time":"2', b'"time":"3', 1)
        case "gone":
            found[at] = b""
        case "twice":
            found[at] = before + before
        case _:
            raise ValueError(how)
    made.timeline().write_bytes(b"".join(found))
    return before


def held(made: Stage) -> list[bytes]:
    return [path.read_bytes() for path in (made.capsule / BLOBS).iterdir()]


HOW = ["nul", "half", "glued", "altered", "header", "gone", "twice"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("at", [5, 6, -2])
def test_what_is_damaged_is_kept_and_the_agent_goes_on(tmp_path: Path, how: str, at: int) -> None:
    made = stage(tmp_path)
    whole = lines(made)
    damage(made, at, how)
    left = lines(made)
    assert made.verify() != []
    report = mend(made)
    assert report.done
    assert made.verify() == []
    after = lines(made)
    lost = [line for line in left if line not in after]
    assert all(any(line in blob for blob in held(made)) for line in lost)
    assert [line for line in whole if line in after] == [x for x in after if x in whole]
    assert made.run("go on").reason == "rest"
    assert made.verify() == []
    assert mend(made).nothing


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(4, 10), st.sampled_from(HOW)), min_size=2, max_size=4))
def test_several_damages_are_all_kept_or_nothing_is_changed(
    tmp_path_factory: pytest.TempPathFactory, damages: list[tuple[int, str]]
) -> None:
    made = stage(tmp_path_factory.mktemp("several"))
    for at, how in damages:
        damage(made, at, how)
    left = made.timeline().read_bytes()
    try:
        report = mend(made)
    except (FormatError, HeldElsewhereError) as error:
        assert error.code in ("repair_refused", "rolled_back", "equivocation")
        assert made.timeline().read_bytes() == left
        return
    after = lines(made)
    assert all(
        line in after or any(line in blob for blob in held(made))
        for line in left.splitlines(keepends=True)
    )
    assert made.verify() == []
    assert report.done != report.nothing
    assert made.run("go on").reason == "rest"


def test_the_last_line_is_set_aside_and_its_place_is_never_used_again(tmp_path: Path) -> None:
    made = stage(tmp_path)
    last = made.events()[-1]
    damage(made, -1, "altered")
    mend(made)
    assert made.verify() == []
    after = [event.header.seq for event in made.events()]
    assert last.header.seq not in after
    assert made.run("go on").reason == "rest"


def test_a_lost_blob_is_recorded_and_the_model_is_told(tmp_path: Path) -> None:
    made = stage(tmp_path)
    outcome = next(e for e in made.events() if isinstance(e.body, ToolOutcome))
    body = outcome.body
    assert isinstance(body, ToolOutcome) and body.full is not None
    (made.capsule / BLOBS / body.full.sha256).unlink()
    assert made.verify() == ["blob_missing"]
    (lost,) = mend(made, dry_run=True).lost
    assert (lost.blob, lost.events) == (body.full.sha256, (outcome.id,))
    assert made.verify() == ["blob_missing"]
    mend(made)
    assert made.verify() == []
    assert made.run("go on").reason == "rest"


def test_an_altered_blob_is_kept_under_its_own_name(tmp_path: Path) -> None:
    made = stage(tmp_path)
    body = next(e.body for e in made.events() if isinstance(e.body, ToolOutcome))
    assert isinstance(body, ToolOutcome) and body.full is not None
    path = made.capsule / BLOBS / body.full.sha256
    path.write_bytes(b"other bytes")
    mend(made)
    assert b"other bytes" in held(made)
    assert not path.exists()
    assert made.verify() == []


@pytest.mark.parametrize("left", [None, b"", b'{"capsule":'])
def test_a_manifest_is_made_anew_from_log_and_ledger(tmp_path: Path, left: bytes | None) -> None:
    made = stage(tmp_path)
    before = made.make()
    path = made.capsule / MANIFEST
    path.unlink() if left is None else path.write_bytes(left)
    report = mend(made)
    assert report.manifest is not None
    after = made.make()
    assert (after.capsule, after.name) == (before.capsule, before.name)
    assert made.verify() == []
    assert left is None or left in held(made)
    assert made.run("go on").reason == "rest"
    (body,) = made.bodies(Repaired)
    assert body.code == report.manifest


def test_a_copy_is_not_repaired(tmp_path: Path) -> None:
    made = stage(tmp_path)
    damage(made, 5, "nul")
    made.environment["SOJOURN_HOME"] = str(tmp_path / "another")
    with pytest.raises(SojournError) as refused:
        mend(made)
    assert isinstance(refused.value, HeldElsewhereError)


def test_the_first_line_cannot_be_repaired(tmp_path: Path) -> None:
    made = stage(tmp_path)
    damage(made, 0, "altered")
    left = made.timeline().read_bytes()
    with pytest.raises(FormatError) as refused:
        mend(made)
    assert refused.value.code == "repair_refused"
    assert made.timeline().read_bytes() == left


def test_a_sound_capsule_has_nothing_to_repair(tmp_path: Path) -> None:
    made = stage(tmp_path)
    log = made.timeline().read_bytes()
    assert mend(made).nothing
    assert made.timeline().read_bytes() == log
