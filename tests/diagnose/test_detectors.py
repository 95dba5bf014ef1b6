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
    examine,
    own_detectors,
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


@pytest.mark.parametrize(
    ("accuracy", "loss", "convergence"),
    [
        ([0.1] * 8, [math.nan] * 8, "unknown"),  # as Keras tells it; by its accuracy alone it would be slow
        ([0.1] * 8, [], "slow"),
        ([0.1, 0.15, 0.2, 0.2, 0.2, 0.2], [2.3, 2.1, *[math.inf] * 4], "unknown"),
        ([0.5, 0.8, 0.9, 0.9, 0.9, 0.9], [2.3, 0.5, 0.3, *[math.nan] * 3], "normal"),  # it had learned before
        ([], [2.3, 2.2, math.nan, math.nan], "unknown"),
    ],
)
def test_a_training_that_went_to_pieces_is_not_said_to_have_converged(accuracy, loss, convergence):
    found = symptoms_of(Trace.of_rows([], curves={"accuracy": accuracy, "loss": loss}))
    assert found.convergence == convergence
    assert found.weight == ("exploding" if loss else "unknown")


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


PERCENT = {
    "healthy": ([45 + 47 * (1 - math.exp(-e / 4)) + (-1) ** e for e in range(20)], [89.4] * 20, []),
    "close to the training": ([60.0, 80.0, 88.0, 91.9], [70.0, 85.0, 88.0, 89.4], []),
    "at chance": ([10 + 0.3 * (-1) ** e for e in range(20)], [10.0] * 20, ["slow-convergence"]),
    "learned by heart": ([50.0, 80.0, 99.0, 99.5], [50.0, 60.0, 61.0, 60.0], ["overfitting"]),
    "rewards": ([-20.0, -15.0, -18.0, -11.0, -19.0, -10.0], [-20.0, -15.0, -18.0, -11.0, -19.0, -10.0], []),
    "counts of examples": ([5421.0, 8012.0, 9023.0, 9321.0], [42.0, 81.0, 92.0, 13.0], []),
}


@pytest.mark.parametrize("name", PERCENT)
@pytest.mark.parametrize("names", [("accuracy", "val_accuracy"), ("acc", "val_acc"), ("top1", "val_top1")])
def test_accuracies_in_percent_are_read_as_such(name, names):
    own, held_out, expected = PERCENT[name]
    told = dict(zip(names, (own, held_out), strict=True))
    loss = FLAT if name == "at chance" else FALLING
    assert kinds(Trace.of_rows((), curves={"loss": loss, **told})) == expected
    rows = [{"step": e, "epoch": e, "accuracy": a, "val_accuracy": v} for e, (a, v) in enumerate(zip(own, held_out))]  # noqa: B905
    assert kinds(Trace.of_rows(rows, curves={"loss": loss})) == expected


@pytest.mark.parametrize(
    ("own", "held_out", "expected"),
    [
        ([0.5, 0.9], [50.0, 89.0], (0.9, 0.89)),
        ([0.5, 2.0], [0.4, 0.5], (0.02, 0.005)),
        ([0.5, 0.9], [0.4, 0.8], (0.9, 0.8)),
        ([0.5, 1.0000001], [0.4, 0.8], (1.0000001, 0.8)),
        ([99.0, 100.0], [0.4, math.nan], (1.0, 0.4)),
    ],
)
def test_a_unit_is_told_by_the_whole_run(own, held_out, expected):
    found = Trace.of_rows((), curves={"accuracy": own, "val_accuracy": held_out})
    assert (max(found.accuracy.finite), max(found.val_accuracy.finite)) == pytest.approx(expected)


def test_many_small_steps_that_lead_somewhere_are_not_slow():
    steps = [0.05 + 0.005 * epoch for epoch in range(101)]
    assert kinds(Trace.of_rows((), curves={"loss": [4.6 - 0.028 * e for e in range(101)], "accuracy": steps})) == []
    few = [0.05 + 0.002 * epoch for epoch in range(20)]
    assert kinds(Trace.of_rows((), curves={"loss": FALLING, "accuracy": few})) == ["slow-convergence"]


def density(rise, shift=0.0):
    """A likelihood of densities, which falls from -1 to -3 and on held-out data rises from there."""
    own = [shift - 3 + 2 * math.exp(-e / 3) - 0.001 * e for e in range(31)]
    held_out = [shift - 3 + 0.2 * max(0, 10 - e) + (rise if e > 10 else 0.0) for e in range(31)]
    return Trace.of_rows((), curves={"loss": own, "val_loss": held_out})


def test_negative_losses_are_judged_by_what_was_gained():
    assert kinds(density(0.005)) == []
    assert kinds(density(0.005, shift=10.0)) == []
    assert kinds(density(1.5)) == ["overfitting"]
    swings = [1.0, -2.0, *[-3.0, -1.5] * 6]
    assert kinds(Trace.of_rows((), curves={"loss": swings})) == ["oscillation"]
    around_zero = [2.0, 1.0, 0.5, *[0.03, -0.02] * 8]
    assert kinds(Trace.of_rows((), curves={"loss": around_zero})) == []


