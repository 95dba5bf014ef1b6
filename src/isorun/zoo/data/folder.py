"""Where data sets lie: one folder for all of them, each in a folder of its own name.

$ISORUN_DATA names it (a shared disk, an offline machine); without it, it is the user's cache folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from isorun.errors import DataError

__all__ = ["VARIABLE", "data_folder"]

VARIABLE: Final = "ISORUN_DATA"


def data_folder() -> Path:
    """The folder of all data sets; it need not exist yet."""
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        return _folder(named)
    cache = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(cache) if cache else Path("~/.cache").expanduser()) / "isorun" / "data"


def _folder(named: str) -> Path:
    try:
        folder = Path(named).expanduser().absolute()
    except RuntimeError as error:
        raise DataError(f"{VARIABLE} names no folder", found=f"{named} ({error})") from None
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{VARIABLE} names no folder", found=f"{folder}, which is a file")
    return folder
