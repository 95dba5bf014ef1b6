"""Pricing a training: the runs that are made, what is used again, and what is said."""

import importlib.util
import itertools
import sys
from contextlib import closing
from dataclasses import replace

import pytest

import isorun
from isorun import pricing
from isorun.analysis.prices import LADDER
from isorun.errors import ExecutionError, InputError
from isorun.study.cells import Level
from isorun.study.design import Environment, Study
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.worker import frameworks
from isorun.worker.levels import THREAD_COUNTS, level_environment

HAS_TORCH = importlib.util.find_spec("torch") is not None
ANSWERS = {"torch": {"kernels": "free", "threads": "2", "cpu": "avx512"}}
COMMAND = ["python", "train.py"]


class Trainings(InstantExecutor):
    """Trainings of a known structure: kernels take 1.5 times the time, and without them runs of a seed differ."""

    def __init__(self, **left):
        self.jobs = []
        self.left = {"digest": True, "metric": True, "answers": ANSWERS, "packages": {}, "wall": 10.0, **left}
        super().__init__(self.compute)

    def compute(self, job):
        self.jobs.append(job)
        if len(self.jobs) > self.left.get("most", 1000):
            raise ExecutionError("the power is gone")
        if job.environment.switches.get("kernels") in self.left.get("fails", ()):
            return Computed(exit_code=1)
        fixed = job.environment.switches.get("kernels") == "deterministic"
        rare = self.left.get("rarely") and (job.environment.switches or job.environment.env or job.cell.repeat != 3)
        same = (fixed or rare) and job.cell.level is Level.FIXED_SEED
        end = f"{job.seed}" if same else f"{job.seed} {len(self.jobs)}"
        wall = self.left["wall"] * (1.5 if fixed else 1) * (1 + 0.001 * (len(self.jobs) % 3))
        results = {"acc": 0.5 if same else 0.5 + 0.001 * len(self.jobs)} if self.left["metric"] else {}
        digests = {"weights.final": end} if self.left["digest"] else {}
        return Computed(results=results, digests=digests, wall_seconds=wall)

    def _record(self, job, computed):
        answers, packages = self.left["answers"], self.left["packages"]
        if job.environment.env.get("OMP_NUM_THREADS") == "1":
            answers = self.left.get("with_steps", answers)
        inside = {"switches": answers, "packages": packages, "frameworks": list(answers)}
        if "work" in self.left:
            inside["work"] = {"seconds": self.left["work"], "cpu_seconds": self.left["work"]}
            if "work_steps" in self.left:
                inside["work"] |= {"steps": self.left["work_steps"], "cut": False}
        return replace(super()._record(job, computed), environment={"requested": {}, "effective": inside})


def priced(folder, executor=None, **words):
    with closing(executor or Trainings()) as trainings:
        given = {"seconds": 1e6, **words}
        return isorun.price(COMMAND, folder=folder, store=folder / "store", executor=trainings, **given)


