"""The studies of the paper: what is planned at each scale, and that the training command understands it."""

import os
import stat

import pytest

from isorun.errors import DataError
from isorun.study.cells import cells_of, fill_placeholders
from isorun.zoo import machines
from isorun.zoo.paper import Request
from isorun.zoo.studies.tacl18 import idf_run, scales
from isorun.zoo.studies.tacl18.paper import Tacl18
from isorun.zoo.studies.tacl18.training.options import training_parser

FILES = (
    *(f"trecqa/{split}/pairs.tsv" for split in ("train", "raw-dev", "raw-test", "clean-dev", "clean-test")),
    *(f"wikiqa/{split}/pairs.tsv" for split in ("train", "dev", "test")),
    "trecqa/train-all-rebuilt/pairs.tsv.gz",
    "glove/glove6B-pca50d-qa-vocab.npz",
)
OTHER_SCALES = ("cpu", "gpu", "paper")


@pytest.fixture
def data_there(made_data_folder):
    """All data at hand as far as planning looks: it opens no file."""
    for name in FILES:
        (made_data_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made_data_folder / name).touch()
    return made_data_folder


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def planned(scale, tmp_path, **changes):
    return {study.name: study for study in Tacl18().studies(Request(scale, tmp_path, **changes))}


@pytest.mark.parametrize("scale", ["smoke", *OTHER_SCALES])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_scale_plans_cells_of_their_own(scale, device, data_there, tmp_path):
    studies = planned(scale, tmp_path, device=device)
    ids = [cell.id for study in studies.values() for cell in cells_of(study)]
    assert len(set(ids)) == len(ids)
    assert (f"tacl18-{scale}-devices" in studies) == (device == "cuda")
    always = ("baseline", "data", "threads", "cpu-paths", "onednn-off", "seeds")
    assert {f"tacl18-{scale}-{name}" for name in always} <= set(studies)


@pytest.mark.parametrize("scale", ["smoke", *OTHER_SCALES])
def test_the_training_command_understands_every_planned_command(scale, data_there, tmp_path):
    parsers = {
        "isorun.zoo.studies.tacl18.train": training_parser(""),
        "isorun.zoo.studies.tacl18.idf_run": idf_run._parser(),
    }
    for study in planned(scale, tmp_path, device="cuda").values():
        for cell in cells_of(study):
            fixed = {"seed": str(cell.seed), "repeat": "0", "level": str(cell.level), "run_dir": "."}
            words = fill_placeholders(cell.command, fixed, cell.config_values, "test")
            assert words[:2] == ("python", "-m")
            options = parsers[words[2]].parse_args(words[3:])
            if words[2].endswith("train"):
                assert options.seed == cell.seed
                assert options.device == ("cuda" if cell.config.startswith("GPU") else "cpu")
                assert (options.onednn == "off") == (cell.config == "CPU without oneDNN")
                assert (options.cudnn == "off") == (cell.config == "GPU without cuDNN")


def test_the_paper_scale_trains_as_published_on_200_seeds(data_there, tmp_path):
    study = planned("paper", tmp_path, device="cuda")["tacl18-paper-seeds"]
    assert len(study.seeds) == 200
    assert study.seeds[:3] == (30462, 7764, 12710)
    assert set(study.configs) == {"CPU", "GPU"}
    command = study.approaches["TrecQA"].command
    assert command[command.index("--train") : command.index("--train") + 2] == ("--train", "train-all")
    assert "--epochs" not in command
    assert command[command.index("--batch-size") + 1] == "1"


def test_runs_are_seeds_in_the_seeds_part_and_identical_runs_elsewhere(data_there, tmp_path):
    studies = planned("cpu", tmp_path, runs=4)
    assert len(studies["tacl18-cpu-seeds"].seeds) == 4
    assert studies["tacl18-cpu-seeds"].repeats == 1
    assert studies["tacl18-cpu-threads"].seeds == (1234,)
    assert studies["tacl18-cpu-threads"].repeats == 4
    assert studies["tacl18-cpu-cpu-paths"].repeats == 4


@pytest.mark.parametrize("part", ["threads", "cpu-paths"])
def test_rounding_has_time_to_reach_the_scores_where_it_is_all_that_differs(part, data_there, tmp_path):
    for study in planned("cpu", tmp_path, only=(part,)).values():
        assert not any("--epochs" in approach.command for approach in study.approaches.values())


