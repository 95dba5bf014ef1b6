"""Deciding without processes: one session for all looks, and the rule says how many runs are made."""

import random

import pytest

import isorun.showing
from isorun import workflow
from isorun.analysis.sequential import Plan
from isorun.deciding import KeptPlan, StudyDecision, decide
from isorun.errors import InputError, NothingRecorded
from isorun.scheduling import Observer
from isorun.study.design import Study, adhoc_study, changed
from isorun.study.records import RunState
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore
from record_builder import make_record

isorun.showing.install()


def two(gain=0.1, **changes):
    given = {
        "approaches": {"base": "python two.py 0", "new": f"python two.py {gain}"},
        "metrics": {"acc": {"direction": "higher"}},
    }
    return Study("two", **(given | changes))


def drawn(job):
    generator = random.Random(f"{job.cell.approach} {job.cell.seed} {job.cell.repeat}")
    return Computed({"acc": generator.gauss(0.9 + float(job.command[-1]), 0.01)})


@pytest.fixture
def store():
    with MemoryStore() as opened:
        yield opened


def decided(study=None, store=None, compute=drawn, capacity=2, **options):
    executor = InstantExecutor(compute, capacity)
    try:
        result = decide(study or two(), store=store or MemoryStore(), executor=executor, **options)
    finally:
        executor.close()
    assert isinstance(result, StudyDecision)
    return result


def test_runs_are_made_until_the_verdict_is_in_and_no_longer(store):
    result = decided(store=store)
    assert (result.a, result.b, str(result.verdict)) == ("base", "new", "B better")
    assert 10 <= result.runs_made <= 24
    again = decided(store=store)
    assert (again.runs_made, str(again.verdict)) == (0, "B better")


def test_six_looks_open_one_store_and_one_executor(tmp_path, monkeypatch):
    from isorun import session

    opened, looks = [], []
    (tmp_path / "two.py").touch()
    open_store = session.open_store

    def counted_store(*arguments, **options):
        opened.append("store")
        return open_store(*arguments, **options)

    def counted_executor(*_):
        opened.append("executor")
        return InstantExecutor(drawn, 2)

    monkeypatch.setattr(session, "open_store", counted_store)
    monkeypatch.setattr(session, "open_executor", counted_executor)
    decide(two(0.0, folder=tmp_path), max_runs=10, looks=1, futility=False, on_look=looks.append)
    assert len(looks) >= 6
    assert opened == ["store", "executor"]


def test_the_budget_is_kept(store):
    result = decided(two(0.0), store, max_runs=6)
    assert len(result.units["base"].runs) <= 6
    assert len(store.finished()) <= 12


def test_looks_come_after_all_runs_up_to_them(store):
    sizes = []
    decided(
        two(0.0), store, capacity=3, max_runs=8, futility=False, on_look=lambda look: sizes.append((look.n_a, look.n_b))
    )
    assert sizes == [(number, number) for number in (2, 5, 6, 7, 8)]


def test_copies_of_one_run_decide_nothing_and_few_are_made(store):
    result = decided(
        store=store, compute=lambda job: Computed({"acc": float(job.command[-1])}, digests={"weights.final": "ab"})
    )
    assert str(result.verdict) == "undecided"
    assert result.runs_made == 4


def test_when_all_runs_fail_no_more_are_made(store):
    with pytest.raises(NothingRecorded, match="no run of 'base' has finished"):
        decided(store=store, compute=lambda _: Computed(exit_code=1))
    assert len(store.run_ids()) == 4


def test_a_run_that_failed_is_tried_again_with_those_of_the_next_look(store):
    tried = []

    def second_time(job):
        tried.append(job.attempt)
        first = job.cell.approach == "base" and job.cell.repeat == 0 and job.attempt == 1
        return Computed(exit_code=1) if first else drawn(job)

    result = decided(store=store, compute=second_time)
    assert str(result.verdict) == "B better"
    assert max(tried) == 2
    assert len({record.cell.id for record in store.records() if record.state is RunState.FAILED}) == 1


def test_a_failed_run_gets_the_retries_of_the_policy_at_every_look(store):
    def never_the_first(job):
        stuck = job.cell.approach == "base" and job.cell.repeat == 0
        return Computed(exit_code=1) if stuck else drawn(job)

    looks = []
    decided(two(0.0, policy={"retries": 1}), store, never_the_first, max_runs=6, futility=False, on_look=looks.append)
    stuck = [record for record in store.records() if record.state is RunState.FAILED]
    assert len(looks) >= 2
    assert len(stuck) == 2 * len(looks)


