"""Arrays from an .npz file that may be damaged or something else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isorun.errors import DataError

__all__ = ["read_npz"]


def read_npz(path: Path, names: Sequence[str] = (), *, hint: str = "") -> dict[str, Any]:
    """The named arrays, or all when none is named. Nothing is unpickled; zip's checksums guard every array."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive.files]
            arrays = {name: archive[name] for name in names or archive.files} if not missing else {}
    except Exception as error:
        # Wrong bytes fail wherever they are noticed: in zip, deflate, the array's head, or its parser.
        raise DataError(f"{path} is damaged", found=str(error) or type(error).__name__, hint=hint) from None
    if missing:
        raise DataError(
            f"{path} lacks {', '.join(missing)}", allowed=f"an .npz file with {', '.join(names)}", hint=hint
        )
    return arrays
