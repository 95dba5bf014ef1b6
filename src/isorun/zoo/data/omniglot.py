"""Omniglot: 1,623 handwritten characters, 20 drawings each, that count as new classes when turned.

Read from the author's two zip files, or from a prepared `omniglot.npz` with one bit a pixel. Drawings become 28 pixels
wide and high by area means, 255 is ink. The split is that of Vinyals et al. 2016, in the lists of omniglot-vinyals.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isorun.errors import DataError, MissingExtra
from isorun.zoo.data.class_images import IMAGES_AT_ONCE, ClassImages, ClassSplits, by_class, resized_squares
from isorun.zoo.data.files import DAMAGE, kept_or_read, read_npz
from isorun.zoo.data.presence import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SIDE", "drawings", "load_omniglot", "turned_classes"]

SIDE: Final = 28
ORIGINAL_SIDE: Final = 105
ZIPS: Final = ("images_background.zip", "images_evaluation.zip")
PREPARED: Final = "omniglot.npz"
_KEPT: Final = ("images", "sizes", "characters")
_AGAIN: Final = "remove it and get it again: isorun data get omniglot"


def load_omniglot() -> ClassSplits:
    """The Vinyals split: 4,112 classes to learn from, 688 to select by, 1,692 to test on."""
    lists = require("omniglot-vinyals")
    by_character = drawings(require("omniglot"))
    return ClassSplits(*(turned_classes(by_character, lists / f"{part}.txt") for part in ("train", "val", "test")))


def drawings(folder: Path) -> dict[str, NDArray[np.uint8]]:
    """The drawings of each "Alphabet/character01" as uint8 (20, 28, 28, 1), from whichever form is in the folder."""
    sources = _sources(folder)
    arrays = kept_or_read(f"omniglot-{SIDE}", sources, _KEPT, lambda: _read(sources))
    parts = np.split(arrays["images"], np.cumsum(arrays["sizes"])[:-1])
    return dict(zip(map(str, arrays["characters"]), parts, strict=True))


def _sources(folder: Path) -> tuple[Path, ...]:
    """The author's zip files before a prepared copy."""
    for names in (ZIPS, (PREPARED,)):
        if all((folder / name).is_file() for name in names):
            return tuple(folder / name for name in names)
    raise DataError(
        f"Omniglot in {folder}",
        found="neither of its forms",
        allowed=f"{' and '.join(ZIPS)}, or {PREPARED}",
        hint="isorun data get omniglot",
    )


def _read(sources: tuple[Path, ...]) -> dict[str, NDArray[Any]]:
    read = _prepared_drawings if sources[0].name == PREPARED else _zipped_drawings
    groups = [group for path in sources for group in read(path)]
    return {
        "images": np.concatenate([images for _, images in groups]),
        "sizes": np.array([len(images) for _, images in groups]),
        "characters": np.array([name for name, _ in groups]),
    }


def turned_classes(by_character: dict[str, NDArray[np.uint8]], listing: Path) -> ClassImages:
    """The classes of a list with lines like `Angelic/character01/rot090`: a character, turned so many degrees."""
    groups = []
    for line in listing.read_text(encoding="utf-8").split():
        character, _, turn = line.rpartition("/")
        if character not in by_character or turn not in ("rot000", "rot090", "rot180", "rot270"):
            raise DataError(
                f"{listing.name}: class {line!r}",
                found="no such character" if character not in by_character else turn,
                allowed="Alphabet/character/rot000, rot090, rot180 or rot270",
            )
        quarters = int(turn[3:]) // 90
        groups.append((line, np.rot90(by_character[character], quarters, axes=(1, 2))))
    return by_class(groups, f"Omniglot, {listing.stem} classes of the Vinyals split")


def _prepared_drawings(path: Path) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    fields = [(f"bits_{part}", f"alphabet_{part}", f"character_{part}") for part in ("background", "evaluation")]
    arrays = read_npz(path, [name for part in fields for name in part], hint=_AGAIN)
    for part in fields:
        bits, alphabets, characters = (arrays[name] for name in part)
        _ensure_drawings(bits, alphabets, characters, path)
        images = _small_drawings(bits)
        names = np.char.add(np.char.add(alphabets, "/"), characters)
        order = np.argsort(names, kind="stable")
        starts = np.flatnonzero(np.concatenate([[True], names[order][1:] != names[order][:-1]]))
        for members in np.split(order, starts[1:]):
            yield str(names[members[0]]), images[members]


def _ensure_drawings(bits: Any, alphabets: Any, characters: Any, path: Path) -> None:
    packed = -(-ORIGINAL_SIDE * ORIGINAL_SIDE // 8)
    fits = bits.dtype == np.uint8 and bits.ndim == 2 and len(bits) > 0 and bits.shape[1] == packed
    named = all(item.shape == bits.shape[:1] and item.dtype.kind == "U" for item in (alphabets, characters))
    if not (fits and named):
        found = ", ".join(f"{item.dtype} {item.shape}" for item in (bits, alphabets, characters))
        allowed = f"uint8 (n, {packed}), and two names for each of the n drawings"
        raise DataError(f"{path} does not hold Omniglot's drawings", found=found, allowed=allowed, hint=_AGAIN)


def _small_drawings(bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Packed rows of one bit a pixel to (n, 28, 28, 1), unpacked in parts to spare memory."""
    small = np.empty((len(bits), SIDE, SIDE, 1), dtype=np.uint8)
    pixels = ORIGINAL_SIDE * ORIGINAL_SIDE
    for start in range(0, len(bits), IMAGES_AT_ONCE):
        part = np.unpackbits(bits[start : start + IMAGES_AT_ONCE], axis=1)[:, :pixels]
        whole = part.reshape(-1, ORIGINAL_SIDE, ORIGINAL_SIDE, 1) * np.uint8(255)
        small[start : start + IMAGES_AT_ONCE] = resized_squares(whole, SIDE)
    return small


def _zipped_drawings(path: Path) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Members like `images_background/Angelic/character01/0965_01.png`, read in place."""
    try:
        with zipfile.ZipFile(path) as archive:
            members: dict[str, list[str]] = {}
            for member in sorted(name for name in archive.namelist() if name.endswith(".png")):
                members.setdefault("/".join(member.split("/")[-3:-1]), []).append(member)
            for character, names in members.items():
                pictures = np.stack([_ink(archive.read(name), f"{path.name}: {name}") for name in names])
                yield character, resized_squares(pictures, SIDE)
    except DAMAGE as error:
        raise DataError(f"{path} is damaged", found=str(error), allowed="a whole zip file", hint=_AGAIN) from error


def _ink(data: bytes, name: str) -> NDArray[np.uint8]:
    """A drawing of one bit a pixel, as (105, 105, 1) with 255 for ink (ink is black in the files)."""
    try:
        from PIL import Image  # noqa: PLC0415 - only the zip files need it
    except ImportError as error:
        raise MissingExtra("pillow", "zoo", "reading Omniglot's drawings") from error
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            pixels = np.asarray(image.convert("L"))
    except OSError as error:
        raise DataError(name, found=str(error), allowed="a PNG image", hint="isorun data get omniglot") from error
    if pixels.shape != (ORIGINAL_SIDE, ORIGINAL_SIDE):
        raise DataError(name, found=f"{pixels.shape} pixels", allowed=f"{ORIGINAL_SIDE} x {ORIGINAL_SIDE}")
    return np.where(pixels < 128, 255, 0).astype(np.uint8)[:, :, None]
