"""The paper's numbers against its authors' logs: what comes out, and what does not."""

from __future__ import annotations

import pytest
from made_search_logs import made_search

from isorun.zoo.data.search_logs import RunningBest, SearchLogs, load_search_logs
from isorun.zoo.studies.dream.findings import (
    BEST,
    IMPROVING,
    KNOWN,
    SAVED,
    TO_TARGET,
    CheckedStatement,
    Statement,
    check_running,
    check_statements,
    made_logs,
)
from isorun.zoo.studies.dream.measured import replay
from isorun.zoo.studies.dream.published import PUBLISHED
from isorun.zoo.studies.dream.tables import statements_table


def test_the_four_known_answers_of_case_two_come_out_of_the_logs(real_logs_folder):
    searches = load_search_logs(real_logs_folder).of_case("II")
    runs = {tuner: replay(search, 25) for tuner, search in searches.items()}
    assert {tuner: round(run.best, 4) for tuner, run in runs.items()} == {
        "hyperband": 0.6821,
        "bayesian": 0.6779,
        "greedy": 0.3423,
        "dream": 0.8266,
    }
    assert {tuner: len(run.improving) for tuner, run in runs.items()} == {
        "hyperband": 4,
        "bayesian": 2,
        "greedy": 3,
        "dream": 5,
    }


def test_counting_25_trials_from_the_first_or_after_it_gives_the_same(real_logs_folder):
    for search in load_search_logs(real_logs_folder).of_case("II").values():
        assert replay(search, 25).best == replay(search, 26).best
        assert replay(search, 25).improving == replay(search, 26).improving


def test_hyperband_made_243_trials_in_24_hours_in_case_one(real_logs_folder):
    run = replay(load_search_logs(real_logs_folder).of_case("I")["hyperband"], None)
    assert len(run.curve) == 243
    assert run.curve[-1].trial == 242
    assert run.elapsed_s / 3600 == pytest.approx(24.1, abs=0.05)


def test_fourteen_of_eighteen_published_numbers_come_out_and_the_other_four_are_named(real_logs_folder):
    findings = check_statements(load_search_logs(real_logs_folder), PUBLISHED)
    differing = {
        (found.statement.case, found.statement.tuner, found.statement.quantity.name)
        for found in findings
        if not found.agrees
    }
    assert len(findings) == 18
    assert differing == {
        ("I", "hyperband", "number of trials"),
        ("I", "hyperband", "best of all trials"),
        ("II", "bayesian", "improving trials of 25"),
        ("II", "hyperband", "mean gain of improving trials"),
    }


def test_the_authors_own_running_bests_of_case_two_equal_the_replay_at_every_point(real_logs_folder):
    checked = check_running(load_search_logs(real_logs_folder), "II")
    assert {(best.tuner, best.axis) for best in checked} == {
        (tuner, axis) for tuner in ("dream", "greedy", "hyperband", "bayesian") for axis in ("trial", "time")
    }
    assert all(best.equal == best.points for best in checked)
    assert sum(best.points for best in checked) == 4 * 26 + 4 * 25


def test_the_authors_running_bests_by_trial_of_case_one_belong_to_other_searches(real_logs_folder):
    checked = check_running(load_search_logs(real_logs_folder), "I")
    assert {best.tuner for best in checked if best.axis == "trial" and best.equal == 0} == {
        "dream",
        "greedy",
        "hyperband",
        "bayesian",
    }


def test_the_answers_of_the_made_logs_were_worked_out_by_hand_and_come_out():
    findings = check_statements(made_logs(), KNOWN)
    assert [found for found in findings if not found.agrees] == []
    assert len(findings) == 13


@pytest.mark.parametrize(
    ("stated", "decimals", "found", "agrees"),
    [
        (68.21, 2, 68.2083, True),
        (68.21, 2, 68.2151, False),
        (95, 0, 95.02, True),
        (17, 0, 16.41, False),
        (None, 1, None, True),
        (None, 1, 9.5, False),
        (9.5, 1, None, False),
    ],
)
def test_numbers_are_the_same_when_they_are_at_the_decimals_that_were_stated(stated, decimals, found, agrees):
    assert CheckedStatement(Statement("I", "greedy", TO_TARGET, stated, decimals), found).agrees is agrees


def test_a_claim_about_a_search_without_a_log_is_neither_right_nor_wrong():
    logs = SearchLogs((made_search([0.2, 0.5], "II", "greedy"),), (), "made")
    found = check_statements(
        logs, [Statement("II", "greedy", BEST, 50, 0), Statement("II", "bayesian", TO_TARGET, None, 0)]
    )
    assert [finding.present for finding in found] == [True, False]
    assert not found[1].agrees
    rows = statements_table(found, "paper").rows
    assert [row[-1] for row in rows] == ["yes", "no log"]
    assert rows[1][4] == "—"


def test_a_remark_is_shown_only_where_the_numbers_differ():
    logs = SearchLogs((made_search([0.2, 0.5], "II", "greedy"),), (), "made")
    statements = [
        Statement("II", "greedy", IMPROVING, 1, 0, "never seen"),
        Statement("II", "greedy", BEST, 60, 0, "seen"),
    ]
    assert statements_table(check_statements(logs, statements), "paper").notes == ("Greedy, best of 25 trials: seen.",)


def test_time_saved_is_against_the_first_of_the_others_to_reach_the_target():
    logs = SearchLogs(
        (
            made_search([0.1, 0.9], "I", "dream", seconds=1800.0),
            made_search([0.1, 0.1, 0.8], "I", "greedy", seconds=3600.0),
            made_search([0.1, 0.76], "I", "bayesian", seconds=7200.0),
            made_search([0.1, 0.2], "I", "hyperband", seconds=60.0),
        ),
        (),
        "made",
    )
    assert SAVED.measure(logs.of_case("I"), "dream") == pytest.approx(2.0)
    assert SAVED.measure(logs.of_case("I"), "hyperband") is None


def test_a_running_best_that_differs_in_one_point_is_counted_so():
    search = made_search([0.1, 0.4, 0.2], "I", "greedy", seconds=3600.0)
    kept = (RunningBest("I", "greedy", "trial", (0.1, 0.3, 0.4)), RunningBest("I", "greedy", "time", (0.1, 0.4)))
    checked = check_running(SearchLogs((search,), kept, "made"), "I")
    assert [(best.axis, best.points, best.equal) for best in checked] == [("trial", 3, 2), ("time", 2, 2)]
