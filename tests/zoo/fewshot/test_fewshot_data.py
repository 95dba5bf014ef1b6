import gzip
import json
import os
import sys
import zipfile

import numpy as np
import pytest
from few_shot_folders import (
    link_real_data,
    made_drawings,
    png_of,
    shared_data,
    write_cifar100,
    write_miniimagenet,
    write_omniglot_npz,
    write_omniglot_zips,
    write_split_lists,
)

from isorun.errors import DataError, InputError, MissingExtra
from isorun.zoo.data import few_shot_sets, files, omniglot
from isorun.zoo.data.class_images import ClassImages, ClassSplits, by_class, resized_squares
from isorun.zoo.data.few_shot_sets import SUPERCLASSES, load_cifar_few_shot, split_classes
from isorun.zoo.data.made import made_class_splits, made_classes
from isorun.zoo.studies.fewshot.training.images import EpisodeShape, draw_episodes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    return tmp_path


def grey(*values, side=4):
    return np.stack([np.full((side, side, 1), value, dtype=np.uint8) for value in values])


def nearest_mean_accuracy(source, episodes, shots):
    features = source.images.reshape(len(source.images), -1).astype(np.float32)[episodes]
    means = features[:, :, :shots].mean(2)
    queries = features[:, :, shots:].reshape(len(episodes), -1, features.shape[3])
    squares = -2 * queries @ means.transpose(0, 2, 1) + np.square(means).sum(2)[:, None]
    right = squares.argmin(2) == np.repeat(np.arange(means.shape[1]), features.shape[2] - shots)
    return right.mean()


def test_smaller_images_are_means_of_areas():
    image = np.arange(16, dtype=np.uint8).reshape(1, 4, 4, 1) * 4
    assert resized_squares(image, 2)[0, :, :, 0].tolist() == [[10, 18], [42, 50]]
    assert resized_squares(grey(77, side=105), 28).tolist() == grey(77, side=28).tolist()


def test_a_pixel_between_two_new_ones_is_shared():
    image = np.array([0, 90, 0], dtype=np.uint8)[None, None, :, None].repeat(3, axis=1)
    assert resized_squares(image, 2)[0, 0, :, 0].tolist() == [30, 30]


def test_classes_have_sizes_and_starts():
    source = by_class([("a", grey(1, 2, 3)), ("b", grey(4)), ("c", grey(5, 6))], "test")
    assert source.sizes.tolist() == [3, 1, 2]
    assert source.starts.tolist() == [0, 3, 4]
    assert source.first(2).classes == ("a", "b")
    assert source.first(2).images[:, 0, 0, 0].tolist() == [1, 2, 3, 4]
    assert source.first(0) is source


@pytest.mark.parametrize("labels", [[1, 0], [0, 0], [0, 2]])
def test_labels_in_disorder_are_refused(labels):
    with pytest.raises(InputError, match="disorder"):
        ClassImages(grey(1, 2), np.array(labels), ("a", "b"), "test")


def test_a_class_in_two_splits_is_refused():
    one, two = by_class([("a", grey(1))], "x"), by_class([("b", grey(1))], "x")
    with pytest.raises(InputError, match="a twice"):
        ClassSplits(one, two, one)


def test_both_forms_of_omniglot_give_the_same_drawings(folder):
    made = made_drawings()
    write_omniglot_zips(folder / "zips", made)
    write_omniglot_npz(folder / "npz", made)
    zipped, prepared = omniglot.drawings(folder / "zips"), omniglot.drawings(folder / "npz")
    assert sorted(zipped) == sorted(prepared) == sorted(made)
    for name, inks in made.items():
        assert np.array_equal(zipped[name], prepared[name])
        assert zipped[name].shape == (3, 28, 28, 1)
        assert zipped[name].mean() == pytest.approx(255 * inks.mean(), rel=0.02)


