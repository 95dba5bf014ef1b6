"""Data folders for the few-shot tests: small ones written here, and the real ones where they are at hand."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

ALPHABETS = {"images_background": ("Angelic", "Greek"), "images_evaluation": ("Tengwar",)}
CHARACTERS = ("character01", "character02")


def shared_data():
    """The folder with the real data; skips the test where there is none."""
    folder = Path(os.environ.get("ISORUN_SHARED_DATA") or Path(__file__).parents[4] / "shared" / "data")
    if not (folder / "omniglot" / "omniglot.npz").is_file():
        pytest.skip("the real data is not at hand")
    return folder


def link_real_data(folder):
    """A data folder with the real Omniglot, CIFAR-100 stand-in and splits."""
    shared = shared_data()
    places = {
        "omniglot": "omniglot",
        "omniglot-vinyals": "fewshot-splits/omniglot-vinyals",
        "cifar-fs": "fewshot-splits/cifar-fs",
        "fc100": "fewshot-splits/fc100",
    }
    for name, place in places.items():
        (folder / name).symlink_to(shared / place)
    (folder / "cifar100").mkdir()
    (folder / "cifar100" / "cifar100.npz").symlink_to(shared / "cifar100" / "cifar100-small.npz")


def made_drawings(each=3):
    """name -> bool (each, 105, 105): ink in a place of its own for every character."""
    generator = np.random.default_rng(5)
    names = [f"{alphabet}/{c}" for part in ALPHABETS.values() for alphabet in part for c in CHARACTERS]
    return {name: generator.random((each, 105, 105)) < 0.1 for name in names}


def write_omniglot_zips(folder, drawings):
    folder.mkdir(parents=True, exist_ok=True)
    for part, alphabets in ALPHABETS.items():
        with zipfile.ZipFile(folder / f"{part}.zip", "w") as archive:
            for name, pictures in drawings.items():
                for k, ink in enumerate(pictures):
                    if name.split("/")[0] in alphabets:
                        archive.writestr(f"{part}/{name}/{k:02}.png", png_of(ink))


def png_of(ink):
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(~ink).convert("1").save(data, "PNG")
    return data.getvalue()


def write_omniglot_npz(folder, drawings):
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for part, alphabets in ALPHABETS.items():
        own = [(name, ink) for name, inks in drawings.items() if name.split("/")[0] in alphabets for ink in inks]
        arrays |= {
            f"bits_{part.partition('_')[2]}": np.packbits([ink.ravel() for _, ink in own], axis=1),
            f"alphabet_{part.partition('_')[2]}": np.array([name.split("/")[0] for name, _ in own]),
            f"character_{part.partition('_')[2]}": np.array([name.split("/")[1] for name, _ in own]),
        }
    np.savez(folder / "omniglot.npz", **arrays)


def write_cifar100(folder, superclasses, each=4):
    """A CIFAR-100 of `each` images a class, half of them in the test part, each of its label's grey."""
    folder.mkdir(parents=True)
    names = sorted(name for members in superclasses.values() for name in members)
    labels = np.repeat(np.arange(100), each // 2)
    images = np.broadcast_to(labels[:, None, None, None], (len(labels), 32, 32, 3)).astype(np.uint8)
    np.savez(
        folder / "cifar100.npz", x_train=images, y_train=labels, x_test=images, y_test=labels, classes=np.array(names)
    )


def write_split_lists(folder, lists):
    folder.mkdir(parents=True)
    for part, entries in zip(("train", "val", "test"), lists, strict=True):
        (folder / f"{part}.json").write_text(json.dumps(entries))


def write_miniimagenet(folder, classes=("n01", "n02"), each=2, side=50):
    """Two classes a split; the pictures of a class have a colour of their own."""
    from PIL import Image

    (folder / "images").mkdir(parents=True)
    for place, part in enumerate(("train", "val", "test")):
        rows = ["filename,label"]
        for k in range(each):
            for number, name in enumerate(classes):
                file = f"{part}-{name}-{k}.jpg"
                colour = (80 * place, 200 * number, 30)
                Image.new("RGB", (side, side + 20), colour).save(folder / "images" / file, quality=95)
                rows.append(f"{file},{part}-{name}")
        (folder / f"{part}.csv").write_text("\n".join(rows) + "\n")
