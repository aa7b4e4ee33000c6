"""What the tests of importing share: other machines, archives of any make, and what was written."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.stage import Stage
from sojourn import Machine
from sojourn.agent import archives
from sojourn.agent.archives import Wanted
from sojourn.agent.arrive import Imported, import_archive
from sojourn.errors import SojournError
from sojourn.format import archive, layout, manifest, seal
from sojourn.format.manifest import FileMark

SAYS = [{"text": f"Answer {number}."} for number in range(9)]


def export(stage: Stage, file: str = "box.tar", **options: Any) -> Path:
    wanted = Wanted(file=str(stage.folder / file), **options)
    asyncio.run(archives.export_capsule(stage.machine, stage.make(), wanted))
    return stage.folder / file


def elsewhere(folder: Path) -> Machine:
    """Another machine."""
    return Machine({"PATH": os.environ["PATH"], "SOJOURN_HOME": str(folder / "elsewhere")})


def take(machine: Machine, file: Path, **options: Any) -> Imported:
    options.setdefault("accept", lambda _: True)
    return import_archive(machine, str(file), **options)


def new_key(folder: Path, name: str) -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
    subprocess.run(command, check=True)
    return folder / name


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, with a file's bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "sqlite3" not in path.name
    }


def refusal(machine: Machine, file: Path, **options: Any) -> str:
    """The code by which an import is refused; it must leave nothing behind."""
    capsules = Path(machine.state.capsules)
    before = tree(capsules.parent.parent)
    with pytest.raises(SojournError) as refused:
        take(machine, file, **options)
    after = tree(capsules.parent.parent)
    made = {path for path in after if path not in before}
    assert made <= {"elsewhere", "elsewhere/capsules"}, made
    assert {path: after[path] for path in before} == before
    return refused.value.code


def members(file: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    path = ""
    for item in archive.read([file.read_bytes()]):
        if isinstance(item, bytes):
            found[path] += item
        else:
            path = item.path
            found[path] = b""
    return found


def pack(file: Path, files: dict[str, bytes]) -> Path:
    content = ((path, len(data), (data,)) for path, data in sorted(files.items()))
    file.write_bytes(b"".join(archive.write(content)))
    return file


def resealed(file: Path, changed: dict[str, bytes]) -> Path:
    """An archive of a writer that seals whatever it likes, with these files in place of others."""
    files = {**members(file), **changed}
    found = manifest.load(files[layout.MANIFEST])
    marks = {
        path: FileMark(
            sha256=seal.mark(files[path]).sha256,
            size=len(files[path]),
            derived=path == layout.INDEX,
        )
        for path in {*found.files, *changed}
        if not path.startswith(layout.BLOBS)
    }
    assert found.seal is not None
    made = msgspec.structs.replace(found, files=marks)
    made = seal.with_sums(made)
    data = manifest.encode(made)
    return pack(file, {**files, layout.MANIFEST: data, layout.SUMS: seal.sums(made, data)})


def tree_files(folder: Path) -> dict[str, bytes]:
    return {path: data for path, data in tree(folder).items() if data is not None}
