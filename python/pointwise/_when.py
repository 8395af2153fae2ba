"""Runs an action behind the import of a module, or at once if it is there. Imports nothing itself."""

import importlib.abc
import importlib.util
import sys


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module, action):
        self.module, self.action = module, action

    def find_spec(self, name, path, target=None):
        if name != self.module or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                self.action()

            spec.loader.exec_module = exec_module
        return spec


def imported(module, action):
    """Runs `action()` when the module is there."""
    if module in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(module, action))
