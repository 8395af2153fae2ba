"""Runs an action behind the import of a module, or at once if it is there; and without a search for garbage. Imports nothing."""

import contextlib
import gc
import importlib.abc
import sys


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are waited for as the other finders do, each time that it is asked: many ask and do not import."""

    def __init__(self):
        self.actions = {}

    def find_spec(self, name, path, target=None):
        if name not in self.actions:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                for action in self.actions.pop(name, ()):
                    action()

            spec.loader.exec_module = exec_module
        return spec


_FINDER = _Finder()


def imported(module, action):
    """Runs `action()` when the module is there."""
    if module in sys.modules:
        action()
        return
    _FINDER.actions.setdefault(module, []).append(action)
    # First again: a finder that came later could have the module's name, too.
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    sys.meta_path.insert(0, _FINDER)


@contextlib.contextmanager
def uncollected():
    """Looks for no garbage meanwhile: one search takes 0.2 s beside what torch and a model keep, and finds nothing here."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
