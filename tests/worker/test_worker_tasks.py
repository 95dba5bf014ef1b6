"""Tasks of pools draw the same in every run, whichever process of the pool has them."""

from __future__ import annotations

import pytest

TASKS = """
import multiprocessing as mp, random, sys, time
from concurrent.futures import ProcessPoolExecutor
import numpy as np

def drawn(number):
    time.sleep(0.02 if number == int(sys.argv[1]) else 0)  # another order in another run
    return random.random(), np.random.rand(), np.random.default_rng().random(), np.random.default_rng().random()

if __name__ == "__main__":
    context = mp.get_context("fork")
    with context.Pool(2) as pool:
        print("pool", pool.map(drawn, range(5), chunksize=1), pool.map(drawn, range(5), chunksize=2))
    for _ in range(2):
        with ProcessPoolExecutor(2, context) as pool:
            print("executor", list(pool.map(drawn, range(5))))
    with mp.pool.ThreadPool(2) as pool:
        print("threads", pool.map(lambda _: np.random.default_rng().random(), range(5), chunksize=1))
"""


def test_a_task_draws_the_same_whichever_process_has_it(train, tmp_path):
    (tmp_path / "train.py").write_text(TASKS)
    runs = [train("train.py", slow, level="fixed-seed", seed=3) for slow in ("0", "1", "9")]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout == runs[2].stdout
    # In chunks a task goes on where the one before in its chunk ended: no number is drawn twice.
    numbers = [float(word) for word in runs[0].stdout.translate(str.maketrans("[](),", "     ")).split() if "." in word]
    assert len(set(numbers)) == len(numbers) == 4 * 5 * 4 + 5
    told = [note["message"] for note in runs[0].of_kind("note") if note["code"] == "process-seeded"]
    assert f"tasks of Pool at {tmp_path}/train.py:12 draw from streams of their own" in told[0]
    assert any(f"ProcessPoolExecutor at {tmp_path}/train.py:15 " in message for message in told)
    # What generators were given in processes of pools stands beside what the process that trains has to say.
    aside = [event for events in runs[0].run.others.values() for event in events]
    assert {event["kind"] for event in aside} == {"start", "note"}
    where = f"numpy.random.default_rng at {tmp_path}/train.py:8 had no seed and was given "
    assert any(event.get("message", "").startswith(where) for event in aside)
    assert 2 <= len(runs[0].run.others) <= 8


def test_a_process_draws_the_same_however_many_processes_pools_had_before_it(train, tmp_path):
    code = """
import multiprocessing as mp, random, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
def drawn(_=0):
    return random.random(), np.random.rand(), np.random.default_rng().random()
def nested(told):
    process = context.Process(target=tell, args=(told,))
    process.start()
    process.join()
def tell(told):
    told.put(drawn())
def begin():
    print("initializer", drawn(), flush=True)
context = mp.get_context("fork")
if sys.argv[1] != "none":
    with context.Pool(int(sys.argv[1]), begin, maxtasksperchild=1) as pool:
        pool.map(drawn, range(4), chunksize=1)
    with ProcessPoolExecutor(int(sys.argv[1]), context) as pool:
        list(pool.map(drawn, range(4)))
told = context.SimpleQueue()
for target in (tell, tell, nested):
    process = context.Process(target=target, args=(told,))
    process.start()
    print("process", told.get(), flush=True)
    process.join()
"""
    (tmp_path / "train.py").write_text(code)
    runs = [train("train.py", workers, level="fixed-seed", seed=3) for workers in ("none", "1", "3")]
    assert [run.returncode for run in runs] == [0, 0, 0], runs[-1].stderr
    told = [[line for line in run.stdout.splitlines() if line.startswith("process")] for run in runs]
    assert told[0] == told[1] == told[2]
    numbers = [word for line in runs[2].stdout.splitlines() for word in line.strip(")").split("(")[1].split(", ")]
    assert len(set(numbers)) == len(numbers), "a process of a pool draws what no other does"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_that_logs_tells_its_generators_beside_what_it_logs(train, tmp_path, method):
    code = f"""
import multiprocessing as mp, isorun, numpy as np
def work():
    isorun.log(step=1, acc=0.5)
    np.random.default_rng()
if __name__ == "__main__":
    process = mp.get_context("{method}").Process(target=work)
    process.start()
    process.join()
"""
    (tmp_path / "train.py").write_text(code)
    done = train("train.py", level="fixed-seed", seed=3)
    assert done.returncode == 0, done.stderr
    assert len(done.of_kind("row")) == 1, "the process that logs is the one that trains"
    told = [note["message"] for note in done.of_kind("note") if note["code"] == "generator-seeded"]
    assert len(told) == 1
    assert told[0].startswith(f"numpy.random.default_rng at {tmp_path}/train.py:5 had no seed and was given ")


