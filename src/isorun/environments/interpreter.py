"""The environment that is there: the variables of the caller and of the study, and an interpreter of this machine.

A leading `python` is the one that the shell would have run, by the PATH of the caller; in an activated virtual
environment that is its own, wherever isorun itself is installed. An environment may name another one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from isorun.environments import AbstractEnvironment, Prepared, callers_variables
from isorun.errors import ExecutionError
from isorun.study import FUNCTION, Environment
from isorun.study.design import Study

__all__ = [
    "ASK",
    "OLDEST",
    "REPLACED",
    "FoundPython",
    "InterpreterEnvironment",
    "Interpreters",
    "check_command",
    "find_program",
    "interpreters_of",
    "is_python",
]

REPLACED: Final = ("python", "python3")
"""What a command may begin with for the environment's own Python."""
OLDEST: Final = (3, 8)
"""The oldest Python that the worker runs in."""
ASK: Final = "import sys; print('isorun-python %d %d %s' % (sys.version_info[:2] + (sys.executable or '',)))"
"""What any Python answers, however old; it loads nothing for it."""
_PYTHON_NAME: Final = re.compile(r"(?:.*/)?python3?(?:\.\d+)?")
_ANSWER: Final = re.compile(r"isorun-python (\d+) (\d+) ?(.*)")
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_OF_SHELLS: Final = re.compile(r"&&|[|;<>]")
_STARTERS: Final = ("torchrun", "accelerate", "deepspeed", "poetry", "conda", "make", "bash")
_SILENT_SECONDS: Final = 2.0
_PROBE_SECONDS: Final = 30.0


class FoundPython(NamedTuple):
    """What a Python says of itself: its version, and where it really lies, empty where it does not know."""

    version: tuple[int, int]
    path: str

    @classmethod
    def of(cls, answer: str) -> FoundPython | None:
        """The answer to `ASK`; None where that was no Python."""
        found = _ANSWER.fullmatch(answer.strip())
        return cls((int(found[1]), int(found[2])), found[3]) if found else None

    @property
    def name(self) -> str:
        """As people call it."""
        return f"Python {self.version[0]}.{self.version[1]}"


def is_python(program: str) -> bool:
    """Whether a program is a Python by its name."""
    return _PYTHON_NAME.fullmatch(program) is not None


class InterpreterEnvironment(AbstractEnvironment):
    """An interpreter and variables. Interpreters that were looked at are known to all environments of this process."""

    def __init__(self, declared: Environment, interpreters: Interpreters | None = None) -> None:
        self._declared = declared
        self._interpreters = interpreters or _LOOKED_AT

    def prepare(self, command: Sequence[str], working_folder: Path) -> Prepared:
        """The variables of the process and its program: an interpreter, which was looked at, or another one."""
        variables = {**callers_variables(), **self._declared.env}
        name = self._name_of(command[0])
        interpreter = self._interpreters.find(name, variables, working_folder) if name else ""
        program = interpreter or find_program(command[0], variables, working_folder, command=command)
        return Prepared(program, interpreter, variables, {"python": interpreter})

    def _name_of(self, program: str) -> str:
        """What the interpreter is called; empty when the program is none."""
        if program == FUNCTION:  # no shell would have run it: it belongs to the interpreter that it was given to
            return self._declared.python or sys.executable
        if program in REPLACED:
            return self._declared.python or program
        return program if is_python(program) else ""


def interpreters_of(study: Study) -> tuple[str, ...]:
    """The interpreters that commands of the study will start with, where they are not isorun's own.

    Those that cannot be found are left out: the first run says so.
    """
    found: dict[str, None] = {}
    for approach in study.approaches.values():
        for environment in study.environments.values():
            name = environment.python or approach.command[0]
            if approach.command[0] in REPLACED and not environment.kind:
                path = shutil.which(os.path.expanduser(name), path=environment.env.get("PATH"))  # noqa: PTH111
                found.update({os.path.abspath(path): None} if path and not _is_own(path) else {})  # noqa: PTH100
    return tuple(found)


