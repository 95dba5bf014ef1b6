"""What is said of a search: the same for machines and for people, and something sensible of every search."""

import json
import re
import subprocess
import sys
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_searches import OPERATIONS, SPACE, of_scores, search

import isorun
from isorun.diagnose import Symptoms
from isorun.errors import InputError, NothingRecorded
from isorun.repair import priors
from isorun.repair.actions import MEANINGS, edit
from isorun.repair.bugs import Limits
from isorun.repair.diagnosis import diagnose
from isorun.repair.engines import AbstractEngine
from isorun.repair.engines.keras_folders import KerasTunerFolder
from isorun.repair.policy import RepairPolicy
from isorun.repair.priorities import Prior, PriorRow, ToldChances, told_chances
from isorun.repair.priors import prior_from_json, prior_of, prior_to_json, read_prior, shipped_prior
from isorun.repair.racing import race
from isorun.repair.searches import UNKNOWN_SYMPTOMS, Trial, not_offered
from isorun.testing.memory_store import MemoryStore

KEYS = {"engine", "study", "trials", "best", "bugs", "symptoms", "actions", "unknown_parameters"}


def test_machines_get_what_was_promised():
    told = diagnose(of_scores([0.1, 0.5, *[0.3] * 18]), now=0).to_json()
    assert set(told) >= KEYS
    assert told["trials"] == 20
    assert told["best"]["trial"] == 1
    assert [bug["kind"] for bug in told["bugs"]] == ["ineffective-search"]
    assert set(told["bugs"][0]) == {"kind", "since_trial", "evidence"}
    assert set(told["symptoms"]["best"]) == {"trial", "architecture", "convergence", "gradient", "weight"}
    assert len(told["symptoms"]["latest"]) == 5
    assert set(told["actions"][0]) == {"parameter", "from", "to", "probability", "tries", "improved", "why"}
    chances = [action["probability"] for action in told["actions"]]
    assert chances == sorted(chances, reverse=True)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


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


def repaired(**more):
    """A search whose trials 3 and 4 isorun proposed: one improved its origin, one did not."""
    scores = {0: 0.5, 1: 0.4, 2: 0.6, 3: 0.8, 4: 0.55}
    trials = [
        Trial(number, "finished", score, {"lr": 0.001, "activation": "tanh"}, seconds=1.0, started=float(number))
        for number, score in scores.items()
    ]
    trials[3] = replace(trials[3], parameters={"lr": 0.0123, "activation": "tanh"})
    trials[4] = replace(trials[4], parameters={"lr": 0.001, "activation": "relu"})
    for number in (3, 4):
        trials[number] = replace(trials[number], proposed_by="isorun", origin=2, chance=0.25)
    return search(trials, **more)


def test_values_are_told_as_they_were_written_and_not_as_counts_know_them():
    told = diagnose(repaired(), now=0).to_json()
    rates = [action for action in told["actions"] if action["parameter"] == "lr"]
    assert {action["from"] for action in rates} == {0.0123}
    assert all(isinstance(action["to"], float) for action in rates)


def test_what_was_changed_and_what_it_brought_is_told_against_what_was_foretold():
    told = diagnose(repaired(), now=0)
    first, second = told.to_json()["taken"]
    assert first["changes"] == [{"parameter": "lr", "from": 0.001, "to": 0.0123}]
    assert (first["before"], first["after"], first["outcome"], first["probability"]) == (0.6, 0.8, "improved", 0.25)
    assert second["outcome"] == "worse"
    assert "Of 2 trials that isorun proposed since trial 3, 1 improved" in told.view().text(width=200)
    assert "(0.50 were foretold)" in told.view().text(width=200)
    within = diagnose(repaired(noise=0.2), now=0).to_json()["taken"]
    assert [one["outcome"] for one in within] == ["within noise", "within noise"]


def test_one_word_for_better_from_a_dead_training_to_another_neither_improved_nor_worse():
    alive = repaired()
    dead = tuple(replace(trial, symptoms=Symptoms(convergence="slow")) for trial in alive.trials)
    for trials in (alive.trials, dead, (*alive.trials[:3], *dead[3:]), (*dead[:3], *alive.trials[3:])):
        found = replace(alive, trials=trials)
        for one in diagnose(found, now=0).taken:
            origin = trials[one.origin]
            assert (one.outcome == "improved") is found.is_better(one.trial, origin)
            assert (one.outcome == "worse") is found.is_better(origin, one.trial)
    told = diagnose(replace(alive, trials=dead), now=0)
    assert [one.outcome for one in told.taken] == ["within noise", "within noise"]
    assert "2 trials that isorun proposed since trial 3, 0 improved" in told.view().text(width=200)
    same = (*alive.trials[:3], replace(alive.trials[3], score=alive.trials[2].score))
    assert [one.outcome for one in diagnose(replace(alive, trials=same), now=0).taken] == ["the same"]


