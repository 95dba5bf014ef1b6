"""The questions in Python: every kind of table gives the same answer, and results cannot be changed."""

import dataclasses
import json
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest

import isorun
from isorun import workflow
from isorun.analysis.measurements import read_table
from isorun.analysis.studies.foreign_runs import Foreign
from isorun.errors import InputError, NothingRecorded
from isorun.questions import Results
from isorun.study.design import adhoc_study
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore

RNG = np.random.default_rng(8)
ROWS = [
    {"model": model, "seed": seed, "value": float(round(RNG.normal(gain), 6))}
    for model, gain in (("a", 0.0), ("b", 1.0))
    for seed in range(8)
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


def csv_file(folder):
    path = folder / "runs.csv"
    pd.DataFrame(ROWS).to_csv(path, index=False)
    return path


TABLES = {
    "csv": csv_file,
    "pandas": lambda _: pd.DataFrame(ROWS),
    "categories": lambda _: pd.DataFrame(ROWS).astype({"model": "category"}),
    "polars": lambda _: pl.DataFrame(ROWS),
    "lazy": lambda _: pl.DataFrame(ROWS).lazy(),
    "columns": lambda _: COLUMNS,
    "arrays": lambda _: {name: np.array(column) for name, column in COLUMNS.items()},
    "rows": lambda _: ROWS,
}
QUESTIONS = {
    "summarize": lambda data: isorun.summarize(data, value="value", by="model")[1],
    "compare": lambda data: isorun.compare(data, value="value", by="model", pair="seed"),
    "mixed_model": lambda data: isorun.mixed_model(data, "value ~ model + (1|seed)"),
    "power": lambda data: isorun.power(data, value="value", by="model", a="a", difference=1.0),
    "paired power": lambda data: isorun.power(
        data, value="value", by="model", a="a", b="b", pair="seed", test="paired-t", difference=1.0
    ),
    "rank": lambda data: isorun.rank(data, value="value", by="model", repetitions=100),
    "agree": lambda data: isorun.agree(data, value="value", by="model", pair="seed"),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_answer(kind, question, tmp_path):
    expected, given = (QUESTIONS[question](data) for data in (ROWS, TABLES[kind](tmp_path)))
    assert json.dumps(given.to_json(), allow_nan=False) == json.dumps(expected.to_json(), allow_nan=False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(given, dataclasses.fields(given)[0].name, None)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series], ids=lambda kind: kind.__name__)
def test_power_is_simulated_from_any_list_of_runs(kind):
    runs = [row["value"] for row in ROWS[:8]]
    assert isorun.power(kind(runs), difference=1.0) == isorun.power(runs, difference=1.0)


def test_pairs_for_power_are_found_by_their_label_and_not_by_the_order_of_rows():
    asked = {"value": "value", "by": "model", "a": "a", "b": "b", "pair": "seed", "test": "wilcoxon", "difference": 1.0}
    assert isorun.power([*ROWS[:8], *ROWS[:7:-1]], **asked) == isorun.power(ROWS, **asked)


@pytest.mark.parametrize(
    "data",
    [5, [1, 2, 3], object(), [["a", 1]], [], {}],
    ids=lambda data: "an object" if type(data) is object else repr(data),
)
def test_what_is_no_table_is_refused_in_words(data):
    with pytest.raises(isorun.IsorunError):
        isorun.summarize(data, value="value")


def test_a_study_of_which_no_run_finished_is_asked_nothing(tmp_path):
    study = adhoc_study([["false"]], folder=tmp_path)
    workflow.run(study, store=tmp_path / "runs")
    with pytest.raises(NothingRecorded, match=r"no run of the study .* has finished[\s\S]*isorun report"):
        isorun.compare(study, by="level", store=tmp_path / "runs")


@pytest.mark.parametrize(
    ("foreign", "declared"),
    [(Foreign.OWN, r"\[metrics\.test_loss\]"), (Foreign.TRACKER, "isorun import … --metric test_loss")],
)
def test_a_metric_that_the_study_does_not_judge_is_to_be_declared(foreign, declared):
    judged = types.SimpleNamespace(
        study="s",
        conditions=(),
        primary=types.SimpleNamespace(name="loss"),
        metrics=[types.SimpleNamespace(name="loss")],
        logged=("loss", "test_loss"),
        foreign=foreign,
    )
    found = Results(read_table({"seed": [1, 2], "loss": [0.5, 0.25]}), judged)
    assert found.value("loss") == "loss"
    with pytest.raises(InputError, match=rf"judges no metric 'test_loss'[\s\S]*{declared}"):
        found.value("test_loss")
    with pytest.raises(InputError, match=r"no run left the metric 'f1'[\s\S]*test_loss"):
        found.value("f1")


def test_power_refuses_to_take_several_groups_for_one():
    """The spread of all runs together is that of no group; by seed it would be that of means over groups."""
    with pytest.raises(InputError, match="which runs to simulate from") as refused:
        isorun.power(ROWS, value="value", by="model", difference=1.0)
    assert refused.value.found == "model is one of a, b"

    def trained(job):
        lr = {"slow": 0.9, "fast": 0.5}[job.cell.config]
        return Computed({"acc": lr + job.cell.seed % 5 / 100})

    study = isorun.Study(
        "toy",
        approaches={"a": "python a.py {config.lr}"},
        configs={"slow": {"lr": 1}, "fast": {"lr": 2}},
        levels=["fixed-seed", "deterministic"],
        seeds=6,
        metrics={"acc": {"direction": "higher"}},
    )
    kept = {"store": MemoryStore()}
    isorun.run(study, executor=InstantExecutor(trained), **kept)
    for asked, named in (
        ({}, "config"),
        ({"where": {"level": "fixed-seed"}}, "config"),
        ({"by": "config", "a": "slow"}, "level"),
        ({"by": "config", "a": "slow", "b": "fast"}, "level"),
    ):
        with pytest.raises(InputError, match="which runs to simulate from") as refused:
            isorun.power(study, difference=0.01, **asked, **kept)
        assert refused.value.found.startswith(f"{named} is one of ")
        assert f"--where {named}=…" in refused.value.hint
    one = {"level": "fixed-seed"}
    answers = [
        isorun.power(study, difference=0.05, by="config", a="slow", where=one, **kept),
        isorun.power(study, difference=0.05, where={"config": "slow", **one}, **kept),
    ]
    assert answers[0].runs == answers[1].runs
