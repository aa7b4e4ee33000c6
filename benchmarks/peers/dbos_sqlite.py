"""DBOS on its SQLite system database: one workflow, with a model step and a tool step."""

# ruff: noqa: E402 - the clock starts before anything is imported

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

BEGAN = time.perf_counter()

from dbos import DBOS, DBOSConfig, SetWorkflowID
from workload import PROMPT, Order, Stopwatch, die, main, reply_of, result_of

AskModel = Callable[[list[dict[str, str]]], dict[str, str]]


class Agent:
    """Holds the function that the model step calls; a workflow may not take one as argument."""

    ask_model: AskModel
    ended = threading.Event()


@DBOS.step()
def model(messages: list[dict[str, str]]) -> dict[str, str]:
    """Return the model's reply."""
    return Agent.ask_model(messages)


@DBOS.step()
def tool(step: int, _arguments: str) -> str:
    """Return the tool's result."""
    return result_of(step)


@DBOS.workflow()
def turn(prompt: str) -> int:
    """Ask the model and its tool in turn until the model is done; return the number of steps."""
    messages = [{"role": "user", "text": prompt}]
    step = 0
    while True:
        reply = model(messages)
        messages.append(reply)
        if "arguments" not in reply:
            Agent.ended.set()
            return step
        messages.append({"role": "tool", "text": tool(step, reply["arguments"])})
        step += 1


def configured(order: Order) -> DBOSConfig:
    """Return a configuration that is DBOS's own except for where it writes and what it logs."""
    return {
        "name": "steps",
        "system_database_url": f"sqlite:///{order.folder / 'dbos.sqlite'}",
        "application_version": "1",
        "executor_id": "local",
        "log_level": "ERROR",
    }


def run(order: Order) -> None:
    """Run the workflow until the meter ends it in the middle of a model call."""
    meter = order.meter()

    def ask_model(messages: list[dict[str, Any]]) -> dict[str, str]:
        if not meter.another_step():
            die(meter.result())
        reply = reply_of(len(messages) // 2)
        return {"role": "assistant", "text": reply.text, "arguments": reply.arguments}

    Agent.ask_model = staticmethod(ask_model)
    DBOS(config=configured(order))
    DBOS.launch()
    with SetWorkflowID("turn"):
        turn(PROMPT)


def load(order: Order, watch: Stopwatch) -> None:
    """Launch again; DBOS recovers the workflow by itself, and its model step is then asked."""

    def ask_model(messages: list[dict[str, Any]]) -> dict[str, str]:
        watch.ready(steps=len(messages) // 2)
        return {"role": "assistant", "text": "Done."}

    Agent.ask_model = staticmethod(ask_model)
    DBOS(config=configured(order))
    DBOS.launch()
    Agent.ended.wait()
    DBOS.retrieve_workflow("turn").get_result()
    DBOS.destroy()


if __name__ == "__main__":
    main(BEGAN, run=run, load=load)
