"""What a run saw, held against the source: confirmed, withdrawn, added."""

import os

import pytest

from isorun.diagnose.audit import examine_source, read_program
from isorun.diagnose.audit.findings import Sure
from isorun.diagnose.audit.seen import Seen, hold_together

GPU = {"gpu": {"devices": ["a GPU"]}}


def held(folder, code, events=(), *, stopped="after 3 steps", moved=(), **effective):
    """The findings after a look, kind to sureness, and the kinds that were withdrawn."""
    script = folder / "train.py"
    script.write_text(code)
    program = read_program(["python", "train.py"], folder, {})
    placed = [{**event, "where": f"{script}:{event['line']}"} for event in events]
    told = {**effective, "audit": {"stopped": stopped, "events": placed, "seconds": 1.0, "steps": 3, "moved": moved}}
    kept, withdrawn = hold_together(examine_source(program), Seen.of(program, told, 0.0))
    left = {(item.kind, item.line): item for item in kept if item.kind != "unpinned-packages"}
    return left, {item.finding.kind: item.because for item in withdrawn}


def draw(family, line):
    return {"what": "draw", "name": f"{family}.random", "family": family, "line": line}


def seed(name, line):
    return {"what": "seed", "name": name, "value": "1", "line": line}


MAYBE = "import random, sys\nif sys.platform == other:\n    random.random()\n"


def test_a_draw_that_was_seen_makes_a_finding_sure(tmp_path):
    left, withdrawn = held(tmp_path, MAYBE, [draw("random", 3)])
    assert left["unseeded-generator", 3].sure is Sure.HIGH
    assert withdrawn == {}


def test_a_draw_that_was_not_seen_until_the_end_is_withdrawn(tmp_path):
    left, withdrawn = held(tmp_path, MAYBE, stopped="")
    assert left == {}
    assert withdrawn == {"unseeded-generator": "the run came to its end without it"}


def test_a_generator_that_a_library_moved_by_ways_of_its_own_is_sure(tmp_path):
    code = "from sklearn.cluster import KMeans\nKMeans().fit(x)\n"
    left, withdrawn = held(tmp_path, code, stopped="", moved=["numpy"])
    assert left["unseeded-generator", 2].sure is Sure.HIGH
    assert withdrawn == {}
    left, withdrawn = held(tmp_path, code, [seed("numpy.random.seed", 1)], stopped="", moved=["numpy"])
    assert left == {}
    assert "train.py:1" in withdrawn["unseeded-generator"]


def test_a_draw_that_was_not_seen_before_the_run_was_stopped_stays_and_is_not_sure(tmp_path):
    left, _ = held(tmp_path, "import random\nrandom.random()\n")
    assert left["unseeded-generator", 2].sure is Sure.MEDIUM


def test_a_seed_that_the_source_does_not_show_withdraws(tmp_path):
    code = "import random, framework\nframework.prepare()\nrandom.random()\n"
    left, withdrawn = held(tmp_path, code, [seed("random.seed", 2), draw("random", 3)])
    assert left == {}
    assert "train.py:2" in withdrawn["unseeded-generator"]


def test_a_generator_that_only_the_run_shows_is_added(tmp_path):
    code = "import framework\nframework.build()\nframework.seed(3)\n"
    left, _ = held(tmp_path, code, [draw("numpy", 2), {"what": "fresh", "name": "random.Random", "line": 2}])
    assert left["unseeded-generator", 2].sure is Sure.HIGH
    late, _ = held(tmp_path, code, [draw("numpy", 2), seed("numpy.random.seed", 3)])
    assert late["late-seed", 3].sure is Sure.HIGH


ON_A_GPU = "import torch\nmodel.cuda()\ntorch.backends.cudnn.benchmark = True\nx.index_add_(0, i, y)\n"


def test_what_matters_on_a_gpu_is_withdrawn_where_none_was_used(tmp_path):
    left, withdrawn = held(tmp_path, ON_A_GPU, torch={"threads": 2})
    assert set(withdrawn) == {"cudnn-autotune", "nondeterministic-kernels", "atomics"}
    assert [kind for kind, _ in left] == ["thread-count"]
    assert "(here 2)" in left["thread-count", 1].why
    assert left["thread-count", 1].fix == "OMP_NUM_THREADS=2 in the environment, or torch.set_num_threads(2)"


def test_what_was_seen_on_a_gpu_is_sure(tmp_path):
    operation = {"what": "operation", "name": "index_add_", "device": "cuda", "line": 4}
    settings = {"threads": 2, "cudnn_benchmark": True, "deterministic_algorithms": False}
    left, withdrawn = held(tmp_path, ON_A_GPU, [operation], torch=settings, **GPU)
    sure = {kind for (kind, _), item in left.items() if item.sure is Sure.HIGH}
    assert sure == {"cudnn-autotune", "nondeterministic-kernels", "atomics"}
    assert withdrawn == {}


def test_operations_that_only_the_run_shows_are_added_on_a_gpu_alone(tmp_path):
    operation = {"what": "operation", "name": "nll_loss2d_forward", "device": "cuda", "line": 2}
    left, _ = held(tmp_path, "import torch\nloss(x, y)\n", [operation], torch={"threads": 1}, **GPU)
    assert left["atomics", 2].sure is Sure.HIGH
    assert left["nondeterministic-kernels", 1].sure is Sure.HIGH
    closed, _ = held(
        tmp_path, "import torch\nloss(x, y)\n", [operation], torch={"deterministic_algorithms": True}, **GPU
    )
    assert [kind for kind, _ in closed] == ["thread-count"]


