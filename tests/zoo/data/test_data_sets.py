"""What the catalogue says, where data lies, and in which forms it is found."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from isorun.errors import DataError
from isorun.zoo.data import catalogue, presence
from isorun.zoo.data.catalogue import DATASETS
from isorun.zoo.data.dataset import Dataset
from isorun.zoo.data.presence import at_hand, data_folder, form_of, require
from isorun.zoo.paper import SCALES

EVERY_FILE = [
    pytest.param(entry, file, id=f"{entry.name}:{file.path}") for entry in DATASETS.values() for file in entry.files
]
HEX_DIGITS = {"md5": 32, "sha256": 64, "git": 40}


def test_the_catalogue_has_the_data_of_all_papers():
    assert set(DATASETS) == {
        "mnist",
        "fashion-mnist",
        "digits",
        "cifar10",
        "cifar100",
        "omniglot",
        "omniglot-vinyals",
        "cifar-fs",
        "fc100",
        "miniimagenet",
        "trecqa",
        "wikiqa",
        "glove",
        "dream-search-logs",
    }
    assert {paper for entry in DATASETS.values() for paper in entry.papers} == {"ase20", "tacl18", "fewshot", "dream"}
    assert SCALES


@pytest.mark.parametrize(("entry", "file"), EVERY_FILE)
def test_every_file_has_an_address_and_a_checksum(entry, file):
    assert file.checksum is not None
    assert re.fullmatch(r"[0-9a-f]+", file.checksum.value)
    assert len(file.checksum.value) == HEX_DIGITS[file.checksum.algorithm]
    assert file.checksum.source
    assert all(url.startswith(("https://", "http://")) for url in file.urls)
    assert any(url.startswith("https://") for url in file.urls)
    assert not Path(file.path).is_absolute()
    assert ".." not in Path(file.path).parts


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_the_pickled_version_of_cifar_is_never_downloaded(name):
    assert all("binary" in url for file in DATASETS[name].files for url in file.urls)


def test_files_of_repositories_are_addressed_at_a_fixed_commit():
    urls = [url for entry in DATASETS.values() for file in entry.files for url in file.urls]
    raw = [url for url in urls if "githubusercontent" in url]
    assert len(raw) > 50
    assert all(re.search(r"/[0-9a-f]{40}/", url) for url in raw)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(DataError, match=r"did you mean 'cifar10'"):
        catalogue.dataset("cifr10")


def test_the_folder_is_the_named_one_or_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("ISORUN_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "isorun" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_folder() == tmp_path / "home" / ".cache" / "isorun" / "data"


def test_missing_data_names_the_command_that_gets_it(made_data_folder):
    assert not at_hand("cifar10")
    with pytest.raises(DataError, match="isorun data get cifar10") as caught:
        require("cifar10")
    assert str(made_data_folder / "cifar10") in caught.value.found


def test_an_original_of_another_size_does_not_count(made_data_folder):
    archive = made_data_folder / "cifar10" / "cifar-10-binary.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(b"half a file")
    assert form_of("cifar10") is None


def test_a_prepared_file_counts_and_an_original_goes_before_it(made_data_folder):
    folder = made_data_folder / "cifar10"
    folder.mkdir()
    (folder / "cifar10.npz").write_bytes(b"")
    assert (form_of("cifar10").kind, require("cifar10")) == ("prepared", folder)
    with (folder / "cifar-10-binary.tar.gz").open("wb") as file:
        file.truncate(DATASETS["cifar10"].files[0].size)
    assert form_of("cifar10").kind == "original"


def test_a_data_set_is_only_at_hand_with_what_it_needs(made_data_folder):
    folder = made_data_folder / "fc100"
    folder.mkdir()
    for file in DATASETS["fc100"].files:
        (folder / file.path).write_bytes(bytes(file.size))
    assert form_of("fc100").kind == "original"
    assert not at_hand("fc100")
    with pytest.raises(DataError, match="the data set cifar100 is not at hand"):
        require("fc100")
    (made_data_folder / "cifar100").mkdir()
    (made_data_folder / "cifar100" / "cifar100.npz").write_bytes(b"")
    assert at_hand("fc100")


def test_miniimagenet_is_not_at_hand_without_the_users_images(made_data_folder):
    folder = made_data_folder / "miniimagenet"
    (folder / "images").mkdir(parents=True)
    for name in ("train.csv.gz", "val.csv.gz", "test.csv.gz"):
        (folder / name).write_bytes(b"")
    with pytest.raises(DataError, match="forbid passing the images on"):
        require("miniimagenet")
    (folder / "images" / "n0153282900000005.jpg").write_bytes(b"")
    assert require("miniimagenet") == folder


def test_an_installed_copy_is_found_without_a_download(made_data_folder, tmp_path, monkeypatch):
    system = tmp_path / "usr" / "share" / "datasets" / "fashion-mnist"
    system.mkdir(parents=True)
    entry = DATASETS["fashion-mnist"]
    changed = Dataset(**{**_fields(entry), "system": (str(system),)})
    monkeypatch.setattr(presence, "dataset", lambda _: changed)
    assert form_of("fashion-mnist") is None
    for file in entry.files:
        (system / file.path).write_bytes(b"")
    assert (form_of("fashion-mnist").kind, require("fashion-mnist")) == ("system", system)


def test_digits_come_with_scikit_learn_and_without_it_from_the_folder(made_data_folder, monkeypatch):
    if importlib.util.find_spec("sklearn") is None:
        pytest.skip("scikit-learn is not installed")
    form = form_of("digits")
    assert form.kind == "package"
    monkeypatch.setattr(presence.importlib.util, "find_spec", lambda _: None)
    assert not at_hand("digits")
    (made_data_folder / "digits").mkdir()
    shutil.copy(form.files[0], made_data_folder / "digits")
    assert form_of("digits").kind == "original"


def test_the_shared_folder_has_what_its_readme_says(shared_data_folder):
    kinds = {name: form_of(name).kind for name in DATASETS if at_hand(name)}
    kinds.pop("mnist", None), kinds.pop("fashion-mnist", None), kinds.pop("digits", None)
    assert kinds == {
        "cifar10": "prepared",
        "cifar100": "prepared",
        "omniglot": "prepared",
        "omniglot-vinyals": "original",
        "cifar-fs": "original",
        "fc100": "original",
        "trecqa": "prepared",
        "wikiqa": "prepared",
        "glove": "prepared",
        "dream-search-logs": "prepared",
    }


def _fields(entry):
    return {name: getattr(entry, name) for name in entry.__dataclass_fields__}
