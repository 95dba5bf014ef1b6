"""Against event files that real writers made."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.sources import Found, Reading
from isorun.sources.tensorboard import MalformedMessage, crc32c, masked_crc32c, scalars_in
from isorun.study.design import Sources


def read_files(sources: Sources, folder: Path, since_unix: float) -> Found:
    return Reading(sources).finish(folder, since_unix)[0]


def read(folder: Path, since: float, pattern: str = "tb") -> Found:
    return read_files(Sources(tensorboard=(pattern,)), folder, since)


def as_float32(value: float) -> float:
    number: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return number


@pytest.fixture
def writer_class() -> Any:
    tensorboard = pytest.importorskip("torch.utils.tensorboard", exc_type=ImportError)
    return tensorboard.SummaryWriter


def write_run(writer_class: Any, folder: Path, points: int = 3) -> Path:
    writer = writer_class(str(folder))
    for step in range(points):
        writer.add_scalar("val/acc", 0.1 * step, step)
        writer.add_scalar("loss", 1.0 / (step + 1), step, new_style=True)
    writer.add_scalar("precise", 0.1, 7, new_style=True, double_precision=True)
    writer.add_text("remark", "no number")
    writer.close()
    return next(folder.glob("*tfevents*"))


def test_scalars_of_both_styles_are_read_with_steps_and_times(tmp_path: Path, writer_class: Any) -> None:
    since = time.time()
    write_run(writer_class, tmp_path / "tb")
    found = read(tmp_path, since)
    assert set(found.series) == {"val/acc", "loss", "precise"}
    assert found.series["val/acc"].steps == (0.0, 1.0, 2.0)
    assert found.series["val/acc"].values == tuple(as_float32(0.1 * step) for step in range(3))
    assert found.series["loss"].values == tuple(as_float32(1 / (step + 1)) for step in range(3))
    assert found.series["precise"].values == (0.1,)
    assert all(-1 < seconds < 60 for seconds in found.series["loss"].seconds)
    assert found.origins["loss"].startswith("tensorboard: tb/events")
    assert found.notes == ()


def test_it_reads_what_tensorboards_own_reader_reads(tmp_path: Path, writer_class: Any) -> None:
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    since = time.time()
    write_run(writer_class, tmp_path / "tb", points=50)
    reference = loading.EventAccumulator(str(tmp_path / "tb")).Reload()
    found = read(tmp_path, since)
    for tag in reference.Tags()["scalars"]:
        events = reference.Scalars(tag)
        assert found.series[tag].values == tuple(event.value for event in events)
        assert found.series[tag].steps == tuple(float(event.step) for event in events)


def test_subfolders_prefix_their_tags_below_the_common_folder(tmp_path: Path, writer_class: Any) -> None:
    since = time.time()
    write_run(writer_class, tmp_path / "tb" / "version_3" / "train")
    write_run(writer_class, tmp_path / "tb" / "version_3" / "validation")
    names = set(read(tmp_path, since).series)
    assert {"train/loss", "validation/loss"} <= names


def test_files_of_an_earlier_run_are_left_out(tmp_path: Path, writer_class: Any) -> None:
    write_run(writer_class, tmp_path / "tb")
    found = read(tmp_path, time.time() + 100)
    assert found.series == {}
    assert [note.code for note in found.notes] == ["tensorboard.stale"]
    assert [note.code for note in read(tmp_path, 0.0, "nowhere").notes] == ["tensorboard.missing"]


def test_a_file_cut_at_any_byte_keeps_its_whole_records(tmp_path: Path, writer_class: Any) -> None:
    since = time.time() - 1
    path = write_run(writer_class, tmp_path / "tb")
    whole = path.read_bytes()
    counts = []
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        found = read(tmp_path, since)
        counts.append(sum(len(series.values) for series in found.series.values()))
        assert len(found.notes) <= 1
    assert counts == sorted(counts)
    assert set(counts) == set(range(8))


def test_no_changed_byte_gives_a_wrong_value(tmp_path: Path, writer_class: Any) -> None:
    since = time.time() - 1
    path = write_run(writer_class, tmp_path / "tb", points=1)
    whole = path.read_bytes()
    right = {(name, tuple(series.values)) for name, series in read(tmp_path, since).series.items()}
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        found = read(tmp_path, since)
        assert {(name, tuple(series.values)) for name, series in found.series.items()} <= right


def test_garbage_is_noted(tmp_path: Path) -> None:
    folder = tmp_path / "tb"
    folder.mkdir()
    (folder / "events.out.tfevents.1").write_bytes(b"this is no event file at all")
    found = read(tmp_path, 0.0)
    assert found.series == {}
    assert [note.code for note in found.notes] == ["tensorboard.torn"]
    assert "byte 0" in found.notes[0].message


def test_files_of_two_processes_in_one_folder_are_noted(tmp_path: Path, writer_class: Any) -> None:
    since = time.time() - 1
    path = write_run(writer_class, tmp_path / "tb")
    parts = path.name.split(".")
    other = ".".join([*parts[:-2], str(int(parts[-2]) + 1), parts[-1]])
    (path.parent / other).write_bytes(path.read_bytes())
    assert [note.code for note in read(tmp_path, since).notes] == ["tensorboard.several-writers"]


def test_the_checksum_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert masked_crc32c(b"") == 0xA282EAD8


@given(st.binary(max_size=300))
def test_any_bytes_are_an_event_or_refused(data: bytes) -> None:
    try:
        list(scalars_in(data))
    except MalformedMessage:
        return
