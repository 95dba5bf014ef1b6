"""Packages that were made to do harm are refused: all of them, soon, in little memory, by the reader's own error."""

import bz2
import json
import subprocess
import sys
from pathlib import Path

import pytest
from forged import honest, sealed
from hostile import hostile

from isorun.errors import InputError, PackageError
from isorun.packages.canonical import jcs
from isorun.packages.reading import DOCUMENTS, open_package
from isorun.share.looking import verify


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of each package, all of them looked at by one process."""
    folder = tmp_path_factory.mktemp("hostile")
    names, paths = [], []
    for number, (name, content) in enumerate([("whole", sealed(honest()[0])), *hostile()]):
        names.append(name)
        paths.append(folder / f"{number}.isorun")
        paths[-1].write_bytes(content)
    child = Path(__file__).with_name("refuse_hostile.py")
    asked = "".join(f"{path}\n" for path in paths)
    done = subprocess.run([sys.executable, child], input=asked, capture_output=True, text=True, timeout=300, check=True)
    for path in paths:
        path.unlink()
    return dict(zip(names, map(json.loads, done.stdout.splitlines()), strict=False))


def test_there_are_many_and_a_whole_one_is_taken(outcomes):
    assert len(outcomes) > 470
    assert outcomes.pop("whole")[2] == "taken"


def test_each_is_refused(outcomes):
    others = {name: said for name, (_, _, said) in outcomes.items() if name != "whole"}
    assert {name: said for name, said in others.items() if not said.startswith("refused: ")} == {}


def test_each_within_two_seconds_and_all_within_100_megabytes(outcomes):
    assert {name: seconds for name, (seconds, _, _) in outcomes.items() if seconds > 2.0} == {}
    assert max(memory for _, memory, _ in outcomes.values()) < 100


def test_what_is_no_file_is_refused(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.isorun")
    (tmp_path / "folder.isorun").mkdir()
    (tmp_path / "zero.isorun").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "zero"):
        with pytest.raises((PackageError, InputError)):
            open_package(tmp_path / f"{name}.isorun")
    with pytest.raises(InputError, match="cannot be read"):
        verify(tmp_path / "none.isorun")


def test_what_comes_out_of_a_package_is_bounded_by_its_size(tmp_path, monkeypatch):
    from isorun import packages

    path = tmp_path / "p.isorun"
    path.write_bytes(sealed(honest()[0]))
    monkeypatch.setattr(packages, "_FREE", 100)
    for ratio in ("_NUMBERS", "_TOLD"):
        monkeypatch.setattr(packages, ratio, 0)
    with pytest.raises(PackageError, match="far more comes out"):
        verify(path, keys=())


def test_what_no_reader_would_take_is_told_to_whoever_packs_it(monkeypatch):
    from isorun import packages

    monkeypatch.setattr(packages, "_FREE", 100)
    for ratio in ("_NUMBERS", "_TOLD"):
        with monkeypatch.context() as less:
            less.setattr(packages, ratio, 0)
            with pytest.raises(PackageError, match="runs of the study: far more comes out"):
                honest()


def test_a_package_can_be_read_any_number_of_times(tmp_path, monkeypatch):
    from isorun import packages

    path = tmp_path / "p.isorun"
    path.write_bytes(sealed(honest()[0]))
    monkeypatch.setattr(packages, "_FREE", 30_000)
    monkeypatch.setattr(packages, "_NUMBERS", 0)
    monkeypatch.setattr(packages, "_TOLD", 0)
    with open_package(path) as package:
        assert [len(list(package.records())) for _ in range(50)] == [3] * 50


PLAN = {"document": {"rule": 1}, "kind": "plans", "name": "toy"}


@pytest.mark.parametrize(
    "lines",
    [
        [PLAN, PLAN],
        [PLAN | {"name": 5}],
        [PLAN | {"document": []}],
        [{"kind": "plans", "name": "toy"}],
        [[PLAN]],
        ["x"],
    ],
    ids=["twice", "a number for a name", "no mapping", "no document", "a list", "a text"],
)
def test_what_is_no_document_or_the_second_of_its_name_is_refused(tmp_path, lines):
    text = b"".join(jcs(line) + b"\n" for line in lines)
    path = tmp_path / "p.isorun"
    path.write_bytes(sealed(honest()[0] | {DOCUMENTS: bz2.compress(text)}))
    with open_package(path) as package, pytest.raises(PackageError, match="no plan and no search, or the second"):
        package.documents()


def test_documents_are_read_as_they_were_written(tmp_path):
    text = b"".join(jcs(line) + b"\n" for line in (PLAN, PLAN | {"name": "other"}))
    path = tmp_path / "p.isorun"
    path.write_bytes(sealed(honest()[0] | {DOCUMENTS: bz2.compress(text)}))
    with open_package(path) as package:
        assert package.documents() == {("plans", "toy"): {"rule": 1}, ("plans", "other"): {"rule": 1}}
    path.write_bytes(sealed(honest()[0] | {DOCUMENTS: bz2.compress(text[:-1])}))
    with open_package(path) as package, pytest.raises(PackageError, match="its last line has no end"):
        package.documents()
