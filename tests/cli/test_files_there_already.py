"""An option that writes a file takes the place of its own earlier file, and of no other."""

import re

import pytest

from conftest import STUDY, TRAIN, Shell

FORMS = {"--html": "report.html", "--markdown": "report.md", "--latex": "report.tex"}
DRAWN = ("drawn.svg", "drawn.pdf", "drawn.png")
ROWS = [f"{side},0.{n}{len(side)},{n}" for n in range(1, 6) for side in ("a", "bb")]
TABLE = "\n".join(["setting,accuracy,seed", *ROWS, ""])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("made"))
    shell.write("train.py", TRAIN)
    shell.write("study.toml", STUDY)
    shell.write("runs.csv", TABLE)
    shell.write("other.toml", STUDY)
    assert shell("run", "study.toml").returncode == 0
    assert shell("pack", "study.toml", "--no-sign").returncode == 0
    return shell


def refused(done, path, before):
    assert done.returncode == 1, done.stdout + done.stderr
    said = re.sub(r"\s+", " ", done.stderr)
    assert "is there already" in said
    assert "is not overwritten" in said
    assert "name a new file, or move that one away" in said
    assert path.read_bytes() == before


@pytest.mark.parametrize("option", FORMS)
@pytest.mark.parametrize("name", ["study.isorun", "study.toml", "train.py", "runs.csv"])
def test_a_report_is_written_over_no_file_of_another_kind(made, option, name):
    path = made.folder / name
    before = path.read_bytes()
    refused(made("report", "study.toml", option, name), path, before)


@pytest.mark.parametrize(("option", "name"), FORMS.items())
def test_a_report_takes_the_place_of_an_empty_file_and_of_an_earlier_report(made, option, name):
    made.write(name, "")
    for _ in range(2):
        done = made("report", "study.toml", option, name)
        assert done.returncode == 0, done.stderr
    assert (made.folder / name).stat().st_size > 500


def test_a_page_by_others_is_no_report(made):
    path = made.write("index.html", "<!doctype html>\n<html><head><title>My page</title></head></html>\n")
    refused(made("report", "study.toml", "--html", "index.html"), path, path.read_bytes())


def test_the_words_of_a_source_file_are_no_markdown_by_isorun(made):
    path = made.write("commented.toml", "# study\n\nrepeats = 3\n")
    refused(made("report", "study.toml", "--markdown", "commented.toml"), path, path.read_bytes())


def test_figures_of_a_folder_take_the_place_of_earlier_figures_alone(made):
    for _ in range(2):
        assert made("report", "study.toml", "--figures", "figures", "--pdf").returncode == 0
    drawn = sorted((made.folder / "figures").iterdir())
    assert {path.suffix for path in drawn} == {".svg", ".pdf"}
    for ending in (".svg", ".pdf"):
        path = next(path for path in drawn if path.suffix == ending)
        kept = path.read_bytes()
        path.write_text("my notes\n")
        refused(made("report", "study.toml", "--figures", "figures", "--pdf"), path, b"my notes\n")
        path.write_bytes(kept)


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_takes_the_place_of_an_earlier_figure_alone(made, name):
    words = ("summarize", "runs.csv", "--value", "accuracy", "--by", "setting", "--figure", name)
    for _ in range(2):
        done = made(*words)
        assert done.returncode == 0, done.stderr
    path = made.write(name, "my notes\n")
    refused(made(*words), path, b"my notes\n")


def test_a_wrong_file_is_told_before_any_run_is_made(made):
    made.write("fresh.toml", STUDY.replace("toy", "fresh"))
    path, runs = made.folder / "train.py", sorted((made.folder / ".isorun" / "runs").iterdir())
    done = made("check", "fresh.toml", "--baseline", "study.isorun", "--markdown", "train.py")
    refused(done, path, TRAIN.encode())
    assert sorted((made.folder / ".isorun" / "runs").iterdir()) == runs


def test_a_package_takes_the_place_of_an_earlier_one_of_its_study_alone(made):
    assert made("pack", "study.toml", "--no-sign", "-o", "twice.isorun").returncode == 0
    assert made("pack", "study.toml", "--no-sign", "-o", "twice.isorun").returncode == 0
    assert made("run", "other.toml").returncode == 0
    path = made.folder / "study.isorun"
    refused(made("pack", "other.toml", "--no-sign", "-o", "study.isorun"), path, path.read_bytes())
    path = made.write("settings.isorun", STUDY)
    refused(made("pack", "study.toml", "--no-sign", "-o", "settings.isorun"), path, STUDY.encode())
    made.write("empty.isorun", "")
    assert made("pack", "study.toml", "--no-sign", "-o", "empty.isorun").returncode == 0
