"""What a training leaves open is answered at the fixed levels: generators without seed, settings against the level."""

from __future__ import annotations

import random
import re

import pytest

FRESH = """
import random
import numpy as np
from local_part import theirs

print(np.random.default_rng().random(), np.random.default_rng(None).random(), np.random.RandomState().rand())
print(random.Random().random(), np.random.Generator(np.random.PCG64()).random(), np.random.PCG64().random_raw())
print(np.random.SeedSequence().generate_state(1)[0], np.random.SeedSequence(entropy=None).generate_state(1)[0])
again = np.random.RandomState(5); again.seed(); print(again.rand())
np.random.seed(); random.seed(); print(np.random.rand(), random.random())
print(theirs.random())
print(*(np.random.default_rng().random() for _ in range(3)))
"""


@pytest.fixture
def fresh(tmp_path) -> str:
    (tmp_path / "local_part.py").write_text("import numpy as np\ntheirs = np.random.default_rng()\n")
    (tmp_path / "train.py").write_text(FRESH)
    return "train.py"


@pytest.mark.parametrize("level", ["fixed-seed", "deterministic"])
def test_generators_without_a_seed_follow_the_runs_seed_and_are_told(train, tmp_path, fresh, level):
    first, again, other = (train(fresh, level=level, seed=seed) for seed in (3, 3, 4))
    assert first.returncode == 0, first.stderr
    numbers = first.stdout.split()
    assert first.stdout == again.stdout
    assert len(set(numbers)) == len(numbers) == 15
    assert set(numbers).isdisjoint(other.stdout.split())
    told = [note["message"] for note in first.of_kind("note") if note["code"] == "generator-seeded"]
    assert any(f"numpy.random.default_rng at {tmp_path}/local_part.py:2 had no seed" in message for message in told)
    assert any(f"numpy.random.RandomState at {tmp_path}/train.py:6 " in message for message in told)
    assert len(told) == len(set(told)) < 20
    assert not any(event["call"] == "numpy.random.default_rng" for event in first.of_kind("seeded"))


INNER = """
import pickle
import numpy as np
from numpy.random import _generator, _pcg64, bit_generator, mtrand

print(mtrand.RandomState().rand())
print(bit_generator.SeedSequence().generate_state(1)[0])
print(_generator.default_rng().random(), np.random.Generator(_pcg64.PCG64()).random())
sequence = np.random.SeedSequence()
assert pickle.loads(pickle.dumps(sequence)).entropy == sequence.entropy
"""


def test_generators_of_numpys_inner_modules_follow_the_runs_seed_and_are_told(train, tmp_path):
    (tmp_path / "train.py").write_text(INNER)
    first, again, other = (train("train.py", level="fixed-seed", seed=seed) for seed in (3, 3, 4))
    assert first.returncode == 0, first.stderr
    numbers = first.stdout.split()
    assert first.stdout == again.stdout
    assert len(set(numbers)) == len(numbers) == 4
    assert set(numbers).isdisjoint(other.stdout.split())
    told = [note["message"] for note in first.of_kind("note") if note["code"] == "generator-seeded"]
    lines = [message.partition(" had no seed")[0].rpartition(":")[2] for message in told]
    assert lines == ["6", "7", "8", "9"], "once each, and by one function alone"
    free = [train("train.py").stdout.split() for _ in range(2)]
    assert set(free[0]).isdisjoint(free[1])


def test_at_default_they_stay_fresh_and_untouched(train, fresh):
    first, again = train(fresh), train(fresh)
    assert set(first.stdout.split()).isdisjoint(again.stdout.split())
    assert first.of_kind("note") == []
    code = "import numpy as np; print(type(np.random.RandomState).__name__)"
    assert train("-c", code).stdout == "type\n"


