"""Notebooks: the gallery is executed in real kernels, and work is shown in them as it goes on."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import isorun
from isorun import notebooks
from isorun.report import View
from isorun.scheduling import Observer, observer_of
from isorun.study.design import Study

ROOT = Path(isorun.__file__).parents[2]
GALLERY = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PYTHONS = [sys.executable, *filter(None, os.environ.get("ISORUN_TEST_PYTHONS", "").split(":"))]
TRAINING = """import isorun, time
for epoch in range({epochs}):
    time.sleep(0.3)
    isorun.log(epoch=epoch, acc=0.5)
"""


@pytest.fixture(scope="module")
def jupyter():
    for python in PYTHONS:
        question = "import ipykernel, nbclient, numpy, scipy, narwhals"
        if subprocess.run([python, "-c", question], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip("not installed here: ipykernel and nbclient")


def in_python(python, *words, given="", cwd=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [python, *words],
        input=given,
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs_and_their_code_is_python(path):
    book = json.loads(path.read_text())
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            ast.parse("".join(cell["source"]))
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    assert path.name in (ROOT / "examples" / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_every_notebook_of_the_gallery_runs_from_its_first_cell_to_its_last(path, jupyter, tmp_path):
    code = (
        "import json, sys, nbclient, nbformat\n"
        "book = nbformat.read(sys.argv[1], as_version=4)\n"
        "settings = {'metadata': {'path': sys.argv[2]}}\n"
        "nbclient.NotebookClient(book, timeout=300, kernel_name='python3', resources=settings).execute()\n"
        "cells = [cell for cell in book.cells if cell.cell_type == 'code']\n"
        "json.dump([[output.get('data', {}) for output in cell.outputs] for cell in cells], sys.stdout)\n"
    )
    shown = json.loads(in_python(jupyter, "-c", code, str(path), str(tmp_path)))
    pages = [data["text/html"] for outputs in shown for data in outputs if "text/html" in data]
    assert len(pages) > 2
    assert not any("<script" in page or "http" in page for page in pages)


def study_code(epochs):
    training = repr(TRAINING.format(epochs=epochs))
    return (
        "import isorun, pathlib\n"
        f"pathlib.Path('train.py').write_text({training})\n"
        "study = isorun.Study('shown', approaches={'a': 'python train.py'}, repeats=3, metrics={'acc': 'higher'})\n"
        "isorun.run(study)\n"
    )


@pytest.mark.slow
def test_progress_is_one_display_that_is_updated_in_place(jupyter, tmp_path):
    driver = str(Path(__file__).parent / "kernel_session.py")
    [shown] = json.loads(in_python(jupyter, driver, str(tmp_path), "", given=study_code(3)))
    displays = [one for one in shown if one["kind"] in ("display_data", "update_display_data")]
    assert [one["kind"] for one in displays].count("display_data") == 1
    assert len({one["id"] for one in displays}) == 1
    assert any("acc 0.5" in one["html"] for one in displays)
    assert '<progress max="3" value="3"' in displays[-1]["html"]
    assert shown[-1]["kind"] == "execute_result"
    assert "3 finished" in shown[-1]["html"]
    assert not [one for one in shown if one["kind"] in ("stream", "error")]


@pytest.mark.slow
def test_the_interrupt_button_loses_nothing_that_was_recorded_and_the_same_cell_goes_on(jupyter, tmp_path):
    driver = str(Path(__file__).parent / "kernel_session.py")
    code = study_code(4)
    again = "# %%\n[record.state.value for record in isorun.records(study)]\n# %%\nisorun.run(study)\n"
    first, states, second = json.loads(in_python(jupyter, driver, str(tmp_path), "1 of 3 runs", given=code + again))
    assert "stopped: interrupted" in first[-1]["html"]
    assert sorted(ast.literal_eval(states[-1]["text"])) == ["finished", "interrupted"]
    assert "2 finished" in second[-1]["html"]


def test_outside_a_notebook_nobody_is_shown_anything(monkeypatch):
    study = Study("shown", approaches={"a": "python train.py"})
    notebooks.install()
    assert not notebooks.is_notebook()
    assert type(observer_of(study, None)) is Observer
    given = Observer()
    assert observer_of(study, given) is given


def test_every_public_kind_of_result_shows_itself_in_a_notebook():
    kinds = [getattr(isorun, name) for name in isorun.__all__ if name[0].isupper()]
    plain = {isorun.Condition, isorun.GroupSummary, isorun.IsorunError, isorun.RunRecord}
    assert {kind for kind in kinds if not hasattr(kind, "_repr_html_")} == plain


def test_a_study_shows_its_design_and_no_secret():
    study = isorun.Study(
        "secret",
        approaches={"<b>": "python train.py --lr {config.lr}"},
        configs={"slow": {"lr": 0.1}},
        environments={"default": {"env": {"API_TOKEN": "hunter2", "MODE": "fast"}}},
        levels=["default", "fixed-seed"],
        repeats=3,
        metrics={"acc": "higher"},
    )
    page, text = study._repr_html_(), str(study)
    for shown in (page, text):
        assert "6 runs of 1 approach" in shown
        assert "lr = 0.1" in shown
        assert "MODE=" in shown
    assert not any("hunter2" in shown for shown in (page, text, repr(study)))
    assert "<b>" not in page
    assert repr(study).startswith("<Study 'secret': 1 approaches")


def test_a_verdict_is_a_word_that_a_notebook_shows_strong():
    decision = isorun.decide([1.0, 1.1, 0.9, 1.2, 1.05, 0.95, 1.0, 1.1], [0.0, 0.1, -0.1, 0.2, 0.05, -0.05, 0.0, 0.1])
    assert decision.verdict == "A better"
    assert decision.verdict._repr_html_() == "<strong>A better</strong>"


def test_an_outcome_shows_how_the_runs_of_each_group_ended(tmp_path):
    study = isorun.Study("ended", approaches={"fails": ["false"], "ends": ["true"]}, repeats=2, folder=tmp_path)
    page = isorun.run(study)._repr_html_()
    assert "2 finished, 2 did not finish" in page
    assert "exit code 1" in page
    assert "(2 times)" not in page  # each run is another cell
    assert "<script" not in page


def test_texts_in_tables_stand_at_the_left_whatever_the_notebook_s_style():
    from isorun.report import Column, Table

    table = Table("t", 'a "key"', (Column("name", key=True), Column("n")), (('class="key"', "1"),))
    page = View(("said",), (table,)).html_fragment()
    assert page.count('style="text-align:left"') == 3  # the caption, and the name twice
