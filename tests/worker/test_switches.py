"""Switches: what each asks for, what libraries answer, and that a request without effect is told."""

import importlib.util
import os
import sys
import threading
import types
from pathlib import Path

import pytest

import isorun
from isorun import workflow
from isorun.errors import ExecutionError, StudyError
from isorun.execution.resources import Devices
from isorun.study.cells import cells_of
from isorun.study.design import Study, document_of, study_from_document
from isorun.worker import levels
from isorun.worker.frameworks import jax, switches, tensor_flow
from isorun.worker.frameworks.pytorch import Torch
from isorun.worker.recorder import INITIAL_WEIGHTS

HAS_JAX = importlib.util.find_spec("jax") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None
IS_INTEL = "GenuineIntel" in Path("/proc/cpuinfo").read_text()
CNN = """
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 10))
x, y = torch.randn(256, 1, 8, 8), torch.randint(0, 10, (256,))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(f"loss: {loss.item():.9f}")
"""


def study(folder=Path(), **environments):
    document = {"approaches": {"a": {"command": "python t.py"}}, "environments": environments, "levels": ["fixed-seed"]}
    return study_from_document(document, Path(folder), "s")


def test_every_switch_is_in_the_docs_with_its_values():
    page = (Path(__file__).parents[2] / "docs" / "study-file.md").read_text()
    for row in switches.SWITCHES.values():
        line = next(line for line in page.splitlines() if line.startswith(f"| `{row.name}` |"))
        for value in row.values:
            assert f"`{value}`" in line, (row.name, value)


def test_a_switch_is_a_key_of_an_environment_and_part_of_its_cells_only_where_set():
    plain, off = (cells_of(study(e=keys))[0] for keys in ({}, {"onednn": "off", "cpu": "avx2"}))
    assert "switches" not in plain.environment_content
    assert off.environment_content["switches"] == {"cpu": "avx2", "onednn": "off"}
    assert plain.id != off.id
    declared = study(e={"onednn": False, "device": "cuda:1"})
    assert declared.environments["e"].switches == {"device": "cuda:1", "onednn": "off"}
    assert study_from_document(document_of(declared), Path(), "s") == declared


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"onednn": "of"}, r"onednn: 'of' is not a value of this switch[\s\S]*on, off"),
        ({"device": "gpu"}, r"device: 'gpu' is not a value[\s\S]*cpu, cuda, cuda:N"),
        ({"cpu": 3}, "cpu: it must be a text"),
        ({"onedn": "off"}, "did you mean 'onednn'"),
        ({"switches": {"tf23": "on"}}, "did you mean 'tf32'"),
    ],
)
def test_what_no_switch_takes_is_refused(keys, why):
    with pytest.raises(StudyError, match=why):
        study(e=keys)


def test_the_variables_that_ask():
    assert switches.variables({}) == {}
    assert switches.variables({"cpu": "baseline"}) == {
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Nehalem",
        "ATEN_CPU_CAPABILITY": "default",
    }
    assert switches.variables({"cpu": "native", "mkl": "off", "device": "cuda"}) == {}
    assert switches.variables({"mkl": "avx2-strict"}) == {"MKL_CBWR": "AVX2,STRICT"}
    assert switches.variables({"onednn": "off"}) == {"TF_ENABLE_ONEDNN_OPTS": "0"}
    assert switches.variables({"device": "cuda:2"})["CUDA_VISIBLE_DEVICES"] == "2"
    on_cpu = switches.variables({"device": "cpu"})
    assert (on_cpu["CUDA_VISIBLE_DEVICES"], on_cpu["JAX_PLATFORMS"]) == ("-1", "cpu")
    assert switches.variables({"tf32": "off"})["NVIDIA_TF32_OVERRIDE"] == "0"
    kernels = switches.variables({"kernels": "deterministic"})
    assert (kernels["CUBLAS_WORKSPACE_CONFIG"], kernels["TF_DETERMINISTIC_OPS"]) == (":4096:8", "1")
    assert "xla_gpu_deterministic_ops" in kernels["XLA_FLAGS"]
    assert switches.variables({"kernels": "free"}) == {}


def test_the_worker_hears_them():
    environ = {"ISORUN_RUN_DIR": "/r", levels.SWITCHES: switches.written({"tf32": "on", "onednn": "off"})}
    assert levels.read_settings(environ, warm=False).switches == {"onednn": "off", "tf32": "on"}
    assert levels.read_settings({"ISORUN_RUN_DIR": "/r"}, warm=False).switches == {}


