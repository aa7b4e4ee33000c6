"""Gives every sojourn process of a machine two more tools, which call a service outside.

Python imports this by its name at its start (PYTHONPATH). Nothing is imported before sojourn itself
needs it, and nothing of sojourn is replaced but the list of tools; with FAULT in the environment
also one rule of moves, so that the judge has something to find.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

TOOLBOX = "sojourn.tools.toolbox"
SOURCE = "sojourn.core.migration_source"


def add_tools(module: ModuleType) -> None:
    """Two more of them."""
    come_with = module.built_in

    def built_in() -> tuple[object, ...]:
        from outside import charge, launch

        return (*come_with(), charge, launch)

    vars(module)["built_in"] = built_in


def forget_doubt(module: ModuleType) -> None:
    """A source in doubt that is asked again does not ask: it goes on."""
    from faulty import go_on_in_doubt

    vars(module)["again"] = go_on_in_doubt(module.again, module.cancel)


CHANGES = {TOOLBOX: add_tools} | ({SOURCE: forget_doubt} if os.environ.get("FAULT") else {})


class Changed(Loader):
    """Loads a module as it is, then changes it."""

    def __init__(self, real: Loader, change: Callable[[ModuleType], None]) -> None:
        self.real = real
        self.change = change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.real.exec_module(module)
        self.change(module)


class Finder(MetaPathFinder):
    """Only for what is to be changed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in CHANGES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Changed(spec.loader, CHANGES[name])
        return spec


if "COUNTER" in os.environ:
    sys.meta_path.insert(0, Finder())
