"""Writes anew what the vectors of tests/vectors/render say must come out.

    .venv/bin/python tests/render/regenerate.py

For a change of rendering that is meant: read the difference line by line before you keep it. The
inputs, and the failures that are expected without a pass, are written by hand and are left alone.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec

from render.replies import ReplyVector, read, replies
from render.vectors import Vector, requests


def expected(vector: Vector) -> dict[str, Any]:
    rendered = vector.render()
    return {
        "payload": rendered.payload,
        "constraints": msgspec.to_builtins(rendered.constraints),
        "losses": msgspec.to_builtins(rendered.losses),
    }


def rewrite(vector: Vector | ReplyVector, fields: dict[str, Any]) -> bool:
    text = json.dumps(vector.raw | fields, indent=1) + "\n"
    if vector.path.read_text("utf-8") == text:
        return False
    vector.path.write_text(text, "utf-8")
    print(vector.path)
    return True


if __name__ == "__main__":
    changed = [rewrite(vector, {"rendered": expected(vector)}) for vector in requests()]
    changed += [rewrite(vector, {"reply": read(vector)}) for vector in replies()]
    print(f"{sum(changed)} of {len(changed)} vectors changed")
