"""Sealed capsules: any change of any byte of any file is found, and the sums are coreutils'."""

import json
import subprocess
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from format.vectors import BLOBS, FOLDER, Files, load
from sojourn.format import layout, manifest, seal
from sojourn.format.verify import verify

SEALED = load(FOLDER / "sealed.json").files
NAMES = sorted(SEALED)


def wrong(files: dict[str, bytes]) -> bool:
    return next(iter(verify(Files(files))), None) is not None


def test_it_is_sound_as_it_is() -> None:
    assert not wrong(SEALED)


@settings(max_examples=400)
@given(st.data())
def test_a_flipped_bit_in_any_file_is_found(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    changed = bytearray(SEALED[name])
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert wrong({**SEALED, name: bytes(changed)})


@settings(max_examples=200)
@given(st.data())
def test_a_cut_or_a_longer_file_is_found(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    start = data.draw(st.integers(0, len(SEALED[name]) - 1))
    end = data.draw(st.integers(start + 1, len(SEALED[name])))
    assert wrong({**SEALED, name: SEALED[name][:start] + SEALED[name][end:]})
    assert wrong({**SEALED, name: SEALED[name][:end] + SEALED[name][start:]})


def test_a_file_that_is_gone_is_found() -> None:
    for name in NAMES:
        assert wrong({path: data for path, data in SEALED.items() if path != name})


def test_two_files_that_changed_places_are_found() -> None:
    for one in NAMES:
        for other in NAMES:
            if SEALED[one] != SEALED[other]:
                assert wrong({**SEALED, one: SEALED[other], other: SEALED[one]})


def test_lines_of_the_log_that_changed_places_or_stand_twice_are_found() -> None:
    lines = SEALED[layout.TIMELINE].splitlines(keepends=True)
    for at in range(len(lines) - 1):
        swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
        assert wrong({**SEALED, layout.TIMELINE: b"".join(swapped)})
        twice = [*lines[: at + 1], *lines[at:]]
        assert wrong({**SEALED, layout.TIMELINE: b"".join(twice)})


def test_a_file_more_is_found_wherever_it_lies() -> None:
    for name in ("x", "memory/x", f"{BLOBS}{'0' * 64}", f"{BLOBS}x", "environment/x"):
        assert wrong({**SEALED, name: b""})


def test_coreutils_accept_the_sums_and_find_a_change(tmp_path: Path) -> None:
    for name, data in SEALED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    command = ["sha256sum", "-c", "--quiet", "--strict", layout.SUMS]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    (tmp_path / layout.MANIFEST).write_bytes(SEALED[layout.MANIFEST] + b" ")
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 1 and b"manifest.json: FAILED" in done.stdout


def test_a_manifest_made_live_again_is_that_of_the_live_capsule() -> None:
    found = manifest.load(SEALED[layout.MANIFEST])
    live = seal.unsealed(found)
    assert live.seal is None and layout.VERIFY not in live.files
    data = manifest.encode(live)
    assert "seal" not in json.loads(data)
    kept = {path: SEALED[path] for path in NAMES if path not in layout.COMPANIONS}
    assert not wrong({**kept, layout.MANIFEST: data})


def test_the_text_says_commands_that_fit_the_namespace_and_files() -> None:
    text = seal.VERIFY_TEXT.decode()
    assert "sojourn-capsule@v1" in text
    for name in (layout.SUMS, layout.MANIFEST, layout.SIGNATURE):
        assert name in text
