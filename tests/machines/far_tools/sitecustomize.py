"""Gives every sojourn process of a machine two more tools, which call a service outside.

Python imports this by its name at its start (PYTHONPATH). Nothing of sojourn is replaced but the
list of tools, and nothing is imported before sojourn itself needs it.
"""

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

TOOLBOX = "sojourn.tools.toolbox"


class More(Loader):
    """Loads the toolbox as it is, and adds to it."""

    def __init__(self, real: Loader) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.real.exec_module(module)
        come_with = module.built_in

        def built_in() -> tuple[object, ...]:
            from outside import charge, launch

            return (*come_with(), charge, launch)

        vars(module)["built_in"] = built_in


class Finder(MetaPathFinder):
    """Only for the toolbox."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != TOOLBOX:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = More(spec.loader)
        return spec


if "COUNTER" in os.environ:
    sys.meta_path.insert(0, Finder())
