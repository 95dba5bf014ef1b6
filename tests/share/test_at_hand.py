"""What of a run is at hand here: which Python takes the place of one that a record names, how many CPUs, which data."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from isorun.share import at_hand
from isorun.share.at_hand import DATA, PACKAGES, Lack, bring_data, cpus_of, with_python_here
from record_builder import make_cell, make_record


def cell(program, **content):
    return replace(make_cell(), command=(program, "train.py"), environment_content=content)


@pytest.fixture
def here(tmp_path):
    program = tmp_path / "env" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    return program


def test_an_interpreter_that_is_here_is_the_one_that_runs(here, tmp_path):
    for named in (cell(str(here)), cell("python", python=str(here)), cell("python"), cell("bash")):
        assert with_python_here(named, None) is named
    assert with_python_here(cell("env/bin/python3"), None, tmp_path).command[0] == "env/bin/python3"


@pytest.mark.parametrize("program", ["/gone/bin/python3.11", "gone/bin/python", "~gone/python"])
def test_one_that_is_not_here_gives_its_place_to_any_python(program):
    assert with_python_here(cell(program), None).command == ("python", "train.py")
    assert with_python_here(cell("python", python=program, threads=2), None).environment_content == {
        "python": "",
        "threads": 2,
    }


def test_the_one_that_is_asked_for_takes_the_place_of_one_that_is_here(here):
    assert with_python_here(cell(str(here)), "other").command == ("python", "train.py")
    assert with_python_here(cell("python", python=str(here)), "other").environment_content == {"python": ""}
    assert with_python_here(cell("./run.sh"), "other").command[0] == "./run.sh"


def test_an_environment_that_is_made_keeps_its_python():
    made = cell("python", kind="packages", python="3.12")
    assert with_python_here(made, "other") is made


def test_a_path_in_a_package_is_never_looked_for_where_one_stands(here, monkeypatch):
    monkeypatch.chdir(here.parent)
    assert with_python_here(cell("./python3"), None).command[0] == "python"
    assert Path("python3").is_file()


def test_a_lack_says_what_was_and_what_is():
    assert Lack(PACKAGES, "torch", "2.1", "2.2").words == "torch: 2.1 then, 2.2 now"
    assert Lack(DATA, "x.gz", None, None).words == "x.gz: not recorded then, not here"


def run_with(cpus):
    return make_record(make_cell(), environment={"requested": {"cpus": cpus}})


def test_runs_had_as_many_cpus_as_most_of_them():
    assert cpus_of([run_with(cpus) for cpus in (2, 8, 2, 4)]) == 2
    assert cpus_of([run_with(cpus) for cpus in (None, "8", True, 0)]) is None
    assert cpus_of([run_with(8), run_with(None), run_with(None)]) == 8


def digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def folders(tmp_path):
    """A study's folder, and two others that data may lie in."""
    found = [tmp_path / name for name in ("working", "first", "second")]
    for folder in found:
        folder.mkdir()
    return found


def brought(folders):
    working, *places = folders
    return list(bring_data({"data/x.bin": digest(b"recorded")}, working, places))


def test_of_several_files_of_one_name_the_one_with_the_recorded_digest_is_brought(folders):
    (folders[1] / "x.bin").write_bytes(b"other")
    (folders[2] / "x.bin").write_bytes(b"recorded")
    assert brought(folders) == []
    assert (folders[0] / "data" / "x.bin").read_bytes() == b"recorded"


def test_where_none_has_it_the_first_is_brought_and_the_lack_is_told(folders):
    (folders[1] / "x.bin").write_bytes(b"other")
    [lack] = brought(folders)
    assert (lack.recorded, lack.found) == (f"sha256 {digest(b'recorded')[:12]}", f"sha256 {digest(b'other')[:12]}")


def test_what_is_too_large_to_copy_is_linked(folders, monkeypatch):
    monkeypatch.setattr(at_hand, "_MOST_COPIED", 3)
    (folders[1] / "x.bin").write_bytes(b"recorded")
    assert brought(folders) == []
    assert (folders[0] / "data" / "x.bin").is_symlink()
