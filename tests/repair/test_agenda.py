"""Searches through the one loop: trials are ordinary runs, and a search goes on from the store alone."""

import math
import signal
import statistics
import threading
import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import isorun
from isorun import workflow
from isorun.errors import IsorunError, PluginError, StoreError
from isorun.execution import RunEnded, lost_record
from isorun.repair.agenda import SearchAgenda, foreseen
from isorun.repair.bugs import Limits
from isorun.repair.kept_searches import KeptSearch, known_searches, read_searches, with_trials
from isorun.repair.priors import prior_of
from isorun.repair.told_searches import told_of, told_of_search
from isorun.reproducing import runs_to_do
from isorun.scheduling import Observer
from isorun.store import SEARCHES
from isorun.study.cells import cells_of
from isorun.study.design import with_key
from isorun.study.records import RunState, Series
from isorun.study.searches import Proposed, trials_to_come
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore

SPACE = {"lr": {"float": [1e-5, 1.0], "log": True}, "act": ["relu", "tanh", "elu"]}


def search_study(trials=10, space=SPACE, engine="random", **search):
    command = "python train.py " + " ".join(f"{{config.{name}}}" for name in space)
    table = {"space": space, "trials": trials, "engine": engine, **search}
    return isorun.Study("found", approaches={"toy": command}, metrics={"accuracy": "higher"}, search=table)


def accuracy(values):
    return 0.9 - 0.1 * abs(math.log10(values["lr"]) + 2) - (0.2 if values["act"] == "tanh" else 0.0)


class Trainings:
    """Counts trainings; compute may be told otherwise."""

    def __init__(self, compute=None):
        self.made = []
        self._compute = compute or (lambda job: accuracy(job.cell.config_values))

    def __call__(self, job):
        self.made.append((job.cell.config, job.cell.repeat))
        found = self._compute(job)
        return found if isinstance(found, Computed) else Computed({"accuracy": found}, wall_seconds=1.0)


def run(study, store, trainings, capacity=1, **options):
    executor = InstantExecutor(trainings, capacity)
    try:
        return isorun.run(study, store=store, executor=executor, **options)
    finally:
        executor.close()


def proposed(study, store):
    return with_trials(study, store).proposed


def test_trials_are_ordinary_runs():
    store, trainings, study = MemoryStore(), Trainings(), search_study()
    outcome = run(study, store, trainings)
    assert outcome.count(RunState.FINISHED) == 10
    assert [config for config, _ in trainings.made] == [f"trial-{number}" for number in range(10)]
    (search,) = read_searches(study, store)
    assert [trial.score for trial in search.trials] == [accuracy(trial.parameters) for trial in search.trials]
    assert len(isorun.analyse(study, store=store).groups) == 10
    assert isorun.status(study, store=store).finished == 10
    assert len(isorun.doctor(study, store=store).examinations) == 10


def test_the_same_search_again_does_nothing_and_more_trials_extend_it():
    store, trainings = MemoryStore(), Trainings()
    run(search_study(6), store, trainings)
    again = run(search_study(6), store, trainings)
    assert (again.proposed, len(trainings.made)) == (0, 6)
    run(search_study(9), store, trainings)
    assert [config for config, _ in trainings.made] == [f"trial-{number}" for number in range(9)]
    whole = MemoryStore()
    run(search_study(9), whole, Trainings())
    assert proposed(search_study(9), store) == proposed(search_study(9), whole)


@pytest.mark.parametrize("engine", ["random", "isorun", "optuna:random", "optuna:tpe"])
def test_a_search_is_the_same_for_a_seed_and_another_for_another(engine):
    if engine.startswith("optuna"):
        pytest.importorskip("optuna")
    found = []
    for seed in (1, 1, 2):
        store, study = MemoryStore(), search_study(14, engine=engine, seed=seed)
        run(study, store, Trainings())
        found.append([one.parameters for one in proposed(study, store)])
    assert found[0] == found[1] != found[2]


def test_isorun_proposes_from_the_trial_that_is_said_and_what_it_changes_is_kept():
    store, study = MemoryStore(), search_study(12, begin=5)
    run(study, store, Trainings())
    made = proposed(study, store)
    assert [one.by for one in made] == ["random"] * 5 + ["isorun"] * 7
    assert all(one.parameters != made[one.origin].parameters for one in made[5:])
    (search,) = read_searches(study, store)
    assert [trial.origin for trial in search.trials[5:]] == [one.origin for one in made[5:]]
    assert {trial.proposed_by for trial in search.trials[5:]} == {"isorun"}


