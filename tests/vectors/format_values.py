"""Vectors of single values: snapshot, index, environment and documents, each with its reader."""

from typing import Any

from format_builder import Value, canonical, digest

MALFORMED = ("snapshot_malformed", 1)
VALUES: list[Value] = []


def add(name: str, says: str, read: str, data: bytes, *expect: tuple[str, int]) -> None:
    VALUES.append(Value(name, says, read, data, expect))


def snapshot(name: str, says: str, entries: list[Any], *expect: tuple[str, int]) -> None:
    data = canonical({"entries": entries, "format": "sojourn.snapshot/1"}) + b"\n"
    add(f"snapshot_{name}", says, "snapshot", data, *expect)


def entry(path: str, kind: str = "file") -> dict[str, Any]:
    bare = {"path": path, "type": kind}
    return bare if kind == "directory" else bare | {"sha256": digest(path), "size": 1}


snapshot("empty", "A workspace of which no snapshot was taken is the empty list.", [])
snapshot(
    "of_everything",
    "Files, executables, links and empty folders, sorted by their bytes.",
    [
        entry("CON"),
        entry("a", "directory"),
        entry("b/c"),
        entry("b/d", "executable"),
        entry("b\\x"),
        entry("e", "symlink"),
        entry("\u00e9"),
        entry("\U0001f600"),
    ],
)
snapshot("unsorted", "Entries are sorted.", [entry("b"), entry("a")], MALFORMED)
snapshot(
    "sorted_by_utf_16",
    "By the bytes of UTF-8, not by UTF-16.",
    [entry("\U0001f600"), entry("\uff5e")],
    MALFORMED,
)
snapshot("with_path_twice", "Each path stands once.", [entry("a"), entry("a")], MALFORMED)
snapshot(
    "with_file_in_file",
    "Nothing lies in a file.",
    [entry("a"), entry("a-b"), entry("a/b")],
    MALFORMED,
)
snapshot(
    "with_sized_folder",
    "An empty folder has no size.",
    [entry("a", "directory") | {"size": 0}],
    MALFORMED,
)
snapshot(
    "without_digest",
    "A file has a digest.",
    [{"path": "a", "size": 1, "type": "file"}],
    MALFORMED,
)
snapshot(
    "with_named_hash",
    "No file can ask for another hash.",
    [entry("a") | {"sha256": "sha256:" + digest("a")}],
    MALFORMED,
)
snapshot("with_unknown_type", "There are four types.", [entry("a", "socket")], MALFORMED)
add(
    "snapshot_of_another_format", "It names its format.", "snapshot", b'{"entries":[]}\n', MALFORMED
)
add(
    "snapshot_with_duplicate_key",
    "Every JSON file is strict.",
    "snapshot",
    b'{"entries":[],"entries":[]}',
    ("duplicate_key", 1),
)
for _name, _path in {
    "parent": "../x",
    "absolute": "/x",
    "inner_parent": "a/../../b",
    "dot": "./x",
    "empty_part": "a//b",
    "control": "a\x07b",
    "c1_control": "a\x85b",
    "long_part": "\u00e9" * 128,
    "long_path": "x/" * 512 + "x",
    "empty": "",
}.items():
    snapshot(f"path_{_name}", "Paths stay in the workspace.", [entry(_path)], ("path_unsafe", 1))

add(
    "index_empty",
    "An index without entries.",
    "index",
    b'{"entries":[],"format":"sojourn.index/1"}',
)
add(
    "index_of_another_shape",
    "An index holds a list.",
    "index",
    b'{"entries":{},"format":"sojourn.index/1"}',
    ("index_malformed", 1),
)


def environment(name: str, says: str, data: str, *expect: tuple[str, int]) -> None:
    add(f"environment_{name}", says, "environment", data.encode(), *expect)


FORMAT = '"format":"sojourn.environment/1"'
environment(
    "not_json",
    "People edit the environment: the line is the one where reading stopped.",
    f'{{\n  {FORMAT},\n  "env": {{"A": }}\n}}',
    ("not_json", 3),
)
environment("cut", "So it is at the end.", f"{{\n  {FORMAT},\n\n", ("not_json", 4))
BAD = ("environment_malformed", 1)
environment("of_another_format", "It names its format.", '{"format":"sojourn.environment/2"}', BAD)
environment("with_number", "Variables are strings.", f'{{{FORMAT},"env":{{"A":1}}}}', BAD)
environment(
    "with_strange_name", "Names are those of variables.", f'{{{FORMAT},"env":{{"A-B":"1"}}}}', BAD
)
environment(
    "with_value_of_secret",
    "A secret has no value here.",
    f'{{{FORMAT},"secrets":{{"A":"s"}}}}',
    BAD,
)
environment(
    "with_the_rest",
    "What this version does not read is kept; TOKENIZERS_PARALLELISM is no secret.",
    f'{{{FORMAT},"env":{{"TOKENIZERS_PARALLELISM":"0","PYTHONUNBUFFERED":"1","KEYBOARD":"us"}},'
    '"secrets":{"API_KEY":{"required":false,"scope":["model"]}},"apt":{"packages":1}}',
)
for _variable in (
    "API_KEY",
    "gh_tokens",
    "APIKEY",
    "DB_PASSWORD_FILE",
    "PATH",
    "LD_PRELOAD",
    "GIT_DIR",
    "PYTHONSTARTUP",
    "AWS_CREDENTIALS",
    "PGPASSWD",
    "SECRET",
):
    environment(
        f"variable_{_variable.lower()}",
        "A variable that is named like a secret, or that changes what runs, is refused.",
        f'{{\n{FORMAT},\n"env":{{"A":"1",\n"{_variable}":"x"}}}}',
        ("variable_refused", 4),
    )


def document(name: str, says: str, /, *expect: tuple[str, int], **changes: Any) -> None:
    change = {"name": "to-do", "schema": "sojourn.todo/1", "value": '{"items":[]}', "version": 1}
    add(f"document_{name}", says, "document", canonical(change | changes), *expect)


WRONG = ("document_malformed", 1)
document("plain", "A document's whole new value is strict JSON text.")
document("not_json", "Its value is JSON.", WRONG, value="{")
document("not_strict", "Strict JSON.", WRONG, value='{"a":1,"a":1}')
document("of_version_0", "Versions begin with 1.", WRONG, version=0)
document("with_strange_name", "Names are short words.", WRONG, name="../x")
document("with_strange_schema", "So are schemas.", WRONG, schema="Todo")
