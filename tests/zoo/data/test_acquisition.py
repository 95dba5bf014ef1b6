"""Getting whole data sets: downloaded, brought on a stick, already there, or damaged."""

import hashlib
import importlib.util
from pathlib import Path

import pytest

from isorun.errors import DataError
from isorun.zoo.data import acquisition, presence
from isorun.zoo.data.acquisition import acquire, with_needs
from isorun.zoo.data.catalogue import DATASETS
from isorun.zoo.data.dataset import Checksum, Dataset, RemoteFile
from isorun.zoo.data.download import DownloadWatcher, Patience

HASTY = Patience(timeout=2.0, pauses=())
PARTS = {"one/a.txt": b"first", "two/a.txt": b"second", "b.txt": b"third"}


class Notes(DownloadWatcher):
    def __init__(self):
        self.lines = []

    def says(self, text):
        self.lines.append(text)


@pytest.fixture
def small(server, made_data_folder, monkeypatch):
    """A data set of three small files, two of which have the same name."""
    for path, content in PARTS.items():
        server.serve(f"/{path}", content)
    files = tuple(
        RemoteFile(path, (server.url(f"/{path}"),), len(content), Checksum("sha256", _sha256(content), "the test"))
        for path, content in PARTS.items()
    )
    entry = Dataset("small", "three files", "none", "nobody", ("ase20",), files)
    for module in (acquisition, presence):
        monkeypatch.setattr(module, "dataset", lambda _: entry)
    return made_data_folder / "small"


def _sha256(content):
    return hashlib.sha256(content).hexdigest()


def states(got):
    return [file.status for file in got.files]


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_is_missing_is_downloaded_and_what_is_there_is_checked(small):
    assert states(acquire("small", patience=HASTY)) == ["downloaded"] * 3
    assert contents(small) == dict(sorted(PARTS.items()))
    assert states(acquire("small", patience=HASTY)) == ["already there"] * 3
    (small / "b.txt").unlink()
    assert states(acquire("small", patience=HASTY)) == ["already there", "already there", "downloaded"]


def test_a_damaged_file_is_named_and_replaced_by_a_right_one(small):
    acquire("small", patience=HASTY)
    (small / "b.txt").write_bytes(b"THIRD")
    notes = Notes()
    assert states(acquire("small", watcher=notes, patience=HASTY))[2] == "downloaded"
    assert (small / "b.txt").read_bytes() == b"third"
    assert len(notes.lines) == 1
    assert _sha256(b"THIRD") in notes.lines[0]
    assert _sha256(b"third") in notes.lines[0]


def test_a_damaged_file_stays_when_no_right_one_can_be_had(small, server):
    acquire("small", patience=HASTY)
    (small / "b.txt").write_bytes(b"THIRD")
    del server.web.pages["/b.txt"]
    with pytest.raises(DataError, match="HTTP 404"):
        acquire("small", patience=HASTY)
    assert (small / "b.txt").read_bytes() == b"THIRD"


@pytest.mark.parametrize("below", ["", "small"])
def test_files_brought_in_a_folder_are_copied_and_checked(small, tmp_path, below, server):
    server.web.pages.clear()
    stick = tmp_path / "stick"
    for path, content in PARTS.items():
        (stick / below / path).parent.mkdir(parents=True, exist_ok=True)
        (stick / below / path).write_bytes(content)
    assert states(acquire("small", source=stick)) == ["copied"] * 3
    assert contents(small) == dict(sorted(PARTS.items()))


def test_a_bare_name_is_enough_only_where_it_is_the_only_one(small, tmp_path):
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / "a.txt").write_bytes(b"first")
    (stick / "b.txt").write_bytes(b"third")
    with pytest.raises(DataError, match="lacks 2 of 3 files") as caught:
        acquire("small", source=stick)
    assert caught.value.allowed == "one/a.txt, two/a.txt"
    assert not small.exists()


def test_a_wrong_file_on_a_stick_is_named_and_not_kept(small, tmp_path):
    stick = tmp_path / "stick"
    for path, content in PARTS.items():
        (stick / path).parent.mkdir(parents=True, exist_ok=True)
        (stick / path).write_bytes(content[::-1])
    with pytest.raises(DataError, match=r"stick/one/a\.txt is not the published file"):
        acquire("small", source=stick)
    assert not small.exists(), "no empty folders either"


def test_a_file_on_a_stick_that_cannot_be_read_is_named(small, tmp_path, monkeypatch):
    stick = tmp_path / "stick"
    for path, content in PARTS.items():
        (stick / path).parent.mkdir(parents=True, exist_ok=True)
        (stick / path).write_bytes(content)
    opened = Path.open

    def refusing(path, *words, **named):
        if path == stick / "two/a.txt":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *words, **named)

    monkeypatch.setattr(Path, "open", refusing)
    with pytest.raises(DataError, match=r"stick/two/a\.txt cannot be read") as caught:
        acquire("small", source=stick)
    assert caught.value.found == "Permission denied"
    assert contents(small) == {"one/a.txt": PARTS["one/a.txt"]}


def test_a_folder_that_is_none_is_named(small, tmp_path):
    with pytest.raises(DataError, match="is no folder"):
        acquire("small", source=tmp_path / "nowhere")


def test_needs_are_fetched_too_unless_they_are_at_hand(made_data_folder):
    assert with_needs(["cifar-fs", "fc100"]) == ["cifar-fs", "cifar100", "fc100"]
    (made_data_folder / "cifar100").mkdir()
    (made_data_folder / "cifar100" / "cifar100.npz").write_bytes(b"")
    assert with_needs(["cifar-fs", "cifar-fs"]) == ["cifar-fs"]
    assert with_needs(["cifar-fs", "cifar100"]) == ["cifar-fs", "cifar100"]


def test_omniglot_is_at_hand_only_with_the_lists_its_loader_reads(made_data_folder):
    assert with_needs(["omniglot"]) == ["omniglot", "omniglot-vinyals"]
    (made_data_folder / "omniglot").mkdir()
    (made_data_folder / "omniglot" / "omniglot.npz").write_bytes(b"")
    assert not presence.at_hand("omniglot")
    with pytest.raises(DataError, match="the data set omniglot-vinyals is not at hand"):
        presence.require("omniglot")


def test_an_installed_copy_needs_no_download(made_data_folder):
    if importlib.util.find_spec("sklearn") is None:
        pytest.skip("scikit-learn is not installed")
    got = acquire("digits", patience=HASTY)
    assert (got.installed.kind, got.files) == ("package", ())
    assert not (made_data_folder / "digits").exists()


@pytest.mark.parametrize("name", ["cifar-fs", "fc100", "omniglot-vinyals"])
def test_the_lists_at_hand_are_byte_for_byte_the_published_ones(shared_data_folder, name):
    got = acquire(name, patience=HASTY)
    assert states(got) == ["already there"] * len(DATASETS[name].files)
