"""`isorun report` and `isorun scan`."""

import json

import pytest

from isorun.cli.main import main


@pytest.fixture
def ran(toy):
    assert toy("run", "study.toml").returncode == 0
    return toy


def test_the_verdict_comes_first_then_tables_then_numbered_warnings(ran):
    text = ran("report", "study.toml").stdout
    assert text.startswith("toy")
    assert text.index("spread between runs") < text.index("1. [")
    assert "next:" in text
    assert max(map(len, text.splitlines())) <= 80


def test_no_escape_codes_where_nobody_can_see_colour(ran):
    assert "\x1b" not in ran("report", "study.toml").stdout


def test_all_forms_come_from_one_result(ran):
    done = ran(
        "report", "study.toml", "--html", "r.html", "--markdown", "r.md", "--latex", "r.tex", "--figures", "figs"
    )
    assert done.returncode == 0, done.stderr
    html = (ran.folder / "r.html").read_text()
    assert html.startswith("<!doctype html>")
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "|" in (ran.folder / "r.md").read_text()
    assert "\\toprule" in (ran.folder / "r.tex").read_text()
    assert list((ran.folder / "figs").glob("*.svg"))


def test_json_is_strict_and_has_the_groups(ran):
    def refuse(word):
        raise AssertionError(word)

    told = json.loads(ran("report", "study.toml", "--json").stdout, parse_constant=refuse)
    groups = {group["level"]: group for group in told["groups"]}
    assert sorted(groups) == ["default", "fixed-seed"]
    for level, unit in (("default", "run"), ("fixed-seed", "seed")):
        group = groups[level]
        assert (group["approach"], group["config"], group["environment"]) == ("toy", "default", "default")
        assert (group["planned"], group["runs"]["finished"], group["unit"]) == (3, 3, unit)
        assert group["selections"]
        for rule in group["selections"]:
            assert rule["all"]["metrics"]["test_acc"]["overall"]["n"] == len(rule["runs"]) == 3


def test_a_metric_that_no_run_logged_is_named_with_those_that_exist(ran):
    text = (ran.folder / "study.toml").read_text().replace("metrics.test_acc", "metrics.tset_acc")
    ran.write("study.toml", text)
    done = ran("report", "study.toml")
    assert "tset_acc" in done.stdout + done.stderr
    assert "test_acc" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_study_without_runs_says_what_to_do(toy):
    done = toy("report", "study.toml")
    assert done.returncode == 1
    assert "isorun run" in done.stderr


def test_a_report_that_cannot_be_written_is_an_error_and_leaves_nothing(ran):
    done = ran("report", "study.toml", "--html", "no/such/folder/r.html")
    assert done.returncode == 1
    assert "cannot be written" in done.stderr


def test_scan_shows_what_would_be_read(shell):
    log = shell.write("train.log", "Epoch 1/2\nloss: 0.5 - val_acc: 0.91\nEpoch 2/2\nloss: 0.4 - val_acc: 0.93\n")
    done = shell("scan", log)
    assert "2 metrics found: loss, val_acc" in done.stdout
    piped = shell("scan", "-", "--json", stdin=log.read_text())
    metrics = json.loads(piped.stdout)["metrics"]
    assert metrics["val_acc"]["values"] == 2
    assert (metrics["loss"]["direction"], metrics["loss"]["direction_from"]) == ("lower", "guessed from 'loss'")