def test_the_engine_alone_is_never_repaired():
    store, study = MemoryStore(), search_study(30, begin="never")
    run(study, store, Trainings(lambda _: 0.5))
    assert {one.by for one in proposed(study, store)} == {"random"}
    store, study = MemoryStore(), search_study(30)
    run(study, store, Trainings(lambda _: 0.5))
    assert "isorun" in {one.by for one in proposed(study, store)}


def test_what_isorun_offers_is_kept_in_trials_of_the_engine():
    space = {**SPACE, "isorun.momentum": ["keep", 0.5, 0.9]}
    store, study = MemoryStore(), search_study(40, space, begin=20)
    run(study, store, Trainings())
    made = proposed(study, store)
    assert {one.parameters["isorun.momentum"] for one in made[:20]} == {"keep"}
    assert len({one.parameters["isorun.momentum"] for one in made[20:]}) > 1


def broken(job):
    number = int(job.cell.config.rpartition("-")[2])
    if number == 1:
        raise MemoryError("CUDA out of memory")
    if number == 2:
        return math.nan
    if number == 3:
        return Computed({"other": 1.0})
    if number == 4:
        return Computed({"accuracy": 0.9}, wall_seconds=1e6)
    return accuracy(job.cell.config_values)


@pytest.mark.parametrize("engine", ["random", "optuna:tpe"])
def test_trials_that_fail_are_told_and_the_search_goes_on(engine):
    if engine.startswith("optuna"):
        pytest.importorskip("optuna")
    study = workflow.load(search_study(12, engine=engine))
    study = isorun.Study(
        "found",
        approaches={"toy": list(study.approaches["toy"].command)},
        metrics={"accuracy": "higher"},
        policy={"time_limit": 100},
        search={"space": SPACE, "trials": 12, "engine": engine},
    )
    store = MemoryStore()
    run(study, store, Trainings(broken))
    (search,) = read_searches(study, store)
    states = [trial.state for trial in search.trials]
    assert states == ["finished", *["failed"] * 4, *["finished"] * 7]
    why = [trial.why_failed for trial in search.trials[1:5]]
    assert "out of memory" in why[0]
    assert why[1:3] == ["accuracy is nan", "it left no accuracy"]
    assert "100" in why[3]
    status = isorun.status(study, store=store)
    assert (status.total, status.failed, status.missing) == (12, 2, 0)
    assert run(study, store, Trainings()).proposed == 0


def test_where_nothing_ever_finished_failed_trials_are_tried_again():
    def failing(job):
        raise ImportError("no module named torhc")

    store, study, trainings = MemoryStore(), search_study(4), Trainings()
    run(study, store, Trainings(failing))
    run(study, store, trainings)
    assert [config for config, _ in trainings.made] == [f"trial-{number}" for number in range(4)]


def test_a_space_that_is_exhausted_ends_the_search():
    space = {"lr": [0.1, 0.01], "act": ["relu", "tanh"]}
    store, study, trainings = MemoryStore(), search_study(20, space), Trainings()
    run(study, store, trainings)
    assert len(trainings.made) == 4
    (told,) = told_of(study, store)
    assert "exhausted-space" in {bug.kind for bug in told.bugs}


def test_two_at_a_time_lose_and_double_nothing():
    store, study, trainings = MemoryStore(), search_study(20), Trainings()
    run(study, store, trainings, capacity=2)
    assert sorted(trainings.made) == sorted({(f"trial-{number}", 0) for number in range(20)})


def test_two_isoruns_share_one_search(tmp_path):
    def slow(job):
        time.sleep(0.02)
        return accuracy(job.cell.config_values)

    trainings = [Trainings(slow), Trainings(slow)]
    study, errors = search_study(24), []

    def work(one):
        try:
            run(study, tmp_path / "store", one)
        except IsorunError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in trainings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    made = [config for one in trainings for config, _ in one.made]
    assert sorted(made) == sorted({f"trial-{number}" for number in range(24)})
    assert all(one.made for one in trainings)


