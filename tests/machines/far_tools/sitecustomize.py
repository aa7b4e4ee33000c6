"""Gives every sojourn process of a machine two more tools, which call a service outside.

Python imports this by its name at its start (PYTHONPATH). Nothing of sojourn is replaced but the
list of tools, and nothing is imported before sojourn itself needs it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

TOOLBOX = "sojourn.tools.toolbox"


class Loader(importlib.abc.Loader):
    """Loads the toolbox as it is, and adds to it."""

    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module):
        self.real.exec_module(module)
        come_with = module.built_in

        def built_in():
            from outside import charge, launch

            return (*come_with(), charge, launch)

        module.built_in = built_in


class Finder(importlib.abc.MetaPathFinder):
    """Only for the toolbox."""

    def find_spec(self, name, path, target=None):
        if name != TOOLBOX:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Loader(spec.loader)
        return spec


if "COUNTER" in os.environ:
    sys.meta_path.insert(0, Finder())