def test_a_comment_and_a_constant_elsewhere_change_nothing(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import numpy as np\nprint(np.random.default_rng().random())\n")
    before = train("train.py", level="fixed-seed", seed=3).stdout
    script.write_text("# more\nimport numpy as np\nnp.random.default_rng(1)\nprint(np.random.default_rng().random())\n")
    assert train("train.py", level="fixed-seed", seed=3).stdout == before


def test_pythons_own_library_still_draws_what_nobody_foresees(train):
    code = "import random, tempfile, uuid, secrets; print(tempfile.mktemp(), uuid.uuid4(), secrets.token_hex(4)); "
    code += "print(random.SystemRandom().random())"
    runs = [train("-c", code, level="deterministic", seed=3) for _ in range(2)]
    assert set(runs[0].stdout.split()).isdisjoint(runs[1].stdout.split())
    assert runs[0].of_kind("note") == []


ENTROPY = """
import os
os.urandom(4)
import random, secrets, uuid, tempfile
uuid.uuid4()
secrets.token_hex(4)
random.SystemRandom().random(); os.urandom(1)
tempfile.mkdtemp()
import theirs
theirs.draw()
"""


def test_entropy_of_the_system_that_a_training_draws_on_is_told_as_open_with_file_and_line(train, tmp_path):
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "theirs.py").write_text("import uuid\ndef draw():\n    return uuid.uuid4()\n")
    script = tmp_path / "train.py"
    script.write_text(ENTROPY)
    extra = {"PYTHONPATH": str(tmp_path / "site-packages")}
    trained = train("train.py", level="deterministic", seed=3, extra=extra)
    assert trained.returncode == 0, trained.stderr
    (environment,) = trained.of_kind("environment")
    told = [what.replace(f"{script}:", "") for what in environment["effective"]["open"] if "entropy" in what]
    assert told == [
        "os.urandom or random.SystemRandom at 3 drew on the system's entropy",
        "uuid at 5 drew on the system's entropy",
        "secrets at 6 drew on the system's entropy",
        "os.urandom or random.SystemRandom at 7 drew on the system's entropy",
        "uuid at 10 drew on the system's entropy",
    ]
    assert not any(event["effective"].get("open") for event in train("train.py", extra=extra).of_kind("environment"))


CHILDREN = """
import multiprocessing as mp, os, subprocess, sys, threading
import numpy as np

def drawn(_=None):
    return np.random.default_rng().random()

if __name__ == "__main__":
    print("here", drawn())
    for method in ("fork", "spawn"):
        context = mp.get_context(method)
        for _ in range(2):
            with context.Pool(1) as pool:
                print(method, *pool.map(drawn, range(2)))
    found = []
    thread = threading.Thread(target=lambda: found.append(drawn()))
    thread.start(); thread.join()
    print("thread", *found)
    for number in (1, 2):
        code = "import sys, numpy as np; print('started', np.random.default_rng().random())"
        subprocess.run([sys.executable, "-c", code, str(number)], check=True)
"""


