"""Seeds taken over in real frameworks, each tried where it is installed.

That is here, or in one of the interpreters that the variable ISORUN_TEST_PYTHONS names, separated by colons.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from worker_trainings import Trained

from isorun.worker import levels

pytestmark = pytest.mark.slow

PYTHONS = [sys.executable, *filter(None, os.environ.get("ISORUN_TEST_PYTHONS", "").split(":"))]


def python_with(*modules: str) -> str:
    for python in PYTHONS:
        question = f"import importlib.util as u; assert all(map(u.find_spec, {modules!r}))"
        if subprocess.run([python, "-c", question], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip(f"not installed here: {', '.join(modules)}")


# Each line that a script prints is a name and numbers: "=" numbers of one line are equal, "!" ones all differ, and the
# first number of each line follows the run's seed.
SCRIPTS = {
    "tensorflow keras": """
        import os
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import random, numpy as np, tensorflow as tf, keras

        def drawn(): return float(tf.random.uniform([1])[0])
        def from_seed(seed): return float(tf.random.Generator.from_seed(seed).uniform([1])[0])
        def generated(seed): return float(keras.random.uniform([1], seed=keras.random.SeedGenerator(seed))[0])
        def initial(seed): return float(keras.initializers.GlorotUniform(seed=seed)((1, 1))[0, 0])
        def started(seed):
            keras.utils.set_random_seed(seed)
            return (random.random(), float(np.random.rand()), drawn(), float(keras.random.uniform([1])[0]))

        tf.random.set_seed(3); a = drawn(); tf.random.set_seed(3); b = drawn(); tf.random.set_seed(4)
        print("=set_seed", a, b); print("!set_seed", a, drawn())
        print("=from_seed", from_seed(7), from_seed(7)); print("!from_seed", from_seed(7), from_seed(8))
        print("=generator", generated(7), generated(7)); print("!generator", generated(7), generated(8))
        print("=initializer", initial(7), initial(7)); print("!initializer", initial(7), initial(8))
        for first, again, other in zip(started(11), started(11), started(12)):
            print("=all", first, again); print("!all", first, other)
    """,
    "jax flax": """
        import jax
        from flax import nnx
        from jax import random

        def drawn(key): return float(random.uniform(key))
        print("=key", drawn(random.key(0)), drawn(random.PRNGKey(0)), drawn(jax.random.key(0)))
        print("!key", drawn(random.key(0)), drawn(random.key(1)))
        print("=rngs", drawn(nnx.Rngs(0).params()), drawn(nnx.Rngs(params=0, dropout=1).params()))
        print("!rngs", drawn(nnx.Rngs(0).params()), drawn(nnx.Rngs(1).params()))
        print("=jit", float(jax.jit(lambda: random.uniform(random.key(0)))()), drawn(random.key(0)))
        print("=linear", float(nnx.Linear(1, 1, rngs=nnx.Rngs(5)).kernel[0, 0]),
              float(nnx.Linear(1, 1, rngs=nnx.Rngs(5)).kernel[0, 0]))
    """,
    "lightning transformers torch": """
        import random, numpy as np, torch, transformers
        from lightning.pytorch import seed_everything

        def drawn(start, seed):
            start(seed)
            return random.random(), float(np.random.rand()), torch.rand(1).item()

        for one, again, hugging, other in zip(drawn(seed_everything, 42), drawn(seed_everything, 42),
                                              drawn(transformers.set_seed, 42), drawn(transformers.set_seed, 43)):
            print("=42", one, again, hugging); print("!42", one, other)
        config = transformers.BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
        def weight(seed):
            transformers.set_seed(seed)
            return transformers.BertModel(config).embeddings.word_embeddings.weight[1, 0].item()
        print("=bert", weight(7), weight(7)); print("!bert", weight(7), weight(8))
    """,
    "sklearn": """
        import pickle
        import numpy as np
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.model_selection import cross_val_score, train_test_split
        from sklearn.utils import check_random_state

        x, y = np.arange(120.0).reshape(60, 2) % 7, np.arange(60) % 3 % 2
        def split(seed): return float(np.arange(1, 16) @ train_test_split(range(60), random_state=seed)[1])
        def forest(seed, jobs):
            model = RandomForestClassifier(20, random_state=seed, n_jobs=jobs).fit(x, y)
            model.n_jobs = 1  # threads that predict add up in any order
            return float(pickle.loads(pickle.dumps(model)).predict_proba(x)[:, 0] @ np.arange(1, 61))
        print("=split", split(42), split(42)); print("!split", split(42), split(43))
        print("=forest", forest(0, 1), forest(0, 2)); print("!forest", forest(0, 1), forest(1, 1))
        assert check_random_state(None) is np.random.mtrand._rand
        cross_val_score(RandomForestClassifier(5, random_state=3), x, y, n_jobs=2)
    """,
}


def numbers(trained: Trained) -> list[tuple[str, list[str]]]:
    assert trained.returncode == 0, trained.stderr[-3000:]
    assert not (trained.folder / "worker-error.txt").exists()
    lines = [line.split() for line in trained.stdout.splitlines() if line.startswith(("=", "!"))]
    return [(words[0], words[1:]) for words in lines]


@pytest.mark.parametrize("modules", SCRIPTS)
def test_equal_streams_stay_equal_and_follow_the_seed(train, tmp_path, modules):
    python = python_with(*modules.split())
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPTS[modules]))
    first, again, other = (
        numbers(train("train.py", python=python, extra=levels.seed_environment(seed, take_seeds=True)))
        for seed in (103, 103, 109)
    )
    plain = [numbers(train("train.py", python=python)) for _ in range(2)]
    assert first
    assert first == again
    assert plain[0] == plain[1]
    for name, values in (*first, *plain[0]):
        assert len(set(values)) == (1 if name.startswith("=") else len(values)), name
    for runs in zip(first, other, plain[0], strict=True):
        assert len({values[0] for _, values in runs}) == 3, runs


COMPILED = """
import torch