def test_noise_at_the_floor_of_a_loss_is_neither_oscillation_nor_overfitting():
    floor = [math.exp(-e) + 1e-7 * (1 + e % 2) for e in range(40)]
    assert kinds(Trace.of_rows((), curves={"loss": floor})) == []
    falling = [math.exp(-e) for e in range(40)]
    assert kinds(Trace.of_rows((), curves={"loss": falling, "val_loss": floor})) == []
    assert kinds(Trace.of_rows((), curves={"loss": [1.0, *[0.1, 0.2] * 10]})) == ["oscillation"]


def test_a_loss_with_a_high_floor_that_still_falls_is_that_of_a_training_that_learns():
    frightening = rows_with(dead={"relu 1": 0.8})
    falls = [0.54, 0.43, 0.42, 0.39, 0.38, 0.37, 0.36, 0.355, 0.34, 0.33, 0.32, 0.31]
    assert kinds(Trace.of_rows(frightening, curves={"loss": falls})) == []
    stays = [0.54, 0.43, 0.42, *[0.42] * 9]  # nothing but the mean was learned
    assert kinds(Trace.of_rows(frightening, curves={"loss": stays})) == ["dying-relu"]


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
    found = own_detectors()
    assert [detector.kind for detector in found] == list(KINDS)
    for detector in found:
        assert isinstance(detector, AbstractDetector)
        assert detector.remedies
        assert detector.__doc__
        assert detector.lacks(Trace())


BROUGHT = """
from isorun.diagnose import NOT_TOLD, AbstractDetector

class Late(AbstractDetector):
    "Nothing is told after an hour."
    kind, remedies = "late", ("wait",)

    def lacks(self, trace):
        return "" if trace.loss.values else NOT_TOLD

    def examine(self, trace):
        return self.found(None, f"{len(trace.loss.values)} losses")

class Raising(Late):
    kind = "slow-convergence"

    def lacks(self, trace):
        raise ValueError("no such column")

class Babbling(Late):
    def examine(self, trace):
        return "something is wrong"

class Unmade(Late):
    def __init__(self):
        raise OSError("no room")

class Nameless(Late):
    kind = ""

number = 3
"""


def brought(installed, **points):
    installed("[isorun.detectors]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()), theirs=BROUGHT)


def test_a_detector_of_another_distribution_is_asked_after_isoruns_own(installed):
    brought(installed, late="theirs:Late")
    found = examine(Trace.of_rows([], curves={"loss": FLAT}))
    assert [problem.kind for problem in found.problems] == ["slow-convergence", "late"]
    assert examine(Trace()).unexamined["late"].startswith("no loss")
    assert not examine(Trace()).failed


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("theirs:Absent", "detector 'bad' of the distribution shelf cannot be loaded: theirs:Absent: AttributeError"),
        ("nowhere:Late", "cannot be loaded: nowhere:Late: ModuleNotFoundError"),
        ("theirs:number", "the detector 'bad' failed: TypeError: 3 is no class derived from"),
        ("theirs:Raising", "the detector 'bad' failed: ValueError: no such column"),
        ("theirs:Babbling", "the detector 'bad' failed: TypeError: it answers str instead of Problem"),
        ("theirs:Unmade", "the detector 'bad' failed: OSError: no room"),
        ("theirs:Nameless", "has no kind"),
    ],
)
def test_a_broken_detector_of_another_distribution_is_named_and_all_else_is_told(installed, named, said):
    stuck = Trace.of_rows([], curves={"loss": FLAT})
    alone = examine(stuck)
    brought(installed, bad=named, late="theirs:Late")
    found = examine(stuck)
    assert [problem.kind for problem in found.problems] == ["slow-convergence", "late"]
    assert said in found.unexamined["bad"]
    assert found.failed == {"bad"}
    assert found.symptoms == symptoms_of(stuck) == alone.symptoms
    told = str(showing.view_of(Diagnosis("s", (dataclasses.replace(found, unexamined={}, failed=frozenset()), found))))
    assert "'bad'" in told  # though it failed in one run of two


def test_symptoms_are_told_by_isoruns_own_detectors_whatever_others_call_theirs(installed):
    learns = Trace.of_rows([], curves={"loss": FALLING})
    before = symptoms_of(learns)
    brought(installed, **{"slow-convergence": "theirs:Raising"})
    found = examine(learns)
    assert found.symptoms == symptoms_of(learns) == before
    assert list(found.failed) == ["slow-convergence (by the detector 'slow-convergence')"]
    assert "slow-convergence" not in found.unexamined


@pytest.fixture(params=KINDS)
def own(request):
    return next(detector for detector in own_detectors() if detector.kind == request.param)


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
