"""What every store promises, over all of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from store_records import content, make_cell, make_record, make_series

from isorun.errors import InputError, StoreConflict
from isorun.store.base import AbstractStore
from isorun.store.local import open_store
from isorun.store.memory import MemoryStore
from isorun.store.stored_form import stored_form
from isorun.study.levels import Level
from isorun.study.records import RunState, Series


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    with MemoryStore() if request.param == "memory" else open_store(tmp_path / "store") as opened:
        yield opened


class TestClaims:
    def test_a_cell_is_claimed_once(self, store: AbstractStore):
        claim = store.claim("a")
        assert claim is not None
        assert (claim.cell_id, claim.attempt) == ("a", 1)
        assert store.claim("a") is None
        assert store.claim("b") is not None

    def test_a_released_claim_can_be_taken_again_with_a_higher_attempt(self, store: AbstractStore):
        attempts = []
        for _ in range(3):
            claim = store.claim("a")
            assert claim is not None
            attempts.append(claim.attempt)
            claim.release()
            claim.release()
        assert attempts == [1, 2, 3]

    def test_an_old_claim_released_late_does_not_free_the_new_one(self, store: AbstractStore):
        old = store.claim("a")
        assert old is not None
        old.release()
        assert store.claim("a") is not None
        old.release()
        assert store.claim("a") is None

    def test_each_claim_has_an_empty_folder_of_its_own(self, store: AbstractStore):
        first = store.claim("a")
        assert first is not None
        folder = store.run_folder(first)
        assert list(folder.iterdir()) == []
        (folder / "events.jsonl").write_text("")
        first.release()
        second = store.claim("a")
        assert second is not None
        assert list(store.run_folder(second).iterdir()) == []

    def test_a_finished_cell_is_not_handed_out(self, store: AbstractStore):
        store.finish(make_record())
        assert store.claim(make_cell().id) is None
        store.pack()
        assert store.claim(make_cell().id) is None

    @pytest.mark.parametrize("state", [RunState.FAILED, RunState.TIMED_OUT, RunState.INTERRUPTED])
    @pytest.mark.parametrize("packed", [False, True])
    def test_a_failed_cell_is_handed_out_after_its_recorded_attempts(self, store: AbstractStore, state, packed):
        store.finish(make_record(state=state, attempt=7))
        if packed:
            store.pack()
        claim = store.claim(make_cell().id)
        assert claim is not None
        assert claim.attempt == 8

    def test_closing_gives_claims_back(self, tmp_path: Path):
        with open_store(tmp_path) as first, open_store(tmp_path) as second:
            assert first.claim("a") is not None
            assert second.claim("a") is None
            first.close()
            assert second.claim("a") is not None


class TestFinishing:
    @pytest.mark.parametrize("packed", [False, True])
    def test_a_record_comes_back_whole(self, store: AbstractStore, packed):
        record = make_record()
        store.finish(record)
        if packed:
            assert store.pack() == 1
        (found,) = store.records()
        assert content(found) == content(stored_form(record))
        assert store.finished_cells() == {record.cell.id}

    def test_seconds_keep_their_promised_precision(self, store: AbstractStore):
        record = make_record(points=300)
        store.finish(record)
        store.pack()
        (found,) = store.records()
        for metric, series in record.series.items():
            assert found.series[metric].values == series.values
            assert found.series[metric].steps == series.steps
            assert found.series[metric].seconds == pytest.approx(series.seconds, abs=1.1 / 65_000, rel=0)

    @pytest.mark.parametrize("packed", [False, True])
    def test_the_same_record_twice_is_nothing(self, store: AbstractStore, packed):
        for _ in range(2):
            store.finish(make_record())
            if packed:
                store.pack()
        (found,) = store.records()
        store.finish(found)
        store.pack()
        assert len(store.records()) == 1

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("attempt", [1, 2])
    def test_a_different_record_for_a_finished_cell_is_a_conflict(self, store: AbstractStore, packed, attempt):
        store.finish(make_record(accuracy=0.9, attempt=1))
        if packed:
            store.pack()
        with pytest.raises(StoreConflict, match="second, different record"):
            store.finish(make_record(accuracy=0.8, attempt=attempt))
        store.pack()
        (found,) = store.records()
        assert found.results == {"accuracy": 0.9}

    def test_a_later_failed_attempt_at_a_finished_cell_is_a_conflict(self, store: AbstractStore):
        store.finish(make_record(attempt=1))
        with pytest.raises(StoreConflict, match="finished by attempt 1"):
            store.finish(make_record(attempt=2, state=RunState.FAILED))

    def test_an_earlier_failed_attempt_may_arrive_after_the_finished_one(self, store: AbstractStore):
        store.finish(make_record(attempt=2))
        store.pack()
        store.finish(make_record(attempt=1, state=RunState.FAILED))
        store.pack()
        assert [record.attempt for record in store.records()] == [1, 2]

    def test_a_worker_that_was_replaced_cannot_finish_any_more(self, store: AbstractStore):
        store.finish(make_record(attempt=2, state=RunState.FAILED))
        with pytest.raises(StoreConflict, match="attempt 2 was made and recorded after it"):
            store.finish(make_record(attempt=1))
        assert store.finished_cells() == set()

    def test_records_are_ordered_by_cell_and_attempt_and_can_be_chosen(self, store: AbstractStore):
        cells = [make_cell(seed) for seed in range(5)]
        for cell in cells:
            for attempt in (11, 2, 1):
                state = RunState.FINISHED if attempt == 11 else RunState.FAILED
                store.finish(make_record(cell, attempt=attempt, state=state))
            if cell.seed == 2:
                store.pack()
        order = [(record.cell.id, record.attempt) for record in store.records()]
        assert order == sorted(order)
        assert len(order) == 15
        chosen = store.records([cells[0].id, cells[4].id, "unknown"])
        assert {record.cell.seed for record in chosen} == {0, 4}
        assert len(chosen) == 6

    @pytest.mark.parametrize(
        "changes",
        [
            {"series": {}},
            {"series": {"loss": Series((), (), ())}},
            {"series": {"loss": Series((1.0, 5.0, 2.0), (3.0, 1.0, 2.0), (math.nan, math.inf, -math.inf))}},
            {"series": {"loss": Series((0, 1), (5.0, 5.0), (1, 2))}},
            {"results": {"loss": math.nan, "accuracy": -math.inf}},
            {"wall_seconds": math.nan, "cpu_seconds": math.inf},
            {
                "log_tail": "caf\u00e9 \udce9 \x00 \U0001f600",
                "reason": "\udce9",
                "digests": {"\udce9": "\udce9", "A": "AB"},
            },
            {"predictions": (), "digests": {}, "environment": {}, "code": {}, "sources": {}},
            {"environment": {"effective": None, "requested": {"list": list(range(100))}, "x": [1]}},
            {"seed_used": 2**200, "exit_code": None, "signal": "SIGKILL"},
        ],
        ids=repr,
    )
    def test_odd_contents_survive(self, store: AbstractStore, changes):
        record = make_record(make_cell(2**70), **changes)
        store.finish(record)
        before = [content(item) for item in store.records()]
        assert before == [content(stored_form(record))]
        store.pack()
        assert [content(item) for item in store.records()] == before


class TestReadingColumns:
    @pytest.fixture
    def filled(self, store: AbstractStore) -> AbstractStore:
        for number in range(6):
            cell = make_cell(number, level=Level.FIXED_SEED if number % 2 else Level.DETERMINISTIC)
            store.finish(make_record(cell, accuracy=float(number), points=4 + number))
            if number == 3:
                store.pack()
        store.finish(make_record(make_cell(99), state=RunState.FAILED, accuracy=-1.0))
        return store

    def test_a_frame_holds_every_point_of_every_record(self, filled: AbstractStore):
        frame = filled.frame()
        found = {}
        for run, metric, step, seconds, value in zip(
            frame.run, frame.metric, frame.step, frame.seconds, frame.value, strict=True
        ):
            points = found.setdefault((frame.runs[run].run_id, frame.metrics[metric]), [])
            points.append((step, seconds, value))
        expected = {
            (record.run_id, metric): list(zip(series.steps, series.seconds, series.values, strict=True))
            for record in filled.records()
            for metric, series in record.series.items()
        }
        assert found == expected
        assert len(frame.runs) == 7

    def test_a_frame_can_be_of_some_metrics(self, filled: AbstractStore):
        frame = filled.frame(["loss"])
        assert frame.metrics == ("loss",)
        assert len(frame) == sum(len(record.series["loss"].values) for record in filled.records())

    def test_an_unknown_metric_lists_the_known_ones(self, filled: AbstractStore):
        with pytest.raises(InputError, match="did you mean 'accuracy'") as raised:
            filled.frame(["acuracy"])
        assert "recall[0]" in raised.value.allowed
        with pytest.raises(InputError, match="no finished run recorded the metric"):
            filled.group_statistics("acuracy")

    def test_an_unknown_column_or_point_lists_the_known_ones(self, filled: AbstractStore):
        with pytest.raises(InputError, match="approach, config, environment, level, seed, repeat"):
            filled.group_statistics("loss", by=("colour",))
        with pytest.raises(InputError, match="last, first, highest, lowest, result"):
            filled.group_statistics("loss", point="best")

    def test_group_statistics_of_final_values_are_known(self, filled: AbstractStore):
        deterministic, fixed = filled.group_statistics("accuracy", by=("level",), point="result")
        assert deterministic.group == {"level": "deterministic"}
        assert (deterministic.n, deterministic.mean, deterministic.sd) == (3, 2.0, 2.0)
        assert (fixed.n, fixed.mean, fixed.minimum, fixed.maximum) == (3, 3.0, 1.0, 5.0)
        assert (fixed.missing, fixed.not_finite) == (0, 0)

    @pytest.mark.parametrize(
        ("point", "pick"),
        [("last", lambda v: v[-1]), ("first", lambda v: v[0]), ("highest", max), ("lowest", min)],
    )
    def test_points_of_series_are_picked(self, filled: AbstractStore, point, pick):
        groups = filled.group_statistics("loss", by=("seed",), point=point)
        finished = [record for record in filled.records() if record.state is RunState.FINISHED]
        expected = {record.cell.seed: pick(record.series["loss"].values) for record in finished}
        assert {item.group["seed"]: item.mean for item in groups} == expected
        assert all(math.isnan(item.sd) for item in groups)

    def test_no_grouping_gives_one_group(self, filled: AbstractStore):
        (everything,) = filled.group_statistics("accuracy", by=(), point="result")
        assert (everything.n, everything.mean) == (6, 2.5)

    def test_missing_and_non_finite_values_are_counted(self, store: AbstractStore):
        store.finish(make_record(make_cell(1), series={"loss": Series((0.0,), (0.0,), (math.nan,))}))
        store.finish(make_record(make_cell(2), series={"loss": Series((0.0,), (0.0,), (4.0,))}))
        store.pack()
        store.finish(make_record(make_cell(3), series={"other": make_series(2)}))
        (group,) = store.group_statistics("loss")
        assert (group.n, group.mean, group.not_finite, group.missing) == (1, 4.0, 1, 1)

    def test_an_empty_store_has_an_empty_frame(self, store: AbstractStore):
        frame = store.frame()
        assert (len(frame), frame.runs, frame.metrics) == (0, (), ())
        assert store.records() == []
        assert store.finished_cells() == set()
        assert store.pack() == 0
        assert store.notes() == ()
