"""Bisecting real histories without processes: which commit is named, and what that takes."""

import itertools
import random
import signal
from dataclasses import replace

import pytest

import isorun.showing
from git_history import git, history
from isorun.analysis.sequential import boundaries
from isorun.bisecting import _broken_end, bisect
from isorun.errors import InputError, NothingRecorded, StudyError
from isorun.study.design import adhoc_study
from isorun.study.history import Commit, CommitRange
from isorun.testing.instant_executor import Computed, InstantExecutor
from isorun.testing.memory_store import MemoryStore

isorun.showing.install()


@pytest.fixture(autouse=True)
def _quick_boundaries(monkeypatch):
    monkeypatch.setitem(boundaries._PATHS, "mann-whitney", 10_000)
    boundaries.boundaries.cache_clear()
    yield
    boundaries.boundaries.cache_clear()


def levels(values):
    """What `conf.py` holds where the result has these levels; each commit changes a comment as well."""
    return [f"base = {value}  # {number}\n" for number, value in enumerate(values)]


def trained(folder, *, spread=0.01, digests=False, copies=()):
    """A training that scores what its commit's `conf.py` says, and noise; one that says None fails."""
    known = {}

    def compute(job):
        commit = job.environment.code["commit"]
        if commit not in known:
            known[commit] = git(folder, "show", f"{commit}:conf.py")
        base = known[commit].partition("=")[2].partition("#")[0].strip()
        if base == "None":
            raise RuntimeError("this commit does not run")
        repeat = 0 if commit in copies else job.cell.repeat
        noise = random.Random(f"{commit} {job.cell.seed} {repeat}").gauss(0, spread)
        if digests:
            return Computed({"acc": 0.5}, digests={"weights.final": f"{base}"})
        return Computed({"acc": float(base) + noise})

    return compute


def bisected(folder, commits="c1..main", compute=None, store=None, **options):
    executor = InstantExecutor(compute or trained(folder), options.pop("capacity", 1))
    try:
        given = {"folder": folder, "store": store or MemoryStore(), "executor": executor, **options}
        return bisect(commits, ["python", "train.py"], **given)
    finally:
        executor.close()


def test_the_commit_that_changed_the_result_is_named_and_typed_again_nothing_is_run(tmp_path):
    folder, store = history(tmp_path, levels([0.9] * 19 + [0.8] * 13)), MemoryStore()
    result = bisected(folder, store=store)
    assert (result.verdict, result.first_bad.subject) == ("found", "step 20")
    assert result.first_bad.id == git(folder, "rev-parse", "c20")
    assert -0.13 < result.interval95[0] < -0.1 < result.interval95[1] < -0.07
    assert result.runs == result.made <= 7 * 7 + 4 * 4
    assert {probe.verdict for probe in result.probes} == {"good end", "bad end", "like good", "like bad"}
    again = bisected(folder, store=store)
    assert (again.made, again.first_bad, again.runs) == (0, result.first_bad, result.runs)
    text = str(result)
    assert "changed acc by -0.0" in text.splitlines()[0]
    assert "at most 5 %" in " ".join(text.split())


def test_json_has_what_machines_need(tmp_path):
    result = bisected(history(tmp_path, levels([0.9] * 3 + [0.8]))).to_json()
    assert result["good"]["ref"] == "c1"
    assert result["first_bad"]["subject"] == "step 4"
    assert result["first_bad"]["date"].startswith("2023-11-14T")
    assert [commit["commit"] for commit in result["candidates"]] == [result["first_bad"]["commit"]]
    assert (result["error_rate"], result["verdict"], result["metric"]) == (0.05, "found", "acc")
    assert {"commit", "verdict", "runs", "difference", "interval95"} <= set(result["probes"][-1])


def test_a_range_without_a_difference_says_so_and_probes_nothing(tmp_path):
    result = bisected(history(tmp_path, levels([0.9] * 8)))
    assert (result.verdict, result.found, result.first_bad, result.candidates) == ("no difference", False, None, ())
    assert len(result.probes) == 2
    near = bisected(history(tmp_path / "near", levels([0.9] * 7 + [0.901])), margin=0.2)
    assert (near.verdict, near.found) == ("equivalent", False)
    assert "less than 0.2" in str(near)


