"""The paper as a whole: from real logs, from made ones, and without any."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from made_search_logs import made_search, write_tables

from isorun.errors import DataError
from isorun.report.figures.svg import render
from isorun.zoo.data.search_logs import SearchLogs
from isorun.zoo.paper import SCALES, Request
from isorun.zoo.studies.dream.figures import case_figures
from isorun.zoo.studies.dream.paper import Dream
from isorun.zoo.studies.dream.presentation import numbers


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def real_data(data, real_logs_folder):
    data.mkdir()
    (data / "dream-search-logs").symlink_to(real_logs_folder)
    return data


CASES = ("case-1", "case-2")


@pytest.mark.parametrize("scale", SCALES)
def test_nothing_is_trained_for_the_two_cases(real_data, tmp_path, scale):
    assert Dream().studies(Request(scale, tmp_path, only=CASES)) == ()


def test_the_verdict_on_the_real_logs_names_what_came_out_and_what_did_not(real_data, tmp_path):
    shown = Dream().present(Request("cpu", tmp_path, only=CASES), {})
    first = shown.verdict[0]
    assert first.startswith("14 of 18 numbers the paper states in section 3.1 come out")
    assert "Bayesian's improving trials of 25 in case II (3 stated, 2 found)" in first
    assert "Hyperband's number of trials in case I (242 stated, 243 found)" in first
    assert any("Case II, 25 trials: DREAM is best with 82.66 %" in line for line in shown.verdict)
    assert any("Case I, 24 hours: Bayesian is best with 81.79 %" in line for line in shown.verdict)
    assert [warning.code for warning in shown.warnings] == ["single-searches"]
    assert shown.scaled_down == ()


def test_the_numbers_for_machines_are_plain_json(real_data, tmp_path):
    numbers = json.loads(
        json.dumps(Dream().present(Request("paper", tmp_path, only=CASES), {}).numbers, allow_nan=False)
    )
    found = {(entry["case"], entry["tuner"]): entry for entry in numbers["searches"]}
    assert len(found) == 8
    assert round(found["II", "dream"]["best_of_25"], 4) == 0.8266
    assert found["II", "bayesian"]["improving_of_25"] == [8, 13]
    assert numbers["made"] is False


def test_figures_two_and_three_show_each_strategy_as_stairs(real_data, tmp_path):
    by_time, by_trial = Dream().present(Request("cpu", tmp_path, only=CASES), {}).figures
    assert by_time.title.startswith("Figure 2")
    assert by_trial.title.startswith("Figure 3")
    assert [entry.label for entry in by_trial.legend] == ["DREAM", "Hyperband", "Bayesian", "Greedy"]
    assert by_time.legend[-1].label == "target"
    dream = by_trial.lines[0].points
    assert dream[-1] == (24.0, pytest.approx(82.66, abs=0.005))
    assert [dot.x for dot in by_trial.dots if dot.series == 0] == [0, 1, 2, 7, 11, 16]
    for figure in (by_time, by_trial):
        assert "<svg" in render(figure, standalone=True)


def test_one_case_alone_can_be_asked_for(real_data, tmp_path):
    shown = Dream().present(Request("cpu", tmp_path, only=("case-2",)), {})
    assert shown.verdict[0].startswith("7 of 9 numbers")
    assert [figure.name for figure in shown.figures] == ["best-by-trial"]
    assert {entry["case"] for entry in shown.numbers["searches"]} == {"II"}


def test_without_the_logs_smoke_replays_made_ones_and_says_so(data, tmp_path):
    request = Request("smoke", tmp_path, only=CASES)
    assert Dream().studies(request) == ()
    shown = Dream().present(request, {})
    assert "Nothing of the paper is reproduced" in shown.verdict[0]
    assert "13 of 13 numbers" in shown.verdict[1]
    assert any("made on the spot" in line for line in shown.scaled_down)
    assert all("made logs" in figure.title for figure in shown.figures)
    assert shown.numbers["made"] is True
    assert shown.warnings == ()


@pytest.mark.parametrize("scale", ["cpu", "gpu", "paper"])
def test_without_the_logs_other_scales_name_the_command_that_gets_them(data, tmp_path, scale):
    for call in (Dream().studies, lambda request: Dream().present(request, {})):
        with pytest.raises(DataError, match="isorun data get dream-search-logs"):
            call(Request(scale, tmp_path, only=CASES))


def test_damaged_logs_are_an_error_at_smoke_too_and_not_replaced_by_made_ones(data, tmp_path, small_logs):
    folder = write_tables(data / "dream-search-logs", small_logs)
    (folder / "epochs.csv.gz").write_bytes(b"not packed")
    with pytest.raises(DataError, match=r"epochs\.csv\.gz"):
        Dream().present(Request("smoke", tmp_path, only=CASES), {})


def test_searches_the_logs_lack_are_named_and_do_not_count_as_differences(data, tmp_path):
    logs = SearchLogs((made_search([0.1, 0.8266], "II", "dream"), made_search([0.2, 0.1], "I", "greedy")), (), "made")
    write_tables(data / "dream-search-logs", logs)
    shown = Dream().present(Request("cpu", tmp_path, only=CASES), {})
    assert [row[-1] for row in shown.tables[0].rows].count("no log") == 14
    assert shown.verdict[0].startswith("2 of 4 numbers")
    assert any(entry.label == "DREAM" for entry in shown.figures[1].legend)


def test_a_case_without_any_search_is_not_drawn(data, tmp_path):
    write_tables(data / "dream-search-logs", SearchLogs((made_search([0.1, 0.3], "II", "dream"),), (), "made"))
    shown = Dream().present(Request("cpu", tmp_path, only=CASES), {})
    assert [figure.name for figure in shown.figures] == ["best-by-trial"]
    assert [table.name for table in shown.tables] == ["stated-and-replayed", "case-i", "case-ii"]
    assert shown.tables[1].rows == ()


def test_stairs_go_up_only_when_the_improving_trial_has_ended():
    searches = [made_search([0.2, 0.1, 0.6], case, "greedy", seconds=3600.0) for case in ("I", "II")]
    told = {"made": True, **numbers([], SearchLogs(tuple(searches), (), "made"), ("I", "II"))}
    by_time, by_trial = case_figures(told)
    assert by_time.lines[0].points == ((1.0, 20.0), (3.0, 20.0), (3.0, 60.0), (3.0, 60.0))
    assert by_trial.lines[0].points == ((0.0, 20.0), (2.0, 20.0), (2.0, 60.0), (2.0, 60.0))


def test_importing_the_paper_brings_no_heavy_package():
    heavy = ("torch", "PIL", "sklearn", "matplotlib", "tensorflow", "pandas", "scipy")
    code = f"import sys; import isorun.zoo.studies.dream.paper; print([n for n in {heavy!r} if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_records_of_another_machine_are_shown_without_the_logs(data, tmp_path):
    shown = Dream().present(Request("gpu", tmp_path, recorded=True), {})
    assert shown.verdict[0].startswith("No search of ours is complete")
    assert "The two cases: their logs are not at hand." in shown.not_had


def test_all_that_is_missing_is_named_in_one_message(data, tmp_path):
    with pytest.raises(DataError, match="isorun data get dream-search-logs cifar100"):
        Dream().studies(Request("paper", tmp_path))
