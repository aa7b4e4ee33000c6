"""The process that the kill sweep kills: an agent in `./capsule`, told by `./script.json`.

Run as `python kill_agent.py` in a folder of its own. Every effect is counted outside the agent, in
`./effects/`, by the call's key. `--no-send` runs what was accepted before, and `--fault NAME`
plants a fault that the sweep must find.
"""

import asyncio
import os
import sys
from pathlib import Path

from sojourn import Agent, Machine, ToolContext, tool

HERE = Path.cwd()
REQUEST = "the-only-one"


def count(name: str, context: ToolContext) -> None:
    """One line for each time the effect happens, in one write."""
    (HERE / "effects").mkdir(exist_ok=True)
    line = f"{name} {context.key}\n".encode()
    handle = os.open(HERE / "effects/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, line)
    os.close(handle)


@tool(replay="safe")
async def look(context: ToolContext) -> str:
    """What was launched so far."""
    count("look", context)
    try:
        launched = (HERE / "effects/launched").read_text().splitlines()
    except FileNotFoundError:
        launched = []
    return f"launched: {len(launched)}"


@tool(replay="keyed")
async def charge(context: ToolContext) -> str:
    """Charges once a key, as a service with idempotency keys does."""
    count("charge", context)
    (HERE / "effects/charged").mkdir(exist_ok=True)
    handle = os.open(HERE / "effects/charged" / context.key, os.O_WRONLY | os.O_CREAT, 0o600)
    os.close(handle)
    return "charged"


@tool(replay="report", verify_with=("look",))
async def launch(context: ToolContext) -> str:
    """An effect that must not happen twice."""
    count("launch", context)
    handle = os.open(HERE / "effects/launched", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, b"launch\n")
    os.close(handle)
    return "launched"


async def work(*, send: bool) -> None:
    """Send the one message under one request id, if asked to, and run until the agent rests."""
    Path("workspace").mkdir(exist_ok=True)
    async with Agent.open(
        "./capsule",
        model="scripted/script.json",
        workspace="./workspace",
        tools=[look, charge, launch],
    ) as agent:
        if send:
            await agent.send("Do the work.", request=REQUEST)
            print("accepted", flush=True)
        report = await agent.run()
        print("ended", report.reason, flush=True)
    left = [str(found) for found in Machine().verify(agent.place)]
    print("verified", left, flush=True)


if __name__ == "__main__":
    if "--fault" in sys.argv:
        import kill_faults

        kill_faults.plant(sys.argv[sys.argv.index("--fault") + 1])
    asyncio.run(work(send="--no-send" not in sys.argv))
