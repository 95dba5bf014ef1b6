"""The recorder takes what trainings hand over, never raises into them, and never leaves half a line."""

from __future__ import annotations

import base64
import errno
import os
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from worker_trainings import read_run

from isorun.worker import api, arrays, recorder
from isorun.worker import runfolder as event_files


@pytest.fixture
def run(tmp_path: Path) -> recorder.Recorder:
    started = recorder.Recorder(tmp_path)
    started.begin()
    return started


def events(started: recorder.Recorder, kind: str) -> list[dict]:
    return [event for event in read_run(started.folder).main if event["kind"] == kind]


class OnlyAnArray:
    """As TensorFlow's scalars are: no `item`, but a way to become an array."""

    def __array__(self, dtype=None, copy=None):
        return np.array(0.75)


@pytest.mark.parametrize(
    ("given_value", "recorded"),
    [
        (0.5, 0.5),
        (3, 3),
        (True, 1),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), 1),
        (np.array(0.25), 0.25),
        (np.array([2.0]), 2.0),
        (torch.tensor(0.5, requires_grad=True), 0.5),
        (torch.tensor(3), 3),
        (torch.tensor(0.5, dtype=torch.bfloat16), 0.5),
        (OnlyAnArray(), 0.75),
        (float("nan"), "NaN"),
        (torch.tensor(float("-inf")), "-Infinity"),
    ],
)
def test_numbers_of_any_framework_are_recorded(run, given_value, recorded):
    run.log(epoch=1, metric=given_value)
    assert events(run, "row")[0]["values"] == {"metric": recorded}


@pytest.mark.parametrize("bad", ["0.5", None, [1, 2], np.zeros(3), torch.zeros(2), 1 + 2j, object(), {}])
def test_a_value_that_is_no_number_becomes_a_note_and_the_others_are_recorded(run, bad):
    run.log(epoch=1, acc=0.5, wrong=bad)
    assert events(run, "row")[0]["values"] == {"acc": 0.5}
    (note,) = events(run, "note")
    assert note["code"] == "bad-metric"
    assert "wrong" in note["message"]
    assert "allowed" in note["message"]


@pytest.mark.parametrize("wrap", [str, lambda text: [text], lambda text: {"a": text}, lambda text: text.encode()])
def test_what_is_no_number_is_told_by_its_type_because_it_may_be_a_secret(run, wrap):
    value = wrap("Xk39fjQ0zLw8pT2v")
    run.log(acc=value)
    run.log(epoch=value, loss=1.0)
    run.result(final=value, per_class={"cat": value})
    run.log(predictions=value)
    told = [note["message"] for note in events(run, "note")]
    assert len(told) >= 4
    assert all("found" in message for message in told)
    assert b"Xk39fjQ0zLw8pT2v" not in b"".join(path.read_bytes() for path in run.folder.iterdir())


def test_the_same_complaint_is_noted_once(run):
    for epoch in range(5):
        run.log(epoch=epoch, wrong="x")
    assert len(events(run, "note")) == 1


def test_the_epoch_is_the_step_and_a_step_beside_it_is_kept(run):
    run.log(7, loss=1.0)
    run.log(step=8, epoch=2, loss=1.0)
    run.log(loss=1.0)
    rows = events(run, "row")
    assert [row["step"] for row in rows] == [7, 2, None]
    assert [row.get("substep") for row in rows] == [None, 8, None]


def test_flat_per_class_values_are_about_the_accuracy_and_nested_ones_keep_their_metric(run):
    run.log(epoch=1, per_class={0: 0.5, "cat": np.float32(1.0)})
    run.result(acc=1, per_class={"recall": {0: 0.25}, "accuracy": {1: 0.75}})
    assert events(run, "row")[0]["per_class"] == {"accuracy": {"0": 0.5, "cat": 1.0}}
    assert events(run, "result")[0]["per_class"] == {"recall": {"0": 0.25}, "accuracy": {"1": 0.75}}


def unpacked(packed: arrays.Packed) -> np.ndarray:
    data = zlib.decompress(base64.b64decode(packed.data))
    return np.frombuffer(data, np.dtype(packed.dtype).newbyteorder("<")).reshape(packed.shape)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30))
def test_classes_come_back_from_the_smallest_type_as_list_and_as_array(numbers):
    from_list = arrays.pack(numbers)
    from_array = arrays.pack(np.array(numbers, dtype=np.int64))
    assert from_list == from_array
    assert unpacked(from_list).tolist() == numbers
    width = np.dtype(from_list.dtype).itemsize
    smallest = next(
        np.dtype(name).itemsize
        for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
        if all(np.iinfo(name).min <= number <= np.iinfo(name).max for number in numbers)
    )
    assert width == smallest


def test_scores_are_float32_with_their_shape():
    scores = [[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]]
    from_list, from_torch = arrays.pack(scores), arrays.pack(torch.tensor(scores, dtype=torch.float64))
    assert from_list == from_torch
    assert (from_list.pred_kind, from_list.dtype, from_list.shape) == ("score", "float32", (3, 2))
    np.testing.assert_array_equal(unpacked(from_list), np.array(scores, dtype=np.float32))


def test_predictions_and_labels_are_named(run):
    run.result(predictions={"test": [1, 2]}, labels={"test": [1, 1]})
    run.log(epoch=3, predictions=torch.tensor([4, 5]))
    found = [(event["name"], event["step"], event["pred_kind"]) for event in events(run, "predictions")]
    assert found == [("test", None, "class"), ("test.labels", None, "class"), ("predictions", 3, "class")]


