"""A container: an image, run by podman or docker, with the run's own folders in it under the names they have here.

An image is resolved to the id of its content when it is made, and runs use that id: a tag that moves later moves no
run. Of the caller's variables none gets in, only those of the run, and these by name: a command line is for
everybody to read. A training sees the machine as any other run does (its processes, network, shared memory), so that
signals, exit codes and workers of data loaders are what they are elsewhere: a container is an environment here, and no
wall. What is in it ends with the run; where isorun itself is killed, a warden that waits for that removes it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.environments import AbstractEnvironment, Folders, Prepared, callers_variables, keep
from isorun.environments.interpreter import ASK, OLDEST, REPLACED, FoundPython, is_python
from isorun.errors import ExecutionError
from isorun.study import FUNCTION, Environment
from isorun.study.parts import ENGINES, image_settings
from isorun.worker.redaction import holds_secret, names_secret

__all__ = ["IMAGE", "ContainerEnvironment"]

IMAGE: Final = "image.json"
_SHOWN: Final = 600
_IMAGES_SHOWN: Final = 6
_NOT_BEGUN, _NOT_EXECUTABLE, _NOT_FOUND = 125, 126, 127
_SIGNALS: Final = range(129, 160)
_REMOVED_SECONDS: Final = 60.0
_PASSED_THROUGH: Final = (4, 0)
"""From this podman on a container gets the run's own files as its input and output, and nothing copies them."""

_OF_THE_ENGINE: Final = re.compile(
    r"PATH|HOME|USER|TMPDIR|LD_(LIBRARY_PATH|PRELOAD|AUDIT|BIND_NOW|DEBUG|DEBUG_OUTPUT)|"
    r"XDG_(RUNTIME_DIR|(CONFIG|DATA|CACHE|STATE)_(HOME|DIRS))|"
    r"GO(DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK|COVERDIR)|STORAGE_(DRIVER|OPTS)|"
    r"CONTAINERS_((STORAGE_|REGISTRIES_)?CONF(_OVERRIDE)?|HELPER_BINARY_DIR)|_CONTAINERS_(ROOTLESS_[UG]ID|USERNS_CONFIGURED)|"
    r"CONTAINER_(HOST|CONNECTION|SSHKEY)|DOCKER_(HOST|CONFIG|CONTEXT|CERT_PATH|TLS|TLS_VERIFY|API_VERSION)|"
    r"BUILDAH_(ISOLATION|RUNTIME|FORMAT|LAYERS)|NOTIFY_SOCKET|LISTEN_(FDS|PID|FDNAMES)"
)
"""Variables that engines obey themselves: a study that sets one sets it for its training, not for the engine. Each is
named in full: all others are passed by name, as is what may be a secret."""

_LOGINS: Final = "REGISTRY_AUTH_FILE"
_GLOBAL_OPTIONS: Final = {
    "podman": re.compile(
        r"--(root|runroot|runtime|runtime-flag|cgroup-manager|storage-driver|storage-opt|conmon|connection|url|identity|"
        r"log-level|tmpdir|network-config-dir|hooks-dir|events-backend|module|imagestore|transient-store|remote)(=.*)?"
    ),
    "docker": re.compile(r"--(host|context|config|tls.*|log-level|debug)(=.*)?|-H=.*"),
}
"""Options that stand before the engine's command, and so with every command."""

_WARDEN: Final = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
said = sys.stdin.buffer.read()
if said != b"ended":
    import os, subprocess, time
    engine, *remove = sys.argv[1:]
    for pause in (0, 1, 3, 10) if engine == "docker" or not said else (0,):
        if pause == 1 and os.fork():
            os._exit(0)
        time.sleep(pause)
        subprocess.call(remove, stdin=-3, stdout=-3, stderr=-3)