class Stops(Observer):
    """Ends the work after some runs, as a kill would: nothing is told any more."""

    def __init__(self, after):
        self.left = after

    def run_ended(self, record):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [1, 3, 6])
def test_what_was_interrupted_goes_on_from_the_store(tmp_path, after):
    study, first, second = search_study(8), Trainings(), Trainings()
    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path / "store", first, observer=Stops(after))
    run(study, tmp_path / "store", second)
    configs = [config for one in (first, second) for config, _ in one.made]
    assert sorted(set(configs)) == sorted(f"trial-{number}" for number in range(8))
    with workflow.open_store(str(tmp_path / "store")) as store:
        (search,) = read_searches(study, store)
    assert [trial.state for trial in search.trials] == ["finished"] * 8


class Preempting(InstantExecutor):
    """Takes a trial's first attempts out of its queue. asks_to_stop: and somebody presses Ctrl-C then."""

    def __init__(self, attempts, *, asks_to_stop=False):
        super().__init__(Trainings())
        self._attempts = attempts
        self._asks_to_stop = asks_to_stop

    def submit(self, job, tell):
        if job.cell.config == "trial-1" and job.attempt <= self._attempts:
            if self._asks_to_stop:
                signal.raise_signal(signal.SIGINT)
            tell(RunEnded(job.run_id, lost_record(job, "preempted", state=RunState.INTERRUPTED)))
        else:
            super().submit(job, tell)


def interrupted(study, store, *arguments, **options):
    with closing(Preempting(*arguments, **options)) as executor:
        outcome = isorun.run(study, store=store, executor=executor)
    return outcome.count(RunState.FINISHED), outcome.count(RunState.INTERRUPTED), outcome.stopped


@pytest.mark.parametrize("at_once", [0, 1, 2])
def test_a_trial_that_is_interrupted_alone_is_begun_anew(at_once):
    store, study = MemoryStore(), search_study(6, at_once=at_once)
    assert interrupted(study, store, 1) == (6, 1, "")
    assert isorun.status(study, store=store).finished == 6


@pytest.mark.parametrize("at_once", [0, 1])
def test_what_is_interrupted_again_and_again_is_left_and_the_search_goes_on(at_once):
    store, study = MemoryStore(), search_study(6, at_once=at_once)
    assert interrupted(study, store, 100) == (5, 3, "")
    (search,) = read_searches(study, store)
    assert [trial.state for trial in search.trials] == ["finished", "running", *["finished"] * 4]
    assert interrupted(study, store, 0) == (1, 0, "")


def test_who_asks_to_stop_is_not_kept_by_a_trial_that_would_be_begun_anew():
    store, study = MemoryStore(), search_study(6, at_once=1)
    finished, _, stopped = interrupted(study, store, 1, asks_to_stop=True)
    assert (finished, stopped) == (1, "interrupted")


def test_several_searches_go_side_by_side():
    tables = {
        name: {"space": SPACE, "trials": 5, "engine": "random", "seed": seed}
        for name, seed in (("a 1", 1), ("a 2", 2), ("b 1", 1))
    }
    command = "python train.py {config.lr} {config.act}"
    study = isorun.Study("both", approaches={"toy": command}, metrics={"accuracy": "higher"}, searches=tables)
    store, trainings = MemoryStore(), Trainings()
    run(study, store, trainings)
    assert len(trainings.made) == 15
    assert {config.partition(" trial")[0] for config, _ in trainings.made[:3]} == {"a 1", "a 2", "b 1"}
    found = read_searches(study, store)
    assert [len(search.trials) for search in found] == [5, 5, 5]
    same = [[trial.parameters for trial in search.trials] for search in found]
    assert same[0] == same[2] != same[1]
    assert told_of_search(study, store, "a 2").search.name == "both a 2"
    with pytest.raises(IsorunError, match="which one"):
        told_of_search(study, store)


def test_a_search_of_a_study_is_judged_by_what_its_study_says_and_told_in_its_words():
    store = MemoryStore()
    study = search_study(14, prior="none", begin="never", patience=2, target=5.0)
    run(study, store, Trainings(lambda _: 0.5))
    (told,) = told_of(study, store, where="my search.toml", kept_in="else where")
    assert told.trust is None
    assert told.limits == Limits(5.0, None, 2)
    steps = [warning.next_step for warning in told.warnings]
    go_on = "raise the trials of its search, then: isorun run 'my search.toml' --store 'else where'"
    assert go_on in steps
    assert not [step for step in steps if "isorun repair" in step or "trial," in step or "optuna" in step]
    again = told_of_search(study, store, limits=Limits(patience=3), prior="shipped", where="my search.toml")
    assert again.trust is not None
    assert again.limits == Limits(5.0, None, 3)
    (more,) = told_of(search_study(20, prior="none", begin="never", patience=2, target=5.0), store)
    assert f"isorun run {study.name}" in [warning.next_step for warning in more.warnings]


