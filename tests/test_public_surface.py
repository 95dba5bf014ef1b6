"""The names people use: few, listed, cheap to import, and with words of their own."""

import inspect
import json
import pickle
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import isorun
from isorun import showing, stats
from isorun.analysis import Told
from isorun.analysis.replications import Replication, ReplicationRule
from isorun.analysis.replications.replays import held_against
from isorun.analysis.studies.bisection import Probed
from isorun.errors import InputError, IsorunError
from isorun.repair.diagnosis import diagnose
from isorun.repair.searches import Parameter, Search, Trial
from isorun.report import Column, Table
from isorun.study.history import Commit
from isorun.study.records import Series
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore
from isorun.zoo.paper import Presentation, Request
from isorun.zoo.papers import paper
from record_builder import make_cell, make_record, with_results

QUESTIONS = ("agree", "compare", "mixed_model", "power", "rank", "summarize")
RNG = np.random.default_rng(5)
TABLE = {
    "model": ["base"] * 8 + ["new"] * 8,
    "acc": [*RNG.normal(0.90, 0.01, 8), *RNG.normal(0.93, 0.01, 8)],
    "f1": RNG.normal(0.5, 0.1, 16).tolist(),
    "seed": [*range(8)] * 2,
}


def answers():
    asked = {"value": "acc", "by": "model"}
    yield isorun.summarize(TABLE, **asked)
    yield isorun.compare(TABLE, **asked)
    yield isorun.compare(TABLE["acc"][:8], TABLE["acc"][8:])
    yield isorun.power(TABLE, difference=0.02, a="base", **asked)
    yield isorun.env_diff(make_record(), make_record(make_cell(repeat=1), launch="fresh"))
    yield isorun.env_describe(make_record())
    yield held_against(make_record(), make_record(results={"acc": 0.5}))
    yield Replication("net.isorun", "sha256:0", "net", "acc", "higher", "fraction", ReplicationRule(), ())
    yield isorun.claim(0.01, study=TABLE, model="base", metric="acc")
    yield isorun.rank(TABLE, repetitions=200, **asked)
    yield isorun.agree(TABLE, pair="seed", **asked)
    yield isorun.mixed_model(TABLE, "acc ~ model + (1|seed)")
    yield checked_change()
    yield stats.decide(TABLE["acc"][:8], TABLE["acc"][8:], direction="higher")
    yield from of_a_study()
    yield of_factors()
    yield from of_trackers()
    yield of_a_range()
    yield of_a_search()
    yield of_a_paper()
    corpus = Path(__file__).parent / "diagnose" / "audit_corpus"
    yield isorun.audit(["python", "train.py"], static=True, folder=corpus / "seen" / "late_seed")
    executor = InstantExecutor(lambda job: Computed({"acc": float(job.seed % 7)}, wall_seconds=1.0 + job.cell.repeat))
    yield isorun.price(["python", "train.py"], runs=4, store=MemoryStore(), executor=executor, folder=corpus)


def of_trackers():
    store = MemoryStore()
    kept = Path(__file__).parent / "share" / "kept" / "wandb"
    yield isorun.import_runs(f"wandb:{kept}", store=store)
    with tempfile.TemporaryDirectory() as folder:
        yield isorun.export_runs("csv", "digits", to=f"{folder}/told", store=store)


def checked_change():
    study = isorun.Study("net", approaches={"LeNet": "python train.py"}, repeats=5, metrics={"acc": {}})
    executor = InstantExecutor(lambda job: Computed({"acc": 0.8 + job.cell.repeat / 100}))
    main = with_results([0.9, 0.91, 0.92, 0.93, 0.94], metric="acc")
    return isorun.check(study, main, margin=1.0, store=MemoryStore(), executor=executor)


def of_factors():
    table = {"level": {"variable": "LEVEL", "values": ["0", "1"]}}
    study = isorun.Study("varied", approaches={"a": "python a.py"}, levels=["fixed-seed"], seeds=[1, 2], factors=table)
    store = MemoryStore()
    executor = InstantExecutor(lambda job: Computed({"acc": 0.9 + job.cell.seed**2 / 100 * len(job.cell.environment)}))
    isorun.run(study, store=store, executor=executor)
    return isorun.factors(study, store=store)