def test_commits_that_do_not_run_leave_a_range_and_why_is_told(tmp_path):
    result = bisected(history(tmp_path, levels([0.9] * 5 + [None] * 3 + [0.8] * 4)))
    assert (result.verdict, result.first_bad) == ("range", None)
    assert [commit.subject for commit in result.candidates] == ["step 6", "step 7", "step 8", "step 9"]
    skipped = [probe for probe in result.probes if probe.verdict == "does not run"]
    assert len(skipped) == 3
    assert all(probe.reason for probe in skipped)
    assert "One of 4 commits changed acc" in str(result)


@pytest.mark.parametrize(("values", "end"), [([None, 0.9, 0.8], "good"), ([0.9, 0.9, None], "bad")])
def test_an_end_that_does_not_run_is_an_error_that_names_it(tmp_path, values, end):
    with pytest.raises(NothingRecorded, match=f"the {end} end .* does not run"):
        bisected(history(tmp_path, levels(values)))


def test_runs_that_copy_one_another_judge_nothing(tmp_path):
    folder = history(tmp_path, levels([0.9, 0.9, 0.8]))
    good = git(folder, "rev-parse", "c1")
    with pytest.raises(NothingRecorded, match="cannot be judged") as refused:
        bisected(folder, compute=trained(folder, copies={good}))
    assert "--take-seeds" in refused.value.hint


def test_a_second_change_is_told_with_where_to_look(tmp_path):
    result = bisected(history(tmp_path, levels([0.9] * 4 + [0.7] * 7 + [0.1] * 6)))
    assert result.first_bad.subject == "step 12"
    ((after, until),) = result.others
    assert int(after.subject.split()[1]) < 5 <= int(until.subject.split()[1])
    assert "That is not all" in str(result)


def merged(folder, changing):
    """c1..c3 on main, a branch of three commits from c2 whose commit number `changing` changes the result, a merge."""
    history(folder, levels([0.9] * 3))
    git(folder, "checkout", "-b", "side", "c2")
    for number in (1, 2, 3):
        (folder / "side.txt").write_text(f"{number}\n")
        if number == changing:
            (folder / "level.txt").write_text("0.5\n")
        git(folder, "add", ".")
        git(folder, "commit", "-m", f"side {number}")
    git(folder, "checkout", "main")
    git(folder, "merge", "--no-ff", "-m", "merge side", "side")
    (folder / "later.txt").write_text("later\n")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "later")
    return folder


def by_level(folder):
    def compute(job):
        commit = job.environment.code["commit"]
        held = git(folder, "show", f"{commit}:level.txt", check=False)
        return Computed({"acc": float(held or 0.9) + random.Random(f"{commit}{job.cell.repeat}").gauss(0, 0.01)})

    return compute


@pytest.mark.parametrize("changing", [1, 2, 3])
def test_a_merge_that_is_found_is_gone_into(tmp_path, changing):
    folder = merged(tmp_path, changing)
    result = bisected(folder, compute=by_level(folder))
    assert (result.verdict, result.first_bad.subject) == ("found", f"side {changing}")
    main = bisected(folder, compute=by_level(folder), first_parent=True)
    assert main.first_bad.subject == "merge side"


def run_sum(result):
    """What the rows of the table come to: commits with the same files have the same runs, which count once."""
    assert len({probe.commit.id for probe in result.probes}) == len(result.probes)
    return sum(probe.runs for probe in result.probes if probe.same_as is None)


@pytest.mark.parametrize("changing", [1, 3])
def test_the_rows_come_to_the_runs_of_the_sentence_where_a_merge_is_gone_into(tmp_path, changing):
    folder = merged(tmp_path, changing)
    git(folder, "commit", "--allow-empty", "-m", "nothing")
    result = bisected(folder, "c2..main", compute=by_level(folder))
    assert run_sum(result) == result.runs == result.made
    assert {probe.verdict for probe in result.probes} >= {"good end", "tip"}
    assert sum(row["runs"] for row in result.to_json()["probes"] if row["same_runs_as"] is None) == result.runs
    assert f"{result.runs} runs of the two ends" in " ".join(str(result).split())


