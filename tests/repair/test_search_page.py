"""A search as people see it: the bugs with their evidence, and a page that is whole whatever the search is."""

import pytest
from made_searches import of_scores, search

from isorun.repair.bugs import Limits
from isorun.repair.diagnosis import diagnose
from isorun.repair.priors import shipped_prior
from isorun.repair.search_page import search_view
from isorun.repair.searches import Trial
from isorun.report.html import render_view


def test_people_read_the_bug_its_trial_the_evidence_and_what_to_do():
    text = diagnose(of_scores([0.1, 0.5, *[0.3] * 18]), now=0).view().text(width=120)
    assert "20 trials (20 finished); the best score is 0.50000 (trial 1)" in text
    assert "ineffective-search, since trial 2: no improvement in 18 trials since trial 1" in text
    assert "What to change in the best trial" in text
    assert "any gain counts" in text
    silent = diagnose(of_scores([0.1, 0.3, 0.4, 0.5, *[0.3] * 12]), now=0).view().text(width=200)
    assert "No bug is found. Nothing has improved in 12 trials since trial 3: of 100 random searches 25" in silent


@pytest.mark.parametrize(
    ("noise", "noise_from", "said", "warned"),
    [
        (
            0.01,
            "the prior",
            "sd 0.01, which is that of other trainings (the prior's); that of yours is not known",
            True,
        ),
        (0.01, "trials that were repeated", "above noise: sd 0.01, from trials that were repeated.", False),
        (0.0, "trials that were repeated and agreed exactly", "Any gain counts: there is no noise, by trials", False),
        (0.0, "", "any gain counts", True),
    ],
)
def test_whose_noise_it_is_is_said_with_the_next_step_where_it_is_not_known(noise, noise_from, said, warned):
    told = diagnose(of_scores([0.1, 0.5, 0.3], noise=noise, noise_from=noise_from), now=0)
    assert said in told.view().text(width=300)
    steps = [one.next_step for one in told.warnings if one.code == "noise-unknown"]
    assert steps == (["try the best configuration three times with seeds of their own"] if warned else [])
    assert told.to_json()["noise"] == (noise if noise_from else None)
    assert told.to_json()["noise_from"] == (noise_from or None)


def test_no_finished_trial_yet_is_said():
    for trials in ([], [Trial(0, "running", None, {"lr": 0.1}, started=1.0)]):
        told = diagnose(search(trials), now=2.0)
        assert "no trial has finished with a score yet" in told.view().text(width=200)
        assert told.to_json()["best"] is None
        assert told.to_json()["actions"] == []


@pytest.mark.parametrize("number", [1, 25, 1000])
def test_the_page_of_any_search_is_whole(number):
    scores = [
        None if place % 7 == 6 else float("nan") if place % 11 == 10 else place % 13 / 13 for place in range(number)
    ]
    told = diagnose(of_scores(scores, direction="lower"), shipped_prior(), Limits(0.0), now=1e6)
    page = render_view("search", "isorun repair", search_view(told))
    assert "Best score by trial" in page
    assert "Best score by time" in page
    assert len(page) < 1_000_000


def test_a_search_without_a_score_has_a_page_without_empty_parts():
    page = render_view("nothing", "isorun repair", search_view(diagnose(search([]), now=0)))
    assert "Results" not in page
    assert "No bug is found" not in page
