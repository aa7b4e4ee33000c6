"""A small file system that is really full when it is full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk_at(root: Path, size: int) -> Iterator[Path]:
    """A file system of `size` bytes in a new folder; the test is skipped where none can be made."""
    root.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    asked = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(root)]
    if subprocess.run(asked, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        yield root
    finally:
        subprocess.run(["umount", str(root)], check=True)
