"""What every shelf promises, as tests: subclass `ShelfContract`, and say how yours is made and what lies on it.

class TestMyShelf(ShelfContract):
    def make_shelf(self, folder):
        return MyShelf(folder), "resnet56"
"""

from __future__ import annotations

import abc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from isorun.errors import NothingRecorded
from isorun.registry import EVERYTHING, STRANGER
from isorun.serving.shelves import AbstractShelf

__all__ = ["ShelfContract"]

_ODD_NAMES: Final = [
    "",
    ".",
    "..",
    "../..",
    "/etc/passwd",
    "../../../../etc/passwd",
    "nothing-of-this-name",
    "x" * 5_000,
    "\0",
    "caf\u00e9 \U0001f600",
    "'; DROP TABLE runs; --",
    "%2e%2e%2f",
    "name\nname",
]


class ShelfContract(abc.ABC):
    """The promises of `AbstractShelf`."""

    @abc.abstractmethod
    def make_shelf(self, folder: Path) -> tuple[AbstractShelf, str]:
        """A shelf with a study that has finished runs, and its name. folder: an empty one."""

    def add_a_run(self, shelf: AbstractShelf, name: str) -> bool:  # noqa: ARG002 - for those who override
        """Make more runs of the study; False where a study never gets more."""
        return False

    @pytest.fixture
    def shelf_and_name(self, tmp_path: Path) -> object:
        shelf, name = self.make_shelf(tmp_path)
        yield shelf, name
        shelf.close()

    def test_every_name_listed_can_be_opened(self, shelf_and_name: tuple[AbstractShelf, str]) -> None:
        shelf, name = shelf_and_name
        entries = {entry.name: entry for entry in shelf.entries(EVERYTHING)}
        assert name in entries
        for entry in entries.values():
            if not entry.problem:
                opened = shelf.opened(entry.name, EVERYTHING)
                assert (opened.entry.name, len(opened.records)) == (entry.name, entry.runs)

    def test_the_latest_come_first(self, shelf_and_name: tuple[AbstractShelf, str]) -> None:
        when = [entry.when for entry in shelf_and_name[0].entries(EVERYTHING)]
        assert when == sorted(when, reverse=True)

    def test_what_is_opened_says_what_its_runs_found(self, shelf_and_name: tuple[AbstractShelf, str]) -> None:
        shelf, name = shelf_and_name
        opened = shelf.opened(name, EVERYTHING)
        result = opened.analysed()
        assert sum(result.states.values()) == len(opened.records)

    def test_the_revision_is_that_of_what_is_opened_and_stays(self, shelf_and_name: tuple[AbstractShelf, str]) -> None:
        shelf, name = shelf_and_name
        first = shelf.revision(name, EVERYTHING)
        assert shelf.opened(name, EVERYTHING).revision == first == shelf.revision(name, EVERYTHING)

    def test_the_revision_changes_when_a_run_came(
        self, shelf_and_name: tuple[AbstractShelf, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shelf, name = shelf_and_name
        monkeypatch.setattr("isorun.serving.shelves._LOOKED_AT_SECONDS", -1.0)
        before, runs = shelf.revision(name, EVERYTHING), len(shelf.opened(name, EVERYTHING).records)
        if self.add_a_run(shelf, name):
            assert shelf.revision(name, EVERYTHING) != before
            assert len(shelf.opened(name, EVERYTHING).records) > runs

    def test_what_is_not_there_is_said_so(self, shelf_and_name: tuple[AbstractShelf, str]) -> None:
        shelf = shelf_and_name[0]
        for name in _ODD_NAMES:
            for ask in (shelf.revision, shelf.opened, shelf.standing):
                with pytest.raises(NothingRecorded):
                    ask(name, EVERYTHING)

    def test_strangers_hear_of_what_is_not_theirs_as_of_what_is_not_there(
        self, shelf_and_name: tuple[AbstractShelf, str]
    ) -> None:
        shelf, name = shelf_and_name
        seen = {entry.name for entry in shelf.entries(STRANGER)}
        if name in seen:
            return  # it is shown to everyone
        for asked in (name, "nothing-of-this-name"):
            with pytest.raises(NothingRecorded, match="there is no such study here"):
                shelf.opened(asked, STRANGER)

    def test_many_may_ask_at_once(self, shelf_and_name: tuple[AbstractShelf, str]) -> None:
        shelf, name = shelf_and_name
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: len(shelf.opened(name, EVERYTHING).records), range(16)))
        assert len(set(found)) == 1

    def test_showing_changes_nothing(self, shelf_and_name: tuple[AbstractShelf, str]) -> None:
        shelf, name = shelf_and_name
        before = shelf.opened(name, EVERYTHING)
        shelf.entries(EVERYTHING)
        shelf.standing(name, EVERYTHING)
        after = shelf.opened(name, EVERYTHING)
        assert [record.run_id for record in before.records] == [record.run_id for record in after.records]
        assert before.revision == after.revision
