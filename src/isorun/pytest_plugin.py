"""The pytest plugin: assertions on runs, and baselines that are kept in the repository.

    def test_accuracy(isorun_checks, tmp_path):
        outcome = isorun.run("study.toml", store=tmp_path / "store")
        isorun_checks.assert_not_worse(outcome, "baselines/digits.csv", margin=0.5)
        isorun_checks.assert_same_weights(outcome)

`pytest --isorun-update-baseline` writes the baselines instead of holding runs against them. Both assertions also work
without the fixture (`from isorun.pytest_plugin import assert_not_worse`), and outside pytest. pytest loads this module
in every project that has isorun installed: it imports nothing but what pytest has loaded already, and all else
when an assertion is made.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from isorun.analysis.checks import Check
    from isorun.baselines import KnownRuns
    from isorun.errors import InputError
    from isorun.study.records import RunRecord

__all__ = ["IsorunChecks", "assert_not_worse", "assert_same_weights", "isorun_checks"]

_UPDATE: Final = "--isorun-update-baseline"
_NOTE: Final = "isorun"
_VALUES: Final = "value"
_NO_PATH: Final = re.compile(r"[A-Za-z][\w+.-]*://|registry:")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one option of the plugin."""
    group = parser.getgroup("isorun")
    group.addoption(_UPDATE, action="store_true", help="write the baselines of assert_not_worse instead of checking")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What tests noted: baselines that were written, and checks that showed nothing. It travels with their reports."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    noted = [note for report in reports for name, note in getattr(report, "user_properties", ()) if name == _NOTE]
    for note in dict.fromkeys(noted):
        terminalreporter.write_line(f"isorun: {note}")


class IsorunChecks:
    """The assertions of one test. Paths of baselines are taken from the folder of its file."""

    def __init__(self, node: pytest.Item, *, update: bool) -> None:
        self._node = node
        self._update = update

    def assert_not_worse(self, runs: Any, baseline: Any, margin: float = 0.0, **options: Any) -> Check | None:
        """As the function of this name; with --isorun-update-baseline the runs become the baseline, and it gives None.

        What is not shown does not fail the test: it stands at the end of pytest's output.
        """
        __tracebackhide__ = True
        place = baseline
        if isinstance(baseline, (str, Path)) and not _NO_PATH.match(str(baseline)):
            path = Path(baseline)
            place = path if path.is_absolute() or path.exists() else self._node.path.parent / path
        from isorun.errors import IsorunError  # noqa: PLC0415

        try:
            if self._update and isinstance(place, (str, Path)):
                written = write_baseline(runs, place, options.get("metric"), options.get("store"))
                self._note(f"baseline written: {written}")
                return None
            result = assert_not_worse(runs, place, margin, **options)
        except IsorunError as error:  # the message says all; where in isorun it was found says nothing more
            pytest.fail(error.message(), pytrace=False)
        if str(result.verdict) == "undecided":
            self._note(f"{self._node.nodeid}: {_told(result).partition(chr(10) * 2)[0]}")
        return result

    def assert_same_weights(self, runs: Any, **options: Any) -> None:
        """As the function of this name."""
        __tracebackhide__ = True
        assert_same_weights(runs, **options)

    def _note(self, text: str) -> None:
        self._node.user_properties.append((_NOTE, text))


@pytest.fixture
def isorun_checks(request: pytest.FixtureRequest) -> IsorunChecks:
    """Assertions on isorun's runs: assert_not_worse and assert_same_weights."""
    update = bool(request.config.getoption(_UPDATE))
    return IsorunChecks(request.node, update=update)


def assert_not_worse(
    runs: Any,
    baseline: Any,
    margin: float = 0.0,
    *,
    metric: str | None = None,
    direction: str | None = None,
    margin_unit: str | None = None,
    where: Mapping[str, str] | None = None,
    pair: bool | None = None,
    alpha: float = 0.05,
    strict: bool = False,
    other_data: bool = False,
    store: Any = None,
) -> Check:
    """Fail where the runs are worse than the baseline by more than the margin, and say so as `isorun check` does.

    runs: an outcome, records, a study (its recorded runs), a table, or a list of numbers, of which `direction`
    ("higher" or "lower") or the name of a `metric` says which are better. baseline: the same, or the path of a table,
    a store, a study file. strict: fail as well where nothing is shown; what comes back says it, too. The other words
    are those of `isorun.check`.
    """
    __tracebackhide__ = True
    from isorun.baselines import open_runs  # noqa: PLC0415 - nothing is loaded for those who do not ask
    from isorun.checking import CheckQuestion, check_runs  # noqa: PLC0415

    new = open_runs(runs, store=store)
    if new.numbers is not None and metric is None and direction is None:
        raise _direction_unknown()
    held = _opened_baseline(baseline, new)
    question = CheckQuestion(
        margin=margin,
        margin_unit=margin_unit,
        metric=metric or _own_metric(new, held),
        direction=direction,
        where=where or {},
        pair=pair,
        alpha=alpha,
        other_data=other_data,
        **_declared(new),
    )
    result = check_runs(new, held, question)
    if result.exit_code(strict=strict):
        pytest.fail(_told(result), pytrace=False)
    return result


