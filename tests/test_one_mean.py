"""The same runs have the same mean, to the last bit, in whatever asks for it, and the same digits in its text."""

from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import isorun
from isorun.analysis.samples import mean_of
from isorun.checking import check
from isorun.report import fixed, style_for
from isorun.study.design import Study
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore
from isorun.workflow import run

ACCURACIES = st.lists(st.integers(0, 10_000).map(lambda part: part / 10_000), min_size=3, max_size=9, unique=True)
ON_THE_EDGE = [0.8564, 0.8563, 0.8566, 0.8567, 0.8565, 0.8562, 0.8568]


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(values=ACCURACIES, random=st.randoms(use_true_random=False))
@example(values=ON_THE_EDGE, random=None)
def test_summarize_compare_report_and_check_have_one_mean(values, random):
    """The other approach has the same runs in another order."""
    other = values[::-1]
    if random is not None:
        random.shuffle(other)
    runs = {"net": values, "twin": other}
    study = Study(
        "small",
        approaches={name: f"python train.py {name}" for name in runs},
        repeats=len(values),
        metrics={"test_acc": {"direction": "higher"}},
    )
    store = MemoryStore()

    def compute(job):
        return Computed({"test_acc": runs[job.cell.approach][job.cell.repeat]})

    with closing(InstantExecutor(compute)) as executor:
        run(study, store=store, executor=executor, keep_study=True)
        checked = check(study, store, store=MemoryStore(), executor=executor, margin=1.0)
    found = {item.mean for item in isorun.summarize(study, store=store)}
    compared = isorun.compare(study, store=store, a="net", b="twin", by="approach", unit="run")
    found |= {compared.mean_a, compared.mean_b}
    found |= {side.mean for group in checked.groups for side in (group.baseline, group.new)}
    reported = isorun.analyse(study, store=store)
    found |= {group.selections[0].every.metrics["test_acc"].overall.mean for group in reported.groups}
    assert found == {mean_of(values)}


@given(st.integers(0, 9_999).map(lambda part: (2 * part + 1) / 20_000))
def test_a_share_has_the_same_digits_in_percent(mean):
    """Of means that lie on the edge of two texts."""
    percent = style_for("fraction")
    written = float(percent.value(mean, 0.005).replace(",", ""))
    assert written == pytest.approx(100 * float(fixed(mean, 4)), abs=1e-9)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.randoms(use_true_random=False))
def test_a_mean_knows_no_order_and_no_bounds(values, random):
    mean, shuffled = mean_of(values), list(values)
    random.shuffle(shuffled)
    assert mean_of(shuffled) == mean
    assert min(values) <= mean <= max(values)
    assert mean_of([values[0]] * 7) == values[0]