def test_a_task_of_threads_draws_the_same_whichever_thread_has_it(train, tmp_path):
    code = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
def drawn(number):
    time.sleep(0.02 if number == int(sys.argv[1]) else 0)  # another order in another run
    return np.random.default_rng().random(), np.random.default_rng().random()
def handed_over():
    with ThreadPoolExecutor(2) as pool:
        print(list(pool.map(drawn, range(5))))
handed_over()
handed_over()
other = threading.Thread(target=handed_over)
other.start()
other.join()
with ThreadPoolExecutor(2) as outer:
    print([each.result() for each in outer.map(lambda number: ThreadPoolExecutor(1).submit(drawn, number), range(5))])
"""
    (tmp_path / "train.py").write_text(code)
    runs = [train("train.py", slow, level="fixed-seed", seed=3) for slow in ("0", "1", "9")]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == runs[1].stdout == runs[2].stdout
    numbers = [word for word in runs[0].stdout.translate(str.maketrans("[](),", "     ")).split() if "." in word]
    assert len(set(numbers)) == len(numbers) == 4 * 5 * 2


def test_a_seed_of_the_trainings_own_stays_in_its_pools(train, tmp_path):
    code = """
import multiprocessing as mp, random
import numpy as np
def drawn(number):
    return np.random.rand(), random.Random(number).random(), np.random.RandomState(number).rand()
def seeded(number):
    random.seed(number)
    return random.random()
if __name__ == "__main__":
    np.random.seed(5)
    with mp.get_context("fork").Pool(1) as pool:
        print(pool.map(drawn, range(3), chunksize=1), pool.map(seeded, range(3), chunksize=1))
"""
    (tmp_path / "train.py").write_text(code)
    assert train("train.py", level="fixed-seed", seed=3).stdout == train("train.py").stdout


def test_at_default_pools_are_left_alone(train):
    code = "import multiprocessing.pool as pool; print(pool.worker.__code__.co_filename == pool.__file__)"
    assert train("-c", code).stdout == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize("level", ["fixed-seed", "deterministic"])
def test_scikit_learns_parallel_searches_are_the_same_in_every_run(train, tmp_path, level):
    pytest.importorskip("sklearn")
    code = """
import random, time
import joblib, numpy as np
from scipy.stats import uniform
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import RandomizedSearchCV, ShuffleSplit, cross_val_score
def drawn(number):
    time.sleep(random.SystemRandom().random() / 100)
    return np.random.rand(), random.random(), np.random.default_rng().random()
if __name__ == "__main__":
    data = [part[:400] for part in load_digits(return_X_y=True)]
    print(cross_val_score(RandomForestClassifier(5), *data, n_jobs=2, cv=4))
    search = RandomizedSearchCV(SGDClassifier(max_iter=20), {"alpha": uniform(0, 0.1)}, n_iter=4, n_jobs=2)
    print(search.fit(*data).best_params_, search.cv_results_["mean_test_score"])
    print(joblib.Parallel(n_jobs=2)(joblib.delayed(drawn)(number) for number in range(40)))
    print(joblib.Parallel(n_jobs=2, backend="multiprocessing")(joblib.delayed(drawn)(number) for number in range(40)))
"""
    (tmp_path / "train.py").write_text(code)
    first, again = (train("-W", "ignore", "train.py", level=level, seed=3) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    numbers = [word for word in first.stdout.translate(str.maketrans("[](),", "     ")).split() if len(word) > 15]
    assert len(set(numbers)) > 200
