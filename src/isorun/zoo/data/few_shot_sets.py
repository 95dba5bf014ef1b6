"""CIFAR-FS, FC100 and miniImageNet: classes in three splits, so that what is tested was never trained on.

CIFAR-FS (Bertinetto et al. 2019) splits the 100 classes of CIFAR-100 at random; FC100 (Oreshkin et al. 2018) splits its
20 superclasses, so that test classes are less akin. Training and test images are put together: 600 a class.
miniImageNet has 100 classes of 600 photographs, 84 pixels wide and high, in the split of Ravi & Larochelle 2017. The
photographs may not be passed on, so the user brings them: `images/*.jpg` beside `train.csv`, `val.csv` and `test.csv`
(or .csv.gz) with the columns filename and label.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isorun.errors import DataError, MissingExtra, known_names
from isorun.zoo.data.class_images import ClassImages, ClassSplits, by_class
from isorun.zoo.data.files import DAMAGE, kept_or_read
from isorun.zoo.data.images import load_images
from isorun.zoo.data.presence import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SIDE", "SUPERCLASSES", "load_cifar_few_shot", "load_miniimagenet", "ravi_split", "split_classes"]

SUPERCLASSES: Final = {
    "aquatic_mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food_containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit_and_vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household_furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large_carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large_man-made_outdoor_things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large_natural_outdoor_scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large_omnivores_and_herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium_mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect_invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small_mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles_2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}


def load_cifar_few_shot(name: str) -> ClassSplits:
    """`cifar-fs` or `fc100`: the images of CIFAR-100 in the splits that are listed in the data set's own folder."""
    lists = require(name)
    source = load_images("cifar100")
    images = np.concatenate([source.train_images, source.test_images])
    labels = np.concatenate([source.train_labels, source.test_labels])
    by_name = {str(class_name): images[labels == label] for label, class_name in enumerate(source.classes)}
    parts = (
        _part(by_name, lists / f"{part}.json", f"{name} from {source.origin}") for part in ("train", "val", "test")
    )
    return ClassSplits(*parts)


def split_classes(listing: Path) -> tuple[str, ...]:
    """The class names of a split: its list has [superclass, class] pairs, or superclasses with all their classes."""
    try:
        entries = json.loads(listing.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"the split {listing}", found=str(error), allowed="a JSON list of classes") from error
    if not isinstance(entries, list):
        raise DataError(f"the split {listing}", found=type(entries).__name__, allowed="a JSON list of classes")
    return tuple(name for entry in entries for name in _classes_of(entry, listing))


def _classes_of(entry: Any, listing: Path) -> tuple[str, ...]:
    if isinstance(entry, str) and entry in SUPERCLASSES:
        return SUPERCLASSES[entry]
    if isinstance(entry, list) and len(entry) == 2 and entry[1] in SUPERCLASSES.get(str(entry[0]), ()):
        return (str(entry[1]),)
    raise DataError(
        f"the split {listing}", found=repr(entry), allowed="a superclass of CIFAR-100, or [superclass, class]"
    )


def _part(by_name: dict[str, NDArray[np.uint8]], listing: Path, origin: str) -> ClassImages:
    groups = []
    for name in split_classes(listing):
        if name not in by_name:
            raise DataError(
                f"{listing.name}: class {name!r}", found="not in CIFAR-100", allowed=known_names(name, by_name)
            )
        groups.append((name, by_name[name]))
    return by_class(groups, f"{origin}, {listing.stem} classes")


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
