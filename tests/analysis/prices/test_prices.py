"""The ladder of a price, over runs that are made up: which runs are wanted, and what they tell."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.prices import AS_IT_IS, LADDER, applicable, rungs
from isorun.analysis.prices.choice import least_seconds, recommended, wanted_runs
from isorun.analysis.prices.price import judged
from isorun.analysis.prices.priced_runs import FEWEST_RUNS, MadeRun, PlannedRun, PricedRuns, made_run, metric_of
from isorun.study.cells import Level
from isorun.study.records import Series
from record_builder import make_cell, make_record

SEED, KERNELS, THREAD, PATH = "seed", "deterministic kernels", "one thread", "one CPU path"
CPU = (SEED, KERNELS, THREAD, PATH)


class World:
    """A training whose structure is known: what each step costs, and which sets of them make its runs the same."""

    def __init__(self, costs, same, *, noise=0.01, drift=0.0, seed=0):
        self.costs, self.same, self.noise, self.drift = costs, same, noise, drift
        self.random = random.Random(seed)
        self.level = 0.0
        self.made = 0

    def run(self, planned):
        self.made += 1
        self.level += self.random.gauss(0, self.drift)
        names = set(planned.names)
        time = 10 * math.prod(self.costs.get(name, 1.0) for name in names)
        time *= math.exp(self.level + self.random.gauss(0, self.noise))
        seed = 1 + planned.block % 2 if SEED in names else None
        same = any(needed <= names for needed in self.same)
        end = f"{seed}" if same else f"{self.made}"
        value = 0.5 + 0.01 * (seed or 0) if same else 0.5 + 0.01 * self.random.gauss(0, 1)
        return MadeRun(time, time, time, seed, end, value)


def priced(world, taken=CPU, most=6, seconds=1e9, runs=None):
    runs = runs or PricedRuns()
    while wanted := wanted_runs(runs, taken, most, seconds):
        assert len(set(wanted)) == len(wanted)
        for planned in wanted:
            assert planned not in runs.made
            runs.made[planned] = world.run(planned)
    return runs


@pytest.mark.parametrize(
    ("costs", "same", "chosen"),
    [
        ({KERNELS: 1.15, THREAD: 2}, [{SEED}], (SEED,)),
        ({KERNELS: 1.15, THREAD: 2}, [{SEED, KERNELS}], (SEED, KERNELS)),
        ({KERNELS: 1.15, THREAD: 2}, [{KERNELS}], (KERNELS,)),  # it seeds itself
        ({KERNELS: 1.15, THREAD: 2}, [set()], ()),
        ({KERNELS: 1.15, THREAD: 2}, [], None),
        ({KERNELS: 1.15, THREAD: 2}, [{SEED, THREAD}], (SEED, THREAD)),  # kernels were taken before, for nothing
        ({KERNELS: 3, THREAD: 1.5}, [{SEED, KERNELS}, {SEED, THREAD}], (SEED, THREAD)),  # the later one is cheaper
        ({KERNELS: 1.1, THREAD: 0.5}, [{SEED}], (SEED, THREAD)),  # faster, and not needed for the bits
        ({KERNELS: 1.1, THREAD: 0.5}, [set()], (THREAD,)),  # nothing is needed, and it is cheaper with one thread
        ({KERNELS: 1.1, THREAD: 1.2, PATH: 1.3}, [{SEED, KERNELS, THREAD, PATH}], CPU),
        ({KERNELS: 1.1, THREAD: 1.2, PATH: 1.3}, [{SEED, PATH}], (SEED, PATH)),
    ],
)
def test_the_cheapest_set_of_a_known_training_is_found(costs, same, chosen):
    runs = priced(World(costs, same))
    assert recommended(runs, CPU)[:2] == (chosen, True)
    base, steps, _ = judged(runs, CPU)
    assert [step.name for step in steps] == list(CPU)
    for step in steps:
        true = math.prod(costs.get(name, 1.0) for name in step.set.names)
        assert step.set.time_ratio == pytest.approx(true, rel=0.05)
        assert step.added_ratio == pytest.approx(costs.get(step.name, 1.0), rel=0.05)
        assert step.set.units == 6
        assert step.set.runs >= 6
    assert base.time_ratio == 1
    assert base.interval95 is None


def test_each_set_has_its_spread_and_what_it_removed():
    runs = priced(World({}, [{SEED, KERNELS}]))
    base, (seed, kernels, *_), _ = judged(runs, CPU)
    assert base.sd > 0
    assert base.sd_interval95[0] < base.sd < base.sd_interval95[1]
    assert base.distinct == base.runs
    assert seed.set.distinct == 3
    assert seed.set.identical is False
    assert seed.set.differing_at_most is None
    assert (kernels.set.sd, kernels.set.variance_removed, kernels.set.distinct) == (0.0, 1.0, 1)
    assert kernels.set.seeds == 2
    assert kernels.set.pairs == 3
    assert kernels.set.differing_at_most == pytest.approx(1 - 0.05 ** (1 / 3))
    assert set(kernels.to_json()) >= {"name", "time_ratio", "interval95", "sd", "distinct"}


def test_runs_take_turns_in_blocks_in_which_every_set_runs_once():
    runs, orders = PricedRuns(), []
    world = World({}, [{SEED}])
    while wanted := wanted_runs(runs, CPU, 4, 1e9):
        orders.append([run.names for run in wanted])
        runs.made.update({run: world.run(run) for run in wanted})
    assert orders[0] == [AS_IT_IS], "the first run says what can be done here, and is not measured"
    assert all(set(order) == set(rungs(CPU)) for order in orders[1:5])
    assert len(set(map(tuple, orders[1:5]))) > 1, "in random order"
    assert 0 not in runs.of(AS_IT_IS)


def test_what_was_interrupted_goes_on_where_it_was():
    whole = priced(World({KERNELS: 1.2}, [{SEED, KERNELS}]))
    for cut in (1, 7, 20, len(whole.made) - 1):
        part = PricedRuns(dict(list(whole.made.items())[:cut]))
        assert set(priced(World({KERNELS: 1.2}, [{SEED, KERNELS}]), runs=part).made) == set(whole.made)


def test_a_set_whose_runs_differ_is_not_tried_further():
    runs = priced(World({KERNELS: 1.3}, [{SEED, KERNELS}]))
    tried = {names: len(runs.of(names)) for names in {run.names for run in runs.made} - set(rungs(CPU))}
    assert set(tried) == {(KERNELS,), (SEED, THREAD), (SEED, PATH)}
    assert all(number < 6 for number in tried.values()), "two different ends say enough"


def test_no_set_is_tried_without_a_step_that_is_known_to_be_needed():
    runs = priced(World({KERNELS: 1.3}, [{SEED, KERNELS}]), runs=PricedRuns(needed=(SEED,)))
    assert recommended(runs, CPU)[:2] == ((SEED, KERNELS), True)
    assert all(SEED in run.names for run in runs.made if run.names)


def test_what_is_thought_to_be_needed_is_left_out_where_the_training_as_it_is_does_without():
    runs = priced(World({THREAD: 0.5}, [set()]), runs=PricedRuns(needed=(SEED,)))
    assert recommended(runs, CPU)[:2] == ((THREAD,), True)


def test_nothing_has_to_be_done_where_what_is_faster_is_not_decided():
    """Two runs of a smaller set are there, too few to say that it does: nothing is needed all the same."""
    whole = priced(World({THREAD: 0.5}, [set()]))
    runs = PricedRuns({run: made for run, made in whole.made.items() if run.block <= 102})
    found = recommended(runs, CPU)
    assert (found.names, found.whole, found.undecided) == (AS_IT_IS, False, None)


def test_a_step_is_not_taken_for_a_time_that_chance_gives():
    """Five rungs of the same time: the fastest of them is clearly faster in a few of a hundred measurements at most."""
    worlds = (priced(World({}, [set()], noise=0.1, seed=seed)) for seed in range(100))
    assert sum(recommended(runs, CPU).names != AS_IT_IS for runs in worlds) <= 8


def test_blocks_that_are_at_hand_cost_nothing():
    whole = priced(World({}, [{SEED, KERNELS}]))
    again = PricedRuns()
    while wanted := wanted_runs(again, CPU, 6, 1.0, lambda runs: any(run in whole.made for run in runs)):
        again.made.update({run: whole.made[run] for run in wanted})
    assert again.made == whole.made


def test_no_block_is_begun_for_which_there_is_no_time_but_the_least_is_measured():
    runs = priced(World({}, [{SEED, KERNELS}]), most=20, seconds=300)
    assert {len(runs.of(names)) for names in rungs(CPU)} == {5}
    assert runs.spent < 330
    chosen, whole, *_ = recommended(runs, CPU)
    assert chosen == (SEED, KERNELS)
    assert not whole
    least = priced(World({}, []), seconds=1)
    assert {len(least.of(names)) for names in rungs(CPU)} == {FEWEST_RUNS}


def test_a_set_that_cannot_be_run_is_left_out():
    runs = PricedRuns(failed={(SEED, KERNELS): "failed: exit code 1"})
    priced(World({}, [{SEED, THREAD}]), runs=runs)
    assert not runs.of((SEED, KERNELS))
    assert recommended(runs, CPU)[0] == (SEED, THREAD)


def test_nothing_is_said_of_bits_where_no_run_tells_them():
    runs = PricedRuns({PlannedRun(names, block): MadeRun(1.0) for names in rungs(CPU) for block in range(7)})
    assert recommended(runs, CPU)[:2] == (None, True)
    base, *_ = judged(runs, CPU)
    assert (base.identical, base.distinct, base.sd) == (None, None, None)


@settings(max_examples=30, deadline=None)
@given(st.sets(st.sets(st.sampled_from(CPU)).map(frozenset)), st.integers(0, 99))
def test_what_is_recommended_has_identical_runs(same, seed):
    runs = priced(World({KERNELS: 1.2, THREAD: 0.9, PATH: 1.1}, same, seed=seed), most=6)
    chosen, *_ = recommended(runs, CPU)
    if chosen is None:
        assert not any(needed <= set(names) for needed in same for names in rungs(CPU))
    else:
        assert any(needed <= set(chosen) for needed in same)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [4, 6, 12])
@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_intervals_cover_what_a_step_really_costs(runs, drift):
    """Fake durations; with a drift the times of a set wander by far more than what is measured."""
    hits = 0
    for seed in range(600):
        world = World({SEED: 1.15}, [], noise=0.05, drift=drift / 3, seed=seed)
        _, (step,), _ = judged(priced(world, taken=(SEED,), most=runs), (SEED,))
        hits += step.set.interval95[0] <= 1.15 <= step.set.interval95[1]
    assert 0.92 <= hits / 600 <= 0.98


@pytest.mark.slow
def test_at_most_so_many_pairs_differ():
    """Runs that end in one of several ways: the bound is broken in at most 5 % of measurements."""
    generator = np.random.default_rng(1)
    for chances in ([0.5, 0.5], [0.8, 0.2], [0.6] + [0.01] * 40, [0.9, 0.1]):
        differ, broken = 1 - sum(chance**2 for chance in chances), 0
        for _ in range(1000):
            ends = generator.choice(len(chances), 6, p=np.array(chances) / sum(chances))
            made = {PlannedRun((SEED,), 1 + n): MadeRun(1.0, seed=1, bits=str(end)) for n, end in enumerate(ends)}
            made |= {PlannedRun(AS_IT_IS, 1 + n): MadeRun(1.0) for n in range(6)}
            _, (step,), _ = judged(PricedRuns(made), (SEED,))
            bound = step.set.differing_at_most
            broken += bound is not None and bound < differ
        assert broken / 1000 <= 0.06


def ends(**by_set):
    """Runs with two seeds in turn; a letter for each run's end."""
    named = {"as_it_is": AS_IT_IS, "seed": CPU[:1], "kernels": CPU[:2], "thread": CPU[:3], "path": CPU}
    return PricedRuns(
        {
            PlannedRun(named[name], 1 + n): MadeRun(1.0, 1.0, 1.0, n % 2 if named[name] else None, f"{n % 2}{end}")
            for name, letters in by_set.items()
            for n, end in enumerate(letters)
        },
        needed=(SEED,),
    )


