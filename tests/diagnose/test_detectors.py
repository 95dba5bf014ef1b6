"""Each detector on traces with known answers, on any trace, and on real small trainings."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun import showing
from isorun.diagnose import (
    KINDS,
    LARGER_RATE,
    AbstractDetector,
    Curve,
    Diagnosis,
    Trace,
    WatchedRow,
    all_detectors,
    examine,
    symptoms_of,
)
from isorun.testing.detector_contract import DetectorContract

EPOCHS = 12
RISING = [0.1 + 0.07 * epoch for epoch in range(EPOCHS)]
FALLING = [2.3 * 0.8**epoch for epoch in range(EPOCHS)]
STUCK = [0.1] * EPOCHS
FLAT = [2.3] * EPOCHS


def row(epoch=0, **changes):
    healthy = {
        "step": 10 * epoch,
        "epoch": epoch,
        "seconds": 0.1 * epoch,
        "layers": ["first", "middle", "last"],
        "gradient": [0.3, 0.4, 0.5],
        "weight": [5.0, 4.0, 3.0],
        "zero": [0.6, 0.2, 0.0],
        "dead": {"relu 1": 0.1},
        "saturated": {"tanh 2": 0.1},
        "inputs": {"mean": 0.0, "spread": 1.0, "least": -3.0, "largest": 3.0},
        "output": {"looks": "numbers", "width": 10, "loss": "cross-entropy-of-logits"},
    }
    return {**healthy, **changes}


def trace(learns=True, rows=None, **curves):
    told = {"loss": FALLING if learns else FLAT, "accuracy": RISING if learns else STUCK, **curves}
    return Trace.of_rows([row(0), row(5), row(11)] if rows is None else rows, curves=told)


def kinds(found):
    return [problem.kind for problem in examine(found).problems]


def rows_with(**changes):
    return [row(epoch, **changes) for epoch in (0, 5, 11)]


def test_a_healthy_training_has_no_problem_and_normal_symptoms():
    assert kinds(trace()) == []
    assert symptoms_of(trace()) == ("unknown", "normal", "normal", "normal")


FAULTS = {
    "slow-convergence": trace(learns=False),
    "oscillation": trace(accuracy=[0.5, 0.8, 0.6, 0.8, 0.55, 0.82, 0.7, 0.85, 0.6, 0.9]),
    "vanishing-gradient": trace(False, rows_with(gradient=[1e-6, 1e-3, 0.5])),
    "exploding-gradient": trace(False, rows_with(gradient=[90.0, 5.0, 1.0])),
    "dying-relu": trace(False, rows_with(dead={"relu 1": 0.2, "relu 2": 0.8})),
    "exploding-weights": trace(loss=[2.3, 5.0, math.nan, math.nan]),
    "overfitting": trace(val_loss=[1.0, 0.8, 0.6, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
    "wrong-loss": trace(rows=rows_with(output={"looks": "probabilities", "loss": "cross-entropy-of-logits"})),
    "unnormalised-data": trace(
        False, rows_with(inputs={"mean": 120.0, "spread": 70.0, "least": 0.0, "largest": 255.0})
    ),
    "saturated-activation": trace(False, rows_with(saturated={"tanh 1": 0.9})),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_with_one_fault_shows_it(kind):
    found = {problem.kind: problem for problem in examine(FAULTS[kind]).problems}
    assert kind in found
    # A training that does not converge is slow as well; nothing else is claimed.
    assert set(found) <= {kind, "slow-convergence"}
    assert any(character.isdigit() for character in found[kind].evidence) or kind == "wrong-loss"
    assert found[kind].epoch is not None
    assert found[kind].remedies


@pytest.mark.parametrize(
    "changes",
    [
        {"gradient": [1e-6, 1e-3, 0.5]},
        {"gradient": [90.0, 5.0, 1.0]},
        {"dead": {"relu 1": 0.99}},
        {"zero": [0.9, 0.9, 0.9], "dead": {}},
        {"saturated": {"tanh 1": 0.99}},
    ],
)
def test_nothing_that_frightens_inside_is_a_problem_in_a_training_that_converges(changes):
    assert kinds(trace(rows=rows_with(**changes))) == []
    assert kinds(trace(False, rows_with(**changes))) != ["slow-convergence"]


def test_zeros_of_the_first_layer_are_those_of_the_inputs():
    assert "dying-relu" not in kinds(trace(False, rows_with(zero=[0.95, 0.1, 0.1], dead={})))
    assert "dying-relu" in kinds(trace(False, rows_with(zero=[0.1, 0.95, 0.1], dead={})))


@pytest.mark.parametrize(
    ("gradient", "expected"),
    [
        ([0.99e-4, 0.1], ["vanishing-gradient"]),
        ([1.01e-4, 0.5], []),
        ([0.99e-4, 0.098], []),
        ([71.0, 1.0], ["exploding-gradient"]),
        ([69.0, 1.0], []),
        ([0.71, 0.01], []),
    ],
)
def test_the_thresholds_of_the_paper_decide(gradient, expected):
    """A thousandth of the last layer's, and less than 1e-4 by itself; 70 times as much, and not of next to nothing."""
    found = kinds(trace(False, rows_with(layers=["a", "b"], gradient=gradient)))
    assert [kind for kind in found if kind.endswith("gradient")] == expected