def test_a_training_of_known_structure(tmp_path):
    found = priced(tmp_path)
    assert [step.name for step in found.steps] == ["seed", "deterministic kernels", "one thread", "one CPU path"]
    assert found.recommended == ("seed", "deterministic kernels")
    assert found.recommended_set.time_ratio == pytest.approx(1.5, rel=0.01)
    assert found.by_weights
    assert (found.as_it_is.distinct, found.steps[0].set.distinct, found.steps[1].set.distinct) == (
        *(found.as_it_is.runs, 3),
        1,
    )
    assert [item.name for item in found.not_applicable] == ["no autotune", "no TF32"]
    assert found.study_lines == ('levels = ["fixed-seed"]', "[environments.default]", 'kernels = "deterministic"')
    assert found.variables == {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    told = found.to_json()
    assert told["recommended"] == ["seed", "deterministic kernels"]
    assert all({"name", "time_ratio", "interval95", "sd", "distinct"} <= set(step) for step in told["steps"])
    text = str(found)
    assert text.startswith("Cheapest set that gives bit-identical runs here: seed + deterministic kernels, at 1.5")
    assert "(3 pairs of equal seeds), so at most 81 % of pairs differ (95 %, chosen among 7 sets)" in " ".join(
        text.split()
    )
    assert "deterministic kernels is needed: without it 5 of 9 runs ended unlike the others" in " ".join(text.split())


def test_what_chance_may_have_done_is_not_recommended(tmp_path):
    found = priced(tmp_path, Trainings(rarely=True))
    assert found.recommended is None
    assert found.undecided.to_json()["not_told_apart_from"] == ["seed"]
    text = " ".join(str(found).split())
    assert "not told apart from seed alone: 3 pairs" in text
    told = {item.code: item for item in found.conditions}
    assert (
        "without one thread 1 of 12 runs ended unlike the others, with it 0 of 12 (p = 0.25)"
        in told["not-told-apart"].message
    )
    assert "--runs 12" in told["not-told-apart"].next_step


def test_the_thread_goes_on_with_two_runs(tmp_path):
    found = priced(tmp_path)
    sets = [found.as_it_is, *(step.set for step in found.steps), *found.tried]
    assert all(len(set(item.run_ids)) == item.runs for item in sets)
    words = f"isorun env diff {found.as_it_is.run_ids[0]} {found.recommended_set.run_ids[0]} --store {tmp_path}/store"
    assert [words] == found.to_json()["next"]
    assert "isorun env diff" in str(found)
    never = priced(tmp_path / "never", Trainings(fails=("deterministic",)))
    assert never.recommended is None
    one, other = never.steps[-1].set.unlike
    assert f"isorun env diff {one} {other}" in never.next_steps[0]


def test_the_study_lines_declare_what_was_measured(tmp_path):
    import tomllib

    found = priced(tmp_path)
    lines = tomllib.loads("\n".join(found.study_lines))
    study = Study("s", approaches={"a": "python train.py"}, **lines)
    assert study.environments["default"].switches == {"kernels": "deterministic"}
    assert study.levels == (Level.FIXED_SEED,)


def test_typed_again_nothing_is_run_again_and_what_was_killed_goes_on(tmp_path):
    with pytest.raises(ExecutionError, match="the power is gone"):
        priced(tmp_path, Trainings(most=9))
    rest = Trainings()
    whole = priced(tmp_path, rest)
    again = Trainings()
    assert priced(tmp_path, again).to_json() == whole.to_json()
    assert again.jobs == []
    alone = Trainings()
    priced(tmp_path / "alone", alone)
    assert len(alone.jobs) == len(rest.jobs) + 9
    more = Trainings()
    assert priced(tmp_path, more, runs=8).steps[0].set.runs == 8
    assert 0 < len(more.jobs) < len(alone.jobs)


def test_runs_of_other_code_are_not_used_again(tmp_path, monkeypatch):
    first = Trainings()
    priced(tmp_path, first, runs=4)
    monkeypatch.setattr(
        "isorun.pricing.changes_since", lambda _, made: ["train.py"] if made[0].cell.repeat < 1000 else []
    )
    edited = Trainings()
    priced(tmp_path, edited, runs=4)
    assert len(edited.jobs) == len(first.jobs)


def test_runs_with_other_packages_are_not_used_again(tmp_path):
    with pytest.raises(ExecutionError):
        priced(tmp_path, Trainings(most=9, packages={"torch": "2.0"}))
    newer = Trainings(packages={"torch": "2.1"})
    found = priced(tmp_path, newer, runs=4)
    assert found.as_it_is.runs >= 4
    whole = Trainings()
    priced(tmp_path / "alone", whole, runs=4)
    assert len(newer.jobs) >= len(whole.jobs), "but for the run that showed it, all were made again"


@pytest.mark.parametrize("flags", [frozenset({"avx2"}), frozenset()])
@pytest.mark.parametrize("intel", [True, False])
def test_one_cpu_path_asks_for_what_the_deterministic_level_asks_for(monkeypatch, flags, intel):
    monkeypatch.setattr(pricing, "this_cpu_flags", lambda: flags)
    path = pricing._one_cpu_path(intel=intel)
    switches, variables = pricing._requested(["one CPU path"], path)
    asked = Environment("", switches=switches, env=variables).variables
    of_the_level = level_environment("deterministic", 1, 1, {}, cpu_flags=flags)
    wanted = {name: of_the_level[name] for name in ("MKL_CBWR", "ONEDNN_MAX_CPU_ISA") if name in of_the_level}
    assert wanted == {name: asked[name] for name in wanted}
    assert ("mkl" in switches) == intel, "elsewhere nobody answers"
    lines = list(pricing._study_lines(("one CPU path",), Environment("", switches=switches), path))
    assert any("MKL_CBWR" in text for text in lines) == (not intel)


def test_one_thread_asks_every_framework():
    (step,) = (step for step in LADDER if step.name == "one thread")
    own = {name for framework in frameworks.every() for name in framework.thread_variables}
    assert "TF_NUM_INTRAOP_THREADS" in own
    assert step.variables == dict.fromkeys({*THREAD_COUNTS, *own}, "1")


def test_what_is_missing_is_said_with_how_to_get_it(tmp_path):
    by_metric = priced(tmp_path / "1", Trainings(digest=False))
    assert "the same numbers (acc)" in {item.code: item for item in by_metric.conditions}["judged-by-numbers"].message
    assert str(by_metric).startswith("Cheapest set that gives runs with the same numbers here")
    assert (by_metric.to_json()["judged_by"], by_metric.to_json()["compared"]) == ("numbers", ["acc"])
    neither = priced(tmp_path / "2", Trainings(digest=False, metric=False))
    told = {item.code: item for item in neither.conditions}
    assert "isorun.result(weights=model)" in told["nothing-to-compare"].next_step
    assert "isorun.log" in told["no-metric"].next_step
    assert neither.recommended is None
    assert neither.steps[1].set.time_ratio == pytest.approx(1.5, rel=0.01), "the time is known all the same"
    assert "is not known" in str(neither).splitlines()[0]


class Unseeded(InstantExecutor):
    """A training that draws its loss, and ends with the same accuracy all the same; a seed holds the loss."""

    def __init__(self, *, draws=True):
        self.drawn = itertools.count()
        self.draws = draws
        super().__init__(self.compute)

    def compute(self, job):
        held = job.cell.level is Level.FIXED_SEED or not self.draws
        loss = 0.5 + (0 if held else next(self.drawn))
        return Computed(results={"test_acc": 0.5, "loss": loss, "train_seconds": float(next(self.drawn))})


def test_numbers_beside_the_metric_tell_runs_apart_and_times_do_not(tmp_path):
    found = priced(tmp_path, Unseeded())
    assert (found.metric, found.as_it_is.identical) == ("test_acc", False)
    assert found.recommended == ("seed",)
    assert found.compared == ("loss", "test_acc")


def test_equal_runs_without_a_seed_are_no_pairs_of_equal_seeds(tmp_path):
    text = " ".join(str(priced(tmp_path, Unseeded(draws=False))).split())
    assert "The training as it is gives runs with the same numbers here: no step has to be taken." in text
    assert "came to one end, and no seed was fixed from outside (3 pairs)" in text
    assert "equal seeds" not in text


def test_nothing_that_answers_leaves_the_seed_alone(tmp_path):
    found = priced(tmp_path, Trainings(answers={}))
    assert [step.name for step in found.steps] == ["seed"]
    assert found.recommended is None
    told = {item.code: item for item in found.conditions}
    assert "isorun audit -- python train.py" in told["still-differs"].next_step


def test_a_step_that_cannot_be_run_is_named_and_the_others_go_on(tmp_path):
    found = priced(tmp_path, Trainings(fails=("deterministic",)))
    assert [step.name for step in found.steps] == ["seed"], "those above it have it in them, too"
    why = {item.name: item.why for item in found.not_applicable}
    assert why["deterministic kernels"].startswith("its run failed")
    assert found.recommended is None


def test_a_training_that_fails_or_takes_too_long_is_one_message(tmp_path):
    with pytest.raises(ExecutionError, match=r"does not run as it is[\s\S]*isorun run -- python train.py"):
        priced(tmp_path / "1", Trainings(fails=(None,)))
    with pytest.raises(InputError, match=r"a run takes \d+ s[\s\S]*--steps 200[\s\S]*--seconds"):
        priced(tmp_path / "2", Trainings(wall=60_000))


def test_what_was_measured_is_told_whatever_time_there_is_now(tmp_path):
    whole = priced(tmp_path)
    again = Trainings()
    assert priced(tmp_path, again, seconds=1).to_json() == whole.to_json()
    assert again.jobs == []


def test_too_little_time_is_said_from_the_first_runs(tmp_path):
    """A run works for a second and takes ten: the first one may be slow but once, the second and third tell."""
    trainings = Trainings(work=1.0)
    with pytest.raises(InputError, match=r"a run takes 10 s[\s\S]*--steps 200[\s\S]*--seconds"):
        priced(tmp_path, trainings, seconds=100)
    assert len(trainings.jobs) == 3


def test_too_little_time_after_a_whole_block_leaves_what_was_measured(tmp_path):
    with pytest.raises(ExecutionError, match="the power is gone"):
        priced(tmp_path, Trainings(most=11))  # the first run, and two blocks of five
    trainings = Trainings()
    found = priced(tmp_path, trainings, seconds=100)
    assert trainings.jobs == []
    assert (found.recommended, found.steps[0].set.runs, found.steps[0].set.identical) == (None, 2, None)
    assert found.steps[1].set.time_ratio == pytest.approx(1.5, rel=0.01)
    told = {item.code: item for item in found.conditions}
    assert "what 2 of each tell is shown, and decides nothing" in told["too-little-time"].message
    assert "--seconds 3" in told["too-little-time"].next_step
    assert "still-differs" not in told
    assert "is not known: too few runs were made" in str(found).splitlines()[0]


def test_the_end_of_the_time_is_told_with_the_seconds_that_are_enough(tmp_path):
    """Five sets of 10 to 15 s: four blocks take 280 s, six with the first run 400 s."""
    found = priced(tmp_path, seconds=300)
    assert (found.stopped, found.steps[0].set.runs) == ("its --seconds are spent", 4)
    told = {item.code: item for item in found.conditions}
    assert told["out-of-time"].message == "4 of 6 runs of each set were made, then --seconds 300 were spent"
    text = " ".join(str(found).split())
    assert "Not finished (its --seconds are spent): " in text
    assert "and the same command with more of them goes on from there" in text
    words = told["out-of-time"].next_step.split()
    enough = float(words[words.index("--seconds") + 1].rstrip(":"))
    again = priced(tmp_path, seconds=enough)
    assert again.steps[0].set.runs == 6
    assert again.stopped == ""
    assert "out-of-time" not in {item.code for item in again.conditions}


class Uneven(Trainings):
    """Trainings whose times vary much."""

    def compute(self, job):
        made = super().compute(job)
        return replace(made, wall_seconds=made.wall_seconds * (1 + len(self.jobs) % 7))


def test_more_runs_are_asked_for_with_the_time_that_they_take(tmp_path):
    found = {item.code: item for item in priced(tmp_path / "1", Uneven(), seconds=1800).conditions}
    advice = found["wide-interval"].next_step
    assert "the same command with --runs 12 --seconds " in advice
    assert float(advice.split("--seconds ")[1].split(",")[0]) > 1800
    plenty = {item.code: item for item in priced(tmp_path / "2", Uneven()).conditions}
    assert "the same command with --runs 12, or" in plenty["wide-interval"].next_step


def test_steps_are_spoken_of_only_where_they_are_seen(tmp_path):
    with pytest.raises(InputError, match=r"hint|next") as refused:
        priced(tmp_path / "1", Trainings(work=60_000.0, work_steps=0))
    assert "--seconds" in str(refused.value)
    assert "--steps" not in str(refused.value)
    found = priced(tmp_path / "2", Trainings(work=1.0, work_steps=0), steps=5)
    told = {item.code: item for item in found.conditions}
    assert told["not-cut"].next_step.startswith("leave --steps out: no step of an optimizer is seen here")
    assert found.to_json()["cut_after_steps"] is None
    assert "steps 2 to" not in str(found)
    assert "sd: of acc, between runs" in str(found)


BESIDE = {"numpy": {"threads": "1", "cpu": "avx2"}}


def test_what_nobody_says_is_named_and_what_only_price_asked_for_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(pricing, "this_cpu_flags", lambda: frozenset({"avx2"}))
    answers = {"numpy": {"threads": "2", "cpu": "avx512"}, "tensorflow": {"kernels": "free", "threads": "2"}}
    found = priced(tmp_path, Trainings(answers=answers, with_steps={**BESIDE, "tensorflow": {"threads": "2"}}))
    told = [(item.code, item.message) for item in found.conditions]
    assert (
        "factor-without-effect",
        "one thread was asked for, and did not come about: tensorflow has threads = 2",
    ) in told
    silent = "whether tensorflow followed one CPU path is not known: only numpy says what it has"
    assert ("step-not-told", silent) in told
    assert not [message for _, message in told if "mkl" in message], "nobody but price asked for that"


def test_what_the_command_itself_asks_for_in_vain_is_told(tmp_path):
    given = Study("s", approaches={"a": COMMAND}, environments={"default": {"onednn": "off"}}, folder=tmp_path)
    with closing(Trainings()) as trainings:
        found = isorun.price(given, store=tmp_path / "store", executor=trainings, seconds=1e6)
    told = [item.message for item in found.conditions if item.code == "factor-without-effect"]
    assert any(message.startswith("onednn = off was asked for") for message in told)


class Threaded(Trainings):
    """Trainings whose runs are always the same, and take half the time with one thread."""

    def compute(self, job):
        made = super().compute(job)
        wall = (5.0 if job.environment.env.get("OMP_NUM_THREADS") == "1" else 10.0) + 0.01 * (len(self.jobs) % 3)
        return replace(made, digests={"weights.final": "same"}, results={"acc": 0.5}, wall_seconds=wall)


def test_what_needs_nothing_may_be_cheaper_with_a_step(tmp_path):
    found = priced(tmp_path, Threaded())
    assert found.as_it_is.identical
    assert found.recommended == ("one thread",)
    text = " ".join(str(found).split())
    assert "no step has to be taken. Cheapest is one thread all the same, at 0.5" in text
    alone = replace(found, recommended=())
    assert "no step has to be taken. With " in " ".join(str(alone).split())


@pytest.mark.parametrize(("words", "why"), [({"runs": 3}, "4 to 99"), ({"steps": 1}, "the first one is not timed")])
def test_what_cannot_be_measured_is_refused_before_a_run(tmp_path, words, why):
    with pytest.raises(InputError, match=why):
        priced(tmp_path, **words)
    assert not (tmp_path / "store").exists()


def test_two_commands_are_not_priced_at_once(tmp_path):
    study = Study("s", approaches={"a": "python a.py", "b": "python b.py"}, folder=tmp_path)
    with pytest.raises(InputError, match="one command in one environment"):
        isorun.price(study)


KNOWN = """
import os, random, time
import numpy
ONE_THREAD = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
ONE_PATH = "OPENBLAS_CORETYPE" in os.environ
weights = numpy.random.randn(40, 40)
time.sleep(SLEEPS)
if RACES:
    weights += time.time_ns() % 1000 * 1e-9
import isorun
isorun.result(loss=weights.sum(), weights=weights)
"""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(
    ("sleeps", "races", "recommended", "ratio"),
    [
        ("1.6 if ONE_THREAD else 0.8", "False", ("seed",), 1),  # a step that costs, and is not needed
        ("1.6 if ONE_THREAD else 0.8", "not ONE_THREAD", ("seed", "one thread"), 2),  # and is needed
        ("2.4 if ONE_THREAD else 0.8", "not (ONE_THREAD or ONE_PATH)", ("seed", "one CPU path"), 1),  # a cheaper one
        ("0.8", "True", None, 1),  # a training that reads the time
    ],
)
def test_real_trainings_of_known_structure(tmp_path, sleeps, races, recommended, ratio):
    (tmp_path / "train.py").write_text(KNOWN.replace("SLEEPS", sleeps).replace("RACES", races))
    found = isorun.price([sys.executable, "train.py"], folder=tmp_path, runs=6, seconds=1e5)
    assert [step.name for step in found.steps] == ["seed", "one thread", "one CPU path"]
    assert found.recommended == recommended
    assert found.by_weights
    if recommended is not None:
        assert found.recommended_set.time_ratio == pytest.approx(ratio, rel=0.25)


TORCH = """
import time
import torch
x, y = torch.randn(64, 16), torch.randint(0, 2, (64,))
model = torch.nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(60):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    fixed = torch.are_deterministic_algorithms_enabled()
    time.sleep(0.08 if fixed else 0.04)
    if not fixed:
        with torch.no_grad():
            model.bias += time.time_ns() % 1000 * 1e-9
"""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_a_real_training_that_needs_deterministic_kernels(tmp_path, monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # what is measured is how long it sleeps
        monkeypatch.setenv(name, "1")
    (tmp_path / "train.py").write_text(TORCH)
    found = isorun.price([sys.executable, "train.py"], folder=tmp_path, runs=6, seconds=1e5, steps=40)
    assert found.recommended == ("seed", "deterministic kernels")
    assert "one thread" in {item.name for item in found.not_applicable}, "it is so already"
    assert found.by_weights
    assert found.steps[1].set.time_ratio == pytest.approx(2, rel=0.25)
    codes = {item.code for item in found.conditions}
    assert "no-metric" in codes
    assert not codes & {"not-cut", "not-all-tried", "factor-without-effect"}