def test_a_set_is_not_recommended_where_one_with_more_steps_differs():
    runs = ends(as_it_is="abcdef", seed="aaaaaa", kernels="aaaaaa", thread="aaabaa", path="aaaaaa")
    assert runs.identical((SEED,))
    assert runs.stands((SEED,)) is False
    found = recommended(runs, CPU)
    assert found.names is None, "a race that nothing closes: the last rung is the same by luck"
    assert found.undecided.names == CPU
    assert recommended(ends(seed="aaaaaa", kernels="aaaaaa", thread="aaaaaa", path="aaaaaa"), CPU).names == (SEED,)


def test_a_step_is_needed_only_on_evidence():
    once = recommended(ends(seed="aaaaab", kernels="aaaaaa", thread="aaaaaa", path="aaaaaa"), CPU)
    assert once.names is None
    assert once.undecided[1:] == ((SEED,), 3.0), "one odd run is not told apart from seed alone"
    (need,) = once.needs
    assert (need.odd, need.runs_without, need.runs_with) == (1, 6, 6)
    assert need.p == pytest.approx(0.25, abs=0.001), "the largest x(1 - x)"
    always = recommended(ends(seed="abcdef", kernels="aaaaaa", thread="aaaaaa", path="aaaaaa"), CPU)
    assert always.names == (SEED, KERNELS)
    assert always.needs[0].p < 0.01