def test_an_accuracy_that_moves_by_luck_is_still_slow():
    luck = [0.08, 0.1, 0.12, 0.09, 0.11, 0.1, 0.08, 0.12, 0.1, 0.09]
    assert kinds(trace(accuracy=luck, loss=[12.0, 3.0, 2.6, *[2.5] * 7])) == ["slow-convergence"]


def test_what_cannot_be_looked_for_is_told_and_why():
    nothing = examine(Trace())
    assert set(nothing.unexamined) == set(KINDS)
    assert "isorun.watch(model)" in nothing.unexamined["vanishing-gradient"]
    assert "isorun.log" in nothing.unexamined["slow-convergence"]
    assert nothing.symptoms == ("unknown", "unknown", "unknown", "unknown")
    told = examine(Trace.of_rows([], curves={"acc": STUCK}))
    assert [problem.kind for problem in told.problems] == ["slow-convergence"]
    assert told.symptoms.gradient == "unknown"


def test_a_softmax_of_one_number_and_a_flat_loss_are_wrong():
    assert kinds(trace(rows=rows_with(output={"looks": "constant", "loss": ""}))) == ["wrong-loss"]
    assert kinds(trace(rows=rows_with(output={"looks": "numbers", "loss": "flat"}))) == ["wrong-loss"]
    assert (
        kinds(
            trace(rows=rows_with(output={"looks": "log-probabilities", "loss": "log-likelihood-of-log-probabilities"}))
        )
        == []
    )


def test_squares_of_classes_are_wrong_only_where_the_training_fails():
    squares = rows_with(output={"looks": "probabilities", "loss": "squares-of-classes"})
    assert kinds(trace(rows=squares)) == []
    assert "wrong-loss" in kinds(trace(False, squares))


def test_inputs_that_the_model_normalises_itself_are_no_problem():
    far = {"mean": 120.0, "spread": 70.0, "least": 0.0, "largest": 255.0}
    assert "unnormalised-data" in kinds(trace(False, rows_with(inputs=far)))
    assert "unnormalised-data" not in kinds(trace(False, rows_with(inputs={**far, "normalised": 1.0})))


def test_a_loss_of_a_thousand_may_be_the_scale_of_the_data():
    assert kinds(Trace.of_rows([], curves={"loss": [5000.0, 2600.0, 1400.0]})) == []
    assert "exploding-weights" in kinds(Trace.of_rows([], curves={"loss": [50.0, 60.0, 5000.0]}))


def test_the_architecture_is_told_by_the_model_or_by_the_parameters():
    assert symptoms_of(trace(rows=rows_with(architecture="residual"))).architecture == "residual"
    named = Trace.of_rows([], parameters={"block_type": "xception", "lr": 0.1})
    assert symptoms_of(named).architecture == "depthwise"


def test_a_sample_within_an_epoch_belongs_to_the_one_marked_next():
    found = Trace.of_rows([row(epoch=0, step=1) | {"epoch": None}, row(3)])
    assert [item.epoch for item in found.rows] == [3.0, 3.0]


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(["NaN", "Infinity", "x", None, [], True])
lists = st.lists(numbers, max_size=4)
odd_rows = st.fixed_dictionaries(
    {},
    optional={
        "step": numbers,
        "epoch": numbers,
        "layers": st.lists(st.text(max_size=3), max_size=4) | numbers,
        "gradient": lists,
        "weight": lists,
        "zero": lists,
        "dead": st.dictionaries(st.text(max_size=2), numbers, max_size=2) | numbers,
        "saturated": st.dictionaries(st.text(max_size=2), numbers, max_size=2),
        "inputs": st.dictionaries(st.sampled_from(["mean", "spread"]), numbers, max_size=2),
        "output": st.dictionaries(st.sampled_from(["looks", "loss"]), numbers, max_size=2) | numbers,
        "finite": st.booleans() | numbers,
        "loss": numbers,
    },
)
odd_curves = st.dictionaries(st.sampled_from(["loss", "accuracy", "val_loss", "val_accuracy"]), st.lists(st.floats()))


