"""The worker inside real Python processes: started by sitecustomize, silent when things go wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from worker_trainings import OTHER_PYTHONS, read_run, run_environment

from isorun.worker import levels


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=lambda path: path.parent.parent.name)
def test_it_works_in_interpreters_without_isorun(train, tmp_path, python):
    script = write(
        tmp_path / "train.py",
        "import isorun, random, sys\n"
        "isorun.log(epoch=1, acc=0.5)\n"
        "isorun.result(acc=float('nan'), predictions=[1, 2, 300], per_class={0: 1.0})\n"
        "isorun.digest('mine', {'a': [1.5]})\n"
        "print(random.random(), 'site' in ''.join(p for p in sys.path if 'isorun' in p))\n",
    )
    trained = train(script, python=str(python), level="fixed-seed", seed=3)
    expected = __import__("random").Random(3).random()
    assert trained.stdout.split() == [repr(expected), "False"], trained.stderr
    kinds = [event["kind"] for event in trained.events]
    assert kinds == ["start", "row", "result", "predictions", "digest", "environment", "end"]
    assert not (trained.folder / "worker-error.txt").exists()


def test_without_a_run_folder_nothing_happens(tmp_path):
    env = {**run_environment(tmp_path, "default", None), "ISORUN_RUN_DIR": ""}
    code = "import sys; print([m for m in sys.modules if 'isorun' in m], [p for p in sys.path if 'isorun' in p])"
    bare = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, check=True)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert bare.stdout.startswith("[]")
    assert done.stdout.startswith("[]")
    assert str(levels.site_folder()) not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_sitecustomize_runs_as_if_ours_were_not_there(train, tmp_path):
    write(tmp_path / "mine" / "sitecustomize.py", "import builtins\nbuiltins.MINE = __file__\n")
    code = "import sitecustomize; print(MINE); print(sitecustomize.__file__)"
    trained = train("-c", code, extra={"PYTHONPATH": str(tmp_path / "mine")})
    assert trained.stdout.split() == [str(tmp_path / "mine" / "sitecustomize.py")] * 2
    assert trained.of_kind("end")


def test_child_pythons_are_reached_too_and_only_write_when_they_log(train, tmp_path):
    child = "import isorun; isorun.log(epoch=9, acc=0.9)"
    script = write(
        tmp_path / "train.py",
        "import isorun, subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
        "isorun.log(epoch=1, acc=0.1)\n",
    )
    run = train(script).run
    assert [event["step"] for event in run.main if event["kind"] == "row"] == [1]
    (other,) = run.others.values()
    assert [event["step"] for event in other if event["kind"] == "row"] == [9]


def test_a_helper_before_the_training_does_not_take_its_place(tmp_path):
    script = write(
        tmp_path / "train.sh",
        f"{sys.executable} -c 'print(1)'\n{sys.executable} -c 'import isorun; isorun.log(epoch=1, acc=0.5)'\n"
        f"{sys.executable} -c 'print(2)'\n",
    )
    folder = tmp_path / "run"
    folder.mkdir()
    subprocess.run(["bash", script], env=run_environment(folder, "default", None), check=True, capture_output=True)

    run = read_run(folder)
    assert [event["kind"] for event in run.main] == ["start", "row", "environment", "end"]
    assert len(run.others) == 1
    assert (folder / "events.jsonl").exists()


def test_a_module_and_argparse_see_what_they_always_see(train, tmp_path):
    write(tmp_path / "pkg" / "__init__.py", "")
    write(
        tmp_path / "pkg" / "train.py",
        "import argparse, isorun\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float)\n"
        "isorun.log(epoch=1, lr=p.parse_args().lr)\n",
    )
    trained = train("-m", "pkg.train", "--lr", "0.25", cwd=tmp_path)
    assert trained.of_kind("row")[0]["values"] == {"lr": 0.25}, trained.stderr


@pytest.mark.parametrize(
    ("ending", "returncode", "ends_orderly"),
    [
        ("sys.exit(3)", 3, True),
        ("raise ValueError('broken')", 1, True),
        ("os._exit(4)", 4, False),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, False),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, False),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, True),
    ],
)
def test_every_way_to_end_keeps_what_was_logged(train, tmp_path, ending, returncode, ends_orderly):
    script = write(
        tmp_path / "train.py", f"import isorun, os, signal, sys, time\nisorun.log(epoch=1, acc=0.5)\n{ending}\n"
    )
    trained = train(script)
    assert trained.returncode == returncode
    assert len(trained.of_kind("row")) == 1
    assert bool(trained.of_kind("end")) == ends_orderly
    assert trained.run.torn_bytes == 0


def test_a_worker_that_cannot_start_does_not_stop_the_training(tmp_path):
    env = {**run_environment(tmp_path, "default", None), "ISORUN_LEVEL": "no-such-level"}
    code = "import isorun; isorun.log(acc=1); print('trained')"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "trained\n"
    assert "no-such-level" in (tmp_path / "worker-error.txt").read_text()


def test_a_run_folder_that_is_gone_does_not_stop_the_training(tmp_path):
    env = run_environment(tmp_path / "missing", "default", None)
    code = "import isorun; isorun.log(acc=1); print('trained')"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "trained\n"
    assert done.returncode == 0


def test_seeds_that_the_training_fixes_are_told_with_their_place(train, tmp_path):
    script = write(
        tmp_path / "train.py",
        "import random\nimport numpy as np\nfrom local_part import generator\n"
        "random.seed(11)\nrandom.seed()\nnp.random.seed(12)\nrng = np.random.default_rng(13)\n",
    )
    write(tmp_path / "local_part.py", "import numpy as np\n\ngenerator = np.random.RandomState(14)\n")
    trained = train(script)
    told = {(event["call"], event["value"], event["where"]) for event in trained.of_kind("seeded")}
    assert told == {
        ("random.seed", "11", f"{script}:4"),
        ("numpy.random.seed", "12", f"{script}:6"),
        ("numpy.random.default_rng (in source)", "13", f"{script}:7"),
        ("numpy.random.RandomState (in source)", "14", f"{tmp_path}/local_part.py:3"),
    }


def test_a_training_that_fixes_no_seed_is_not_accused(train):
    code = "import numpy as np, random, tempfile; np.random.rand(); random.random(); tempfile.mkdtemp()"
    assert train("-c", code).of_kind("seeded") == []


def test_a_training_that_uses_the_seed_it_was_given_is_not_accused(train):
    code = "import sys, random, numpy as np; random.seed(int(sys.argv[1])); np.random.seed(int(sys.argv[1]) + 1)"
    given = levels.seed_environment(1234567, take_seeds=False)
    assert [event["call"] for event in train("-c", code, "1234567", extra=given).of_kind("seeded")] == [
        "numpy.random.seed"
    ]
    fixed = train("-c", code, "5", extra=levels.seed_environment(5, take_seeds=False), level="fixed-seed", seed=5)
    assert [event["value"] for event in fixed.of_kind("seeded")] == ["5", "6"]


def test_default_runs_differ_and_fixed_seed_runs_do_not(train):
    code = "import random, numpy as np; print(random.random(), np.random.rand(), hash('x'))"
    default = {train("-c", code).stdout for _ in range(3)}
    fixed = {train("-c", code, level="fixed-seed", seed=5).stdout for _ in range(3)}
    assert len(default) == 3
    assert len(fixed) == 1
    assert train("-c", code, level="fixed-seed", seed=6).stdout not in fixed


def test_the_effective_environment_is_recorded(train):
    trained = train("-c", "import numpy as np; np.ones((64, 64)) @ np.ones((64, 64))", level="deterministic", seed=1)
    (environment,) = trained.of_kind("environment")
    effective = environment["effective"]
    assert effective["python"]["version"] == sys.version.split()[0]
    assert effective["variables"]["OMP_NUM_THREADS"] == "1"
    assert effective["frameworks"] == ["numpy"]
    assert effective["packages"]["numpy"] == __import__("numpy").__version__
    assert effective["cpu"]["affinity"] >= 1
    assert any("openblas" in library["name"] for library in effective["libraries"])
    assert all(len(library["sha256"]) == 64 for library in effective["libraries"])
    assert "unreadable" not in json.dumps(effective)


def test_forked_and_spawned_workers_do_not_disturb_the_record(train, tmp_path):
    script = write(
        tmp_path / "train.py",
        "import multiprocessing as mp, isorun, os\n"
        "def work(n):\n    return n * n\n"
        "def loud(n):\n    isorun.log(epoch=n, child=n)\n"
        "if __name__ == '__main__':\n"
        "    isorun.log(epoch=0, acc=0.0)\n"
        "    for method in ('fork', 'spawn'):\n"
        "        context = mp.get_context(method)\n"
        "        with context.Pool(2) as pool:\n            print(pool.map(work, range(3)))\n"
        "        child = context.Process(target=loud, args=(7,)); child.start(); child.join()\n"
        "    isorun.log(epoch=1, acc=0.1)\n",
    )
    trained = train(script)
    assert trained.stdout == "[0, 1, 4]\n[0, 1, 4]\n", trained.stderr
    assert [event["step"] for event in trained.of_kind("row")] == [0, 1]
    assert trained.events[-1]["kind"] == "end"
    rows = [[event["step"] for event in events if event["kind"] == "row"] for events in trained.run.others.values()]
    assert rows == [[7], [7]]


def test_a_function_is_called_with_what_it_takes_and_its_mapping_is_the_result(train, tmp_path, monkeypatch):
    target = write(
        tmp_path / "my_training.py",
        "def fit(seed, lr=1.0):\n    print(seed, lr)\n    return {'acc': 0.5, 'per_class': {0: 0.25}}\n"
        "def whole(**known):\n    print(sorted(known.items()))\n"
        "def placed(level, repeat):\n    print(level, repeat)\n",
    )
    request = {"seed": 17, "repeat": 2, "level": "fixed-seed", "config": {"lr": 0.5, "depth": 3}}
    site = "import json, os, pathlib\n"
    site += f"pathlib.Path(os.environ['ISORUN_RUN_DIR'], 'request.json').write_text({json.dumps(request)!r})\n"
    write(tmp_path / "early" / "sitecustomize.py", site)
    trained = train(
        str(levels.site_folder() / "enter.py"), "call", f"{target}:fit", extra={"PYTHONPATH": str(tmp_path / "early")}
    )
    assert trained.stdout == "17 0.5\n", trained.stderr
    assert trained.of_kind("result")[0]["values"] == {"acc": 0.5}
    (note,) = trained.of_kind("note")
    assert (note["code"], note["message"]) == ("unused-config", "fit does not take: depth")
    for name, printed in (
        ("placed", "fixed-seed 2\n"),
        ("whole", "[('depth', 3), ('level', 'fixed-seed'), ('lr', 0.5), ('repeat', 2), ('seed', 17)]\n"),
    ):
        called = (str(levels.site_folder() / "enter.py"), "call", f"{target}:{name}")
        assert train(*called, extra={"PYTHONPATH": str(tmp_path / "early")}).stdout == printed


def test_an_unknown_function_lists_those_there_are(train, tmp_path):
    target = write(tmp_path / "my_training.py", "def fit(): pass\ndef other(): pass\n")
    write(tmp_path / "request.json", "{}")
    trained = train(str(levels.site_folder() / "enter.py"), "call", f"{target}:fitt")
    assert trained.returncode == 1
    assert trained.stderr == f"isorun: {target} has no function 'fitt'; its functions are: fit, other\n"