def test_the_bound_counts_the_sets_among_which_one_was_chosen():
    _, (step,), _ = judged(ends(as_it_is="abcdef", seed="aaaaaa"), (SEED,))
    assert step.set.differing_at_most == pytest.approx(1 - 0.05 ** (1 / 3))
    assert step.set.differing_among(5) == pytest.approx(1 - 0.01 ** (1 / 3))


def test_the_variance_removed_has_an_interval():
    def spread(*values, names):
        seed = 1 if names else None
        return {PlannedRun(names, n): MadeRun(1.0, 1.0, 1.0, seed, f"{v}", v) for n, v in enumerate(values, start=1)}

    base = spread(1.0, 2.0, 3.0, 4.0, names=AS_IT_IS)
    _, (step,), _ = judged(PricedRuns(base | spread(1.0, 1.0, 1.0, 2.5, names=(SEED,))), (SEED,))
    low, high = step.set.variance_removed_interval95
    assert low < 0 < step.set.variance_removed < high < 1, "of four runs nothing is told"
    ratio = 1 - step.set.variance_removed
    assert (1 - low) / ratio == pytest.approx(15.44, abs=0.01), "F of 3 and 3"
    _, (none,), _ = judged(PricedRuns(base | spread(1.0, 1.0, 1.0, 1.0, names=(SEED,))), (SEED,))
    assert none.set.variance_removed == 1
    assert none.set.variance_removed_interval95 == (pytest.approx(0.05 ** (1 / 2)), 1.0)


