import math

from hypothesis import given
from hypothesis import strategies as st

from isorun.execution.worker_events import EventLog, non_finite_notes, read_run_folder
from isorun.study.records import Seeded, Series
from isorun.worker.runfolder import create, encode


def row(step, t=0.0, per_class=None, **values):
    return {"kind": "row", "t": t, "step": step, "values": values, "per_class": per_class or {}}


def written(events):
    return b"".join(encode(number, event) for number, event in enumerate(events))


def test_rows_become_series_with_their_steps_and_seconds():
    log = EventLog.of([row(1, t=0.5, loss=2.0, acc=0.1), row(2, t=1.5, loss=1.0)])
    assert log.series["loss"] == Series((1.0, 2.0), (0.5, 1.5), (2.0, 1.0))
    assert log.series["acc"] == Series((1.0,), (0.5,), (0.1,))


def test_points_without_a_step_are_numbered_for_each_metric():
    log = EventLog.of([row(None, loss=3.0), row(None, acc=0.5), row(None, loss=2.0)])
    assert log.series["loss"].steps == (0.0, 1.0)
    assert log.series["acc"].steps == (0.0,)


def test_words_for_numbers_that_json_cannot_hold_are_read_back():
    values = EventLog.of([row(1, x="NaN"), row(2, x="-Infinity")]).series["x"].values
    assert math.isnan(values[0])
    assert values[1] == -math.inf


def test_later_results_win_and_classes_are_collected():
    log = EventLog.of(
        [
            {"kind": "result", "t": 0, "values": {"acc": 0.1, "f1": 0.2}, "per_class": {"acc": {"cat": 0.3}}},
            {"kind": "result", "t": 1, "values": {"acc": 0.9}, "per_class": {"acc": {"dog": 0.4}}},
        ]
    )
    assert log.results == {"acc": 0.9, "f1": 0.2}
    assert log.per_class == {"acc": {"cat": 0.3, "dog": 0.4}}


def test_digests_of_several_steps_do_not_overwrite_each_other():
    log = EventLog.of(
        [
            {"kind": "digest", "name": "weights", "value": "a", "step": 1},
            {"kind": "digest", "name": "weights", "value": "b", "step": 2},
            {"kind": "digest", "name": "weights.final", "value": "c", "step": None},
        ]
    )
    assert log.digests == {"weights@1": "a", "weights@2": "b", "weights.final": "c"}


def test_digests_of_steps_beyond_a_million_are_told_apart():
    steps = (1_000_000, 1_000_001, 1_000_000.5)
    log = EventLog.of({"kind": "digest", "name": "policy", "value": str(step), "step": step} for step in steps)
    assert log.digests == {f"policy@{step}": str(step) for step in steps}


def left_by(folder, *processes):
    """A run folder with the events of these processes, each a list."""
    for pid, events in enumerate(processes, start=11):
        file = create(folder / ("events.jsonl" if pid == 11 else f"events-{pid}.jsonl"))
        for event in ({"kind": "start", "t": 0, "pid": pid}, *events, {"kind": "end", "t": 1}):
            file.append(event)
        file.close()
    return read_run_folder(folder)


def test_processes_that_log_one_name_with_values_of_their_own_are_told(tmp_path):
    log = left_by(tmp_path, [row(1, loss=1.0)], [row(1, acc=0.6, loss=1.0)], [row(1, acc=0.5, fold=3)])
    (note,) = log.notes
    assert note.code == "several-processes"
    assert note.message == "several processes logged acc, each its own values; kept are those of process 12"
    assert list(log.series["acc"].values) == [0.6]


def test_processes_that_log_the_same_values_or_names_of_their_own_are_not(tmp_path):
    values = {"loss": "NaN", "acc": 0.5}
    assert not left_by(tmp_path, [row(1, **values)], [row(1, **values)], [row(1, fold_2=0.5)]).notes