torch.manual_seed(1337)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.3), torch.nn.Linear(4, 1))
compiled = torch.compile(model)
generator = torch.Generator().manual_seed(5)

@torch.compile
def noisy(x):
    return x + torch.rand(8, 4, generator=generator)

@torch.compile
def restarted(x):
    torch.manual_seed(3)
    return x + torch.rand_like(x)

sgd = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    sgd.zero_grad()
    loss = compiled(noisy(torch.ones(8, 4))).square().mean()
    loss.backward()
    sgd.step()
print(loss.item(), restarted(torch.ones(2)).tolist() == restarted(torch.ones(2)).tolist())
"""


def test_a_compiled_training_has_one_version_of_its_code_and_its_seeds_are_taken(train, tmp_path):
    from isorun.worker.seedsource import facts_of
    from isorun.worker.usercode import sources_read

    script = tmp_path / "train.py"
    script.write_text(COMPILED)
    runs = [
        train("train.py", extra={**levels.seed_environment(seed, take_seeds=True), "OMP_NUM_THREADS": "1"})
        for seed in (3, 3, 4)
    ]
    runs.append(train("train.py", extra={"OMP_NUM_THREADS": "1"}))
    assert [run.returncode for run in runs] == [0] * 4, runs[0].stderr[-3000:]
    versions = {run.of_kind("environment")[0]["effective"]["sources_sha256"] for run in runs}
    assert versions == {sources_read(facts_of([script], None), None)["sources_sha256"]}
    assert all(run.stdout.split()[1] == "True" for run in runs)
    assert runs[0].stdout == runs[1].stdout
    assert len({run.stdout for run in runs}) == 3
    assert not any((run.folder / "worker-error.txt").exists() for run in runs)


RANKS = """
import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(1337 + rank)
own = torch.rand(1).item()
torch.manual_seed(7)
found = [None, None]
dist.all_gather_object(found, (own, torch.rand(1).item(), list(DistributedSampler(range(8)))))
if rank == 0:
    (own, shared, first), (other, same, second) = found
    print("ranks", own != other, shared == same, sorted(first + second) == list(range(8)), shared)
dist.destroy_process_group()
"""


def test_ranks_of_one_run_agree_where_they_did_and_differ_where_they_did(train, tmp_path):
    (tmp_path / "train.py").write_text(RANKS)
    command = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "train.py")
    lines = []
    for seed in (3, 3, 4):
        trained = train(*command, extra={**levels.seed_environment(seed, take_seeds=True), "OMP_NUM_THREADS": "1"})
        lines += [line.split() for line in trained.stdout.splitlines() if line.startswith("ranks")]
    assert [line[1:4] for line in lines] == [["True"] * 3] * 3
    assert lines[0] == lines[1] != lines[2]