def test_the_rows_come_to_the_runs_where_commits_do_not_run_and_where_a_branch_has_the_files_of_its_merge(tmp_path):
    folder = history(tmp_path, levels([0.9] * 5 + [None] * 3 + [0.8] * 4))
    failing = bisected(folder)
    assert run_sum(failing) == failing.runs
    assert {probe.runs for probe in failing.probes if probe.verdict == "does not run"} == {0}
    git(folder, "checkout", "-b", "side")
    (folder / "conf.py").write_text("base = 0.5\n")
    git(folder, "commit", "-a", "-m", "side")
    git(folder, "checkout", "main")
    git(folder, "merge", "--no-ff", "-m", "merge side", "side")
    result = bisected(folder, "c12..main")
    assert result.first_bad.subject == "side"
    tip = next(probe for probe in result.probes if probe.verdict == "tip")
    assert tip.same_as == result.bad
    assert run_sum(result) == result.runs
    assert f"as {result.bad.short}" in str(result)


@pytest.mark.parametrize(("made", "told"), [(3, "3 runs of 2 commits so far"), (16, "16 runs of the two ends")])
def test_the_rows_come_to_the_runs_after_an_interruption(tmp_path, made, told):
    folder, left = history(tmp_path, levels([0.9] * 19 + [0.8] * 13)), itertools.count()

    def interrupted(job):
        if next(left) == made:
            signal.raise_signal(signal.SIGINT)
        return trained(folder)(job)

    result = bisected(folder, compute=interrupted)
    assert result.stopped == "interrupted"
    assert result.runs >= made
    assert run_sum(result) == result.runs == result.made
    assert told.replace(str(made), str(result.runs)) in " ".join(str(result).split())


def test_a_merge_whose_branch_did_not_change_it_alone_is_one_of_several(tmp_path):
    """The branch alone is as good as the rest: only both together change the result."""
    folder = merged(tmp_path, changing=None)
    merge = git(folder, "rev-parse", "HEAD~1")
    own = {merge, git(folder, "rev-parse", "HEAD")}

    def compute(job):
        commit = job.environment.code["commit"]
        level = 0.5 if commit in own else 0.9
        return Computed({"acc": level + random.Random(f"{commit}{job.cell.repeat}").gauss(0, 0.01)})

    result = bisected(folder, compute=compute)
    assert result.verdict == "range"
    assert {commit.subject for commit in result.candidates} == {"merge side", "side 1", "side 2", "side 3"}
    assert "merge" in str(result)


def test_commits_with_the_same_files_share_their_runs_and_only_those(tmp_path):
    folder = history(tmp_path, levels([0.9] * 2 + [0.8] * 2))
    git(folder, "commit", "--allow-empty", "-m", "nothing")
    git(folder, "checkout", "c1", "--", "conf.py")
    git(folder, "commit", "-m", "back")
    seen = set()

    def compute(job):
        seen.add(job.environment.code["commit"])
        return trained(folder)(job)

    back = bisected(folder, compute=compute)
    assert (back.verdict, back.ended, back.runs, seen) == ("no difference", "same files", 0, set())
    result = bisected(folder, commits="c1..HEAD~1", compute=compute)
    assert result.first_bad.subject == "step 3"
    assert git(folder, "rev-parse", "HEAD~1") not in seen, "it holds the files of c4"
    assert result.alike == 1


def test_paths_limit_which_commits_may_be_meant(tmp_path):
    folder = history(tmp_path, levels([0.9] * 3))
    for number, level in enumerate((0.9, 0.6, 0.6, 0.6)):
        (folder / ("a.txt" if number % 2 else "b.txt")).write_text(f"{number}")
        (folder / "level.txt").write_text(f"{level}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-m", f"more {number}")
    row = CommitRange.of("c3..main", folder, first_parent=False, paths=["a.txt"])
    assert [commit.subject for commit in row.row] == ["step 3", "more 1", "more 3"]
    result = bisected(folder, "c3..main", compute=by_level(folder), paths=["a.txt"])
    assert (result.first_bad.subject, result.verdict) == ("more 1", "found")
    with pytest.raises(InputError, match="no commit of the range changes"):
        bisected(folder, "c3..main", paths=["nowhere"])