def check_command(command: Sequence[str], environment: Environment, working_folder: Path) -> None:
    """Raise ExecutionError where no run of this command can begin here: its program, or its script, is not there.

    Asked before the first run. What only some environments of a study may have (packages, a version of the code, an
    interpreter of their own) is left to their runs, and so is a name that is filled in for each.
    """
    own_place = environment.kind or environment.code.get("ref", ".") != "."
    if own_place or (environment.python and environment.name != "default") or "{" in command[0]:
        return
    prepared = InterpreterEnvironment(environment).prepare(command, working_folder)
    script = _script_of(command) if prepared.interpreter else ""
    if script and "{" not in script:
        _check_script(script, command, working_folder)


def _check_script(script: str, command: Sequence[str], working_folder: Path) -> None:
    path = working_folder / script
    if not path.exists():
        import difflib  # noqa: PLC0415  only for what is wrong

        near = difflib.get_close_matches(path.stem, [file.stem for file in path.parent.glob("*.py")], n=1)
        right = (
            [str(Path(script).with_name(f"{near[0]}.py")) if word == script else word for word in command]
            if near
            else []
        )
        raise ExecutionError(
            f"the script {script!r} does not exist",
            found=f"nothing at {path}",
            allowed="a file",
            hint=shlex.join(right) if near else f"name it as it is seen from {working_folder}",
        )
    if path.is_dir() and not (path / "__main__.py").exists():
        raise ExecutionError(
            f"the script {script!r} is a folder",
            found=f"no __main__.py in {path}",
            allowed="a file, or a folder with a __main__.py",
            hint=f"name the file in it: {shlex.join([command[0], f'{script}/train.py'])}",
        )
    if not os.access(path, os.R_OK):
        hint = f"chmod u+r {shlex.quote(str(path))}"
        raise ExecutionError(f"the script {script!r} cannot be read", found="you may not read it", hint=hint)


def _script_of(command: Sequence[str]) -> str:
    """The file that Python is asked to run; empty where it is asked for something else."""
    from isorun.worker import programs  # noqa: PLC0415  most of it is for inside the training

    program = None if command[0] == FUNCTION else programs.parse(command[1:])
    return program.target if program is not None and program.kind == programs.SCRIPT else ""


def _is_own(path: str) -> bool:
    """Whether it is the interpreter isorun runs in, perhaps under another of its names."""
    own, other = Path(sys.executable), Path(path).absolute()
    return own.parent == other.parent and own.resolve() == other.resolve()


class Interpreters:
    """Interpreters that were looked at once: each exists, starts, and is a Python that the worker can run in."""

    def __init__(self) -> None:
        self._known: set[str] = {sys.executable}
        self._lock = threading.Lock()

    def find(self, python: str, variables: Mapping[str, str], working_folder: Path) -> str:
        """The absolute path of the interpreter that is called `python` in the working folder."""
        named = os.path.expanduser(python)  # noqa: PTH111
        path = find_program(named, variables, working_folder, what="the interpreter")
        with self._lock:
            if path not in self._known:
                _ask(path, variables, working_folder)
                self._known.add(path)
        return path


_LOOKED_AT: Final = Interpreters()


def find_program(
    program: str, env: Mapping[str, str], working_folder: Path, what: str = "the command", command: Sequence[str] = ()
) -> str:
    """The absolute path of a program, found as a shell started in the working folder would find it.

    command: all that was typed, which may tell what was meant where there is no such program.
    """
    if "/" in program:
        candidate = working_folder / program
        if _is_executable(candidate):
            return str(candidate)
        if _is_there(candidate) or not _meant(command, working_folder):
            _refuse(program, candidate, what)
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        raise ExecutionError(
            f"{what} {program!r} does not exist",
            found=f"no program of that name in PATH ({env.get('PATH', os.defpath)})",
            allowed="a program in PATH, or a path to one",
            hint=_other_python(program, env) or _meant(command, working_folder),
        )
    return os.path.abspath(found)  # noqa: PTH100 - links must stay: a virtual environment is known by its link


