"""The limit: the same number of bytes written to a file, with two fdatasync a step."""

# ruff: noqa: E402 - the clock starts before anything is imported

from __future__ import annotations

import os
import time

BEGAN = time.perf_counter()

from workload import Order, Stopwatch, die, main, reply_of, result_of


def padded(text: str, size: int) -> bytes:
    """Return the text as one line of that many bytes."""
    return text.encode().ljust(size - 1, b".")[: size - 1] + b"\n"


def run(order: Order) -> None:
    """Append two lines a step, each durable before the next."""
    meter = order.meter()
    descriptor = os.open(order.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    step = written = 0
    while meter.another_step():
        reply = reply_of(step)
        said = padded(reply.text + reply.arguments, order.line_bytes(2 * step))
        written += os.write(descriptor, said)
        os.fdatasync(descriptor)
        found = padded(result_of(step), order.line_bytes(2 * step + 1))
        written += os.write(descriptor, found)
        os.fdatasync(descriptor)
        step += 1
    die({**meter.result(), "log_bytes": written})


def load(order: Order, watch: Stopwatch) -> None:
    """Read the file and split it into lines."""
    lines = (order.folder / "log").read_bytes().split(b"\n")
    watch.ready(steps=(len(lines) - 1) // 2)


if __name__ == "__main__":
    main(BEGAN, run=run, load=load)
