"""Packages of its own: a virtual environment that is made of a list of requirements, once, and found by its content.

`uv` makes it where there is one, else `pip`. It is named by what is required, what a lock holds, and by the version and
platform of the Python below, and counts only when the versions that were installed were read and kept: they are
recorded with every run. Nothing of isorun is installed in it: the worker is read from isorun's own folder.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from isorun.environments import NO_ROOM, Prepared, callers_variables, keep
from isorun.environments.interpreter import InterpreterEnvironment, Interpreters, find_program, is_python
from isorun.errors import ExecutionError
from isorun.study import FUNCTION, Environment
from isorun.study.parts import lines_elsewhere, lock_content, package_settings

__all__ = ["RESOLVED", "PackagesEnvironment", "Resolved"]

RESOLVED: Final = "resolved.json"
_VENV: Final = "venv"
_VERSION: Final = re.compile(r"3\.\d+(?:\.\d+)?")
_PIP_FOR_OTHERS: Final = (22, 3)
"""From this one on pip installs for another interpreter, so that none need be in the environment."""
_HEARD: Final = re.compile(
    r"(?:PIP|UV|CMAKE|SETUPTOOLS|SKBUILD)_|(?:CC|CXX|FC|(?:C|CPP|CXX|F|LD|ARCH|RUST)FLAGS)$", re.IGNORECASE
)
"""Variables that installers listen to, and the compilers that they start."""
_NAMES_FILES: Final = re.compile(r"FIND_LINKS|CONSTRAINT|OVERRIDE|REQUIREMENT|CONFIG_FILE", re.IGNORECASE)
_SHOWN: Final = 1_000
_VERSIONS_SHOWN: Final = 8
_FROM_VERSIONS: Final = re.compile(r"\(from versions: ([^)]*)\)")
_ASK: Final = (
    "import json, platform, sys, sysconfig\n"
    "print(json.dumps([sys.executable, platform.python_implementation(), platform.python_version(),"
    " sysconfig.get_platform()]))"
)

_ASK_PIP: Final = "try:\n import pip\nexcept ImportError:\n print()\nelse:\n print(pip.__version__)"


class Resolved:
    """What lies in a made environment: the version of its Python, packages with their versions, and who made it."""

    def __init__(self, folder: Path) -> None:
        kept = json.loads((folder / RESOLVED).read_text(encoding="utf-8"))
        self.python: str = kept["python"]
        self.packages: dict[str, str] = kept["packages"]
        self.made_by: str = kept["made_by"]


class PackagesEnvironment(InterpreterEnvironment):
    """An interpreter with packages of its own, and variables."""

    def __init__(self, declared: Environment) -> None:
        super().__init__(declared)
        self._settings = package_settings(declared.settings, f"environments.{declared.name}.settings", None)

    def made_from(self) -> Any:
        """Requirements in any order, the content of the lock, and the Python below: its version and platform.

        And what the study itself tells the installer by variables. Those of the caller are the way to a registry, as
        they are for everything else that is installed here.
        """
        below = self._python_below()
        settings = {**self._settings, "requirements": sorted(self._settings.get("requirements", ()))}
        settings.pop("lock", None)  # whatever it is called
        told = {name: value for name, value in self._declared.env.items() if _HEARD.match(name)}
        named = [
            _content_of(self.study_folder / word.removeprefix("file://"))
            for name in sorted(told)
            if _NAMES_FILES.search(name)
            for word in re.findall(r"[^\s,]+", told[name])
        ]
        return [below[1:], settings, *([told, named] if told else [])]

    def make(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Make the virtual environment, install, and keep what was installed: without that it counts for nothing."""
        python, _, version, _ = self._python_below()
        venv, variables = folder / _VENV, self._variables()
        maker = _Uv.found(variables) or _Pip(python, variables)
        lock = self._settings.get("lock")
        wanted = ", ".join([*self._settings.get("requirements", ()), *([lock] if lock else [])])
        tell(f"installing {wanted} for Python {version} with {maker.name}")
        try:
            maker.make(python, venv)
            maker.install(venv, [*(["-r", self._checked_lock(lock)] if lock else []), *self._requirements()])
        except _MakerFailed as failed:
            raise ExecutionError(
                f"the packages of the environment {self._declared.name!r} ({wanted}) cannot be installed",
                found=failed.said,
                # By what is required, since a study with factors names no environment.
                hint=failed.hint or f"change {wanted} in the study, then run again: what was finished is kept",
            ) from None
        keep(folder / RESOLVED, {"python": version, "packages": _installed(venv), "made_by": maker.name})

    def _requirements(self) -> list[str]:
        return ["--", *self._settings["requirements"]] if self._settings.get("requirements") else []

    def _checked_lock(self, name: str) -> str:
        """The lock, which must be the one that the study was read with: the environment is known by its content."""
        lock = self.study_folder / name
        try:
            content, found = lock_content(lock), "another content"
        except OSError as error:
            content, found = b"", error.strerror or str(error)
        if hashlib.sha256(content).hexdigest() != self._settings["sha256"]:
            what = (
                f"the lock {name} of the environment {self._declared.name!r} is not the one that the study began with"
            )
            raise ExecutionError(what, found=found, hint="start the study again")
        if lines := lines_elsewhere(content.decode(errors="replace"), lock.name):
            raise ExecutionError(f"the lock {lock} does not hold all that it asks for", found=lines[0])
        return str(lock)

    def prepare(self, command: Sequence[str], working_folder: Path) -> Prepared:
        """The program inside: any Python without a path is the environment's own, all else is found in it first."""
        venv = self.folder / _VENV
        found = self._variables()
        path = f"{venv / 'bin'}{os.pathsep}{found.get('PATH', os.defpath)}"
        variables = {**found, "VIRTUAL_ENV": str(venv), "PATH": path}
        interpreter = ""
        if command[0] == FUNCTION or ("/" not in command[0] and is_python(command[0])):
            interpreter = self._own_python(venv, "python" if command[0] == FUNCTION else command[0])
        program = interpreter or find_program(command[0], variables, working_folder)
        resolved = self._resolved
        made = {"python": interpreter, "packages": resolved.packages, "packages_made_by": resolved.made_by}
        return Prepared(program, interpreter, variables, made)

    @functools.cached_property
    def _resolved(self) -> Resolved:
        return Resolved(self.folder)

    def _own_python(self, venv: Path, name: str) -> str:
        python = venv / "bin" / name
        if not os.access(python, os.X_OK):
            raise ExecutionError(
                f"the environment {self._declared.name!r} has no {name}",
                found=f"nothing at {python}, or a link to a Python that is gone",
                allowed="python",
                hint=f"write python in the command, or rm -r {self.folder} and run again",
            )
        return str(python)

    def _variables(self) -> dict[str, str]:
        """Those of the caller and of the study, without what would lead a Python away from its own packages."""
        variables = callers_variables()
        variables.pop("PYTHONHOME", None)
        return {**variables, **self._declared.env}

    def _python_below(self) -> tuple[str, str, str, str]:
        """The interpreter that the environment is made of: its path, implementation, version and platform."""
        asked, variables = self._declared.python, self._variables()
        if _VERSION.fullmatch(asked):
            return self._of_version(asked, variables)
        if not asked and shutil.which("python", path=variables.get("PATH", os.defpath)) is None:
            asked = sys.executable
        return _asked(self._interpreters, asked or "python", variables, self.study_folder)

    def _of_version(self, asked: str, variables: Mapping[str, str]) -> tuple[str, str, str, str]:
        names = [f"python{'.'.join(asked.split('.')[:2])}", "python3", "python"]
        uv = _Uv.found(variables)
        if uv is not None and (managed := uv.python(asked)):
            names.insert(0, managed)
        for name in names:
            try:
                found = _asked(self._interpreters, name, variables, self.study_folder)
            except ExecutionError:
                continue
            if f"{found[2]}.".startswith(f"{asked}."):
                return found
        raise ExecutionError(
            f"there is no Python {asked} for the environment {self._declared.name!r}",
            found=f"looked for {', '.join(names)}{'' if uv else '; there is no uv, which could bring it'}",
            hint=f"uv python install {asked}" if uv else f"install uv or Python {asked}, or name a path: python = …",
        )


