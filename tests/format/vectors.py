"""Reads the vectors of tests/vectors/format; docs/format.md#verification says what they mean."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from sojourn.format import layout
from sojourn.format.failures import Finding
from sojourn.format.verify import verify

FOLDER = Path(__file__).resolve().parent.parent / "vectors" / "format"
VALUES = FOLDER.parent / "format_values"
ARCHIVES = FOLDER.parent / "archive"
BLOBS = layout.BLOBS + "/"


@dataclass(frozen=True)
class Vector:
    """One capsule and what a verifier must say of it."""

    name: str
    files: dict[str, bytes]
    expect: list[tuple[str, str, int | None]]
    same_boot: bool

    def verify(self, chunk: int = 1 << 20) -> list[Finding]:
        files = Files(self.files, chunk)
        return list(verify(files, same_boot=self.same_boot))


@dataclass(frozen=True)
class Files:
    """A capsule in memory."""

    held: dict[str, bytes]
    chunk: int = 1 << 20

    def log(self) -> Iterator[bytes] | None:
        data = self.held.get(layout.TIMELINE)
        if data is None:
            return None
        return (data[at : at + self.chunk] for at in range(0, len(data), self.chunk))

    def paths(self) -> Iterable[str]:
        return (path for path in self.held if not path.startswith(BLOBS))

    def blobs(self) -> Iterable[str]:
        return (path.removeprefix(BLOBS) for path in self.held if path.startswith(BLOBS))

    def read(self, path: str, limit: int) -> bytes | None:
        data = self.held.get(path)
        return None if data is None else data[: limit + 1]

    def size(self, path: str) -> int | None:
        data = self.held.get(path)
        return None if data is None else len(data)

    def digest(self, path: str) -> str | None:
        data = self.held.get(path)
        return None if data is None else sha256(data).hexdigest()

    def digests(self, paths: Iterable[str]) -> list[tuple[str, str | None]]:
        return [(path, self.digest(path)) for path in paths]


def content(pieces: list[Any]) -> bytes:
    """The bytes of a file: texts, base64, and runs of one character."""
    made: list[bytes] = []
    for piece in pieces:
        match piece:
            case str():
                made.append(piece.encode())
            case {"base64": text}:
                made.append(base64.b64decode(text))
            case {"repeat": text, "times": times}:
                made.append(text.encode() * times)
            case _:
                raise ValueError(f"unknown piece {piece!r}")
    return b"".join(made)


def load(path: Path) -> Vector:
    stored = json.loads(path.read_text("utf-8"))
    return Vector(
        name=path.stem,
        files={name: content(pieces) for name, pieces in stored["files"].items()},
        expect=[(code, file, line) for code, file, line in stored["expect"]],
        same_boot=stored.get("same_boot", False),
    )


def every() -> list[Path]:
    return sorted(FOLDER.glob("*.json"))


def values() -> list[Path]:
    return sorted(VALUES.glob("*.json"))
