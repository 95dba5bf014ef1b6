"""isorun pack, verify and keys as people type them; and packages where a study may stand."""

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "share"))

from recorded_study import recorded_study


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A package, and nothing else of its study."""
    from isorun.share.packing import pack

    folder = tmp_path_factory.mktemp("packed")
    pack(recorded_study(folder), folder / "digits.isorun")
    return folder / "digits.isorun"


@pytest.fixture
def fresh(shell, packed):
    """A folder with the package alone."""
    shutil.copy(packed, shell.folder)
    return shell


@pytest.fixture
def config(shell):
    return {"XDG_CONFIG_HOME": str(shell.folder / "config"), "ISORUN_KEY": ""}


def test_pack_and_verify_tell_what_is_in_a_package(shell, config):
    recorded_study(shell.folder)
    done = shell("pack", "study.toml", "-o", "digits.isorun", env=config)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("digits.isorun: 16 runs of digits (16 finished), ")
    assert "next: isorun verify digits.isorun" in done.stdout
    address = done.stdout.partition("sha256:")[2][:64]
    done = shell("verify", "digits.isorun", env=config)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("digits.isorun is whole")
    assert address in done.stdout
    assert "none: whoever gave you this file may have made it" in done.stdout
    told = json.loads(shell("verify", "digits.isorun", "--json", env=config).stdout)
    assert (told["whole"], told["runs"], told["signature"]) == (True, 16, "unsigned")
    assert shell("verify", "digits.isorun", "--address", "sha256:" + "0" * 64, env=config).returncode == 3


def test_verify_names_metrics_that_were_read_and_not_declared(shell, config):
    shell.write("train.py", "for n in range(3): print(f'epoch {n} loss {1 / (n + 1)} accuracy {n / 3}')\n")
    assert shell("run", "-n", "1", "--", "python", "train.py").returncode == 0
    assert shell("pack", "-o", "one.isorun", "--no-sign", env=config).returncode == 0
    lines = shell("verify", "one.isorun", env=config).stdout.splitlines()
    assert "  metrics      accuracy, loss" in lines
    assert lines[1].endswith(": 1 run (1 finished) in 1 group")
    assert "  data         no digest of a file" in lines


def test_a_dry_run_lists_members_and_writes_nothing(shell, config):
    recorded_study(shell.folder)
    done = shell("pack", "study.toml", "--dry-run", env=config)
    assert "a package, which was not written: 16 runs" in done.stdout
    assert "runs/00000.numbers" in done.stdout
    assert "train.py" in done.stdout
    assert [path.name for path in shell.folder.glob("*.isorun")] == [".isorun"]


def test_a_damaged_package_is_not_whole_and_the_exit_code_says_so(fresh, config):
    path = fresh.folder / "digits.isorun"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    done = fresh("verify", "digits.isorun", env=config)
    assert done.returncode == 3
    assert done.stdout.startswith("digits.isorun is not whole: ")
    assert json.loads(fresh("verify", "digits.isorun", "--json", env=config).stdout)["whole"] is False
    done = fresh("report", "digits.isorun")
    assert done.returncode == 1
    assert "not what the manifest says" in done.stderr
    assert "Traceback" not in done.stderr
    assert fresh("verify", "none.isorun", env=config).returncode == 1


def test_who_has_a_package_alone_can_ask_all_of_it(fresh):
    for words, expected in (
        (["report", "digits.isorun"], "accuracy: spread between runs"),
        (["summarize", "digits.isorun", "--by", "approach"], "16 runs in 2 groups"),
        (["compare", "digits.isorun", "--by", "approach", "--where", "level=default"], "Evidence"),
        (["status", "digits.isorun"], "16"),
        (["store", "copy", "digits.isorun", "mine"], "16 records and 1 document were copied"),
        (["report", "digits", "--store", "digits.isorun"], "accuracy: spread between runs"),
    ):
        done = fresh(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert expected in done.stdout, (words, done.stdout)
    assert sorted(path.name for path in fresh.folder.iterdir()) == ["digits.isorun", "mine"]


def test_a_package_is_a_baseline(shell, packed):
    recorded_study(shell.folder, started_at="2026-04-01T12:00:00+00:00")
    (shell.folder / "main.isorun").write_bytes(packed.read_bytes())
    done = shell("check", "study.toml", "--baseline", "main.isorun", "--margin", "5", "--no-run", "--json")
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout)["baseline"] == "main.isorun"


def test_plain_tables_and_back(fresh):
    assert fresh("pack", "digits.isorun", "--plain", "plain").returncode == 0
    assert (fresh.folder / "plain" / "runs.csv").read_text().count("\n") == 17
    done = fresh("pack", "--from-plain", "plain", "-o", "back.isorun")
    assert done.returncode == 0, done.stderr
    assert fresh("verify", "back.isorun").returncode == 0


def test_signing_and_trusting(shell, config):
    pytest.importorskip("cryptography")
    recorded_study(shell.folder)
    made = shell("keys", "new", env=config)
    line = next(text.strip() for text in made.stdout.splitlines() if text.strip().startswith("ed25519 "))
    assert "signed     by SHA256:" in shell("pack", "study.toml", "-o", "a.isorun", env=config).stdout
    assert shell("pack", "a.isorun", "--plain", "plain", env=config).returncode == 0
    tables = ("pack", "--from-plain", "plain", "-o", "b.isorun")
    assert "signed     by SHA256:" in shell(*tables, env=config).stdout
    assert "signed     no" in shell(*tables, "--no-sign", env=config).stdout
    assert "SPDX" in shell(*tables, "--license", "my own", env=config).stderr
    assert "which was not written" in shell(*tables[:-1], "c.isorun", "--dry-run", env=config).stdout
    assert not (shell.folder / "c.isorun").exists()
    done = shell("verify", "a.isorun", env=config)
    assert done.returncode == 0
    assert "by a key that you do not know" in done.stdout
    assert shell("keys", "trust", "lab", line, env=config).returncode == 0
    assert "valid, by lab" in shell("verify", "a.isorun", env=config).stdout
    assert "1 key is trusted" in shell("keys", env=config).stdout
    other = shell("keys", "new", "--output", "other.key", env=config)
    assert other.returncode == 0
    assert shell("verify", "a.isorun", "--key", "other.key", env=config).returncode == 3
    assert shell("pack", "study.toml", "-o", "b.isorun", "--no-sign", env=config).returncode == 0
    done = shell("verify", "b.isorun", "--key", line, env=config)
    assert done.returncode == 3
    assert "it is not signed" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["pack"], 2),
        (["pack", "study.toml", "--parquet"], 2),
        (["pack", "study.toml", "--key", "none.key"], 1),
        (["pack", "x", "--plain", "a", "--from-plain", "b"], 2),
        (["pack", "--from-plain", "nowhere"], 1),
        (["verify"], 2),
        (["keys", "trust", "lab"], 2),
        (["keys", "show"], 1),
        (["report", "none.isorun"], 1),
    ],
)
def test_mistakes_are_told_without_a_traceback(shell, config, words, code):
    done = shell(*words, env=config)
    assert done.returncode == code, done.stderr
    assert "next:" in done.stderr or "allowed:" in done.stderr
    assert "Traceback" not in done.stderr


ESCAPES = "\x1b]0;evil\x07\x1b[2J\x9b31m\u202e"


def written_by_an_enemy(path, name="evil", **fields):
    """A package whose study is called by this name, and whose records say these things."""
    from isorun.packages.writing import PackageWriter, written_whole
    from isorun.testing.made_records import make_cell, make_record

    with written_whole(path) as file:
        writer = PackageWriter(file)
        writer.add_study({"name": name, "approaches": {"lenet": {"command": ["true"]}}})
        writer.add_records([make_record(make_cell(1), **fields)])
        writer.finish(name)


def test_copying_a_package_says_its_name_without_what_would_write_on_a_terminal_or_elsewhere(shell):
    for number, name in enumerate((ESCAPES, "../../evil", str(shell.folder / "evil"))):
        written_by_an_enemy(shell.folder / f"{number}.isorun", name)
        done = shell("store", "copy", f"{number}.isorun", f"store-{number}")
        assert done.returncode == 3
        assert "no document can be kept under this name" in done.stdout
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(done.stdout + done.stderr)
    assert not [path for path in shell.folder.rglob("*") if path.name.startswith("evil")]


def test_packing_says_which_machines_without_what_would_write_on_a_terminal(shell, config):
    recorded_study(shell.folder, where={"host": ESCAPES})
    done = shell("pack", "study.toml", "--dry-run", env=config)
    assert done.returncode == 0
    assert "machines   �]0;evil" in done.stdout
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(done.stdout)