def test_bits_are_told_by_digests_with_one_run_a_commit(tmp_path):
    folder = history(tmp_path, levels([0.9] * 9 + [0.8] * 7))
    result = bisected(folder, compute=trained(folder, digests=True), what="bits")
    assert (result.first_bad.subject, result.runs, result.error_rate) == ("step 10", 4 + 4 + 8, 1 / 256)
    assert "differ by chance alone do that in at most 0.4 % of searches" in " ".join(str(result).split())
    assert "bits" in str(result)
    noisy = trained(folder)
    with pytest.raises(InputError, match="do not end with the same bits") as refused:
        bisected(folder, compute=noisy, what="bits")
    assert "other numbers: acc" in str(refused.value)


def test_a_race_names_no_commit(tmp_path):
    folder, seen = history(tmp_path, levels([0.9] * 9)), {}

    def raced(job):
        """The first runs of the later half all end in the other way, and no later one does."""
        number = seen[job.cell.environment] = seen.get(job.cell.environment, 0) + 1
        late = int(git(folder, "show", f"{job.environment.code['commit']}:conf.py").partition("#")[2]) > 4
        return Computed({"acc": 0.5}, digests={"weights.final": str(late and number <= 2)})

    with pytest.raises(InputError, match="do not end with the same bits"):
        bisected(folder, compute=raced, what="bits")


def test_the_thread_goes_on_with_the_runs_before_and_after_the_commit(tmp_path):
    folder, store = history(tmp_path, levels([0.9] * 9 + [0.8] * 7)), MemoryStore()
    result = bisected(folder, compute=trained(folder, digests=True), what="bits", store=store)
    known = {probe.commit.subject: probe.run_ids for probe in result.probes}
    assert set().union(*known.values()) == set(store.run_ids())
    before, after = known["step 9"][0], known["step 10"][0]
    shown = f"git show {result.first_bad.short}"
    assert result.next_steps == (shown, f"isorun env diff {before} {after}") == tuple(result.to_json()["next"])
    assert shown in str(result)
    assert "16 runs of the two ends and 4 of the 14 commits between them" in " ".join(str(result).split())
    assert result.to_json()["probes"][0]["run_ids"] == list(known["step 1"])


def test_times_are_no_bits_and_a_run_that_leaves_nothing_has_none(tmp_path):
    folder = history(tmp_path, levels([0.9] * 3 + [0.8]))
    clock, steady = itertools.count(), trained(folder, spread=0.0)

    def timed(job):
        return replace(steady(job), results={**steady(job).results, "train_seconds": float(next(clock))})

    result = bisected(folder, compute=timed, what="bits")
    assert (result.first_bad.subject, result.judged_by) == ("step 4", "numbers")
    assert "changed the numbers that the same seed ends with" in " ".join(str(result).split())
    (told,) = (one.message for one in result.conditions if one.code == "judged-by-numbers")
    assert "the same numbers (acc)" in told
    by_digests = bisected(folder, compute=trained(folder, digests=True), what="bits")
    assert by_digests.judged_by == by_digests.to_json()["judged_by"] == "weights"
    assert not [one for one in by_digests.conditions if one.code == "judged-by-numbers"]
    with pytest.raises(NothingRecorded, match="cannot be judged") as refused:
        bisected(folder, compute=lambda job: replace(timed(job), results={}), what="bits")
    assert "neither digests nor numbers" in str(refused.value)
    assert "isorun.log" in str(refused.value)


def test_an_end_without_the_script_has_a_hint_that_helps():
    commit = Commit("a" * 40, "b" * 40, "", "", "", "")
    told = str(_broken_end(commit, "good", "python: can't open file 'train.py': [Errno 2] No such file"))
    assert "does not run" in told
    assert "absolute path" in told


