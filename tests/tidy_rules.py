"""The rules of ARCHITECTURE.md and CONTRIBUTING.md that a program can check.

Each rule is a function from text to complaints; tests/test_tidy.py runs them. Nothing here knows
the project's files, except by `ROOT`.
"""

import ast
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

FUNCTION_LINES, FILE_LINES, COLUMNS, NESTING, ARCHITECTURE_LINES = 60, 400, 100, 3, 300
BANNED = """
    session checkpoint history node owner leader handoff
    util helper common base manager handler service impl
"""
SPOKEN_BY_OTHERS = frozenset({"base_url"})
PURE = ("format", "core", "render")
PURE_PACKAGES = {"msgspec", "rfc8785", "sojourn"}
PURE_EXCEPT = {"sojourn.core.recall": {"numpy"}}
IMPURE = """
    os io time datetime random secrets uuid socket ssl asyncio threading subprocess pathlib
    logging tempfile importlib shutil sqlite3 multiprocessing signal
"""
IMPURE_CALLS = "open input print exec eval __import__ breakpoint"
TEXTS = {".py", ".md", ".toml", ".json", ".jsonl", ".txt", ".sh", ".yml", ".cfg", ""}
# The patterns do not match themselves, so this file is searched like any other.
FOREIGN = {
    "a home folder's path": r"/(?:home|root|Users)/[\w.]",
    "the host of a registry": r"pypi[.]org|pythonhosted[.]org|npmjs[.]org|debian[.]org",
    "a number of a plan or a ticket": r"(?i)\b(?:part|issue)s? #?\d+\b",
}


class Source(NamedTuple):
    """One Python file: its dotted module name (of a package, the package's), path and tree."""

    module: str
    path: str
    text: str
    tree: ast.Module


def source(text: str, module: str = "sojourn.core.turn") -> Source:
    return Source(module, module.replace(".", "/") + ".py", text, ast.parse(text))


def files(*folders: str, suffixes: set[str]) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    kept = (
        p for p in found if p.suffix in suffixes and p.is_file() and "__pycache__" not in p.parts
    )
    return sorted(kept)


def python(*folders: str) -> list[Source]:
    sources: list[Source] = []
    for path in files(*folders, suffixes={".py"}):
        parts = path.relative_to(ROOT).with_suffix("").parts
        dotted = ".".join(parts[1:] if parts[0] == "src" else parts).removesuffix(".__init__")
        text = path.read_text("utf-8")
        sources.append(Source(dotted, str(path.relative_to(ROOT)), text, ast.parse(text)))
    return sources


Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Block = Loop | ast.If | ast.With | ast.AsyncWith | ast.Try | ast.TryStar | ast.Match


def long_parts(given: Source) -> Iterator[str]:
    """A function counts from `def` to its last line, docstring included, decorators not."""
    lines = given.text.splitlines()
    if len(lines) > FILE_LINES:
        yield f"{given.path}: {len(lines)} lines, at most {FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{given.path}:{number}: {len(line)} columns, at most {COLUMNS}"
    for part in ast.walk(given.tree):
        if isinstance(part, Function):
            length = (part.end_lineno or part.lineno) - part.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{given.path}:{part.lineno}: {part.name} has {length} lines"


def deep_nesting(given: Source) -> Iterator[str]:
    """for, while, if, with, try and match count; elif, else, except, case and finally do not.

    A function or class inside another starts again at none.
    """

    def walk(part: ast.AST, depth: int) -> Iterator[str]:
        for child in ast.iter_child_nodes(part):
            elif_ = isinstance(part, ast.If) and isinstance(child, ast.If) and child in part.orelse
            same_branch = elif_ and child.col_offset == part.col_offset
            inner = depth + (isinstance(child, Block) and not same_branch)
            if isinstance(child, Function | ast.ClassDef | ast.Lambda):
                inner = 0
            if inner > NESTING and inner > depth:
                yield f"{given.path}:{child.lineno}: block {inner} deep, at most {NESTING}"
            yield from walk(child, inner)

    yield from walk(given.tree, 0)


