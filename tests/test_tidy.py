"""The tidy test: the rules of tidy_rules.py hold for the whole project.

Each rule is also run on planted faults that it must find, and on near misses that must pass.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidy_rules import (
    ARCHITECTURE_LINES,
    COLUMNS,
    FILE_LINES,
    FUNCTION_LINES,
    PROJECT,
    ROOT,
    TEXTS,
    Source,
    anchors,
    asserts,
    banned_names,
    broken_citations,
    deep_nesting,
    files,
    foreign_words,
    imports,
    impure,
    long_parts,
    orphans,
    python,
    rooms,
    source,
    unknown_rooms,
)


def report(complaints: Iterator[str]) -> None:
    found = list(complaints)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def everywhere(rule: Callable[[Source], Iterator[str]], *folders: str) -> Iterator[str]:
    return (complaint for given in python(*folders) for complaint in rule(given))


def own_texts() -> dict[str, str]:
    kept = files("src", "tests", "docs", "benchmarks", ".ci", suffixes=TEXTS)
    kept += [p for p in ROOT.iterdir() if p.is_file() and p.suffix in TEXTS and p.name != ".git"]
    return {p.relative_to(ROOT).as_posix(): p.read_text("utf-8", errors="replace") for p in kept}


def own_documents(texts: dict[str, str]) -> dict[str, set[str]]:
    return {path: anchors(text) for path, text in texts.items() if path.endswith(".md")}


def test_files_functions_and_lines_are_short() -> None:
    report(everywhere(long_parts, "src", "tests", "benchmarks"))


def test_blocks_nest_three_deep_at_most() -> None:
    report(everywhere(deep_nesting, "src", "tests", "benchmarks"))


def test_no_name_in_src_is_banned() -> None:
    report(everywhere(banned_names, "src"))


def test_pure_rooms_touch_nothing_even_lazily() -> None:
    report(everywhere(impure, "src"))


def test_guards_in_src_are_not_asserts() -> None:
    report(everywhere(asserts, "src"))


def test_every_module_is_reached() -> None:
    scripts = PROJECT["project"]["scripts"].values()
    entries = {script.partition(":")[0] for script in scripts}
    for given in python("tests", "benchmarks"):
        used = (name for name, _ in imports(given.tree))
        entries |= {name for name in used if name.startswith("sojourn.testing.")}
    report(orphans(python("src"), entries))


def test_every_cited_rule_exists() -> None:
    texts = own_texts()
    documents = own_documents(texts)
    cited = ((p, t) for p, t in texts.items() if p.endswith((".py", ".md")) and "tidy" not in p)
    report(c for path, text in cited for c in broken_citations(path, text, documents))


def test_the_project_speaks_of_itself_alone() -> None:
    texts = ((p, t) for p, t in own_texts().items() if p != "uv.lock")
    report(complaint for path, text in texts for complaint in foreign_words(path, text))


def test_every_room_is_in_the_import_contract() -> None:
    top = ROOT / "src" / "sojourn"
    paths = [p.relative_to(top).as_posix() for p in files("src/sojourn", suffixes={".py"})]
    report(unknown_rooms(paths, rooms()))


def test_architecture_is_short_enough_to_read() -> None:
    lines = len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines())
    if lines >= ARCHITECTURE_LINES:
        pytest.fail(f"ARCHITECTURE.md has {lines} lines, fewer than {ARCHITECTURE_LINES} wanted")


DEEP = """
def f():
    for a in b:
        if a:
            with a:
                {0}
"""
ELIF = """
def f():
    for a in b:
        if a:
            if c: pass
            elif d: pass
            elif e: pass
            else: pass
"""
ELSE_IF = """
def f():
    for a in b:
        if a:
            if c: pass
            else:
                if d: pass
