"""Merges two prepared copies again and again, and dies at another operation of the disk each time.

Run as `python kill_merge.py FOLDER [--fault]`: FOLDER/template is what FOLDER/world was when two
copies were made there, `here` and `there`. What was found is printed as JSON. Each merge runs in a
child of its own that ends itself with SIGKILL; what it left is then opened, and the merge done
again.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from agent.stage import Stage
from sojourn.agent.merging import merge
from sojourn.core.tenure import MayRun
from sojourn.drive import merge as driving
from sojourn.errors import SojournError
from sojourn.store.disk import OsDisk

CHANGING = (
    "write",
    "write_at",
    "sync",
    "sync_data",
    "sync_folder",
    "rename",
    "unlink",
    "truncate",
    "link",
)
"""Operations at which the process dies, before each."""

HERE = "memory/timeline_events.jsonl"


def die_at(number: int) -> None:
    """This process ends before its Nth operation that changes anything."""
    left = [number]
    for name in CHANGING:
        setattr(OsDisk, name, dying(getattr(OsDisk, name), left))


def dying(good: Any, left: list[int]) -> Any:
    def operation(self: OsDisk, *args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return good(self, *args, **options)

    return operation


def name_nothing_new() -> None:
    """The fault: the log is replaced while the manifest and the ledger name all of the old one."""

    async def raise_the_epoch(ports: Any, hold: Any, record: Any) -> None:
        await asyncio.sleep(0)
        ports.ledger.save(msgspec.structs.replace(record, tip=hold.record.tip))

    driving._name_only_the_first = raise_the_epoch


def merged_in(folder: Path) -> None:
    stage = Stage(folder / "here", [{"text": "well"}])
    asyncio.run(merge(stage.machine, stage.make(), str(folder / "there" / "capsule")))


def attempt(folder: Path, number: int | None) -> bool:
    """Merge in a child that dies at that operation; whether it came to its end."""
    child = os.fork()
    if child == 0:
        if number is not None:
            die_at(number)
        with suppress(SojournError):
            merged_in(folder)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status)


def fresh(template: Path, folder: Path) -> None:
    """The prepared copies in the place that their ledgers name; the ledger is written anew, since
    a copied record is no authority."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)
    ledger = Stage(folder / "here", [{"text": "well"}]).machine.ports.ledger
    for capsule in ledger.capsules():
        record = ledger.load(capsule)
        if record is not None:
            ledger.save(msgspec.structs.replace(record, state="HOLDER", reason=""))


def faults_of(folder: Path, old: bytes, whole: bytes) -> list[str]:
    """Everything that is not as it must be after a death."""
    stage = Stage(folder / "here", [{"text": "well"}])
    log = stage.timeline().read_bytes()
    found = [] if log in (old, whole) else ["the log is neither the old nor the merged one"]
    codes = [code for code in stage.verify() if code not in ("file_edited", "file_altered")]
    found += [f"verify says {codes}"] if codes else []
    admission = stage.machine.look(stage.make()).admission
    if not isinstance(admission, MayRun):
        found.append(f"it may not run: {admission.code}")
        return found
    try:
        merged_in(folder)
    except SojournError as error:
        return [*found, f"merging again is refused: {error.code}"]
    if stage.timeline().read_bytes() != whole:
        found.append("merging again does not give the merged log")
    if stage.verify():
        found.append(f"after merging again verify says {stage.verify()}")
    left = [path.name for path in stage.capsule.rglob(".sojourn-*")]
    return found + ([f"left behind: {left}"] if left else [])


def main() -> None:
    root = Path(sys.argv[1])
    template, folder = root / "template", root / "world"
    fresh(template, folder)
    old = (folder / "here/capsule" / HERE).read_bytes()
    attempt(folder, None)
    whole = (folder / "here/capsule" / HERE).read_bytes()
    if "--fault" in sys.argv:
        name_nothing_new()
    faults: list[str] = []
    number = 0
    while True:
        fresh(template, folder)
        if attempt(folder, number):
            break
        faults += [f"operation {number}: {fault}" for fault in faults_of(folder, old, whole)]
        number += 1
    print(json.dumps({"operations": number, "faults": faults}))


if __name__ == "__main__":
    main()
