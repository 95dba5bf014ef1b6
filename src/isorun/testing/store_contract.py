"""What every store promises, as tests: subclass `StoreContract`, say how your store is opened, and let pytest find it.

class TestMyStore(StoreContract):
    def open(self, place, *, create=True):
        return MyStore(place, create=create)

The rules are those of `isorun.store.AbstractStore`; what a store keeps of a record and which records contradict each
other is in `isorun.store`, for stores to call. Errors are known by their type: messages are the store's own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isorun.errors import StoreConflict, StoreError, StoreMissing
from isorun.store import PLANS, SEARCHES, STUDIES, AbstractStore, Claim, stored_form
from isorun.study.cells import Cell
from isorun.study.records import RunState, Series
from isorun.testing.made_records import content, make_cell, make_record

__all__ = ["StoreContract"]

_FAILED = [RunState.FAILED, RunState.TIMED_OUT, RunState.INTERRUPTED]
_SETTLED = pytest.mark.parametrize("settled", [False, True])
_ODD: list[dict[str, Any]] = [
    {"series": {}},
    {"series": {"loss": Series((), (), ())}},
    {"series": {"loss": Series((1.0, 5.0, 2.0), (3.0, 1.0, 2.0), (math.nan, math.inf, -math.inf))}},
    {"series": {"loss": Series((0, 1), (5.0, 5.0), (1, 2))}},
    {"results": {"loss": math.nan, "accuracy": -math.inf}},
    {"wall_seconds": math.nan, "cpu_seconds": math.inf},
    {"wall_seconds": -0.0, "cpu_seconds": 3},
    {
        "log_tail": "caf\u00e9 \udce9 \x00 \U0001f600",
        "reason": "\udce9",
        "digests": {"\udce9": "\udce9", "A": "AB"},
    },
    {"predictions": (), "digests": {}, "environment": {}, "code": {}, "origins": {}},
    {"environment": {"effective": None, "requested": {"list": list(range(100))}, "x": [1]}},
    {"seed_used": 2**200, "exit_code": None, "signal": "SIGKILL"},
    {"watched": ({"step": 1, "epoch": None, "layers": ["a", "\udce9"], "gradient": [0.1, "NaN"], "finite": False}, {})},
]


def _needs_claims_again(store: AbstractStore) -> None:
    if type(store).claim_again is AbstractStore.claim_again:
        pytest.skip("this store takes no claim again, which the base allows")


def _needs_claims_that_stay(store: AbstractStore) -> None:
    _needs_claims_again(store)
    claim = store.claim("stays")
    if claim is None or type(claim).leave is Claim.leave:
        pytest.skip("claims of this store do not stay, which the base allows")
    claim.release()


class StoreContract:
    """The promises of `AbstractStore`.

    A store that lasts is opened several times at one place within a test. settle: bring about what the store does in
    its own time, such as moving records to where they stay; nothing may change by it.
    """

    lasting = True

    def open(self, place: Path, *, create: bool = True) -> AbstractStore:
        """The store at this place, made there when it is missing and `create` says so."""
        raise NotImplementedError

    def settle(self, store: AbstractStore) -> None:
        """Do now what the store would do later by itself."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[AbstractStore]:
        """An empty store."""
        with self.open(tmp_path / "store") as opened:
            yield opened

    def test_a_cell_is_claimed_once(self, store: AbstractStore) -> None:
        claim = store.claim("a")
        assert claim is not None
        assert (claim.cell_id, claim.attempt) == ("a", 1)
        assert store.claim("a") is None
        assert store.claim("b") is not None

    def test_a_released_claim_can_be_taken_again_with_a_higher_attempt(self, store: AbstractStore) -> None:
        attempts = []
        for _ in range(3):
            claim = store.claim("a")
            assert claim is not None
            attempts.append(claim.attempt)
            claim.release()
            claim.release()
        assert attempts == [1, 2, 3]

    def test_an_old_claim_released_late_does_not_free_the_new_one(self, store: AbstractStore) -> None:
        old = store.claim("a")
        assert old is not None
        old.release()
        assert store.claim("a") is not None
        old.release()
        assert store.claim("a") is None

    def test_who_holds_a_claim_is_told(self, store: AbstractStore) -> None:
        assert list(store.holders()) == []
        first, second = store.claim("a"), store.claim("b")
        assert first is not None
        assert second is not None
        assert [(holder.cell_id, holder.attempt, holder.pid) for holder in store.holders()] == [
            ("a", 1, os.getpid()),
            ("b", 1, os.getpid()),
        ]
        assert all(holder.host and holder.since for holder in store.holders())
        first.release()
        assert [holder.cell_id for holder in store.holders()] == ["b"]
        second.release()
        assert list(store.holders()) == []

    def test_attempts_grow_after_a_record(self, store: AbstractStore) -> None:
        for expected in (1, 2):
            claim = store.claim(make_cell().id)
            assert claim is not None
            assert claim.attempt == expected
            store.finish(make_record(attempt=claim.attempt, state=RunState.FAILED))
            claim.release()
            self.settle(store)

    def test_a_finished_cell_is_not_handed_out(self, store: AbstractStore) -> None:
        store.finish(make_record())
        assert store.claim(make_cell().id) is None
        self.settle(store)
        assert store.claim(make_cell().id) is None

    @pytest.mark.parametrize("state", _FAILED)
    @_SETTLED
    def test_a_failed_cell_is_handed_out_after_its_recorded_attempts(
        self, store: AbstractStore, state: RunState, settled: bool
    ) -> None:
        store.finish(make_record(state=state, attempt=7))
        if settled:
            self.settle(store)
        claim = store.claim(make_cell().id)
        assert claim is not None
        assert claim.attempt == 8

    def test_any_of_some_cells_can_be_claimed(self, store: AbstractStore) -> None:
        done, held = make_cell(1), store.claim("held")
        store.finish(make_record(done))
        assert held is not None
        asked = [done.id, "held", "b", "a", "c"]
        assert store.claim_any([done.id, "held"]) == store.claim_any([]) == []
        assert [(claim.cell_id, claim.attempt) for claim in store.claim_any(asked)] == [("b", 1)]
        assert [claim.cell_id for claim in store.claim_any(asked, 5)] == ["a", "c"]
        held.release()
        assert [(claim.cell_id, claim.attempt) for claim in store.claim_any(asked, 5)] == [("held", 2)]

    def test_the_claim_of_an_attempt_can_be_taken_again_as_long_as_it_is_the_latest(self, store: AbstractStore) -> None:
        _needs_claims_again(store)
        cell = make_cell()
        first = store.claim(cell.id)
        assert first is not None
        assert store.claim_again(cell.id, 1) is None, "it is held"
        first.release()
        again = store.claim_again(cell.id, 1)
        assert again is not None
        assert (again.cell_id, again.attempt) == (cell.id, 1)
        assert store.claim(cell.id) is None
        assert store.claim_again(cell.id, 1) is None
        assert [(holder.cell_id, holder.attempt) for holder in store.holders()] == [(cell.id, 1)]
        again.release()
        later = store.claim(cell.id)
        assert later is not None
        assert later.attempt == 2
        later.release()
        assert store.claim_again(cell.id, 1) is None, "a later attempt was made"
        assert store.claim_again(cell.id, 2) is not None

    @_SETTLED
    @pytest.mark.parametrize("state", [*_FAILED, RunState.FINISHED])
    def test_an_attempt_that_left_a_record_is_not_claimed_again(
        self, store: AbstractStore, state: RunState, settled: bool
    ) -> None:
        _needs_claims_again(store)
        cell = make_cell()
        claim = store.claim(cell.id)
        assert claim is not None
        store.finish(make_record(cell, state=state))
        claim.release()
        if settled:
            self.settle(store)
        assert store.claim_again(cell.id, 1) is None

    def test_a_run_whose_claim_was_taken_again_finishes_once(self, store: AbstractStore) -> None:
        _needs_claims_again(store)
        cell = make_cell()
        claim = store.claim(cell.id)
        assert claim is not None
        claim.release()
        again = store.claim_again(cell.id, 1)
        assert again is not None
        store.finish(make_record(cell))
        again.release()
        self.settle(store)
        assert store.finished() == {cell.id}
        assert store.claim(cell.id) is None

    def test_a_run_that_was_left_is_nobodys_until_its_attempt_is_taken_again(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:
            _needs_claims_that_stay(store)
            cell = make_cell()
            claim = store.claim(cell.id)
            assert claim is not None
            claim.leave()
            claim.release()
            if not self.lasting:
                self._holds_a_run_that_was_left(store, cell)
                return
        with self.open(tmp_path) as store:
            self._holds_a_run_that_was_left(store, cell)

    def _holds_a_run_that_was_left(self, store: AbstractStore, cell: Cell) -> None:
        assert [(one.cell_id, one.attempt, one.left) for one in store.holders()] == [(cell.id, 1, True)]
        assert store.claim(cell.id) is None
        assert store.claim_any([cell.id]) == []
        assert store.claim_again(cell.id, 2) is None, "that is another attempt"
        again = store.claim_again(cell.id, 1)
        assert again is not None
        assert [one.left for one in store.holders()] == [False]
        assert store.claim_again(cell.id, 1) is None, "it is held"
        store.finish(make_record(cell, state=RunState.INTERRUPTED))
        again.leave()
        later = store.claim(cell.id)
        assert later is not None, "what has a record is over"
        assert later.attempt == 2

    def test_closing_gives_claims_back(self, tmp_path: Path) -> None:
        if not self.lasting:
            pytest.skip("this store ends when it is closed")
        with self.open(tmp_path) as first, self.open(tmp_path) as second:
            assert first.claim("a") is not None
            assert second.claim("a") is None
            assert [holder.cell_id for holder in second.holders()] == ["a"]
            first.close()
            assert second.claim("a") is not None

    def test_a_store_is_found_again_as_it_was_left(self, tmp_path: Path) -> None:
        if not self.lasting:
            pytest.skip("this store ends when it is closed")
        with self.open(tmp_path) as store:
            key = store.key
            store.finish(make_record())
            store.documents(STUDIES).write("mine", {"a": 1})
        with self.open(tmp_path) as store:
            assert store.key == key
            assert store.run_ids() == {make_record().run_id}
            assert store.documents(STUDIES).read("mine") == {"a": 1}

    def test_a_store_that_is_not_there_is_not_made_unless_asked(self, tmp_path: Path) -> None:
        if not self.lasting:
            pytest.skip("this store ends when it is closed")
        for _ in range(2):  # had the first time made it, the second would find it
            with pytest.raises(StoreMissing):
                self.open(tmp_path / "store", create=False)
        with self.open(tmp_path / "store") as store:
            store.finish(make_record())
        with self.open(tmp_path / "store", create=False) as store:
            assert store.run_ids() == {make_record().run_id}

    @_SETTLED
    def test_a_record_comes_back_whole(self, store: AbstractStore, settled: bool) -> None:
        record = make_record()
        store.finish(record)
        if settled:
            self.settle(store)
        (found,) = store.records()
        assert content(found) == content(stored_form(record))
        assert store.finished() == {record.cell.id}
        assert store.run_ids() == {record.run_id}

    def test_seconds_keep_their_promised_precision(self, store: AbstractStore) -> None:
        record = make_record(points=300)
        store.finish(record)
        self.settle(store)
        (found,) = store.records()
        for metric, series in record.series.items():
            assert found.series[metric].values == series.values
            assert found.series[metric].steps == series.steps
            assert found.series[metric].seconds == pytest.approx(series.seconds, abs=1.1 / 65_000, rel=0)

    @_SETTLED
    def test_the_same_record_twice_is_nothing(self, store: AbstractStore, settled: bool) -> None:
        for _ in range(2):
            store.finish(make_record())
            if settled:
                self.settle(store)
        (found,) = store.records()
        store.finish(found)
        self.settle(store)
        assert len(store.records()) == 1

    @_SETTLED
    @pytest.mark.parametrize("attempt", [1, 2])
    def test_a_different_record_for_a_finished_cell_is_a_conflict(
        self, store: AbstractStore, settled: bool, attempt: int
    ) -> None:
        store.finish(make_record(accuracy=0.9, attempt=1))
        if settled:
            self.settle(store)
        with pytest.raises(StoreConflict):
            store.finish(make_record(accuracy=0.8, attempt=attempt))
        self.settle(store)
        (found,) = store.records()
        assert found.results == {"accuracy": 0.9}

    def test_a_later_failed_attempt_at_a_finished_cell_is_a_conflict(self, store: AbstractStore) -> None:
        store.finish(make_record(attempt=1))
        with pytest.raises(StoreConflict):
            store.finish(make_record(attempt=2, state=RunState.FAILED))
        assert store.run_ids() == {make_record(attempt=1).run_id}

    def test_an_earlier_failed_attempt_may_arrive_after_the_finished_one(self, store: AbstractStore) -> None:
        store.finish(make_record(attempt=2))
        self.settle(store)
        store.finish(make_record(attempt=1, state=RunState.FAILED))
        self.settle(store)
        assert [record.attempt for record in store.records()] == [1, 2]

    def test_a_worker_that_was_replaced_cannot_finish_any_more(self, store: AbstractStore) -> None:
        store.finish(make_record(attempt=2, state=RunState.FAILED))
        with pytest.raises(StoreConflict):
            store.finish(make_record(attempt=1))
        assert store.finished() == set()

    @_SETTLED
    def test_whoever_lost_the_claim_cannot_finish_any_more(self, store: AbstractStore, settled: bool) -> None:
        cell = make_cell()
        replaced = store.claim(cell.id)
        assert replaced is not None
        replaced.release()
        latest = store.claim(cell.id)
        assert latest is not None
        with pytest.raises(StoreConflict):
            store.finish(make_record(cell, attempt=replaced.attempt, accuracy=0.1))
        store.finish(make_record(cell, attempt=replaced.attempt, state=RunState.FAILED))
        if settled:
            self.settle(store)
        store.finish(make_record(cell, attempt=latest.attempt, accuracy=0.9))
        latest.release()
        found = {record.attempt: record.state for record in store.records()}
        assert found == {replaced.attempt: RunState.FAILED, latest.attempt: RunState.FINISHED}

    def test_a_record_that_cannot_be_kept_is_refused_before_it_is_acknowledged(self, store: AbstractStore) -> None:
        with pytest.raises(ValueError, match="64 bits"):
            store.finish(make_record(peak_memory_bytes=2**70))
        self.settle(store)
        assert store.run_ids() == set()

    def test_records_are_ordered_by_cell_and_attempt_and_can_be_chosen(self, store: AbstractStore) -> None:
        cells = [make_cell(seed) for seed in range(5)]
        for cell in cells:
            for attempt in (11, 2, 1):
                state = RunState.FINISHED if attempt == 11 else RunState.FAILED
                store.finish(make_record(cell, attempt=attempt, state=state))
            if cell.seed == 2:
                self.settle(store)
        order = [(record.cell.id, record.attempt) for record in store.records()]
        assert order == sorted(order)
        assert len(order) == 15
        assert store.run_ids() == {f"{cell}-{attempt}" for cell, attempt in order}
        chosen = store.records([cells[0].id, cells[4].id, "unknown"])
        assert {record.cell.seed for record in chosen} == {0, 4}
        assert len(chosen) == 6

    @_SETTLED
    def test_the_ids_of_some_cells_can_be_asked_for(self, store: AbstractStore, settled: bool) -> None:
        done, failed, other = (make_cell(seed) for seed in range(3))
        store.finish(make_record(done, attempt=1, state=RunState.FAILED))
        store.finish(make_record(done, attempt=2))
        store.finish(make_record(failed, state=RunState.FAILED))
        store.finish(make_record(other))
        if settled:
            self.settle(store)
        asked = [done.id, failed.id, "unknown"]
        assert store.finished(iter(asked)) == {done.id}
        assert store.run_ids(iter(asked)) == {f"{done.id}-1", f"{done.id}-2", f"{failed.id}-1"}
        assert store.finished([]) == store.run_ids([]) == set()
        assert store.finished() == {done.id, other.id}
        assert len(store.run_ids()) == 4

    @pytest.mark.parametrize("changes", _ODD, ids=repr)
    def test_odd_contents_survive(self, store: AbstractStore, changes: dict[str, Any]) -> None:
        record = make_record(make_cell(2**70), **changes)
        store.finish(record)
        before = [content(item) for item in store.records()]
        assert before == [content(stored_form(record))]
        self.settle(store)
        assert [content(item) for item in store.records()] == before

    def test_documents_are_kept_by_kind_and_replaced_whole(self, store: AbstractStore) -> None:
        studies, plans = store.documents(STUDIES), store.documents(PLANS)
        assert studies.names() == ()
        assert studies.read("a") is None
        studies.write("a", {"text": "caf\u00e9", "nested": {"list": [1, None]}})
        studies.write("a", {"now": "another"})
        assert studies.read("a") == store.documents(STUDIES).read("a") == {"now": "another"}
        assert (studies.names(), plans.names(), plans.read("a")) == (("a",), (), None)
        assert "a" in studies.place("a")

    @pytest.mark.parametrize("kind", [STUDIES, PLANS, SEARCHES])
    def test_documents_of_every_kind_are_kept(self, store: AbstractStore, kind: str) -> None:
        store.documents(kind).write("a-1", {"kind": kind})
        assert store.documents(kind).read("a-1") == {"kind": kind}
        others = {STUDIES, PLANS, SEARCHES} - {kind}
        assert [store.documents(other).names() for other in others] == [(), ()]

    @pytest.mark.parametrize("name", ["", ".", "..", "../a", "a/b", "/tmp/a", "a\0b", ".a", "a b", "a" * 81])  # noqa: S108
    def test_no_document_is_kept_under_a_name_that_is_a_path(self, store: AbstractStore, name: str) -> None:
        with pytest.raises(StoreError, match="under this name"):
            store.documents(PLANS).write(name, {})
        assert store.documents(PLANS).names() == ()

    def test_the_document_written_last_is_named_first(self, store: AbstractStore) -> None:
        plans = store.documents(PLANS)
        for name in ("b", "a", "d", "c", "b"):
            plans.write(name, {})
        assert plans.names() == store.documents(PLANS).names() == ("b", "c", "d", "a")

    def test_an_empty_store_has_nothing(self, store: AbstractStore) -> None:
        assert list(store.records()) == []
        assert store.finished() == store.run_ids() == set()
        assert store.notes() == ()
        assert len(store.key) >= 16
