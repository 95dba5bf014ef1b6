"""Files that a training writes and reads back, as its own process sees them."""

import os
import time
import types
from pathlib import Path

import pytest

from isorun.worker import frameworks
from isorun.worker import touched as touched_files
from isorun.worker.touched import TouchedFiles


@pytest.fixture
def touched(tmp_path):
    (tmp_path / "run").mkdir()
    return TouchedFiles(str(tmp_path / "run"), str(tmp_path), "")


def opens(touched, path, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
    touched.hear("open", (str(path), None, flags))


def test_a_file_that_only_this_run_makes_is_not_told(touched, tmp_path):
    opens(touched, tmp_path / "new.pt")
    assert touched.told() == {}


def test_a_file_that_was_there_is_told_with_its_time(touched, tmp_path):
    file = tmp_path / "ckpt.pt"
    file.touch()
    os.utime(file, (1000, 1000))
    opens(touched, file)
    os.utime(file, (2000, 2000))
    opens(touched, file)
    (told,) = touched.told().values()
    assert told["found"] == 1000
    assert len(told["wrote"]) == 2
    assert told["wrote"][0] == pytest.approx(time.time(), abs=60)


def test_after_the_trainings_end_nothing_is_its_own(touched, tmp_path):
    (tmp_path / "kept.json").touch()
    touched.end()
    opens(touched, tmp_path / "kept.json")
    assert touched.told() == {}


def test_renaming_over_a_file_writes_it(touched, tmp_path):
    (tmp_path / "ckpt.pt").touch()
    touched.hear("os.rename", (str(tmp_path / "half"), str(tmp_path / "ckpt.pt"), -1, -1))
    assert list(touched.told()) == [str(tmp_path / "ckpt.pt")]


def test_a_file_without_a_name_is_not_the_folder_that_it_is_in(touched, tmp_path):
    opens(touched, tmp_path, os.O_RDWR | os.O_CREAT)  # what Python tells of tempfile.TemporaryFile
    assert touched.told() == {}


def test_a_database_is_written_to_where_its_time_says_so(touched, tmp_path):
    for name in ("read.db", "written.db", ".hidden.db"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000, 1000))
    for name in ("read.db", "written.db", ".hidden.db", "new.db"):
        touched.hear("sqlite3.connect", (str(tmp_path / name),))
    for name in ("written.db", ".hidden.db", "new.db"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (2000, 2000))
    touched.hear("sqlite3.connect", (":memory:",))
    assert touched.told() == {str(tmp_path / "written.db"): {"found": 1000.0, "wrote": [2000.0], "read": []}}


def test_reading_is_told_of_what_is_written_too_once_for_each_writing(touched, tmp_path):
    file = tmp_path / "state.json"
    file.touch()
    for _ in range(3):
        opens(touched, file, os.O_RDONLY)
    assert touched.told() == {}
    opens(touched, file)
    for _ in range(3):
        opens(touched, file, os.O_RDONLY)
    (told,) = touched.told().values()
    assert [own for _, _, own in told["read"]] == [None, told["wrote"][0]]


@pytest.mark.parametrize(
    ("path", "flags"),
    [
        ("log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        ("run/own.txt", os.O_WRONLY),
        (".cache/x.bin", os.O_WRONLY),
        ("mlruns/0/meta.yaml", os.O_WRONLY),
        ("lib/site-packages/x.bin", os.O_WRONLY),
        (".jupyter/migrated", os.O_WRONLY),
    ],
)
def test_logs_caches_and_the_runs_own_folder_are_left_alone(touched, tmp_path, path, flags):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    if "site-packages" in path:
        touched = TouchedFiles(str(tmp_path / "run"), str(tmp_path / "elsewhere"), "")
    opens(touched, tmp_path / path, flags)
    assert touched.told() == {}


@pytest.mark.parametrize(
    "arguments", [(3, None, 1), (None, None, 1), ("a\0b", None, 1), ((), None, None), (b"\xff", "w", 577)]
)
def test_whatever_is_opened_the_training_goes_on(touched, arguments):
    touched.hear("open", arguments)
    touched.hear("os.rename", arguments)


def test_very_many_files_are_not_all_remembered(touched, tmp_path):
    for number in range(2500):
        opens(touched, tmp_path / f"{number}.bin")
    assert len(touched._files) == 2000


def test_reading_a_data_set_leaves_room_for_what_is_written(touched, tmp_path):
    for number in range(2100):
        (tmp_path / f"{number}.png").touch()
        opens(touched, tmp_path / f"{number}.png", os.O_RDONLY)
    (tmp_path / "ckpt.pt").touch()
    opens(touched, tmp_path / "ckpt.pt")
    assert list(touched.told()) == [str(tmp_path / "ckpt.pt")]


def test_what_is_only_read_is_told_as_data_those_near_the_top_first(touched, tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("deep/a.csv", "z.csv", "model.toml", "ckpt.pt", "t.py", ".env", "pyproject.toml"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000, 1000))
        opens(touched, tmp_path / name, os.O_RDONLY)
    opens(touched, tmp_path / "ckpt.pt")
    opens(touched, "/etc/hostname", os.O_RDONLY)
    expected = [str(tmp_path / name) for name in ("model.toml", "z.csv", "deep/a.csv")]
    assert list(touched.inputs().items()) == [(name, 1000.0) for name in expected]


def test_a_model_that_is_only_read_is_told_after_what_was_written(touched, tmp_path):
    for name in ("a.csv", "net.pt", "z.txt"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000, 1000))
    for name in ("a.csv", "net.pt"):
        opens(touched, tmp_path / name, os.O_RDONLY)
    opens(touched, tmp_path / "z.txt")
    told = touched.told()
    assert [os.path.relpath(name, tmp_path) for name in told] == ["z.txt", "net.pt"]
    ((_, of, own),) = told[str(tmp_path / "net.pt")]["read"]
    assert (of, own, told[str(tmp_path / "net.pt")]["wrote"]) == (1000, None, [])