@pytest.mark.parametrize(
    ("asked", "answered", "missed"),
    [
        ({"onednn": "off"}, {"torch": {"onednn": "off"}}, {}),
        ({"onednn": "off"}, {"torch": {"onednn": "on"}}, {"onednn": {"torch": "on"}}),
        ({"onednn": "off"}, {"numpy": {"threads": "2"}}, {"onednn": {}}),
        ({"mkl": "avx2"}, {"torch": {"mkl": "auto"}}, {"mkl": {"torch": "auto"}}),
        ({"cpu": "native"}, {"torch": {"cpu": "avx2"}}, {}),
        ({"device": "cuda:1"}, {"torch": {"device": "cuda"}}, {}),
        ({"threads": "3"}, {"torch": {"threads": "2"}, "numpy": {"threads": "3"}}, {"threads": {"torch": "2"}}),
        ({"threads": "3"}, {}, {}),
        ({"device": "cpu", "tf32": "off", "cudnn": "on"}, {"torch": {"device": "cpu"}}, {}),
        ({"device": "cuda", "tf32": "off"}, {"torch": {"device": "cuda", "tf32": "on"}}, {"tf32": {"torch": "on"}}),
    ],
)
def test_a_request_without_effect_is_one_that_is_answered_otherwise_or_by_nobody(asked, answered, missed):
    assert switches.without_effect(asked, answered) == missed


