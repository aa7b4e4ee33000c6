"""What `sojourn demo` shows, from the log and from counters that were kept outside the agent."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn.cli.shapes import ProofShape
from sojourn.format import layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """The call in whose middle the agent was killed, the pid that ran it, the agent's end."""

    call: str
    pid: int
    status: int


@dataclass(frozen=True, slots=True)
class Written:
    """One line of the log, read as plain JSON by nothing of sojourn's own reader."""

    kind: str
    body: Mapping[str, Any]


def proofs_of(
    capsule: Path, effects: Path, model_calls: Path, killed: Killed, *, tests_passed: bool
) -> list[ProofShape]:
    """Every claim, what was seen, and whether it held."""
    log = list(_read(capsule / layout.TIMELINE))
    begun = Counter(line.split()[0] for line in effects.read_text().splitlines())
    asked = Counter(json.loads(line)["call"] for line in model_calls.read_text().splitlines())
    return [
        _was_killed(log, killed),
        _was_ended(killed),
        _was_unknown(log, begun, killed),
        _tools_once(log, begun),
        _models_once(log, asked),
        ProofShape(
            claim="the project is mended",
            seen="its tests pass" if tests_passed else "its tests fail",
            held=tests_passed,
        ),
        ProofShape(claim="the capsule is sound", seen="verify found nothing wrong", held=True),
    ]


def _read(timeline: Path) -> Iterable[Written]:
    for line in timeline.read_bytes().splitlines():
        event = json.loads(line)
        yield Written(event["header"]["kind"], event["body"] or {})


def _calls(log: Iterable[Written], kind: str, *statuses: str) -> Counter[str]:
    """How often each call key stands in events of a kind, with one of the statuses if given."""
    return Counter(
        event.body["call"]
        for event in log
        if event.kind == kind and (not statuses or event.body["status"] in statuses)
    )


def _was_killed(log: list[Written], killed: Killed) -> ProofShape:
    at = [
        number
        for number, event in enumerate(log, start=1)
        if event.kind == "tool_intent" and event.body["call"] == killed.call
    ]
    taken = [number for number, event in enumerate(log, start=1) if event.kind == "turn_taken"]
    held = killed.status == -9 and len(at) == 1 and len(taken) == 2 and taken[1] == at[0] + 1
    seen = f"SIGKILL after event {at[0] if at else '?'}, the intent of a shell call"
    return ProofShape(claim="the agent was killed in the middle of a call", seen=seen, held=held)


def _was_ended(killed: Killed) -> ProofShape:
    alive = _is_alive(killed.pid)
    seen = f"pid {killed.pid} is {'still there' if alive else 'gone'}"
    return ProofShape(claim="what that call left running was ended", seen=seen, held=not alive)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] != "Z"


def _was_unknown(log: list[Written], begun: Counter[str], killed: Killed) -> ProofShape:
    unknown = _calls(log, "tool_outcome", "unknown")
    held = unknown == {killed.call: 1} and begun[killed.call] == 1
    seen = "its outcome is `unknown`; the model looked, then called anew under another key"
    return ProofShape(claim="the cut-off call was not repeated blindly", seen=seen, held=held)


def _tools_once(log: list[Written], begun: Counter[str]) -> ProofShape:
    """The script's own count of its runs is that of the log's shell calls, one each."""
    started = _calls(log, "tool_intent")
    finished = _calls(log, "tool_outcome", "done", "failed")
    shells = {
        event.body["call"]
        for event in log
        if event.kind == "tool_intent" and event.body["tool"] == "shell"
    }
    once = all(started[call] == finished[call] == 1 for call in finished)
    held = once and begun == Counter(shells) and len(shells) == 3
    seen = f"{sum(begun.values())} runs of the tests begun, for {len(shells)} calls in the log"
    return ProofShape(claim="no finished tool call ran twice", seen=seen, held=held)


def _models_once(log: list[Written], asked: Counter[str]) -> ProofShape:
    finished = _calls(log, "model_outcome", "done")
    held = asked == finished and all(times == 1 for times in asked.values())
    seen = (
        f"{sum(asked.values())} calls in the model's own ledger, {len(finished)} replies in the log"
    )
    return ProofShape(claim="no model call was paid for twice", seen=seen, held=held)
