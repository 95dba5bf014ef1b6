"""miniImageNet: 100 classes of 600 photographs, 84 pixels wide and high, in the split of Ravi & Larochelle 2017.

The photographs may not be passed on, so the user brings them: `images/*.jpg` beside `train.csv`, `val.csv` and
`test.csv` (or .csv.gz) with the columns filename and label.
"""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from isorun.errors import DataError, MissingExtra
from isorun.zoo.data.archives import DAMAGE
from isorun.zoo.data.classes.class_images import ClassImages, ClassSplits
from isorun.zoo.data.classes.kept_arrays import kept_or_read
from isorun.zoo.data.presence import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SIDE", "load_miniimagenet", "ravi_split"]

SIDE: Final = 84
IMAGES: Final = "images"
_AGAIN: Final = "remove it and get it again: isorun data get miniimagenet"


def load_miniimagenet() -> ClassSplits:
    """64 classes to learn from, 16 to select by, 20 to test on, from the data set's own folder."""
    folder = require("miniimagenet")
    return ClassSplits(*(ravi_split(folder, part) for part in ("train", "val", "test")))


def ravi_split(folder: Path, part: str) -> ClassImages:
    """The classes of one split, each photograph in the order of the list."""
    files, names = _listed(folder, part)
    classes = tuple(dict.fromkeys(names))
    labels = np.array([classes.index(name) for name in names], dtype=np.int64)
    order = np.argsort(labels, kind="stable")
    paths = [folder / IMAGES / files[k] for k in order]
    images = kept_or_read(f"miniimagenet-{part}-{SIDE}", paths, ["images"], lambda: _read(paths))["images"]
    return ClassImages(images, labels[order], classes, f"miniImageNet, {part} classes of the Ravi split")


def _listed(folder: Path, part: str) -> tuple[list[str], list[str]]:
    path = next((path for path in (folder / f"{part}.csv", folder / f"{part}.csv.gz") if path.is_file()), None)
    if path is None:
        raise DataError(f"miniImageNet in {folder}", found=f"no {part}.csv", hint="isorun data get miniimagenet")
    rows = _rows(path)
    if not rows or not {"filename", "label"} <= set(rows[0]):
        raise DataError(str(path), found=f"columns {list(rows[0]) if rows else []}", allowed="filename,label")
    for line, row in enumerate(rows, start=2):
        if not row["label"] or Path(row["filename"]).name != row["filename"]:
            found, allowed = repr(row["filename"]), "the name of a file in images/, and its label"
            raise DataError(f"{path}, line {line}", found=found, allowed=allowed, hint=_AGAIN)
    return [row["filename"] for row in rows], [row["label"] for row in rows]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except DAMAGE as error:
        raise DataError(f"{path} is damaged", found=str(error), hint=_AGAIN) from error
    return list(csv.DictReader(io.StringIO(text)))


def _read(paths: list[Path]) -> dict[str, NDArray[np.uint8]]:
    return {"images": np.stack([_photograph(path) for path in paths])}


def _photograph(path: Path) -> NDArray[np.uint8]:
    try:
        from PIL import Image  # noqa: PLC0415 - only this data set and Omniglot's zip files need it
    except ImportError as error:
        raise MissingExtra("pillow", "zoo", "reading miniImageNet's photographs") from error
    try:
        with Image.open(path, formats=["JPEG", "PNG"]) as image:
            squared = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    except OSError as error:
        raise DataError(f"miniImageNet: {path}", found=str(error), allowed="a JPEG image") from error
    return np.asarray(squared, dtype=np.uint8)