def _asked(known: Interpreters, name: str, variables: Mapping[str, str], folder: Path) -> tuple[str, str, str, str]:
    """Where a Python really lies (a shim may stand before it), and what it is."""
    path = known.find(name, variables, folder)
    command = [path, "-I", "-S", "-c", _ASK]
    done = subprocess.run(command, cwd=folder, env=dict(variables), capture_output=True, text=True, check=False)
    try:
        really, implementation, version, platform = json.loads(done.stdout)
    except ValueError:
        raise ExecutionError(f"the interpreter {path} does not say what it is", found=done.stderr[-200:]) from None
    return str(really), str(implementation), str(version), str(platform)


def _installed(venv: Path) -> dict[str, str]:
    """What `pip freeze` would say: each distribution with its version, read from what was installed."""
    folders = [str(path) for path in venv.glob("lib*/python*/site-packages")]
    found = importlib.metadata.distributions(path=folders)
    names = {re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower(): one.version for one in found}
    return dict(sorted(names.items()))


def _content_of(path: Path) -> Any:
    """What a file holds, or which files lie in a folder, by their sizes and times; None where there is neither."""
    try:
        if path.is_dir():
            found = sorted(path.iterdir())
            return [[one.name, one.stat().st_size, one.stat().st_mtime_ns] for one in found if one.is_file()]
        return hashlib.sha256(lock_content(path)).hexdigest()
    except (OSError, ValueError):
        return None