def test_what_is_appended_to_is_told_where_it_is_read_too(touched, tmp_path):
    for name in ("log.txt", "results.csv"):
        (tmp_path / name).touch()
        opens(touched, tmp_path / name, os.O_WRONLY | os.O_APPEND)
    opens(touched, tmp_path / "results.csv", os.O_RDONLY)
    assert list(touched.told()) == [str(tmp_path / "results.csv")]


def test_a_real_training_is_seen_in_all_its_ways_of_writing(train, tmp_path):
    for name in ("a.pt", "b.txt", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "t.py").write_text(
        "import os, pathlib, tempfile\n"
        "tempfile.TemporaryFile(dir='.').close()\n"
        "open('a.pt', 'wb').close()\n"
        "pathlib.Path('b.txt').write_text('x')\n"
        "os.close(os.open('d.txt', os.O_WRONLY | os.O_CREAT)); os.replace('d.txt', 'c.txt')\n"
        "open('new.txt', 'w').close()\n"
    )
    effective = train("t.py").of_kind("environment")[0]["effective"]
    assert [os.path.relpath(name, tmp_path) for name in effective["files"]] == ["a.pt", "b.txt", "c.txt"]


@pytest.mark.long
def test_what_torch_saves_is_seen_though_it_is_opened_in_its_own_code(train, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "t.py").write_text(
        "import torch\nfor _ in range(2): torch.save({'w': torch.zeros(2)}, 'ckpt.pt')\ntorch.load('ckpt.pt')\n"
    )
    effective = train("t.py").of_kind("environment")[0]["effective"]
    (told,) = effective["files"].values()
    assert (told["found"], len(told["wrote"]), len(told["read"])) == (None, 2, 1)


def test_files_that_libraries_open_in_code_of_their_own_are_told_by_their_path(tmp_path, monkeypatch):
    module = types.ModuleType("h5py._hl.files")

    class File:
        def __init__(self, name, mode="r", **options):
            Path(name).touch()

    module.File = File
    found = TouchedFiles(str(tmp_path / "run"), str(tmp_path), "")
    monkeypatch.setattr(touched_files, "_touched", found)
    touched_files.follow(module)
    (tmp_path / "weights.any").touch()
    module.File(tmp_path / "weights.any")
    assert found.told() == {}
    module.File(tmp_path / "weights.any", "w")
    module.File(str(tmp_path / "weights.any"), mode="r")
    module.File(tmp_path / "new.any", "w")
    (told,) = found.told().items()
    assert told[0] == str(tmp_path / "weights.any")
    assert len(told[1]["wrote"]) == 1
    assert len(told[1]["read"]) == 2


@pytest.mark.parametrize("name", [name for name in frameworks.FILES_OPENED if name.startswith("h5py")])
def test_the_real_library_is_reached(train, tmp_path, name):
    pytest.importorskip(name.partition(".")[0])
    code = "import h5py\nfor mode in 'wr':\n    h5py.File('kept.any', mode).close()"
    (told,) = [event["effective"]["files"] for event in train("-c", code).of_kind("environment")]
    assert list(told) == [str(tmp_path / "kept.any")]