def answered(**switches):
    return make_record(make_cell(), environment={"requested": {}, "effective": {"switches": switches}})


def test_steps_that_cannot_be_taken_are_named_with_the_reason():
    path = {"cpu": "avx2"}
    taken, left = applicable(answered(), path)
    assert taken == (SEED,)
    assert [item.name for item in left] == [step.name for step in LADDER[1:]]
    cpu = {"kernels": "free", "threads": "2", "cpu": "avx512", "device": "cpu"}
    taken, left = applicable(answered(torch=cpu), path)
    assert taken == CPU
    assert {item.name: item.why for item in left} == dict.fromkeys(
        ("no autotune", "no TF32"), "no library of it has started a GPU"
    )
    gpu = {**cpu, "cudnn": "on", "tf32": "in part", "threads": "1", "cpu": "avx2"}
    taken, left = applicable(answered(torch=gpu), path)
    assert taken == (SEED, KERNELS, "no TF32")
    assert "it is so already: torch has cudnn = on" in {item.why for item in left}
    assert PATH in applicable(answered(torch=gpu), {"cpu": "avx2", "mkl": "avx2-strict"})[0], "MKL is asked for, too"
    assert "no autotune" in applicable(answered(torch={**gpu, "cudnn": "benchmark"}), path)[0]


