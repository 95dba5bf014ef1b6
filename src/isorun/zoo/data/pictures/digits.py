"""The 1,797 handwritten digits that come with scikit-learn, read from its file without importing it.

The file knows no split. Here every fifth image, in file order, is a test image: 1,438 + 359. Its 17 grey steps (0 to
16) are spread over 0 to 255, so that a training treats them like any other image.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.pictures.image_set import Images, checked_images
from isorun.zoo.data.presence import Form

__all__ = ["CLASSES", "load_digits"]

CLASSES: Final = tuple("0123456789")
_SHAPE: Final = (1797, 65)


def load_digits(form: Form) -> Images:
    """The digits from digits.csv.gz: 64 pixels and the label in each row."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    path = form.files[0]
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.int64, converters=_whole)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} is damaged", found=str(error), hint="isorun data get digits") from None
    if table.shape != _SHAPE or table.min() < 0 or table[:, :64].max() > 16:
        found = f"a table of shape {table.shape} with values from {table.min()} to {table.max()}"
        raise DataError(f"{path} does not hold the digits", found=found, allowed=f"shape {_SHAPE}, values 0 to 16")
    images = ((table[:, :64] * 255 + 8) // 16).astype(np.uint8).reshape(-1, 8, 8)
    for_test = np.arange(len(images)) % 5 == 4
    return checked_images(
        (images[~for_test], table[~for_test, 64]),
        (images[for_test], table[for_test, 64]),
        classes=CLASSES,
        origin="digits of scikit-learn, whole: 1,438 + 359 images (every fifth is a test image)",
        where=str(path),
    )


def _whole(text: str) -> int:
    return int(float(text))