def test_turned_drawings_are_classes_of_their_own(folder):
    made = made_drawings()
    write_omniglot_npz(folder / "omniglot", made)
    (folder / "list.txt").write_text("Greek/character02/rot000\nGreek/character02/rot090\nAngelic/character01/rot270\n")
    plain = omniglot.drawings(folder / "omniglot")
    source = omniglot.turned_classes(plain, folder / "list.txt")
    assert source.classes[1] == "Greek/character02/rot090"
    assert source.sizes.tolist() == [3, 3, 3]
    assert np.array_equal(source.images[3], np.rot90(plain["Greek/character02"][0]))
    assert np.array_equal(source.images[8], np.rot90(plain["Angelic/character01"][2], -1))


@pytest.mark.parametrize("line", ["Klingon/character01/rot000", "Greek/character01/rot045", "Greek"])
def test_a_list_with_an_unknown_class_names_the_class(folder, line):
    write_omniglot_npz(folder / "omniglot", made_drawings())
    (folder / "list.txt").write_text(line)
    with pytest.raises(DataError, match=line):
        omniglot.turned_classes(omniglot.drawings(folder / "omniglot"), folder / "list.txt")


def test_omniglot_in_no_form_says_what_may_be_there(folder):
    with pytest.raises(DataError, match=r"images_background\.zip and images_evaluation\.zip, or omniglot\.npz"):
        omniglot.drawings(folder)


def test_a_changed_byte_in_a_compressed_omniglot_is_told_with_the_file(folder):
    write_omniglot_npz(folder, made_drawings())
    path = folder / "omniglot.npz"
    with np.load(path) as plain:
        np.savez_compressed(path, **dict(plain))
    whole = path.read_bytes()
    told = []
    for place in range(40, len(whole), max(1, len(whole) // 97)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            omniglot.drawings(folder)
        except DataError as error:
            told.append(error)
    assert len(told) > 50
    assert all(str(path) in error.what and "isorun data get omniglot" in error.hint for error in told)


def test_an_omniglot_of_other_shapes_is_refused(folder):
    names = {
        f"{field}_{part}": np.array(["A"])
        for field in ("alphabet", "character")
        for part in ("background", "evaluation")
    }
    np.savez(folder / "omniglot.npz", bits_background=np.zeros((1, 7), np.uint8), bits_evaluation=np.zeros(3), **names)
    with pytest.raises(DataError, match=r"omniglot\.npz does not hold Omniglot's drawings"):
        omniglot.drawings(folder)


@pytest.mark.parametrize("damage", [b"", b"no gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff"])
def test_a_damaged_list_of_miniimagenet_names_the_file(folder, damage):
    (folder / "train.csv.gz").write_bytes(damage)
    with pytest.raises(DataError, match=r"train\.csv\.gz"):
        few_shot_sets.ravi_split(folder, "train")


def test_a_line_of_miniimagenets_list_without_a_label_is_named(folder):
    (folder / "train.csv").write_text("filename,label\na.jpg,n1\nb.jpg\n")
    with pytest.raises(DataError, match=r"train\.csv, line 3"):
        few_shot_sets.ravi_split(folder, "train")


def test_a_damaged_omniglot_names_the_file(folder):
    write_omniglot_zips(folder, made_drawings())
    (folder / "images_evaluation.zip").write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"images_evaluation\.zip"):
        omniglot.drawings(folder)
    (folder / "images_evaluation.zip").unlink()
    np.savez(folder / "omniglot.npz", other=np.zeros(3))
    with pytest.raises(DataError, match=r"omniglot\.npz"):
        omniglot.drawings(folder)


@pytest.mark.parametrize("data", [b"no picture", png_of(np.zeros((104, 105), dtype=bool))])
def test_a_drawing_that_is_none_is_named(folder, data):
    write_omniglot_zips(folder, made_drawings())
    with zipfile.ZipFile(folder / "images_evaluation.zip", "a") as archive:
        archive.writestr("images_evaluation/Tengwar/character09/01.png", data)
    with pytest.raises(DataError, match=r"character09/01\.png"):
        omniglot.drawings(folder)


def test_missing_pillow_names_the_extra(folder, monkeypatch):
    write_omniglot_zips(folder, made_drawings())
    write_miniimagenet(folder)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"isorun\[zoo\]"):
        omniglot.drawings(folder)
    with pytest.raises(MissingExtra, match=r"isorun\[zoo\]"):
        few_shot_sets.ravi_split(folder, "train")