def test_what_a_record_says_of_a_run():
    work = {"seconds": 5.0, "cpu_seconds": 9.0, "steps": 50, "cut": True}
    work["first_step"] = {"seconds": 2.0, "cpu_seconds": 3.0}
    cell = make_cell(Level.FIXED_SEED, seed=2)

    def record(**changes):
        environment = {"requested": {}, "effective": {"work": changes.pop("work", {})}}
        given = {"results": {}, "series": {}, "digests": {}, "wall_seconds": 8.0, "startup_seconds": 1.0}
        return make_record(cell, environment=environment, **{**given, **changes})

    cut = made_run(record(work=work, digests={"weights.initial": "a", "weights.final": "b"}), "acc")
    assert (cut.seconds, cut.cpu_seconds, cut.wall_seconds, cut.seed) == (3.0, 6.0, 8.0, 2)
    assert (cut.bits, cut.value) == (("weights", (("weights.final", "b"),)), None)
    whole = made_run(record(work={**work, "cut": False}), "acc")
    assert (whole.seconds, whole.cpu_seconds, whole.bits, whole.step_seconds) == (5.0, 9.0, None, 3.0)
    told = made_run(record(series={"acc": Series((1, 2), (1, 2), (0.5, 0.75))}, results={"time": 3.2}), "acc")
    assert (told.seconds, told.cpu_seconds, told.value) == (7.0, None, 0.75)
    again = made_run(record(series={"acc": Series((1, 2), (1, 2), (0.5, 0.75))}, results={"time": 3.3}), "acc")
    assert told.bits == again.bits is not None, "a time that is told is no difference"
    other = made_run(record(series={"acc": Series((1, 2), (1, 2), (0.5, 0.75))}, results={"loss": 3.3}), "acc")
    assert told.bits != other.bits, "not the metric alone is compared"
    assert metric_of([record(results={"loss": 1.0, "acc": 0.5})]) == "acc"
    assert metric_of([record()], "loss") == "loss"


def test_what_starting_takes_counts_once_every_set_has_run():
    first = {PlannedRun((), 0): MadeRun(seconds=2.0, wall_seconds=60.0)}
    assert least_seconds(PricedRuns(first), CPU) == 4 * len(rungs(CPU)) * 2.0, "a first start may be slow but once"
    block = {PlannedRun(names, 1): MadeRun(seconds=2.0, wall_seconds=10.0) for names in rungs(CPU)}
    assert least_seconds(PricedRuns({**first, **block}), CPU) == 4 * len(rungs(CPU)) * 10.0
    one, two = (PricedRuns({**first, **dict(list(block.items())[:number])}) for number in (1, 2))
    assert least_seconds(one, CPU) == least_seconds(PricedRuns(first), CPU), "one run may have been held up"
    assert least_seconds(two, CPU) == 4 * len(rungs(CPU)) * 10.0, "the others are not quicker"