def of_a_range():
    ends = [Commit(digit * 40, digit * 40, (), "2026-01-01T00:00:00+00:00", "T", f"step {digit}") for digit in "012"]
    probes = (Probed(ends[0], "good end"), Probed(ends[1], "like bad", -0.1, (-0.2, -0.05), run_ids=("r1",)))
    return isorun.Bisection(
        *ends[::2], "score", "found", ends[1], (ends[1],), 0.05, probes, 12, 12, "acc", difference=-0.1, commits=2
    )


def of_a_study():
    study = isorun.Study("toy", approaches={"a": "python a.py", "b": "python b.py"}, repeats=4)
    executor = InstantExecutor(lambda job: Computed({"acc": 0.9 + job.cell.repeat / 100, "loss": float("nan")}))
    store = MemoryStore()
    isorun.run(study, store=store, executor=executor)
    yield isorun.records(study, store=store)
    yield isorun.analyse(study, store=store)
    yield isorun.doctor(study, store=store)
    yield isorun.decide(study, store=store, executor=executor, max_runs=8)


def of_a_search():
    rates = (0.3, 0.1, 0.03, 0.01)
    trials = [Trial(number, "finished", 0.9 - rate, {"lr": rate}) for number, rate in enumerate(rates)]
    return diagnose(Search("made", "search", "higher", (Parameter("lr", "float", low=1e-3, high=1.0),), tuple(trials)))


def of_a_paper():
    tables = (Table("one", "Table 1", (Column("study", key=True), Column("runs")), (("works", "2"),)),)
    drawn = [figure for figure in of_a_search().view(figures=True).figures if figure.name == "best-by-trial"]
    warned = (isorun.Condition("failed-runs", "1 run did not finish", "mend it"),)
    shown = Presentation(("It ran.",), tables, tuple(drawn), ("all of it",), ("a GPU",), warned, {"rows": 1})
    return isorun.Reproduction(paper("dream"), Request("smoke", Path()), shown, 2, 1)


def test_a_study_is_asked_about_in_the_store_and_by_the_selection_that_one_names():
    def series(*values):
        return Series((0.0, 1.0), (0.0, 1.0), values)

    def trained(job):
        mean, turn = {"a": (0.9, 1), "b": (0.7, 3)}[job.cell.approach]
        first = mean + job.cell.repeat * turn % 4 / 100
        return Computed({}, series={"acc": series(first, first - 0.2), "val_loss": series(0.1, 0.9)})

    judged = {
        name: {"metric": "val_loss", "direction": better} for name, better in (("low", "lower"), ("high", "higher"))
    }
    study = isorun.Study("toy", approaches={"a": "python a.py", "b": "python b.py"}, repeats=4, selections=judged)
    store = MemoryStore()
    isorun.run(study, store=store, executor=InstantExecutor(trained))
    kept = {"store": store, "value": "acc"}
    means = {name: isorun.compare(study, selection=name, **kept).mean_a for name in judged}
    assert means == {"low": pytest.approx(0.915), "high": pytest.approx(0.715)}
    assert isorun.summarize(study, selection="high", **kept)[0].mean == pytest.approx(0.715)
    assert isorun.rank(study, selection="high", repetitions=50, **kept).standings[0].approach == "a"
    assert isorun.power(study, a="a", difference=0.1, selection="high", **kept).runs > 1
    model = isorun.mixed_model(study, "acc ~ approach + (1|repeat)", store=store, selection="high")
    assert model.fixed[0].estimate == pytest.approx(0.715)
    with pytest.raises(InputError, match="nonsense"):
        isorun.compare(study, selection="nonsense", **kept)