def _meant(command: Sequence[str], working_folder: Path) -> str:
    """What a command that no program begins was meant to be, with the words that say it."""
    program, rest = (command[0], command[1:]) if command else ("", ())
    if _VARIABLE.fullmatch(program):
        number = next((at for at, word in enumerate(command) if not _VARIABLE.fullmatch(word)), len(command))
        given = [part for word in command[:number] for part in ("--env", word)]
        inside = shlex.join(["env", *command])
        return f"{shlex.join(['isorun', 'run', *given, '--', *command[number:]])} (or, in any command: {inside})"
    if program.startswith("-"):
        return "options of isorun stand before the --: isorun run -n 2 -- python train.py"
    if _OF_SHELLS.search(program):
        return f"a line for a shell: {shlex.join(['sh', '-c', program, *rest])}"
    if " " in program.strip():
        return f"without quotes around the whole: {shlex.join([*program.split(), *rest])}"
    import difflib  # noqa: PLC0415  only for what is wrong

    is_file = "/" not in program and (working_folder / program).is_file()
    if is_file and program.endswith(".py"):
        return shlex.join(["python", *command])
    near = difflib.get_close_matches(program, (*REPLACED, *_STARTERS), n=1) if "/" not in program else []
    return f"./{shlex.join(command)}" if is_file else shlex.join([near[0], *rest]) if near else ""


def _other_python(program: str, env: Mapping[str, str]) -> str:
    if program not in REPLACED:
        return ""
    others = [name for name in REPLACED if shutil.which(name, path=env.get("PATH", os.defpath))]
    instead = f"write {others[0]} instead of {program}" if others else "activate the environment it is in"
    return f"{instead}, or name an interpreter: --python PATH (isorun's own is {sys.executable})"


def _is_executable(path: Path) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - as in _is_there


def _is_there(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - that of Path raises where a folder on the way is closed to the user


def _refuse(program: str, candidate: Path, what: str) -> NoReturn:
    if not _is_there(candidate):
        hint = f"name one that is there (isorun's own is {sys.executable})" if what == "the interpreter" else ""
        closed = os.path.islink(candidate)  # noqa: PTH114 - as in _is_there
        found = f"{candidate} is a link to nothing that you may use" if closed else f"nothing at {candidate}"
        raise ExecutionError(f"{what} {program!r} does not exist", found=found, hint=hint)
    python = f"python {program}, or " if program.endswith(".py") else ""
    raise ExecutionError(
        f"{what} {program!r} cannot be executed",
        found=f"{candidate} is {'a folder' if candidate.is_dir() else 'not executable'}",
        allowed="an executable file",
        hint=f"{python}chmod +x {candidate}" if candidate.is_file() else "",
    )


def _ask(path: str, variables: Mapping[str, str], working_folder: Path) -> None:
    """Ask as the run will be started: what `python` is may depend on the folder (pyenv) and on variables."""
    try:
        asked = subprocess.Popen(
            [path, "-I", "-S", "-c", ASK],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(variables),
            cwd=working_folder,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_python(path, str(error)) from error
    with asked:
        said, complained = _answer(asked, path)
    found = FoundPython.of(said)
    if asked.returncode != 0 or found is None:
        raise _not_python(path, _first_line(complained or said) or f"exit code {asked.returncode}")
    if found.version < OLDEST:
        raise _not_python(path, found.name)


def _answer(asked: subprocess.Popen[str], path: str) -> tuple[str, str]:
    """What it says. Whoever waits is told for what: it may lie on a slow disk, or be no Python at all."""
    try:
        return asked.communicate(timeout=_SILENT_SECONDS)
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"isorun: waiting for {path} to say which Python it is\n")
    try:
        return asked.communicate(timeout=_PROBE_SECONDS - _SILENT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(asked.pid, signal.SIGKILL)  # a shim has children
        raise _not_python(path, f"no answer in {_PROBE_SECONDS:g} seconds") from None


def _not_python(path: str, found: str) -> ExecutionError:
    return ExecutionError(
        f"the interpreter {path} cannot be used",
        found=found,
        allowed=f"Python {OLDEST[0]}.{OLDEST[1]} or newer",
        hint=f"{path} --version",
    )


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200] if text.strip() else ""