def test_a_search_of_a_study_is_examined_in_python(tmp_path):
    study = search_study(4)
    run(study, tmp_path / "kept", Trainings())
    told = isorun.repair.examine(study, store=tmp_path / "kept", patience=1, prior=None)
    assert len(told.search.trials) == 4
    assert told.limits.patience == 1
    assert told.trust is None
    with pytest.raises(IsorunError, match="nothing has been recorded"):
        isorun.repair.examine(study, store=tmp_path / "nothing")
    with pytest.raises(IsorunError, match="a store belongs to a study"):
        isorun.repair.examine("sqlite:///study.db", store=tmp_path / "kept")


def test_repeats_race_what_looks_better_and_say_what_it_took():
    store, study, trainings = MemoryStore(), search_study(15, repeats=6), Trainings(noisy)
    run(study, store, trainings)
    kept = with_trials(study, store)
    standing = known_searches(study, store)[0].standing()
    assert standing.races
    assert not standing.wanted
    repeats = [one for one in kept.proposed if one.repeat]
    assert {one.by for one in repeats} == {"race"}
    assert max(one.repeat for one in repeats) <= 5
    assert len(trainings.made) == len(set(trainings.made)) == 15 + len(repeats)
    (search,) = read_searches(study, store)
    scores = {}
    for record in store.records():
        scores.setdefault(record.cell.config, []).append(record.results["accuracy"])
    assert [trial.score for trial in search.trials] == pytest.approx(
        [math.fsum(found) / len(found) for found in (scores[f"trial-{number}"] for number in range(15))]
    )
    within = [(len(found) - 1, statistics.variance(found)) for found in scores.values() if len(found) > 1]
    assert search.noise == pytest.approx(math.sqrt(sum(n * v for n, v in within) / sum(n for n, _ in within)))
    assert len(search.trials) == 15
    assert run(study, store, trainings).proposed == 0


def noisy(job):
    noise = (int(job.cell.id[:6], 16) % 1000 / 1000 - 0.5) / 50
    return accuracy(job.cell.config_values) + noise


def test_repeats_of_a_training_that_fixes_its_seed_are_copies_and_call_nothing():
    """Each score is a fixed draw: two trainings a side show it, no more are made, and it is said with the next step."""
    rng = np.random.default_rng(3)
    fixed = [round(float(one), 4) for one in rng.normal(0.8, 0.02, 25)]
    store, study = MemoryStore(), search_study(25, repeats=5)
    run(study, store, Trainings(lambda job: fixed[int(job.cell.config.rpartition("-")[2])]))
    (told,) = told_of(study, store)
    assert {verdict for _, _, verdict in told.racing.races} == {"ahead"}
    assert told.racing.extra == 1 + len(told.racing.races)
    (copies,) = (one for one in told.warnings if one.code == "copies")
    assert "2 of 2 runs went through the very same numbers, which count as 1" in copies.message
    assert "ISORUN_SEED" in copies.next_step
    assert "Repeats are copies of one draw" in " ".join(str(told).split())
    assert (told.search.noise, told.search.noise_from) == (0.0, "trials that were repeated and agreed exactly")


def test_what_was_called_better_stays_so_whatever_is_declared_later():
    store = MemoryStore()
    run(search_study(12, repeats=5), store, Trainings(noisy))
    (first,) = told_of(search_study(12, repeats=5), store)
    assert first.racing.called
    assert first.racing.error_rate == 0.05
    for changed in ({"trials": 40, "repeats": 5}, {"trials": 300, "repeats": 9}, {"trials": 5, "repeats": 2}):
        (later,) = told_of(search_study(**changed), store)
        assert later.racing == first.racing
        assert later.search.best == first.search.best
    run(search_study(20, repeats=5), store, Trainings(noisy))
    (longer,) = told_of(search_study(20, repeats=5), store)
    assert longer.racing.races[: len(first.racing.races)] == first.racing.races
    assert longer.racing.error_rate == pytest.approx(0.075)
    assert "at most 7.5 % over all trials" in " ".join(str(longer).split())


