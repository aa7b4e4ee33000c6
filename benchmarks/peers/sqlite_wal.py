"""SQLite itself: write-ahead log, synchronous=FULL, two inserts a step, each its own commit."""

# ruff: noqa: E402 - the clock starts before anything is imported

from __future__ import annotations

import json
import sqlite3
import time

BEGAN = time.perf_counter()

from workload import Order, Stopwatch, die, main, reply_of, result_of

INSERT = "INSERT INTO events (body) VALUES (?)"


def connect(order: Order) -> sqlite3.Connection:
    """Open the database as durably as SQLite can in its write-ahead log."""
    connection = sqlite3.connect(order.folder / "events.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, body TEXT)")
    return connection


def padded(value: dict[str, str], size: int) -> str:
    """Return the value as JSON, followed by blanks up to that many bytes."""
    return json.dumps(value, separators=(",", ":")).ljust(size)


def run(order: Order) -> None:
    """Insert two rows a step, each durable before the next."""
    meter = order.meter()
    connection = connect(order)
    step = 0
    while meter.another_step():
        reply = reply_of(step)
        said = {"text": reply.text, "arguments": reply.arguments}
        found = {"result": result_of(step)}
        connection.execute(INSERT, (padded(said, order.line_bytes(2 * step)),))
        connection.execute(INSERT, (padded(found, order.line_bytes(2 * step + 1)),))
        step += 1
    die(meter.result())


def load(order: Order, watch: Stopwatch) -> None:
    """Read and parse every row."""
    connection = connect(order)
    rows = connection.execute("SELECT body FROM events ORDER BY seq")
    bodies = [json.loads(body) for (body,) in rows]
    watch.ready(steps=len(bodies) // 2)
    connection.close()


if __name__ == "__main__":
    main(BEGAN, run=run, load=load)
