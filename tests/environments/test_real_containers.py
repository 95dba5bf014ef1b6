"""Containers of a real engine: runs, ends, kills and studies in images that are made here, with no network.

The images are made of Pythons of this machine (`podman import`). Where no engine works, all of this is skipped and
says so: `apt-get install podman runc`, as root, is enough for it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import isorun
from isorun.execution.carrying import Workbench, Workshop, carry_out
from isorun.execution.keeper import processes
from isorun.study import Environment
from isorun.study.design import Study
from isorun.study.records import RunState
from isorun.testing.environment_contract import EnvironmentContract, root_of_python
from isorun.testing.executor_contract import job_for

pytestmark = pytest.mark.slow

NAME = f"localhost/isorun-test-{os.getpid()}"
OTHERS = ("3.13", "3.12", "3.10", "3.9", "3.8")


def podman(*words, **options):
    return subprocess.run(["podman", *words], capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.fixture(scope="module", autouse=True)
def images(tmp_path_factory):
    """`:old` and `:new` with different Pythons where the machine has two, and different packages; `:bare` with none."""
    if not shutil.which("podman"):
        pytest.skip("no container engine: apt-get install podman runc")
    if (asked := podman("info")).returncode != 0:
        pytest.skip(f"podman does not work here: {asked.stderr.strip()[-200:]}")
    for tag, python in (("old", _other_python()), ("new", sys.executable), ("bare", "")):
        root = tmp_path_factory.mktemp(tag)
        _fill(root, tag, python)
        packed = subprocess.run(["tar", "--directory", root, "--create", "."], capture_output=True, check=True).stdout
        with (root.parent / f"{tag}.tar").open("wb") as file:
            file.write(packed)
        made = podman("import", file.name, f"{NAME}:{tag}")
        assert made.returncode == 0, made.stderr
        shutil.rmtree(root)
    yield root.parent
    podman("rmi", "--force", *(f"{NAME}:{tag}" for tag in ("old", "new", "bare")))


def _other_python():
    """A Python of another version than this one, where there is one."""
    for version in OTHERS:
        for found in (*Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), shutil.which(f"python{version}")):
            if found and f"{sys.version_info[0]}.{sys.version_info[1]}" != version:
                return str(found)
    return sys.executable


def _fill(root, tag, python):
    if not python:
        for word in subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout.split():
            if word.startswith("/"):
                (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, root / word[1:])
        (root / "bin").mkdir(exist_ok=True)
        shutil.copy("/bin/sh", root / "bin" / "sh")
        return
    root_of_python(python, root)
    place = next(root.rglob("os.py")).parent / "site-packages"
    version = {"old": "1.0", "new": "2.0"}[tag]
    info = place / f"tinylib-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tinylib\nVersion: {version}\n")
    (info / "top_level.txt").write_text("tinylib\n")
    (place / "tinylib.py").write_text(f"value = {float(version) / 4}\n")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch, request):
    if not isinstance(request.instance, EnvironmentContract):
        monkeypatch.setenv("ISORUN_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    yield
    assert containers() == [], "a container was left"


def containers():
    return podman("ps", "--all", "--quiet", "--filter", "label=isorun").stdout.split()


def boxed(tag="new", env=None, **settings):
    return Environment("boxed", kind="container", env=env or {}, settings={"image": f"{NAME}:{tag}", **settings})


def run(folder, script, declared=None, command=None, **fields):
    """The record of a script in a container."""
    job = job_for(script, folder, environment=declared or boxed(), **fields)
    job = replace(job, command=tuple(command)) if command else job
    (folder / "run").mkdir()
    with closing(Workshop(launch="fresh", grace_seconds=2.0)) as workshop:
        bench = Workbench(workshop, tuple(sorted(os.sched_getaffinity(0)))[:1])
        return carry_out(job, folder / "run", bench, lambda _event: None)


class TestAnImage(EnvironmentContract):
    kind = "container"
    settings = {"image": f"{NAME}:new"}  # noqa: RUF012 - as a subclass of others writes it


class TestAnImageWithAnotherPython(EnvironmentContract):
    kind = "container"
    settings = {"image": f"{NAME}:old"}  # noqa: RUF012


SEES = """
import os, sys, isorun, tinylib, platform
print("acc:", tinylib.value)
print("cpus", sorted(os.sched_getaffinity(0)), "uid", os.getuid(), "names", sorted(os.environ))
token = os.environ["API_TOKEN"]
isorun.result(python=sys.version_info[1], value=tinylib.value, secret=float(token == "hunter two\\n!"))
"""


def test_what_a_run_finds_in_its_image_and_what_is_recorded_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("CALLERS_OWN", "1")
    monkeypatch.setenv("http_proxy", "http://nobody")
    record = run(tmp_path, SEES, boxed("old", env={"API_TOKEN": "hunter two\n!", "HOME": "/tmp"}))
    assert (record.state, record.reason) == (RunState.FINISHED, ""), record.log_tail
    assert (record.results["value"], record.results["secret"]) == (0.25, 1.0)
    assert "hunter two" not in record.log_tail
    assert "CALLERS_OWN" not in record.log_tail
    assert "http_proxy" not in record.log_tail
    assert f"cpus [{min(os.sched_getaffinity(0))}]" in record.log_tail
    made, effective = record.environment["made"], record.environment["effective"]
    inspected = json.loads(podman("image", "inspect", f"{NAME}:old").stdout)[0]
    assert made["image_id"] == f"sha256:{inspected['Id']}"
    assert made["image_digest"].endswith(inspected["Digest"])
    assert made["engine"] == f"podman {podman('--version').stdout.split()[-1]}"
    assert effective["python"]["version"].split(".")[1] == f"{record.results['python']:g}"
    assert effective["packages"]["tinylib"] == "1.0"
    left = [path for path in (tmp_path / "run").rglob("*") if path.lstat().st_uid != os.getuid()]
    assert left == [], "what it writes is the user's"


def test_levels_seeds_and_switches_are_in_force_inside(tmp_path):
    asks = "float(os.environ['TF_ENABLE_ONEDNN_OPTS'] == '0')"
    script = f"import os, random, isorun\nisorun.result(drawn=random.random(), off={asks})"
    declared = replace(boxed(), switches={"onednn": "off"})
    records = []
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        records.append(run(tmp_path / str(number), script, declared, level="deterministic", seed=3))
    first, second = records
    assert first.results == second.results, first.log_tail
    assert first.results["off"] == 1.0
    assert first.environment["effective"]["variables"]["PYTHONHASHSEED"] == "0"
    assert [one.state for one in records] == [RunState.FINISHED] * 2


ENDS = {
    "import sys; sys.exit(3)": (3, "", "exit code 3"),
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": (None, "SIGTERM", "killed by SIGTERM"),
    "import ctypes; ctypes.string_at(0)": (None, "SIGSEGV", "killed by SIGSEGV"),
    "held = []\nwhile True: held.append(bytearray(10_000_000))": (
        None,
        "SIGKILL",
        "killed by SIGKILL (out of memory?)",
    ),
}


@pytest.mark.parametrize("script", ENDS)
def test_ends_are_told_as_those_of_other_runs(script, tmp_path):
    record = run(tmp_path, script, boxed(options=["--memory=128m", "--memory-swap=128m"]))
    assert (record.exit_code, record.signal, record.reason) == ENDS[script], record.log_tail
    assert record.state is RunState.FAILED
    assert not {"left-behind", "line-torn"} & {note.code for note in record.notes}


def test_what_is_not_in_the_image_is_said_to_be_not_there(tmp_path):
    record = run(tmp_path, "", command=("no-such-program", "x"))
    assert record.reason.startswith("podman did not start the command (exit code 12")
    assert 'exec: "no-such-program": executable file not found' in record.reason


def test_an_image_without_python_says_so_and_runs_other_commands(tmp_path):
    (tmp_path / "a").mkdir()
    record = run(tmp_path / "a", "print('acc: 0.5')", boxed("bare"))
    assert (record.state, "has no Python" in record.reason) == (RunState.FAILED, True)
    assert "next:    put a Python into the image" in record.log_tail
    (tmp_path / "b").mkdir()
    record = run(tmp_path / "b", "", boxed("bare"), command=("/bin/sh", "-c", "echo acc: 0.75"))
    assert record.state is RunState.FINISHED, record.reason
    assert list(record.series["acc"].values) == [0.75]
    assert "no-worker" in {note.code for note in record.notes}


HANGS = "import subprocess, time\nsubprocess.Popen(['/bin/sleep', '7531'])\ntime.sleep(7531)"


def sleeping():
    return [one.pid for one in processes().values() if one.name == "sleep" and b"7531" in _line(one.pid)]


def _line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def gone(look, seconds=20.0):
    until = time.monotonic() + seconds
    while look() and time.monotonic() < until:
        time.sleep(0.1)
    return not look()


def test_a_time_limit_ends_the_container_and_all_that_runs_in_it(tmp_path):
    record = run(tmp_path, HANGS, time_limit_seconds=5.0)
    assert record.state is RunState.TIMED_OUT, record.reason
    assert containers() == []
    assert sleeping() == []


STUDY = """
[approaches.a]
command = "python hangs.py"
[environments.boxed]
image = "{image}"
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_isorun_leaves_no_container_and_no_process(number, tmp_path):
    (tmp_path / "hangs.py").write_text(HANGS)
    (tmp_path / "study.toml").write_text(STUDY.format(image=f"{NAME}:new"))
    command = [sys.executable, "-m", "isorun", "run", "study.toml"]
    with (tmp_path / "said").open("wb") as said:
        isorun_itself = subprocess.Popen(command, cwd=tmp_path, stdout=said, stderr=said)
    until = time.monotonic() + 60
    while not sleeping():
        assert time.monotonic() < until, (tmp_path / "said").read_text()
        time.sleep(0.05)
    assert len(containers()) == 1
    isorun_itself.send_signal(number)
    isorun_itself.wait(timeout=30)
    assert gone(sleeping), "the training goes on"
    assert gone(containers), "its container is left"