"""
"""Removes a container when it is told to, or when isorun has gone. A daemon may still be making one whose client was
killed: so it is removed again later, by a process that nobody waits for. It has a session of its own: whatever kills
isorun leaves it there. One starts beside every run, so it loads no more than it needs."""


@dataclass(frozen=True, slots=True)
class _Engine:
    """podman or docker: its name, its program, and options that go with every command."""

    name: str
    program: str
    options: tuple[str, ...]

    def command(self, *words: str) -> tuple[str, ...]:
        return (self.program, *self.options, *words)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=callers_variables(),
        )

    def image(self, name: str) -> Mapping[str, Any] | None:
        """What the engine knows of an image that is here."""
        done = self.ask("image", "inspect", name.removeprefix("sha256:"))
        found = json.loads(done.stdout or "[]") if done.returncode == 0 else []
        return found[0] if found else None

    def facts(self) -> dict[str, Any]:
        """Its version, whether it runs as this user alone, whether it can pin; ExecutionError when it does not work."""
        done = self.ask("info", "--format", "{{json .}}")
        if done.returncode != 0:
            raise ExecutionError(f"{self.name} does not work here", found=_last(done), hint=_REMEDY[self.name])
        info = json.loads(done.stdout)
        if self.name == "docker":
            rootless = any("rootless" in item for item in info.get("SecurityOptions") or ())
            return {"version": info.get("ServerVersion", ""), "rootless": rootless, "pins": not rootless}
        host = info["host"]
        rootless = bool(host["security"]["rootless"])
        pins = "cpuset" in (host.get("cgroupControllers") or ())
        return {"version": info["version"]["Version"], "rootless": rootless, "pins": pins}

    @contextmanager
    def guard(self, name: str) -> Iterator[Callable[[], None]]:
        """While it is open, a container of that name may be there; afterwards, and without isorun, none is."""
        now = ("--ignore", "--time=0") if self.name == "podman" else ()
        warden = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WARDEN, self.name, *self.command("rm", "--force", *now, name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=callers_variables(),
            start_new_session=True,
        )
        words = [b"remove"]
        try:
            yield lambda: words.append(b"ended")
        finally:
            # It may have been killed, and an engine may hang: the run has ended all the same.
            with suppress(BrokenPipeError, subprocess.TimeoutExpired):
                warden.communicate(words[-1], timeout=_REMOVED_SECONDS)


_REMEDY: Final = {
    "podman": 'podman info; with docker: engine = "docker"',
    "docker": "start its daemon (systemctl start docker; docker info), or install podman, which needs none",
}


class ContainerEnvironment(AbstractEnvironment):
    """An image by its name or digest. Opening looks at settings alone; the engine is looked for where runs happen."""

    def __init__(self, declared: Environment) -> None:
        self._declared = declared
        self._settings = image_settings(declared.settings, f"environments.{declared.name}.settings")

    def made_from(self) -> Any:
        """The image as it is here now: a tag that was moved to another one is made again. Mounts are looked at."""
        self._mounts()
        engine, image = self._engine, self._settings["image"]
        found = engine.image(image)
        # One that has to be pulled is known by its name; when it is here, it is another one to be made, by its id.
        content = _id_of(found) if found else ""
        return [engine.name, engine.options, image, content, self._declared.python, self._settings.get("options", [])]

    def make(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Have the image here, and keep what it is: its id, digest, variables and Python, and who runs it."""
        engine = self._engine
        facts = engine.facts()
        image = self._found_or_pulled(engine, tell)
        tell(f"looking into the image {self._settings['image']} with {engine.name} {facts['version']}")
        config = image.get("Config") or {}
        kept = {
            "id": _id_of(image),
            "digest": next(iter(image.get("RepoDigests") or ()), image.get("Digest", "")),
            "variables": dict(_without_secrets(config.get("Env") or ())),
            **facts,
        }
        kept |= self._python_inside(engine, kept)
        keep(folder / IMAGE, kept)

    def prepare(self, command: Sequence[str], working_folder: Path) -> Prepared:  # noqa: ARG002 - nothing is looked for outside
        """The program inside: a Python without a path is the image's own, all else is looked for there."""
        kept = self._kept
        interpreter = self._interpreter(command[0])
        return _InContainer(
            interpreter or command[0],
            interpreter,
            {**kept["variables"], **self._declared.env},
            {
                "python": interpreter,
                "image": self._settings["image"],
                "image_id": kept["id"],
                **({"image_digest": kept["digest"]} if kept["digest"] else {}),
                "engine": f"{self._engine.name} {kept['version']}",
            },
            engine=self._engine,
            options=(*self._options(kept), *kept["limits"], *self._gpus()),
            mounts=self._mounts(),
            links=tuple(self._declared.code.get("links", ())),
            pins=kept["pins"] and not self._says("--cpuset-cpus"),
            own=frozenset(self._declared.env),
        )

    @functools.cached_property
    def _kept(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads((self.folder / IMAGE).read_text(encoding="utf-8"))
        return kept

    @functools.cached_property
    def _engine(self) -> _Engine:
        path = os.environ.get("PATH", os.defpath)
        asked = self._settings.get("engine")
        for name in (asked,) if asked else ENGINES:
            if program := shutil.which(name, path=path):
                apart = _GLOBAL_OPTIONS[name].fullmatch
                options = tuple(item for item in self._settings.get("options", ()) if apart(item))
                return _Engine(name, os.path.abspath(program), options)  # noqa: PTH100 - a link may say what it is
        raise ExecutionError(
            f"there is nothing that could run the container of the environment {self._declared.name!r}",
            found=f"no {asked or ' and no '.join(ENGINES)} in PATH",
            hint="apt-get install podman runc (or dnf install podman), then run again",
        )

    def _mounts(self) -> tuple[tuple[str, str, bool], ...]:
        """What the study mounts: from where, to where, and whether it is only read. Relative to the study's folder."""
        found = []
        for mount in self._settings.get("mounts", ()):
            named, target, mode = (*mount.split(":"), "", "")[:3]
            source = (self.study_folder / os.path.expanduser(named)).absolute()  # noqa: PTH111
            if not source.exists():
                raise ExecutionError(
                    f"the mount {named!r} of the environment {self._declared.name!r} does not exist",
                    found=f"nothing at {source}",
                    hint=f"make {source}, or take it out of mounts",
                )
            found.append((str(source), target or str(source), mode == "ro"))
        return tuple(found)

    def _found_or_pulled(self, engine: _Engine, tell: Callable[[str], None]) -> Mapping[str, Any]:
        name = self._settings["image"]
        if found := engine.image(name):
            return found
        said = "an id names an image that is here, and none has it"
        if not name.startswith("sha256:"):
            tell(f"pulling the image {name} with {engine.name}")
            pulled = engine.ask("pull", "--quiet", name)
            if pulled.returncode == 0 and (found := engine.image(name)):
                return found
            said = _last(pulled)
        here = engine.ask("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
        named = [image for image in here if "<none>" not in image]
        shown = f"{', '.join(named[:_IMAGES_SHOWN])}{', …' if len(named) > _IMAGES_SHOWN else ''}" or "none"
        raise ExecutionError(
            f"the image {name!r} of the environment {self._declared.name!r} is not here and cannot be pulled",
            found=said,
            allowed=f"an image that can be pulled, or one that is here: {shown}",
            hint=f"{engine.name} pull {name}, or {engine.name} load --input FILE, then run again",
        )

    def _python_inside(self, engine: _Engine, kept: Mapping[str, Any]) -> dict[str, Any]:
        """The Python of the image, empty where there is none that serves; and limits without which nothing begins."""
        limits: list[str] = []
        names = [self._declared.python] if self._declared.python else list(REPLACED)
        said = f"there is no {' and no '.join(names)}"
        for name in names:
            done = self._asked_inside(engine, kept, limits, name)
            if "rlimit" in done.stderr and not limits and not self._says("--ulimit"):
                limits = _own_limits()  # the engine asks for more than it may have here
                done = self._asked_inside(engine, kept, limits, name)
            if done.returncode == _NOT_BEGUN:
                raise ExecutionError(
                    f"{engine.name} cannot start a container of the image {self._settings['image']!r}",
                    found=_last(done),
                    hint=f"{engine.name} run --rm {self._settings['image']} true; what it needs stands in options",
                )
            found = FoundPython.of(done.stdout)
            if found is not None and found.version >= OLDEST:
                return {"python": found.path or name, "limits": limits}
            if found is not None:
                said = f"{name} is {found.name}"
            elif done.returncode != _NOT_FOUND:
                said = f"{name}: {_last(done)}"
        return {"python": "", "why_no_python": said, "limits": limits}

    def _asked_inside(
        self, engine: _Engine, kept: Mapping[str, Any], limits: Sequence[str], python: str
    ) -> subprocess.CompletedProcess[str]:
        name = f"isorun-look-{os.getpid()}-{time.time_ns()}"
        words = [*self._options(kept, looks=True), *limits, f"--name={name}", f"--entrypoint={python}", kept["id"]]
        with engine.guard(name) as ended:
            done = engine.ask("run", *words, "-I", "-S", "-c", ASK)
            ended()
        return done

    def _interpreter(self, program: str) -> str:
        """The Python that a command starts with; empty when it starts with something else."""
        if program not in {*REPLACED, FUNCTION}:
            return program if is_python(program) else ""
        if self._kept["python"]:
            return str(self._kept["python"])
        raise ExecutionError(
            f"the image {self._settings['image']!r} of the environment {self._declared.name!r} has no Python for this",
            found=self._kept["why_no_python"],
            allowed=f"Python {OLDEST[0]}.{OLDEST[1]} or newer, called python or python3 there, or python = PATH",
            hint="put a Python into the image; a command that starts with something else runs in it as it is",
        )

    def _says(self, *names: str) -> bool:
        return any(option.partition("=")[0] in names for option in self._settings.get("options", ()))

    def _options(self, kept: Mapping[str, Any], *, looks: bool = False) -> Iterator[str]:
        """How a container is started, what the study says about it last. looks: nothing but a look into the image."""
        podman = self._engine.name == "podman"
        through = podman and not looks and _version(kept["version"]) >= _PASSED_THROUGH
        yield from ("--rm", "--pull=never", "--label=isorun", "--security-opt=label=disable")
        yield "--interactive"
        if not looks:
            yield f"--log-driver={'passthrough' if through else 'none'}"
        if podman:
            yield "--http-proxy=false"  # else variables of the caller get in
        for names, word in (
            (("--network", "--net"), "--network=host"),
            (("--pid",), "--pid=host"),  # the first process of a space of its own is deaf to most signals
            (("--ipc", "--shm-size"), _shared_memory(kept)),  # loaders hand batches over in it
            (("--user", "-u"), f"--user={_user(kept, podman=podman)}"),
        ):
            if not self._says(*names):
                yield word
        yield from (item for item in self._settings.get("options", ()) if item not in self._engine.options)

    def _gpus(self) -> list[str]:
        """All devices where the study asks for some: which of them a run sees is said by its variables."""
        gpus = self._settings.get("gpus")
        if gpus is None:
            asked = self._declared.devices_per_run or self._declared.switches.get("device", "").startswith("cuda")
            gpus = "all" if asked else "none"
        if gpus == "none":
            return []
        if self._engine.name == "docker":
            return [f"--gpus={gpus}" if gpus == "all" else f'--gpus="device={",".join(map(str, gpus))}"']
        return [f"--device=nvidia.com/gpu={item}" for item in ([gpus] if gpus == "all" else gpus)]


@dataclass(frozen=True)
class _InContainer(Prepared):
    """A command in a container.

    options: of the engine. mounts: from where, to where, only read. links: what of the working folder leads out of it.
    pins: whether the engine is told which CPUs. own: the names of the study's variables.
    """

    engine: _Engine
    options: tuple[str, ...]
    mounts: tuple[tuple[str, str, bool], ...]
    links: tuple[str, ...]
    pins: bool
    own: frozenset[str]

    @property
    def is_counted(self) -> bool:
        """What podman starts is a descendant of it; docker's daemon starts it elsewhere."""
        return self.engine.name == "podman"

    def wrap(self, argv: Sequence[str], variables: Mapping[str, str], folders: Folders) -> tuple[str, ...]:
        """The engine, told to run it: nothing that may be secret is among these words."""
        words = [*self.options, f"--name={_name(folders)}", f"--workdir={folders.working}"]
        if self.pins and folders.cpus:
            words.append(f"--cpuset-cpus={','.join(map(str, folders.cpus))}")
        words += [_mount(*mount) for mount in self._all_mounts(folders)]
        words += [f"--env={name}" for name in sorted(variables) if not _by_value(name)]
        if self.engine.name == "podman" and _LOGINS in variables:
            words.append("--authfile=")  # the training's, which may lie nowhere but inside: podman looks for none
        by_value = {name: value for name, value in variables.items() if _by_value(name)}
        if "--user=0:0" not in words:  # a user whom the image does not know has no home there
            by_value = {"HOME": "/tmp", **by_value}  # noqa: S108 - of the container
        words += [f"--env={name}={value}" for name, value in sorted(by_value.items())]
        return self.engine.command("run", *words, f"--entrypoint={argv[0]}", self.made["image_id"], *argv[1:])

    def _all_mounts(self, folders: Folders) -> list[tuple[str, str, bool]]:
        """By their targets: what isorun needs itself wins."""
        linked = [(path, path, False) for path in (str((folders.working / name).resolve()) for name in self.links)]
        read = (folders.worker, folders.worker.parent / "frameworks")  # which the worker serves to trainings
        needed = (folders.working, *read, folders.run)
        copied = [] if folders.copy_of is None else [(str(folders.copy_of), str(folders.copy_of), True)]
        own = [*copied, *((str(path), str(path), path in read) for path in needed)]
        return list({mount[1]: mount for mount in (*linked, *self.mounts, *own)}.values())

    def outside(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """The caller's, and those of the run, which the engine passes on by name; never what engines obey."""
        passed = {
            name: value
            for name, value in variables.items()
            if not _by_value(name) and (name in self.own or self.variables.get(name) != value or names_secret(name))
        }
        return {**callers_variables(), **passed}

    @contextmanager
    def guard(self, folders: Folders) -> Iterator[Callable[[], None]]:
        """A container that the engine did not remove is removed when the run has ended, or isorun was killed."""
        with self.engine.guard(_name(folders)) as ended:
            yield ended

    def end_inside(self, exit_code: int, output: str) -> tuple[int, str]:
        """Engines add 128 to the number of a signal, and have three codes for what they could not begin."""
        if exit_code in _SIGNALS:
            return exit_code - 128, ""
        lines = [line for line in output.splitlines() if line.strip()]
        docker = [line for line in lines if line.startswith("docker: ")]
        begun = exit_code not in {_NOT_BEGUN, _NOT_EXECUTABLE, _NOT_FOUND}
        if begun or not (docker or (lines and lines[-1].startswith("Error: "))):
            return 0, ""
        # Where output is passed through, the runtime below says why by itself, and podman misses its words.
        why = docker[-1] if docker else lines[-2] if "no logs from conmon" in lines[-1] and lines[1:] else lines[-1]
        why = why.removeprefix("docker: ").removeprefix("Error: ")[:_SHOWN]
        return 0, f"{self.engine.name} did not start the command (exit code {exit_code}): {why}"


def _without_secrets(variables: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The variables of an image that may be kept; the others it has inside, whether they are known here or not."""
    for name, equals, value in (item.partition("=") for item in variables):
        if equals and not names_secret(name) and not holds_secret(name, value):
            yield name, value


def _by_value(name: str) -> bool:
    """Whether the variable must be kept from the engine, and so is told in words; what may be secret never is."""
    return _OF_THE_ENGINE.fullmatch(name) is not None and not names_secret(name)


def _name(folders: Folders) -> str:
    """What the container of a run is called; of an earlier isorun in a folder of the same name none is left."""
    return f"isorun-{hashlib.sha256(f'{folders.run} {os.getpid()}'.encode()).hexdigest()[:20]}"


def _mount(source: str, target: str, read_only: bool) -> str:
    """Engines take commas apart in one form, and colons in the other."""
    if "," not in f"{source}{target}" and '"' not in f"{source}{target}":
        return f"--mount=type=bind,source={source},target={target}{',readonly' if read_only else ''}"
    if ":" not in f"{source}{target}":
        return f"--volume={source}:{target}{':ro' if read_only else ''}"
    what = f"the folder {source} cannot be mounted: engines take its name apart"
    raise ExecutionError(what, found="a comma and a colon", hint="rename the folder, or run elsewhere")


def _id_of(image: Mapping[str, Any]) -> str:
    return f"sha256:{str(image['Id']).removeprefix('sha256:')}"


def _user(kept: Mapping[str, Any], *, podman: bool) -> str:
    """Such that what it writes is the caller's: root inside is the caller where the engine runs as the caller."""
    return "0:0" if podman or kept["rootless"] else f"{os.getuid()}:{os.getgid()}"


def _shared_memory(kept: Mapping[str, Any]) -> str:
    """The machine's own; without root an engine has that only where there are queues of messages, too."""
    if not kept["rootless"] or Path("/dev/mqueue").exists():
        return "--ipc=host"
    return f"--shm-size={os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 2}"


def _own_limits() -> list[str]:
    """The limits of this process: an engine without the right to raise them begins nothing with its own."""
    files, processes = (resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
    most = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8"))
    processes = most if processes == resource.RLIM_INFINITY else min(processes, most)
    return [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}"]


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _last(done: subprocess.CompletedProcess[str]) -> str:
    """What an engine says at the end of its failure, without what it tried before."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith(("time=", "Trying to pull", "See 'docker", "Run 'docker"))]
    said = errors[-1] if errors else f"exit code {done.returncode}"
    return said.removeprefix("docker: ").removeprefix("Error: ").removeprefix("ERROR: ")[:_SHOWN]