def test_arrays_are_read_once_until_a_source_changes(folder):
    source = folder / "source"
    source.write_text("one")
    reads = []

    def read():
        reads.append(1)
        return {"values": np.arange(len(reads))}

    for _ in range(2):
        assert files.kept_or_read("test", [source], ["values"], read)["values"].tolist() == [0]
    source.write_text("another")
    assert files.kept_or_read("test", [source], ["values"], read)["values"].tolist() == [0, 1]
    assert len(reads) == 2


def test_a_damaged_kept_file_is_read_anew(folder):
    (folder / "source").write_text("one")
    files.kept_or_read("test", [folder / "source"], ["values"], lambda: {"values": np.ones(2)})
    (kept,) = (folder / files.FOLDER).iterdir()
    kept.write_bytes(kept.read_bytes()[:50])
    again = files.kept_or_read("test", [folder / "source"], ["values"], lambda: {"values": np.zeros(2)})
    assert again["values"].tolist() == [0, 0]


@pytest.mark.parametrize("damage", [b"", b"no zip", b"PK\x03\x04"])
def test_a_kept_file_that_is_something_else_is_read_anew(folder, damage):
    (folder / "source").write_text("one")
    files.kept_or_read("test", [folder / "source"], ["values"], lambda: {"values": np.ones(2)})
    (kept,) = (folder / files.FOLDER).iterdir()
    kept.write_bytes(damage)
    again = files.kept_or_read("test", [folder / "source"], ["values"], lambda: {"values": np.zeros(2)})
    assert again["values"].tolist() == [0, 0]


def test_every_changed_byte_of_a_kept_file_leaves_the_right_values(folder):
    source = folder / "source"
    source.write_text("one")

    def read():
        return {"values": np.arange(3, dtype=np.uint8)}

    files.kept_or_read("test", [source], ["values"], read)
    (kept,) = (folder / files.FOLDER).iterdir()
    whole = kept.read_bytes()
    for place in range(len(whole)):
        kept.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        assert files.kept_or_read("test", [source], ["values"], read)["values"].tolist() == [0, 1, 2]


def test_a_kept_file_with_other_arrays_is_not_used(folder):
    (folder / "source").write_text("one")
    files.kept_or_read("test", [folder / "source"], ["values"], lambda: {"values": np.ones(2)})
    (kept,) = (folder / files.FOLDER).iterdir()
    np.savez(kept, others=np.ones(2))
    again = files.kept_or_read("test", [folder / "source"], ["values"], lambda: {"values": np.zeros(2)})
    assert again["values"].tolist() == [0, 0]


def test_a_source_replaced_by_one_of_equal_size_and_date_is_read_anew(folder):
    source = folder / "source"
    source.write_text("one")
    date = source.stat()
    files.kept_or_read("test", [source], ["values"], lambda: {"values": np.ones(2)})
    (folder / "new").write_text("two")
    (folder / "new").replace(source)
    os.utime(source, ns=(date.st_atime_ns, date.st_mtime_ns))
    again = files.kept_or_read("test", [source], ["values"], lambda: {"values": np.zeros(2)})
    assert again["values"].tolist() == [0, 0]