def test_the_best_trial_is_one_in_the_verdict_the_json_the_races_and_the_figures():
    """The first score of trial 1 is luck, and so is that of a trial that it was not raced for."""
    scores = {(0, 0): 0.50, (0, 1): 0.51, (1, 0): 0.60, (1, 1): 0.10, (2, 0): 0.505, (2, 1): 0.2}
    store, study = MemoryStore(), search_study(3, repeats=2, begin="never")
    table = Trainings(lambda job: scores[int(job.cell.config.rpartition("-")[2]), job.cell.repeat])
    run(study, store, table)
    (told,) = told_of(study, store)
    standing = known_searches(study, store)[0].standing()
    assert standing.best == told.search.best.number == told.to_json()["best"]["trial"] == 0
    page = told.view(figures=True)
    assert "(trial 0)" in page.verdict[0]
    assert all("since trial 0" in figure.sentence for figure in page.figures if figure.name.startswith("best-by"))
    assert "racing" in told.to_json()
    assert told.to_json()["racing"]["extra_trainings"] == len(table.made) - 3


def test_what_was_foretold_of_a_trial_is_kept_and_told():
    store, study = MemoryStore(), search_study(12, begin=5)
    run(study, store, Trainings())
    kept = proposed(study, store)
    assert [one.chance is not None for one in kept] == [False] * 5 + [True] * 7
    (search,) = read_searches(study, store)
    assert [trial.chance for trial in search.trials] == [one.chance for one in kept]
    (told,) = told_of(study, store)
    assert "were foretold" in " ".join(told.view().verdict)


def test_what_comes_next_is_said_and_nothing_is_kept():
    store, study = MemoryStore(), search_study(8, begin=4)
    for known, made in ((None, 0), (store, 0)):
        (one,) = foreseen(study, known)
        assert (one.made, one.ended, one.to_come, one.next.number) == (made, 0, 8, 0)
    run(search_study(5, begin=4), store, Trainings())
    (one,) = foreseen(study, store)
    assert foreseen(study, store) == (one,)
    assert (one.made, one.ended, one.to_come) == (5, 5, 3)
    assert len(proposed(study, store)) == 5
    run(search_study(6, begin=4), store, Trainings())
    assert proposed(study, store)[5] == one.next
    run(study, store, Trainings())
    (done,) = foreseen(study, store)
    assert (done.made, done.to_come, done.next) == (8, 0, None)


def test_the_noise_of_a_search_is_that_of_the_prior_that_is_asked_for(tmp_path):
    store, study = MemoryStore(), search_study(4)
    run(study, store, Trainings())
    usual = told_of_search(study, store).search.noise
    other = replace(prior_of("shipped"), noise=0.123)
    assert told_of_search(study, store, prior=other).search.noise == 0.123 != usual
    assert told_of_search(study, store, prior=None).search.noise == 0.0


def test_what_isorun_never_repairs_is_not_told_that_it_will_be():
    for begin, is_left_alone in (("never", True), ("bug", False)):
        store, study = MemoryStore(), search_study(14, begin=begin, patience=2)
        run(study, store, Trainings(lambda job: 1.0 if job.cell.config == "trial-0" else 0.5))
        (message,) = (one.message for one in told_of(study, store)[0].warnings if one.code == "ineffective-search")
        assert ('begin = "never"' in message) == is_left_alone


def test_trials_to_come_are_counted_once_for_all(tmp_path):
    space = {"lr": [0.1, 0.01], "act": ["relu", "tanh"]}
    for study, left in ((search_study(20, space), 0), (search_study(6), 1), (search_study(4), 0)):
        store = MemoryStore()
        run(study if left == 0 else search_study(5), store, Trainings())
        made = len({one.number for one in proposed(study, store)})
        assert trials_to_come(with_trials(study, store)) == left
        assert SearchAgenda(study, store).propose(lambda: 0) == []
        assert isorun.status(study, store=store).total == made + left
        assert runs_to_do(study, store) == (made + left, left)


