"""Images from every form, against numbers published elsewhere, and against damaged files."""

import gzip
import shutil

import numpy as np
import pytest
from image_files import cifar_members, idx_bytes, tar_of, write_idx, write_npz

from isorun.errors import DataError
from isorun.zoo.data.catalogue import DATASETS
from isorun.zoo.data.images import load_cifar10, load_cifar100, load_images, read_idx
from isorun.zoo.data.made import made_images
from isorun.zoo.data.presence import Form

NAMES = ("mnist", "fashion-mnist", "digits", "cifar10", "cifar100")


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_are_read_zipped_or_not(made_data_folder, name, zipped):
    write_idx(made_data_folder / name, zipped=zipped)
    images = load_images(name)
    assert images.train_images.shape == (60000, 28, 28, 1)
    assert images.test_images.shape == (10000, 28, 28, 1)
    assert images.train_images[1234, 5, 7, 0] == 1234 % 251
    assert (images.train_labels[:12] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]).all()
    assert (images.train_labels.dtype, images.train_images.dtype) == (np.int64, np.uint8)
    assert len(images.classes) == 10
    assert "copy" in images.origin


def test_a_set_of_another_size_is_not_taken_for_mnist(made_data_folder):
    write_idx(made_data_folder / "mnist", images=20, tests=10)
    with pytest.raises(DataError, match="does not hold mnist") as caught:
        load_images("mnist")
    assert (caught.value.found, caught.value.allowed) == ("shape (20, 28, 28)", "shape (60000, 28, 28)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "magic number missing"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x05", "magic number 00000801"),
        (idx_bytes(np.zeros((2, 3, 4), np.uint8), magic=b"\x00\x00\x0d\x03"), "magic number 00000d03"),
        (idx_bytes(np.zeros((2, 3, 4), np.uint8))[:-1], "23 values"),
        (idx_bytes(np.zeros((2, 3, 4), np.uint8)) + b"x", "25 values"),
    ],
)
def test_a_damaged_idx_file_says_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_idx(path, 3)


def test_a_cut_off_gzip_file_is_named(tmp_path):
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx_bytes(np.zeros((2, 3, 4), np.uint8)))[:-12])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte\.gz is damaged"):
        read_idx(path, 3)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 100)])
def test_cifar_is_read_from_its_archive_or_unpacked(made_data_folder, name, classes, packed):
    folder = made_data_folder / name
    folder.mkdir()
    members = cifar_members(name, 10000)
    if packed:
        archive = folder / DATASETS[name].files[0].path
        archive.write_bytes(tar_of(members))
        form = Form("original", folder, (archive,))
        images = {"cifar10": load_cifar10, "cifar100": load_cifar100}[name](form)
    else:
        for path, content in members.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
        images = load_images(name)
    assert images.train_images.shape == (50000, 32, 32, 3)
    assert images.test_images.shape == (10000, 32, 32, 3)
    assert images.train_images[123, 9, 9].tolist() == [123, 124, 125]
    assert images.train_images[123, 0, 1].tolist() == [255, 124, 125]
    assert images.train_labels[123] == 123 % classes
    assert len(images.classes) == classes
    assert images.train_images.flags.writeable
    assert images.train_images.flags.c_contiguous


def test_a_cifar_batch_of_the_wrong_length_is_named(made_data_folder):
    folder = made_data_folder / "cifar10"
    for path, content in cifar_members("cifar10", 10).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    with pytest.raises(DataError, match=r"data_batch_1\.bin is damaged") as caught:
        load_images("cifar10")
    assert caught.value.found == "30,730 bytes"
    assert caught.value.allowed == "30,730,000 bytes (10,000 records of 3,073)"


@pytest.mark.parametrize("harm", ["cut", "noise", "member"])
def test_a_damaged_archive_is_named(tmp_path, harm):
    members = cifar_members("cifar10", 10)
    if harm == "member":
        members.pop("cifar-10-batches-bin/test_batch.bin")
    content = tar_of(members)
    content = {"cut": content[: len(content) // 2], "noise": b"no archive at all", "member": content}[harm]
    archive = tmp_path / "cifar-10-binary.tar.gz"
    archive.write_bytes(content)
    with pytest.raises(DataError, match=r"cifar-10-binary\.tar\.gz is damaged"):
        load_cifar10(Form("original", tmp_path, (archive,)))


def test_a_stand_in_says_that_it_is_one(made_data_folder):
    write_npz(made_data_folder / "cifar10" / "cifar10.npz")
    images = load_images("cifar10")
    assert images.classes == ("ape", "bee", "cow")
    assert images.origin.startswith("stand-in cifar10.npz, 30 + 6 images, sha256 ")
    assert images.shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_test": None}, "lacks y_test"),
        ({"y_train": np.arange(29)}, "training labels do not fit"),
        ({"y_train": np.full(30, 3)}, "names no class"),
        ({"y_train": np.full(30, -1)}, "names no class"),
        ({"y_train": np.zeros(30)}, "training labels do not fit"),
        ({"x_train": np.zeros((30, 32, 32, 3))}, "training images cannot be used"),
        ({"x_train": np.zeros((30, 3072), np.uint8)}, "training images cannot be used"),
        ({"x_test": np.zeros((0, 32, 32, 3), np.uint8), "y_test": np.arange(0)}, "test images cannot be used"),
        ({"x_test": np.zeros((6, 28, 28, 1), np.uint8)}, "differ in size"),
        ({"classes": np.array(["ape", object()], dtype=object)}, "damaged"),
    ],
)
def test_a_stand_in_that_cannot_be_used_says_why(made_data_folder, changes, message):
    write_npz(made_data_folder / "cifar10" / "cifar10.npz", **changes)
    with pytest.raises(DataError, match=message):
        load_images("cifar10")


