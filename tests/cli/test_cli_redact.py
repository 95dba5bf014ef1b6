"""`isorun store redact` as people type it: real runs before it, the same report after it."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isorun.cli.main import main
from isorun.store.folder import FolderStore
from isorun.study import recordable
from isorun.testing.made_records import make_cell, make_record

SECRET = "hunter2-Xq93kd"
TRAINING = """
import os, sys
print("looking up", *sys.argv[1:])
print("val_acc: 0." + str(len(sys.argv)) + os.environ.get("MY_SETTING", "0"))
"""


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch):
    """What is typed on standard input."""

    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def run(*words: str) -> int:
    return main(["run", "--launch", "fresh", *words])


def held_in(folder: Path, value: str) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and value.encode() in path.read_bytes()]


def test_a_value_on_a_command_line(here: Path, capsys: pytest.CaptureFixture[str], typed):
    command = ["-n", "2", "--", "python", "t.py", "--lookup", SECRET]
    assert run(*command) == 0
    capsys.readouterr()
    assert main(["report", "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    assert held_in(here / ".isorun", SECRET)
    typed(f"{SECRET}\n")
    assert main(["store", "redact", "--value", "-", "--dry-run"]) == 3
    shown = capsys.readouterr().out
    assert shown.startswith(f"{here / '.isorun'}: 2 records and 9 files would be changed")
    typed(f"{SECRET}\n")
    assert main(["store", "redact", "--value", "-"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{here / '.isorun'}: 2 records and 9 files were changed")
    assert "backups" in told
    assert SECRET not in shown + told
    assert held_in(here / ".isorun", SECRET) == []
    assert main(["store", "verify"]) == 0
    capsys.readouterr()
    assert main(["report", "--json"]) == 0
    after = json.loads(capsys.readouterr().out)
    # What the runs come from has the command as it is kept now; all else is as it was.
    assert SECRET in str(before.pop("provenance"))
    assert SECRET not in str(after.pop("provenance"))
    assert after == before
    assert run(*command) == 0
    assert "nothing was missing" in capsys.readouterr().out


@pytest.mark.slow
def test_kept_studies_that_differ_in_the_variable_alone(here: Path, capsys: pytest.CaptureFixture[str]):
    names = []
    for value in ("3", "7"):
        assert run("--env", f"MY_SETTING={value}", "--", "python", "t.py") == 0
        names.append(capsys.readouterr().out.partition(":")[0])
    assert main(["store", "redact", "MY_SETTING", "--json"]) == 3
    done = json.loads(capsys.readouterr().out)
    assert done["value_unknown"] == ["MY_SETTING"]  # a hash alone is recorded of it
    assert (done["records"], done["not_found"], done["unreached"]) == (2, [], [])
    assert len(done["files"]) == 2 * 2 + 2
    for name, value in zip(names, ("3", "7"), strict=True):
        assert main(["report", name]) == 0
        assert f"val_acc 1{value}" in capsys.readouterr().out
        kept = json.loads((here / ".isorun" / "studies" / f"{name}.json").read_text())
        assert kept["environments"]["default"]["env"]["MY_SETTING"].startswith("<redacted>")
    assert main(["run", names[0]]) == 0
    assert "nothing was missing" in capsys.readouterr().out
    assert main(["store", "verify"]) == 0


@pytest.mark.slow
def test_the_value_that_a_variable_has_now(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert run("--", "python", "t.py", SECRET) == 0
    monkeypatch.delenv("LOOKUP_WORD", raising=False)
    assert main(["store", "redact", "LOOKUP_WORD", "--value-from-env"]) == 1
    assert "has no value here" in capsys.readouterr().err
    monkeypatch.setenv("LOOKUP_WORD", SECRET)
    assert main(["store", "redact", "LOOKUP_WORD"]) == 0
    assert "LOOKUP_WORD: nothing is recorded of it" in capsys.readouterr().out
    assert main(["store", "redact", "LOOKUP_WORD", "--value-from-env"]) == 0
    assert "1 record and 5 files were changed" in capsys.readouterr().out
    assert held_in(here / ".isorun", SECRET) == []


SEARCH = f"""
[approaches]
t = "python s.py --lr {{config.lr}} --lookup {SECRET}"
[search]
metric = "val_loss"
trials = 3
engine = "random"
[search.space]
lr = {{ float = [0.01, 1.0] }}
[metrics.val_loss]
direction = "lower"
"""


@pytest.mark.slow
def test_a_kept_search_is_found_by_its_name(here: Path, capsys: pytest.CaptureFixture[str], typed):
    (here / "s.py").write_text("import sys\nprint('val_loss:', (float(sys.argv[2]) - 0.3) ** 2)\n")
    (here / "study.toml").write_text(SEARCH)
    assert run("study.toml") == 0
    capsys.readouterr()
    assert main(["report", "study", "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    typed(SECRET)
    assert main(["store", "redact", "--value", "-"]) == 0
    assert held_in(here / ".isorun", SECRET) == []
    capsys.readouterr()
    assert main(["report", "study", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == before


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "nothing is said"),
        ([f"{SECRET}!"], 1, "no name of an environment variable"),
        (["--value", SECRET], 1, "cannot be read"),
        (["--value-from-env", "--value", "v"], 2, "names of variables"),
        (["--value", "v"], 1, "too common"),
    ],
)
def test_mistakes_are_told_and_no_value_is_repeated(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, told: str
):
    (here / ".isorun").mkdir()
    (here / "v").write_text("1\n")
    assert main(["store", "redact", *words]) == code
    shown = capsys.readouterr()
    assert told in shown.err
    assert SECRET not in shown.err + shown.out


def test_names_are_for_redact_alone(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / ".isorun").mkdir()
    assert main(["store", "verify", "MY_SETTING"]) == 2
    assert "of no use to verify" in capsys.readouterr().err


def test_a_value_of_which_a_hash_alone_is_recorded_is_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    cell = make_cell(1)
    content = {**cell.environment_content, "env": {"DB_HOST": recordable("DB_HOST", SECRET)}}
    for store in ("first", "second"):
        with FolderStore(here / store) as opened:
            opened.finish(make_record(replace(cell, environment_content=content), log_tail=f"host {SECRET}\n"))
    assert main(["store", "redact", "DB_HOST", "--store", "first"]) == 3
    told = capsys.readouterr().out
    assert "DB_HOST: its value is not known here" in told
    assert "next: isorun store redact --store first DB_HOST --value - " in told
    monkeypatch.setenv("DB_HOST", "not-the-one-of-then")
    assert main(["store", "redact", "DB_HOST", "--store", "second", "--value-from-env", "--json", "--dry-run"]) == 3
    assert json.loads(capsys.readouterr().out)["value_unknown"] == ["DB_HOST"]
    monkeypatch.setenv("DB_HOST", SECRET)
    assert main(["store", "redact", "DB_HOST", "--store", "second", "--value-from-env"]) == 0
    assert "not known" not in capsys.readouterr().out
    with FolderStore(here / "second") as opened:
        assert [record.log_tail for record in opened.records()] == ["host <redacted>\n"]
