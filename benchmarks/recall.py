"""How well searching finds what was said in other words, and what it costs.

benchmarks/README.md says what each row is; recall_set.tsv is the published set.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from _env import clean_environment, drop_run_folder, load_average, machine_line, run_folder
from _report import Row, note, put, put_rows, put_table

from sojourn.core import recall
from sojourn.core.passages import Passage
from sojourn.embedders.static import StaticEmbedder
from sojourn.ids import EventId
from sojourn.store.working_index import SqliteWorkingIndex

BENCH = "recall"
SET = Path(__file__).with_name("recall_set.tsv")
TIMED = 10_000
MEMORY, FIRST = "--memory", "--first"
GOAL_INDEX_SECONDS = 30.0
GOAL_QUERY_MILLISECONDS = 100.0

Ranking = Callable[[str], Sequence[int]]


OTHER, SAME = "in other words", "by its very words"


def read_set() -> tuple[list[str], dict[str, list[tuple[str, int]]]]:
    """Return the texts, and two groups of questions, each with the place of its answer."""
    texts: list[str] = []
    groups: dict[str, list[tuple[str, int]]] = {OTHER: [], SAME: []}
    for line in SET.read_text("utf-8").splitlines():
        text, question, beginning = (*line.split("\t"), "", "")[:3]
        if text == "@":
            (number,) = (n for n, text in enumerate(texts) if text.startswith(beginning))
            groups[SAME].append((question, number))
        elif not line.startswith("#"):
            if question:
                groups[OTHER].append((question, len(texts)))
            texts.append(text)
    return texts, groups


def passage_of(number: int, text: str) -> Passage:
    """Return a text as the passage of an event of this number."""
    return Passage(
        kind="input",
        place=f"{number:064x}",
        part=0,
        event=EventId(f"{number:064x}"),
        number=number,
        time="2026-01-01T00:00:00.000Z",
        text=text,
    )


class Searched:
    """Texts in a working index of their own; none is put in when it is there already."""

    def __init__(self, path: Path, texts: Sequence[str] = ()) -> None:
        self.embedder = StaticEmbedder()
        self.index = SqliteWorkingIndex(str(path))
        with self.index.alone():
            self._take_in(texts)

    def _take_in(self, texts: Sequence[str]) -> None:
        passages = [passage_of(number, text) for number, text in enumerate(texts)]
        for start in range(0, len(passages), 512):
            self.index.update(gone=(), new=passages[start : start + 512], mark="")
        while rows := self.index.without_vectors(512):
            made = self.embedder.embed([text for _, text in rows])
            self.index.add_vectors(
                {number: vector for (number, _), vector in zip(rows, made, strict=True)}
            )

    def meaning(self, question: str) -> list[int]:
        """Return passages by vectors."""
        (asked,) = self.embedder.embed([question])
        numbers, vectors = self.index.vectors(())
        return [numbers[near.number] for near in recall.nearest(asked, vectors)]

    def words(self, question: str) -> list[int]:
        """Return passages by BM25."""
        words = recall.words_of(question)
        return self.index.with_words(words, (), most=recall.CANDIDATES)

    def both(self, question: str) -> list[int]:
        """Return passages as `sojourn search` ranks them."""
        with self.index.alone():
            return self._both(question)

    def _both(self, question: str) -> list[int]:
        words, by_words = recall.words_of(question), self.words(question)
        total, having = self.index.having(words, by_words)
        by_words = recall.covering(by_words, having, total=total)
        fused = recall.fuse(self.meaning(question), by_words)
        return [number for number, _ in fused]


def recall_rows(searched: Searched, group: str, questions: Sequence[tuple[str, int]]) -> list[Row]:
    """Print the table, and return the rows, of how often the answer is among the first."""
    ways: dict[str, Ranking] = {
        "words": searched.words,
        "meaning": searched.meaning,
        "both": searched.both,
    }
    rows: list[Row] = []
    lines: list[tuple[str, ...]] = []
    for name, rank in ways.items():
        places: list[int] = []
        for question, number in questions:
            ranking = list(rank(question))
            wanted = number + 1
            places.append(ranking.index(wanted) if wanted in ranking else len(ranking) + 1000)
        figures = {
            "R@1": sum(place < 1 for place in places) / len(places),
            "R@5": sum(place < 5 for place in places) / len(places),
            "MRR": statistics.fmean(1 / (1 + place) for place in places),
        }
        lines.append((name, *(f"{value:.2f}" for value in figures.values())))
        rows += [
            Row(row=f"{group}: {name} {figure}", value=value, unit="share")
            for figure, value in figures.items()
        ]
    put_table(f"{len(questions)} questions {group}", ("", "R@1", "R@5", "MRR"), lines)
    return rows


def many(texts: Sequence[str]) -> list[str]:
    """Return 10,000 texts of the length of the set's, all different."""
    return [f"{texts[n % len(texts)]} ({n}, run {n * 7919 % 10007})" for n in range(TIMED)]


