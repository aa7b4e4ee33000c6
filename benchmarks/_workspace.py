"""The workspace that is kept: small files in folders, and some large ones."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

FOLDER_FILES = 100
SMALLEST, LARGEST = 200, 6000


@dataclass(kw_only=True)
class Workspace:
    """A folder of small files and some large ones, the same for all of one round."""

    root: Path
    small: int
    large: int
    size: int
    pause: float

    def make(self) -> None:
        """Fill it with files of random bytes, so that nothing can be compressed."""
        chance = random.Random(7)
        for number in range(self.small):
            folder = self.root / f"d{number // FOLDER_FILES:04d}"
            folder.mkdir(parents=True, exist_ok=True)
            data = chance.randbytes(chance.randint(SMALLEST, LARGEST))
            (folder / f"f{number:05d}").write_bytes(data)
        for number in range(self.large):
            with open(self.root / f"large{number}", "wb") as file:
                left = self.size
                while left > 0:
                    file.write(chance.randbytes(min(left, 1 << 20)))
                    left -= 1 << 20
        os.sync()

    def change(self, turn: int) -> None:
        """Change ten small files."""
        for number in range(10):
            place = number * (self.small // 10)
            path = self.root / f"d{place // FOLDER_FILES:04d}" / f"f{place:05d}"
            path.write_bytes(f"changed in turn {turn}".encode() * 50)

    def touched_long_ago(self) -> None:
        """Wait until no file's time is within the grain of a clock of whole seconds."""
        os.sync()
        time.sleep(self.pause)
