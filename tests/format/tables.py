"""The tables of docs/format.md that follow from the code: shapes, patterns, failures.

PYTHONPATH=tests .venv/bin/python -m format.tables      writes them anew into docs/format.md
"""

import re
from pathlib import Path

from msgspec import inspect

from sojourn.format import archive, failures, layout, line, paths, timeline_read
from sojourn.format.event import KINDS, Header
from sojourn.format.manifest import Manifest
from sojourn.format.parts import BlobRef
from sojourn.format.snapshot import Delta

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "format.md"
CAPITAL = (Header, Manifest)
UNTYPED = {
    "Body": "mended?:i salt:salt",
    "Large": "large:BlobRef salt:salt",
    "Unknown": "heads?:[Head]",
}
"""What the code checks without a type of its own."""


def name_of(info: inspect.StructType) -> str:
    """A kind is called by its name in the log, anything else by its class."""
    for kind, body in KINDS.items():
        if info.cls is body:
            return kind
    return info.cls.__name__


def word(info: inspect.Type) -> str:
    """The type in one word."""
    match info:
        case inspect.UnionType(types=types):
            rest = [item for item in types if not isinstance(item, inspect.NoneType)]
            null = "~" if len(rest) < len(types) else ""
            if {type(item) for item in rest} == {inspect.StrType, inspect.StructType}:
                return "t" + null
            return "/".join(map(tagged, rest)) + null
        case inspect.StrType():
            return "h" if info.pattern else "s"
        case inspect.IntType():
            return "p" if info.ge == 1 else "i"
        case inspect.FloatType():
            return "f"
        case inspect.BoolType():
            return "b"
        case inspect.LiteralType(values=values):
            return "|".join(sorted(map(str, values)))
        case inspect.VarTupleType(item_type=item):
            return f"[{word(item)}]"
        case inspect.DictType(value_type=item):
            return "{" + word(item) + "}"
        case inspect.StructType():
            return name_of(info)
        case _:
            raise ValueError(f"no word for {info}")


def tagged(info: inspect.Type) -> str:
    """A member of a union, with the tag by which it is known."""
    tag = info.tag if isinstance(info, inspect.StructType) else None
    return f"{tag}={word(info)}" if tag else word(info)


def shapes() -> dict[str, str]:
    """Each shape's name and its fields, in order."""
    found: dict[str, str] = {}
    for info in inspect.multi_type_info([*CAPITAL, BlobRef, Delta, *KINDS.values()]):
        _collect(info, found)
    for field, pattern in {"kind": "kind", "machine": "h", "incarnation": "incarnation"}.items():
        found["Header"] = found["Header"].replace(f"{field}:s", f"{field}:{pattern}")
    return dict(sorted((found | UNTYPED).items()))


def _collect(info: inspect.Type, found: dict[str, str]) -> None:
    match info:
        case inspect.StructType() if name_of(info) not in found:
            known = (f for f in info.fields if (info.cls, f.name) != (Manifest, "unknown"))
            fields = sorted(known, key=lambda field: field.name)
            # Those that every body has are said once.
            kept = [f for f in fields if not (f.name in ("salt", "mended") and not f.required)]
            found[name_of(info)] = " ".join(
                f"{f.encode_name}{'' if f.required else '?'}:{word(f.type)}" for f in kept
            )
            for field in kept:
                _collect(field.type, found)
        case inspect.UnionType(types=types):
            for item in types:
                _collect(item, found)
        case inspect.VarTupleType(item_type=item):
            _collect(item, found)
        case inspect.DictType(value_type=item):
            _collect(item, found)
        case _:
            pass


def patterns() -> dict[str, str]:
    """Each pattern's name and its regular expression."""
    return {
        "edited": rf"\A({re.escape(layout.WORKING_MEMORY)}|{layout.ENVIRONMENT}/.*)\Z",
        "h": rf"\A{line.MACHINE.pattern}\Z",
        "incarnation": rf"\A{line.INCARNATION.pattern}\Z",
        "kind": rf"\A{line.KIND.pattern}\Z",
        "path": paths.OWN.pattern,
        "salt": rf"(?s)\A.{{{line.SALT}}}\Z",
        "torn": rf"\A({'|'.join(sorted(timeline_read.TEARABLE))})\Z",
    }


def failures_table() -> str:
    """Each failure, its meaning, and whether the capsule may still be run."""
    rows = [f"| `{code}` | {failures.MEANINGS[code]} | {_runs(code)} |" for code in failures.CODES]
    return "\n".join(("| failure | meaning | running |", "| --- | --- | --- |", *rows))


def archive_table() -> str:
    """Each failure of an archive, and its meaning."""
    rows = [f"| `{code}` | {archive.MEANINGS[code]} |" for code in archive.CODES]
    return "\n".join(("| failure of an archive | meaning |", "| --- | --- |", *rows, ""))


def _runs(code: failures.Code) -> str:
    return "stops" if failures.stops_running(code) else "goes on"


def fill(text: str) -> str:
    """The page with its tables as they should be."""
    for name, table in (("shapes", shapes()), ("patterns", patterns())):
        rows = "\n".join(f"{key} {value}" for key, value in table.items())
        block = f"```{name}\n{rows}\n```"
        text = re.sub(rf"(?s)```{name}\n.*?\n```", lambda _, block=block: block, text)
    text = re.sub(r"(?m)^\| failure of an archive (.*\n)(\|.*\n)*", lambda _: archive_table(), text)
    head, _, rest = text.partition("\n## Failures\n")
    before = re.split(r"(?m)^\| failure ", rest)[0]
    return f"{head}\n## Failures\n{before}{failures_table()}\n"


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text("utf-8")), "utf-8")
