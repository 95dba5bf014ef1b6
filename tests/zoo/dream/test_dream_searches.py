"""The paper's comparison: how it is declared, and what is made of the records of its searches."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from isorun import workflow
from isorun.errors import StudyError
from isorun.repair.priors import prior_of
from isorun.report.figures.svg import render
from isorun.scheduling import Observer
from isorun.study.design import Study
from isorun.study.records import RunState
from isorun.study.searches import Proposed, trial_cell
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.made_records import make_record
from isorun.testing.memory_store import MemoryStore
from isorun.zoo.paper import OURS, SCALES, THEIRS, Request
from isorun.zoo.studies.dream.comparison import contrasts, second_searches, seeds_sentence
from isorun.zoo.studies.dream.design import (
    COMPARED,
    GROUPS,
    METHODS,
    PlannedSearch,
    PlannedStudy,
    initial_model,
    planned_studies,
    study_of,
)
from isorun.zoo.studies.dream.measured import equal_seconds, measured_searches
from isorun.zoo.studies.dream.paper import PAPER
from isorun.zoo.studies.dream.published import STRATEGIES, TABLE_2, TABLE_3, TABLE_4
from isorun.zoo.studies.dream.scales import SIZES
from isorun.zoo.studies.dream.space import ADDED, DEFAULTS, ORIGINAL
from isorun.zoo.studies.dream.tables import cost_shares, expansion_table, overall_tables, problem_rows

FOLDER = Path("somewhere")


def request(scale="gpu", **words):
    return Request(scale, FOLDER, recorded=True, **words)


# The published numbers


@pytest.mark.parametrize(
    ("told", "printed"),
    [
        (lambda row: row.best, (51.11, 54.66, 50.47, 83.21)),
        (lambda row: row.improvement, (44.51, 48.06, 43.87, 76.61)),
        (lambda row: row.best_in_24_hours, (46.22, 45.64, 66.99, 79.10)),
    ],
)
def test_the_published_rows_have_the_published_means(told, printed):
    means = [statistics.fmean(column) for column in zip(*map(told, TABLE_2), strict=True)]
    assert means == pytest.approx(printed, abs=0.0151)  # of numbers that were rounded before


def test_as_many_published_searches_reach_the_target_as_the_paper_says():
    reached = {name: sum(row.hours[at] is not None for row in TABLE_2) for at, name in enumerate(STRATEGIES)}
    assert reached == {"AKG": 4, "AKB": 6, "AKH": 10, "DREAM": 18}
    by_data = {row.data: 0 for row in TABLE_2}
    for row in TABLE_2:
        by_data[row.data] += sum(hours is not None for hours in row.hours[:3])
    assert by_data == {"CIFAR-100": 8, "Food-101": 2, "Stanford Cars": 4, "TinyImageNet": 6}


def test_published_improvements_are_best_less_initial_but_in_one_row():
    differing = [
        row.number
        for row in TABLE_2
        if any(abs(best - row.initial - gain) > 0.02 for best, gain in zip(row.best, row.improvement, strict=True))
    ]
    assert differing == [14]


def test_the_other_published_tables_add_up_but_for_a_printed_mean():
    assert statistics.fmean(row.monitor for row in TABLE_3) == pytest.approx(0.91, abs=0.01)  # 0.73 is printed
    assert all(row.monitor + row.choosing + row.training == pytest.approx(100, abs=0.011) for row in TABLE_3)
    assert statistics.fmean(row.original for row in TABLE_4) == pytest.approx(48.88, abs=0.01)
    assert statistics.fmean(row.expanded for row in TABLE_4) == pytest.approx(81.27, abs=0.01)


# The design


def test_every_scale_declares_studies_with_searches_and_first_seeds_come_first():
    for scale in SCALES:
        studies = PAPER.studies(request(scale))
        assert studies
        assert all(study.searches for study in studies)
        seeds = [study.seeds[0] for study in studies]
        assert seeds == sorted(seeds)


def test_the_gpu_scale_fits_into_minutes():
    trials = sum(design.trials for study in PAPER.studies(request()) for design in study.searches.values())
    assert 2000 <= trials <= 2500


def test_all_methods_start_from_the_same_model_and_other_seeds_from_others():
    studies = PAPER.studies(request())
    starts = {}
    for study in studies:
        for design in study.searches.values():
            start = {name.removeprefix("isorun."): value for name, value in design.start.items()}
            assert {name: value for name, value in start.items() if name in ADDED} in (
                {},
                {name: DEFAULTS[name] for name in ADDED},
            )
            own = {name: value for name, value in start.items() if name in ORIGINAL}
            starts.setdefault((study.name, design.config), []).append(own)
    assert all(all(start == same[0] for start in same) for same in starts.values())
    assert len({json.dumps(same[0]) for same in starts.values()}) == len(starts)


def test_who_searches_what():
    study = PAPER.studies(request())[0]
    names = {name: {parameter.name for parameter in design.space} for name, design in study.searches.items()}
    assert names["residual tpe"] == set(ORIGINAL) - {"block_type"}
    assert names["residual tpe-expanded"] == {*ORIGINAL, *ADDED} - {"block_type"}
    assert names["residual repair"] == {*ORIGINAL, *(f"isorun.{name}" for name in ADDED)} - {"block_type"}
    assert all(design.at_once == 1 for design in study.searches.values())
    begins = {name.partition(" ")[2]: design.begin for name, design in study.searches.items()}
    assert begins["repair"] == begins["shuffled"] == begins["no-prior"] == begins["repair-original"] == 1
    assert begins["tpe-attached"] == begins["random-attached"] == begins["edits-attached"] == 10
    assert {begins[name] for name in ("edits", "tpe", "random", "tpe-expanded")} == {"never"}


def test_the_prior_leaves_out_the_data_that_is_searched():
    for study in PAPER.studies(request()):
        data = study.name.removeprefix("dream-gpu-").rpartition("-")[0]
        repair, shuffled, none = (study.searches.get(f"residual {name}") for name in ("repair", "shuffled", "no-prior"))
        assert repair.prior == f"shipped, without {data}"
        held_out = prior_of(repair.prior)
        assert data not in {row.data for row in held_out.rows}
        assert data in {row.data for row in prior_of("shipped").rows}
        assert none is None or none.prior == "none"
        if shuffled is not None:
            wrong = prior_of(shuffled.prior)
            assert {row.edit for row in wrong.rows} == {row.edit for row in held_out.rows}
            assert wrong.noise == held_out.noise
            assert sum(row.tries for row in wrong.rows) == pytest.approx(sum(row.tries for row in held_out.rows))
            assert [row.improved for row in wrong.rows] != [row.improved for row in held_out.rows]


def test_parts_can_be_asked_for_by_what_is_compared_and_by_data():
    def named(**words):
        return {search.method.group for study in planned_studies(request(**words)) for search in study.searches}

    assert named() == {*GROUPS}
    assert named(only=("expansion",)) == {"expansion"}
    assert named(only=("case-1",)) == set()
    assert named(only=("case-1", "searches")) == {"searches"}
    assert {study.data for study in planned_studies(request(only=("cifar100",)))} == {"cifar100"}
    assert named(only=("cifar100",)) == {*GROUPS}
    seeds = [study.seed for study in planned_studies(request(only=("cifar100",), runs=3))]
    assert seeds == [1, 2, 3]


def test_limits_on_what_is_searched_hold_for_the_space_and_for_initial_models():
    size = SIZES["cpu"]["digits"]
    assert size.choices("filters") == (8, 16, 32)
    assert all(initial_model("digits", "residual", seed, size)["filters"] <= 32 for seed in range(20))
    assert len({initial_model("digits", "residual", seed, size)["learning_rate"] for seed in range(40)}) == 6


def test_a_first_trial_outside_of_the_space_is_refused():
    def declared(start):
        space = {"lr": {"float": [0.001, 0.1]}, "act": ["relu", "tanh"]}
        searches = {"one": {"space": space, "start": start}}
        approaches = {"a": "python t.py {config.lr} {config.act}"}
        return Study("s", approaches=approaches, metrics={"acc": "higher"}, searches=searches)

    assert declared({"lr": 0.01, "act": "tanh"}).searches["one"].start == {"lr": 0.01, "act": "tanh"}
    for wrong in ({"lr": 1.0, "act": "relu"}, {"lr": 0.01}, {"lr": 0.01, "act": "relu", "width": 3}, "tanh"):
        with pytest.raises(StudyError, match="start"):
            declared(wrong)


# From records to tables

SIZE = replace(SIZES["gpu"]["cifar100"], families=("residual",), trials=4, target=0.5, attached_after=2)


def planned(seeds=(1,), methods=tuple(METHODS), data="cifar100"):
    searches = tuple(PlannedSearch("residual", METHODS[name]) for name in methods)
    return tuple(PlannedStudy(f"dream-gpu-{data}-{seed}", data, seed, SIZE, searches) for seed in seeds)


def made_records(study, scores, *, seconds=10.0, **changes):
    """Records of the trials of each search with these scores; None for a trial that failed."""
    declared = study_of(study, request(), lambda _: False)
    for name, trials in scores.items():
        design = declared.searches[f"residual {name}"]
        for number, score in enumerate(trials):
            cell = trial_cell(declared, design, Proposed(design.name, number, design.start))
            state = RunState.FAILED if score is None else RunState.FINISHED
            results = {} if score is None else {"val_accuracy": score, "watched_seconds": 0.02}
            yield make_record(cell, state=state, results=results, wall_seconds=seconds, **changes)


RISING = {"edits": [0.1, 0.2, 0.2, 0.3], "tpe": [0.1, 0.1, 0.4, 0.2], "random": [0.1, None, 0.3, 0.2]}


def searches_of(by_seed, **words):
    studies = planned(tuple(by_seed), **words)
    found = {study.name: tuple(made_records(study, by_seed[study.seed])) for study in studies}
    return studies, found, measured_searches(studies, found)


def test_a_search_is_told_by_its_trials_in_order_and_failed_ones_score_nothing():
    _, found, searches = searches_of({1: {**RISING, "repair": [0.1, 0.6, 0.5, 0.7]}})
    best = {search.method.name: [point.best for point in search.progress.curve] for search in searches}
    assert best == {
        "edits": [0.1, 0.2, 0.2, 0.3],
        "tpe": [0.1, 0.1, 0.4, 0.4],
        "random": [0.1, 0.1, 0.3, 0.3],
        "repair": [0.1, 0.6, 0.6, 0.7],
    }
    repair = searches[-1]
    assert repair.progress.reached(repair.target).elapsed_s == 20.0
    assert equal_seconds(searches) == 40.0
    assert cost_shares(searches) == pytest.approx((0.002, 0.998))
    assert len(next(iter(found.values()))) == 16


def test_a_search_with_a_gap_or_too_few_trials_is_not_complete():
    study = planned()[0]
    records = [*made_records(study, {"tpe": [0.1, 0.2, 0.3, 0.4], "edits": [0.1, 0.2]})]
    (whole, begun) = sorted(measured_searches([study], {study.name: records}), key=lambda one: -len(one.trials))
    assert whole.is_complete
    assert not begun.is_complete
    (gapped, *_) = measured_searches(
        [study], {study.name: [record for record in records if "trial-1" not in record.cell.config]}
    )
    assert len(gapped.trials) == 1
    stopped = [replace(record, state=RunState.INTERRUPTED) for record in records]
    assert measured_searches([study], {study.name: stopped}) == ()


def test_contrasts_are_means_of_pairs_and_searches_without_a_partner_do_not_count():
    by_seed = {
        1: {**RISING, "repair": [0.1, 0.6, 0.5, 0.7]},
        2: {"tpe": [0.1, 0.1, 0.5, 0.5], "repair": [0.1, 0.2, 0.3, 0.6]},
        3: {"tpe": [0.1, 0.1, 0.5, 0.5], "repair": [0.1, 0.9]},
    }
    _, _, searches = searches_of(by_seed)
    found = {(one.first, one.second): one for one in contrasts(searches)}
    against_tpe = found["repair", "tpe"]
    assert against_tpe.differences == pytest.approx((0.3, 0.1))
    assert against_tpe.difference == pytest.approx(0.2)
    assert against_tpe.won == 2
    assert against_tpe.interval == pytest.approx((0.2 - 1.2706, 0.2 + 1.2706), abs=1e-3)  # t of 1 degree of freedom
    assert against_tpe.verdict == "cannot be told"
    assert against_tpe.published == pytest.approx(83.21 - 54.66, abs=0.01)
    assert found["repair", "edits"].verdict == "one pair"
    assert ("tpe-expanded", "tpe") not in found


@pytest.mark.parametrize(("sign", "verdict"), [(1, "first better"), (-1, "second better")])
def test_a_contrast_says_which_is_better(sign, verdict):
    middle = {seed: 0.5 + sign * (0.1 + 0.001 * seed) for seed in range(1, 7)}
    by_seed = {seed: {"tpe": [0.5] * 4, "repair": [best] * 4} for seed, best in middle.items()}
    _, _, searches = searches_of(by_seed)
    assert next(one for one in contrasts(searches) if one.second == "tpe").verdict == verdict


def test_second_searches_are_those_that_differ_by_the_seed_alone():
    by_seed = {
        1: {"tpe": [0.1, 0.2, 0.3, 0.4], "repair": [0.1, 0.6, 0.5, 0.7]},
        2: {"tpe": [0.1, 0.1, 0.5, 0.6], "repair": [0.1, 0.2, 0.3, 0.5]},
    }
    _, _, searches = searches_of(by_seed)
    found = second_searches(searches)
    assert {one.method: one.best for one in found} == {"tpe": (0.4, 0.6), "repair": (0.7, 0.5)}
    assert all(one.reach == pytest.approx(0.2) for one in found)
    told = seeds_sentence(found)
    assert "by 20.0 points in the median of 2 searches" in told
    assert "same for all seeds in 0 of 1 case." in told
    assert seeds_sentence(()) == ""


def test_table_two_has_our_rows_their_means_and_the_published_means():
    by_seed = {
        1: {**RISING, "repair": [0.1, 0.6, 0.5, 0.7]},
        2: {**RISING, "repair": [0.2, 0.3, 0.3, 0.4]},
    }
    _, _, searches = searches_of(by_seed)
    scores, times, published = overall_tables(problem_rows(searches), 4)
    first, second, mean = [row for row in scores.rows if row[0] == OURS]
    assert first[:4] == (OURS, "cifar100", "residual", "1")
    assert first[4:] == ("10.00", "30.00", "40.00", "30.00", "70.00", "20.00", "30.00", "20.00", "60.00")
    assert second[8] == "40.00"
    assert mean[3:9] == ("mean", "11.25", "30.00", "40.00", "30.00", "55.00")
    assert [row for row in scores.rows if row[0] == THEIRS][-1][5:9] == ("51.11", "54.66", "50.47", "83.21")
    ours = [row for row in times.rows if row[0] == OURS]
    assert ours[0][4:8] == ("—", "—", "—", "20.0 s")
    assert ours[-1][4:8] == ("—", "—", "—", "—")  # as in the paper: only where all searches reach it
    assert len(published.rows) == 18


def test_a_mean_is_over_the_rows_in_which_every_method_is_complete():
    by_seed = {
        1: {**RISING, "repair": [0.1, 0.6, 0.5, 0.7]},
        2: {**RISING, "edits": [0.1, 0.9, 0.9, 0.9], "repair": [0.2, 0.3]},
    }
    _, _, searches = searches_of(by_seed)
    scores, times, _ = overall_tables(problem_rows(searches), 4)
    for table in (scores, times):
        assert [row for row in table.rows if row[0] == OURS][-1][3] == "mean of 1"
    assert [row for row in scores.rows if row[0] == OURS][-1][4:9] == ("10.00", "30.00", "40.00", "30.00", "70.00")


def test_a_verdict_allows_for_all_questions_that_are_asked():
    scores = {"edits": 0.5, "tpe": 0.5, "random": 0.5, "edits-expanded": 0.5, "tpe-expanded": 0.5}
    gains = (0.01, 0.02, 0.03, 0.04, 0.0, 0.03)  # t = 3.6, p = 0.016: five times that is no longer below 0.05
    by_seed = {
        seed: {**{name: [score] * 4 for name, score in scores.items()}, "repair": [0.5 + gain] * 4}
        for seed, gain in enumerate(gains, 1)
    }
    _, _, searches = searches_of(by_seed)
    found = {one.second: one for one in contrasts(searches) if one.first == "repair"}
    assert found["tpe"].interval[0] > 0
    assert found["tpe"].p == pytest.approx(5 * 0.0156, abs=0.003)
    assert {one.verdict for one in found.values()} == {"cannot be told"}
    _, _, alone = searches_of({seed: {key: made[key] for key in ("tpe", "repair")} for seed, made in by_seed.items()})
    assert next(iter(contrasts(alone))).verdict == "first better"


def test_table_four_sets_each_engine_beside_itself_on_the_expanded_space():
    _, _, searches = searches_of({1: {**RISING, "tpe-expanded": [0.1, 0.1, 0.8, 0.2], "random-expanded": [0.1, 0.2]}})
    (row,) = [row for row in expansion_table(searches).rows if row[0] == OURS]
    assert row == (OURS, "cifar100", "TPE", "10.00", "40.00", "80.00", "2.00", "30.00", "70.00", "2.33")
    assert sum(row[0] == THEIRS for row in expansion_table(searches).rows) == 6


def every_method(best):
    return {name: [0.1, 0.2, 0.3, best + 0.01 * at] for at, name in enumerate(METHODS)}


def test_the_whole_is_presented_with_figures_five_to_ten(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    asked = request(only=("cifar100",), runs=2)
    monkeypatch.setattr("isorun.zoo.studies.dream.presentation.planned_studies", lambda _: planned((1, 2)))
    found = {study.name: tuple(made_records(study, every_method(0.3 + 0.1 * study.seed))) for study in planned((1, 2))}
    shown = PAPER.present(asked, found)
    titles = [figure.title.partition(".")[0] for figure in shown.figures]
    assert titles == [f"Figure {number}" for number in (5, 7, 9, 10, 6, 8)]
    assert all("<svg" in render(figure, standalone=True) for figure in shown.figures)
    taken_over = shown.figures[1]
    assert [(entry.label, entry.series, entry.dotted) for entry in taken_over.legend[:6]] == [
        *((label, at, False) for at, label in enumerate(("uniform edits", "TPE", "random"))),
        *((f"{label}, then repair", at, True) for at, label in enumerate(("uniform edits", "TPE", "random"))),
    ]
    assert taken_over.lines[-1].points[0][0] == 2.0  # where repair begins
    assert [y for _, y in shown.figures[0].lines[0].points] == pytest.approx([10.0, 20.0, 30.0, 45.0])
    assert [table.name for table in shown.tables] == [
        "contrasts",
        "table-2",
        "table-2-time",
        "table-2-published",
        "table-3",
        "table-4",
        "second-searches",
    ]
    assert shown.verdict[0] == "26 of 26 searches are complete, 104 trainings."
    assert any("A second search with another seed" in line for line in shown.verdict)
    assert any(line.startswith("The target is reached by uniform edits 1 of 2") for line in shown.verdict)
    assert [warning.code for warning in shown.warnings] == ["few-pairs"]
    numbers = json.loads(json.dumps(dict(shown.numbers), allow_nan=False))["compared"]
    assert len(numbers["searches"]) == 26
    assert numbers["searches"][0]["scores"] == [0.1, 0.2, 0.3, 0.4]


def test_what_is_not_complete_is_named_and_compared_with_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path))
    monkeypatch.setattr("isorun.zoo.studies.dream.presentation.planned_studies", lambda _: planned())
    found = {study.name: tuple(made_records(study, {"tpe": [0.1, 0.2]})) for study in planned()}
    shown = PAPER.present(request(only=("cifar100",)), found)
    assert shown.verdict[0].startswith("No search of ours is complete")
    assert shown.warnings[0].code == "searches-open"
    assert len(shown.warnings[0].groups) == len(METHODS)


def test_the_strategies_of_the_paper_each_have_one_that_stands_for_them():
    assert tuple(method.stands_for for method in COMPARED) == STRATEGIES


# Through the one loop, with trainings that take no time


def made_up(job):
    """A score for a configuration: some values are better than others, and offered ones count like the plain ones."""
    values = {name.removeprefix("isorun."): value for name, value in job.cell.config_values.items()}
    score = 0.2 + 0.2 * (values["learning_rate"] in (0.01, 1e-3)) + 0.1 * bool(values["normalize"])
    score += 0.1 * (values["optimizer"] != "sgd") + 0.05 * (values.get("activation", "relu") == "elu")
    return Computed({"val_accuracy": score, "watched_seconds": 0.001}, wall_seconds=1.0)


class Sequence:
    """Which trials ran, and the most of one search that were under way at a time."""

    def __init__(self):
        self.under_way, self.most = Counter(), Counter()

    def observer(self):
        counted = self

        class Counting(Observer):
            def run_started(self, cell):
                name = cell.config.rpartition(" ")[0]
                counted.under_way[name] += 1
                counted.most[name] = max(counted.most[name], counted.under_way[name])

            def run_ended(self, record):
                counted.under_way[record.cell.config.rpartition(" ")[0]] -= 1

        return Counting()


@pytest.fixture(scope="module")
def carried_out():
    pytest.importorskip("optuna")
    size = replace(SIZES["gpu"]["cifar100"], families=("residual",), trials=7, attached_after=3)
    searches = tuple(PlannedSearch("residual", method) for method in METHODS.values())
    study = study_of(PlannedStudy("dream-gpu-cifar100-1", "cifar100", 1, size, searches), request(), lambda _: False)
    store, executor, sequence = MemoryStore(), InstantExecutor(made_up, 30), Sequence()
    with closing(executor):
        outcome = workflow.run(study, store=store, executor=executor, observer=sequence.observer())
    trials = {}
    for record in outcome.records:
        name, _, number = record.cell.config.rpartition(" trial-")
        trials.setdefault(name.removeprefix("residual "), {})[int(number)] = record
    return study, trials, sequence


def values_of(record):
    return {name.removeprefix("isorun."): value for name, value in record.cell.config_values.items()}


def test_every_search_has_its_trials_one_after_another_from_the_given_model(carried_out):
    study, trials, sequence = carried_out
    assert set(trials) == set(METHODS)
    for name, own in trials.items():
        assert sorted(own) == list(range(7)), name
        start = study.searches[f"residual {name}"].start
        assert {key: own[0].cell.config_values[key] for key in start} == dict(start)
    assert set(sequence.most.values()) == {1}  # although there was room for thirty


@pytest.mark.parametrize("name", ["edits", "edits-expanded"])
def test_uniform_edits_change_one_value_of_the_best_trial_so_far(carried_out, name):
    own = carried_out[1][name]
    for number in range(1, 7):
        best = max((own[before] for before in range(number)), key=lambda record: record.results["val_accuracy"])
        changed = [key for key, value in values_of(own[number]).items() if values_of(best)[key] != value]
        assert len(changed) == 1


def test_an_engine_goes_its_own_way_until_the_search_is_taken_over(carried_out):
    _, trials, _ = carried_out
    later = []
    for engine in ("tpe", "random", "edits"):
        for number in range(3):
            alone, attached = (values_of(trials[name][number]) for name in (engine, f"{engine}-attached"))
            assert {**alone, **{name: DEFAULTS[name] for name in ADDED}} == attached
        later += [values_of(trials[f"{engine}-attached"][number]) for number in range(3, 7)]
    assert any(one[name] != DEFAULTS[name] for one in later for name in ADDED)
    assert "activation" not in values_of(trials["repair-original"][6])
