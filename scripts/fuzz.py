"""Feeds what a coverage-guided fuzzer makes up to the readers of bytes that others wrote.

    make fuzz                                            every target, 60 seconds each
    .fuzz/bin/python scripts/fuzz.py log --seconds 600   one target, longer

Targets: `log` (the reader of the log), `archive` (the reader of archives), `import` (a whole import
into a state folder that is thrown away; half of the inputs are put into one file of a sound archive
that is sealed again, so that they come past its digests). A target fails when anything but an error
of the package is raised, when a call takes longer than 20 seconds, or when an import that was
refused leaves anything. What fails is kept in `.fuzz/found`, to be run again as
`scripts/fuzz.py TARGET FILE`. Seeds are the vectors and tests/old; what was found on the way lies
in `.fuzz/corpus`.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

atheris: Any = importlib.import_module("atheris")
with atheris.instrument_imports(include=["sojourn"]):
    from sojourn import Machine
    from sojourn.agent.arrive import import_archive
    from sojourn.errors import SojournError
    from sojourn.format import archive, layout, manifest, seal
    from sojourn.format.timeline_read import Known, Reader

ROOT: Final = Path(__file__).resolve().parent.parent
MADE: Final = ROOT / ".fuzz"
VECTORS: Final = ROOT / "tests/vectors/format"
OLD: Final = ROOT / "tests/old/v1/archives"
LONGEST: Final = 1 << 16
"""Bytes of an input."""

CALL_SECONDS: Final = 20


def read_log(data: bytes) -> None:
    """The log's reader takes any bytes, in pieces, and raises nothing."""
    size, data = 1 + (data[0] if data else 0) * 16, data[1:]
    reader = Reader(known=(Known(length=len(data) // 2),), read_blob=lambda _: None)
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    reader.finish(same_boot=False)


def read_archive(data: bytes) -> None:
    """The reader of archives gives members or an error of the package."""
    size, data = 1 + (data[0] if data else 0) * 16, data[1:]
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    try:
        for _ in archive.read(pieces, limit=LONGEST * 4):
            pass
    except SojournError:
        pass


class Importing:
    """Imports into one state folder; whatever was taken in is removed again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "box.tar"
        environment = {"PATH": os.environ["PATH"], "SOJOURN_HOME": str(folder / "state")}
        self._machine = Machine(environment)
        self._capsules = Path(self._machine.state.capsules)
        self._capsules.mkdir(parents=True)
        self._sound = members((OLD / "plain.tar").read_bytes())
        self._names = sorted(self._sound)

    def __call__(self, data: bytes) -> None:
        """Nothing is left of an archive that is refused, and nothing is written elsewhere."""
        choice, data = (data[0] if data else 0), data[1:]
        name = self._names[choice % len(self._names)]
        whole = data if choice % 2 else resealed(self._sound, name, data)
        self._file.write_bytes(whole)
        before = self._tree()
        try:
            done = import_archive(self._machine, str(self._file), accept=lambda _: True)
        except SojournError:
            left = self._tree() ^ before
            if left:
                raise RuntimeError(f"a refused import left {sorted(left)}") from None
            return
        if done.place is not None:
            if Path(done.place.folder).parent != self._capsules:
                raise RuntimeError(f"an import led out, to {done.place.folder}")
            shutil.rmtree(done.place.folder)
            for record in (self._folder / "state/ledger").iterdir():
                record.unlink()

    def _tree(self) -> set[str]:
        """What lies beside the state folder, and in it as capsules."""
        found = (*self._folder.iterdir(), *self._capsules.rglob("*"))
        return {path.as_posix() for path in found}


def members(data: bytes) -> dict[str, bytes]:
    """The files of an archive."""
    found: dict[str, bytes] = {}
    path = ""
    for item in archive.read([data]):
        if isinstance(item, bytes):
            found[path] += item
        else:
            path = item.path
            found[path] = b""
    return found


def resealed(sound: dict[str, bytes], name: str, data: bytes) -> bytes:
    """The archive with other bytes in one file, and with marks and sums that fit them."""
    files = {**sound, name: data}
    if name not in (layout.MANIFEST, layout.SUMS):
        found = manifest.load(sound[layout.MANIFEST])
        marks = {path: seal.mark(files[path]) for path in found.files}
        marks[layout.INDEX] = seal.mark(files[layout.INDEX], derived=True)
        log = files[layout.TIMELINE]
        timeline = msgspec.structs.replace(
            found.timeline, length=len(log), sha256=seal.mark(log).sha256
        )
        written = msgspec.structs.replace(found, files=marks, timeline=timeline)
        written = seal.with_sums(written)
        files[layout.MANIFEST] = manifest.encode(written)
        files[layout.SUMS] = seal.sums(written, files[layout.MANIFEST])
    return b"".join(
        archive.write((path, len(content), (content,)) for path, content in sorted(files.items()))
    )


def seeds(target: str) -> Iterator[bytes]:
    """What a target begins with; the first byte says how it is read."""
    if target == "log":
        for path in sorted(VECTORS.glob("*.json")):
            stored = json.loads(path.read_text("utf-8"))["files"].get(layout.TIMELINE)
            if stored is not None:
                yield b"\x40" + b"".join(_piece(piece) for piece in stored)
        return
    for path in sorted(OLD.glob("*.tar")):
        yield b"\x41" + path.read_bytes()
    if target == "import":
        sound = members((OLD / "plain.tar").read_bytes())
        for number, name in enumerate(sorted(sound)):
            if number % 2 == 0:
                yield bytes((number,)) + sound[name]


def _piece(piece: Any) -> bytes:
    """A text, base64, or a run of one character, of which a short one is enough."""
    if isinstance(piece, str):
        return piece.encode()
    return b64decode(piece["base64"]) if "base64" in piece else piece["repeat"].encode() * 64


def main() -> None:
    """Fuzz one target, or run it on files that were found."""
    parser = argparse.ArgumentParser(description="fuzz the readers")
    parser.add_argument("target", choices=("log", "archive", "import"))
    parser.add_argument("files", nargs="*", help="run these inputs and nothing else")
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        targets: dict[str, Callable[[bytes], None]] = {"log": read_log, "archive": read_archive}
        run = targets.get(options.target) or Importing(Path(folder))
        fuzz(options.target, run, options.files, options.seconds)


def fuzz(target: str, run: Callable[[bytes], None], files: list[str], seconds: int) -> None:
    """Hand over to the fuzzer, which ends the process when it is done."""
    corpus, found = MADE / "corpus" / target, MADE / "found"
    for path in (corpus, found):
        path.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(target)):
        (corpus / f"seed-{number:04}").write_bytes(data[:LONGEST])
    limits = [f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-timeout={CALL_SECONDS}"]
    words = files or [f"-artifact_prefix={found}/{target}-", *limits, str(corpus)]
    atheris.Setup([sys.argv[0], "-print_final_stats=1", *words], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