def test_scan_fits_the_screen(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    log = tmp_path / "train.log"
    names = [f"validation/{kind}_accuracy" for kind in ("first", "other", "third", "fourth", "fifth", "sixth")]
    log.write_text(
        "\n".join(f"epoch 3 {name}: 0.123456 of what was held out, after all that came before" for name in names)
    )
    assert main(["scan", str(log)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("6 metrics found: validation/fifth_accuracy, ")
    assert told[1].startswith("   validation/")
    assert max(map(len, told)) <= 80
    assert all(any(line.startswith(f"{name} ") for line in told) for name in names)


def test_scan_of_a_log_proposes_a_pattern_only_from_a_line_in_it(tmp_path, capsys):
    log = tmp_path / "train.log"
    log.write_text("Separation: 0.953\n")
    assert main(["scan", str(log)]) == 0
    *_, told = capsys.readouterr().out.splitlines()
    assert told.startswith(r"next: isorun scan --pattern 'Separation: (?P<separation>[-+.\de]*\d)' ")
    log.write_text("done\n")
    assert main(["scan", str(log)]) == 0
    assert "--pattern" not in capsys.readouterr().out


def test_scan_of_a_file_that_is_not_there(shell):
    done = shell("scan", "none.log")
    assert done.returncode == 1
    assert "none.log cannot be read" in done.stderr


WRITES = """
import csv, pathlib, sys
pathlib.Path("logs/version_3").mkdir(parents=True, exist_ok=True)
with open("logs/version_3/metrics.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["epoch", "step", "val_acc", "train_loss"])
    for epoch in range(3):
        rows.writerow([epoch, epoch * 10, "", 1 / (epoch + 1)])
        rows.writerow([epoch, epoch * 10, 0.5 + epoch / 10, ""])
"""


def test_scan_of_a_command_shows_files_and_keeps_nothing(shell):
    shell.write("train.py", WRITES)
    done = shell("scan", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    assert "2 metrics found: train_loss, val_acc" in done.stdout
    assert "  logs/version_3/metrics.csv (CSV): train_loss 0.333333, val_acc 0.7; read" in done.stdout
    assert "weights: no digest" in done.stdout
    assert "next: isorun run -n 16 -- python train.py" in done.stdout
    assert sorted(path.name for path in shell.folder.iterdir()) == ["logs", "train.py"]


def test_scan_of_a_command_as_json_offers_files_that_differ_from_what_was_printed(shell):
    shell.write("train.py", WRITES + "print('val_acc: 0.9')")
    done = shell("scan", "--json", "--", "python", "train.py")
    told = json.loads(done.stdout)
    assert told["metrics"]["val_acc"]["values"] == 1
    assert told["metrics"]["val_acc"]["line"] == "val_acc: 0.9"
    [file] = told["files"]
    assert file["path"] == "logs/version_3/metrics.csv"
    assert file["metrics"] == {"train_loss": 1 / 3, "val_acc": 0.7}
    assert (file["used"], file["option"]) == (False, "--file 'logs/version_*/metrics.csv'")
    assert told["weights"] == {}
    assert any("ends with 0.7, in no row the same" in note for note in told["notes"])


def test_scan_of_a_command_that_fails_says_so(shell):
    done = shell("scan", "--", "python", "-c", r"print('loss: 0.5'); raise SystemExit('\x1b[31mno data\x1b[0m')")
    assert done.returncode == 1
    assert "the run failed (exit code 1" in done.stdout
    assert "\n  no data\n" in done.stdout
    assert "next: mend the failure, then isorun scan -- python -c" in done.stdout
    assert "isorun run" not in done.stdout


@pytest.mark.parametrize("words", [("scan",), ("scan", "a.log", "--", "true"), ("scan", "--file", "a.csv", "a.log")])
def test_scan_takes_a_log_or_a_command(shell, words):
    assert shell(*words).returncode == 2


def test_a_run_that_prints_nothing_is_judged_by_its_files_which_are_named_with_their_values(shell):
    shell.write("train.py", WRITES)
    done = shell("run", "--name", "quiet", "--", "python", "train.py")
    assert "val_acc 0.7 (file: logs/version_3/metrics.csv)" in done.stderr
    told = " ".join(shell("report", "quiet").stdout.split())
    assert "[metric-from-files]" in told
    assert "'logs/version_*/metrics.csv' (train_loss 0.333333, val_acc 0.7)" in told


def test_what_lies_in_files_of_runs_side_by_side_is_offered_by_its_command(shell):
    shell.write("train.py", WRITES + "import time; time.sleep(1.5)")
    shell("run", "--name", "both", "-n", 2, "-j", 2, "--launch", "fresh", "--", "python", "train.py")
    told = " ".join(shell("report", "both").stdout.split())
    assert "[no-metric]" in told
    assert "isorun run --file 'logs/version_*/metrics.csv' --store NEW -- python train.py" in told


SEARCH = """
[approaches.toy]
command = "python train.py {config.lr}"
[metrics]
accuracy = "higher"
[search]
trials = 4
engine = "random"
begin = 2
prior = "none"
[search.space]
lr = { float = [1e-5, 1.0], log = true }
"""


def test_the_report_of_a_search_is_about_the_search(shell):
    shell.write("train.py", "import sys; print('accuracy:', 1 - float(sys.argv[1]))")
    shell.write("search.toml", SEARCH)
    assert shell("run", "search.toml").returncode == 0
    done = shell("report", "search.toml", "--html", "r.html", "--figures", "figs", "--markdown", "r.md")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("random study search: 4 trials (4 finished); the best score is")
    assert "only run" not in done.stdout
    assert "few-runs" not in done.stdout
    drawn = sorted(path.name.partition("-")[2] for path in (shell.folder / "figs").iterdir())
    assert drawn == ["actions.svg", "best-by-time.svg", "best-by-trial.svg"]
    page = (shell.folder / "r.html").read_text()
    assert all(f">{title}<" in page for title in ("Best score by trial", "What each change brought", "What was run"))
    assert "What isorun changed" in (shell.folder / "r.md").read_text()
    told = json.loads(shell("report", "search", "--json").stdout)
    assert [(one["study"], one["trials"], len(one["taken"])) for one in told["searches"]] == [("search", 4, 2)]