def test_symptoms_come_from_the_record():
    def slow(job):
        epochs = tuple(map(float, range(8)))
        series = Series(epochs, epochs, tuple(0.1 + number / 10000 for number in range(8)))
        return Computed({"accuracy": 0.1}, series={"val_accuracy": series, "accuracy": series})

    store, study = MemoryStore(), search_study(2)
    run(study, store, Trainings(slow))
    (search,) = read_searches(study, store)
    assert {trial.symptoms.convergence for trial in search.trials} == {"slow"}


def test_progress_is_told_once_with_all_trials():
    class Counts(Observer):
        planned = ()

        def work_planned(self, runs):
            self.planned = (*self.planned, runs)

    counts = Counts()
    run(search_study(6), MemoryStore(), Trainings(), observer=counts)
    assert counts.planned == (6, 5, 4, 3, 2, 1)


def test_a_damaged_document_is_named():
    store, study = MemoryStore(), search_study(3)
    run(study, store, Trainings())
    (name,) = store.documents(SEARCHES).names()
    store.documents(SEARCHES).write(name, {"proposed": [{"number": "x"}]})
    with pytest.raises(StoreError, match="cannot be read"):
        run(study, store, Trainings())


WRONG = {
    "number": [-1, 1.5, True, None, "0", 7, 10**9],
    "repeat": [-1, "1", 10**6],
    "parameters": [
        {},
        [],
        None,
        {"lr": 0.1},
        {"lr": math.nan, "act": "relu"},
        {"lr": "0.1", "act": "relu"},
        {"lr": 0.1, "act": []},
    ],
    "origin": ["0", -1, 1.5, []],
    "chance": ["sure", math.nan, math.inf, []],
    "plan": [[1], [0, 0], "25", [25, 10**9]],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_damaged_proposal_is_told_and_nothing_is_lost(key, value):
    store, study = MemoryStore(), search_study(3, repeats=2)
    run(study, store, Trainings())
    documents = store.documents(SEARCHES)
    (name,) = documents.names()
    whole = documents.read(name)
    (first, *rest), before = whole["proposed"], proposed(study, store)
    damaged = {**whole, "proposed": [{**first, key: value}, *rest]}
    documents.write(name, damaged)
    for ask in (run, read_searches, told_of):
        with pytest.raises(StoreError, match="begin the search anew"):
            ask(*(study, store, Trainings())[: 3 if ask is run else 2])
    assert documents.read(name).keys() == damaged.keys()
    documents.write(name, whole)
    assert proposed(study, store) == before
    assert run(study, store, Trainings()).proposed == 0


DAMAGED = {
    "empty": "",
    "begun": "{",
    "half": '{"proposed": [{"number": 0, "rep',
    "list": "[]",
    "number": '{"proposed": 7}',
    "numbers": '{"proposed": [7]}',
    "deep": "[" * 100_000,
    "deep inside": f'{{"proposed": {"[" * 50_000}{"]" * 50_000}}}',
    "huge number": f'{{"proposed": [{{"number": {"9" * 10_000}}}]}}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_told_and_nothing_is_lost(tmp_path, content):
    study = search_study(3)
    run(study, tmp_path / "store", Trainings())
    (path,) = (tmp_path / "store" / "searches").glob("*.json")
    whole = path.read_bytes()
    path.write_text(content)
    for _ in range(2):
        with pytest.raises(StoreError, match=path.name):
            run(study, tmp_path / "store", Trainings())
    assert path.read_text() == content
    with workflow.open_store(str(tmp_path / "store")) as store:
        assert len(store.records()) == 3
    path.unlink()
    again = Trainings()
    assert run(study, tmp_path / "store", again).elsewhere == 3
    assert not again.made, "the same seed proposes the same trials, whose runs are kept"
    path.write_bytes(whole)
    assert run(study, tmp_path / "store", Trainings()).proposed == 0


class Full(MemoryStore):
    """A store on a disk that is full for the writing of one proposal."""

    left = 10**9

    def __init__(self):
        super().__init__()
        documents = super().documents(SEARCHES)
        write = documents.write

        def writing(name, document):
            self.left -= 1
            if self.left == 0:
                raise StoreError("keeping the search: no space left on device")
            write(name, document)

        documents.write = writing


@pytest.mark.parametrize("left", [1, 2, 5])
def test_a_disk_that_is_full_when_a_proposal_is_kept_loses_and_doubles_nothing(left):
    store, study, trainings = Full(), search_study(6, begin=3), Trainings()
    store.left = left
    with pytest.raises(StoreError, match="no space"):
        run(study, store, trainings)
    assert len(proposed(study, store)) == len(trainings.made) == left - 1
    run(study, store, trainings)
    assert [config for config, _ in trainings.made] == [f"trial-{number}" for number in range(6)]
    whole = MemoryStore()
    run(study, whole, Trainings())
    assert proposed(study, store) == proposed(study, whole)


def kept_search(study, store):
    return KeptSearch(with_key(study, store.key), study.searches[""], store)


def test_a_search_whose_holder_died_is_free_again():
    store, study = MemoryStore(), search_study(3)
    with kept_search(study, store).alone() as is_ours:
        assert is_ours
        assert store.holders()
        with kept_search(study, store).alone() as is_theirs:
            assert not is_theirs
    assert not store.holders()


def test_a_trial_that_is_being_chosen_is_no_run(tmp_path):
    study = search_study(3)
    with workflow.open_store(str(tmp_path / "store")) as store, kept_search(study, store).alone():
        assert store.holders()
        assert not isorun.status(store=store).running
        assert not isorun.status(study, store=store).running


class Foreign(MemoryStore):
    """A store of another distribution, which fails at one thing."""

    failing = ""

    def documents(self, kind):
        if self.failing == "documents":
            raise RuntimeError("server said no")
        return super().documents(kind)

    def claim(self, cell_id):
        if self.failing == "claim":
            raise RuntimeError("server said no")
        return super().claim(cell_id)


@pytest.mark.parametrize("failing", ["documents", "claim"])
def test_what_a_store_of_others_raises_in_a_search_names_it(failing):
    store = Foreign()
    store.failing = failing
    with pytest.raises(PluginError, match="Foreign failed"):
        run(search_study(3), store, Trainings())


def test_while_another_isorun_chooses_a_trial_nothing_is_proposed_and_it_is_asked_again():
    store, study, trainings = MemoryStore(), search_study(4), Trainings()
    agenda = SearchAgenda(study, store)
    with kept_search(study, store).alone():
        began = time.monotonic()
        assert agenda.propose(lambda: 1) == []
        assert time.monotonic() - began < 5
        assert agenda.is_waiting()
    assert len(agenda.propose(lambda: 1)) == 1
    assert not agenda.is_waiting()

    choosing = kept_search(study, store).alone()
    choosing.__enter__()
    timer = threading.Timer(0.4, choosing.__exit__, (None, None, None))
    timer.start()
    run(study, store, trainings)
    timer.join()
    assert len(trainings.made) == 4


def test_what_was_read_of_a_search_is_not_read_again(monkeypatch):
    """Else choosing a trial takes longer with each that there is."""
    read, make = [], Proposed.from_json
    monkeypatch.setattr(Proposed, "from_json", lambda *given: read.append(given) or make(*given))
    store, study = MemoryStore(), search_study(230, engine="random", begin="never")
    run(study, store, Trainings())
    assert not read
    documents = store.documents(SEARCHES)
    assert sorted(len(documents.read(name)["proposed"]) for name in documents.names()) == [30, 100, 100]
    assert [one.number for one in proposed(study, store)] == list(range(230))
    assert len(read) == 230
    assert run(study, store, Trainings()).proposed == 0
    run(search_study(233, engine="random", begin="never"), store, Trainings())
    assert [one.number for one in proposed(study, store)] == list(range(233))


def test_a_search_that_was_kept_in_one_long_document_goes_on():
    store, study = MemoryStore(), search_study(120, engine="random", begin="never")
    run(study, store, Trainings())
    whole, documents = proposed(study, store), store.documents(SEARCHES)
    first = min(documents.names(), key=len)
    documents.write(first, {"proposed": [one.to_json() for one in whole]})
    documents.write(f"{first}-1", {"proposed": []})
    assert proposed(study, store) == whole
    run(search_study(122, engine="random", begin="never"), store, Trainings())
    assert [one.number for one in proposed(study, store)] == list(range(122))


def test_a_study_without_a_search_is_told_so():
    study = isorun.Study("plain", approaches={"toy": "python train.py"})
    with pytest.raises(IsorunError, match="has no search"):
        read_searches(study, MemoryStore())
    assert cells_of(study)
