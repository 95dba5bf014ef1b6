"""Commands that differ in nothing but a value that is withheld from records are different runs, as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isorun.cli.main import main

TRAINING = """
import os, sys
print("val_acc: 0." + (sys.argv[2] if len(sys.argv) > 2 else os.environ["HASH_SALT"]))
"""


@pytest.mark.parametrize("option", ["--salt", "--cookie"])
def test_each_value_has_its_own_runs_and_its_own_report(here: Path, capsys: pytest.CaptureFixture[str], option: str):
    for value in ("5", "10"):
        assert main(["run", "-n", "1", "--launch", "fresh", "--", "python", "t.py", option, value]) == 0
        assert "1 finished" in capsys.readouterr().out
        assert main(["report"]) == 0
        assert f"val_acc {50 if value == '5' else 10}" in capsys.readouterr().out.replace(".00 %", "")
    assert main(["run", "-n", "1", "--launch", "fresh", "--", "python", "t.py", option, "5"]) == 0
    assert "nothing was missing" in capsys.readouterr().out
    assert main(["report"]) == 0
    assert "val_acc 50" in capsys.readouterr().out
    assert main(["run", "-n", "1", "--dry-run", "--", "python", "t.py", option, "5"]) == 0
    assert "0 of 1 runs are missing" in capsys.readouterr().out


def test_variables_of_a_study_file_too(here: Path, capsys: pytest.CaptureFixture[str]):
    for value in ("5", "10", "5"):
        (here / "study.toml").write_text(
            f'[approaches]\nt = "python t.py"\n[environments.default.env]\nHASH_SALT = "{value}"\n'
        )
        assert main(["run", "study.toml", "--launch", "fresh"]) == 0
        assert main(["report", "study.toml"]) == 0
        assert f"val_acc {50 if value == '5' else 10}" in capsys.readouterr().out.replace(".00 %", "")


def test_a_dry_run_shows_no_name_or_id_that_is_not_final(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("print('acc: 0.5')")
    command = ["--", "python", "a.py", "--token", "Zk39xQpL7w8"]
    assert main(["run", "--dry-run", *command]) == 0
    shown = capsys.readouterr().out
    assert "this study: 1 of 1 runs are missing" in shown
    assert "are not known yet" in shown
    assert main(["run", "--dry-run", "--json", *command]) == 0
    assert [cell["id"] for cell in json.loads(capsys.readouterr().out)] == [None]
    assert main(["run", *command]) == 0
    name = capsys.readouterr().out.partition(":")[0]
    assert main(["run", "--dry-run", *command]) == 0
    assert capsys.readouterr().out.startswith(f"{name}: 0 of 1 runs are missing")
