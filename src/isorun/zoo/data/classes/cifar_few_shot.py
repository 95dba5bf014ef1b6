"""CIFAR-FS (Bertinetto et al. 2019) and FC100 (Oreshkin et al. 2018): the classes of CIFAR-100 in three splits.

CIFAR-FS splits the 100 classes at random; FC100 splits the 20 superclasses, so that test classes are less akin.
Training and test images of CIFAR-100 are put together: 600 a class in the whole set.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isorun.errors import DataError, known_names
from isorun.zoo.data.classes.class_images import ClassImages, ClassSplits, by_class
from isorun.zoo.data.pictures.images import load_images
from isorun.zoo.data.presence import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SUPERCLASSES", "load_cifar_few_shot", "split_classes"]

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
