"""The machine under test: the modules of `core` as they are, or copies with a guard taken out.

A copy is made from the module's source text, so the code that ships holds no switch. Edits are
written in the form that `ast.unparse` gives, which neither layout nor comments change.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from types import ModuleType

NAMES = ("replay", "turn_state", "turn", "strands", "blocks", "view")
"""In the order in which they import one another."""

_copies = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """One set of modules that belong together."""

    replay: ModuleType
    turn_state: ModuleType
    turn: ModuleType
    strands: ModuleType
    blocks: ModuleType
    view: ModuleType


REAL = Core(**{name: importlib.import_module(f"sojourn.core.{name}") for name in NAMES})
"""The modules as they ship."""

Edit = tuple[str, str]
"""What stands in the source exactly once, and what stands there instead."""


@cache
def source(name: str) -> str:
    """The source of a module of `core` without comments, in one layout."""
    module = importlib.import_module(f"sojourn.core.{name}")
    return ast.unparse(ast.parse(inspect.getsource(module)))


def edited(name: str, edits: tuple[Edit, ...]) -> str:
    """The source after the edits; a text that is not there exactly once is an error."""
    text = source(name)
    for old, new in edits:
        found = text.count(old)
        if found != 1:
            raise LookupError(f"core/{name}.py holds this {found} times, not once: {old}")
        text = text.replace(old, new)
    return text


def copies(names: tuple[str, ...], edits: Mapping[str, tuple[Edit, ...]]) -> dict[str, ModuleType]:
    """These modules anew, some of them edited; `edits` is by module name.

    `names` are in the order in which they import one another.
    """
    place = f"edited_core_{next(_copies)}"
    made: dict[str, ModuleType] = {}
    sys.modules[place] = ModuleType(place)
    try:
        for name in names:
            text = edited(name, edits.get(name, ()))
            for other in names:
                text = text.replace(f"from sojourn.core.{other} ", f"from {place}.{other} ")
                text = text.replace(
                    f"from sojourn.core import {other} ", f"from {place} import {other} "
                )
            module = ModuleType(f"{place}.{name}")
            sys.modules[f"{place}.{name}"] = made[name] = module
            exec(compile(text, f"<edited {name}>", "exec"), module.__dict__)
    finally:
        del sys.modules[place]
        for name in made:
            del sys.modules[f"{place}.{name}"]
    return made


def copy(edits: Mapping[str, tuple[Edit, ...]]) -> Core:
    """The machine of a turn anew."""
    return Core(**copies(NAMES, edits))
