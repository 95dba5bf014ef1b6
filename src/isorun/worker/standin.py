"""`import isorun` in an interpreter that does not have it: a small module with the calls a training makes."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Sequence

from . import api

NAME = "isorun"


class StandInFinder:
    """Ends `sys.meta_path`: it is asked only when no other finder knows isorun."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002  the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """A spec for `isorun` itself, for nothing else."""
        return ModuleSpec(fullname, self, origin="isorun worker") if fullname == NAME else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """The import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the public calls."""
        module.__doc__ = "What a training needs of isorun: log, result, digest."
        for name in api.__all__:
            setattr(module, name, getattr(api, name))
        module.__all__ = list(api.__all__)  # type: ignore[attr-defined]


def install() -> None:
    """Put the stand-in behind all other finders."""
    sys.meta_path.append(StandInFinder())
