"""The OpenAPI document of the daemon's paths, made from the table that serves them.

python -m sojourn.daemon.openapi           write src/sojourn/daemon/openapi.json
python -m sojourn.daemon.openapi --check   exit 1 when it is not up to date
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from sojourn.peers import signing
from sojourn.peers.limits import PROTOCOL
from sojourn.peers.shapes import Refusal

DOCUMENT: Final = Path(__file__).with_name("openapi.json")
_PART: Final = re.compile(r"\{(\w+)\}")
_LENGTHS: Final = {"move": 32, "pairing": 32, "capsule": 64}

HEADERS: Final = {
    signing.KEY: "The raw Ed25519 key of the sender, in base64.",
    signing.TO: "The machine that it is for, or `-`.",
    signing.BOOT: "The start of that machine's daemon that it is for, or `-`.",
    signing.NONCE: "Random; a request is done once.",
    signing.BODY: "The sha256 of the body, or `stream`.",
    signing.SIGNATURE: "Over all of these with method and path, in base64.",
}


def shipped() -> bytes:
    """The document as it is in the package."""
    return DOCUMENT.read_bytes()


def document() -> str:
    """The document as the table has it now."""
    from sojourn.daemon.paths import ENDPOINTS

    types = [Refusal, *(one.asks for one in ENDPOINTS if one.asks)]
    types += [one.gives for one in ENDPOINTS if one.gives]
    types += [one.query for one in ENDPOINTS if one.query]
    unique = list({repr(kind): kind for kind in types}.values())
    made, shapes = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    refs = {repr(kind): ref for kind, ref in zip(unique, made, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        operation = _operation(one, refs, shapes)
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "sojourn daemon",
            "version": str(PROTOCOL),
            "description": "Every request and answer is signed: docs/link.md.",
        },
        "paths": paths,
        "components": {"schemas": shapes},
    }
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def _operation(one: Any, refs: dict[str, Any], shapes: dict[str, Any]) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", f"{one.method.lower()}{one.path[3:]}").strip("_")
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": one.summary,
        "description": f"Needs: {one.need}.",
        "parameters": _parameters(one, refs, shapes),
        "responses": {"200": _answer(one, refs), "default": _refusal(refs)},
    }
    if one.asks is not None or one.streamed:
        kind = "application/octet-stream" if one.streamed else "application/json"
        schema: dict[str, Any] = {} if one.streamed else refs[repr(one.asks)]
        operation["requestBody"] = {"required": True, "content": {kind: {"schema": schema}}}
    return operation


def _parameters(one: Any, refs: dict[str, Any], shapes: dict[str, Any]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name in _PART.findall(one.path):
        form = f"^[0-9a-f]{{{_LENGTHS[name]}}}$"
        schema = {"type": "string", "pattern": form}
        made.append({"name": name, "in": "path", "required": True, "schema": schema})
    if one.query is not None:
        shape = shapes[refs[repr(one.query)]["$ref"].rpartition("/")[2]]
        for name, schema in shape["properties"].items():
            needed = name in shape.get("required", ())
            made.append({"name": name, "in": "query", "required": needed, "schema": schema})
    for name, words in HEADERS.items():
        made.append(
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": words,
                "schema": {"type": "string"},
            }
        )
    return made


def _answer(one: Any, refs: dict[str, Any]) -> dict[str, Any]:
    if one.lines:
        return {"description": "Lines.", "content": {"application/jsonl": {"schema": {}}}}
    content = {"application/json": {"schema": refs[repr(one.gives)]}}
    return {"description": "Done.", "content": content}


def _refusal(refs: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": refs[repr(Refusal)]}}
    return {"description": "Not done, and why.", "content": content}


def main(arguments: list[str]) -> int:
    """Write the document, or compare it."""
    made = document()
    if "--check" in arguments:
        return 0 if DOCUMENT.exists() and DOCUMENT.read_text() == made else 1
    DOCUMENT.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
