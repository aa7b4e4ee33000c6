"""Where a benchmark's data and its peers live, and on what machine it ran."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
KEPT = REPOSITORY / ".bench"
"""Ignored by git; on the same disk as the repository, never in memory."""

PEERS = HERE / "peers"
PINS = PEERS / "requirements.txt"


class PeersAbsentError(Exception):
    """The peers' environment could not be made; the message says why. Nothing else changed."""


def run_folder(name: str) -> Path:
    """Return a new, empty folder for one run's data; `drop_run_folder` removes it."""
    folder = KEPT / f"{name}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def drop_run_folder(folder: Path) -> None:
    """Remove a run's data, once all is measured: deleting earlier would slow what follows."""
    shutil.rmtree(folder, ignore_errors=True)


def peers_python() -> Path:
    """Return the interpreter of the peers' own environment, which is made when it is not there.

    Raises:
        PeersAbsentError: a command to make it failed.
    """
    folder = KEPT / "peers-venv"
    python = folder / "bin" / "python"
    stamp = folder / ".pins"
    wanted = hashlib.sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    sys.stderr.write("installing the peers in an environment of their own\n")
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    for command in _installing(folder, python):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=KEPT)
        except OSError as error:
            raise PeersAbsentError(str(error)) from error
        except subprocess.CalledProcessError as error:
            raise PeersAbsentError(f"{command[0]}: {str(error.stderr).strip()[-400:]}") from error
    stamp.write_text(wanted)
    return python


def _installing(folder: Path, python: Path) -> list[list[str]]:
    uv = REPOSITORY / ".uv" / "bin" / "uv"
    found = str(uv) if uv.exists() else shutil.which("uv")
    if found is None:
        return [
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "-r", str(PINS)],
        ]
    return [
        [found, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)],
        [found, "pip", "install", "--quiet", "--python", str(python), "-r", str(PINS)],
    ]


def clean_environment() -> dict[str, str]:
    """Return the environment for a measured process: no tracing, no stray Python settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "LANGSMITH_", "LANGCHAIN_", "DBOS_", "VIRTUAL_ENV"))
    }
    return kept | {"PYTHONHASHSEED": "0"}


def file_system(folder: Path) -> str:
    """Return the type of the file system that a folder lies on, as the kernel names it."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return "unknown"
    best, kind = "", "unknown"
    for line in lines:
        _, point, found, *_ = line.split(" ")
        inside = folder == Path(point) or Path(point) in folder.parents
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind


def load_average() -> float:
    """Return how many processes wanted a core in the last minute."""
    return os.getloadavg()[0]


def machine_line(folder: Path) -> str:
    """Return one line that says what the figures were measured on."""
    return (
        f"{os.cpu_count()} cores, {file_system(folder)}, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}"
    )
