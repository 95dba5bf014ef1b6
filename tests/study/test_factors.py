"""Factors: designs as data, what they make of an environment, and what is refused."""

import itertools
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isorun
from isorun.errors import StudyError
from isorun.study.cells import cells_of
from isorun.study.design import Study, changed, document_of, document_without_secrets, kept_study, study_from_document
from isorun.study.factors import KINDS, MOST_ENVIRONMENTS, _columns

TWO = {"threads": [1, 2], "onednn": ["on", "off"]}
WORDS = ("onednn", "tf32", "threads", "python", "a", "b", "c", "d", "e", "f", "g", "h")


def study(factors, folder=Path(), **keys):
    return study_from_document(
        {"approaches": {"a": {"command": "python t.py"}}, "factors": factors, **keys}, folder, "s"
    )


def two_valued(count):
    """So many variables as factors, with two values each."""
    return {f"v{number}": {"variable": f"V{number}", "values": ["0", "1"]} for number in range(count)}


def test_one_at_a_time_is_the_baseline_and_each_other_value_alone():
    made = study({"threads": [1, 2], "onednn": ["on", "off"], "cpu": ["native", "avx2", "baseline"]})
    assert list(made.environments) == ["baseline", "threads=2", "onednn=off", "cpu=avx2", "cpu=baseline"]
    assert made.factors.points["threads=2"] == {"threads": "2", "onednn": "on", "cpu": "native"}
    environment = made.environments["cpu=avx2"]
    assert (environment.threads, environment.switches) == (1, {"cpu": "avx2", "onednn": "on"})


def test_full_is_every_combination_named_by_what_differs():
    made = study({"design": "full", "baseline": {"threads": 2}, **TWO})
    assert list(made.environments) == ["baseline", "onednn=off", "threads=1", "onednn=off, threads=1"]
    assert made.environments["baseline"].threads == 2


@pytest.mark.parametrize(
    ("count", "environments", "resolution"), [(2, 4, 0), (4, 16, 0), (5, 16, 5), (6, 32, 5), (8, 64, 5), (11, 128, 5)]
)
def test_fractional_is_the_smallest_of_resolution_five(count, environments, resolution):
    made = study({"design": "fractional", **two_valued(count)})
    assert (len(made.environments), made.factors.resolution) == (environments, resolution)
    assert next(iter(made.environments)) == "baseline"


def test_more_factors_are_of_resolution_four_and_that_is_said():
    made = study({"design": "fractional", **two_valued(12)})
    assert (len(made.environments), made.factors.resolution) == (32, 4)
    assert any("resolution IV" in line for line in made.factors.in_words())


@pytest.mark.parametrize("count", range(2, 12))
@pytest.mark.parametrize("resolution", [4, 5])
def test_no_product_of_fewer_columns_than_the_resolution_is_constant(count, resolution):
    """By the definition: over all runs, each product of up to R - 1 columns is as often 1 as 0."""
    bits, columns = _columns(count, resolution, 11)
    rows = [[(row & column).bit_count() % 2 for column in columns] for row in range(2**bits)]
    for size in range(1, resolution):
        for chosen in itertools.combinations(range(count), size):
            assert sum(sum(row[number] for number in chosen) % 2 for row in rows) == len(rows) / 2


@settings(max_examples=30)
@given(st.sampled_from(["one-at-a-time", "full"]), st.lists(st.integers(2, 4), min_size=1, max_size=4), st.data())
def test_points_are_distinct_and_a_design_that_grows_keeps_its_cells(design, sizes, data):
    def factors(sizes):
        return {
            f"v{number}": {"variable": f"V{number}", "values": [str(value) for value in range(size)]}
            for number, size in enumerate(sizes)
        }

    made = study({"design": design, **factors(sizes)})
    points = [tuple(point.items()) for point in made.factors.points.values()]
    assert len(set(points)) == len(points) == len(made.environments)
    grown = data.draw(st.integers(0, len(sizes) - 1))
    larger = study({"design": design, **factors([size + (at == grown) for at, size in enumerate(sizes)])})
    assert {cell.id for cell in cells_of(made)} < {cell.id for cell in cells_of(larger)}


