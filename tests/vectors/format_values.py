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
    "with_a_folder_that_is_not_empty",
    "A folder is an entry only when nothing of the list lies in it.",
    [{"path": "a", "type": "directory"}, entry("a/b")],
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


def indexed(name: str, says: str, entry: str, *expect: tuple[str, int]) -> None:
    embedder = f'{{"digest":"{"d" * 64}","dimensions":2,"name":"a/1"}}'
    text = f'{{"embedder":{embedder},"entries":[{entry}],"format":"sojourn.index/1"}}'
    add(f"index_{name}", says, "index", text.encode(), *expect)


WRONG = ("index_malformed", 1)
EVENT = f'"event":"{"e" * 64}"'
REST = f'"part":0,"text":"{"f" * 64}","vector":"gX8="'
indexed("of_an_event", "An entry is a passage of an event,", f"{{{EVENT},{REST}}}")
indexed("of_the_notes", "of a section of the notes,", f'{{"memory":"# A",{REST}}}')
indexed("of_a_document", "or of a document.", f'{{"document":"todo",{REST}}}')
indexed("of_two", "It is of one of them alone.", f'{{"document":"todo",{EVENT},{REST}}}', WRONG)
indexed("of_none", "It is of something.", f"{{{REST}}}", WRONG)
indexed(
    "with_short_vector",
    "A vector has the embedder's dimensions.",
    f"{{{EVENT},{REST}}}".replace("gX8=", "gQ=="),
    WRONG,
)
indexed(
    "with_odd_vector",
    "A vector is base64.",
    f"{{{EVENT},{REST}}}".replace("gX8=", "g-8="),
    WRONG,
)
indexed(
    "with_odd_event",
    "An event is named by its id.",
    f"{{{EVENT},{REST}}}".replace("e" * 64, "E" * 64),
    WRONG,
)
add(
    "index_without_embedder",
    "Vectors are somebody's.",
    "index",
    f'{{"entries":[{{{EVENT},{REST}}}],"format":"sojourn.index/1"}}'.encode(),
    WRONG,
)
add(
    "index_of_another_format",
    "It names its format.",
    "index",
    b'{"entries":[],"format":"sojourn.index/2"}',
    WRONG,
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
    '"secrets":{"API_KEY":{"required":false,"scope":["model"]}},"observed":{"packages":1}}',
)
environment(
    "in_full",
    "Everything that may be wanted.",
    f"""{{{FORMAT},
"base":{{"kind":"oci","image":"registry.example/x@sha256:{digest("x")}","arch":"x86_64"}},
"python":{{"version":"3.11","lock":"environment/pylock.toml","lock_sha256":"{digest("x")}"}},
"node":{{"version":"20.1.0","scripts":false}},
"apt":{{"packages":{{"ripgrep":"","jq":"1.6-2"}},"snapshot":null}},
"files":[{{"path":"AGENTS.md","from":"environment/AGENTS.md","mode":"0644"}}],
"secrets":{{"GH_TOKEN":{{"scope":["tool:shell","mcp:files"]}},"API_KEY":{{"scope":"model"}}}},
"network":{{"mode":"allowlist","allowed_domains":["example.org","*.example.org"]}},
"filesystem":{{"workspace":"/workspace","allow_write":["/tmp"],"deny_read":["~/.ssh"]}},
"limits":{{"memory_mb":2048,"pids":512}},
"setup":[{{"run":"true","timeout_s":60}}],
"tools":{{"shell":{{"sandbox":"bwrap","replay":"ask"}}}},
"mcp_servers":{{"files":{{"command":["x"],"secrets":["GH_TOKEN"]}}}},
"host_requirements":{{"cpus":2,"memory":"4gb","gpu":"optional"}}}}""",
)
for _name, _says, _field in (
    ("image_by_tag", "An image is named by its digest.", '"base":{"kind":"oci","image":"x:1"}'),
    ("image_of_host", "Only the kind oci has an image.",
     f'"base":{{"kind":"host","image":"x@sha256:{digest("x")}"}}'),
    ("lock_elsewhere", "Lock files lie beside the spec.",
     '"python":{"version":"3.11","lock":"../pylock.toml"}'),
    ("digest_of_no_lock", "A digest is of a lock file.",
     f'"node":{{"version":"20","lock_sha256":"{digest("x")}"}}'),
    ("version_in_words", "A version is numbers.", '"python":{"version":"newest"}'),
    ("file_leading_out", "Files stay in the sandbox's workspace.",
     '"files":[{"path":"../x","from":"environment/x"}]'),
    ("file_from_elsewhere", "Their bytes lie beside the spec.",
     '"files":[{"path":"x","from":"memory/working_memory.md"}]'),
    ("scope_unknown", "Scopes are four.", '"secrets":{"A":{"scope":"all"}}'),
    ("address_for_host", "Hosts are names.",
     '"network":{"mode":"allowlist","allowed_domains":["https://x"]}'),
    ("limit_zero", "A limit is one or more.", '"limits":{"pids":0}'),
    ("nul_in_variable", "A value holds no NUL.", '"env":{"A":"\\u0000"}'),
    ("secret_of_server_unknown", "A server's secrets are among the secrets.",
     '"mcp_servers":{"a":{"command":["x"],"secrets":["A"]}}'),
    ("server_without_command", "A server is started by a command.",
     '"mcp_servers":{"a":{"command":[]}}'),
    ("replay_unknown", "Rules are five.", '"tools":{"a":{"replay":"never"}}'),
    ("password_in_address", "No secret's value lies in a spec.",
     '"setup":[{"run":"fetch https://user:word@example.org/"}]'),
    ("password_in_other_field", "Nor in a field that is only kept.",
     '"observed":["ssh://user:word@example.org/"]'),
):  # fmt: skip
    environment(_name, _says, f"{{\n{FORMAT},\n{_field}}}", ("environment_malformed", 3))
environment(
    "wrong_member",
    "Of many members the one that is wrong is named by its line.",
    f'{{\n{FORMAT},\n"mcp_servers":{{"a":{{"command":["x"]}},\n"b":{{"command":[\n"x",\n1]}}}}}}',
    ("environment_malformed", 6),
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
