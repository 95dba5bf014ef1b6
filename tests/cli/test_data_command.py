"""`isorun data` as people type it."""

import hashlib
import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from isorun.cli import main
from isorun.cli.data import TransferProgress, bytes_in_words
from isorun.zoo.data import catalogue, dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "data"


@pytest.fixture
def tiny(monkeypatch):
    """A catalogue with one small file, to be brought in a folder."""
    check = dataset.Checksum("sha256", hashlib.sha256(b"hello").hexdigest(), "the test")
    file = dataset.RemoteFile("hello.txt", ("https://no-such-host.invalid/hello.txt",), 5, check)
    entry = dataset.Dataset("tiny", "a greeting", "CC0", "nobody", ("ase20",), (file,))
    monkeypatch.setattr(catalogue, "DATASETS", {"tiny": entry})
    return entry


def isorun(capsys, *words):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "160")  # the folders of tests have long names
        code = main.main(["data", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_list_says_first_how_many_are_at_hand(folder, capsys):
    code, out, _ = isorun(capsys, "list", "cifar10", "mnist")
    assert code == 0
    assert out.splitlines()[0] == f"0 of 2 data sets are at hand in {folder}"
    assert "170 MB" in out
    assert "CC BY-SA 3.0" in out
    (folder / "cifar10").mkdir(parents=True)
    (folder / "cifar10" / "cifar10.npz").write_bytes(b"")
    _, out, _ = isorun(capsys, "list", "cifar10", "mnist")
    assert out.splitlines()[0] == f"1 of 2 data sets is at hand in {folder}"
    assert "prepared" in out


def test_one_data_set_is_counted_in_the_singular(folder, capsys):
    _, out, _ = isorun(capsys, "list", "mnist")
    assert out.splitlines()[0] == f"0 of 1 data set is at hand in {folder}"


@pytest.mark.parametrize("action", ["list", "path", "get"])
def test_a_data_folder_that_is_a_file_is_named(tmp_path, monkeypatch, capsys, action):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "file"))
    code, out, err = isorun(capsys, action, "mnist")
    assert (code, out) == (1, "")
    assert "ISORUN_DATA names no folder" in err
    assert str(tmp_path / "file") in err


def test_a_data_folder_that_may_not_be_read_is_named(tmp_path, monkeypatch, capsys):
    closed = tmp_path / "closed"
    refused = PermissionError(13, "Permission denied", str(closed / "data"))
    monkeypatch.setenv("ISORUN_DATA", str(closed / "data"))
    monkeypatch.setattr(Path, "exists", Mock(side_effect=refused))  # root may enter any folder
    code, out, err = isorun(capsys, "path")
    assert (code, out) == (1, "")
    assert "the folder that ISORUN_DATA names may not be read" in err
    assert str(closed / "data") in err


def test_a_home_that_nobody_has_is_named(monkeypatch, capsys):
    monkeypatch.setenv("ISORUN_DATA", "~nobody-of-this-name/data")
    code, _, err = isorun(capsys, "path")
    assert code == 1
    assert "~nobody-of-this-name/data" in err


def test_the_list_as_json_has_addresses_and_checksums(folder, capsys):
    code, out, _ = isorun(capsys, "--json")
    listed = {entry["name"]: entry for entry in json.loads(out)["data_sets"]}
    assert code == 0
    assert listed["cifar10"]["files"][0]["urls"] == ["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"]
    assert listed["cifar10"]["files"][0]["checksum"].startswith("sha256 c4a38c50")
    assert listed["miniimagenet"]["at_hand"] is False


def test_the_path_is_printed_alone_so_that_scripts_can_use_it(folder, capsys):
    assert isorun(capsys, "path") == (0, f"{folder}\n", "")
    code, out, err = isorun(capsys, "path", "cifar10")
    assert (code, out) == (0, f"{folder / 'cifar10'}\n")
    assert "isorun data get cifar10" in err


def test_an_unknown_name_lists_the_known_ones(folder, capsys):
    code, out, err = isorun(capsys, "get", "cifr10")
    assert (code, out) == (1, "")
    assert "did you mean 'cifar10'" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("get",), "get needs the name"),
        (("list", "--from", "x"), "--from belongs to get"),
        (("get", "tiny", "--timeout", "0"), "--timeout needs a positive number"),
        (("get", "tiny", "--timeout", "nan"), "--timeout needs a positive number"),
    ],
)
def test_words_that_do_not_fit_together_are_refused(folder, capsys, words, message):
    code, _, err = isorun(capsys, *words)
    assert code == 2
    assert message in err


def test_an_offline_machine_gets_a_message_and_no_traceback(folder, tiny, capsys):
    code, out, err = isorun(capsys, "get", "tiny")
    assert (code, out) == (1, "")
    assert "is this machine offline" in err
    assert "Traceback" not in err
    assert not (folder / "tiny").exists()


def test_files_from_a_stick_are_checked_and_then_at_hand(folder, tiny, capsys, tmp_path):
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / "hello.txt").write_bytes(b"HELLO")
    code, _, err = isorun(capsys, "get", "tiny", "--from", str(stick))
    assert code == 1
    assert hashlib.sha256(b"HELLO").hexdigest() in err
    assert not list(folder.rglob("hello*"))
    (stick / "hello.txt").write_bytes(b"hello")
    code, out, _ = isorun(capsys, "get", "tiny", "--from", str(stick))
    assert (code, out.splitlines()[0]) == (0, f"tiny is in {folder / 'tiny'}: 1 copied")
    code, out, _ = isorun(capsys, "get", "tiny", "--json")
    assert json.loads(out)["data_sets"][0]["files"][0]["status"] == "already there"
    code, out, _ = isorun(capsys, "list", "tiny")
    assert out.splitlines()[0] == f"1 of 1 data set is at hand in {folder}"


def test_ctrl_c_says_that_the_same_command_goes_on(folder, tiny, capsys, monkeypatch):
    def interrupted(*words, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("isorun.zoo.data.acquisition.download", interrupted)
    code, _, err = isorun(capsys, "get", "tiny")
    assert code == 130
    assert "the same command goes on from there" in err


def test_listing_does_not_import_arrays(shell):
    program = "import sys; from isorun.cli.main import main; main(['data', 'list']); print('torch' in sys.modules)"
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


class Terminal:
    def __init__(self, live):
        self.live = live
        self.text = ""

    def isatty(self):
        return self.live

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_progress_on_a_terminal_has_share_speed_and_time_left(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("isorun.cli.progress.time.monotonic", lambda: now[0])
    terminal = Terminal(live=True)
    progress = TransferProgress(terminal)
    progress.begins(tmp_path / "big.bin", 0, 10_000_000)
    now[0] += 2.0
    progress.moved(4_000_000)
    assert "big.bin: 40 % of 10 MB, 2 MB/s, 3 s left" in terminal.text


def test_progress_in_a_log_is_one_line_a_file(tmp_path):
    log = Terminal(live=False)
    progress = TransferProgress(log)
    progress.begins(tmp_path / "big.bin", 4_000_000, 10_000_000)
    progress.moved(5_000_000)
    progress.ends()
    assert log.text == "big.bin: 10 MB, going on at 4 MB\n"


@pytest.mark.parametrize(
    ("size", "words"), [(None, "size not known"), (5, "5 bytes"), (1880, "1.88 kB"), (862_182_613, "862 MB")]
)
def test_sizes_are_said_as_people_say_them(size, words):
    assert bytes_in_words(size) == words