class _MakerFailed(Exception):
    def __init__(self, said: str, hint: str) -> None:
        super().__init__(said)
        self.said, self.hint = said, hint


class _Maker:
    """A program that makes virtual environments and installs packages in them."""

    name = ""

    def __init__(self, variables: Mapping[str, str]) -> None:
        # Settings of a virtual environment that is active would name the place to install to.
        self._variables = {name: value for name, value in variables.items() if name != "VIRTUAL_ENV"}

    def _run(self, command: Sequence[str], hint: str) -> str:
        done = subprocess.run(
            list(command),
            env=self._variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            said = _told(done.stderr) or _told(done.stdout) or f"exit code {done.returncode}"
            raise _MakerFailed(said, NO_ROOM if os.strerror(errno.ENOSPC) in said else hint)
        return done.stdout


class _Uv(_Maker):
    def __init__(self, program: str, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self._program = program

    @classmethod
    def found(cls, variables: Mapping[str, str]) -> _Uv | None:
        program = shutil.which("uv", path=variables.get("PATH", os.defpath))
        return cls(program, variables) if program else None

    @functools.cached_property
    def name(self) -> str:  # type: ignore[override]
        return " ".join(self._run([self._program, "--version"], "uv --version").split()[:2])

    def python(self, version: str) -> str:
        """The Python of this version that uv knows of; nothing is downloaded."""
        try:
            return self._run([self._program, "python", "find", "--no-project", version], "").strip()
        except _MakerFailed:
            return ""

    def make(self, python: str, venv: Path) -> None:
        self._run([self._program, "venv", "--no-project", "--python", python, str(venv)], "uv venv")

    def install(self, venv: Path, what: Sequence[str]) -> None:
        python = str(venv / "bin" / "python")
        self._run([self._program, "pip", "install", "--python", python, *what], "")


class _Pip(_Maker):
    def __init__(self, python: str, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self._python = python

    @functools.cached_property
    def _version(self) -> str:
        """Of the pip beside the Python below; empty where it has none."""
        return self._run([self._python, "-c", _ASK_PIP], "install pip or uv").strip()

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"pip {self._version}".strip()

    @property
    def _serves_others(self) -> bool:
        found = re.match(r"(\d+)\.(\d+)", self._version)
        return found is not None and (int(found[1]), int(found[2])) >= _PIP_FOR_OTHERS

    def make(self, python: str, venv: Path) -> None:
        without = ["--without-pip"] if self._serves_others else []
        hint = "install uv, or the venv and pip of this Python"
        self._run([python, "-m", "venv", *without, str(venv)], hint)

    def install(self, venv: Path, what: Sequence[str]) -> None:
        inside = str(venv / "bin" / "python")
        pip = [self._python, "-m", "pip", "--python", inside] if self._serves_others else [inside, "-m", "pip"]
        options = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--no-warn-script-location"]
        self._run([*pip, "install", *options, *what], "")


def _told(said: str) -> str:
    """What a resolver says of its failure: the lines that say so, without what it told on its way there."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    errors = [_FROM_VERSIONS.sub(_latest, line) for line in errors if not line.startswith("Ignored the following")]
    if errors == ["Exception:"]:  # pip itself has failed, and says why at the end
        errors = lines[-1:]
    if not errors:
        first = next((at for at, line in enumerate(lines) if line.startswith(("×", "error:"))), 0)
        errors = [line.lstrip("×╰─▶│ ").removeprefix("error: ") for line in lines[first:]]
    return " ".join(errors)[:_SHOWN]


def _latest(versions: re.Match[str]) -> str:
    """All versions that there are may be hundreds, and pip lists them: the last ones are those to choose from."""
    every = versions[1].split(", ")
    return f"(from versions: {'…, ' if len(every) > _VERSIONS_SHOWN else ''}{', '.join(every[-_VERSIONS_SHOWN:])})"
