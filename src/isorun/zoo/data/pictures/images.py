"""Labelled images by name, from whichever form of the data set is at hand."""

from __future__ import annotations

from typing import Final

from isorun.errors import DataError, known_names
from isorun.zoo.data.catalogue import dataset
from isorun.zoo.data.pictures.cifar import load_cifar10, load_cifar100
from isorun.zoo.data.pictures.digits import load_digits
from isorun.zoo.data.pictures.image_set import Images
from isorun.zoo.data.pictures.made_images import made_images
from isorun.zoo.data.pictures.mnist import load_idx_images
from isorun.zoo.data.pictures.stand_in import load_stand_in
from isorun.zoo.data.presence import form_of, require

__all__ = ["Images", "load_images", "made_images"]

_READERS: Final = {
    "mnist": lambda form: load_idx_images("mnist", form),
    "fashion-mnist": lambda form: load_idx_images("fashion-mnist", form),
    "digits": load_digits,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
}


def load_images(name: str) -> Images:
    """The images of mnist, fashion-mnist, digits, cifar10 or cifar100; `origin` says which form they come from."""
    if dataset(name).name not in _READERS:
        raise DataError(f"{name} is no set of labelled images", allowed=known_names(name, _READERS))
    form = form_of(name)
    if form is None:
        require(name)
        raise AssertionError("require must have raised")
    if form.files[0].suffix == ".npz":
        return load_stand_in(form.files[0])
    return _READERS[name](form)
