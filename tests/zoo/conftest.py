"""Data folders for the tests of the papers' workloads.

shared_data_folder: $ISORUN_DATA with the real data sets that are at hand beside this repository; the test is skipped
where there are none. made_data_folder: an empty $ISORUN_DATA, in which a test puts what it needs.
"""

import os
import sys
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[3] / "shared" / "data"
LINKS = {
    "cifar10/cifar10.npz": "cifar10/cifar10-small.npz",
    "cifar100/cifar100.npz": "cifar100/cifar100-small.npz",
    "cifar100/coarse.json": "cifar100/coarse.json",
    "omniglot": "omniglot",
    "omniglot-vinyals": "fewshot-splits/omniglot-vinyals",
    "cifar-fs": "fewshot-splits/cifar-fs",
    "fc100": "fewshot-splits/fc100",
    "miniimagenet": "fewshot-splits/miniimagenet-ravi",
    "trecqa": "trecqa",
    "wikiqa": "wikiqa",
    "glove": "embeddings",
    "dream-search-logs": "dream-search-logs",
}


def real_data() -> Path | None:
    """The folder with real data sets: $ISORUN_SHARED_DATA, or shared/data beside the repository."""
    named = os.environ.get("ISORUN_SHARED_DATA")
    folder = Path(named) if named else BESIDE
    return folder if folder.is_dir() else None


@pytest.fixture
def made_data_folder(tmp_path, monkeypatch):
    folder = tmp_path / "isorun-data"
    folder.mkdir()
    monkeypatch.setenv("ISORUN_DATA", str(folder))
    return folder


@pytest.fixture
def shared_data_folder(made_data_folder):
    source = real_data()
    if source is None:
        pytest.skip("no real data beside this repository (ISORUN_SHARED_DATA)")
    for link, target in LINKS.items():
        if (source / target).exists():
            (made_data_folder / link).parent.mkdir(parents=True, exist_ok=True)
            (made_data_folder / link).symlink_to(source / target)
    return made_data_folder


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small wait for threads longer than they compute, most of all where tests run side by side."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