@pytest.mark.parametrize("bad", ["abc", [[1], [1, 2]], ["a"], np.array(["a"]), object()])
def test_predictions_that_are_no_numbers_become_a_note(run, bad):
    run.result(predictions=bad)
    assert events(run, "predictions") == []
    assert [note["code"] for note in events(run, "note")] == ["bad-predictions"]


def test_a_digest_of_something_without_bits_becomes_a_note(run):
    assert run.digest("weights.final", object()) is None
    assert [note["code"] for note in events(run, "note")] == ["bad-digest"]
    assert run.digest_names == set()


def test_outside_isorun_the_calls_do_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recorder, "_active", None)
    api.log(epoch=1, acc="not a number")
    api.result(acc=1)
    assert api.digest("x", [1]) is None
    assert list(tmp_path.iterdir()) == []


def test_threads_write_whole_lines(run):
    threads = [threading.Thread(target=lambda n=n: [run.log(epoch=e, thread=n) for e in range(200)]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = events(run, "row")
    assert len(rows) == 800
    for n in range(4):
        assert [row["step"] for row in rows if row["values"]["thread"] == n] == list(range(200))


def test_a_second_process_of_the_same_run_has_a_file_only_when_it_logs(run, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 4_000_001)
    helper = recorder.Recorder(run.folder)
    helper.begin()
    helper.note("quiet", "nothing to say")
    assert sorted(path.name for path in run.folder.glob("events*")) == ["events.jsonl"]
    helper.log(epoch=1, acc=0.5)
    kinds = [event["kind"] for event in read_run(run.folder).main]
    assert kinds == ["start", "note", "row"]


def test_other_ranks_never_take_the_main_place(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    second = recorder.Recorder(tmp_path)
    second.begin()
    second.log(epoch=1, acc=0.1)
    monkeypatch.setenv("RANK", "0")
    first = recorder.Recorder(tmp_path)
    first.begin()
    found = read_run(tmp_path)
    assert [event["rank"] for event in found.main if event["kind"] == "start"] == [0]
    assert len(found.others) == 1


class FailingDisk:
    """`os.pwrite` that fails, or writes half a line, for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failure = ""
        self._write = os.pwrite
        monkeypatch.setattr(event_files.os, "pwrite", self)

    def __call__(self, descriptor: int, data: bytes, place: int) -> int:
        if self.failure == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._write(descriptor, data[: len(data) // 2] if self.failure == "half" else data, place)


@pytest.mark.parametrize("failure", ["full", "half"])
def test_events_wait_for_a_full_disk_and_the_file_shows_that_some_are_missing(run, monkeypatch, failure):
    disk = FailingDisk(monkeypatch)
    run.log(epoch=0, acc=0.0)
    disk.failure = failure
    run.log(epoch=1, acc=0.1)
    run.log(epoch=2, acc=0.2)
    found = read_run(run.folder)
    assert found.torn_bytes > 0
    assert [event["step"] for event in found.main if event["kind"] == "row"] == [0]
    disk.failure = ""
    run.log(epoch=3, acc=0.3)
    assert [row["step"] for row in events(run, "row")] == [0, 1, 2, 3]
    assert read_run(run.folder).torn_bytes == 0


def test_a_half_line_that_cannot_be_cut_yet_is_cut_before_the_next_write(run, monkeypatch):
    disk = FailingDisk(monkeypatch)
    truncate = os.ftruncate
    disk.failure = "half"
    monkeypatch.setattr(event_files.os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
    run.log(epoch=1, acc=0.1)
    assert read_run(run.folder).torn_bytes > 0
    disk.failure = ""
    run.log(epoch=2, acc=0.2)
    assert events(run, "row") == []
    monkeypatch.setattr(event_files.os, "ftruncate", truncate)
    run.finish({"kind": "end", "t": 0})
    assert [row["step"] for row in events(run, "row")] == [1, 2]
    assert read_run(run.folder).torn_bytes == 0


def test_what_waits_is_bounded_and_the_loss_is_told(run, monkeypatch):
    monkeypatch.setattr(event_files, "MAX_WAITING_BYTES", 500)
    disk = FailingDisk(monkeypatch)
    disk.failure = "full"
    for epoch in range(50):
        run.log(epoch=epoch, acc=0.1)
    disk.failure = ""
    run.finish({"kind": "end", "t": 0})
    (note,) = events(run, "note")
    assert note["code"] == "events-lost"
    lost = int(note["message"].split("; ")[1].split()[0])
    assert lost + len(events(run, "row")) == 50


def test_an_array_of_classes_becomes_a_note_and_what_is_logged_beside_it_stays(run):
    run.log(epoch=1, loss=0.5, per_class=np.array([0.1, 0.2]))
    run.result(acc=0.9, per_class=np.array([0.1, 0.2]))
    run.log(epoch=2, loss=0.4, per_class={})
    assert [event["values"] for event in events(run, "row")] == [{"loss": 0.5}, {"loss": 0.4}]
    assert events(run, "result")[0]["values"] == {"acc": 0.9}
    assert [event["code"] for event in events(run, "note")] == ["bad-metric"]


def test_per_class_of_the_wrong_kind_becomes_a_note(run):
    run.log(epoch=1, per_class=[0.1, 0.2])
    assert [note["code"] for note in events(run, "note")] == ["bad-metric"]


def test_shortened_values_fit_a_line():
    assert len(recorder.shortened("x" * 500)) == 60
