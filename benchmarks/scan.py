"""How fast likely secrets are looked for, against the sha256 of the same bytes.

benchmarks/README.md says what each row is.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import random
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from _env import load_average, machine_line
from _report import Row, note, put, put_rows, put_table

from sojourn.drive.scan import scan
from sojourn.format import layout

BENCH = "scan"
LIMIT = "sha256"
PIECE = 1 << 20


@dataclass(frozen=True)
class OneFile:
    """A capsule with one file in memory, in pieces as a folder gives them."""

    data: bytes
    path: str

    def paths(self) -> list[str]:
        """Return the file, unless it is a blob."""
        return [self.path]

    def blobs(self) -> list[str]:
        """Return nothing: what is said of the notes holds for blobs."""
        return []

    def chunks(self, path: str) -> Iterator[bytes]:
        """Return its bytes in pieces."""
        data = self.data if path == self.path else b""
        for at in range(0, len(data), PIECE):
            yield data[at : at + PIECE]


def texts(size: int) -> dict[str, OneFile]:
    """Return what is looked through, `size` bytes of each kind."""
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    code = b"".join(path.read_bytes() for path in sources)
    noise = random.Random(1).randbytes(size)
    parts = [part for part in code.decode("latin-1").split("\n\n") if len(part) > 300]
    lines = (
        msgspec.json.encode(
            {"body": {"salt": f"{number:032x}", "text": part}, "header": {"seq": number}}
        )
        for number, part in enumerate(parts)
    )
    log = b"\n".join(lines) + b"\n"
    kinds = {
        "source text": code,
        "noise": noise,
        "base64": base64.b64encode(noise),
    }
    files = {
        kind: OneFile((data * (size // len(data) + 1))[:size], layout.WORKING_MEMORY)
        for kind, data in kinds.items()
    }
    files["log"] = OneFile((log * (size // len(log) + 1))[:size], layout.TIMELINE)
    return files


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of one run: on a busy machine it says more than the clock."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(kind: str, file: OneFile, rounds: int) -> tuple[Row, Row]:
    """Return the rows of one kind: what the limit takes, and what looking takes."""
    pairs = [
        (seconds(lambda: hashlib.sha256(file.data)), seconds(lambda: list(scan(file))))
        for _ in range(rounds)
    ]
    limit, ours = (statistics.median(one) for one in zip(*pairs, strict=True))
    megabytes = len(file.data) / 1e6
    return (
        Row(row=f"{LIMIT} {kind}", value=megabytes / limit, unit="MB/s"),
        Row(
            row=f"scan {kind}",
            value=megabytes / ours,
            unit="MB/s",
            against=LIMIT,
            ratio=statistics.median(there / here for there, here in pairs),
        ),
    )


def main() -> int:
    """Run the benchmark; 0 whether or not goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1 MB of each kind, once")
    given = parser.parse_args()
    load = load_average()
    put(machine_line(Path.cwd()))
    size, rounds = (1 << 20, 1) if given.quick else (32 << 20, 5)
    rows = [row for kind, file in texts(size).items() for row in measure(kind, file, rounds)]
    put_table(
        f"{size >> 20} MiB of each",
        ("", "MB/s", "of sha256"),
        [
            (row.row, f"{row.value:.0f}", "" if row.ratio is None else f"{row.ratio:.3f}")
            for row in rows
        ],
    )
    put_rows(BENCH, rows)
    note(f"load average {load:.1f} before, {load_average():.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