def cost_rows(
    folder: Path, texts: Sequence[str], questions: Sequence[tuple[str, int]]
) -> list[Row]:
    """Print the table, and return the rows, of time and memory for 10,000 texts."""
    StaticEmbedder().embed(["the table is loaded"])
    note(f"indexing {TIMED} texts")
    began = time.perf_counter()
    searched = Searched(folder / "many.sqlite3", many(texts))
    index_seconds = time.perf_counter() - began
    embedder = StaticEmbedder()
    embedder.embed(["the table is loaded"])
    began = time.perf_counter()
    embedder.embed(many(texts))
    embed_seconds = time.perf_counter() - began
    latencies: list[float] = []
    processor: list[float] = []
    for question, _ in questions:
        began, used = time.perf_counter(), time.process_time()
        searched.both(question)
        latencies.append((time.perf_counter() - began) * 1000)
        processor.append((time.process_time() - used) * 1000)
    first = [first_of_process(folder / "many.sqlite3", question) for question, _ in questions[:5]]
    began = time.perf_counter()
    StaticEmbedder().embed(["load"])
    load_milliseconds = (time.perf_counter() - began) * 1000
    megabytes = float(in_process(MEMORY))
    size = (folder / "many.sqlite3").stat().st_size / 1e6
    middle, one = statistics.median(latencies), statistics.median(processor)
    earlier, numpy = (statistics.median(each) for each in zip(*first, strict=True))
    put_table(
        f"{TIMED:,} texts",
        ("", "value"),
        [
            ("index them", f"{index_seconds:.1f} s"),
            ("of that, vectors", f"{embed_seconds:.1f} s"),
            ("a question, median", f"{middle:.1f} ms"),
            ("of that, processor", f"{one:.1f} ms"),
            ("a question, slowest", f"{max(latencies):.1f} ms"),
            ("the first in a process", f"{earlier:.1f} ms"),
            ("of that, numpy's import", f"{numpy:.1f} ms"),
            ("load the table", f"{load_milliseconds:.0f} ms"),
            ("memory of the embedder", f"{megabytes:.0f} MB"),
            ("working index on disk", f"{size:.0f} MB"),
        ],
    )
    return [
        Row(row="index 10,000 texts", value=index_seconds, unit="s", goal=GOAL_INDEX_SECONDS),
        Row(row="vectors of 10,000 texts", value=embed_seconds, unit="s"),
        Row(row="question, median", value=middle, unit="ms", goal=GOAL_QUERY_MILLISECONDS),
        Row(row="question, median, processor", value=one, unit="ms"),
        Row(row="question, first in a process", value=earlier, unit="ms"),
        Row(row="import of numpy", value=numpy, unit="ms"),
        Row(row="load the table", value=load_milliseconds, unit="ms"),
        Row(row="memory of the embedder", value=megabytes, unit="MB"),
        Row(row="working index on disk", value=size, unit="MB"),
    ]


def resident() -> float:
    """Return this process's memory in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("the kernel does not tell VmRSS")


def in_process(*words: str) -> str:
    """Return what this file prints in a process of its own."""
    ended = subprocess.run(
        [sys.executable, __file__, *words],
        check=True,
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    return ended.stdout


def first_of_process(path: Path, question: str) -> tuple[float, float]:
    """Return milliseconds of the first question in a process, and numpy's import in them."""
    whole, numpy = in_process(FIRST, str(path), question).split()
    return float(whole), float(numpy)


def say_first(path: Path, question: str) -> None:
    """Print how long the first question of this process takes, and importing numpy in it."""
    began = time.perf_counter()
    importlib.import_module("numpy")
    numpy = (time.perf_counter() - began) * 1000
    Searched(path).both(question)
    put(f"{(time.perf_counter() - began) * 1000} {numpy}")


def say_memory() -> None:
    """Print how much this process grows by embedding one text."""
    before = resident()
    StaticEmbedder().embed(["one text"])
    put(f"{resident() - before}")


def main() -> int:
    """Run the benchmark; 0 whether or not goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="recall alone")
    parser.add_argument(MEMORY, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(FIRST, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        path, question = given.first
        say_first(Path(path), question)
        return 0
    if given.memory:
        say_memory()
        return 0
    load = load_average()
    folder = run_folder(BENCH)
    try:
        put(machine_line(folder))
        texts, groups = read_set()
        searched = Searched(folder / "set.sqlite3", texts)
        rows = [
            row
            for group, questions in groups.items()
            for row in recall_rows(searched, group, questions)
        ]
        if not given.quick:
            rows += cost_rows(folder, texts, [one for group in groups.values() for one in group])
        put_rows(BENCH, rows)
    finally:
        drop_run_folder(folder)
    note(f"load average {load:.1f} before, {load_average():.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
