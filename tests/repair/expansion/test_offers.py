"""What is offered: names with the priors' meanings, choices spelled as priors spell them, nothing twice; the course."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isorun.repair
from isorun.repair.actions import meaning
from isorun.repair.expansion import OFFERS, STEPS, Offering, TrainingCourse
from isorun.repair.searches import KEEP, OFFERED, Parameter

PRIOR = Path(isorun.repair.__file__).parent / "priors/networks.json"
MEANINGS = {
    "pretrained": "transfer",
    "initialiser": "initialiser",
    "activation": "activation",
    "normalise": "normalisation",
    "standardise": "inputs",
    "optimizer": "optimizer",
    "learning_rate": "learning-rate",
    "momentum": "momentum",
    "weight_decay": "weight-decay",
    "clip": "clipping",
    "end_learning_rate": "end-learning-rate",
    "fine_tuning": "fine-tuning",
    "step_ratio": "fine-tuning",
    "second_learning_rate": "learning-rate-scale",
    "freeze": "freezing",
}


class Anything:
    """A subject of which some things cannot be changed."""

    def __init__(self, **lacking):
        self.lacking = lacking

    def lacks(self, name, _chosen):
        return self.lacking.get(name, "")

    def has(self, name, _chosen):
        return "1e-3" if name == "learning_rate" else ""


def asked(answers=None, own=(), **lacking):
    asked_for = {}

    def ask(name, choices):
        asked_for[name] = choices
        return (answers or {}).get(name.removeprefix(OFFERED), KEEP)

    offering = Offering(ask, own)
    return offering.choose(Anything(**lacking)), offering, asked_for


def test_offered_parameters_mean_what_the_priors_know():
    assert {name: meaning(OFFERED + name) for name in OFFERS} == MEANINGS
    known = {(row["parameter"], row["to"]) for row in json.loads(PRIOR.read_text())["counts"]}
    for name in ("initialiser", "activation", "normalise", "standardise", "optimizer", "end_learning_rate"):
        spelled = {Parameter(OFFERED + name, "category", (KEEP, *OFFERS[name])).label(one) for one in OFFERS[name]}
        assert {(MEANINGS[name], one) for one in spelled} <= known, name
    assert {("momentum", "0.9"), ("learning-rate", "1e-3"), ("weight-decay", "1e-2")} <= known


def test_all_is_kept_first_and_the_choices_never_change():
    chosen, offering, asked_for = asked()
    assert chosen == {}
    assert set(offering.offered.values()) == {KEEP}
    assert all(choices == (KEEP, *OFFERS[name.removeprefix(OFFERED)]) for name, choices in asked_for.items())
    assert {name.removeprefix(OFFERED) for name in asked_for} == OFFERS.keys() - STEPS.keys()


@pytest.mark.parametrize(
    ("own", "name"),
    [
        ("lr", "learning_rate"),
        ("act_fn", "activation"),
        ("opt.momentum", "momentum"),
        ("wd", "weight_decay"),
        ("batch_norm", "normalise"),
        ("kernel_initializer", "initialiser"),
        ("clip_norm", "clip"),
        ("final_lr", "end_learning_rate"),
    ],
)
def test_what_the_users_space_has_under_any_name_is_not_offered_twice(own, name):
    _, offering, asked_for = asked(own=[own, "isorun.activation"])
    assert offering.left_out == {OFFERED + name: f"the space has it: {own}"}
    assert OFFERED + name not in asked_for


def test_what_belongs_to_fine_tuning_is_asked_for_only_with_it():
    chosen, _, asked_for = asked({"fine_tuning": "two-step", "freeze": "batch-norm"})
    assert chosen == {"fine_tuning": "two-step", "freeze": "batch-norm"}
    assert {OFFERED + name for name in STEPS} <= asked_for.keys()
    _, offering, asked_for = asked(fine_tuning="no")
    assert not {OFFERED + name for name in STEPS} & (asked_for.keys() | offering.left_out.keys())
    assert offering.left_out == {"isorun.fine_tuning": "no"}


def test_the_course_of_a_fine_tuning_is_the_steps_that_were_chosen():
    two = TrainingCourse.chosen({"fine_tuning": "two-step", "step_ratio": "0.5", "second_learning_rate": "1e-2"})
    assert [two.step(progress) for progress in (0, 0.49, 0.5, 1)] == [0, 0, 1, 1]
    assert [two.rate(progress) for progress in (0, 0.49, 0.5, 1)] == pytest.approx([1, 1, 0.01, 0.01])
    assert [two.frozen_share(progress) for progress in (0, 0.5)] == [1, 0]
    three = TrainingCourse.chosen({"fine_tuning": "three-step", "step_ratio": "0.2", "end_learning_rate": "0"})
    assert [three.frozen_share(progress) for progress in (0, 0.2, 0.6)] == [1, 0.5, 0]
    assert three.rate(0.5) == pytest.approx(0.5 * 0.1)
    assert TrainingCourse.chosen({"fine_tuning": "two-step", "freeze": "none"}).frozen_share(0) == 0
    assert TrainingCourse.chosen({"activation": "selu", "clip": "1"}) is None


@given(st.sampled_from(OFFERS["end_learning_rate"]), st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_the_learning_rate_falls_to_its_end(end, places):
    course = TrainingCourse.chosen({"end_learning_rate": end})
    rates = [course.rate(place) for place in sorted(places)]
    assert rates == sorted(rates, reverse=True)
    assert course.rate(0) == 1
    assert course.rate(1) == pytest.approx(float(end))
    assert course.rate(2) == pytest.approx(float(end))


def test_a_choice_that_is_what_the_user_built_is_noted():
    _, offering, asked_for = asked()
    assert offering.as_built == {"isorun.learning_rate": "1e-3"}
    assert "1e-3" in asked_for["isorun.learning_rate"]  # engines want the same choices in every trial