def test_an_interrupted_keeping_leaves_nothing_and_old_leftovers_go(folder, monkeypatch):
    source = folder / "source"
    source.write_text("one")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", interrupted)
        with pytest.raises(KeyboardInterrupt):
            files.kept_or_read("test", [source], ["values"], lambda: {"values": np.ones(2)})
    kept = folder / files.FOLDER
    assert not list(kept.iterdir())
    old, fresh, foreign = (kept / f"{name}.npz.0.part" for name in ("test-" + "0" * 16, "test-" + "1" * 16, "test"))
    for path in (old, fresh, foreign):
        path.write_text("left by a killed process")
    os.utime(old, (0, 0))
    os.utime(foreign, (0, 0))
    files.kept_or_read("test", [source], ["values"], lambda: {"values": np.ones(2)})
    assert not old.exists()
    assert fresh.exists()
    assert foreign.exists()


def test_nothing_is_kept_in_a_folder_that_is_not_to_be_written_to(folder):
    (folder / "source").write_text("one")
    folder.chmod(0o555)
    try:
        assert (
            files.kept_or_read("test", [folder / "source"], ["values"], lambda: {"values": np.ones(2)})["values"].sum()
            == 2
        )
        assert not (folder / files.FOLDER).exists()
    finally:
        folder.chmod(0o755)


def test_the_superclasses_hold_each_of_the_hundred_classes_once():
    names = [name for members in SUPERCLASSES.values() for name in members]
    assert len(SUPERCLASSES) == 20
    assert len(names) == len(set(names)) == 100


def test_cifar_classes_go_where_the_lists_say(folder):
    write_cifar100(folder / "cifar100", SUPERCLASSES)
    lists = ([["fish", "ray"], ["people", "man"]], [["fish", "trout"]], [["trees", "oak_tree"]])
    write_split_lists(folder / "cifar-fs", lists)
    splits = load_cifar_few_shot_without_sizes("cifar-fs", folder)
    order = sorted(name for members in SUPERCLASSES.values() for name in members)
    assert splits.train.classes == ("ray", "man")
    assert splits.train.images[:, 0, 0, 0].tolist() == [order.index("ray")] * 4 + [order.index("man")] * 4
    assert splits.test.classes == ("oak_tree",)