"""
LONG = "def f():\n" + " x = 1\n" * FUNCTION_LINES

FAULTS: list[tuple[Callable[[Source], Iterator[str]], str, str]] = [
    (long_parts, "x = 1\n" * (FILE_LINES + 1), "401 lines"),
    (long_parts, f"x = '{'y' * COLUMNS}'\n", "106 columns"),
    (long_parts, LONG, "f has 61 lines"),
    (deep_nesting, DEEP.format("while b: pass"), ":6: block 4 deep"),
    (deep_nesting, DEEP.format("try: pass\n                finally: pass"), ":6: block 4 deep"),
    (deep_nesting, DEEP.format("match b:\n                    case 1: pass"), ":6: block 4 deep"),
    (deep_nesting, ELSE_IF, ":7: block 4 deep"),
    (banned_names, "def open_session(): pass", "open_session"),
    (banned_names, "class EventHandler: pass", "EventHandler"),
    (banned_names, "def f(*, nodes: int): pass", "nodes"),
    (banned_names, "class A:\n    history: int", ":2: the name 'history'"),
    (banned_names, "def f(self):\n    self.owner = 1", "owner"),
    (banned_names, "HELPERS = 1", "HELPERS"),
    (impure, "import os.path", "imports os.path"),
    (impure, "def f():\n    from time import time", ":2: a pure room imports time"),
    (impure, "import httpx2", "imports httpx2"),
    (impure, "from typing import Any", "names Any"),
    (impure, "def f(): return open('x')", "calls open()"),
    (asserts, "def f(x):\n    assert x", ":2: assert"),
]
NEAR_MISSES: list[tuple[Callable[[Source], Iterator[str]], str]] = [
    (long_parts, LONG.removesuffix(" x = 1\n")),
    (deep_nesting, DEEP.format("x = [d for d in e if d]")),
    (deep_nesting, DEEP.format("def g():\n                    if a: pass")),
    (deep_nesting, ELIF),
    (banned_names, "def based(base_url: str) -> None:\n    commons = ownership = 1"),
    (impure, "import msgspec, hashlib, re\nfrom sojourn.ids import Seq"),
    (asserts, "def f(x):\n    if not x: raise ValueError"),
]


@pytest.mark.parametrize(("rule", "text", "complaint"), FAULTS)
def test_a_planted_fault_is_found(
    rule: Callable[[Source], Iterator[str]], text: str, complaint: str
) -> None:
    found = list(rule(source(text)))
    assert len(found) >= 1
    assert complaint in found[0]


@pytest.mark.parametrize(("rule", "text"), NEAR_MISSES)
def test_a_near_miss_passes(rule: Callable[[Source], Iterator[str]], text: str) -> None:
    assert list(rule(source(text))) == []


def test_a_banned_module_name_is_found() -> None:
    assert list(banned_names(source("", "sojourn.core.utils")))


def test_an_impure_import_outside_the_pure_rooms_passes() -> None:
    assert not list(impure(source("import os", "sojourn.store.folder")))


def test_a_module_that_nothing_reaches_is_found() -> None:
    lone, user = source("", "sojourn.core.lone"), source("", "sojourn.cli.main")
    assert len(list(orphans([lone, user], {"sojourn.cli.main"}))) == 1
    for line in ("from sojourn.core import lone", "X = {'lone': 'sojourn.core.lone:run'}"):
        user = source(line, "sojourn.cli.main")
        assert not list(orphans([lone, user], {"sojourn.cli.main"}))


def test_a_citation_of_nothing_is_found() -> None:
    documents = {"docs/a.md": anchors("# The A-B\n```\n# not\n```\n## x `y` & z\n## x `y` & z\n")}
    assert documents["docs/a.md"] == {"the-a-b", "x-y--z", "x-y--z-1"}
    for text in ("docs/b.md", "docs/a.md#not"):
        assert len(list(broken_citations("src/x.py", f"see {text}.", documents))) == 1
    assert not list(broken_citations("src/x.py", "docs/a.md#the-a-b", documents))
    assert len(list(broken_citations("docs/a.md", "[b](b.md) [c](#the-a-b)", documents))) == 1


@pytest.mark.parametrize("words", ["/home ann/x", "pypi .org", "see part @2", "issue #@4"])
def test_a_foreign_word_is_found(words: str) -> None:
    text = words.replace(" ann", "/ann").replace(" .", ".").replace("@", "")
    assert len(list(foreign_words("README.md", f"first\n{text}"))) == 1
    assert not list(foreign_words("README.md", "~/x, a part of 2 issues; 2 parts"))


def test_an_unknown_or_hidden_room_is_found() -> None:
    paths = ["__init__.py", "ids.py", "core/__init__.py", "attic/__init__.py", "cli/main.py"]
    complaints = list(unknown_rooms(paths, {"ids", "core", "cli"}))
    assert ["attic" in complaints[0], "cli" in complaints[1], len(complaints)] == [True, True, 2]


def test_a_test_reaches_loopback_only() -> None:
    """Asked of the audit hook itself, so nothing is sent even if the guard is broken."""
    sys.audit("socket.connect", None, ("127.0.0.1", 1))
    sys.audit("socket.connect", None, "/tmp/a.socket")
    sys.audit("socket.getaddrinfo", "localhost", 80, 0, 0, 0)
    with pytest.raises(RuntimeError, match="only loopback"):
        sys.audit("socket.connect", None, ("192.0.2.1", 80))
    with pytest.raises(RuntimeError, match="only loopback"):
        sys.audit("socket.getaddrinfo", "api.example", 443, 0, 0, 0)


def test_a_test_sees_no_key_and_no_state_from_outside(own_state: Path) -> None:
    assert os.environ["SOJOURN_HOME"] == str(own_state)
    assert not [name for name in os.environ if name.endswith("_API_KEY")]
