"""Run something right after a module has been imported, without editing the module or its loader for good."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable, Sequence

AfterImport = Callable[[ModuleType], None]


class ImportWatcher:
    """Leads `sys.meta_path` and lets the other finders find; a watched module gets a callback after it has run.

    The module keeps its own loader and spec: ours is gone before the module's first line. An import that fails does
    not count, so the next attempt is watched again. (The base classes of `importlib.abc` are left out: importing them
    takes longer than all the rest of the worker.)
    """

    def __init__(self) -> None:
        self._callbacks: dict[str, AfterImport] = {}
        self._searching: set[str] = set()

    def watch(self, name: str, callback: AfterImport) -> None:
        """Call `callback(module)` after `name` is imported; at once if it already is."""
        if name in sys.modules:
            callback(sys.modules[name])
            return
        self._callbacks[name] = callback
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give, its loader wrapped, for a watched module only."""
        if fullname not in self._callbacks or fullname in self._searching:
            return None  # another watcher may lead the path, too, and ask this one while this one asks it
        self._searching.add(fullname)
        try:
            spec = self._spec_of_others(fullname, path, target)
        finally:
            self._searching.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _NotifyingLoader(spec.loader, self._imported)  # type: ignore[assignment]
        return spec

    def _spec_of_others(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find and finder is not self else None
            if spec is not None:
                return spec
        return None

    def _imported(self, module: ModuleType) -> None:
        callback = self._callbacks.pop(module.__name__, None)
        if callback is not None:
            callback(module)


class _NotifyingLoader:
    """Stands in for a loader until the module runs; everything else is the original's."""

    def __init__(self, original: Any, imported: AfterImport) -> None:
        self._original = original
        self._imported = imported

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the original does."""
        module: ModuleType | None = self._original.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the original back, run the module, and tell."""
        module.__loader__ = self._original
        if module.__spec__ is not None:
            module.__spec__.loader = self._original
        self._original.exec_module(module)
        self._imported(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)
