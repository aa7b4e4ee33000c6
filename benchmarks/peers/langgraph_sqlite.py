"""LangGraph with its SqliteSaver: a model node, a tool node and a state of messages.

`durability="sync"` makes a step durable before the next one begins, which is what the other
contenders promise too. `--delta` keeps the messages in LangGraph's DeltaChannel (beta), which
stores what a step adds instead of the whole list.
"""

# ruff: noqa: E402 - the clock starts before anything is imported

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

BEGAN = time.perf_counter()
os.environ["LANGSMITH_TRACING"] = "false"

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages
from workload import (
    PROMPT,
    TOOL_NAME,
    Order,
    Stopwatch,
    die,
    main,
    reply_of,
    result_of,
)

DELTA = "--delta" in sys.argv
if DELTA:
    sys.argv.remove("--delta")


class Whole(TypedDict):
    """The usual state: every saved state holds every message."""

    messages: Annotated[list[AnyMessage], add_messages]


class Deltas(TypedDict):
    """The newer state: what is saved holds the messages that were added."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


State = Deltas if DELTA else Whole


def ask_tool(state: Any) -> dict[str, Any]:
    """Answer the last reply's tool call."""
    call = state["messages"][-1].tool_calls[0]
    step = len(state["messages"]) // 2 - 1
    answer = ToolMessage(result_of(step), tool_call_id=call["id"], id=f"result-{step}")
    return {"messages": [answer]}


def wants_tool(state: Any) -> str:
    """Return the node to go to after a model reply."""
    return "tool" if state["messages"][-1].tool_calls else END


def build(order: Order, ask_model: Callable[[Any], AIMessage]) -> tuple[Any, sqlite3.Connection]:
    """Return the compiled graph and the connection that it saves through."""

    def model(state: Any) -> dict[str, Any]:
        return {"messages": [ask_model(state)]}

    graph = StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("tool", ask_tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", wants_tool, ["tool", END])
    graph.add_edge("tool", "model")
    connection = sqlite3.connect(order.folder / "graph.db", check_same_thread=False)
    return graph.compile(checkpointer=SqliteSaver(connection)), connection


def settings(order: Order) -> dict[str, Any]:
    """Return the run's thread, and a limit that the steps fit in."""
    return {"configurable": {"thread_id": "1"}, "recursion_limit": 2 * order.steps + 50}


def run(order: Order) -> None:
    """Run the graph until the meter ends it in the middle of a model call."""
    meter = order.meter()

    def ask_model(state: Any) -> AIMessage:
        if not meter.another_step():
            die(meter.result())
        step = len(state["messages"]) // 2
        reply = reply_of(step)
        call = {"name": TOOL_NAME, "args": json.loads(reply.arguments), "id": f"call-{step}"}
        return AIMessage(reply.text, tool_calls=[call], id=f"reply-{step}")

    graph, _ = build(order, ask_model)
    start = {"messages": [HumanMessage(PROMPT, id="prompt")]}
    graph.invoke(start, settings(order), durability="sync")


def load(order: Order, watch: Stopwatch) -> None:
    """Go on with the thread; the state is back when the model is asked."""

    def ask_model(state: Any) -> AIMessage:
        watch.ready(steps=len(state["messages"]) // 2)
        return AIMessage("Done.", id="last")

    graph, connection = build(order, ask_model)
    graph.invoke(None, settings(order), durability="sync")
    connection.close()


if __name__ == "__main__":
    main(BEGAN, run=run, load=load)
