"""What every source of metrics promises, as tests: subclass `SourceContract`, say how yours is made and what it reads.

class TestMySource(SourceContract):
    def make_source(self):
        return MySource(Sources(), ("run.mylog",))

    def leave(self, folder):
        (folder / "run.mylog").write_text("loss 0.5")
        return ["a line that the run prints"], {"loss": 0.5}
"""

from __future__ import annotations

import abc
import inspect
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from isorun.sources import AbstractSource, Found, finished

__all__ = ["SourceContract"]

_BEGAN: Final = 1_700_000_000.5
_ODD_LINES: Final = [
    "",
    " ",
    "\0",
    "\x1b[2K\x1b[1G",
    "loss: " + "9" * 5_000,
    "loss: 1e999999",
    "{" * 2_000,
    "[" * 2_000,
    '{"loss": ' + "9" * 5_000 + "}",
    "caf\u00e9 \udce9 \U0001f600",
    "epoch: nan loss: nan",
    "x" * 200_000,
    "| " * 5_000,
]


class SourceContract(abc.ABC):
    """The promises of `AbstractSource`."""

    @abc.abstractmethod
    def make_source(self) -> AbstractSource:
        """A source of the kind that is tested, for one run."""

    @abc.abstractmethod
    def leave(self, folder: Path) -> tuple[Sequence[str], dict[str, float]]:
        """Write into the folder what a run would, and say which lines it prints and the last value of each metric."""

    def read(self, folder: Path, lines: Sequence[str], began: float = _BEGAN, *, whole: bool = False) -> Found:
        """What a new source finds in a run that printed these lines. whole: it ended well by itself."""
        source = self.make_source()
        for number, line in enumerate(lines):
            source.feed(line, float(number))
        return finished(source, folder, began, whole=whole)

    def lines_of_a_run(self, folder: Path, modified: float = _BEGAN + 10.5) -> tuple[Sequence[str], dict[str, float]]:
        """A run that left its files at the given time."""
        lines, expected = self.leave(folder)
        for path in folder.rglob("*"):
            os.utime(path, (modified, modified))
        return lines, expected

    def test_every_metric_of_a_run_is_found_with_its_value(self, tmp_path: Path) -> None:
        """And no other."""
        lines, expected = self.lines_of_a_run(tmp_path)
        found = self.read(tmp_path, lines)
        assert {name: series.values[-1] for name, series in found.series.items()} == pytest.approx(expected)

    def test_series_origins_and_results_belong_together(self, tmp_path: Path) -> None:
        """Every metric has a series and an origin, and a series as many steps and times as values."""
        lines, _ = self.lines_of_a_run(tmp_path)
        found = self.read(tmp_path, lines)
        assert set(found.series) == set(found.origins)
        assert set(found.results) <= set(found.series)
        assert all(found.origins.values())
        for series in found.series.values():
            assert len(series.steps) == len(series.seconds) == len(series.values) > 0

    def test_the_same_run_gives_the_same_metrics(self, tmp_path: Path) -> None:
        """Two sources know nothing of each other, and nothing is drawn."""
        lines, _ = self.lines_of_a_run(tmp_path)
        assert self.read(tmp_path, lines) == self.read(tmp_path, lines)

    def test_a_run_that_left_nothing_has_no_metrics(self, tmp_path: Path) -> None:
        """Not even when it printed something that has none."""
        found = self.read(tmp_path, ["starting", "done"])
        assert dict(found.series) == {}
        assert dict(found.results) == {}

    def test_files_of_an_earlier_run_are_not_read(self, tmp_path: Path) -> None:
        """What is only in files last changed before the run began is another run's."""
        self.lines_of_a_run(tmp_path, modified=_BEGAN - 100)
        assert dict(self.read(tmp_path, []).series) == {}

    @pytest.mark.parametrize("number", range(len(_ODD_LINES)))
    def test_no_line_makes_it_raise(self, tmp_path: Path, number: int) -> None:
        """Whatever a training prints, also in the middle of what the source knows."""
        lines, expected = self.lines_of_a_run(tmp_path)
        middle = len(lines) // 2
        found = self.read(tmp_path, [*lines[:middle], _ODD_LINES[number], *lines[middle:]])
        assert set(found.series) == set(found.origins)
        assert set(found.series) <= {*expected, "loss"}

    @pytest.mark.parametrize("cut", range(40))
    def test_what_is_read_of_torn_files_is_what_the_whole_ones_say(self, tmp_path: Path, cut: int) -> None:
        """A run may be killed while it writes: `12.` is not 12 where 12.5 was to be. What is torn is left out.

        Each file is cut at every 32nd part of its length, and by its last eight bytes.
        """
        lines, expected = self.leave(tmp_path)
        whole = self.read(tmp_path, lines, began=0.0)
        for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
            size = path.stat().st_size
            os.truncate(path, size * cut // 32 if cut < 32 else max(size - (cut - 31), 0))
        torn = self.read(tmp_path, lines, began=0.0)
        assert set(torn.series) <= set(expected)
        for name, series in torn.series.items():
            assert list(series.values) == list(whole.series[name].values)[: len(series.values)], name
        assert {name: whole.results.get(name) for name in torn.results} == torn.results

    def test_a_last_line_without_an_end_counts_in_a_run_that_ended_well(self, tmp_path: Path) -> None:
        """Many programs write none: what they meant to say is there, and leaving it out would be another value."""
        if "whole" not in inspect.signature(self.make_source().finish).parameters:
            pytest.skip("this source does not ask whether a run ended well: it leaves out the same in all of them")
        lines, expected = self.leave(tmp_path)
        for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
            data = path.read_bytes()
            path.write_bytes(data if b"\0" in data else data.rstrip(b"\r\n"))
        found = self.read(tmp_path, lines, began=0.0, whole=True)
        assert {name: series.values[-1] for name, series in found.series.items()} == pytest.approx(expected)

    def test_a_folder_that_is_gone_is_no_error(self, tmp_path: Path) -> None:
        """A training may remove its own working folder."""
        self.read(tmp_path / "gone", [])

    def test_it_can_be_used_in_another_thread(self, tmp_path: Path) -> None:
        """Executors read the output of several runs in threads, each with a source of its own."""
        lines, expected = self.lines_of_a_run(tmp_path)
        found: list[Found] = []
        threads = [threading.Thread(target=lambda: found.append(self.read(tmp_path, lines))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [set(one.series) for one in found] == [set(expected)] * 4
