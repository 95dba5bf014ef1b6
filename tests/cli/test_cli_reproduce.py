"""`isorun reproduce` as people type it."""

import json

import pytest


@pytest.fixture
def offline(shell, tmp_path):
    """A shell on a machine that has none of the papers' data."""

    def typed(*words, **options):
        return shell(*words, env={"ISORUN_DATA": str(tmp_path / "no-data"), "NO_COLOR": "1"}, **options)

    return typed


def test_without_a_paper_it_lists_what_there_is(offline):
    done = offline("reproduce")
    assert done.returncode == 0
    assert done.stdout.startswith("4 papers can be reproduced: ase20, tacl18, fewshot, dream.")
    for text in ("Table 2", "36,536,884", "smoke", "isorun data get"):
        assert text in done.stdout


def test_the_list_is_json_on_request(offline):
    listed = json.loads(offline("reproduce", "--json").stdout)
    assert {item["name"] for item in listed["papers"]} == {"ase20", "tacl18", "fewshot", "dream"}
    assert set(listed["papers"][0]) == {
        *("name", "title", "reference", "exhibits", "not_attempted", "networks", "data", "parts", "scales"),
        "on_request",
    }


def test_an_unknown_paper_scale_or_part_is_named_with_what_is_allowed(offline):
    paper, scale, part = (
        offline("reproduce", "ase21"),
        offline("reproduce", "ase20", "--scale", "medium"),
        offline("reproduce", "ase20", "--only", "lenet6"),
    )
    assert (paper.returncode, scale.returncode, part.returncode) == (1, 2, 2)
    assert "did you mean" in paper.stderr or "ase20" in paper.stderr
    assert "smoke" in scale.stderr
    assert "lenet5" in part.stderr
    assert "Traceback" not in paper.stderr + scale.stderr + part.stderr


def test_an_option_without_a_paper_is_refused(offline):
    done = offline("reproduce", "--only", "lenet5")
    assert done.returncode == 2
    assert "needs a paper" in done.stderr


@pytest.mark.parametrize("words", [("--html", "nowhere/page.html"), ("--jobs", "0"), ("--device", "tpu")])
def test_what_cannot_be_done_is_refused_before_anything_runs(offline, tmp_path, words):
    done = offline("reproduce", "ase20", "--only", "lenet1", *words)
    assert done.returncode == 2
    assert words[1].partition("/")[0] in done.stderr
    assert not (tmp_path / ".isorun").exists()


def test_missing_data_names_the_command_that_gets_them(offline):
    done = offline("reproduce", "ase20", "--scale", "paper", "--dry-run")
    assert done.returncode == 1
    assert "isorun data get mnist" in done.stderr


def test_a_dry_run_counts_the_runs_and_runs_nothing(offline, tmp_path):
    done = offline("reproduce", "ase20", "--only", "lenet1", "--dry-run")
    assert done.returncode == 0
    assert "nothing was run" in done.stdout
    assert not (tmp_path / ".isorun").exists()


def test_what_was_never_run_cannot_be_shown(offline):
    done = offline("reproduce", "ase20", "--recorded")
    assert done.returncode == 1
    assert "isorun reproduce ase20" in done.stderr


@pytest.mark.long
def test_one_network_is_trained_shown_written_and_never_trained_twice(offline, tmp_path):
    words = ("reproduce", "ase20", "--only", "lenet1", "--html", "page.html", "--markdown", "page.md")
    first = offline(*words, "--figures", "figures", "--launch", "warm")
    assert first.returncode == 0, first.stderr
    assert "Scaled down" in first.stdout
    assert "runs to do" in first.stderr
    assert "<svg" in (tmp_path / "page.html").read_text()
    assert (tmp_path / "page.md").read_text().startswith("# ")
    assert list((tmp_path / "figures").glob("*.svg"))
    again = offline("reproduce", "ase20", "--only", "lenet1", "--json")
    shown = json.loads(again.stdout)
    assert "to do" not in again.stderr
    assert shown["runs"]["failed"] == 0
    assert shown["runs"]["finished"] > 0
    assert {"verdict", "tables", "scaled_down", "not_had", "warnings", "numbers"} <= set(shown)


@pytest.mark.long
def test_a_page_from_the_json_is_the_page_from_the_run(offline, tmp_path):
    words = ("reproduce", "ase20", "--only", "lenet1", "--runs", "2")
    made = offline(*words, "--html", "made.html", "--latex", "made.tex", "--markdown", "made.md", "--json")
    assert made.returncode == 0, made.stderr
    (tmp_path / "kept.json").write_text(made.stdout)
    for record in sorted((tmp_path / ".isorun").rglob("*"), reverse=True):
        record.unlink() if not record.is_dir() else record.rmdir()
    again = offline(
        *("reproduce", "--from", "kept.json", "--html", "again.html", "--latex", "again.tex", "--markdown", "again.md"),
        "--figures",
        "figures",
    )
    assert again.returncode == 0, again.stderr
    for ending in ("html", "tex", "md"):
        assert (tmp_path / f"again.{ending}").read_text() == (tmp_path / f"made.{ending}").read_text()
    assert "<svg" in (tmp_path / "again.html").read_text()
    assert list((tmp_path / "figures").glob("*.svg"))
    assert json.loads(offline("reproduce", "--from", "kept.json", "--json").stdout) == json.loads(made.stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "kept.json", "--runs", "3"), "--from runs nothing, so --runs says nothing"),
        (("tacl18", "--from", "kept.json"), "kept.json is of another paper"),
        (("--from", "gone.json"), "gone.json cannot be read"),
    ],
)
def test_what_does_not_go_with_a_kept_page_is_refused(offline, tmp_path, words, said):
    kept = {"paper": "ase20", "title": "T", "scale": "cpu", "page": {"version": 1, "verdict": ["It ran."]}}
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    done = offline("reproduce", *words)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
