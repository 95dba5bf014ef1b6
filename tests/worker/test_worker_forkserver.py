"""The warm fork server: children are what fresh processes would have been, and none outlives its master."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forkserver_client import ForkServer, ForkServerError, WarmRun
from test_frameworks_pytorch import CNN
from worker_trainings import OTHER_PYTHONS, Trained, run_environment

from isorun.worker import frameworks, programs
from isorun.worker.forkserver import Launch
from isorun.worker.programs import Program

CPUS = tuple(sorted(os.sched_getaffinity(0)))[:1]
Warm = Callable[..., Trained]


def launched(server: ForkServer, program: Program, folder: Path, cwd: Path, env: dict[str, str]) -> WarmRun:
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        return server.launch(Launch(program, str(cwd), env, CPUS), stdout.fileno(), stderr.fileno())


@pytest.fixture(scope="module")
def plain_server(tmp_path_factory) -> Iterator[ForkServer]:
    env = run_environment(tmp_path_factory.mktemp("none"), "default", None)
    server = ForkServer(sys.executable, env, cpus=CPUS, preload=("json", "no_such_module"))
    yield server
    server.close()


@pytest.fixture
def warm(plain_server, tmp_path, kept_hashes) -> Warm:
    count = iter(range(1000))

    def run(program: Program, level: str = "default", seed: int | None = None, request: dict | None = None) -> Trained:
        folder = tmp_path / f"warm-{next(count)}"
        folder.mkdir()
        (folder / "request.json").write_text(json.dumps(request or {"seed": seed}))
        env = {**run_environment(folder, level, seed), "ISORUN_CACHE": kept_hashes}
        ended = launched(plain_server, program, folder, tmp_path, env).wait(60)
        return Trained(ended.returncode, (folder / "stdout").read_text(), (folder / "stderr").read_text(), folder)

    return run


def test_a_module_that_cannot_be_preloaded_is_told_and_does_no_harm(plain_server):
    assert list(plain_server.failed) == ["no_such_module"]


ENDINGS = {
    "falls off the end": "print('x')",
    "exit code": "sys.exit(3)",
    "exit message": "sys.exit('a message')",
    "exit none": "sys.exit()",
    "uncaught error": "def f():\n    raise ValueError('broken')\nf()",
    "chained error": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('second') from e",
    "syntax error": "def broken(:\n",
    "exit handlers": "import atexit; atexit.register(print, 'handler'); print('unflushed', end='')",
    "interrupt": "import time; os.kill(os.getpid(), signal.SIGINT); time.sleep(5)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "abrupt": "os._exit(7)",
    "own hook": "sys.excepthook = lambda *a: print('mine', a[0].__name__)\nraise KeyError('k')",
    "thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_a_warm_child_ends_as_a_fresh_process_does(warm, train, tmp_path, ending):
    script = tmp_path / "train.py"
    script.write_text(f"import os, signal, sys\n{ending}\n")
    fresh = train("train.py", "--lr", "1")
    forked = warm(Program("script", "train.py", ("--lr", "1")))
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
    assert bool(forked.of_kind("end")) == bool(fresh.of_kind("end"))


TOLD = "class Told:\n    def __del__(self):\n        os.write(1, b'gone ')\n"
FAILS = "class Fails(str):\n    def __call__(self):\n        1 / 0\n"
LEFTOVERS = {
    "an object that is told": f"{TOLD}told = Told()",
    "a cycle that is told": f"{TOLD}told = Told(); told.itself = told",
    "told beneath an underscore": f"{TOLD}_told = Told(); other = Told()",
    "told, and kept by the standard library": f"{TOLD}import json; json.told = Told()",
    "told, and kept by sys": f"{TOLD}sys.told = Told()",
    "a generator": "def g():\n    try:\n        yield\n    finally:\n        os.write(1, b'closed')\nx = g(); next(x)",
    "its own output": "sys.stdout = open('out.txt', 'w'); print('whole')",
    "an open file": "file = open('out.txt', 'w'); file.write('whole')",
    "a file that the standard library keeps": "import json; json.f = open('out.txt', 'w'); json.f.write('x')",
    "a daemon": "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "an exit handler that fails": f"{FAILS}import atexit; atexit.register(Fails('it'))",
    "output that nobody takes": "print('x', end=''); os.close(1)",
    "a module of its own": "import mine",
    "a compiled library": "import numpy; print(numpy.zeros(1))",
}


@pytest.mark.parametrize("ending", LEFTOVERS.values(), ids=LEFTOVERS.keys())
def test_what_a_warm_child_leaves_goes_as_in_a_fresh_process(warm, train, tmp_path, ending):
    script, written = tmp_path / "train.py", tmp_path / "out.txt"
    (tmp_path / "mine.py").write_text("import os\nfile = open('out.txt', 'w')\nfile.write('of mine')\n")
    script.write_text(f"import os, signal, sys\n{ending}\n")
    fresh = train("train.py")
    expected = written.read_text() if written.exists() else ""
    written.unlink(missing_ok=True)
    forked = warm(Program("script", "train.py"))
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
    assert (written.read_text() if written.exists() else "") == expected
    assert bool(forked.of_kind("end")) == bool(fresh.of_kind("end"))


SEEN = """
import json, os, signal, sys
m = sys.modules["__main__"]
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": globals().get("__file__"), "cwd": os.getcwd(),
    "orig_argv": getattr(sys, "orig_argv", [])[1:], "package": __package__,
    "spec": str(getattr(__spec__, "name", None)),
    "own": m.__dict__ is globals(), "stdin": sys.stdin.read(), "doc": __doc__, "loader": type(__loader__).__name__,
    "int": str(signal.getsignal(signal.SIGINT)), "chld": str(signal.getsignal(signal.SIGCHLD)),
    "env": {k: v for k, v in os.environ.items() if k not in ("ISORUN_RUN_DIR",)}, "flags": str(sys.flags),
    "cached": globals().get("__cached__") if __name__ != "__main__" else 0, "line": sys.stdout.line_buffering,
}, sort_keys=True, default=str))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["train.py", "a", "--b"],
        ["folder/train.py"],
        ["-m", "pkg.train", "x"],
        ["-m", "pkg"],
        ["folder"],
        ["-c", SEEN, "y"],
        ["-u", "train.py"],
        ["missing.py"],
        ["-m", "missing.module"],
    ],
    ids=lambda arguments: " ".join(arguments)[:12],
)
def test_a_program_sees_in_a_warm_child_what_it_sees_in_a_fresh_process(warm, train, tmp_path, arguments):
    for name in (
        "train.py",
        "folder/train.py",
        "folder/__main__.py",
        "pkg/__init__.py",
        "pkg/train.py",
        "pkg/__main__.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SEEN if "__init__" not in name else "")
    fresh = train(*arguments, extra={"CUDA_VISIBLE_DEVICES": ""})
    program = programs.parse(arguments)
    folder_environment = warm(program)
    seen, expected = (json.loads(item.stdout or "{}") for item in (folder_environment, fresh))
    for item in (seen, expected):
        item.get("env", {}).pop("CUDA_VISIBLE_DEVICES", None)
        if "-u" in arguments:
            item.pop("flags"), item.pop("orig_argv")
    assert seen == expected
    assert folder_environment.returncode == fresh.returncode
    assert folder_environment.stderr == fresh.stderr


def test_functions_are_called_in_a_warm_child_too(warm, tmp_path):
    (tmp_path / "mine.py").write_text("def fit(seed, lr):\n    return {'acc': lr, 'seed': seed}\n")
    trained = warm(Program("function", f"{tmp_path}/mine.py:fit"), request={"seed": 5, "config": {"lr": 0.5}})
    assert trained.of_kind("result")[0]["values"] == {"acc": 0.5, "seed": 5}, trained.stderr


def test_default_children_have_streams_of_their_own_and_seeded_ones_the_fresh_stream(warm, train):
    code = "import random, numpy as np; print(random.random(), np.random.rand())"
    drawn = {warm(Program("code", code)).stdout for _ in range(3)}
    assert len(drawn) == 3
    codes = [event["code"] for event in warm(Program("code", "pass")).of_kind("note")]
    assert codes == ["shared-hash-seed"]
    fresh = train("-c", code, level="fixed-seed", seed=9).stdout
    assert warm(Program("code", code), "fixed-seed", 9).stdout == fresh
    assert fresh.split()[0] == repr(random.Random(9).random())


@pytest.fixture(scope="module")
def torch_server(tmp_path_factory) -> Iterator[ForkServer]:
    env = run_environment(tmp_path_factory.mktemp("none"), "deterministic", 1)
    server = ForkServer(sys.executable, env, cpus=CPUS, preload=frameworks.preload_with("torch"))
    assert server.failed == {}
    yield server
    server.close()


@pytest.mark.long
def test_generators_without_a_seed_and_settings_are_answered_warm_as_they_are_fresh(torch_server, train, tmp_path):
    (tmp_path / "train.py").write_text(
        "import random, torch, numpy as np\ntorch.backends.cudnn.benchmark = True\n"
        "print(np.random.default_rng().random(), np.random.RandomState().rand(), random.Random().random())\n"
        "print(torch.seed(), torch.Generator().seed(), torch.backends.cudnn.benchmark)\n"
    )
    fresh = train("train.py", level="deterministic", seed=8)
    folder = tmp_path / "warm"
    folder.mkdir()
    env = run_environment(folder, "deterministic", 8)
    ended = launched(torch_server, Program("script", str(tmp_path / "train.py")), folder, tmp_path, env).wait(60)
    warm = Trained(ended.returncode, (folder / "stdout").read_text(), (folder / "stderr").read_text(), folder)
    assert warm.stdout == fresh.stdout, warm.stderr + fresh.stderr
    assert warm.stdout.endswith(" False\n")
    codes = [[note["code"] for note in run.of_kind("note")] for run in (fresh, warm)]
    assert codes[0] == codes[1] == ["setting-answered", *["generator-seeded"] * 5, "no-digest"]


@pytest.mark.parametrize("level", ["fixed-seed", "deterministic"])
@pytest.mark.long
def test_a_cnn_trained_fresh_and_warm_has_the_same_bits_and_streams(torch_server, train, tmp_path, level):
    (tmp_path / "train.py").write_text(CNN)
    variables = run_environment(tmp_path, "deterministic", 1)
    fresh = train("train.py", "2", level=level, seed=8, extra=variables)
    forked = []
    for number in range(2):
        folder = tmp_path / f"warm-{number}"
        folder.mkdir()
        env = {**variables, "ISORUN_RUN_DIR": str(folder), "ISORUN_LEVEL": level, "ISORUN_SEED": "8"}
        run = launched(torch_server, Program("script", "train.py", ("2",)), folder, tmp_path, env)
        forked.append(Trained(run.wait(60).returncode, (folder / "stdout").read_text(), "", folder))
    assert fresh.returncode == 0, fresh.stderr
    for child in forked:
        assert child.stdout == fresh.stdout
        for name in ("weights.initial", "weights.final"):
            assert child.digest(name) == fresh.digest(name)
        effective = [item.of_kind("environment")[0]["effective"]["torch"] for item in (child, fresh)]
        assert effective[0] == effective[1]


@pytest.mark.alone
def test_several_children_run_at_once_and_are_accounted_for(plain_server, tmp_path):
    code = "import time; x = bytearray(60_000_000); time.sleep(0.5)"
    env = run_environment(tmp_path, "default", None)
    env.pop("ISORUN_RUN_DIR")
    began = time.monotonic()
    runs = [launched(plain_server, Program("code", code), tmp_path, tmp_path, env) for _ in range(6)]
    assert len({run.pid for run in runs}) == 6
    ended = [run.wait(30) for run in runs]
    assert time.monotonic() - began < 2.5
    assert [item.returncode for item in ended] == [0] * 6
    assert all(item.peak_memory_bytes > 60_000_000 for item in ended)
    assert all(0 < item.user_seconds + item.system_seconds < 5 for item in ended)


def test_a_signal_reaches_the_child_and_its_own_children(plain_server, tmp_path):
    code = "import subprocess, sys; c = subprocess.Popen(['sleep', '60'])\n"
    code += f"open('{tmp_path}/pid', 'w').write(str(c.pid)); c.wait()"
    env = run_environment(tmp_path, "default", None)
    env.pop("ISORUN_RUN_DIR")
    run = launched(plain_server, Program("code", code), tmp_path, tmp_path, env)
    assert run.wait(0.0) is None
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    run.signal(signal.SIGKILL)
    assert run.wait(10).returncode == -signal.SIGKILL
    grandchild = int((tmp_path / "pid").read_text())
    wait_for(lambda: not alive(grandchild))
    run.signal(signal.SIGKILL)


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.parametrize("how", ["close", "kill"])
def test_children_die_with_their_server(tmp_path, how):
    env = run_environment(tmp_path, "default", None)
    env.pop("ISORUN_RUN_DIR")
    server = ForkServer(sys.executable, env, cpus=CPUS)
    run = launched(server, Program("code", "import time; time.sleep(60)"), tmp_path, tmp_path, env)
    pid = run.pid
    if how == "kill":
        server._process.kill()
    else:
        server.close()
    with pytest.raises(ForkServerError):
        run.wait(10)
    wait_for(lambda: not alive(pid))
    with pytest.raises(ForkServerError):
        launched(server, Program("code", "pass"), tmp_path, tmp_path, env)
    if how == "kill":
        server.close()


def test_server_and_children_die_with_an_executor_that_is_killed(tmp_path):
    executor = tmp_path / "executor.py"
    executor.write_text(
        "import os, sys, time\n"
        "from forkserver_client import ForkServer\nfrom isorun.worker.forkserver import Launch\n"
        "from isorun.worker.programs import Program\n"
        "server = ForkServer(sys.executable, dict(os.environ))\n"
        "run = server.launch(Launch(Program('code', 'import time; time.sleep(60)'), '/', dict(os.environ), ()), 1, 2)\n"
        "print(server._process.pid, run.pid, flush=True)\ntime.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen([sys.executable, str(executor)], stdout=subprocess.PIPE, text=True, env=env)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert all(map(alive, pids))
    process.kill()
    process.wait()
    process.stdout.close()
    wait_for(lambda: not any(map(alive, pids)))


def test_an_interpreter_that_does_not_exist_or_cannot_serve_is_an_error(tmp_path):
    env = run_environment(tmp_path, "default", None)
    with pytest.raises(ForkServerError, match="did not start"):
        ForkServer(str(tmp_path / "no-python"), env)
    with pytest.raises(ForkServerError, match="did not start"):
        ForkServer("/bin/false", env)


def test_a_run_with_another_number_of_cpus_is_refused(plain_server, tmp_path):
    with pytest.raises(ValueError, match="CPUs"):
        plain_server.launch(Launch(Program("code", "pass"), "/", {}, (0, 1, 2)), 1, 2)


@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=lambda path: path.parent.parent.name)
def test_it_serves_in_interpreters_without_isorun(tmp_path, python):
    env = run_environment(tmp_path, "fixed-seed", 4)
    server = ForkServer(str(python), env, cpus=CPUS)
    try:
        code = "import isorun, random; isorun.result(drawn=random.random()); raise SystemExit(5)"
        assert launched(server, Program("code", code), tmp_path, tmp_path, env).wait(20).returncode == 5
    finally:
        server.close()
    result = next(event for event in Trained(0, "", "", tmp_path).events if event["kind"] == "result")
    assert result["values"] == {"drawn": random.Random(4).random()}


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        (["train.py", "-u"], Program("script", "train.py", ("-u",))),
        (["-u", "-m", "pkg", "1"], Program("module", "pkg", ("1",), unbuffered=True)),
        (["-c", "pass"], Program("code", "pass")),
        (["-W", "ignore", "train.py"], None),
        (["-"], None),
        (["-m"], None),
        ([], None),
    ],
)
def test_commands_that_only_a_fresh_interpreter_can_honour_are_not_warm(arguments, program):
    assert programs.parse(arguments) == program
    if program is not None:
        assert programs.fresh_command("python", program) == ["python", *arguments]
