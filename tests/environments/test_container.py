"""Containers: what an engine is told, what its answers mean, and what is refused. Nothing here is ever started."""

import json
import os
import sys
from pathlib import Path

import pytest

import isorun
from isorun.environments import Environments, Folders, opened_environment
from isorun.environments.container import IMAGE
from isorun.errors import ExecutionError, StudyError
from isorun.study import Environment
from isorun.study.design import Study, document_of, study_from_document
from isorun.study.records import RunState

ID = f"sha256:{'ab' * 32}"
KEPT = {
    "id": ID,
    "digest": f"docker.io/library/made@{ID}",
    "variables": {"PATH": "/usr/bin", "LANG": "C", "BAKED": "in", "HUB_TOKEN": "baked"},
    "version": "4.3.1",
    "rootless": False,
    "pins": True,
    "python": "/usr/bin/python3",
    "limits": [],
}


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """An environment whose image was looked at before, by an engine that is there and is never started."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    def opened(engine="podman", kept=KEPT, **declared):
        program = tmp_path / "bin" / engine
        program.touch(mode=0o755)
        settings = {"image": "made:1", **declared.pop("settings", {})}
        environment = opened_environment(Environment("e", kind="container", settings=settings, **declared))
        environment.folder = tmp_path / "made"
        environment.folder.mkdir(exist_ok=True)
        (environment.folder / IMAGE).write_text(json.dumps(kept))
        return environment

    return opened


def wrapped(environment, variables=None, command=("python", "t.py"), folders=None):
    prepared = environment.prepare(command, Path("/work"))
    folders = folders or Folders(Path("/work"), Path("/runs/r1"), Path("/lib/worker"), (0, 3))
    return prepared.wrap((prepared.program, *command[1:]), variables or {}, folders)


def test_the_engine_is_told_the_folders_the_names_of_variables_and_the_digest(opened):
    program, run, *words = wrapped(opened(), {"SEED": "1", "ISORUN_SEED": "5"})
    assert (Path(program).name, run) == ("podman", "run")
    assert words[words.index(ID) - 1 :] == ["--entrypoint=/usr/bin/python3", ID, "t.py"]
    for path, mode in (("/work", ""), ("/runs/r1", ""), ("/lib/worker", ",readonly"), ("/lib/frameworks", ",readonly")):
        assert f"--mount=type=bind,source={path},target={path}{mode}" in words
    assert {"--env=SEED", "--env=ISORUN_SEED", "--workdir=/work", "--cpuset-cpus=0,3", "--user=0:0"} <= {*words}
    assert {"--rm", "--pull=never", "--http-proxy=false", "--pid=host", "--log-driver=passthrough"} <= {*words}


def test_what_is_set_for_the_training_is_not_obeyed_by_the_engine_and_secrets_are_in_no_word(opened, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("ISORUN_SEED", "99")
    own = {"HOME": "/data", "PATH": "/opt/bin", "API_TOKEN": "hunter2", "LD_PRELOAD": "/x.so", "MINE": "1"}
    own |= dict.fromkeys(("CONTAINERS_AUTH_X", "REGISTRY_AUTH_FILE", "GODEBUGTOKEN", "XDG_DATA_SECRET"), "hunter2")
    environment = opened(env=own)
    words = wrapped(environment, own)
    assert {"--env=HOME=/data", "--env=PATH=/opt/bin", "--env=LD_PRELOAD=/x.so"} <= {*words}
    assert {"--env=API_TOKEN", "--env=MINE", "--env=REGISTRY_AUTH_FILE", "--authfile="} <= {*words}
    assert "hunter2" not in " ".join(words)
    prepared = environment.prepare(["python", "t.py"], Path("/work"))
    assert "OMP_NUM_THREADS" not in prepared.variables, "a level must set what the caller has set in vain"
    outside = prepared.outside({**prepared.variables, "ISORUN_SEED": "5"})
    assert outside["PATH"] == os.environ["PATH"]
    assert outside["API_TOKEN"] == "hunter2"
    assert outside["HUB_TOKEN"] == "baked", "so that it is masked in the output"
    assert outside["ISORUN_SEED"] == "5"
    assert outside.get("HOME") == os.environ.get("HOME")
    assert not {"LD_PRELOAD", "BAKED"} & {*outside}


def test_docker_is_told_in_its_own_words(opened):
    environment = opened("docker", {**KEPT, "version": "28.2"}, settings={"gpus": [0, 1]})
    words = wrapped(environment)
    assert Path(words[0]).name == "docker"
    assert not environment.prepare(["python"], Path("/work")).is_counted
    assert opened().prepare(["python"], Path("/work")).is_counted
    user = f"--user={os.getuid()}:{os.getgid()}"
    assert {'--gpus="device=0,1"', "--log-driver=none", user} <= {*words}
    assert ("--env=HOME=/tmp" in words) == (user != "--user=0:0")
    assert not [word for word in words if word.startswith("--http-proxy")]
    rootless = opened("docker", {**KEPT, "rootless": True, "pins": False}, settings={"engine": "docker"})
    assert "--user=0:0" in wrapped(rootless)
    assert not [word for word in wrapped(rootless) if word.startswith("--cpuset-cpus")]


def test_without_root_and_queues_of_messages_there_is_a_shared_memory_of_its_own(opened, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda _path: False)
    rootless = wrapped(opened(kept={**KEPT, "rootless": True}))
    assert [word for word in rootless if word.startswith("--shm-size=")]
    assert "--ipc=host" not in rootless
    assert "--ipc=host" in wrapped(opened())


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({}, []),
        ({"devices_per_run": 1}, ["--device=nvidia.com/gpu=all"]),
        ({"switches": {"device": "cuda:0"}}, ["--device=nvidia.com/gpu=all"]),
        ({"devices_per_run": 1, "settings": {"gpus": "none"}}, []),
        ({"settings": {"gpus": [1, 2]}}, ["--device=nvidia.com/gpu=1", "--device=nvidia.com/gpu=2"]),
    ],
)
def test_devices_are_passed_where_the_study_asks_for_some(declared, words, opened):
    assert [word for word in wrapped(opened(**declared)) if "gpu" in word] == words


def test_options_of_the_study_replace_those_of_isorun_and_the_engines_own_go_before_its_command(opened):
    options = ["--runtime=runc", "--network=none", "--shm-size=1g", "--pid=private", "--cpuset-cpus=1"]
    words = wrapped(opened(settings={"options": options}))
    assert words[1:3] == ("--runtime=runc", "run")
    assert [word for word in words if word.startswith(("--network", "--ipc", "--shm", "--pid", "--cpuset"))] == options[
        1:
    ]
    assert words.count("--runtime=runc") == 1
    docker = wrapped(opened("docker", settings={"engine": "docker", "options": ["--runtime=nvidia", "--host=ssh://n"]}))
    assert docker[1:3] == ("--host=ssh://n", "run")
    assert "--runtime=nvidia" in docker


def test_what_a_copy_of_the_folder_has_links_to_is_mounted_and_cannot_be_written_to(opened):
    folders = Folders(Path("/runs/r1/workspace"), Path("/runs/r1"), Path("/lib/worker"), (), Path("/work"))
    words = wrapped(opened(), folders=folders)
    assert "--mount=type=bind,source=/work,target=/work,readonly" in words
    assert "--mount=type=bind,source=/runs/r1/workspace,target=/runs/r1/workspace" in words
    assert "--workdir=/runs/r1/workspace" in words


def test_odd_folders_are_mounted_or_refused(opened):
    def mounts(path):
        folders = Folders(Path(path), Path("/runs/r"), Path("/lib/worker"))
        return [word for word in wrapped(opened(), folders=folders) if path in word and "dir" not in word]

    assert mounts("/a:b c") == ["--mount=type=bind,source=/a:b c,target=/a:b c"]
    assert mounts("/a,b") == ["--volume=/a,b:/a,b"]
    with pytest.raises(ExecutionError, match="engines take its name apart"):
        mounts("/a,b:c")


def test_mounts_are_looked_for_where_the_study_is(opened, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    environment = opened(settings={"mounts": ["data", "data:/inside:ro", "/"]})
    environment.study_folder = tmp_path
    monkeypatch.setattr("isorun.environments.container._Engine.image", lambda _self, _name: {"Id": "1"})
    mounts = {word for word in wrapped(environment) if word.startswith("--mount")}
    data = tmp_path / "data"
    assert f"--mount=type=bind,source={data},target={data}" in mounts
    assert f"--mount=type=bind,source={data},target=/inside,readonly" in mounts
    with pytest.raises(
        ExecutionError, match=r"the mount 'nope' of the environment 'e' does not exist[\s\S]*next: +make"
    ):
        opened(settings={"mounts": ["nope"]}).made_from()


def test_an_image_that_is_pulled_is_known_by_its_name_until_it_is_here(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
    here, pulls = {}, []
    monkeypatch.setattr("isorun.environments.container._Engine.image", lambda _self, name: here.get(name))
    opened()  # so that there is an engine
    declared = Environment("e", kind="container", settings={"image": "made:1"})

    def make(folder):
        assert not [*folder.iterdir()]
        (folder / "half").touch()
        pulls.append(folder.name)
        if len(pulls) < 3:
            raise ExecutionError("no registry")
        here["made:1"] = {"Id": "77"}

    def ready():
        return Environments().ready(declared, tmp_path, make, lambda _message: None, lambda: False)

    for _ in range(2):
        with pytest.raises(ExecutionError, match="no registry"):
            ready()
    cache = tmp_path / "cache" / "environments"
    assert [path.suffix for path in cache.iterdir()] == [".lock"], "every failure has the same one"
    made = ready()
    assert pulls[0] == pulls[1] == pulls[2] != pulls[3] == made.folder.name
    assert ready().folder == made.folder
    assert len(pulls) == 4
    here.clear()
    ready()
    assert pulls[4:] == [pulls[0]], "what was removed since is pulled again, and what it is was looked at before"


@pytest.mark.parametrize(
    ("command", "program", "interpreter"),
    [
        ("python", "/usr/bin/python3", "/usr/bin/python3"),
        ("python3", "/usr/bin/python3", "/usr/bin/python3"),
        ("function", "/usr/bin/python3", "/usr/bin/python3"),
        ("/opt/conda/bin/python3.9", "/opt/conda/bin/python3.9", "/opt/conda/bin/python3.9"),
        ("torchrun", "torchrun", ""),
    ],
)
def test_a_bare_python_is_the_one_of_the_image(command, program, interpreter, opened):
    prepared = opened().prepare([command, "t.py"], Path("/work"))
    assert (prepared.program, prepared.interpreter) == (program, interpreter)


def test_an_image_without_python_says_so_and_runs_what_is_none(opened):
    environment = opened(kept={**KEPT, "python": "", "why_no_python": "there is no python and no python3"})
    with pytest.raises(
        ExecutionError, match=r"'made:1' of the environment 'e' has no Python[\s\S]*next: +put a Python"
    ):
        environment.prepare(["python", "t.py"], Path("/work"))
    assert environment.prepare(["sh", "t.sh"], Path("/work")).interpreter == ""


@pytest.mark.parametrize(
    ("code", "output", "told"),
    [
        (1, "ValueError: x", (0, "")),
        (139, "", (11, "")),
        (137, "", (9, "")),
        (255, "", (0, "")),
        (127, "sh: 1: nope: not found", (0, "")),
        (
            125,
            "x\nError: statfs /a: no such\n",
            (0, "podman did not start the command (exit code 125): statfs /a: no such"),
        ),
        (
            126,
            "exec: x\nError: y (no logs from conmon): z",
            (0, "podman did not start the command (exit code 126): exec: x"),
        ),
        (
            127,
            "docker: Error response from daemon: no such program.\n\nRun 'docker run --help' for more",
            (0, "podman did not start the command (exit code 127): Error response from daemon: no such program."),
        ),
    ],
)
def test_exit_codes_of_engines_are_those_of_the_command_its_signal_or_their_own(code, output, told, opened):
    assert opened().prepare(["sh"], Path("/work")).end_inside(code, output) == told


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "image: that is no image"),
        ({"image": "a b"}, "image: that is no image"),
        ({"image": "--privileged"}, "image: that is no image"),
        ({"image": "python@sha256:abc"}, "image: that is no digest"),
        ({"image": f"sha256:{'g' * 64}"}, "image: that is no digest"),
        ({"image": "a", "engine": "lxc"}, "'lxc' is not known"),
        ({"image": "a", "mounts": ["a:b"]}, "that is no mount"),
        ({"image": "a", "mounts": ["/a:/b:rw:x"]}, "that is no mount"),
        ({"image": "a", "options": ["alpine"]}, "that is no option"),
        ({"image": "a", "options": ["--env=A=b"]}, r"--env is set by isorun itself[\s\S]*variables stand in env"),
        *(
            ({"image": "a", "options": [option]}, "set by isorun itself")
            for option in ("-v/:/x", "-eA_TOKEN=b", "-e=A=b", "--volume=/:/x", "--volumes-from=b", "--env-file=b")
        ),
        *(
            ({"image": "a", "options": [option]}, "cannot be set")
            for option in (
                "-d",
                "-dq",
                "-it",
                "-m8g",
                "--detach",
                "--name=b",
                "--rm=false",
                "--annotation=a=b",
                "--rootfs=/",
            )
        ),
        ({"image": "a", "options": ["--shm-size"]}, "--shm-size needs a value"),
        ({"image": "a", "options": ["--init=/x"]}, "--init takes none"),
        *(
            ({"image": image}, "that is no name but a way to a file")
            for image in ("dir:/etc", "docker-archive:/a.tar", "oci:a", "docker://a", "containers-storage:a")
        ),
        ({"image": "a", "gpus": "two"}, "names no devices"),
        ({"image": "a", "packages": ["numpy"]}, "packages"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_made(settings, why, tmp_path):
    environments = {"e": {"kind": "container", "settings": settings}}
    with pytest.raises(StudyError, match=why):
        isorun.run(Study("s", approaches={"a": "python t.py"}, environments=environments, folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_the_short_form_is_the_same_study():
    short = Study("s", approaches={"a": "true"}, environments={"e": {"image": "a:1", "gpus": True, "mounts": ["/d"]}})
    settings = {"image": "a:1", "gpus": "all", "mounts": ["/d"]}
    long = Study("s", approaches={"a": "true"}, environments={"e": {"kind": "container", "settings": settings}})
    assert short.environments == long.environments
    assert study_from_document(document_of(short), Path(), "s") == short
    with pytest.raises(StudyError, match="an image is said twice, or for another kind"):
        Study("s", approaches={"a": "true"}, environments={"e": {"image": "a:1", "packages": ["numpy"]}})


def test_images_are_a_factor_beside_others():
    factors = {
        "image": {"old": "a:1", "new": {"image": "a:2", "mounts": ["/d"]}},
        "threads": [1, 2],
        "onednn": ["on", "off"],
    }
    study = Study(
        "s", approaches={"a": "true"}, environments={"e": {"mounts": ["/c"]}}, factors={**factors, "design": "full"}
    )
    made = study.environments["image=new, onednn=off"]
    assert (made.kind, made.settings) == ("container", {"image": "a:2", "mounts": ["/d"]})
    assert made.switches == {"onednn": "off"}
    assert study.environments["baseline"].settings == {"image": "a:1", "mounts": ["/c"]}
    assert "image: old (a:1), new (a:2); baseline old" in "\n".join(study.factors.in_words())
    listed = Study("s", approaches={"a": "true"}, factors={"image": ["a:1", "a:2"]})
    assert [*listed.environments] == ["baseline", "image=a:2"]
    with pytest.raises(StudyError, match="takes no packages"):
        Study("s", approaches={"a": "true"}, factors={"image": ["a", "b"], "lib": {"x": ["n==1"], "y": ["n==2"]}})
    with pytest.raises(StudyError, match="that is no image"):
        Study("s", approaches={"a": "true"}, factors={"image": ["a", "b c"]})


def test_the_example_names_two_images():
    study = Study.load(Path(__file__).parents[2] / "examples" / "versions" / "images.toml")
    images = {name: one.settings["image"] for name, one in study.environments.items()}
    assert images["baseline"] == "localhost/trains:numpy1"
    assert images["image=numpy2, threads=2"] == "localhost/trains:numpy2"


def test_where_there_is_no_engine_the_runs_of_that_environment_fail_and_others_go_on(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "t.py").write_text("print('acc: 0.5')")
    places = {"plain": {}, "boxed": {"image": "python:3.11"}}
    outcome = isorun.run(Study("s", approaches={"a": "python t.py"}, environments=places, folder=tmp_path))
    states = {record.cell.environment: record.state for record in outcome.records}
    assert states == {"plain": RunState.FINISHED, "boxed": RunState.FAILED}
    (failed,) = [record for record in outcome.records if record.state is RunState.FAILED]
    assert "nothing that could run the container of the environment 'boxed': no podman and no docker" in failed.reason
    assert "next:    apt-get install podman runc" in failed.log_tail


def test_an_engine_that_cannot_be_reached_is_said_with_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "docker").write_text(
        "#!/bin/sh\n[ $1 = info ] && echo 'Cannot connect to the Docker daemon. Is it running?' >&2\nexit 1\n"
    )
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    environment = opened_environment(Environment("e", kind="container", settings={"image": "a:1", "engine": "docker"}))
    with pytest.raises(
        ExecutionError, match=r"docker does not work here[\s\S]*Cannot connect[\s\S]*next: +start its daemon"
    ):
        environment.make(tmp_path, lambda _message: None)
