"""Reads the bytes of a capsule as format.md says: files, strict JSON, shapes, lines of the log.

`verify_capsule.py` uses it. The tables of shapes and patterns are those of format.md beside it.
"""

import hashlib
import json
import re
from itertools import accumulate
from pathlib import Path

MANIFEST = "manifest.json"
LOG = "memory/timeline_events.jsonl"
SNAPSHOT = "artifacts/snapshot.json"
INDEX = "memory/vector_index/index.json"
SIGNATURE = "manifest.json.sig"
BLOBS = "artifacts/blobs/"
FIXED = {SNAPSHOT, INDEX, "environment/spec.json", "memory/working_memory.md"}

PAGE = Path(__file__).with_name("format.md").read_text("utf-8")
UNREDACTABLE = re.search(r"MUST NOT be redacted: (.*?)\.", PAGE, re.S)[1]

ORIGIN = {"forked": "parent", "claimed": "capsule", "activated": "capsule"}


def table(name):
    """The rows of a block of the page: the first word, and the rest."""
    rows = re.search(f"```{name}\n(.*?)\n```", PAGE, re.S)[1].split("\n")
    return dict(row.split(" ", 1) for row in rows)


SHAPES, PATTERNS = table("shapes"), table("patterns")


class Fault(Exception):
    """A failure of the page's list, at a line of a file; no line for a whole file."""

    def __init__(self, name, line):
        super().__init__(name)
        self.name, self.line, self.file = name, line, None


def need(line=1, **rules):
    """Raise the name of the first rule that does not hold."""
    for name, holds in rules.items():
        if not holds:
            raise Fault(name, line)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def matches(pattern, text):
    return isinstance(text, str) and re.search(PATTERNS[pattern], text) is not None


class Folder:
    """A capsule's files, and what its log says is gone: bodies of events, and blobs."""

    def __init__(self, path):
        self.path = path
        found = (p for p in path.rglob("*") if p.is_file() and not p.name.startswith(".sojourn-"))
        self.names = {p.relative_to(path).as_posix() for p in found}
        self.redacted_events, self.gone_blobs = set(), set()

    def read(self, name):
        return (self.path / name).read_bytes() if name in self.names else None

    def blob(self, ref):
        """format.md#blobs: the bytes, None when their absence is accounted for."""
        data = self.read(BLOBS + ref["sha256"])
        need(blob_missing=data is not None or ref["sha256"] in self.gone_blobs)
        need(blob_size=data is None or len(data) == ref["size"])
        return data


def strict(data, loose="not_json"):
    """format.md#json: the value of a text; `loose` is the name of what is no JSON."""
    text = data.decode(errors="replace")
    bare = re.sub(r'(?s)"[^"\\]*(?:\\.[^"\\]*)*"?', "", text)
    depths = accumulate(1 if bracket in "[{" else -1 for bracket in re.findall(r"[][{}]", bare))
    need(not_utf8=text.encode() == data, bom=text[:1] != "\ufeff")
    need(too_deep=max(depths, default=0) <= 64)
    twice = []

    def pairs(items):
        twice.append(len(dict(items)) < len(items))
        return dict(items)

    try:
        value = json.loads(text, parse_int=lambda i: int(i[:20]), object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise Fault(loose, error.lineno) from None
    need(**{loose: not re.search("[NI]", bare)})  # NaN, Infinity
    numbers = re.findall(r"\d[\d.eE+-]*", bare)
    need(number_out_of_range=all(abs(float(number)) < 2**53 for number in numbers))
    again = json.dumps(value, ensure_ascii=False)
    need(lone_surrogate=not re.search("[\ud800-\udfff]", again), duplicate_key=not any(twice))
    return value


def fits(value, shape, refs):
    """format.md#kinds: whether it is of the shape; adds the references to blobs to `refs`."""
    if shape[-1] == "~":
        return value is None or fits(value, shape[:-1], refs)
    if shape[0] == "[":
        return type(value) is list and all(fits(one, shape[1:-1], refs) for one in value)
    if shape[0] == "{":
        return type(value) is dict and all(fits(one, shape[1:-1], refs) for one in value.values())
    if "=" in shape:
        chosen = dict(pair.split("=") for pair in shape.split("/"))
        return type(value) is dict and fits(value, chosen.get(str(value.get("type")), "-"), refs)
    if shape == "t":
        shape = "BlobRef" if type(value) is dict else "s"
    if shape == "BlobRef":
        refs.append(value)
    if shape in SHAPES:
        return type(value) is dict and all(
            fits(value[name.strip("?")], kind, refs)
            if name.strip("?") in value
            else name[-1] == "?"
            for name, kind in (field.split(":") for field in SHAPES[shape].split())
        )
    if shape in PATTERNS:
        return matches(shape, value)
    whole = type(value) is int and value >= 0
    plain = {
        "s": isinstance(value, str),
        "b": isinstance(value, bool),
        "i": whole,
        "p": whole and value > 0,
        "f": whole or (type(value) is float and value >= 0),
    }
    return plain.get(shape, value in shape.split("|"))


def event(folder, line):
    """format.md#events: a line's header with its `id`, chain and place, and what its body says."""
    need(line_too_long=len(line) < 2**20, nul_bytes=b"\0" not in line)
    strict(line, "glued_lines" if b'{"body":' in line[1:] else "not_json")
    text, end, stop, refs = line.decode(), 0, 0, []
    try:
        body, end = json.JSONDecoder().raw_decode(text, 8)
        header, stop = json.JSONDecoder().raw_decode(text, end + 10)
    except ValueError:
        pass
    need(line_malformed=text[:8] + text[end : end + 10] + text[stop:] == '{"body":,"header":}')
    need(header_malformed=fits(header, "Header", refs))
    header["id"] = digest(text[end + 10 : stop].encode())
    redacted = header["id"] in folder.redacted_events
    need(body_null=body is not None or (redacted and f"`{header['kind']}`" not in UNREDACTABLE))
    need(body_altered=body is None or digest(text[8:end].encode()) == header["body"])
    if isinstance(body, dict) and "large" in body:
        body = large(folder, body)
    kind = header["kind"] if header["kind"] in SHAPES else "Unknown"
    sound = body is None or (fits(body, "Body", refs) and fits(body, kind, refs))
    need(body_malformed=sound)
    said, chain = body or {}, (header["machine"], header["incarnation"])
    return header | {
        "said": said,
        "chain": chain,
        "place": (header["clock"], *chain, header["seq"], header["id"]),
        "heads": said.get("heads", []) if "heads" in SHAPES[kind] else [],
        "refs": sorted(refs, key=lambda ref: (ref["sha256"], ref["size"])),
        "goes_on": said.get(ORIGIN.get(kind)),
    }


def large(folder, body):
    """The body that lies in a blob, None when that is gone."""
    need(body_malformed=fits(body, "Large", []))
    data = folder.blob(body["large"])
    if data is None:
        return None
    need(blob_altered=digest(data) == body["large"]["sha256"])
    return strict(data)


def contents(folder, found):
    """format.md#snapshots: the contents that the delta of a snapshot event names."""
    if found["kind"] != "snapshot" or not found["said"]:
        return []
    text = found["said"]["delta"]
    in_blob = isinstance(text, dict)
    data = folder.blob(text) if in_blob else text.encode(errors="surrogatepass")
    if data is None or (in_blob and digest(data) != text["sha256"]):
        return []
    need(too_long=len(data) <= 2**26)
    delta = strict(data)
    need(snapshot_malformed=fits(delta, "Delta", []))
    return [one for one in delta["changed"] if one.get("sha256") and one.get("size") is not None]