@pytest.mark.long
def test_processes_and_threads_of_a_run_draw_apart_and_each_the_same_in_every_run(train, tmp_path):
    (tmp_path / "train.py").write_text(CHILDREN)
    first, again = (train("train.py", level="fixed-seed", seed=3) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert sorted(first.stdout.splitlines()) == sorted(again.stdout.splitlines())
    numbers = [word for word in first.stdout.split() if word[0].isdigit()]
    assert len(set(numbers)) == len(numbers) == 12


POOLS = """
import concurrent.futures, multiprocessing as mp, random, threading
import numpy as np

def drawn(_):
    together.wait(30)  # each of the two has one of the two tasks
    return random.random(), np.random.rand(), np.random.default_rng().random()

def begin(barrier):
    global together
    together = barrier

if __name__ == "__main__":
    random.random(), np.random.rand()
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        start = {"initializer": begin, "initargs": (context.Barrier(2),)}
        with context.Pool(2, **start) as pool:
            print(method, "pool", *sorted(pool.map(drawn, range(2), chunksize=1)))
        with concurrent.futures.ProcessPoolExecutor(2, context, **start) as pool:
            print(method, "executor", *sorted(pool.map(drawn, range(2))))
"""


@pytest.mark.long
def test_processes_of_pools_have_streams_of_their_own_that_are_the_same_in_every_run(train, tmp_path):
    (tmp_path / "train.py").write_text(POOLS)
    first, again, other = (train("train.py", level="fixed-seed", seed=seed) for seed in (3, 3, 4))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    pools = {line.partition("(")[0]: re.findall(r"0\.\d+", line) for line in first.stdout.splitlines()}
    assert len(pools) == 6
    # A fork copies NumPy's global generator, but each task starts it anew: tasks are the same however they are started.
    for kind in ("pool ", "executor "):
        drawn = {tuple(pools[f"{method} {kind}"][:2]) for method in ("fork", "spawn", "forkserver")}
        assert len(drawn) == 3, kind
    everywhere = [number for numbers in pools.values() for number in numbers]
    assert len(set(everywhere)) == len(everywhere) == 36
    assert set(re.findall(r"0\.\d+", other.stdout)).isdisjoint(re.findall(r"0\.\d+", first.stdout))


def test_forked_children_are_left_alone_at_default(train):
    code = "import os, random; random.seed(1)\nif os.fork() == 0: print(random.random(), flush=True); os._exit(0)\n"
    code += "os.wait()"
    assert train("-c", code).stdout != train("-c", code).stdout


@pytest.mark.parametrize("variables", [{"RANK": "{}"}, {"SLURM_PROCID": "{}"}, {"OMPI_COMM_WORLD_RANK": "{}"}])
def test_each_rank_has_streams_of_its_own_that_are_the_same_in_every_run(train, variables):
    code = "import random, numpy as np; print(random.random(), np.random.rand(), np.random.default_rng().random())"
    ranks = ("0", "1", "2", "1")
    extras = [{name: value.format(rank) for name, value in variables.items()} for rank in ranks]
    first, second, third, again = (train("-c", code, level="fixed-seed", seed=3, extra=extra) for extra in extras)
    assert first.stdout == train("-c", code, level="fixed-seed", seed=3).stdout
    assert second.stdout == again.stdout
    assert len({*first.stdout.split(), *second.stdout.split(), *third.stdout.split()}) == 9


def test_the_first_rank_tells_what_the_others_start_from(train):
    code = "import random; print(random.random())"
    first, last = (
        train("-c", code, level="fixed-seed", seed=3, extra={"SLURM_NTASKS": "3", "SLURM_PROCID": rank})
        for rank in "02"
    )
    (note,) = [note["message"] for note in first.of_kind("note") if note["code"] == "process-seeded"]
    (seed,) = re.findall(r" 2 from (\d+)", note)
    assert last.stdout == f"{random.Random(int(seed)).random()}\n"


TORCHRUN = """
import random
import numpy as np, torch, torch.distributed as dist

dist.init_process_group("gloo")
found = [None, None]
own = (random.random(), np.random.rand(), torch.rand(1).item(), np.random.default_rng().random())
dist.all_gather_object(found, own)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(4, 3)).sum().backward()
optimizer.step()
if dist.get_rank() == 0:
    print("ranks", *found[0], *found[1])
dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["torch.distributed.run", "accelerate.commands.launch"])
def test_ranks_of_launchers_draw_apart_and_each_the_same_in_every_run(train, tmp_path, launcher):
    pytest.importorskip(launcher.partition(".")[0])
    (tmp_path / "train.py").write_text(TORCHRUN)
    options = {"torch.distributed.run": ["--standalone", "--nproc_per_node=2"]}
    launch = options.get(launcher, ["--multi_gpu", "--num_processes=2", "--main_process_port=0"])
    runs = [train("-m", launcher, *launch, "train.py", level="fixed-seed", seed=3) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr[-3000:]
    lines = [next(line for line in run.stdout.splitlines() if line.startswith("ranks")) for run in runs]
    assert lines[0] == lines[1]
    told = [event["message"] for event in runs[0].of_kind("note")]
    assert any(
        message.startswith("generators of other ranks start from seeds of their own: 1 from ") for message in told
    )
    numbers = lines[0].split()[1:]
    assert len(set(numbers)) == len(numbers) == 8


JOBLIB = """
import random, time
import joblib, numpy as np

def drawn(_):
    time.sleep(1.5)  # long enough for the other task to go to the other process
    return random.random(), np.random.rand(), np.random.default_rng().random()

if __name__ == "__main__":
    print(*sorted(joblib.Parallel(2, batch_size=1)(joblib.delayed(drawn)(number) for number in range(2))))
"""


@pytest.mark.slow
def test_processes_of_joblib_have_streams_of_their_own_that_are_the_same_in_every_run(train, tmp_path):
    pytest.importorskip("joblib")
    (tmp_path / "train.py").write_text(JOBLIB)
    first, again = (train("train.py", level="fixed-seed", seed=3) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    numbers = re.findall(r"0\.\d+", first.stdout)
    assert len(set(numbers)) == len(numbers) == 6


CARTPOLE = """
import gymnasium
from stable_baselines3 import PPO

environment = gymnasium.make("CartPole-v1")
learner = PPO("MlpPolicy", environment, n_steps=64, batch_size=32, n_epochs=2, device="cpu")
learner.learn(192)
state, _ = environment.reset()
print(state, environment.action_space.sample(), sum(part.abs().sum().item() for part in learner.policy.parameters()))
"""


@pytest.mark.slow
def test_ppo_on_an_environment_without_a_seed_ends_the_same_in_every_run(train, tmp_path):
    pytest.importorskip("stable_baselines3")
    script = tmp_path / "train.py"
    script.write_text(CARTPOLE)
    runs = [train("train.py", level="fixed-seed", seed=3) for _ in range(3)]
    assert runs[0].returncode == 0, runs[0].stderr[-3000:]
    assert len({run.stdout for run in runs}) == len({run.digest("weights.final") for run in runs}) == 1
    told = [note["message"] for note in runs[0].of_kind("note") if note["code"] == "generator-seeded"]
    assert any(f"numpy.random.SeedSequence at {script}:7 " in message for message in told)
    free = train("train.py")
    assert free.stdout != runs[0].stdout
    assert not any(note["code"] == "generator-seeded" for note in free.of_kind("note"))


GYMNASIUM = """
import numpy as np

class Space:  # as gymnasium's spaces and environments make theirs, at the first use
    made = None
    def sample(self):
        if self.made is None:
            self.made = np.random.Generator(np.random.PCG64(np.random.SeedSequence(None)))
        return self.made.random()

print(Space().sample(), Space().sample())
"""


def test_the_form_of_gymnasiums_generators_is_reached(train, tmp_path):
    (tmp_path / "train.py").write_text(GYMNASIUM)
    first, again = (train("train.py", level="fixed-seed", seed=3).stdout for _ in range(2))
    assert first == again
    assert len(set(first.split())) == 2


COMPILED = """
import os
import numba, numpy as np

@numba.njit
def drawn():
    return np.random.random()

print(drawn(), drawn())
for _ in range(2):
    if os.fork() == 0:
        print(drawn(), flush=True)
        os._exit(0)
    os.wait()
"""
POLARS = """
import polars
rows = polars.DataFrame({"a": range(9999)})
print(*rows.sample(3)["a"], *rows["a"].shuffle()[:3], *rows.select(polars.col("a").sample(3))["a"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("library", "script", "amount"), [("numba", COMPILED, 4), ("polars", POLARS, 9)])
def test_generators_in_compiled_code_that_can_be_seeded_are(train, tmp_path, library, script, amount):
    pytest.importorskip(library)
    (tmp_path / "train.py").write_text(script)
    first, again, other = (train("train.py", level="fixed-seed", seed=seed) for seed in (3, 3, 4))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert len(set(first.stdout.split())) == amount
    assert first.stdout != other.stdout != train("train.py").stdout


STAND_INS = {
    "polars.py": "import random\nhidden = random.Random()\ndef set_random_seed(seed): hidden.seed(seed)\n",
    "numba/__init__.py": "",
    "numba/_helperlib.py": (
        "seeds = {}\ndef rnd_get_np_state_ptr(): return 'np'\ndef rnd_get_py_state_ptr(): return 'py'\n"
        "def rnd_seed(state, seed): seeds[state] = seed\n"
    ),
}


def test_polars_and_numba_are_seeded_when_they_are_imported(train, tmp_path):
    (tmp_path / "numba").mkdir()
    for name, source in STAND_INS.items():
        (tmp_path / name).write_text(source)
    code = "import polars, numba, numba._helperlib as held; print(polars.hidden.random(), held.seeds); "
    code += "polars.set_random_seed(5)"
    trained = train("-c", code, level="fixed-seed", seed=3)
    assert trained.stdout == f"{random.Random(3).random()} {{'np': 3, 'py': 3}}\n"
    assert [(event["call"], event["value"]) for event in trained.of_kind("seeded")] == [("polars.set_random_seed", "5")]
    assert train("-c", code).stdout.endswith(" {}\n")


def test_what_a_library_makes_while_it_is_imported_is_left_to_it_and_told_as_open(train, tmp_path):
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "somelib.py").write_text(
        "import numpy as np\nRNG = np.random.default_rng()\ndef later():\n    return np.random.default_rng().random()\n"
    )
    code = "import somelib; print(somelib.RNG.random(), somelib.later())"
    extra = {"PYTHONPATH": str(folder)}
    runs = [train("-c", code, level="deterministic", seed=3, extra=extra) for _ in range(2)]
    (one, later), (other, later_again) = (run.stdout.split() for run in runs)
    assert one != other
    assert later == later_again
    (environment,) = runs[0].of_kind("environment")
    assert any("somelib.py made a generator" in item for item in environment["effective"]["open"])


SETTINGS = """
import torch

torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False
with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
    print(torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic)
torch.use_deterministic_algorithms(False)
torch.set_deterministic_debug_mode("default")
torch.set_num_threads(3)
import torch._inductor.config as inductor
print(torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic, torch.get_num_threads())
print(torch.are_deterministic_algorithms_enabled(), inductor.deterministic)
torch.backends.cudnn.benchmark = False
torch.use_deterministic_algorithms(True)
print(torch.is_deterministic_algorithms_warn_only_enabled())
generator = torch.Generator()
print(torch.seed(), generator.seed(), generator.initial_seed(), torch.initial_seed(), torch.rand(1).item())
"""


@pytest.mark.parametrize(("maker", "told"), [("library", 0), ("__main__", 1)])
def test_threads_that_a_library_keeps_for_itself_leave_nothing_open(train, tmp_path, maker, told):
    (tmp_path / "site-packages").mkdir()
    made = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
    (tmp_path / "site-packages" / "library.py").write_text(made if maker == "library" else "")
    script = f"import sys\nsys.path.append({str(tmp_path / 'site-packages')!r})\nimport library\n"
    (tmp_path / "train.py").write_text(script + (made if maker == "__main__" else ""))
    trained = train("train.py", level="deterministic", seed=3)
    left = trained.of_kind("environment")[0]["effective"]["open"]
    assert [text.startswith("threads of ThreadPoolExecutor at ") for text in left] == [True] * told


@pytest.mark.long
def test_settings_of_torch_against_deterministic_are_answered_with_file_and_line(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SETTINGS)
    trained = train("train.py", level="deterministic", seed=3)
    assert trained.returncode == 0, trained.stderr
    inside, after, algorithms, warns, fresh = trained.stdout.splitlines()
    assert (inside, after, algorithms) == ("False True", "False True 1", "True True")
    assert warns == "False"  # stricter than the level is not against it
    notes = [note["message"] for note in trained.of_kind("note") if note["code"] == "setting-answered"]
    expected = {
        ("torch.backends.cudnn.benchmark was to be True", 4, "False"),
        ("torch.backends.cudnn.deterministic was to be False", 5, "True"),
        ("torch.backends.cudnn.benchmark was to be True", 6, "False"),
        ("torch.backends.cudnn.deterministic was to be False", 6, "True"),
        ("torch.use_deterministic_algorithms was to be False", 8, "True"),
        ("torch.use_deterministic_algorithms was to be False", 9, "True"),
        ("torch.set_num_threads was to be 3", 10, "1"),
    }
    assert set(notes) == {f"{what} at {script}:{line}; the level answered with {to}" for what, line, to in expected}
    assert fresh == train("train.py", level="deterministic", seed=3).stdout.splitlines()[-1]
    seeds = fresh.split()
    assert (seeds[0], seeds[1]) == (seeds[3], seeds[2])
    assert trained.of_kind("environment")[0]["effective"]["open"] == []


HELPERS = """
import os
import torch
from torch.utils.data import DataLoader, Dataset

class Threads(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.full((3, 256, 256), float(torch.get_num_threads())).neg().neg().mean()

torch.rand(500, 500).sin().sum()  # starts the threads, which a forked child does not have
print(torch.get_num_threads(), [float(batch.round()) for batch in DataLoader(Threads(), None, num_workers=1)])
if not os.fork():
    torch.set_num_threads(1)
    os._exit(torch.get_num_threads())
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.long
def test_helpers_have_the_threads_they_take(train, tmp_path):
    """A forked process in which torch has several threads waits for those that the fork left behind, for good."""
    (tmp_path / "train.py").write_text(HELPERS)
    trained = train("train.py", level="deterministic", seed=3, extra={"OMP_NUM_THREADS": "2"})
    assert trained.stdout.splitlines() == ["2 [1.0, 1.0]", "1"], trained.stderr
    assert [note for note in trained.of_kind("note") if note["code"] == "setting-answered"] == []


@pytest.mark.long
def test_below_deterministic_settings_are_the_trainings_own(train, tmp_path):
    (tmp_path / "train.py").write_text(SETTINGS)
    trained = train("train.py", level="fixed-seed", seed=3)
    assert trained.returncode == 0, trained.stderr
    assert trained.stdout.splitlines()[:2] == ["True False", "True False 3"]
    codes = {note["code"] for note in trained.of_kind("note")}
    assert codes == {"generator-seeded", "no-digest"}  # it trains nothing
    assert "open" not in trained.of_kind("environment")[0]["effective"]


VARIABLES = """
import os
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ""
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"
os.environ.update({"TF_DETERMINISTIC_OPS": "0", "MINE": "1"})
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["OMP_NUM_THREADS"] = "7"
os.environ["MKL_DYNAMIC"] = "TRUE"
os.environ["MKL_CBWR"] = "AUTO,STRICT"
os.environ["MINE"] = "2"
del os.environ["MINE"]
import theirs
theirs.start_processes()
print(*(f"{name}={os.environ.get(name)}" for name in NAMES))
"""


def test_variables_of_the_level_that_the_training_sets_are_answered_with_file_and_line(train, tmp_path):
    (tmp_path / "site-packages").mkdir()
    library = "import os\ndef start_processes():\n    os.environ['OPENBLAS_NUM_THREADS'] = '2'\n"
    (tmp_path / "site-packages" / "theirs.py").write_text(library)
    names = ["CUBLAS_WORKSPACE_CONFIG", "TF_DETERMINISTIC_OPS", "XLA_FLAGS", "OMP_NUM_THREADS", "MKL_DYNAMIC"]
    names += ["MKL_CBWR", "MINE", "OPENBLAS_NUM_THREADS"]
    script = tmp_path / "train.py"
    script.write_text(VARIABLES.replace("NAMES", repr(names)))
    extra = {"MKL_CBWR": "AUTO", "PYTHONPATH": str(tmp_path / "site-packages")}
    trained = train("train.py", level="deterministic", seed=1, extra=extra)
    assert trained.returncode == 0, trained.stderr
    flags = "--xla_force_host_platform_device_count=2 --xla_gpu_deterministic_ops=true"
    found = f"CUBLAS_WORKSPACE_CONFIG=:16:8 TF_DETERMINISTIC_OPS=1 XLA_FLAGS={flags} OMP_NUM_THREADS=1"
    assert trained.stdout == f"{found} MKL_DYNAMIC=FALSE MKL_CBWR=AUTO MINE=None OPENBLAS_NUM_THREADS=2\n"
    notes = [note["message"] for note in trained.of_kind("note") if note["code"] == "setting-answered"]
    assert [note.partition(" was to be ")[0] for note in notes] == [
        "CUBLAS_WORKSPACE_CONFIG",
        "TF_DETERMINISTIC_OPS",
        "XLA_FLAGS",
        "OMP_NUM_THREADS",
        "MKL_DYNAMIC",
        "MKL_CBWR",
    ]
    assert f"OMP_NUM_THREADS was to be '7' at {script}:7; the level answered with 1" in notes
    free = train("train.py", level="fixed-seed", seed=1, extra=extra)
    assert "OMP_NUM_THREADS=7" in free.stdout
    assert free.of_kind("note") == []


def test_an_environment_can_be_emptied_and_what_is_missing_is_told_as_open(train):
    trained = train("-c", "import os; os.environ.clear(); print(len(os.environ))", level="deterministic", seed=1)
    assert trained.stdout == "0\n", trained.stderr
    assert "OMP_DYNAMIC is 'not set', not 'FALSE'" in trained.of_kind("environment")[0]["effective"]["open"]


def test_variables_that_the_environment_or_a_library_sets_otherwise_are_told_as_open(train):
    code = "import os; os.putenv('OMP_NUM_THREADS', '7'); os.environ._data[b'OMP_NUM_THREADS'] = b'7'"
    trained = train("-c", code, level="deterministic", seed=1, extra={"MKL_CBWR": "AUTO"})
    found = trained.of_kind("environment")[0]["effective"]["open"]
    assert any(item.startswith("MKL_CBWR is 'AUTO', not") for item in found)
    assert any(item.startswith("OMP_NUM_THREADS is '7', not") for item in found)


PRECISIONS = """
import torch
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = False
torch.set_float32_matmul_precision("high")
print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision())
torch._C._set_fp32_precision_setter("cuda", "matmul", "none")  # as the compiler does it
"""


@pytest.mark.long
def test_precisions_stay_and_are_told_with_file_and_line(train, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(PRECISIONS)
    trained = train("train.py", level="deterministic", seed=3)
    assert trained.stdout == "True False high\n", trained.stderr
    told = [note["message"] for note in trained.of_kind("note") if note["code"] == "setting-told"]
    expected = [
        ("torch.backends.cuda.matmul.allow_tf32 is True", 3),
        ("torch.backends.cudnn.allow_tf32 is False", 4),
        ("torch.set_float32_matmul_precision is 'high'", 5),
    ]
    assert told == [f"{what} at {script}:{line}; it changes what is computed, and stays" for what, line in expected]
    assert not any(note["code"] == "setting-told" for note in train("train.py").of_kind("note"))


@pytest.mark.parametrize("counts", [{"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"}])
def test_numbers_of_threads_from_outside_are_not_called_open(train, counts):
    trained = train("-c", "pass", level="deterministic", seed=1, extra=counts)
    effective = trained.of_kind("environment")[0]["effective"]
    assert [item for item in effective["open"] if "THREADS" in item] == []