@given(rows=st.lists(odd_rows, max_size=5), curves=odd_curves)
def test_no_trace_makes_a_detector_raise_and_the_same_one_gets_the_same_answer(rows, curves):
    found = Trace.of_rows(rows, curves=curves)
    assert str(examine(found).to_json()) == str(examine(found).to_json())


@given(st.lists(st.floats(0.6, 1.0), min_size=3, max_size=20))
def test_the_gate_holds_for_every_accuracy_from_0_6_on(accuracies):
    assert not {"vanishing-gradient", "exploding-gradient", "dying-relu", "saturated-activation"} & set(
        kinds(trace(accuracy=accuracies, rows=rows_with(gradient=[0.0, 1e-9, 80.0], dead={"relu 1": 1.0})))
    )


def test_every_detector_keeps_its_promises():
    found = all_detectors()
    assert [detector.kind for detector in found] == list(KINDS)
    for detector in found:
        assert isinstance(detector, AbstractDetector)
        assert detector.remedies
        assert detector.__doc__
        assert detector.lacks(Trace())


@pytest.fixture(params=KINDS)
def own(request):
    return next(detector for detector in all_detectors() if detector.kind == request.param)


class TestOwnDetectors(DetectorContract):
    @pytest.fixture(autouse=True)
    def _given(self, own):
        self._own = own

    def detector(self):
        return self._own


def test_a_metric_that_is_logged_at_every_step_is_judged_by_epoch():
    from isorun.study.records import Series
    from isorun.testing.made_records import make_record

    steps = 600
    noise = [2.3 + (0.4 if step % 2 else -0.4) for step in range(steps)]
    series = {
        "loss": Series(range(steps), range(steps), noise),
        "acc": Series(range(6), range(6), [0.1, 0.3, 0.5, 0.7, 0.8, 0.9]),
    }
    found = Trace.of_record(make_record(series=series))
    assert len(found.loss.values) == 6
    assert kinds(found) == []
    assert isinstance(found.accuracy, Curve)


def logged(places, values, **changes):
    from isorun.study.records import Series
    from isorun.testing.made_records import make_record

    return Trace.of_record(make_record(series={"loss": Series(places, places, values)}, **changes))


def test_the_steps_of_a_program_without_epochs_are_called_steps():
    places = range(100, 3100, 100)
    flat = logged(places, [2.3] * 29 + [math.nan])
    assert flat.clock == "step"
    (broken,) = [problem for problem in examine(flat).problems if problem.kind == "exploding-weights"]
    assert broken.evidence == "the loss is nan in step 3000"
    told = showing.text(Diagnosis("a run", (examine(flat),)))
    assert "exploding-weights (step 3000)" in told
    assert "(epoch" not in told
    slow = examine(logged(places, [2.3] * 30))
    assert "in 30 logged values" in " ".join(problem.evidence for problem in slow.problems)
    assert slow.to_json()["clock"] == "step"


def test_what_a_watched_training_or_the_places_themselves_say_are_epochs_is_called_so():
    assert logged(range(30), [2.3] * 30).clock == "epoch"
    assert logged(range(0, 100, 10), [2.3] * 10).clock == "epoch"
    assert logged(range(0, 3000, 100), [2.3] * 30, watched=(row(3),)).clock == "epoch"
    assert logged(range(30), [2.3] * 30, watched=(row(3) | {"epoch": None},)).clock == "step"
    assert "(epoch 29)" in showing.text(Diagnosis("a run", (examine(logged(range(30), [2.3] * 29 + [math.nan])),)))


def test_rows_are_read_as_they_travel():
    found = WatchedRow.from_row({**row(2), "gradient": ["NaN", 1.0, "Infinity"], "finite": False})
    assert math.isnan(found.gradient[0])
    assert found.gradient[2] == math.inf
    assert not found.finite
    assert dataclasses.is_dataclass(found)


def test_one_training_gets_one_advice_on_its_learning_rate():
    class Found(AbstractDetector):
        def __init__(self, kind, *remedies):
            self.kind, self.remedies = kind, remedies

        def lacks(self, _trace):
            return ""

        def examine(self, _trace):
            return self.found(1.0, "seen")

    slow, dying = (
        Found("slow-convergence", LARGER_RATE, "longer training"),
        Found("dying-relu", "a smaller learning rate"),
    )
    alone, both = (examine(Trace.of_rows(()), asked) for asked in ([slow], [slow, dying]))
    assert alone.problems[0].remedies == (LARGER_RATE, "longer training")
    assert [one.remedies for one in both.problems] == [("longer training",), ("a smaller learning rate",)]
