"""What a spec asks for, and where it is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.errors import FormatError
from sojourn.format import environment
from sojourn.format.blob import blob_id
from sojourn.format.place import line_of

KEYS = st.sampled_from(["a", 'b"', "\\", "é", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", '"', "{[", "\u2028", "a\nb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
LOCK = b"lock-version = 1\n"


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value in a value."""
    if not isinstance(value, dict | list):
        return [path]
    members = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(found for key, item in members for found in places(item, (*path, key)))]


@given(VALUES, st.data())
def test_every_value_is_found_in_the_line_where_it_begins(value: Any, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(places(value)))
    marked: Any = {"": value}
    holder = marked
    for part in ("", *path[:-1]) if path else ():
        holder = holder[part]
    holder[path[-1] if path else ""] = mark = "the value that is looked for"
    text = json.dumps(marked, indent=1)
    line = next(n for n, found in enumerate(text.split("\n"), 1) if mark in found)
    assert line_of(text.encode(), ("", *path)) == line


def test_of_a_path_that_leads_nowhere_the_last_part_that_is_there_is_named() -> None:
    text = b'{\n"a": {\n"b": 1}}'
    assert line_of(text, ("a", "b", "c")) == 3
    assert line_of(text, ("a", 0)) == 2
    assert line_of(text, ("z",)) == 1


def spec_with(lock_sha256: str | None) -> bytes:
    locked = {"version": "3.11", "lock": "environment/pylock.toml"}
    if lock_sha256 is not None:
        locked["lock_sha256"] = lock_sha256
    return json.dumps({"format": environment.FORMAT, "python": locked}, indent=1).encode()


@pytest.mark.parametrize("digest", [None, blob_id(LOCK)])
def test_a_lock_file_beside_the_spec_is_accepted(digest: str | None) -> None:
    spec = spec_with(digest)
    files = {"environment/pylock.toml": LOCK}
    environment.check_locks(environment.load(spec), files, spec=spec)


@pytest.mark.parametrize(
    ("digest", "files", "says"),
    [
        (None, {}, "is not there"),
        (blob_id(b"other"), {"environment/pylock.toml": LOCK}, "another sha256"),
    ],
)
def test_a_lock_file_that_is_gone_or_altered_is_refused_with_the_line(
    digest: str | None, files: dict[str, bytes], says: str
) -> None:
    spec = spec_with(digest)
    with pytest.raises(FormatError, match=says) as refused:
        environment.check_locks(environment.load(spec), files, spec=spec)
    assert (refused.value.code, refused.value.line) == ("environment_malformed", 5)


def test_a_file_for_the_sandbox_must_lie_beside_the_spec() -> None:
    wanted = [{"path": "AGENTS.md", "from": "environment/AGENTS.md"}]
    spec = json.dumps({"format": environment.FORMAT, "files": wanted}).encode()
    loaded = environment.load(spec)
    environment.check_locks(loaded, {"environment/AGENTS.md": b""}, spec=spec)
    with pytest.raises(FormatError, match=r"environment/AGENTS\.md is not there"):
        environment.check_locks(loaded, {}, spec=spec)