def test_how_a_study_stands_can_be_asked(tmp_path):
    study, store = isorun.Study("toy", approaches={"a": "python a.py"}, repeats=4), MemoryStore()
    isorun.run(study, store=store, executor=InstantExecutor(lambda _: Computed()), only=lambda cell: cell.repeat < 3)
    store.claim(isorun.cells(study)[3].id)
    told = isorun.status(study, store=store)
    assert isinstance(told, isorun.Status)
    assert str(told).startswith("toy: 3 of 4 finished, 1 running\n  a default #3, for 0:00:0")
    assert told._repr_html_().startswith("<p>toy: 3 of 4 finished, 1 running</p>")


ANSWERS = {type(answer).__name__: answer for answer in answers()}


@pytest.mark.parametrize("module", [isorun, stats])
def test_every_public_name_is_there_and_nothing_else_is_listed(module):
    assert sorted(module.__all__) == sorted(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("module", [isorun, stats])
def test_a_name_that_is_not_there_lists_those_that_are(module):
    with pytest.raises(AttributeError, match="it has: "):
        module.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("name", [*QUESTIONS, "run", "analyse", "records"])
def test_questions_have_explicit_signatures(name):
    signature = inspect.signature(getattr(isorun, name))
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert inspect.Parameter.VAR_POSITIONAL not in kinds
    assert signature.return_annotation


@pytest.mark.parametrize("name", stats.__all__)
def test_every_statistic_is_documented(name):
    assert inspect.getdoc(getattr(stats, name))


def test_importing_isorun_loads_none_of_its_parts():
    code = "import isorun, sys; print([name for name in sys.modules if name.startswith('isorun.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_printed_result_is_what_its_command_prints(kind):
    said = str(ANSWERS[kind])
    assert "array(" not in said
    assert len(said) < 8_000
    assert not said.startswith(kind)


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_result_is_strict_json(kind):
    told = ANSWERS[kind].to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_a_reproduction_is_told_as_its_command_tells_it():
    done = ANSWERS["Reproduction"]
    assert str(done).startswith("It ran.\n")
    assert all(part in str(done) for part in ("Table 1", "Scaled down", "Not to be had here", "[failed-runs]"))
    assert "<svg" not in done._repr_html_()
    assert [figure.name for figure in done.view(figures=True).figures] == ["best-by-trial"]


def test_what_a_public_function_returns_can_be_named():
    returned = {inspect.signature(isorun.repair.examine).return_annotation}
    returned |= {inspect.signature(isorun.repair.race).return_annotation}
    returned |= {inspect.signature(isorun.reproduce).return_annotation}
    assert returned == {"SearchDiagnosis", "Race", "Reproduction"}
    assert returned <= set(isorun.__all__)
    assert type(ANSWERS["SearchDiagnosis"]) is isorun.SearchDiagnosis


def test_every_kind_of_result_is_looked_at_here():
    assert {*ANSWERS} >= {kind.__name__ for kind in Told.__subclasses__() if kind.told_as}


def test_records_show_their_first_rows_and_say_how_many_there_are():
    records = ANSWERS["Records"]
    assert str(records).startswith("8 finished\n")
    first = records.to_json()[0]
    assert (first["approach"], first["loss"], first["state"]) == ("a", None, "finished")
    many = type(records)([*records] * 3)
    assert many._repr_html_().count("<tr>") == 21
    assert "and 4 more: to_pandas()" in str(many)
    assert str(records[:0]) == "none"


def test_the_printed_comparison_is_the_commands_own(tmp_path):
    path = tmp_path / "runs.csv"
    rows = zip(TABLE["model"], TABLE["acc"], TABLE["seed"], strict=True)
    path.write_text("model,acc,seed\n" + "".join(f"{model},{acc},{seed}\n" for model, acc, seed in rows))
    command = [sys.executable, "-m", "isorun", "compare", str(path), "--value", "acc", "--by", "model"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"COLUMNS": "100"})
    assert str(isorun.compare(str(path), value="acc", by="model")) == done.stdout.rstrip("\n")


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in {"src", "href"}]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_notebook_shows_well_formed_html_without_scripts(kind):
    tags = Tags()
    tags.feed(ANSWERS[kind]._repr_html_())
    assert tags.open == []
    assert "table" in tags.seen
    assert not tags.seen & {"script", "style", "iframe", "img", "link"}


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_notebook_shows_what_the_view_of_the_result_shows(kind):
    view = showing.view_of(ANSWERS[kind])
    assert ANSWERS[kind]._repr_html_() == view.html_fragment()
    assert str(ANSWERS[kind]) == view.text(width=100).rstrip("\n")