def defined_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions, classes, parameters, fields and attributes that this file itself names."""
    for part in ast.walk(tree):
        if isinstance(part, Function | ast.ClassDef):
            yield part.name, part.lineno
        elif isinstance(part, ast.arg):
            yield part.arg, part.lineno
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            yield part.attr, part.lineno
        if isinstance(part, ast.Module | ast.ClassDef):
            for line in part.body:
                targets = line.targets if isinstance(line, ast.Assign) else []
                targets += [line.target] if isinstance(line, ast.AnnAssign) else []
                yield from ((t.id, t.lineno) for t in targets if isinstance(t, ast.Name))


def banned_names(given: Source) -> Iterator[str]:
    """A banned word may not be a word of a name, in either number."""
    names = [*defined_names(given.tree), *((part, 1) for part in given.module.split("."))]
    for name, number in names:
        spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
        words = {form for word in spelled.split("_") for form in (word, word.removesuffix("s"))}
        if words & set(BANNED.split()) and name not in SPOKEN_BY_OTHERS:
            yield f"{given.path}:{number}: the name {name!r} is banned (docs/glossary.md)"


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Dotted names imported anywhere in the file; for `from a import b` both `a` and `a.b`."""
    for part in ast.walk(tree):
        if isinstance(part, ast.Import):
            yield from ((alias.name, part.lineno) for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module:
            yield part.module, part.lineno
            yield from ((f"{part.module}.{alias.name}", part.lineno) for alias in part.names)


def impure(given: Source) -> Iterator[str]:
    """Pure rooms reach no clock, chance, file, network or process, and name no `Any`."""
    if not given.module.startswith(tuple(f"sojourn.{room}" for room in PURE)):
        return
    allowed = PURE_PACKAGES | PURE_EXCEPT.get(given.module, set())
    for name, number in imports(given.tree):
        top = name.partition(".")[0]
        if top in IMPURE.split() or (top not in allowed and top not in sys.stdlib_module_names):
            yield f"{given.path}:{number}: a pure room imports {name}"
        elif name == "typing.Any":
            yield f"{given.path}:{number}: a pure room names Any"
    for part in ast.walk(given.tree):
        called = part.func if isinstance(part, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in IMPURE_CALLS.split():
            yield f"{given.path}:{called.lineno}: a pure room calls {called.id}()"


def asserts(given: Source) -> Iterator[str]:
    """`python -O` removes asserts, so a guard is `if ... raise`."""
    for part in ast.walk(given.tree):
        if isinstance(part, ast.Assert):
            yield f"{given.path}:{part.lineno}: assert in src; write `if ...: raise`"


def orphans(sources: list[Source], entries: set[str]) -> Iterator[str]:
    """Every module is imported, started by name, or named in a string (a table of commands)."""
    reached = set(entries)
    for given in sources:
        reached |= {name for name, _ in imports(given.tree) if name != given.module}
        for part in ast.walk(given.tree):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                reached.add(part.value.partition(":")[0])
        if '__name__ == "__main__"' in given.text or given.path.endswith("__init__.py"):
            reached.add(given.module)
    for given in sources:
        if given.module not in reached and not given.module.endswith(".__main__"):
            yield f"{given.path}: nothing imports it"


def anchors(markdown: str) -> set[str]:
    """The anchors that a reader of Markdown makes of the headings, and those set by hand."""
    found: set[str] = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", markdown))
    seen: dict[str, int] = {}
    unfenced = re.sub(r"(?ms)^(```|~~~).*?^\1", "", markdown)
    for heading in re.findall(r"(?m)^#{1,6} +(.+?) *#*$", unfenced):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def linked(path: str, text: str) -> Iterator[tuple[str, str]]:
    """The documents, relative to the project, and anchors that a document links to."""
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([\w-]+))?\)", text):
        whole = (ROOT / path).parent / target if target else ROOT / path
        inside = Path(os.path.relpath(whole.resolve(), ROOT)).as_posix()
        if inside.endswith(".md") or not whole.exists():
            yield inside, anchor


def broken_citations(path: str, text: str, documents: dict[str, set[str]]) -> Iterator[str]:
    """`docs/x.md#rule` in code, and links in documents, lead to a document and to a heading."""
    cited = set(re.findall(r"(?<![\w/.])(docs/[\w./-]+\.md)(?:#([\w-]+))?", text))
    if path.endswith(".md"):
        cited |= set(linked(path, text))
    for target, anchor in sorted(cited):
        if target not in documents:
            yield f"{path}: cites {target}, which does not exist"
        elif anchor and anchor not in documents[target]:
            yield f"{path}: cites {target}#{anchor}, which is no heading there"


def foreign_words(path: str, text: str) -> Iterator[str]:
    """The project speaks of itself alone, and of no one machine."""
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in FOREIGN.items():
            if found := re.search(pattern, line):
                yield f"{path}:{number}: {what}: {found[0]!r}"


def rooms() -> set[str]:
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    return set(re.findall(r"\w+", " ".join(layers)))


def unknown_rooms(paths: list[str], known: set[str]) -> Iterator[str]:
    """`paths` are relative to src/sojourn; a room is a folder with an `__init__.py`, or a file."""
    for top in sorted({path.split("/")[0] for path in paths} - {"__init__.py", "__main__.py"}):
        if top.removesuffix(".py") not in known:
            yield f"src/sojourn/{top}: no layer of the import contract in pyproject.toml names it"
        elif not top.endswith(".py") and f"{top}/__init__.py" not in paths:
            yield f"src/sojourn/{top}: has no __init__.py, so no contract sees it"