def test_variables_of_a_study_ask_for_switches_too():
    asked = switches.asked_by({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2", "MKL_CBWR": "AVX2,STRICT", "A": "1"})
    assert asked == {"threads": "2", "mkl": "avx2-strict"}
    assert switches.asked_by({"ATEN_CPU_CAPABILITY": "default"}) == {"cpu": "baseline"}
    assert switches.asked_by({"TF_NUM_INTRAOP_THREADS": "3", "TF_NUM_INTEROP_THREADS": "4"}) == {"threads": "3"}
    assert switches.asked_of({"env": {"OMP_NUM_THREADS": "1"}, "threads": 2, "switches": {"cpu": "avx2"}}) == {
        "threads": "2",
        "cpu": "avx2",
    }


def test_a_device_that_is_not_there_is_one_message():
    here = Devices("auto", environment={"CUDA_VISIBLE_DEVICES": "0,1"})
    for device in ("", "cpu", "cuda", "cuda:1"):
        here.check_device(device)
    with pytest.raises(ExecutionError, match=r"device cuda:2[\s\S]*cuda:0, cuda:1[\s\S]*nvidia-smi -L"):
        here.check_device("cuda:2")
    with pytest.raises(ExecutionError, match=r"asks for the device cuda[\s\S]*no device"):
        Devices("none").check_device("cuda")


def test_a_device_that_is_not_there_is_refused_before_the_first_run(tmp_path):
    (tmp_path / "t.py").touch()
    declared = study(tmp_path, here={}, there={"device": "cuda:7"})
    (tmp_path / "t.py").touch()
    with pytest.raises(ExecutionError, match=r"asks for the device cuda:7"):
        workflow.run(declared, store=tmp_path / "runs", devices="none")
    assert len(workflow.records(declared, store=tmp_path / "runs")) == 0


def made_torch(*, started):
    """What torch looks like to its switches, on a machine with a device."""
    matmul, cudnn = types.SimpleNamespace(allow_tf32=False), types.SimpleNamespace(allow_tf32=True)
    cudnn.enabled, cudnn.benchmark = True, False
    backends = types.SimpleNamespace(
        cuda=types.SimpleNamespace(matmul=matmul),
        cudnn=cudnn,
        cpu=types.SimpleNamespace(get_cpu_capability=lambda: "DEFAULT"),
        mkl=types.SimpleNamespace(is_available=lambda: False),
        mkldnn=types.SimpleNamespace(is_available=lambda: True, set_flags=lambda _: None),
    )
    inner = types.SimpleNamespace(_get_mkldnn_enabled=lambda: True)
    return types.SimpleNamespace(
        backends=backends,
        _C=inner,
        get_num_threads=lambda: 2,
        are_deterministic_algorithms_enabled=lambda: False,
        cuda=types.SimpleNamespace(is_initialized=lambda: started),
    )


def test_settings_of_devices_are_answered_only_where_one_was_started():
    cpu = Torch().answers(made_torch(started=False))
    assert cpu == {"threads": "2", "onednn": "on", "cpu": "baseline", "device": "cpu", "kernels": "free"}
    torch = made_torch(started=True)
    assert Torch().answers(torch)["tf32"] == "in part", "as torch is by itself: products are not rounded, layers are"
    for asked in ("on", "off"):
        Torch().switch(torch, {"tf32": asked})
        assert Torch().answers(torch)["tf32"] == asked
    for asked in ("off", "benchmark", "on"):
        Torch().switch(torch, {"cudnn": asked})
        assert Torch().answers(torch)["cudnn"] == asked


def made_jax(monkeypatch, started, flags=("avx2", "avx512f")):
    """What JAX looks like to its switches, on a machine whose processor has these instructions."""
    bridge = types.SimpleNamespace(backends_are_initialized=lambda: started[0])
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    monkeypatch.setattr(jax, "this_cpu_flags", lambda: frozenset(flags))
    config = types.SimpleNamespace(jax_default_matmul_precision=None)
    return types.SimpleNamespace(default_backend=lambda: "cpu", config=config, __version_info__=(0, 10, 2))


@pytest.mark.parametrize(
    ("asked", "own", "version", "told"),
    [
        ("", "", (0, 10, 2), ("", "avx512")),
        ("avx2", "", (0, 10, 2), ("--xla_cpu_max_isa=AVX2", "avx2")),
        ("avx2", "--xla_dump_to=d", (0, 10, 2), ("--xla_dump_to=d --xla_cpu_max_isa=AVX2", "avx2")),
        ("avx2", "--xla_cpu_max_isa=SSE4_2", (0, 10, 2), ("--xla_cpu_max_isa=SSE4_2", "baseline")),
        ("baseline", "", (0, 4, 30), ("", "avx512")),  # a flag that XLA does not know would end the training
    ],
)
def test_jax_compiles_to_the_instructions_that_it_says(monkeypatch, asked, own, version, told):
    monkeypatch.setenv("XLA_FLAGS", own)
    module = made_jax(monkeypatch, [True])
    module.__version_info__ = version
    jax.Jax().switch(module, {"cpu": asked} if asked else {})
    assert (os.environ["XLA_FLAGS"], jax.Jax().answers(module)["cpu"]) == told


def test_threads_are_those_that_a_library_has_started(monkeypatch):
    ended = threading.Event()

    def compute():
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("tf_XLAEigen")
        named.release()
        ended.wait()

    named = threading.Semaphore(0)
    module = made_jax(monkeypatch, [True])
    assert "threads" not in jax.Jax().answers(module)
    started = [threading.Thread(target=compute) for _ in range(3)]
    for thread in started:
        thread.start()
        named.acquire()
    assert jax.Jax().answers(module)["threads"] == "3"
    ended.set()
    for thread in started:
        thread.join()


def test_what_jax_had_is_remembered_when_it_lets_go_of_its_devices(monkeypatch):
    started, found = [True], jax.Jax()
    module = made_jax(monkeypatch, started)
    found._remember(module)
    started[0] = False
    assert found.answers(module)["device"] == "cpu"


@pytest.mark.parametrize(("told", "variable", "has"), [(3, "2", 3), (0, "2", 2), (0, "", None), (0, "x", None)])
def test_tensorflow_has_the_threads_of_its_rule(monkeypatch, told, variable, has):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", variable)
    threads = types.SimpleNamespace(
        get_intra_op_parallelism_threads=lambda: told, get_inter_op_parallelism_threads=lambda: 5
    )
    module = types.SimpleNamespace(config=types.SimpleNamespace(threading=threads), __version__="2.21")
    found = tensor_flow.TensorFlow().effective(module)
    assert found["intra_op_parallelism"] == (has or len(os.sched_getaffinity(0)))
    assert found["inter_op_parallelism"] == 5


TENSORFLOW = """
import tensorflow as tf
print("acc:", float(tf.matmul(tf.ones((900, 900)), tf.ones((900, 900)))[0, 0]))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")
def test_tensorflow_follows_its_own_variable_alone(tmp_path):
    (tmp_path / "t.py").write_text(TENSORFLOW)
    mine, others = {"env": {"TF_NUM_INTRAOP_THREADS": "1"}}, {"env": {"OMP_NUM_THREADS": "1"}}
    own, other = isorun.run(study(tmp_path, own=mine, other=others)).records
    assert own.environment["effective"]["switches"]["tensorflow"]["threads"] == "1"
    here = str(len(os.sched_getaffinity(0)))
    assert other.environment["effective"]["switches"]["tensorflow"]["threads"] == here


JAX = """
import jax, jax.numpy as jnp
print("acc:", float(jnp.ones((600, 600)).sum()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
def test_jax_really_takes_one_thread_and_another_path(tmp_path):
    (tmp_path / "t.py").write_text(JAX)
    (run,) = isorun.run(study(tmp_path, e={"cpu": "baseline", "env": {"PJRT_NPROC": "1"}})).records
    assert run.environment["effective"]["switches"]["jax"] == {"device": "cpu", "threads": "1", "cpu": "baseline"}


def test_nothing_answers_in_a_training_without_such_libraries_and_that_is_told(tmp_path):
    (tmp_path / "t.py").write_text("print('acc: 0.5')")
    outcome = isorun.run(study(tmp_path, e={"onednn": "off"}))
    (told,) = [condition for condition in outcome.conditions if condition.code == "factor-without-effect"]
    assert "onednn = off was asked for, and nothing that the training loaded answers to it" in told.message
    assert outcome.records[0].environment["requested"]["switches"] == {"onednn": "off"}


def test_work_is_timed_where_an_environment_asks_for_it(tmp_path):
    (tmp_path / "t.py").write_text("import time; time.sleep(0.2); print('acc: 0.5')")
    timed, plain = isorun.run(study(tmp_path, e={"steps": 0}, f={})).records
    work = timed.environment["effective"]["work"]
    assert (work["steps"], work["cut"]) == (0, False)
    assert 0.2 <= work["seconds"] < timed.wall_seconds
    assert work["cpu_seconds"] < timed.wall_seconds
    assert "work" not in plain.environment["effective"]
    with pytest.raises(StudyError, match="steps"):
        study(e={"steps": -1})


SETTINGS = """
import torch
torch.use_deterministic_algorithms(False)
torch.backends.cudnn.benchmark = True
x, model = torch.randn(8, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(50):
    model(x).sum().backward()
    optimizer.step()
open("saved", "w").close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_kernels_are_held_against_the_trainings_own_setting_and_a_cut_ends_it(tmp_path):
    (tmp_path / "t.py").write_text(SETTINGS)
    places = {"held": {"kernels": "deterministic", "cudnn": "on", "steps": 10}, "free": {"steps": 100}}
    held, free = isorun.run(study(tmp_path, **places)).records
    assert held.environment["effective"]["switches"]["torch"]["kernels"] == "deterministic"
    assert held.environment["effective"]["torch"]["cudnn_benchmark"] is False
    assert any(note.code == "setting-answered" for note in held.notes)
    assert free.environment["effective"]["switches"]["torch"]["kernels"] == "free"
    works = [record.environment["effective"]["work"] for record in (held, free)]
    assert [(work["steps"], work["cut"]) for work in works] == [(10, True), (50, False)]
    assert 0 < works[0]["first_step"]["seconds"] < works[0]["seconds"]
    assert (held.exit_code, held.state) == (0, free.state)
    assert held.digests["weights.final"] != free.digests["weights.final"], "40 steps less"


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_what_torch_does_with_each_request(tmp_path):
    """The facts of a CPU: which requests change bits, which are clamped, and which are ignored."""
    (tmp_path / "t.py").write_text(CNN)
    places = {
        "plain": {},
        "onednn": {"onednn": "off"},
        "baseline": {"cpu": "baseline"},
        "avx2": {"cpu": "avx2"},
        "compatible": {"mkl": "compatible"},
        "mkl-avx2": {"mkl": "avx2"},
        "one": {"threads": 1},
        "clamped": {"env": {"OMP_NUM_THREADS": "4096"}},
        "two-say": {"env": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"}},
        "intel": {"env": {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}},
        "tf32": {"tf32": "on"},
    }
    outcome = isorun.run(study(tmp_path, **places))
    assert len(outcome.records) == len(places)
    found = {one.cell.environment: one for one in outcome.records}
    has = {name: one.environment["effective"]["switches"]["torch"] for name, one in found.items()}
    assert (has["onednn"]["onednn"], has["plain"]["onednn"]) == ("off", "on")
    assert (has["baseline"]["cpu"], has["avx2"]["cpu"]) == ("baseline", "avx2")
    assert (has["compatible"]["mkl"], has["plain"]["mkl"]) == ("compatible", "off")
    assert has["one"]["threads"] == "1"
    assert int(has["clamped"]["threads"]) < 4096
    assert found["baseline"].digests[INITIAL_WEIGHTS] != found["plain"].digests[INITIAL_WEIGHTS]
    told = {c.groups[0].split()[1]: c.message for c in outcome.conditions if c.code == "factor-without-effect"}
    assert {"clamped", "tf32"} <= set(told) <= {"clamped", "tf32", "mkl-avx2", "intel", "two-say"}
    if not IS_INTEL:
        assert has["mkl-avx2"]["mkl"] == "auto"
        assert "torch has auto" in told["mkl-avx2"]
        assert found["intel"].digests == found["plain"].digests
        assert "processors of Intel alone" in told["intel"]


def test_levels_leave_switches_as_they_are():
    base = switches.variables({"cpu": "avx512", "mkl": "compatible"})
    added = levels.level_environment("deterministic", 1, 2, base, cpu_flags=frozenset(["avx2"]))
    assert not set(base) & set(added)


def test_the_study_takes_switches_in_python(tmp_path):
    (tmp_path / "t.py").write_text("")
    made = Study("s", approaches={"a": "python t.py"}, environments={"e": {"tf32": True}}, folder=tmp_path)
    assert made.environments["e"].variables == switches.variables({"tf32": "on"})