def test_a_file_that_is_no_npz_is_named(made_data_folder):
    (made_data_folder / "cifar10").mkdir()
    (made_data_folder / "cifar10" / "cifar10.npz").write_bytes(b"not a zip file")
    with pytest.raises(DataError, match=r"cifar10\.npz is damaged"):
        load_images("cifar10")


def test_digits_are_those_of_scikit_learn(made_data_folder):
    known = pytest.importorskip("sklearn.datasets").load_digits()
    images = load_images("digits")
    together = np.zeros((1797, 8, 8), np.uint8)
    labels = np.zeros(1797, np.int64)
    for_test = np.arange(1797) % 5 == 4
    together[for_test], together[~for_test] = images.test_images[..., 0], images.train_images[..., 0]
    labels[for_test], labels[~for_test] = images.test_labels, images.train_labels
    assert (len(images.train_images), len(images.test_images)) == (1438, 359)
    assert (labels == known.target).all()
    assert (together == np.floor(known.images * 255 / 16 + 0.5)).all()


@pytest.mark.parametrize("content", [b"junk", gzip.compress(b"1,2,3\n", mtime=0), gzip.compress(b"a,b\n", mtime=0)])
def test_a_damaged_file_of_digits_is_named(made_data_folder, content, monkeypatch):
    monkeypatch.setattr("isorun.zoo.data.presence.importlib.util.find_spec", lambda *_: None)
    path = made_data_folder / "digits" / "digits.csv.gz"
    path.parent.mkdir()
    path.write_bytes(content.ljust(57523, b"\0") if content == b"junk" else content)
    monkeypatch.setattr("isorun.zoo.data.presence._is_whole", lambda path, _: path.is_file())
    with pytest.raises(DataError, match="digits"):
        load_images("digits")


def test_text_is_no_set_of_images(made_data_folder):
    with pytest.raises(DataError, match="no set of labelled images"):
        load_images("trecqa")


def test_missing_images_name_the_command(made_data_folder):
    with pytest.raises(DataError, match="isorun data get cifar100"):
        load_images("cifar100")


@pytest.mark.parametrize("name", NAMES)
def test_made_images_have_the_shape_of_the_real_ones_and_say_what_they_are(name):
    shapes = {"digits": (8, 8, 1), "cifar10": (32, 32, 3), "cifar100": (32, 32, 3)}
    images = made_images(name, train=200, test=100, seed=3)
    assert images.shape == shapes.get(name, (28, 28, 1))
    assert len(images.classes) == (100 if name == "cifar100" else 10)
    assert set(images.train_labels) == set(range(len(images.classes)))
    assert "made on the spot" in images.origin


def test_made_images_depend_on_the_seed_and_on_nothing_else():
    first, again, other = (made_images("mnist", seed=seed) for seed in (1, 1, 2))
    assert (first.train_images == again.train_images).all()
    assert (first.test_labels == again.test_labels).all()
    assert (first.train_images != other.train_images).any()


@pytest.mark.parametrize("name", NAMES)
def test_made_images_can_be_learned(name):
    images = made_images(name, train=400, test=100)
    means = np.stack(
        [images.train_images[images.train_labels == place].mean(axis=0) for place in range(len(images.classes))]
    )
    distances = ((images.test_images[:, None].astype(float) - means[None]) ** 2).sum(axis=(2, 3, 4))
    assert (distances.argmin(axis=1) == images.test_labels).mean() > 0.95


@pytest.mark.parametrize("arguments", [{"name": "trecqa"}, {"name": "mnist", "train": 0}])
def test_images_that_cannot_be_made_are_refused(arguments):
    with pytest.raises(DataError):
        made_images(**arguments)


def test_the_stand_ins_have_the_published_colours(shared_data_folder):
    # Means of the whole training sets (README of the data); a stratified subset comes within two hundredths.
    for name, means in (("cifar10", (0.4914, 0.48216, 0.44653)), ("cifar100", (0.50708, 0.48655, 0.44092))):
        images = load_images(name)
        measured = images.train_images.mean(axis=(0, 1, 2)) / 255
        assert np.abs(measured - means).max() < 0.02
        counts = np.bincount(images.train_labels)
        assert counts.min() == counts.max()
    assert load_images("cifar10").origin.endswith("138d08427ecebcf42bc1b9d72936a807748c01c2215eb8cc943b57c2d18b05ec")
    assert load_images("cifar100").classes[:3] == ("apple", "aquarium_fish", "baby")


@pytest.mark.parametrize(("name", "mean", "sd"), [("mnist", 0.1307, 0.3081), ("fashion-mnist", 0.2860, 0.3530)])
def test_whole_sets_have_the_published_mean_and_deviation(name, mean, sd):
    from isorun.zoo.data.presence import at_hand

    if not at_hand(name):
        pytest.skip(f"{name} is not at hand")
    images = load_images(name)
    assert round(images.train_images.mean() / 255, 4) == mean
    assert round(images.train_images.std() / 255, 4) == sd
    assert np.bincount(images.test_labels).sum() == 10000


def test_loading_leaves_the_folder_as_it_was(made_data_folder):
    write_npz(made_data_folder / "cifar10" / "cifar10.npz")
    before = sorted(path.name for path in made_data_folder.rglob("*"))
    load_images("cifar10")
    assert sorted(path.name for path in made_data_folder.rglob("*")) == before
    shutil.rmtree(made_data_folder)
