"""The promises of `AbstractEngine` as tests: derive from the class, and say how a search of yours is made."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from isorun.errors import InputError, IsorunError
from isorun.repair.bugs import Limits
from isorun.repair.engines import AbstractEngine, chosen, read_search
from isorun.repair.policy import RepairPolicy
from isorun.repair.priorities import Proposal
from isorun.repair.searches import Configuration, Parameter, Search, Trial, is_offered

__all__ = ["EngineContract"]

_SCORES: Final = (0.5, math.nan, 0.25, 0.75)
_SPACE: Final = (
    Parameter("lr", "float", low=1e-4, high=1.0, log=True),
    Parameter("units", "int", low=8, high=64, step=8),
    Parameter("activation", "category", choices=("relu", "tanh")),
)


class EngineContract:
    """What every engine promises. engine: your class. goes_on: whether it can go on with a search."""

    engine: ClassVar[type[AbstractEngine]]
    goes_on: ClassVar[bool] = True

    def fill(self, folder: Path, scores: tuple[float, ...]) -> str:
        """Make a search in this folder by your engine's own means, a trial a score (NaN: one that failed).

        Higher is better. Returns the address.
        """
        raise NotImplementedError

    def missing(self, folder: Path) -> str:
        """The address of a search in this folder that is not there."""
        raise NotImplementedError

    def function(self, score: Callable[[Mapping[str, Any]], float]) -> Callable[..., Any]:
        """What a user would name to go on: trials that give the score of their values, or raise as that does."""
        raise NotImplementedError

    @pytest.fixture
    def where(self, tmp_path: Path) -> str:
        return self.fill(tmp_path, _SCORES)

    def search(self, where: str) -> Search:
        """The search at an address, opened anew."""
        return read_search(self.engine(where), None)

    def test_its_name_and_its_address_are_told(self, where: str) -> None:
        assert self.engine.name == self.engine.name.lower()
        assert self.engine.name
        scheme = self.engine.location.partition(":")[0]
        assert where.startswith(f"{scheme.partition('+')[0]}:") or scheme in ("sqlite", "journal")

    def test_trials_are_read_in_order_with_their_scores(self, where: str) -> None:
        search = self.search(where)
        assert search.engine == self.engine.name
        assert search.name in self.engine(where).names()
        assert search.direction == "higher"
        numbers = [trial.number for trial in search.trials]
        assert numbers == sorted(set(numbers))
        assert [trial.score if trial.has_score else None for trial in search.trials] == [0.5, None, 0.25, 0.75]
        assert [trial.state for trial in search.trials] == ["finished", "failed", "finished", "finished"]
        assert search.best is search.trials[3]

    def test_the_space_holds_what_was_tried(self, where: str) -> None:
        search = self.search(where)
        assert search.space
        for trial in search.trials:
            for name, value in trial.parameters.items():
                assert name not in search.parameters or search.parameters[name].holds(value), (name, value)

    def test_reading_writes_nothing_and_gives_the_same_again(self, where: str, tmp_path: Path) -> None:
        before = _bytes_in(tmp_path)
        first = self.search(where)
        assert first == self.search(where)
        assert _bytes_in(tmp_path) == before

    def test_what_is_not_there_is_told_and_not_made(self, tmp_path: Path) -> None:
        with pytest.raises(InputError):
            self.search(self.missing(tmp_path))
        assert _bytes_in(tmp_path) == {}

    def test_a_search_that_is_not_there_lists_those_that_are(self, where: str) -> None:
        name = self.engine(where).names()[0]
        with pytest.raises(InputError, match=name):
            chosen(self.engine(where), f"{name}x")

    def test_half_a_file_is_read_or_told(self, where: str, tmp_path: Path) -> None:
        for path, whole in _bytes_in(tmp_path).items():
            for kept in (0, len(whole) // 2, len(whole) - 1):
                path.write_bytes(whole[:kept])
                self._read_or_told(where)
            path.write_bytes(whole)

    def _read_or_told(self, where: str) -> None:
        """Not by `read_search`, which would make any error one of isorun's."""
        try:
            engine = self.engine(where)
            found = engine.read(engine.names()[0] if engine.names() else "")
        except IsorunError:
            return
        assert all(trial.score is not None for trial in found.scored)

    def test_going_on_loses_no_trial_and_says_who_proposed(self, where: str) -> None:
        before = self.search(where).trials
        self._go_on(where, lambda _: 0.9)
        after = self.search(where).trials
        assert _told(after[: len(before)]) == _told(before)
        assert [trial.score for trial in after[len(before) :]] == [0.9] * 3
        assert {trial.proposed_by for trial in after[len(before) :]} == {"isorun"}

    def test_a_trial_that_raises_is_a_failed_one_that_says_why(self, where: str) -> None:
        def raises(_: Mapping[str, Any]) -> float:
            raise MemoryError("no room for this model")

        before = len(self.search(where).trials)
        self._go_on(where, raises)
        ended = self.search(where).trials[before:]
        assert [trial.state for trial in ended] == ["failed"] * 3
        assert all("no room for this model" in trial.why_failed for trial in ended)

    def test_what_the_policy_plans_is_what_is_tried(self, where: str) -> None:
        policy, tried = _ListeningPolicy(0), list[Mapping[str, Any]]()

        def hears(values: Mapping[str, Any]) -> float:
            tried.append(dict(values))
            return 0.9

        before = len(self.search(where).trials)
        self._go_on(where, hears, policy=policy)
        for trial, values in zip(self.search(where).trials[before:], tried, strict=True):
            plan = policy.plans.get(trial.number)
            assert plan is not None, f"the policy was not asked for trial {trial.number}"
            planned = {name: value for name, value in plan.action.parameters.items() if name in values}
            assert planned
            assert planned == {name: values[name] for name in planned}
            assert planned == {name: trial.parameters[name] for name in planned}
            assert trial.origin == plan.origin

    def test_a_trial_is_seen_running_and_stays_so_until_it_is_given_up(self, where: str) -> None:
        left = self._left_running(where)
        assert left.process == os.getpid()
        assert left.started is not None
        name = self.engine(where).names()[0]
        assert self.engine(where).give_up(name, left.number, "its process ended with exit code 9")
        (ended,) = [one for one in self.search(where).trials if one.number == left.number]
        assert (ended.state, ended.why_failed) == ("failed", "its process ended with exit code 9")

    def test_what_was_left_running_is_tried_again(self, where: str) -> None:
        left = self._left_running(where)
        self._go_on(where, lambda _: 0.9, 1, again=True)
        trials = self.search(where).trials
        assert not any(one.state == "running" for one in trials)
        again = [one for one in trials if one.number >= left.number and one.state == "finished"]
        assert [dict(one.parameters) for one in again] == [dict(left.parameters)]

    def _left_running(self, where: str) -> Trial:
        """A trial in which its process ended: how it was seen meanwhile, and is still."""
        seen: list[Trial] = []

        def ends(_: Mapping[str, Any]) -> float:
            seen.extend(one for one in self.search(where).trials if one.state == "running")
            raise SystemExit(9)

        with pytest.raises(SystemExit):
            self._go_on(where, ends, 1)
        assert len(seen) == 1
        assert [one.number for one in self.search(where).trials if one.state == "running"] == [seen[0].number]
        return seen[0]

    def _go_on(
        self,
        where: str,
        score: Callable[[Mapping[str, Any]], float],
        trials: int = 3,
        *,
        policy: RepairPolicy = RepairPolicy(0),  # noqa: B008 - frozen
        again: bool = False,
    ) -> None:
        if not self.goes_on:
            pytest.skip("this engine does not go on with searches")
        engine = self.engine(where)
        engine.go_on(engine.names()[0], self.function(score), trials, policy, again=again)

    def test_what_to_do_next_is_told(self, where: str) -> None:
        *steps, is_repaired = astuple(self.engine(where).steps(self.search(where), Limits()))
        assert all(isinstance(step, str) and step for step in steps)
        assert isinstance(is_repaired, bool)

    def test_noise_is_found_by_isorun(self, tmp_path: Path) -> None:
        percent, shares = tmp_path / "percent", tmp_path / "shares"
        percent.mkdir()
        shares.mkdir()
        judged = read_search(self.engine(self.fill(shares, (0.5, 0.25))), None, 0.01)
        assert judged.noise > 0
        assert judged.noise_from
        judged = read_search(self.engine(self.fill(percent, (50.0, 25.0))), None, 0.01)
        assert judged.noise != 0.01  # a prior's is that of shares of one

    def test_strategies_propose_within_the_space_and_the_same_for_the_same_seed(self) -> None:
        tried = tuple(Trial(number, "finished", 0.1 * number, _values(number)) for number in range(3))
        assert set(self.engine.by_chance) <= set(self.engine.strategies)
        for strategy in self.engine.strategies:
            for trials in ((), tried):
                search = Search(self.engine.name, "made", "higher", _SPACE, trials)
                found = dict(self.engine.propose(strategy, search, _SPACE, 7))
                assert found == dict(self.engine.propose(strategy, search, _SPACE, 7))
                assert set(found) == {one.name for one in _SPACE}
                assert all(one.holds(found[one.name]) for one in _SPACE), found


@dataclass(frozen=True)
class _ListeningPolicy(RepairPolicy):
    """The policy, and what it planned, by the number of the trial."""

    plans: dict[int, Proposal | None] = field(default_factory=dict)

    def plan(self, search: Search, number: int, taken: Iterable[Configuration] = ()) -> Proposal | None:
        """As it does, and remembered."""
        self.plans[number] = RepairPolicy.plan(self, search, number, taken)
        return self.plans[number]


def _values(number: int) -> Mapping[str, Any]:
    return {"lr": 10.0**-number, "units": 8 + 8 * number, "activation": "relu"}


def _told(trials: tuple[Trial, ...]) -> list[tuple[Any, ...]]:
    """What may never change of a trial that is over. What isorun offers is added to older ones, too."""
    return [
        (
            one.number,
            one.state,
            one.score if one.has_score else None,
            {name: value for name, value in one.parameters.items() if not is_offered(name)},
            one.why_failed,
            one.proposed_by,
        )
        for one in trials
    ]


def _bytes_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
