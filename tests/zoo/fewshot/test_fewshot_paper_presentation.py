"""What a reader gets: verdict, the paper's tables with ours beside theirs, warnings, JSON; also from too few runs."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
from fewshot_records import drawn, noisy, planned, records_of, request

import isorun
from isorun.study.cells import cells_of
from isorun.study.records import RunState
from isorun.zoo.paper import SCALES
from isorun.zoo.studies.fewshot.measured import ControlRun, collect, control_results, identical_settings
from isorun.zoo.studies.fewshot.paper import Fewshot
from isorun.zoo.studies.fewshot.published import TABLE_2, TABLE_5
from record_builder import make_record

ASKED = request("cpu")


def controlled(cell):
    return 0.56 if cell.approach == "prototypical" else 0.5 + 0.01 * drawn(cell.id)


def made_records(asked=ASKED, accuracy=noisy):
    return {
        name: records_of(study, controlled if name.endswith("control") else accuracy)
        for name, study in planned(asked).items()
    }


def table(shown, name):
    return next(item for item in shown.tables if item.name == name)


@pytest.fixture(scope="module")
def shown():
    return Fewshot().present(ASKED, made_records())


def test_the_verdict_comes_first_and_names_ours_and_theirs(shown):
    assert shown.verdict[0] == (
        "By the model that fits, in which seeds may act in each experiment in their own way: H1 not rejected, "
        "H2 rejected, H3 not rejected."
    )
    assert shown.verdict[1] == (
        "By the paper's rule: H1 not rejected, H2 not rejected, H3 not rejected. "
        "The paper: H1 not rejected, H2 not rejected, H3 rejected. So: H3 came out differently."
    )
    assert any("Seeds do matter within a config (p < 0.001)" in line for line in shown.verdict)


def test_every_table_of_the_paper_is_there_with_both_rows(shown):
    assert [item.name for item in shown.tables] == [
        "hypotheses",
        "table-1",
        "table-2",
        "table-4",
        "fitting",
        "table-5",
        "variance-shares",
        "table-3",
    ]
    assert [row[:2] for row in table(shown, "table-1").rows] == [
        (effect, whose) for effect in ("none left out", "(1 | seed)", "(1 | repeat)") for whose in ("ours", "paper")
    ]
    assert table(shown, "table-1").rows[1][2:] == ("15", "1,813.832", "-3,597.664", "—", "—", "—")
    assert table(shown, "table-4").rows[1][2:] == ("12.94", "1.177", "11", "18.92", "642.0", "6.497e-22")


def test_table_2_has_a_row_for_every_experiment_carried_out_or_not(shown):
    rows = table(shown, "table-2").rows
    assert [row[0] for row in rows[::2]] == list(TABLE_2)
    ours = {row[0]: row[2] for row in rows[::2]}
    assert [name for name, estimate in ours.items() if estimate == "—"] == ["tadam-adam", "tadam-sgd"]


def test_table_5_gives_mean_and_sd_in_percent(shown):
    ours, theirs, runs, weights = table(shown, "table-5").rows
    assert ours[3] == "56.00 (± 0.00)"
    assert theirs[2:] == ("50.76 (± 0.54)", "56.23 (± 0.00)", "71.96 (± 2.06)", "66.68 (± 0.18)")
    assert runs[2:] == ("3", "3", "0", "0")
    assert weights[2:] == ("3", "1", "—", "—")


def test_the_control_of_known_values():
    rows = control_results([ControlRun("tadam", value, "") for value in (0.70, 0.72, 0.74)])
    found = next(row for row in rows if row.control == "tadam")
    assert found.text == "72.00 (± 2.00)"
    assert found.weights is None
    assert [row.control for row in rows] == list(TABLE_5)


def test_figures_show_shares_and_reruns(shown):
    assert [figure.name for figure in shown.figures] == ["fewshot-shares", "fewshot-reruns"]


def test_what_is_less_and_what_could_not_be_had_is_said(shown):
    assert "data: omniglot instead of miniImageNet" in shown.scaled_down
    assert "seeds: 3 of 5" in shown.scaled_down
    assert "these runs used omniglot" in shown.not_had[0]


def test_a_changed_number_of_runs_is_what_the_scaled_down_list_tells():
    asked = request("cpu", runs=5, only=("matching-sgd",))
    told = Fewshot().present(asked, made_records(asked)).scaled_down
    assert not any(line.startswith(("repeats", "control runs")) for line in told)
    assert any(line.startswith("experiments left out: matching-adam, prototypical-adam") for line in told)


def test_runs_on_made_data_are_called_so():
    records = {
        name: records_of(study, lambda cell: 0.3 + 0.01 * drawn(cell.id))
        for name, study in planned(request("smoke"), made=True).items()
    }
    shown = Fewshot().present(request("smoke"), records)
    assert "data: small data made on the spot instead of miniImageNet" in shown.scaled_down
    assert len(shown.verdict) == 1
    assert "It claims nothing about the paper." in shown.verdict[0]


def test_parts_that_were_not_asked_for_have_no_empty_tables_and_no_warnings():
    asked = request("cpu", only=("control",))
    shown = Fewshot().present(asked, made_records(asked))
    assert [item.name for item in shown.tables] == ["table-5"]
    assert "Only the control was asked for" in shown.verdict[0]
    assert not shown.warnings
    asked = request("cpu", only=("matching-sgd",))
    names = [item.name for item in Fewshot().present(asked, made_records(asked)).tables]
    assert "table-5" not in names
    assert "table-2" in names


def test_the_groups_of_a_warning_are_not_said_twice():
    for item in Fewshot().present(ASKED, {}).warnings:
        assert not any(group in item.message for group in item.groups)


@pytest.mark.parametrize("scale", SCALES)
def test_no_records_at_all_leave_the_papers_numbers_and_name_every_group(scale):
    shown = Fewshot().present(request(scale), {})
    assert "No run of the main design has finished" in shown.verdict[0]
    assert table(shown, "table-2").rows[1][2] == "-0.01097"
    (warning,) = [item for item in shown.warnings if item.code == "no-runs"]
    assert "matching-adam-1" in warning.groups
    assert "control prototypical" in warning.groups
    json.dumps(shown.numbers, allow_nan=False)


def test_an_experiment_without_runs_is_named_and_the_others_are_shown():
    records = made_records()
    kept = [item for item in records["fewshot-cpu"] if item.cell.approach != "matching-sgd-2"]
    shown = Fewshot().present(ASKED, {"fewshot-cpu": kept})
    assert any(item.code == "no-runs" and "matching-sgd-2" in item.groups for item in shown.warnings)
    assert shown.numbers["table_2"]["matching-sgd"] is None
    assert shown.numbers["table_2"]["matching-adam"] is not None


def test_failed_and_diverged_runs_are_counted_and_left_out():
    records = made_records()["fewshot-cpu"]
    records[0] = dataclasses.replace(records[0], state=RunState.FAILED, results={})
    records[1] = dataclasses.replace(records[1], results={"accuracy": math.nan})
    records[2] = dataclasses.replace(records[2], results={})
    shown = Fewshot().present(ASKED, {"fewshot-cpu": records})
    codes = {item.code: item.message for item in shown.warnings}
    assert sum(shown.numbers["failed"].values()) == 1
    assert "failed-runs" not in codes, "whoever calls warns of failed runs, of all papers alike"
    assert codes["no-accuracy"].startswith("2 runs ended without a finite accuracy")
    assert shown.numbers["runs"] == len(records) - 3


def test_a_cell_that_failed_first_and_finished_later_counts_once():
    (cell, *_) = cells_of(planned(ASKED)["fewshot-cpu"])
    failed = make_record(cell, state=RunState.FAILED)
    finished = make_record(cell, attempt=2, results={"accuracy": 0.5})
    for order in ([failed, finished], [finished, failed]):
        found = collect(order)
        assert [run.accuracy for run in found.runs] == [0.5]
        assert not found.failed


def test_one_run_is_no_model_and_no_crash():
    shown = Fewshot().present(ASKED, {"fewshot-cpu": made_records()["fewshot-cpu"][:1]})
    assert shown.verdict[0] == "None of the paper's hypotheses could be tested with these runs."
    assert {item.code for item in shown.warnings} >= {"no-model", "no-runs"}
    json.dumps(shown.numbers, allow_nan=False)


@pytest.mark.parametrize("number", [2, 3, 5, 9, 17, 40])
def test_any_first_part_of_the_runs_can_be_presented(number):
    shown = Fewshot().present(ASKED, {"fewshot-cpu": made_records()["fewshot-cpu"][:number]})
    assert shown.numbers["runs"] == number
    json.dumps(shown.numbers, allow_nan=False)


def test_experiments_near_chance_are_flagged():
    def weak(cell):
        return 0.2 + 0.001 * drawn(cell.id) if "matching-sgd" in cell.approach else noisy(cell)

    shown = Fewshot().present(ASKED, made_records(accuracy=weak))
    (warning,) = [item for item in shown.warnings if item.code == "weak"]
    assert warning.groups == ("matching-sgd-1", "matching-sgd-2")


def test_a_singular_fit_is_named(shown):
    assert any("singular" in item.message for item in shown.warnings)


def test_equal_accuracy_with_other_weights_is_not_called_identical():
    records = made_records(accuracy=lambda cell: noisy(cell, repeat=0.0))["fewshot-cpu"]
    found = identical_settings(collect(records).runs)
    assert (found.same_accuracy, found.same_weights) == (found.settings, found.settings)
    records[0] = dataclasses.replace(records[0], digests={"weights.final": "0" * 64})
    found = identical_settings(collect(records).runs)
    assert (found.same_accuracy, found.same_weights) == (found.settings, found.settings - 1)


def test_bit_identical_runs_are_told_and_have_no_share():
    shown = Fewshot().present(ASKED, made_records(accuracy=lambda cell: noisy(cell, repeat=0.0)))
    assert "gave the same accuracy in 36 of 36 settings, and the same weights, bit for bit, in 36." in " ".join(
        shown.verdict
    )
    assert table(shown, "variance-shares").rows[-1] == ("repeats", "0", "0", "0")


# Right answers out of 7,500 of trainings at scale cpu, by config and seed; every repeat and rerun gave the same.
RIGHT_ANSWERS = {
    "matching-adam": ((4696, 4878, 4581), (4041, 4380, 4344), (3888, 4308, 3936)),
    "matching-sgd": ((4438, 4479, 4662), (3721, 4162, 3711), (3659, 4003, 3636)),
    "prototypical-adam": ((6589, 6623, 6414), (6229, 6202, 6084), (6317, 6294, 6212)),
    "prototypical-sgd": ((6380, 6685, 6407), (5915, 6282, 6043), (6177, 6432, 6090)),
}


def trained(cell):
    by_seed = RIGHT_ANSWERS[cell.approach[:-2]][int(cell.config[-1]) - 1]
    return by_seed[(12345, 34567, 54321).index(cell.seed)] / 7500


def test_bit_identical_runs_do_not_make_seeds_surer():
    numbers = Fewshot().present(ASKED, made_records(accuracy=trained)).numbers
    counted, once = numbers["hypotheses"][1], numbers["each_once"]
    # The likelihood ratios 12.7589 and 0.8384 of a dense REML fit that shares no code with isorun.
    assert (counted["rejected"], counted["p"]) == (True, pytest.approx(0.00035431, rel=1e-4))
    assert (once["runs"], once["results"]) == (144, 36)
    assert (once["h2"]["rejected"], once["h2"]["p"]) == (False, pytest.approx(0.359858, rel=1e-4))
    assert {row["p"] for row in numbers["table_2"].values()} == {1.0}


def test_runs_that_differ_are_each_a_result_of_their_own(shown):
    assert shown.numbers["each_once"] is None
    assert not any("counted once" in line for line in shown.verdict)


def test_every_key_of_the_numbers_is_documented(shown):
    page = (Path(isorun.__file__).parents[2] / "docs/papers/fewshot.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)`", page))
    assert set(shown.numbers) <= told
    assert set(shown.numbers["hypotheses"][0]) | set(shown.numbers["table_4"]) <= told
    assert set(shown.numbers["table_1"][0]) | set(shown.numbers["table_2"]["matching-sgd"]) <= told
    assert set(shown.numbers["table_5"]["tadam"]) | set(shown.numbers["identical_settings"]) <= told


def test_the_model_that_fits_is_shown_with_the_test_of_each_of_its_effects(shown):
    effects = {row[0] for row in table(shown, "fitting").rows}
    assert {"(1 | seed)", "(1 | setting:seed)", "(1 | experiment:seed)"} <= effects
    fitting = shown.numbers["fitting"]
    assert fitting["formula"].startswith("accuracy ~ experiment + (1|seed) + (1|repeat) + (1|setting)")
    assert {row["term"] for row in fitting["random"]} == effects
    assert set(fitting["reruns"]) == set(shown.numbers["table_2"])
    seeds = shown.numbers["hypotheses"][1]
    assert (seeds["rejected"], seeds["rejected_fitting"]) == (False, True)
    assert table(shown, "hypotheses").rows[1][3:5] == ("—", "—")


def test_without_noise_what_differs_differs_and_no_p_is_given():
    shown = Fewshot().present(ASKED, made_records(accuracy=lambda cell: noisy(cell, repeat=0.0)))
    assert json.loads(json.dumps(shown.numbers["fitting"]["without_noise"])) == {
        "configs": 12,
        "moved": 12,
        "rounds": ["matching-adam", "matching-sgd", "prototypical-adam", "prototypical-sgd"],
    }
    judged = {row["name"]: (row["p_fitting"], row["rejected_fitting"]) for row in shown.numbers["hypotheses"]}
    assert judged == {"H1": (None, False), "H2": (None, True), "H3": (None, False)}
    assert any("another seed gave another result in 12 of 12 configs" in line for line in shown.verdict)
