"""What every tracker promises, as tests: subclass `TrackerContract`, say how yours is opened and leave runs to read.

class TestMyTracker(TrackerContract):
    def leave(self, folder):
        write_two_runs(folder / "mine.log")
        return MyTracker(str(folder / "mine.log")), {"first": {"loss": 0.5}, "second": {"loss": 0.25}}
"""

from __future__ import annotations

import abc
import contextlib
import hashlib
import math
import shutil
from array import array
from pathlib import Path
from typing import Final

import pytest

from isorun.errors import InputError, IsorunError
from isorun.share.trackers import AbstractTracker, Chosen, TrackedRun, TrackedSeries
from isorun.study.records import Numbers, RunState

__all__ = ["TrackerContract", "told_runs"]

_BEGAN: Final = 1_700_000_000_123_456
_CUTS: Final = (0, 1, 7, 100, 0.3, 0.6, 0.95)
_FLIPS: Final = (0.02, 0.2, 0.5, 0.8, 0.99)


def told_runs() -> list[TrackedRun]:
    """Runs with everything that a run may have, to be written."""

    def series(values: list[float], steps: list[float] | None = None) -> TrackedSeries:
        times = array("q", (_BEGAN + 1_500_000 * place + 789 for place in range(len(values))))
        return TrackedSeries(Numbers(steps or range(len(values))), times, Numbers(values))

    whole = TrackedRun(
        key=("first",),
        experiment="digits",
        name="first run",
        started=_BEGAN,
        ended=_BEGAN + 60_000_001,
        params={"lr": 0.1, "depth": 3, "name": "a, b", "flag": True, "text": "0.10", "sizes": [1, 2], "none": None},
        tags={"team": "vision", "alone": "", "words": 'with "quotes", and ünïcode\nand lines'},
        series={
            "val_acc": series([0.1, 1 / 3, 2 / 3]),
            "train/loss": series([math.nan, math.inf, -math.inf], [0, 5, 10]),
            "acc[cat]": series([0.5]),
        },
        results={"test_acc": 0.9, "val_acc": 2 / 3},
        host="node-1",
        commit="0123456789abcdef0123456789abcdef01234567",
    )
    failed = TrackedRun(
        key=("second",),
        experiment="digits",
        name="second",
        state=RunState.FAILED,
        reason="it ran out of memory",
        started=_BEGAN + 1,
        ended=_BEGAN + 2_000_000,
        series={"val_acc": series([0.25], [7])},
    )
    going = TrackedRun(key=("third",), experiment="other", name="third", state=None, started=_BEGAN + 2)
    late = TrackedRun(
        key=("fourth",),
        experiment="other",
        name="fourth",
        state=RunState.TIMED_OUT,
        reason="longer than an hour",
        started=_BEGAN + 3,
        ended=_BEGAN + 4,
        series={"again": series([1.0, 2.0, 3.0], [1, 0, 0.5])},
    )
    return [whole, failed, going, late]