def test_an_operation_of_a_backward_pass_is_known_by_its_name(tmp_path):
    code = "import torch\nmodel.cuda()\ntorch.nn.functional.interpolate(x, mode='bilinear')\n"
    backward = {"what": "operation", "name": "upsample_bilinear2d_backward", "device": "cuda", "line": 900}
    left, _ = held(tmp_path, code, [backward], torch={"threads": 1}, **GPU)
    assert left["atomics", 3].sure is Sure.HIGH
    left, _ = held(tmp_path, code, [], torch={"threads": 1}, **GPU)
    assert left["atomics", 3].sure is Sure.MEDIUM


@pytest.mark.parametrize(
    ("code", "effective", "kind"),
    [
        ("for w in set('a b'.split()):\n    use(w)\n", {"variables": {"PYTHONHASHSEED": "0"}}, "hash-order"),
        ("import torch\n", {"variables": {"OMP_NUM_THREADS": "2"}}, "thread-count"),
    ],
)
def test_what_the_environment_of_the_run_fixed_is_withdrawn(code, effective, kind, tmp_path):
    left, withdrawn = held(tmp_path, code, **effective)
    assert (left, list(withdrawn)) == ({}, [kind])


def test_threads_of_tensorflow_are_held_by_its_own_variable_alone(tmp_path):
    threads = {"tensorflow": {"intra_op_parallelism": 4}}
    left, withdrawn = held(tmp_path, "import keras\n", variables={"OMP_NUM_THREADS": "2"}, **threads)
    assert "thread-count" not in withdrawn
    assert left["thread-count", 1].fix.startswith("TF_NUM_INTRAOP_THREADS=4 in the environment, or tensorflow.config")
    _, withdrawn = held(tmp_path, "import keras\n", variables={"TF_NUM_INTRAOP_THREADS": "2"}, **threads)
    assert "thread-count" in withdrawn


def test_a_data_file_that_was_read_is_told_with_its_checksum(tmp_path):
    (tmp_path / "a.csv").write_text("1\n")
    read = {"what": "file", "name": str(tmp_path / "a.csv"), "line": 2}
    left, _ = held(tmp_path, "import pandas\npandas.read_csv('a.csv')\n", [read])
    assert "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865" in left["data-checksum", 2].fix


def test_a_file_that_only_the_run_shows_is_added_unless_the_run_wrote_it(tmp_path):
    (tmp_path / "a.csv").write_text("1\n")
    read = {"what": "file", "name": str(tmp_path / "a.csv"), "line": 2}
    assert held(tmp_path, "import framework\nframework.read(name)\n", [read])[0] == {}
    os.utime(tmp_path / "a.csv", (-1, -1))
    left, _ = held(tmp_path, "import framework\nframework.read(name)\n", [read])
    assert left["data-checksum", 2].sure is Sure.LOW
    assert held(tmp_path, "import hashlib\nframework.read(name)\n", [read])[0] == {}


def test_a_loader_without_workers_withdraws_what_workers_would_do(tmp_path):
    code = "import os\nfrom torch.utils.data import DataLoader\nDataLoader(d, num_workers=os.cpu_count())\n"
    loader = {"what": "loader", "name": "DataLoader", "workers": 0, "line": 3}
    _, withdrawn = held(tmp_path, code, [loader])
    assert list(withdrawn) == ["loader-workers"]
    left, _ = held(tmp_path, code, [{**loader, "workers": 4}])
    assert "(here 4)" in left["loader-workers", 3].why


MODELS = """import torch
class Used(torch.nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x, i, y):
        return x.index_add_(0, i, y)
class Other(torch.nn.Module):
    def __init__(self):
        super().__init__()
    def forward(self, x, i, y):
        return x.scatter_add_(0, i, y)
def evaluate(x, i, y):
    return x.index_add(0, i, y)
Used().cuda()(x, i, y)
if mode == "other":
    Other()(x, i, y)
evaluate(x, i, y)
"""


@pytest.mark.parametrize(
    ("stopped", "left_over", "reasons"),
    [
        ("after 3 steps", {6: Sure.HIGH, 11: Sure.LOW, 13: Sure.LOW}, []),
        ("", {6: Sure.HIGH}, ["the run came to its end without it"] * 2),
    ],
)
def test_what_the_run_did_not_enter_is_withdrawn_or_may_be(tmp_path, stopped, left_over, reasons):
    script = tmp_path / "train.py"
    script.write_text(MODELS)
    program = read_program(["python", "train.py"], tmp_path, {})
    operation = {"what": "operation", "name": "index_add_", "device": "cuda", "where": f"{script}:6"}
    look = {"stopped": stopped, "events": [operation], "seconds": 1.0, "steps": 3, "reached": {str(script): [1, 3, 5]}}
    seen = Seen.of(program, {**GPU, "torch": {"threads": 1}, "audit": look}, 0.0)
    kept, withdrawn = hold_together(examine_source(program), seen)
    assert {item.line: item.sure for item in kept if item.kind == "atomics"} == left_over
    assert [item.because for item in withdrawn if item.finding.kind == "atomics"] == reasons
    assert all("(not reached in this run)" in item.why for item in kept if item.line == 13)
    unknown = Seen.of(program, {**GPU, "torch": {"threads": 1}, "audit": {**look, "reached": None}}, 0.0)
    assert len([item for item in hold_together(examine_source(program), unknown)[0] if item.kind == "atomics"]) >= 1