def test_an_interrupt_ends_with_what_is_known_and_says_so(store):
    class Interrupting(Observer):
        ended = 0

        def run_ended(self, record):
            self.ended += 1
            if self.ended == 11:
                import _thread

                _thread.interrupt_main()

    result = decided(two(0.0), store, capacity=1, max_runs=20, observer=Interrupting())
    assert result.stopped == "interrupted"
    assert str(result.verdict) == "undecided"
    assert result.runs_made in (11, 12)


def test_a_metric_that_no_run_left_is_named_after_the_first_runs(store):
    with pytest.raises(InputError, match="no run left the metric 'f1'"):
        decided(store=store, value="f1")
    assert len(store.run_ids()) == 4


def test_what_cannot_be_decided_is_refused_before_anything_is_made(tmp_path):
    study = two(folder=tmp_path)
    for wrong in (
        {"unit": "week"},
        {"pair": "seed"},
        {"selection": "nonsense"},
        {"where": {"config": "x"}},
        {"alpha": 2.0},
    ):
        with pytest.raises(InputError):
            decide(study, **wrong)
    assert not list(tmp_path.iterdir())


def test_the_plan_is_kept_and_a_larger_budget_is_refused_later(store):
    decided(two(0.0), store, max_runs=6)
    with pytest.raises(InputError, match="cannot be raised after the first look"):
        decided(two(0.0), store, max_runs=60)


def test_before_the_first_look_any_plan_will_do_and_then_the_kept_one(store):
    study = two()
    kept = KeptPlan.of(store.documents("plans"), workflow.cells(study)[:2])
    assert kept.allows({"max_runs": 90, "alpha": 0.01}) == Plan(max_runs=90, alpha=0.01)
    kept.keep(Plan(), study)
    assert kept.allows({"max_runs": 20}) == Plan()
    with pytest.raises(InputError, match="declared before the first look"):
        kept.allows({"alpha": 0.01})


@pytest.mark.long
@pytest.mark.parametrize(
    "declared",
    [
        {"max_runs": 7, "alpha": 0.01, "min_runs": 6},
        {"max_runs": [7, 14], "spending": "pocock"},
        {"method": "naive", "futility": False, "looks": 2},
    ],
)
def test_what_is_not_asked_for_stays_as_it_was_declared(store, declared):
    first = decided(two(0.0), store, **declared)
    again = decided(two(0.0), store)
    assert again.to_json() | {"runs_made": first.runs_made} == first.to_json()


def test_a_stage_that_was_declared_may_be_gone_on_to(store):
    decided(two(0.0), store, max_runs=[6, 12], futility=False)
    assert decided(two(0.0), store, max_runs=12, futility=False).to_json()["n_a"] > 6
    with pytest.raises(InputError, match="cannot be raised"):
        decided(two(0.0), store, max_runs=13)


def test_a_refused_decision_keeps_no_study(store):
    decided(two(0.0), store, max_runs=6, keep_study=True)
    other = adhoc_study([("python", "two.py", "0"), ("python", "two.py", "0.0")], folder=".")
    study = two(0.0)
    for refused in ({"max_runs": 60}, {"alpha": 0.01}):
        with pytest.raises(InputError):
            decided(changed(study, name="again"), store, keep_study=True, **refused)
    with pytest.raises(InputError):
        decided(other, store, keep_study=True, unit="seed")
    assert workflow.recent(store) == ("two",)


def test_a_kept_decision_has_all_its_runs(store):
    result = decided(store=store, keep_study=True)
    kept = workflow.load("two", store=store)
    assert kept.repeats == result.study.repeats > 1
    assert not {"beyond-the-study"} & {one.code for one in workflow.analyse("two", store=store).conditions}


def test_pairs_run_with_the_same_seeds(store):
    study = two(levels=["fixed-seed"])
    result = decided(study, store, pair="seed", max_runs=12)
    assert result.decision.paired
    seeds = {(record.cell.approach, record.cell.seed) for record in store.records()}
    assert {seed for side, seed in seeds if side == "base"} == {seed for side, seed in seeds if side == "new"}


