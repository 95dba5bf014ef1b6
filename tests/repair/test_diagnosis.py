"""What is said of a search: the same for machines and for people, and something sensible of every search."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_searches import OPERATIONS, SPACE, of_scores, search

from isorun.diagnose import Symptoms
from isorun.errors import InputError
from isorun.repair import priors
from isorun.repair.actions import MEANINGS, edit
from isorun.repair.bugs import Limits
from isorun.repair.diagnosis import diagnose
from isorun.repair.priorities import Prior, PriorRow
from isorun.repair.priors import prior_from_json, prior_of, prior_to_json, read_prior, shipped_prior
from isorun.repair.searches import UNKNOWN_SYMPTOMS, Trial

KEYS = {"engine", "study", "trials", "best", "bugs", "symptoms", "actions", "unknown_parameters"}


def test_machines_get_what_was_promised():
    told = diagnose(of_scores([0.1, 0.5, *[0.3] * 12]), now=0).to_json()
    assert set(told) >= KEYS
    assert told["trials"] == 14
    assert told["best"]["trial"] == 1
    assert [bug["kind"] for bug in told["bugs"]] == ["ineffective-search"]
    assert set(told["bugs"][0]) == {"kind", "since_trial", "evidence"}
    assert set(told["symptoms"]["best"]) == {"trial", "architecture", "convergence", "gradient", "weight"}
    assert len(told["symptoms"]["latest"]) == 5
    assert set(told["actions"][0]) == {"parameter", "from", "to", "probability", "tries", "improved", "why"}
    chances = [action["probability"] for action in told["actions"]]
    assert chances == sorted(chances, reverse=True)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_people_read_the_bug_its_trial_the_evidence_and_what_to_do():
    text = diagnose(of_scores([0.1, 0.5, *[0.3] * 12]), now=0).view().text(width=120)
    assert "14 trials (14 finished); the best score is 0.50000 (trial 1)" in text
    assert "ineffective-search, since trial 2: no improvement in 12 trials since trial 1" in text
    assert "What to change in the best trial" in text
    assert "any gain counts" in text


def test_no_finished_trial_yet_is_said():
    for trials in ([], [Trial(0, "running", None, {"lr": 0.1}, started=1.0)]):
        told = diagnose(search(trials), now=2.0)
        assert "no trial has finished with a score yet" in told.view().text(width=200)
        assert told.to_json()["best"] is None
        assert told.to_json()["actions"] == []


def test_parameters_that_are_not_understood_are_named():
    told = diagnose(of_scores([0.1, 0.2], space=(*SPACE, OPERATIONS[0])), now=0)
    assert told.to_json()["unknown_parameters"] == ["op0"]
    assert "op0" in told.view().text()


def test_counts_from_elsewhere_are_told_with_the_trust_in_them():
    found = of_scores([0.1, 0.2, 0.3], space=OPERATIONS)
    best = found.best.parameters["op0"]
    rows = [PriorRow(edit(OPERATIONS[0], best, other), UNKNOWN_SYMPTOMS, 40, 30) for other in "abcd" if other != best]
    told = diagnose(found, Prior(tuple(rows)), now=0)
    assert 0 < told.to_json()["trust_in_prior"] < 1
    assert "it improved 30 of 40 trainings elsewhere" in told.to_json()["actions"][0]["why"]
    assert told.to_json()["actions"][0]["parameter"] == "op0"


@settings(max_examples=30)
@given(st.lists(st.one_of(st.none(), st.floats()), max_size=15), st.sampled_from(["higher", "lower"]))
def test_something_is_said_of_any_search(scores, direction):
    told = diagnose(of_scores(scores, direction=direction), limits=Limits(target=0.5), now=1e6)
    assert told.view().text()
    json.dumps(told.to_json(), allow_nan=False)


def test_a_prior_survives_its_file(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        PriorRow(
            edit(SPACE[0], 10.0**-n, 10.0 ** -(n + 1)), UNKNOWN_SYMPTOMS._replace(gradient="vanishing"), 10, int(k)
        )
        for n, k in enumerate(rng.integers(0, 10, 4))
    ]
    prior = Prior(tuple(rows), source="made", noise=0.1, about={"seed": 1})
    path = tmp_path / "prior.json"
    path.write_text(json.dumps(prior_to_json(prior)))
    again = read_prior(path)
    assert (again.source, again.noise, again.about["seed"]) == ("made", 0.1, 1)
    for row in rows:
        assert again.probability(row.edit, row.symptoms) == prior.probability(row.edit, row.symptoms)
    assert prior_of(prior) is prior
    assert prior_of(None) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "source": "", "counts": [{"tries": 1}]}']
)
def test_what_is_no_prior_is_refused(text, tmp_path):
    path = tmp_path / "prior.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is no prior"):
        read_prior(path)


def test_more_improvements_than_tries_are_refused():
    row = {"parameter": "lr", "from": "1", "to": "2", "tries": 1, "improved": 2}
    with pytest.raises(ValueError, match="2 of 1 improved"):
        prior_from_json({"format": 1, "source": "", "counts": [row]})


def test_the_shipped_prior_knows_meanings_only_and_points_the_right_way():
    prior = shipped_prior()
    assert prior is not None
    assert {row.edit.meaning for row in prior.rows} <= {known for known, _ in MEANINGS}
    raised, lowered = edit(SPACE[0], 1e-5, 1e-3), edit(SPACE[0], 1e-3, 1e-5)
    assert prior.probability(raised, UNKNOWN_SYMPTOMS) > 2 * prior.probability(lowered, UNKNOWN_SYMPTOMS)
    too_fast = Symptoms(weight="exploding")
    assert prior.probability(edit(SPACE[0], 1.0, 1e-3), too_fast) > 2 * prior.probability(lowered, too_fast)


@pytest.mark.parametrize("path", sorted(Path(priors.__file__).parent.glob("*.json")), ids=lambda path: path.name)
def test_a_shipped_prior_foretold_what_was_held_out(path):
    about = read_prior(path).about
    assert {"seed", "date", "calibration"} <= set(about)
    assert sum(one["tries"] for one in about["calibration"]) > 3_000
    many = [one for one in about["calibration"] if one["tries"] >= 100]
    assert len(many) >= 5
    assert all(abs(one["foretold"] - one["improved"]) < 0.15 for one in many)
