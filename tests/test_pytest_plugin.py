"""The pytest plugin in projects of their own: what fails, what its message says, and what it costs all others."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from isorun.errors import InputError
from isorun.pytest_plugin import assert_not_worse, assert_same_weights
from isorun.study.cells import Level
from record_builder import make_cell, make_record, with_results

pytest_plugins = ["pytester"]

BASE = [0.90, 0.91, 0.92, 0.93, 0.94, 0.95]
LOW = [0.80, 0.81, 0.82, 0.83, 0.84, 0.85]
WARNINGS_ARE_ERRORS = "[pytest]\nfilterwarnings = error\n"


def run_inside(pytester, *words):
    """pytest as a project has it; in an environment that was made before the plugin was, it is named."""
    pytester.makeini(WARNINGS_ARE_ERRORS)
    known = any(point.value == "isorun.pytest_plugin" for point in entry_points(group="pytest11"))
    return pytester.runpytest_subprocess(*(() if known else ("-p", "isorun.pytest_plugin")), *words)


def test_a_project_that_does_not_use_it_runs_unharmed_with_warnings_as_errors(pytester):
    pytester.makepyfile("import sys\ndef test_it(): assert not [name for name in sys.modules if 'numpy' in name]")
    run_inside(pytester).assert_outcomes(passed=1)


def test_it_loads_nothing_but_itself():
    told_after = "print(*sorted(set(sys.modules) - before))"
    program = f"import pytest, sys; before = set(sys.modules); import isorun.pytest_plugin; {told_after}"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["isorun", "isorun.pytest_plugin"]


def test_a_regression_fails_with_the_verdict_and_the_table_and_no_traceback(pytester):
    pytester.makepyfile(
        f"""
        def test_accuracy(isorun_checks):
            isorun_checks.assert_not_worse({LOW}, {BASE}, margin=0.01, metric="test_acc")
        """
    )
    told = run_inside(pytester)
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(["Worse: test_acc of the list is worse*by more than 0.01.", "*difference*", "*worse*"])
    assert "Error" not in told.stdout.str()


@pytest.mark.long
def test_a_baseline_is_written_kept_beside_the_test_and_held_against(pytester):
    text = """
        import json, pathlib
        def test_accuracy(isorun_checks):
            values = json.loads(pathlib.Path("values.json").read_text())
            isorun_checks.assert_not_worse(values, "kept/acc.csv", margin=0.02, direction="higher")
        """
    pytester.makepyfile(text)
    values = pytester.path / "values.json"
    values.write_text(str(BASE))
    missing = run_inside(pytester)
    missing.stdout.fnmatch_lines(["*there is no baseline*acc.csv", "*--isorun-update-baseline writes it*"])
    written = run_inside(pytester, "--isorun-update-baseline")
    written.assert_outcomes(passed=1)
    written.stdout.fnmatch_lines(["isorun: baseline written: *acc.csv"])
    assert (pytester.path / "kept" / "acc.csv").read_text().splitlines()[:2] == ["value", "0.9"]
    values.write_text(str([value + 0.03 for value in BASE]))
    run_inside(pytester).assert_outcomes(passed=1)
    values.write_text(str(LOW))
    run_inside(pytester).assert_outcomes(failed=1)


def test_what_is_not_shown_passes_and_stands_at_the_end_of_the_output(pytester):
    pytester.makepyfile(
        "def test_accuracy(isorun_checks): "
        f"isorun_checks.assert_not_worse({BASE}, {BASE[::-1]}, margin=0.001, direction='higher')"
    )
    told = run_inside(pytester)
    told.assert_outcomes(passed=1)
    told.stdout.fnmatch_lines(["isorun: *Undecided: it is not shown whether*"])


def test_numbers_alone_need_a_direction():
    """Losses that went down would be called worse."""
    with pytest.raises(InputError, match="numbers alone do not tell which direction is better") as refused:
        assert_not_worse(LOW, BASE, 0.01)
    assert 'direction="lower"' in refused.value.message()
    assert str(assert_not_worse(LOW, BASE, 0.01, direction="lower").verdict) == "not worse"
    assert str(assert_not_worse(LOW, BASE, 0.01, metric="val_loss").verdict) == "not worse"
    with pytest.raises(pytest.fail.Exception, match="Worse"):
        assert_not_worse(LOW, BASE, 0.01, direction="higher")
    with pytest.raises(InputError, match="does not tell which direction"):
        assert_not_worse(LOW, BASE, 0.01, metric="score_x")


def test_an_outcome_without_a_run_of_its_own_is_not_taken_for_no_numbers(pytester):
    """As of a second pytest with the same store: what is there may be of other code."""
    from isorun.scheduling import Outcome

    with pytest.raises(InputError, match="the outcome has no run of its own") as refused:
        assert_not_worse(Outcome(()), BASE)
    assert "store=tmp_path" in refused.value.hint
    pytester.makepyfile(
        "from isorun.scheduling import Outcome\n"
        "def test_it(isorun_checks): isorun_checks.assert_not_worse(Outcome(()), 'kept.csv')"
    )
    told = run_inside(pytester)
    told.assert_outcomes(failed=1)
    told.stdout.fnmatch_lines(["the outcome has no run of its own", "*found:*nothing was missing"])
    assert "baselines.py" not in told.stdout.str(), "no traceback for a mistake in the call"


def test_records_are_held_against_the_table_that_was_written_of_them(tmp_path):
    from isorun.pytest_plugin import write_baseline

    main, path = with_results(BASE), tmp_path / "main.csv"
    write_baseline(main, path)
    assert path.read_text().startswith(
        "approach,config,environment,level,seed,repeat,unit,weights,test_acc\nLeNet,default"
    )
    assert str(assert_not_worse(with_results([v + 0.001 for v in BASE]), path, 5.0).verdict) == "not worse"
    with pytest.raises(pytest.fail.Exception, match=r"by more than 0\.5 points"):
        assert_not_worse(with_results(LOW), path, 0.5)
    with pytest.raises(pytest.fail.Exception, match="Undecided"):
        assert_not_worse(with_results(BASE), path, 0.01, strict=True)


def seeded(*digests, level=Level.DETERMINISTIC):
    found = [{"weights.final": digest} if digest else {} for digest in digests]
    return [make_record(make_cell(level, place), digests=one) for place, one in enumerate(found)]


def test_the_same_weights_of_a_seed_pass_and_others_fail_with_their_number():
    assert_same_weights(seeded("ab", "ab", "ab"))
    with pytest.raises(pytest.fail.Exception, match="seed 1: 3 runs ended with 2 different weights"):
        assert_same_weights(seeded("ab", "cd", "ab"))


@pytest.mark.parametrize("runs", [seeded("ab"), seeded("", ""), seeded("ab", "ab", level=Level.DEFAULT), [0.9, 0.8]])
def test_runs_whose_weights_cannot_be_compared_do_not_pass(runs):
    with pytest.raises(pytest.fail.Exception):
        assert_same_weights(runs)


@pytest.mark.parametrize("name", ["main.isorun", "runs.parquet", "postgresql://me:hunter2@lab/isorun"])
def test_only_tables_are_written_as_baselines(name, tmp_path, monkeypatch):
    from isorun.pytest_plugin import write_baseline

    monkeypatch.chdir(tmp_path)
    if "://" not in name:
        (tmp_path / name).write_text("kept")
    with pytest.raises(InputError, match="writes tables") as raised:
        write_baseline(BASE, name)
    assert "hunter2" not in raised.value.message()
    assert [path.read_text() for path in tmp_path.iterdir()] in ([], ["kept"])