def test_the_condition_of_a_chance_is_named():
    space = (SPACE[0],)
    symptoms = Symptoms("plain", "slow", "vanishing", "unknown")
    found = search([Trial(0, "finished", 0.5, {"lr": 1e-4}, symptoms=symptoms)], space)
    row = PriorRow(edit(SPACE[0], 1e-4, 1e-3), symptoms, 120, 47)
    whys = [one["why"] for one in diagnose(found, Prior((row,)), now=0).to_json()["actions"]]
    said = "for plain networks that converge slowly with vanishing gradients it improved 47 of 120 trainings elsewhere"
    assert said in whys
    assert any(why.startswith("when raised, from whatever value, it improved 47 of 120") for why in whys)
    assert any(why.startswith("by any change of the learning-rate it improved 47 of 120") for why in whys)


def test_the_chance_to_beat_the_best_falls_with_the_number_of_trials_and_the_order_stays():
    chances = {}
    for count in (3, 12, 48):
        rng = np.random.default_rng(0)
        told = diagnose(of_scores([0.5, *[0.3] * (count - 1)], rng), shipped_prior(), now=0)
        chances[count] = [one.probability for one in told.actions]
        assert chances[count] == sorted(chances[count], reverse=True)
    assert max(chances[48]) < max(chances[12]) < max(chances[3])


def test_every_warning_has_a_next_step_and_a_bug_the_command_that_goes_on():
    found, limits = of_scores([0.5, *[0.3] * 12]), Limits(0.9)
    steps = of_engine("optuna", "sqlite:///a b.db").steps(found, limits)
    stuck = diagnose(found, Prior(()), limits, where="sqlite:///a b.db", steps=steps, now=0)
    by_code = {warning.code: warning for warning in stuck.warnings}
    assert {"ineffective-search", "symptoms-unknown", "noise-unknown"} <= set(by_code)
    assert all(warning.next_step for warning in stuck.warnings)
    step = by_code["ineffective-search"].next_step
    assert step.startswith("isorun repair 'sqlite:///a b.db'")
    assert "--continue 15 --objective train.py:objective" in step
    assert "isorun.repair.note(trial, watcher)" in by_code["symptoms-unknown"].next_step
    assert stuck.to_json()["warnings"][0]["code"] == "ineffective-search"


def of_engine(name, where):
    """An engine of isorun's own, or one that says nothing of itself."""
    if name == "keras-tuner":
        return KerasTunerFolder(where)
    if name == "optuna":
        pytest.importorskip("optuna")
        from isorun.repair.engines.optuna import OptunaStorage

        return OptunaStorage(where)

    class Plain(AbstractEngine):
        names = read = go_on = None

    return Plain(where)


@pytest.mark.parametrize(
    ("engine", "ends", "watches"),
    [
        ("optuna", "raise optuna.TrialPruned()", "isorun.repair.note(trial, watcher)"),
        ("keras-tuner", "isorun.repair.keras_tuner(tuner) ends", "isorun.repair.keras_tuner(tuner) watches"),
        ("book", "end a trial in your function", "have book keep"),
    ],
)
def test_next_steps_are_in_the_words_of_the_engine(engine, ends, watches):
    trials = [Trial(number, "finished", 0.5 + number / 100, {"lr": 0.1 * number}, seconds=1.0) for number in range(9)]
    trials.append(Trial(9, "finished", 0.9, {"lr": 0.95}, seconds=1000.0))
    found, limits = replace(search(trials, SPACE[:1]), engine=engine), Limits(patience=4)
    told = diagnose(found, Prior(()), limits, steps=of_engine(engine, "there").steps(found, limits), now=2.0)
    steps = {warning.code: warning.next_step for warning in told.warnings}
    assert steps["stalled-trial"].startswith(ends)
    assert watches in steps["symptoms-unknown"]
    again = told.steps.go_on
    assert again.startswith("isorun repair there ")
    assert "--patience 4 --continue 15" in again
    words = " ".join(astuple(told.steps)[:-1])
    assert engine == "optuna" or "study." not in words
    assert engine == "keras-tuner" or "tuner" not in words
    assert ("isorun.repair.note" in words) is (engine == "optuna")


def test_trials_that_say_nothing_are_told():
    trials = [
        Trial(0, "finished", 0.5, {"lr": 0.1}, seconds=1.0),
        Trial(1, "finished", float("nan"), {"lr": 0.2}),
        Trial(2, "pruned", None, {"lr": 0.3}, seconds=1.0, why_failed="infeasible: it breaks a constraint"),
        Trial(3, "running", None, {"lr": 0.4}, started=1.0),
    ]
    codes = [warning.code for warning in diagnose(search(trials, SPACE[:1]), now=2.0).warnings]
    assert codes == ["no-score", "symptoms-unknown", "no-times", "infeasible", "running"]