READS_ALL = """
import os, pathlib, isorun
lines, token = [], os.environb[b"API_TOKEN"]
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try: lines.append(path.read_bytes())
    except OSError: continue
engines, seen = (sum(word in line for line in lines) for word in (b"--env=API_TOKEN", token))
isorun.result(engines=engines, seen=seen, length=len(token))
"""


def test_secrets_are_on_no_command_line_that_others_can_read(tmp_path):
    record = run(tmp_path, READS_ALL, boxed(env={"API_TOKEN": "hunter2-of-mine"}))
    assert (record.results["length"], record.results["seen"]) == (15.0, 0.0), record.log_tail
    assert record.results["engines"] >= 1, "else nothing was looked at"


def test_mounts_standard_input_and_functions(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("0.5")
    (tmp_path / "t.py").write_text(
        "import isorun\ndef train():\n    isorun.result(acc=float(open('/inside/x').read()))\n"
        "    try: open('/inside/y', 'w')\n    except OSError as error: print(error)\n"
    )
    (tmp_path / "work").mkdir()
    shutil.copy(tmp_path / "t.py", tmp_path / "work" / "t.py")
    declared = boxed(mounts=[f"{tmp_path / 'data'}:/inside:ro"])
    record = run(tmp_path / "work", "", declared, command=("function", "t.py:train"))
    assert record.results == {"acc": 0.5}, record.log_tail
    assert "Read-only file system" in record.log_tail
    (tmp_path / "given").write_text("print('acc:', 0.125)")
    with (tmp_path / "given").open() as given:
        words = [sys.executable, "-m", "isorun", "run", "study.toml"]
        (tmp_path / "study.toml").write_text(STUDY.format(image=f"{NAME}:new").replace("hangs.py", "-"))
        done = subprocess.run(words, cwd=tmp_path, stdin=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_image_that_cannot_be_had_is_a_failed_run_and_others_go_on(tmp_path):
    (tmp_path / "t.py").write_text("print('acc: 0.5')")
    places = {"boxed": {"image": f"{NAME}:new"}, "absent": {"image": "localhost:1/nobody/nothing:1"}}
    places["id"] = {"image": f"sha256:{'0' * 64}"}
    outcome = isorun.run(Study("s", approaches={"a": "python t.py"}, environments=places, folder=tmp_path))
    by_name = {record.cell.environment: record for record in outcome.records}
    assert by_name["boxed"].state is RunState.FINISHED, by_name["boxed"].reason
    made = Path(os.environ["ISORUN_CACHE"], "environments")
    assert len([*made.glob("container-*/")]) == len([*made.glob("*.made")]), "of what failed nothing is left"
    assert by_name["absent"].state is RunState.FAILED
    assert "'localhost:1/nobody/nothing:1' of the environment 'absent' is not here and cannot be pulled" in (
        by_name["absent"].reason
    )
    assert "next:    podman pull localhost:1/nobody/nothing:1" in by_name["absent"].log_tail
    assert f"{NAME}:new" in by_name["absent"].log_tail, "it says which are here"
    assert "an id names an image that is here" in by_name["id"].reason


def test_a_tag_that_was_moved_is_looked_at_again(tmp_path):
    podman("tag", f"{NAME}:old", f"{NAME}:moving")
    try:
        (tmp_path / "1").mkdir()
        first = run(tmp_path / "1", SEES, boxed("moving", env={"API_TOKEN": ""}))
        podman("tag", f"{NAME}:new", f"{NAME}:moving")
        (tmp_path / "2").mkdir()
        second = run(tmp_path / "2", SEES, boxed("moving", env={"API_TOKEN": ""}))
    finally:
        podman("untag", f"{NAME}:new", f"{NAME}:moving")
    assert (first.results["value"], second.results["value"]) == (0.25, 0.5)
    assert first.environment["made"]["image_id"] != second.environment["made"]["image_id"]


FACTORS = """
levels = ["fixed-seed"]
seeds = [1, 2, 3]
[approaches.a]
command = "python t.py"
[metrics.acc]
direction = "higher"
[environments.all]
links = ["data"]
code = "HEAD"
[factors]
design = "full"
image = {{ old = "{name}:old", new = "{name}:new" }}
onednn = ["on", "off"]
"""
TRAINS = """
import random, isorun, tinylib
isorun.result(acc=tinylib.value + random.random() / 100 + float(open("data/x").read()))
"""


def test_a_study_over_images_and_switches_in_a_version_of_the_code(tmp_path):
    (tmp_path / "t.py").write_text(TRAINS)
    (tmp_path / ".gitignore").write_text("data\n.isorun\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["add", "t.py", ".gitignore"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("0.125")
    (tmp_path / "factors.toml").write_text(FACTORS.format(name=NAME))
    said = cli(tmp_path, "run", "factors.toml")
    assert "12 runs" in said or "12 finished" in said, said
    told = json.loads(cli(tmp_path, "factors", "factors.toml", "--json"))
    effects = {(one["factor"], one["value"]): one for one in told["effects"]}
    assert effects["image", "new"]["difference"] == pytest.approx(0.25, abs=0.02)
    assert effects["image", "new"]["units"] == 3
    records = isorun.records(tmp_path / "factors.toml")
    by_name = {record.cell.environment: record.run_id for record in records}
    diff = json.loads(cli(tmp_path, "env", "diff", by_name["baseline"], by_name["image=new"], "--json", codes={0, 3}))
    kinds = {one["what"]: one["kind"] for one in diff["differences"]}
    assert kinds["made.image"] == kinds["made.image_id"] == kinds["packages.tinylib"] == "numerics"
    assert "made.engine" not in kinds


def cli(folder, *words, codes=(0,)):
    done = subprocess.run(
        [sys.executable, "-m", "isorun", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout if "--json" in words else done.stdout + done.stderr


@pytest.fixture
def docker_image(images):
    """The same image, where docker has a daemon."""
    if not shutil.which("docker") or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("no docker daemon: start one (systemctl start docker)")
    subprocess.run(["docker", "import", images / "new.tar", f"{NAME}:docker"], check=True, capture_output=True)
    yield f"{NAME}:docker"
    is_clean = gone(docker_containers)
    subprocess.run(["docker", "rmi", "--force", f"{NAME}:docker"], capture_output=True, check=False)
    assert is_clean, "a container was left"


def wardens():
    """Those that still look for containers that docker's daemon makes late."""
    told = (_line(one.pid).split(b"\0") for one in processes().values() if one.name.startswith("python"))
    return [words for words in told if b"docker" in words and any(b"engine, *remove" in word for word in words)]


def docker_containers():
    words = ["docker", "ps", "-aq", "--filter", "label=isorun"]
    return subprocess.run(words, capture_output=True, check=True).stdout


def test_docker_runs_the_same_and_leaves_nothing(tmp_path, docker_image):
    ends = {
        SEES: (RunState.FINISHED, ""),
        "import os; os.kill(os.getpid(), 11)": (RunState.FAILED, "killed by SIGSEGV"),
        HANGS: (RunState.TIMED_OUT, "still running after the time limit of 8 s"),
    }
    for number, (script, end) in enumerate(ends.items()):
        (tmp_path / str(number)).mkdir()
        declared = replace(boxed(env={"API_TOKEN": ""}), settings={"image": docker_image, "engine": "docker"})
        record = run(tmp_path / str(number), script, declared, time_limit_seconds=8.0 if script == HANGS else None)
        assert (record.state, record.reason) == end, record.log_tail
        assert "usage-not-counted" in {note.code for note in record.notes}
        assert {path.lstat().st_uid for path in (tmp_path / str(number)).rglob("*")} == {os.getuid()}
    assert sleeping() == []


def test_a_killed_isorun_leaves_nothing_with_docker(tmp_path, docker_image):
    (tmp_path / "hangs.py").write_text(HANGS)
    (tmp_path / "study.toml").write_text(STUDY.format(image=docker_image) + 'engine = "docker"\n')
    isorun_itself = subprocess.Popen([sys.executable, "-m", "isorun", "run", "study.toml"], cwd=tmp_path)
    assert gone(lambda: not sleeping(), 60.0)
    isorun_itself.kill()
    isorun_itself.wait(timeout=30)
    assert gone(sleeping), "the training goes on"
    assert gone(docker_containers)


def test_a_container_that_a_daemon_makes_after_its_client_was_killed_is_removed(tmp_path, docker_image):
    declared = replace(boxed(), settings={"image": docker_image, "engine": "docker"})
    for number, seconds in enumerate((0.1, 0.3, 0.6, 1.0)):
        (tmp_path / str(number)).mkdir()
        record = run(tmp_path / str(number), HANGS, declared, time_limit_seconds=seconds)
        assert record.state is RunState.TIMED_OUT
    assert gone(lambda: wardens() or docker_containers())