def _direction_unknown() -> InputError:
    from isorun.errors import InputError  # noqa: PLC0415

    return InputError(
        "numbers alone do not tell which direction is better: accuracies that fall are worse, losses that fall are not",
        allowed='direction="higher", direction="lower", or the name of a metric that tells it: metric="test_acc"',
        hint='assert_not_worse(losses, baseline, margin=0.1, direction="lower")',
    )


def _declared(runs: KnownRuns) -> dict[str, Any]:
    """What the study of the runs says, where it is known."""
    return {} if runs.study is None else {"metrics": runs.study.metrics, "selections": runs.study.selections}


def _own_metric(new: KnownRuns, held: KnownRuns) -> str | None:
    """The column that a baseline has which was written of a list of numbers; None for all else."""
    written = new.numbers is not None and held.table is not None and _VALUES in held.table.columns
    return _VALUES if written else None


def _opened_baseline(baseline: Any, new: KnownRuns) -> KnownRuns:
    from isorun.baselines import open_runs  # noqa: PLC0415
    from isorun.errors import InputError  # noqa: PLC0415

    if isinstance(baseline, Path) and baseline.suffix and not baseline.exists():
        raise InputError(f"there is no baseline {baseline}", hint=f"pytest {_UPDATE} writes it, to be kept in git")
    return open_runs(baseline, like=new.study)


def _told(result: Check) -> str:
    from isorun import showing  # noqa: PLC0415

    return showing.text(result)


def assert_same_weights(runs: Any, *, store: Any = None) -> None:
    """Fail where runs of the same seed did not end with the same bits.

    runs: an outcome, records, or a study (its recorded runs). Runs at level default have no seed in common, and runs
    that left no digest cannot be told apart by their weights: both are refused, not passed.
    """
    __tracebackhide__ = True
    from isorun.baselines import open_runs  # noqa: PLC0415

    found = open_runs(runs, store=store).records
    if found is None:
        pytest.fail(
            "the weights of runs are asked for, and these are numbers: give an outcome, records or a study", False
        )
    by_seed = _weights(found)
    several = {group: digests for group, digests in by_seed.items() if len(set(digests)) > 1}
    if several:
        rows = [
            f"  {group}: {len(digests)} runs ended with {len(set(digests))} different weights"
            for group, digests in several.items()
        ]
        pytest.fail("\n".join(["runs of the same seed ended with different weights", *rows]), pytrace=False)
    compared = sum(len(digests) - 1 for digests in by_seed.values())
    if not compared:
        pytest.fail(_nothing_to_compare(found), pytrace=False)


def _weights(records: Iterable[RunRecord]) -> dict[str, list[str]]:
    """The digests of the finished runs of each group and seed."""
    from isorun.analysis.evidence.run_units import FINAL_WEIGHTS  # noqa: PLC0415

    found: defaultdict[str, list[str]] = defaultdict(list)
    for record in records:
        cell, digest = record.cell, record.digests.get(FINAL_WEIGHTS)
        if cell.seed is not None and digest:
            found[f"{cell.approach} {cell.config} {cell.environment} at level {cell.level}, seed {cell.seed}"].append(
                digest
            )
    return dict(found)


def _nothing_to_compare(records: Iterable[RunRecord]) -> str:
    runs = list(records)
    if all(record.cell.seed is None for record in runs):
        return "no two runs have a seed in common: at level default none is fixed; run at fixed-seed or deterministic"
    return (
        f"no two of these {len(runs)} runs have the same seed and a digest of their weights; repeats = 2 makes two of "
        "each seed, and isorun report says why a run left no digest"
    )


def write_baseline(runs: Any, place: str | Path, metric: str | None = None, store: Any = None) -> str:
    """Keep runs as a table that a later check reads, small enough for a repository: a row a run.

    place: a CSV file; a package or a store that serves as a baseline is not written over.
    """
    from isorun.baselines import kept_table, open_runs  # noqa: PLC0415
    from isorun.cli import made_folder, write_file  # noqa: PLC0415
    from isorun.errors import InputError, without_passwords  # noqa: PLC0415

    path = Path(place)
    if path.suffix != ".csv" or _NO_PATH.match(str(place)):
        shown = without_passwords(str(place))
        raise InputError(f"{_UPDATE} writes tables", found=shown, allowed="the path of a .csv file")
    made_folder(path.parent)
    write_file(path, kept_table(open_runs(runs, store=store), metric), "csv")
    return str(path)