def test_a_training_that_two_scales_have_in_common_is_the_same_cell(data_there, tmp_path):
    few, many = (cells_of(planned(scale, tmp_path)[f"tacl18-{scale}-seeds"]) for scale in ("cpu", "gpu"))
    trec = {cell.id for cell in few if cell.approach == "TrecQA"}
    assert len(trec) == 16
    assert trec <= {cell.id for cell in many}


def test_each_scale_tells_what_it_has_less_of_in_numbers():
    scales = Tacl18().scales
    assert scales["paper"].scaled_down == ()
    assert "100 seeds instead of 200" in scales["gpu"].scaled_down
    assert "300 of WikiQA's 873 training questions" in scales["cpu"].scaled_down
    assert any(text.startswith("1 epoch instead of") for text in scales["smoke"].scaled_down)


def test_only_the_parts_asked_for_are_planned(data_there, tmp_path):
    assert set(planned("cpu", tmp_path, only=("threads", "seeds"))) == {"tacl18-cpu-threads", "tacl18-cpu-seeds"}
    assert planned("cpu", tmp_path, only=("rounding",)) == {}
    assert set(planned("cpu", tmp_path, only=("cpu-paths",))) == {"tacl18-cpu-cpu-paths", "tacl18-cpu-onednn-off"}


def test_without_a_gpu_the_seeds_have_a_second_cpu_path(data_there, tmp_path):
    assert set(planned("cpu", tmp_path)["tacl18-cpu-seeds"].configs) == {"CPU", "CPU without oneDNN"}


def test_smoke_makes_data_only_where_they_are_missing(data_there, tmp_path):
    command = planned("smoke", tmp_path)["tacl18-smoke-data"].approaches
    assert not any("--made-data" in approach.command for approach in command.values())
    (data_there / "wikiqa/dev/pairs.tsv").unlink()
    command = planned("smoke", tmp_path)["tacl18-smoke-data"].approaches
    assert [name for name in command if "--made-data" in command[name].command] == ["WikiQA TRAIN"]


@pytest.mark.parametrize("scale", OTHER_SCALES)
def test_other_scales_refuse_missing_word_vectors(scale, data_there, tmp_path):
    (data_there / FILES[-1]).unlink()
    with pytest.raises(DataError, match="glove"):
        planned(scale, tmp_path)


def test_train_all_is_left_out_where_it_is_not_there(data_there, tmp_path):
    assert "TrecQA raw TRAIN-ALL" in planned("gpu", tmp_path)["tacl18-gpu-data"].approaches
    (data_there / "trecqa/train-all-rebuilt/pairs.tsv.gz").unlink()
    assert list(planned("gpu", tmp_path)["tacl18-gpu-data"].approaches) == [
        "TrecQA raw TRAIN",
        "TrecQA clean TRAIN",
        "WikiQA TRAIN",
    ]


def test_threads_go_as_far_as_the_cpus_and_the_paper(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)))
    assert scales.thread_counts() == (1, 2, 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    assert scales.thread_counts() == (1, 2, 3, 4, 5, 6)
    assert [item.threads for item in scales.thread_environments((1, 2)).values()] == [1, 2]


def test_a_processor_without_avx2_is_not_asked_for_it():
    names = [path.name for path in scales.cpu_paths(frozenset({"sse4_1"}))]
    assert names == ["as installed", "MKL for any processor", "oneDNN up to SSE4.1", "ATen without vectors"]
    assert len(scales.cpu_paths(frozenset({"sse4_1", "avx2"}))) == len(scales.CPU_PATHS)


@pytest.mark.parametrize(
    ("listed", "expected"), [("GPU 0: NVIDIA H200 (UUID: x)", True), ("No devices were found", False)]
)
def test_the_driver_is_asked_whether_there_is_a_gpu(listed, expected, tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{listed}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(machines, "_device_files", lambda: iter(()))
    assert machines.gpu_at_hand() is expected


def test_device_files_are_a_gpu_unless_it_is_hidden(tmp_path, monkeypatch):
    (tmp_path / "nvidia0").touch()
    found = list(machines._device_files(tmp_path))
    assert [path.name for path in found] == ["nvidia0"]
    monkeypatch.setattr(machines, "_device_files", lambda: iter(found))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert machines.gpu_at_hand()
    assert not machines.gpu_at_hand("cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert not machines.gpu_at_hand()
    assert machines.gpu_at_hand("cuda")