def load_cifar_few_shot_without_sizes(name, folder):
    """The lists of this test are shorter than the real ones, whose sizes the catalogue knows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isorun.zoo.data.few_shot_sets.require", lambda wanted: folder / wanted)
        return load_cifar_few_shot(name)


def test_a_superclass_stands_for_its_five_classes(folder):
    write_cifar100(folder / "cifar100", SUPERCLASSES)
    write_split_lists(folder / "fc100", (["fish"], ["people"], ["trees", "insects"]))
    splits = load_cifar_few_shot_without_sizes("fc100", folder)
    assert splits.train.classes == SUPERCLASSES["fish"]
    assert len(splits.test.classes) == 10


@pytest.mark.parametrize("entries", [["fishes"], [["fish", "oak_tree"]], [["fish"]], {"a": 1}, [3]])
def test_a_split_with_an_unknown_class_is_refused(tmp_path, entries):
    (tmp_path / "train.json").write_text(json.dumps(entries))
    with pytest.raises(DataError, match=r"train\.json"):
        split_classes(tmp_path / "train.json")


@pytest.mark.parametrize("compressed", [False, True])
def test_miniimagenet_is_read_in_84_pixels(folder, compressed):
    write_miniimagenet(folder)
    if compressed:
        (folder / "val.csv.gz").write_bytes(gzip.compress((folder / "val.csv").read_bytes()))
        (folder / "val.csv").unlink()
    source = few_shot_sets.ravi_split(folder, "val")
    assert source.images.shape == (4, 84, 84, 3)
    assert source.classes == ("val-n01", "val-n02")
    assert source.labels.tolist() == [0, 0, 1, 1]
    assert source.images[:, 40, 40].astype(int) == pytest.approx(
        np.array([[80, 0, 30]] * 2 + [[80, 200, 30]] * 2), abs=4
    )


def test_a_missing_photograph_is_named(folder):
    write_miniimagenet(folder)
    (folder / "images" / "test-n02-1.jpg").unlink()
    with pytest.raises(DataError, match=r"test-n02-1\.jpg"):
        few_shot_sets.ravi_split(folder, "test")


def test_a_damaged_photograph_is_named(folder):
    write_miniimagenet(folder)
    (folder / "images" / "test-n02-1.jpg").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"test-n02-1\.jpg"):
        few_shot_sets.ravi_split(folder, "test")


@pytest.mark.parametrize("text", ["filename,label\n../../etc/passwd,n01\n", "name,class\na.jpg,n01\n", ""])
def test_a_list_of_photographs_that_cannot_be_used_is_refused(folder, text):
    write_miniimagenet(folder)
    (folder / "train.csv").write_text(text)
    with pytest.raises(DataError, match=r"train\.csv"):
        few_shot_sets.ravi_split(folder, "train")


def test_made_classes_are_the_same_for_the_same_seed():
    first, again = made_class_splits(3), made_class_splits(3)
    assert np.array_equal(first.test.images, again.test.images)
    assert not np.array_equal(first.test.images, made_class_splits(4).test.images)
    assert [len(part.classes) for part in (first.train, first.val, first.test)] == [40, 12, 12]


def test_made_classes_can_be_told_apart_but_not_without_effort():
    source = made_classes(1, names=tuple("abcdefghijkl"), side=16, channels=3)
    episodes = draw_episodes(np.random.default_rng(1), source, EpisodeShape(5, 1, 10), 200)
    assert 0.4 < nearest_mean_accuracy(source, episodes, 1) < 0.95


@pytest.mark.long
def test_the_real_omniglot_has_the_classes_of_the_vinyals_split(folder):
    link_real_data(folder)
    splits = omniglot.load_omniglot()
    assert [len(part.classes) for part in (splits.train, splits.val, splits.test)] == [4112, 688, 1692]
    assert {int(size) for part in (splits.train, splits.val, splits.test) for size in part.sizes} == {20}


@pytest.mark.long
def test_nearest_class_means_of_raw_omniglot_pixels_reach_the_known_accuracy():
    groups = []
    with np.load(shared_data() / "omniglot" / "omniglot.npz", allow_pickle=False) as kept:
        for part in ("background", "evaluation"):
            whole = np.unpackbits(kept[f"bits_{part}"], axis=1)[:, :11025].reshape(-1, 105, 105, 1)
            names = np.char.add(kept[f"alphabet_{part}"], kept[f"character_{part}"])
            groups += [(str(name), whole[names == name][:, ::4, ::4]) for name in np.unique(names)]
    source = by_class(groups, "Omniglot, every fourth pixel")
    episodes = draw_episodes(np.random.default_rng(1), source, EpisodeShape(5, 5, 15), 1000)
    assert nearest_mean_accuracy(source, episodes, 5) == pytest.approx(0.653, abs=0.02)


@pytest.mark.parametrize(("name", "counts"), [("cifar-fs", [64, 16, 20]), ("fc100", [60, 20, 20])])
def test_the_real_cifar_splits_have_their_classes(folder, name, counts):
    link_real_data(folder)
    splits = load_cifar_few_shot(name)
    assert [len(part.classes) for part in (splits.train, splits.val, splits.test)] == counts
    assert int(splits.train.sizes.min()) == 50


def test_the_superclasses_are_those_of_the_real_cifar100():
    coarse = json.loads((shared_data() / "cifar100" / "coarse.json").read_text())
    members = {name: [] for name in coarse["coarse_names"]}
    for fine, number in zip(coarse["fine_names"], coarse["coarse_of_fine"], strict=True):
        members[coarse["coarse_names"][number]].append(fine)
    assert {name: tuple(sorted(fine)) for name, fine in members.items()} == SUPERCLASSES