def test_pairs_share_their_seeds(tmp_path):
    folder = history(tmp_path, levels([0.9] * 5 + [0.88] * 4))

    def compute(job):
        base = float(trained(folder, spread=0.0)(job).results["acc"])
        noise = random.Random(f"{job.environment.code['commit']} {job.cell.seed}").gauss(0, 0.001)
        return Computed({"acc": base + random.Random(job.cell.seed).gauss(0, 0.2) + noise})

    assert bisected(folder, compute=compute, pair=True).first_bad.subject == "step 6"
    with pytest.raises(InputError, match="draws its own seed"):
        bisected(folder, pair=True, level="default")


def test_a_plan_that_changes_with_the_results_is_refused(tmp_path):
    folder, store = history(tmp_path, levels([0.9] * 4 + [0.899] * 4)), MemoryStore()
    bisected(folder, store=store, max_runs=10)
    with pytest.raises(InputError, match="declared before the first look"):
        bisected(folder, store=store, max_runs=30)
    assert bisected(folder, store=store, max_runs=10).made == 0


def test_several_runs_at_a_time_lead_to_the_same_commit(tmp_path):
    folder = history(tmp_path, levels([0.9] * 6 + [0.7] * 6))
    assert bisected(folder, jobs=4, capacity=4).first_bad.subject == "step 7"


def test_a_dry_run_says_what_it_would_take_and_runs_nothing(tmp_path):
    result = bisected(history(tmp_path, levels([0.9] * 33)), dry_run=True)
    assert (result.verdict, result.commits, result.planned, result.runs) == ("planned", 32, 5, 0)
    assert 0 < result.fewest < result.most == 30 * 7
    assert "32 commits between c1 and main" in str(result)


def test_no_repository_and_no_study_of_one_training_are_refused(tmp_path):
    with pytest.raises(StudyError, match="git ref"):
        bisected(tmp_path)
    folder = history(tmp_path / "r", levels([0.9] * 3))
    two = adhoc_study([["a"], ["b"]], folder=folder)
    with pytest.raises(StudyError, match="one training"):
        bisect("c1..main", two)
    with pytest.raises(InputError, match="cannot be bisected"):
        bisect("c1..main", ["a"], what="time", folder=folder)
    with pytest.raises(StudyError, match="nothing to link"):
        bisected(folder, links=["data"])


def test_a_repository_cannot_have_a_program_run_by_its_settings(tmp_path):
    folder = history(tmp_path, levels([0.9] * 2))
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    for name, value in (("gpg.program", program), ("log.showSignature", "true"), ("core.pager", program)):
        git(folder, "config", name, str(value))
    bisected(folder, dry_run=True)
    assert not (tmp_path / "ran").exists()


def test_runs_of_other_studies_with_the_same_commit_and_command_are_used_again(tmp_path):
    folder, store = history(tmp_path, levels([0.9] * 3 + [0.7])), MemoryStore()
    versions = {"first": {"code": "c1"}, "last": {"code": "main"}}
    study = isorun.Study(
        "earlier", approaches={"x": "python train.py"}, environments=versions, repeats=5, folder=folder
    )
    executor = InstantExecutor(trained(folder))
    isorun.run(study, store=store, executor=executor)
    executor.close()
    result = bisected(folder, store=store)
    assert result.first_bad.subject == "step 4"
    assert result.runs - result.made == 10
    other = bisect("c1..main", ["python", "train.py", "--more"], folder=folder, store=store, dry_run=True)
    assert other.verdict == "planned"
    again = InstantExecutor(trained(folder))
    made = bisect("c1..main", ["python", "train.py", "--more"], folder=folder, store=store, executor=again)
    again.close()
    assert made.made == made.runs, "another command is another training"


def test_a_commit_without_the_metric_of_the_ends_is_passed_over(tmp_path):
    folder = history(tmp_path, levels([0.9] * 4 + [0.7] * 4))
    without = git(folder, "rev-parse", "c4")

    def compute(job):
        found = trained(folder)(job)
        return Computed({"other": 1.0}) if job.environment.code["commit"] == without else found

    result = bisected(folder, compute=compute)
    assert [commit.subject for commit in result.candidates] == ["step 4", "step 5"]
    assert "left no finite acc" in next(probe.reason for probe in result.probes if probe.commit.id == without)
    with pytest.raises(InputError, match="no run left the metric 'nonsense'"):
        bisected(folder, metric="nonsense")
