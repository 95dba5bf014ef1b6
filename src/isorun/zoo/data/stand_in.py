"""Images prepared by the user or for tests: an .npz file with x_train, y_train, x_test, y_test and classes."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.image_set import Images, checked_images

__all__ = ["load_stand_in"]

_KEYS: Final = ("x_train", "y_train", "x_test", "y_test", "classes")


def load_stand_in(path: Path) -> Images:
    """The images of a prepared file; its origin names the file, its sizes and its sha256. Nothing is unpickled."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [key for key in _KEYS if key not in archive.files]
            if missing:
                raise DataError(f"{path} lacks {', '.join(missing)}", allowed=f"an .npz file with {', '.join(_KEYS)}")
            x_train, y_train, x_test, y_test, classes = (archive[key] for key in _KEYS)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is damaged", found=str(error), hint=f"remove {path} or write it again") from None
    return checked_images(
        (x_train, y_train),
        (x_test, y_test),
        classes=tuple(str(name) for name in classes),
        origin=f"stand-in {path.name}, {len(x_train):,} + {len(x_test):,} images, sha256 {digest}",
        where=str(path),
    )