def test_packages_variables_and_interpreters_are_put_into_the_environment():
    made = study(
        {
            "numpy": {"old": ["numpy==1.26.4"], "new": ["numpy==2.2.6"]},
            "hash": {"variable": "PYTHONHASHSEED", "values": ["0", "1"]},
            "python": ["python3.11", "python3.12"],
        },
        environments={"lab": {"packages": ["scipy"], "env": {"A": "1"}}},
    )
    new = made.environments["numpy=new"]
    assert new.settings == {"requirements": ["numpy==2.2.6", "scipy"]}
    assert new.env == {"A": "1", "PYTHONHASHSEED": "0"}
    assert made.environments["python=python3.12"].python == "python3.12"


def test_versions_of_the_code_are_known_by_their_commit_and_kept_with_it(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
        done = subprocess.run(["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init")
    (tmp_path / "data").mkdir()
    git("commit", "--allow-empty", "-m", "one")
    git("tag", "v1")
    git("commit", "--allow-empty", "-m", "two")
    made = study({"code": {"values": ["v1", "main"], "links": ["data"]}}, tmp_path)
    assert made.environments["code=main"].code == {"ref": "main", "commit": git("rev-parse", "main"), "links": ["data"]}
    kept = document_of(made)
    git("commit", "--allow-empty", "-m", "three")
    assert study_from_document(kept, tmp_path, "s") == made
    assert any(git("rev-parse", "v1")[:10] in line for line in made.factors.in_words())
    with pytest.raises(StudyError, match=r"no branch, tag or commit 'v2'[\s\S]*v1"):
        study({"code": ["v1", "v2"]}, tmp_path)


def test_a_kept_study_and_a_changed_one_have_the_same_environments():
    made = study({"design": "full", **TWO}, environments={"lab": {"env": {"SECRET_KEY": "hunter2hunter2"}}})
    assert study_from_document(document_of(made), Path(), "s") == made
    again = changed(made, repeats=3)
    assert again.environments == made.environments
    assert again.factors == made.factors
    document = json.loads(json.dumps(document_without_secrets(made)))
    assert "hunter2" not in json.dumps(document)
    kept = kept_study(document, Path(), "s")
    assert list(kept.environments) == list(made.environments)


def test_in_python_it_is_the_same():
    made = Study("s", approaches={"a": "python t.py"}, factors=TWO)
    assert made.environments == study(TWO).environments
    assert Study("s", approaches={"a": "python t.py"}).factors is None


@pytest.mark.parametrize(
    ("factors", "why"),
    [
        ({}, "factors: there are none"),
        ({"threads": [1]}, r"factors.threads: a factor has at least two values[\s\S]*found: +1[\s\S]*\[environments"),
        ({"threads": []}, r"at least two values[\s\S]*none"),
        ({"threads": [1, 1]}, "1 is there more than once"),
        ({"threds": [1, 2]}, r"there is no factor 'threds'[\s\S]*did you mean 'threads'"),
        ({"numpy": ["1.26", "2.2"]}, r"there is no factor 'numpy'[\s\S]*packages as a table by value"),
        ({"baseline": {"threads": 3}, **TWO}, r"baseline.threads: '3' is not a value of this factor[\s\S]*1, 2"),
        ({"baseline": {"thread": 1}, **TWO}, r"there is no key 'thread'[\s\S]*did you mean 'threads'"),
        ({"design": "half", **TWO}, "'half' is not known"),
        ({"design": "fractional", "threads": [1, 2, 3]}, r"two values of each factor[\s\S]*design = \"full\""),
        ({"design": "full", **two_valued(10)}, rf"1,024 environments[\s\S]*at most {MOST_ENVIRONMENTS:,}"),
        ({"design": "fractional", **two_valued(65)}, r"256 environments[\s\S]*at most 128"),
        ({"onednn": ["on", "of"]}, "'of' is not a value of this switch"),
        ({"threads": ["1", "2"]}, "it must be a whole number"),
        ({"p": {"old": ["a"], "new": ["-e ."]}}, "that is no requirement"),
        ({"h": {"variable": "ISORUN_SEED", "values": ["0", "1"]}}, "'ISORUN_SEED' cannot be set"),
        ({"h": {"variable": "API_TOKEN", "values": ["hunter2hunter2", "x"]}}, "looks like a secret"),
        ({"h": {"variable": "A", "value": ["0", "1"]}}, "did you mean 'values'"),
        ({"threads": {"few": 1}}, "at least two values"),
        ([1], "factors: it must be a table"),
    ],
)
def test_what_is_no_design_is_refused(factors, why):
    with pytest.raises(StudyError, match=why):
        study(factors)


def test_a_name_of_isoruns_own_is_no_variable():
    with pytest.raises(StudyError, match=r"factors.threads: it is a factor of isorun's own[\s\S]*my_threads"):
        study({"threads": {"variable": "OMP_NUM_THREADS", "values": ["1", "2"]}})
    made = study({"my_threads": {"variable": "OMP_NUM_THREADS", "values": ["1", "2"]}})
    assert made.environments["my_threads=2"].env == {"OMP_NUM_THREADS": "2"}


def test_every_kind_is_one_row_that_parses_puts_in_and_is_kept(tmp_path):
    (tmp_path / "req.txt").write_text("a==1")
    declared = {
        "tf32": [True, False],
        "streams": [["order", "weights"], "all"],
        "threads": [1, 2],
        "python": ["python3.11", "python3.12"],
        "lib": {"old": ["a==1"], "new": {"lock": "req.txt"}},
        "v": {"variable": "V", "values": {"x": "1", "y": "2"}},
    }
    made = study(declared, tmp_path)
    assert {factor.kind for factor in made.factors.factors.values()} == set(KINDS) - {"code", "image"}
    assert study_from_document(document_of(made), tmp_path, "s").environments == made.environments
    assert made.environments["v=y"].env == {"V": "2"}
    assert made.environments["baseline"].switches == {"streams": "weights+order", "tf32": "on"}
    assert any("old (a==1), new (req.txt)" in line for line in made.factors.in_words())


def test_factors_vary_one_environment():
    with pytest.raises(StudyError, match=r"they vary one environment[\s\S]*x, y"):
        study(TWO, environments={"x": {}, "y": {}})
    with pytest.raises(StudyError, match="takes no packages"):
        study({"p": {"old": ["a"], "new": ["b"]}}, environments={"x": {"kind": "box"}})


def test_the_issue_of_the_docs_is_a_design():
    page = (Path(__file__).parents[2] / "docs" / "study-file.md").read_text()
    table = tomllib.loads(page.partition("[factors]\n")[2].partition("```")[0])
    del table["code"], table["baseline"]["code"]
    assert len(study(table).environments) == 5


def test_the_command_line_shows_the_design_and_the_values_of_each_run(tmp_path):
    (tmp_path / "t.py").write_text("import os; print('acc:', float(os.environ['A']))")
    (tmp_path / "f.toml").write_text(
        '[approaches.a]\ncommand="python t.py"\n[factors]\na={variable="A",values=["1","2"]}\n'
    )

    def command(*words):
        line = [sys.executable, "-m", "isorun", "run", "f.toml", *words]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = command("--dry-run")
    assert "one-at-a-time design of 1 factor: 2 environments" in shown
    assert "a: 1, 2; baseline 1" in shown
    assert "the baseline is the first value of a" in shown
    assert "a=2" in shown
    assert [cell["factors"] for cell in json.loads(command("--dry-run", "--json"))] == [{"a": "1"}, {"a": "2"}]
    ran = json.loads(command("--json"))
    assert {run["factors"]["a"]: run["values"]["acc"] for run in ran["runs"]} == {"1": 1.0, "2": 2.0}


def test_runs_of_a_design_are_runs_of_their_environments(tmp_path):
    (tmp_path / "t.py").write_text("import os; print('acc:', float(os.environ['A']))")
    made = study({"a": {"variable": "A", "values": ["1", "2"]}}, tmp_path)
    outcome = isorun.run(made)
    assert {record.cell.environment for record in outcome.records} == {"baseline", "a=2"}