def test_names_from_a_table_are_escaped_in_html():
    evil = "<script>alert(1)</script>"
    table = {**TABLE, "model": [evil] * 8 + ["b&b"] * 8}
    shown = isorun.compare(table, value="acc", by="model")._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


def test_every_kind_of_result_that_is_told_has_a_view():
    def kinds(told):
        return [told, *(found for kind in told.__subclasses__() for found in kinds(kind))]

    assert {kind.told_as for kind in kinds(Told)} - {""} <= set(showing.VIEWS)


@pytest.mark.parametrize("name", ["levene", "fligner", "kruskal"])
def test_lists_are_as_good_as_arrays_and_gaps_in_them_are_named(name):
    test = getattr(stats, name)
    assert test([[1.0, 2.0, 4.0], [2.0, 5.0, 9.0]]) == test([np.array([1.0, 2.0, 4.0]), np.array([2.0, 5.0, 9.0])])
    with pytest.raises(InputError, match="sample 2 has values that are not finite"):
        test([[1.0, 2.0], [1.0, float("nan")]])


@pytest.mark.parametrize(
    "name",
    ["brunner_munzel", "mann_whitney", "welch", "f_test", "effect_size", "hodges_lehmann", "single_run_reversal"],
)
def test_two_lists_are_compared_and_text_is_refused(name):
    test = getattr(stats, name)
    assert test([1, 2, 4], [2, 5, 9]) == test(np.array([1.0, 2.0, 4.0]), np.array([2.0, 5.0, 9.0]))
    with pytest.raises(IsorunError, match="the first sample must be numbers"):
        test(["a", "b"], [1.0, 2.0])


def test_what_one_asks_of_python_is_what_questions_share():
    shared = {"value", "where", "unit", "drop_missing", "store", "selection"}
    for name in ("summarize", "compare", "power", "rank", "agree"):
        assert shared <= set(inspect.signature(getattr(isorun, name)).parameters)
    assert {"store", "selection"} <= set(inspect.signature(isorun.mixed_model).parameters)


