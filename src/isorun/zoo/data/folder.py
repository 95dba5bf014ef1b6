"""Where data sets lie: one folder for all of them, each in a folder of its own name.

$ISORUN_DATA names it (a shared disk, an offline machine); without it, it is the user's cache folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["VARIABLE", "data_folder"]

VARIABLE: Final = "ISORUN_DATA"


def data_folder() -> Path:
    """The folder of all data sets; it need not exist yet."""
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        return Path(named).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "isorun" / "data"
