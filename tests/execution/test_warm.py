"""Warm launching: forked runs must be what fresh ones are."""

import json
import os
import signal
import textwrap
import threading

import pytest

from isorun.execution.keeper import descendants, processes
from isorun.study.records import RunState
from isorun.testing.executor_contract import execute

CPUS = len(os.sched_getaffinity(0))

WHOAMI = "import os, sys; print(os.getppid(), sys.flags.hash_randomization, hash('x'))"

TRAINING = """
    import random
    import numpy
    import torch

    inputs = torch.randn(64, 1, 12, 12)
    labels = torch.randint(0, 4, (64,))
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Flatten(), torch.nn.Linear(800, 4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        for batch in torch.randperm(64).split(16):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss: {loss.item()!r}")
    print("draws", random.random(), numpy.random.rand(), torch.rand(1).item(), torch.get_num_threads())
"""


@pytest.fixture
def executor(local):
    return local(launch="warm", grace_seconds=0.5)


def codes(record):
    return {note.code for note in record.notes}


def server_of(record):
    return int(record.log_tail.split()[0])


def test_runs_of_one_environment_share_a_server_whatever_their_seed(executor, make_job):
    records = [execute(executor, make_job(script=WHOAMI, level="fixed-seed", seed=seed)) for seed in (1, 2)]
    assert [record.launch for record in records] == ["warm", "warm"]
    assert server_of(records[0]) == server_of(records[1])


@pytest.mark.parametrize(
    "difference", [{"env": {"OMP_WAIT_POLICY": "PASSIVE"}}, {"threads": 1}, {"preload": ("json",)}]
)
def test_what_is_read_at_start_needs_a_server_of_its_own(executor, make_job, difference):
    if difference == {"threads": CPUS}:
        pytest.skip("needs two CPUs")
    first = execute(executor, make_job(script=WHOAMI, level="fixed-seed"))
    second = execute(executor, make_job(script=WHOAMI, level="fixed-seed", **difference))
    assert {first.launch, second.launch} == {"warm"}
    assert server_of(first) != server_of(second)


def test_hashes_are_the_same_warm_and_fresh(executor, make_job, local):
    fresh = local(launch="fresh")
    hashes = {
        execute(made, make_job(script="print(hash('x'))", level="fixed-seed")).log_tail for made in (executor, fresh)
    }
    fresh.close()
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "case",
    [
        ("default", {}, "fresh"),
        ("default", {"PYTHONHASHSEED": "5"}, "warm"),
        ("fixed-seed", {}, "warm"),
        ("deterministic", {}, "warm"),
        ("fixed-seed", {"PYTHONHASHSEED": "random"}, "fresh"),
    ],
)
def test_auto_is_warm_only_where_hashes_are_fixed(make_job, monkeypatch, local, case):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    level, env, expected = case
    record = execute(local(launch="auto"), make_job(script="print('x')", level=level, env=env))
    assert record.launch == expected
    assert codes(record) == set()