def test_a_report_says_that_a_decision_made_runs_beyond_the_study(store):
    study = two()
    result = decided(study, store)
    told = {condition.code: condition for condition in workflow.analyse(study, store=store).conditions}
    assert result.to_keep in told["beyond-the-study"].message
    assert "beyond-the-study" not in {one.code for one in workflow.analyse(result.study, store=store).conditions}


def test_runs_beyond_the_study_are_told_with_the_decision_in_text_and_json(store):
    result = decided(two(), store)
    told = result.to_json()
    assert told["to_keep"] == result.to_keep == f"repeats = {result.study.repeats}"
    (warning,) = (item for item in told["warnings"] if item["code"] == "beyond-the-study")
    assert result.to_keep in warning["next"]
    assert str(result).count("[beyond-the-study]") == 1
    reported = next(one for one in workflow.analyse(two(), store=store).conditions if one.code == "beyond-the-study")
    assert reported.to_json() == warning


@pytest.mark.parametrize("given", [{}, {"seeds": [3, 4], "levels": ["fixed-seed"]}])
def test_a_decision_that_is_kept_has_nothing_beyond_it(store, given):
    study = adhoc_study(
        [("python", "two.py", "0"), ("python", "two.py", "0.1")], metrics={"acc": "higher"}, folder=".", **given
    )
    result = decided(study, store, keep_study=True)
    assert result.runs_made > 4
    assert (result.to_keep, [one.code for one in result.conditions if one.code == "beyond-the-study"]) == ("", [])
    reported = workflow.analyse(study.name, store=store)
    assert reported.states[RunState.FINISHED] == result.runs_made
    assert "beyond-the-study" not in {one.code for one in reported.conditions}


def test_an_edited_script_is_told_before_a_decision_makes_more_runs(tmp_path, store):
    class Listening(Observer):
        def __init__(self):
            self.told = []

        def warned(self, condition):
            self.told.append(condition.code)

        def run_started(self, cell):
            self.told.append("a run")

    (tmp_path / "two.py").write_text("print(1)")
    study, observer = two(folder=tmp_path), Listening()
    for cell in workflow.cells(study):
        store.finish(make_record(cell, results={"acc": 0.9}, code={"script_sha256": "another version"}))
    result = decided(study, store, observer=observer)
    assert observer.told[:2] == ["code-changed", "a run"]
    assert [one.code for one in result.conditions].count("code-changed") == 1


def test_what_is_asked_for_later_is_checked_together_with_the_kept_plan(tmp_path, store):
    decided(two(0.0), store, max_runs=60, min_runs=50, looks=5)
    again = decided(two(0.0), store, min_runs=50)
    assert (again.decision.n_a, again.runs_made) == (50, 0)
    with pytest.raises(InputError, match="declared before the first look"):
        decided(two(0.0), store, min_runs=40)
    with pytest.raises(InputError, match="from 50 to 30 runs a side"):
        decide(two(0.0, folder=tmp_path), min_runs=50)
    assert not list(tmp_path.iterdir())


def test_a_decision_tells_itself_in_a_few_lines(store):
    result = decided(store=store)
    said = str(result)
    assert said.startswith("new is better")
    assert len(said) < 4000
    assert "<strong>new is better" in result._repr_html_()


def test_lists_are_decided_without_any_store():
    a, b = [0.9 + number / 1000 for number in range(12)], [0.1 + number / 1000 for number in range(12)]
    decision = decide(a, b, direction="higher")
    assert str(decision.verdict) == "A better"


def diverging(every, end):
    """A new training that gains much where it ends well; the first attempt at every so many draws does not: `end`."""

    def compute(job):
        diverges = job.cell.approach == "new" and job.cell.repeat % every == 1 and job.run_id.endswith("-1")
        return end if diverges else drawn(job)

    return compute


@pytest.mark.parametrize("end", [Computed(exit_code=1), Computed({"acc": float("nan")})], ids=["fails", "not finite"])
def test_who_tries_until_a_run_ends_well_is_not_called_better(store, end):
    result = decided(two(0.3), store, diverging(2, end))
    assert str(result.verdict) == "undecided"
    told = {one.code: one for one in result.conditions}
    assert told["survivors-only"].voids
    assert result.why.startswith("undecided: ")
    assert "left no result" in result.why


def test_one_run_in_many_that_fails_does_not_take_a_plain_claim_away(store):
    result = decided(two(0.3), store, diverging(12, Computed({"acc": float("nan")})), min_runs=12)
    assert str(result.verdict) == "B better"