STUDY = isorun.Study("s", approaches={"a": "true", "b": "false"})
ASKED = {"value": "acc", "by": "model"}
WRONG = {
    "run": [{"study": 3}, {"study": None}, {"study": ["w.toml"]}, {"study": "nope.toml"}, {"study": ""}]
    + [{"study": STUDY, name: 3} for name in ("executor", "store", "launch", "devices", "observer", "only")]
    + [{"study": STUDY, "jobs": wrong} for wrong in ("x", 1.5, True)]
    + [{"study": STUDY, "executor": wrong} for wrong in (None, "", "nope", "nope://x")]
    + [{"study": STUDY, "store": ""}],
    "cells": [{"study": 3}, {"study": None}, {"study": "nope.toml"}, {"study": STUDY, "store": 3}],
    "records": [{"study": 3}, {"study": STUDY, "store": []}, {"study": STUDY, "beyond": 3}],
    "analyse": [{"study": 3}, {"study": STUDY, "beyond": ["x"]}],
    "summarize": [{"by": 3}, {"by": [3]}, {"where": ["model"]}, {"value": ["acc"]}, {"value": None}],
    "compare": [{name: 3} for name in ("value", "by", "a", "where", "pair", "direction", "test", "also", "unit")]
    + [{"where": "model=a"}, {"margin": "x"}, {"rope": "x"}, {"paired": "x"}, {"also": "aso"}, {"also": [3]}],
    "power": [{name: "x"} for name in ("runs", "difference", "power", "alpha", "sd", "min_runs", "step", "futility")]
    + [{"test": 3}, {"spending": 3, "test": "sequential"}],
    "rank": [{name: "x"} for name in ("best_of", "repetitions", "drop_missing")]
    + [{name: 3} for name in ("statistic", "adjust", "task", "post_hoc", "store", "selection")]
    + [{name: wrong} for name in ("best_of", "repetitions") for wrong in (0, -1)],
    "Records": [{"records": wrong} for wrong in (3, [3], "x", [None], {"a": 1})],
    "status": [{"study": 3}, {"study": STUDY}, {"study": "nope.toml"}, {"store": 3}, {"store": ""}],
    "agree": [{"value": 3}, {"pair": 3}, {"sides": 3}, {"sides": "ab"}, {"decimals": "x"}]
    + [{"pair": "seed", "decimals": wrong} for wrong in (301, -301, 10**6)],
    "mixed_model": [{"formula": wrong} for wrong in (None, 3, "acc ~", "")]
    + [{"formula": "acc ~ model", name: 3} for name in ("ddf", "adjust", "reml", "where")],
    "decide": [{name: 3} for name in ("by", "where", "value", "selection", "unit", "pair", "store", "executor")]
    + [{name: "x"} for name in ("max_runs", "min_runs", "alpha", "margin", "jobs", "stages", "on_look")]
    + [{"max_runs": []}, {"max_runs": [3, "x"]}],
    "reproduce": [{"name": 3}, {"name": "nope"}, {"name": "ase20", "scale": 3}, {"name": "ase20", "scale": "x"}],
}
CALLS = [(name, arguments) for name, found in WRONG.items() for arguments in found]


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=str)
def test_a_wrong_argument_is_refused_and_leaves_nothing(name, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = {"decide": [STUDY]}.get(name, [TABLE]) if name in QUESTIONS or name == "decide" else []
    shared = ASKED if name in QUESTIONS and name != "mixed_model" else {}
    with pytest.raises(IsorunError):
        getattr(isorun, name)(*first, **{**shared, **arguments})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [None, 3, object, [1, 2, 3], {"a": 1}, "nope.csv", [[1, 2], [3, 4]]], ids=str)
@pytest.mark.parametrize("name", [*QUESTIONS, "decide"])
def test_what_is_no_table_is_refused(name, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    formula = {"formula": "acc ~ model"} if name == "mixed_model" else {}
    with pytest.raises(IsorunError):
        getattr(isorun, name)(wrong, **formula)


def test_a_refusal_names_the_argument_and_what_it_may_be():
    with pytest.raises(
        IsorunError, match=r"(?s)compare\(where=…\).*found: +str 'model=a'.*allowed: a mapping or None"
    ) as seen:
        isorun.compare(TABLE, where="model=a", **ASKED)
    assert isinstance(seen.value, InputError)
    with pytest.raises(IsorunError, match=r"(?s)run\(store=…\).*allowed: a text or Path or AbstractStore or None"):
        isorun.run(STUDY, store=3)


def test_too_few_arguments_are_pythons_own_error():
    with pytest.raises(TypeError, match=r"reproduce\(\) missing 1 required positional argument: 'name'"):
        isorun.reproduce()


WRONG_STATISTICS = (
    lambda: stats.levene(3),
    lambda: stats.spread(None),
    lambda: stats.spread("abc"),
    lambda: stats.spread(["a"]),
    lambda: stats.sd_interval("x", 3),
    lambda: stats.pooled_sd(3),
    lambda: stats.mixed_model(TABLE, 3),
    lambda: stats.expected_best_of_k([1, 2, 3], "x"),
    lambda: stats.compare_many(3),
    lambda: stats.nested_variance(3),
    lambda: stats.friedman(3),
    lambda: stats.joint_test(3, 4),
    lambda: stats.hypotheses(3),
    lambda: stats.variance_shares(3),
    lambda: stats.next_action(3),
    lambda: stats.welch(None, None),
    lambda: stats.aggregate([[1.0, 2.0]], 3),
)


@pytest.mark.parametrize("call", WRONG_STATISTICS)
def test_statistics_refuse_what_they_cannot_compute_with(call):
    with pytest.raises(IsorunError):
        call()


def test_a_public_function_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(isorun.compare)) is isorun.compare
    assert pickle.loads(pickle.dumps(stats.levene)) is stats.levene