@pytest.mark.parametrize(
    ("parameters", "space", "codes"),
    [
        ({}, (), ["ineffective-search", "symptoms-unknown"]),
        ({"fixed": 0.3}, (), ["exhausted-space", "symptoms-unknown"]),
    ],
)
def test_a_search_without_a_choice_is_not_told_to_go_on_by_changes(parameters, space, codes):
    trials = [Trial(n, "finished", 0.5 - n / 100, parameters, seconds=1.0) for n in range(12)]
    told = diagnose(search(trials, space), now=2.0)
    assert [warning.code for warning in told.warnings][:2] == codes
    assert "nothing new to try" in told.warnings[0].message
    assert told.actions == ()
    assert RepairPolicy(begin=0, seed=1).plan(search(trials, space), 12) is None


def test_noise_of_a_prior_is_that_of_accuracies():
    told = {"noise": 0.01, "noise_from": "the prior"}
    assert of_scores([0.1, 0.9], **told).noise == 0.01
    assert of_scores([10.0, 90.0], **told).noise == 0.0
    assert of_scores([0.001, 0.002], direction="lower", **told).noise == 0.0
    assert of_scores([10.0, 90.0], noise=0.5, noise_from="trials that were repeated").noise == 0.5


def test_what_the_page_names_is_there_in_a_fresh_interpreter():
    page = (Path(__file__).parents[2] / "docs" / "repair.md").read_text()
    named = sorted(set(re.findall(r"\bisorun\.repair\.\w+(?:\.\w+)*", page)))
    assert {"isorun.repair.expand", "isorun.repair.hypermodel", "isorun.repair.lightning"} <= set(named)
    for name in ("isorun.repair.lightning", "isorun.repair.hypermodel"):  # each first, before another imports its room
        subprocess.run([sys.executable, "-c", f"import isorun; {name}"], check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(["import isorun", *named])], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_prior_that_is_not_trusted_is_no_reason():
    rng = np.random.default_rng(3)
    worth = {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}
    made = [{one.name: str(rng.choice(list(worth))) for one in OPERATIONS} for _ in range(14)]
    found = search(
        [Trial(n, "finished", sum(worth[x] for x in one.values()), one) for n, one in enumerate(made)], OPERATIONS
    )
    for turned in (False, True):
        rows = [
            PriorRow(edit(place, one, other), UNKNOWN_SYMPTOMS, 100, 90 if (worth[other] > worth[one]) != turned else 5)
            for place in OPERATIONS
            for one in worth
            for other in worth
            if one != other
        ]
        told = diagnose(found, Prior(tuple(rows)), now=0)
        assert (told.trust < 0.1) is turned
        assert any("elsewhere" in action["why"] for action in told.to_json()["actions"]) is not turned
        assert ("counts from elsewhere do not fit this search" in told.view().text(width=200)) is turned


def test_chances_that_are_told_came_true_where_they_were_held_out():
    many = [one for one in told_chances().calibration if one["tries"] >= 100]
    assert len(many) >= 3
    assert all(abs(one["foretold"] - one["improved"]) < 0.1 for one in many)


def test_told_chances_keep_their_order_and_fall_with_trials_noise_and_promises():
    by = ToldChances(0.5, 0.8, -0.8, 0.7)
    rng = np.random.default_rng(0)
    few, many = (of_scores([float(one) for one in rng.random(count)], rng) for count in (8, 80))
    told = [by.told(chance, few) for chance in (0.0, 0.1, 0.5, 1.0)]
    assert told == sorted(told)
    assert 0 < told[0] < told[-1] < 1
    assert by.told(0.3, many) < by.told(0.3, few)
    assert by.told(0.3, replace(few, noise=0.5)) < by.told(0.3, few)
    assert by.told(0.3, few, kept=0.2) < by.told(0.3, few)


def test_what_could_not_be_offered_is_listed_with_the_reason():
    found = replace(of_scores([0.1, 0.2]), left_out=(("isorun.momentum", "the optimizer has none"),))
    told = diagnose(found, now=0)
    assert told.to_json()["left_out"] == {"isorun.momentum": "the optimizer has none"}
    assert "isorun.momentum: the optimizer has none" in told.view().text(width=120)
    kept = [{"isorun.momentum": "old"}, None, 7, {"isorun.momentum": "new", "lr": "it is there"}]
    assert not_offered(kept, SPACE) == (("isorun.momentum", "new"),)


def test_a_race_shows_itself_in_a_notebook():
    assert race(lambda config, _: config, 0.5, 0.9)._repr_html_().startswith("<p>not better: ")


@pytest.mark.parametrize("where", ["sqlite:///study.db", "journal:study.log", "keras-tuner:searches", "study.db"])
def test_the_doctor_sends_searches_of_engines_to_isorun_repair(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    address = where if ":" in where else f"sqlite:///{where}"
    with pytest.raises(InputError, match=f"isorun repair {address}"):
        isorun.doctor(where)


def test_the_doctor_does_not_call_a_study_healthy_that_has_no_runs():
    study = isorun.Study("none", approaches={"a": ["true"]}, levels=["default"], metrics={"accuracy": "higher"})
    with pytest.raises(NothingRecorded, match="no run of none is recorded yet"):
        isorun.doctor(study, store=MemoryStore())
