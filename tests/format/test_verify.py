"""The verifier: what vectors cannot show, the ledger's knowledge and bounded memory."""

import subprocess
import sys

import pytest

from format.vectors import FOLDER, Files, load
from sojourn.format import layout
from sojourn.format.failures import stops_running
from sojourn.format.timeline_read import Known
from sojourn.format.verify import verify
from sojourn.ids import EventId

STREAM = """
import sys
from format.logs import BIRTH, START, append, said
from sojourn.format.verify import verify

class Stream:
    def log(self):
        batch = append(START, BIRTH)
        sent = 0
        while sent < int(sys.argv[1]):
            yield batch.data
            sent += len(batch.data)
            batch = append(batch.chain, *[said("x" * 200)] * 100)
    def paths(self): return ()
    def blobs(self): return ()
    def read(self, path, limit): return None
    def size(self, path): return None
    def digest(self, path): return None
    def digests(self, paths): return ()

print([found.code for found in verify(Stream())])
print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
"""


def test_the_ledger_is_asked_beside_the_manifest() -> None:
    vector = load(FOLDER / "log_longer_than_the_manifest.json")
    size = len(vector.files[layout.TIMELINE])

    def codes(known: Known) -> list[str]:
        return [found.code for found in verify(Files(vector.files), known=known)]

    assert codes(Known(length=size)) == []
    assert codes(Known(length=size + 1)) == ["log_shorter"]
    assert codes(Known(length=size, last=EventId("0" * 64))) == ["log_replaced"]


def test_a_broken_manifest_does_not_hide_what_is_wrong_with_the_log() -> None:
    vector = load(FOLDER / "altered_body.json")
    files = {**vector.files, layout.MANIFEST: b"{"}
    found = list(verify(Files(files)))
    assert [item.code for item in found] == ["not_json", "body_altered"]
    assert [stops_running(item.code) for item in found] == [True, True]


def test_a_message_says_what_is_wrong_and_where() -> None:
    vector = load(FOLDER / "blob_missing.json")
    found = next(iter(verify(Files(vector.files))))
    assert (found.file, found.line) == (layout.TIMELINE, 4)
    assert found.message.startswith("a blob that is named is not there: ")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_log() -> None:
    def peak(size: int) -> int:
        """KiB."""
        command = [sys.executable, "-c", STREAM, str(size)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        codes, memory = done.stdout.splitlines()
        assert "file_missing" in codes and "body" not in codes
        return int(memory)

    small, large = peak(2 << 20), peak(128 << 20)
    # 16 bytes are kept of each event's id: a gigabyte of such lines needs eight times the growth.
    assert large + 8 * (large - small) < 100 * 1024
