"""Wherever a redaction or a repair ends, nothing happened or it is completed."""

from collections.abc import Callable

import pytest

from faults import trimming
from faults.faulty_disks import NoFileSync, NoFolderSync
from faults.test_forks_and_claims import Sequence, deaths
from sojourn.drive import repair, rewrite
from sojourn.errors import SojournError
from sojourn.store.rewriting import FolderRewriter
from sojourn.testing.disk import RecordingDisk
from sojourn.testing.power import DEATHS, end_everywhere

SEQUENCES = {
    "redact": Sequence(trimming.with_a_secret, trimming.redact, trimming.is_redacted_or_untouched),
    "repair": Sequence(trimming.with_damage, trimming.repair, trimming.is_repaired_or_damaged),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_it_happened_or_not_wherever_its_process_dies(name: str) -> None:
    assert deaths(SEQUENCES[name]) > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", SEQUENCES)
def test_it_happened_or_not_wherever_the_power_is_cut(name: str) -> None:
    sequence = SEQUENCES[name]
    tried = end_everywhere(sequence.start(), sequence.act, sequence.check, errors=DEATHS)
    assert tried.disks > 2 * tried.ends


def marks_stay(patch: pytest.MonkeyPatch) -> str:
    """Manifest and ledger go on to name the log that is replaced."""

    async def nothing(*_: object) -> None:
        return

    patch.setattr(rewrite, "_name_only_the_first", nothing)
    return "redact"


def nothing_swept(patch: pytest.MonkeyPatch) -> str:
    """Openings leave the blobs that a redaction did not come to."""
    patch.setattr(FolderRewriter, "discard", lambda *_: 0)
    return "redact"


def bytes_not_kept(patch: pytest.MonkeyPatch) -> str:
    """Bytes are taken out of the log before they are kept."""

    async def unkept(_: object, data: bytes) -> object:
        from sojourn.format.blob import ref

        return ref(data, media_type="application/octet-stream")

    patch.setattr(repair, "_keep", unkept)
    return "repair"


@pytest.mark.parametrize("plant", [marks_stay, nothing_swept, bytes_not_kept])
def test_a_planted_fault_is_found_by_deaths(
    plant: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = plant(monkeypatch)
    with pytest.raises((AssertionError, SojournError, KeyError)):
        deaths(SEQUENCES[name])


@pytest.mark.slow
@pytest.mark.parametrize("disk", [NoFileSync, NoFolderSync])
@pytest.mark.parametrize("name", SEQUENCES)
def test_a_disk_that_does_not_sync_is_found(disk: type[RecordingDisk], name: str) -> None:
    sequence = SEQUENCES[name]
    start = sequence.start().turned_into(disk)
    with pytest.raises((AssertionError, SojournError, KeyError, ValueError, IndexError)):
        end_everywhere(start, sequence.act, sequence.check, errors=DEATHS)
