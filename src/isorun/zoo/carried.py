"""What a training takes along into an environment that has nothing of isorun: its script and its data.

Both are put as plain files into one folder beside the study, so that the command names them by a relative path: the
cells are the same wherever the study lies, and the script can be read, and run by hand, where it is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from isorun.zoo.paper import Request

__all__ = ["CARRIED", "carried", "carry_arrays", "carry_script"]

CARRIED: Final = "isorun-carried"


def carried(paper: str, name: str) -> str:
    """The relative path of a file that the trainings of a paper take along."""
    return f"{CARRIED}/{paper}/{name}"


def carry_script(request: Request, paper: str, script: Path) -> None:
    """Put a training's script where `carried` says."""
    _replaced(request.folder / carried(paper, script.name), lambda half: shutil.copyfile(script, half))


def carry_arrays(request: Request, paper: str, name: str, arrays: Mapping[str, Any]) -> None:
    """Put arrays there, as they are: plain numbers and texts, no pickles."""
    import numpy as np  # noqa: PLC0415 - planning needs no arrays

    def write(half: Path) -> None:
        with half.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    _replaced(request.folder / carried(paper, name), write)


def _replaced(path: Path, write: Any) -> None:
    """Whole or not at all: another isorun may be training with what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(half)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