class TrackerContract(abc.ABC):
    """The promises of `AbstractTracker`."""

    loses_time: bool = False
    """Whether what it writes has no place for parts of a step, which it then names."""

    @abc.abstractmethod
    def leave(self, folder: Path) -> tuple[AbstractTracker, dict[str, dict[str, float]]]:
        """Leave runs in the folder as the tracker does; how it is opened, and by run the last of each metric."""

    def moved(self, tracker: AbstractTracker, before: Path, after: Path) -> AbstractTracker:
        """The tracker that reads the same files at another place."""
        return type(tracker)(tracker.where.replace(str(before), str(after)))

    def chosen(self) -> Chosen:
        """How it is asked; with an interpreter of its own, say."""
        return Chosen()

    def to_write(self, folder: Path) -> AbstractTracker:  # noqa: ARG002 - of those that write
        """Where the tracker writes in this folder."""
        pytest.skip("this tracker is only read")

    def read(self, tracker: AbstractTracker) -> list[TrackedRun]:
        return list(tracker.read(self.chosen()))

    def test_every_run_is_read_with_the_last_value_of_each_metric(self, tmp_path: Path) -> None:
        tracker, expected = self.leave(tmp_path)
        runs = {run.name: run for run in self.read(tracker)}
        for name, metrics in expected.items():
            run = runs[name]
            last = {metric: one.values[-1] for metric, one in run.series.items()} | dict(run.results)
            assert {metric: last.get(metric) for metric in metrics} == pytest.approx(metrics, nan_ok=True)

    def test_series_are_as_long_as_their_steps_and_times(self, tmp_path: Path) -> None:
        tracker, _ = self.leave(tmp_path)
        for run in self.read(tracker):
            for series in run.series.values():
                assert len(series.values) == len(series.steps) > 0
                assert len(series.times) in (0, len(series.values))

    def test_runs_are_told_apart_and_read_alike_wherever_their_files_lie(self, tmp_path: Path) -> None:
        (tmp_path / "first").mkdir()
        tracker, _ = self.leave(tmp_path / "first")
        runs = self.read(tracker)
        assert len({run.key for run in runs}) == len(runs)
        shutil.move(tmp_path / "first", tmp_path / "second")
        again = self.read(self.moved(tracker, tmp_path / "first", tmp_path / "second"))
        assert [(run.key, run.series.keys(), run.started) for run in again] == [
            (run.key, run.series.keys(), run.started) for run in runs
        ]

    def test_reading_changes_nothing(self, tmp_path: Path) -> None:
        tracker, _ = self.leave(tmp_path)
        before = _content(tmp_path)
        first, second = self.read(tracker), self.read(tracker)
        assert _content(tmp_path) == before
        assert [run.content() for run in first] == [run.content() for run in second]

    def test_an_unknown_experiment_is_refused_with_those_that_are_there(self, tmp_path: Path) -> None:
        tracker, _ = self.leave(tmp_path)
        there = self.read(tracker)[0]
        with pytest.raises(InputError) as refused:
            list(tracker.read(Chosen(("no-such-experiment",), self.chosen().python)))
        assert there.experiment in refused.value.allowed or there.name in refused.value.allowed

    def test_a_place_where_nothing_is_says_so(self, tmp_path: Path) -> None:
        tracker, _ = self.leave(tmp_path)
        (tmp_path / "empty").mkdir()
        kind = type(tracker)
        for where in (tmp_path / "missing", tmp_path / "empty"):
            with pytest.raises(IsorunError, match=where.name):
                self.read(kind(str(where)))

    def test_damaged_files_give_a_message_or_what_is_sound(self, tmp_path: Path) -> None:
        """Whatever is cut off or altered: no other error, and nothing hangs."""
        (tmp_path / "whole").mkdir()
        tracker, _ = self.leave(tmp_path / "whole")
        path = max(
            (path for path in (tmp_path / "whole").rglob("*") if path.is_file()), key=lambda one: one.stat().st_size
        )
        data = path.read_bytes()
        damaged = [data[: cut if isinstance(cut, int) else int(len(data) * cut)] for cut in _CUTS]
        for flip in _FLIPS:
            place = int(len(data) * flip)
            damaged.append(data[:place] + bytes(255 - byte for byte in data[place : place + 40]) + data[place + 40 :])
        for content in (*damaged, b"\0" * 200, b"{" * 5_000, b"\x80\x04cposix\nsystem\n."):
            path.write_bytes(content)
            with contextlib.suppress(IsorunError):
                assert all(isinstance(run, TrackedRun) for run in self.read(type(tracker)(tracker.where)))

    def test_what_was_written_is_read_again(self, tmp_path: Path) -> None:
        """Values, parameters, tags, names, states and times."""
        tracker = self.to_write(tmp_path)
        told = told_runs()
        written = tracker.write(iter(told), self.chosen())
        assert written.runs == len(told)
        assert written.points == sum(run.points for run in told)
        again = {run.name: run for run in self.read(type(tracker)(tracker.where))}
        assert set(again) == {run.name for run in told}
        for run in told:
            found = again[run.name]
            for name in ("experiment", "state", "reason", "started", "ended", "host", "commit"):
                assert getattr(found, name) == getattr(run, name), f"{run.name}: {name}"
            assert dict(found.params) == dict(run.params)
            assert dict(found.tags) == dict(run.tags)
            assert _numbers(found.results) == _numbers(run.results)
            assert set(found.series) == set(run.series)
            for metric, series in run.series.items():
                other = found.series[metric]
                assert list(map(repr, other.values)) == list(map(repr, series.values))
                assert other.times == series.times
                if not self.loses_time:
                    assert other.steps == series.steps

    def test_writing_twice_overwrites_nothing(self, tmp_path: Path) -> None:
        tracker = self.to_write(tmp_path)
        tracker.write(iter(told_runs()[:1]), self.chosen())
        before = {run.key: run.content() for run in self.read(type(tracker)(tracker.where))}
        with contextlib.suppress(IsorunError):
            type(tracker)(tracker.where).write(iter(told_runs()[:1]), self.chosen())
        after = {run.key: run.content() for run in self.read(type(tracker)(tracker.where))}
        assert before.items() <= after.items()


def _numbers(values: object) -> dict[str, str]:
    assert isinstance(values, dict)
    return {name: repr(value) for name, value in values.items()}


def _content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