def test_a_default_run_that_is_forced_warm_says_that_it_shares_its_hashes(executor, make_job, monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    record = execute(executor, make_job(script="print('x')"))
    assert record.launch == "warm"
    assert codes(record) == {"shared-hash-seed"}


@pytest.mark.parametrize("command", [("bash", "-c", "true"), ("python", "-O", "-c", "pass")])
def test_what_cannot_be_forked_is_started_fresh_with_a_note_if_warm_was_asked_for(executor, make_job, command):
    record = execute(executor, make_job(command, level="fixed-seed"))
    assert (record.state, record.launch) == (RunState.FINISHED, "fresh")
    assert "not-warm" in codes(record)


def test_a_declared_module_that_cannot_be_preloaded_is_noted_and_the_run_is_fresh(executor, make_job):
    for _ in range(2):
        record = execute(executor, make_job(script="print('x')", level="fixed-seed", preload=("no_such_module",)))
        assert (record.state, record.launch) == (RunState.FINISHED, "fresh")
        note = next(note for note in record.notes if note.code == "not-warm")
        assert "no_such_module: ModuleNotFoundError" in note.message


@pytest.mark.long
def test_a_module_found_in_the_source_may_be_optional_there(executor, make_job):
    script = "try:\n    import torchvision.no_such_part\nexcept ImportError:\n    print('went on')"
    record = execute(executor, make_job(script=script, level="fixed-seed"))
    assert (record.log_tail, record.launch) == ("went on", "warm")


def test_a_server_that_died_is_started_again(executor, make_job):
    first = execute(executor, make_job(script=WHOAMI, level="fixed-seed"))
    os.kill(server_of(first), signal.SIGKILL)
    second = execute(executor, make_job(script=WHOAMI, level="fixed-seed"))
    assert second.state is RunState.FINISHED
    assert server_of(second) != server_of(first)


def test_a_run_whose_server_is_killed_is_a_failed_run_and_the_next_one_works(executor, make_job):
    killer = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    record = execute(executor, make_job(script=killer, level="fixed-seed"))
    assert record.state is RunState.FAILED
    assert execute(executor, make_job(script=WHOAMI, level="fixed-seed")).state is RunState.FINISHED


@pytest.mark.parametrize("limit", [None, 0.5])
def test_a_run_that_stops_its_server_ends_as_any_other(executor, make_job, limit):
    script = f"import os, time; os.kill(os.getppid(), 19); time.sleep({60 if limit else 0})"
    record = execute(executor, make_job(script=script, level="fixed-seed", time_limit_seconds=limit))
    assert (record.launch, record.state) == ("warm", RunState.TIMED_OUT if limit else RunState.FINISHED)
    assert execute(executor, make_job(script=WHOAMI, level="fixed-seed")).state is RunState.FINISHED


def test_children_of_a_warm_run_are_ended_and_noted_and_other_runs_are_left_alone(make_job, local):
    if CPUS < 2:
        pytest.skip("needs two CPUs")
    executor = local(2, launch="warm", grace_seconds=0.5)
    leaver = """
        import os, subprocess, time
        subprocess.Popen(["sleep", "300"], start_new_session=True, stdout=subprocess.DEVNULL)
        subprocess.Popen(["sleep", "300"])
        if os.fork() == 0:
            os.setsid()
            time.sleep(300)
    """
    stayer = """
        import subprocess, time
        child = subprocess.Popen(["sleep", "2"], start_new_session=True)
        print("child", child.wait())
    """
    jobs = [make_job(script=textwrap.dedent(text), level="fixed-seed") for text in (stayer, leaver)]
    records = {}
    threads = [
        threading.Thread(target=lambda job=job: records.update({job.cell.id: execute(executor, job)})) for job in jobs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stayed, left = (records[job.cell.id] for job in jobs)
    servers = [place.server for place in executor._workshop.launcher._servers._places.values()]
    assert [process.name for server in servers for process in server.orphans()] == []
    executor.close()
    assert (stayed.log_tail, codes(stayed)) == ("child 0", set())
    assert "left-behind" in codes(left)


@pytest.mark.alone
def test_a_warm_run_that_ignores_the_request_to_stop_is_killed(executor, make_job):
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300)"
    record = execute(executor, make_job(script=script, level="fixed-seed", time_limit_seconds=0.5))
    assert (record.state, record.signal) == (RunState.TIMED_OUT, "SIGKILL")
    assert record.wall_seconds < 5


@pytest.mark.parametrize(
    ("script", "code", "name"),
    [("raise SystemExit(3)", 3, ""), ("import os; os._exit(9)", 9, ""), ("import os; os.abort()", None, "SIGABRT")],
)
def test_warm_runs_end_as_fresh_ones(executor, make_job, script, code, name):
    record = execute(executor, make_job(script=script, level="fixed-seed"))
    assert (record.launch, record.exit_code, record.signal) == ("warm", code, name)


@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_a_function_gets_its_seed_and_config_and_its_return_is_the_result(make_job, tmp_path, launch, local):
    (tmp_path / "train.py").write_text("def main(seed, lr):\n    return {'acc': seed + lr}\n")
    executor = local(launch=launch)
    record = execute(
        executor, make_job(("function", "train.py:main"), level="fixed-seed", seed=2, config={"lr": 0.5, "other": 1})
    )
    executor.close()
    assert (record.state, record.launch, record.results) == (RunState.FINISHED, launch, {"acc": 2.5})


@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_a_module_in_a_package_is_run_with_its_arguments(make_job, tmp_path, launch, local):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text("import sys; from . import part; print(part.x, sys.argv[1:])")
    (tmp_path / "pkg" / "part.py").write_text("x = 5")
    (tmp_path / "pkg" / "__init__.py").write_text("")
    executor = local(launch=launch)
    record = execute(executor, make_job(("python", "-m", "pkg.train", "--lr", "1"), level="fixed-seed"))
    executor.close()
    assert (record.launch, record.log_tail) == (launch, "5 ['--lr', '1']")


def test_closing_leaves_no_server_behind(make_job, local):
    executor = local(launch="warm")
    server = server_of(execute(executor, make_job(script=WHOAMI, level="fixed-seed")))
    assert server in processes()
    executor.close()
    assert server not in processes()
    assert all("launch.py" not in process.name for process in descendants(os.getpid()))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The same training at each level, fresh and warm twice, on one CPU and on all."""
    from isorun.execution import Job
    from isorun.execution.local import LocalExecutor
    from isorun.study.cells import Cell, Level

    folder = tmp_path_factory.mktemp("torch")
    (folder / "train.py").write_text(textwrap.dedent(TRAINING))
    command = ("python", "train.py")
    records = {}
    for launch, repeats in (("fresh", 1), ("warm", 2)):
        executor = LocalExecutor(folder / launch, launch=launch)
        for level in ("fixed-seed", "deterministic"):
            for repeat in range(repeats):
                cell = Cell("a", command, "default", {}, "default", {}, Level(level), 7, repeat)
                records[launch, level, repeat] = execute(executor, Job(cell, 1, command, folder, 7))
        executor.close()
    return records


@pytest.mark.parametrize("level", ["fixed-seed", "deterministic"])
@pytest.mark.long
def test_fresh_and_warm_trainings_end_with_the_same_bits(trained, level):
    fresh, *warm = (trained[key] for key in [("fresh", level, 0), ("warm", level, 0), ("warm", level, 1)])
    assert fresh.state is RunState.FINISHED, fresh.log_tail
    assert [record.launch for record in warm] == ["warm", "warm"]
    assert {"weights.initial", "weights.final"} <= set(fresh.digests)
    for record in warm:
        assert record.digests == fresh.digests
        assert record.log_tail == fresh.log_tail


@pytest.mark.long
def test_threads_and_libraries_are_the_same_fresh_and_warm(trained):
    fresh, warm = trained["fresh", "deterministic", 0], trained["warm", "deterministic", 0]
    for part in ("torch", "cpu", "variables"):
        assert warm.environment["effective"][part] == fresh.environment["effective"][part], part
    names = [json.dumps(record.environment["effective"]["libraries"], sort_keys=True) for record in (fresh, warm)]
    assert names[0] == names[1]
    assert fresh.environment["effective"]["torch"]["threads"] == CPUS


@pytest.mark.skipif(CPUS < 2, reason="needs two CPUs")
@pytest.mark.long
def test_two_warm_jobs_have_half_the_threads_each_and_different_cpus(make_job, local):
    executor = local(2, launch="warm")
    script = (
        "import os, time, torch\n"
        "print(torch.get_num_threads(), sorted(os.sched_getaffinity(0)), flush=True)\n"
        "time.sleep(1)"
    )
    jobs = [make_job(script=script, level="fixed-seed") for _ in range(2)]
    records = []
    threads = [threading.Thread(target=lambda job=job: records.append(execute(executor, job))) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    executor.close()
    assert {record.launch for record in records} == {"warm"}
    seen = [record.log_tail.split(" ", 1) for record in records]
    assert [threads for threads, _ in seen] == [str(CPUS // 2)] * 2
    assert not set(json.loads(seen[0][1])) & set(json.loads(seen[1][1]))


SELF_SEEDED = """
    import random
    import numpy
    from sklearn.model_selection import train_test_split

    random.seed(0)
    numpy.random.seed(0)
    print(random.random(), numpy.random.rand(), numpy.random.default_rng(0).random())
    print(train_test_split(list(range(20)), random_state=42)[1])
"""


@pytest.mark.long
def test_seeds_are_taken_over_in_forked_runs_as_in_fresh_ones(executor, make_job, local):
    script = textwrap.dedent(SELF_SEEDED)
    with_fresh = local(launch="fresh")
    warm, again, other, plain = (
        execute(executor, make_job(script=script, level="fixed-seed", seed=seed, take_seeds=taking))
        for seed, taking in ((7, True), (7, True), (8, True), (7, False))
    )
    fresh = execute(with_fresh, make_job(script=script, level="fixed-seed", seed=7, take_seeds=True))
    assert [record.launch for record in (warm, again, other, plain, fresh)] == ["warm"] * 4 + ["fresh"]
    assert warm.log_tail == again.log_tail == fresh.log_tail
    assert len({record.log_tail for record in (warm, other, plain)}) == 3
    assert all(item.replaced for item in (*warm.seeded, *fresh.seeded))
    assert [(item.call, item.replaced) for item in warm.seeded] == [(item.call, item.replaced) for item in fresh.seeded]
    assert not any(item.replaced for item in plain.seeded)
    assert warm.environment["requested"]["take_seeds"] is True
    with_fresh.close()


def test_the_seed_of_a_default_run_is_what_taken_seeds_follow(executor, make_job, local):
    script = "import os, random; random.seed(0); print(random.random(), os.environ.get('ISORUN_SEED'))"
    made = local()
    first, again, other = (execute(made, make_job(script=script, seed=seed, take_seeds=True)) for seed in (7, 7, 8))
    assert first.log_tail == again.log_tail != other.log_tail
    assert first.log_tail.split()[1] == "None"
    assert (first.seed_used, other.seed_used) == (7, 8)
    made.close()