def test_predictions_seeds_notes_environment_start_and_end_are_taken():
    log = EventLog.of(
        [
            {"kind": "start", "t": 0, "pid": 3},
            {
                "kind": "predictions",
                "name": "t",
                "step": None,
                "pred_kind": "class",
                "dtype": "u1",
                "shape": [2],
                "data": "",
            },
            {"kind": "seeded", "call": "random.seed", "value": 7, "where": "train.py:3"},
            {"kind": "seeded", "call": "random.seed", "value": 8, "where": "train.py:4", "replaced": "99"},
            {"kind": "note", "code": "c", "message": "m"},
            {"kind": "environment", "effective": {"cpu": 1}},
            {"kind": "end", "t": 5.0},
        ]
    )
    assert log.start["pid"] == 3
    assert log.predictions[0].shape == (2,)
    assert log.seeded == [Seeded("random.seed", "7", "train.py:3"), Seeded("random.seed", "8", "train.py:4", "99")]
    assert [(note.code, note.message) for note in log.notes] == [("c", "m")]
    assert log.effective == {"cpu": 1}
    assert log.ended


def test_events_that_are_not_understood_are_noted_once_and_harm_nothing():
    log = EventLog.of([{"kind": "hologram"}, {"kind": "hologram"}, {"kind": "row", "t": 0, "values": 3}, row(1, a=1.0)])
    assert log.series["a"].values == (1.0,)
    assert [note.code for note in log.notes] == ["unknown-event", "unknown-event"]


def test_watched_rows_are_thinned_evenly_and_the_first_that_went_wrong_stays():
    events = [{"kind": "watched", "t": 0.0, "step": step, "finite": step < 777} for step in range(5000)]
    rows = EventLog.of(events).watched
    assert 100 <= len(rows) <= 201
    steps = [row["step"] for row in rows]
    assert steps[0] == 0
    assert steps[-1] == 4999
    assert 777 in steps
    assert steps == sorted(steps)
    assert "kind" not in rows[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = ["start", "row", "result", "predictions", "digest", "seeded", "environment", "note", "end", "watched"]
KINDS.append("other")
FIELDS = ["t", "step", "values", "per_class", "name", "value", "effective", "code", "shape", "data"]


@given(
    events=st.lists(
        st.builds(
            lambda kind, fields: {"kind": kind, **fields},
            st.sampled_from(KINDS),
            st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=6),
        ),
        max_size=5,
    )
)
def test_no_event_whatever_it_holds_ends_in_an_error(events):
    log = EventLog.of(events)
    assert all(len(item.steps) == len(item.values) for item in log.series.values())


def test_what_another_process_logged_fills_gaps_and_never_replaces(tmp_path):
    main = [{"kind": "start", "t": 0}, row(1, acc=0.5)]
    other = [{"kind": "start", "t": 0}, row(1, acc=0.1, loss=0.2)]
    (tmp_path / "events.jsonl").write_bytes(written(main))
    (tmp_path / "events-17.jsonl").write_bytes(written(other))
    log = read_run_folder(tmp_path)
    assert log.series["acc"].values == (0.5,)
    assert log.series["loss"].values == (0.2,)


def test_a_torn_end_is_left_out_and_noted(tmp_path):
    (tmp_path / "events.jsonl").write_bytes(written([row(1, acc=0.5), row(2, acc=0.6)])[:-5])
    log = read_run_folder(tmp_path)
    assert log.series["acc"].values == (0.5,)
    assert [note.code for note in log.notes] == ["torn-events"]


def test_a_folder_without_events_is_an_empty_log(tmp_path):
    assert not read_run_folder(tmp_path).start


def test_values_that_are_not_finite_are_counted_by_metric():
    series = {"loss": Series((0.0, 1.0), (0.0, 0.0), (1.0, math.nan)), "acc": Series((0.0,), (0.0,), (0.5,))}
    notes = non_finite_notes({"loss": math.inf}, series)
    assert [note.message for note in notes] == ["loss: 2 of 3 values are NaN or infinite"]
