"""The tools of the agent that is moved: each tells the counter that it happened."""

import asyncio
import json
import os
from pathlib import Path

from sojourn import ToolContext, tool


def standing() -> tuple[int, str]:
    """What this machine's ledger says at this moment of the one capsule that there is."""
    for path in (Path(os.environ["SOJOURN_HOME"]) / "ledger").glob("*.json"):
        record = json.loads(path.read_text())["record"]
        return record["epoch"], record["state"]
    return 0, ""


async def happen(name: str, context: ToolContext) -> str:
    """One POST, then a line in the workspace."""
    epoch, state = standing()
    said = {
        "tool": name,
        "key": context.key,
        "attempt": context.attempt,
        "epoch": epoch,
        "state": state,
    }
    body = json.dumps(said).encode()
    host, _, port = os.environ["COUNTER"].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    answer = (await reader.read()).decode().partition("\r\n\r\n")[2]
    writer.close()
    with (Path(context.workspace) / "diary.txt").open("a") as diary:
        diary.write(f"{name} {context.key}\n")
    return answer


@tool(replay="report")
async def launch(context: ToolContext) -> str:
    """An effect that must not happen twice."""
    return await happen("launch", context)


@tool(replay="keyed")
async def charge(context: ToolContext) -> str:
    """An effect that happens once a key, as with services that know such keys."""
    return await happen("charge", context)
