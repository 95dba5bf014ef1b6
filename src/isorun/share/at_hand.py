"""What a run needs beside its code, and whether it is at hand here: an interpreter with its packages, data, devices.

A lack is something that cannot be had as it was; whoever goes on all the same replaces it, and says so. What a run was
really made with is read from its own record afterwards: nothing here is taken for it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from isorun.analysis.environments import COSMETIC, rule_for
from isorun.analysis.evidence.provenance import effective, requested
from isorun.environments import callers_variables
from isorun.environments.interpreter import REPLACED, is_python
from isorun.errors import InputError
from isorun.execution.resources import usable_cpus, visible_devices
from isorun.packages import refused
from isorun.packages.names import PREFIX as REGISTERED
from isorun.share.rebuilding import checked_path, compared_files, file_digest, safe_target
from isorun.study import FUNCTION
from isorun.study.cells import Cell
from isorun.study.records import RunRecord

__all__ = [
    "CODE",
    "DATA",
    "DEVICE",
    "MACHINE",
    "PACKAGES",
    "Lack",
    "as_many_cpus",
    "bring_data",
    "checked_files",
    "chosen_interpreter",
    "cpus_of",
    "lacking_code",
    "lacking_machine",
    "package_at",
    "packages_of",
    "pinned",
    "refuse_lacks",
    "with_python_here",
]

CODE: Final = "code"
DATA: Final = "data"
PACKAGES: Final = "packages"
DEVICE: Final = "device"
MACHINE: Final = "machine"

_ASK: Final = (
    "import importlib.metadata as m, json, sys; "
    "print(json.dumps({'python': '%d.%d.%d' % sys.version_info[:3], "
    "'packages': {d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}}))"
)
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NUMBER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._!-]*")
_PYTHON: Final = re.compile(r"(?:3\.\d+(?:\.[\w+]+)?)?", re.ASCII)
"""What an installer is told of a record's packages: a name and a version, never an address, an option or a path."""
_SECONDS: Final = 60.0
_MOST_COPIED: Final = 2**30
_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that cannot be had as the stored runs had it. recorded: None where it is not known what they had."""

    kind: str
    what: str
    recorded: str | None
    found: str | None
    hint: str = ""

    @property
    def words(self) -> str:
        """For people."""
        return (
            f"{self.what}: {self.recorded or 'not recorded'} then, {f'{self.found} now' if self.found else 'not here'}"
        )

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing in its place."""
        return not self.found

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"kind": self.kind, "what": self.what, "recorded": self.recorded, "found": self.found}


def package_at(package: str | Path) -> Path:
    """The file of a package; one that a registry has is fetched, and checked."""
    if not str(package).startswith(REGISTERED):
        return Path(package)
    from isorun.registries import fetched  # noqa: PLC0415 - most packages are at hand

    return fetched(str(package))


def refuse_lacks(lacks: Sequence[Lack], subject: str) -> None:
    """InputError where something cannot be had: what, and how to get it."""
    if not lacks:
        return
    first = lacks[0]
    more = f" and {len(lacks) - _SHOWN} more" if len(lacks) > _SHOWN else ""
    names = {CODE: "its code", DATA: "its data", PACKAGES: "its packages", DEVICE: "its device", MACHINE: "its machine"}
    kinds = ", ".join(dict.fromkeys(names[lack.kind] for lack in lacks))
    raise InputError(
        f"{subject} cannot be made again as it was: {kinds} cannot be had here",
        found="; ".join(lack.words for lack in lacks[:_SHOWN]) + more,
        hint=f"{first.hint + '; ' if first.hint else ''}--anyway runs with what is here, and says what was replaced",
    )


def cpus_of(records: Iterable[RunRecord]) -> int | None:
    """How many CPUs most of these runs had; None where none tells."""
    counts: dict[int, int] = {}
    for record in records:
        number = requested(record).get("cpus")
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            counts[number] = counts.get(number, 0) + 1
    return max(counts, key=lambda number: counts[number]) if counts else None


def lacking_machine(record: RunRecord) -> Iterator[Lack]:
    """Devices and CPUs that the run had and that are not here."""
    gpu = effective(record).get("gpu")
    named = gpu.get("devices") if isinstance(gpu, Mapping) else None
    devices = [str(name) for name in named] if isinstance(named, list | tuple) else list(record.devices)
    here = visible_devices(os.environ).names
    if devices and not here:
        yield Lack(DEVICE, "device", ", ".join(devices), "no device", "run it where there is one")
    wanted, usable = cpus_of([record]), len(usable_cpus())
    if wanted is not None and wanted > usable:
        yield Lack(MACHINE, "CPUs", str(wanted), str(usable), "run it where there are as many")


@contextmanager
def as_many_cpus(count: int | None) -> Iterator[None]:
    """Keep this process, and all that it starts, to so many of its CPUs: libraries size their threads by these."""
    own = os.sched_getaffinity(0)
    if count is None or count >= len(own):
        yield
        return
    os.sched_setaffinity(0, sorted(own)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def packages_of(record: RunRecord) -> tuple[str, dict[str, str]]:
    """The Python of a run, and the versions of what it imported that can change a number."""
    inside = effective(record)
    python, packages = inside.get("python"), inside.get("packages")
    version = str(python.get("version") or "") if isinstance(python, Mapping) else ""
    listed = packages.items() if isinstance(packages, Mapping) else ()
    return version, {
        _plain(str(name)): str(number) for name, number in listed if rule_for(f"packages.{name}")[1].kind != COSMETIC
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def chosen_interpreter(record: RunRecord, given: str | None, *, own: bool = False) -> tuple[str, list[Lack]]:
    """The interpreter that has what the run had, and what it lacks: the given one; else the best of those at hand.

    At hand are that of the PATH and isorun's own. own: the record is one of the user's own, so that the interpreter
    which it names may be asked, too; what a package names is never started for that.
    """
    recorded = _path_of(record) if own else ""
    named = [given] if given else [recorded, shutil.which("python"), shutil.which("python3"), sys.executable]
    found: dict[str, list[Lack]] = {}
    for path in dict.fromkeys(path for path in named if path):
        if (answer := _installed(path)) is not None:
            found[path] = [*_lacking(record, answer), *_lacking_isorun(record, answer, path)]
            if not found[path]:
                break
    if not found:
        what = f"the interpreter {given} does not answer" if given else "no Python is at hand"
        raise InputError(what, hint="--python PATH names one that does")
    return min(found.items(), key=lambda item: len(item[1]))


def with_python_here(cell: Cell, given: str | None, folder: Path | None = None) -> Cell:
    """The cell, with a plain `python` for an interpreter that it names, where one is given or that one is not here.

    A command or an environment may name the Python of one machine by its path; elsewhere another takes its place, held
    against the recorded versions as any. folder: where a path that is not absolute begins.
    """
    program, content = cell.command[0], cell.environment_content
    in_command = is_python(program) and program not in REPLACED
    declared = str(content.get("python") or "") if program in (*REPLACED, FUNCTION) else ""
    named = program if in_command else declared
    if not named or content.get("kind") or (not given and _can_be_started(named, folder)):
        return cell
    rest = {name: "" if name == "python" else value for name, value in content.items()}
    return replace(cell, command=("python" if in_command else program, *cell.command[1:]), environment_content=rest)


def _can_be_started(program: str, folder: Path | None) -> bool:
    path = os.path.expanduser(program)  # noqa: PTH111 - as a study says it
    if "/" not in path:
        return shutil.which(path) is not None
    return bool(folder or Path(path).is_absolute()) and shutil.which(str((folder or Path()) / path)) is not None


def _path_of(record: RunRecord) -> str:
    """Where the interpreter of the run lay; empty where there is none any more."""
    python = effective(record).get("python")
    path = str(python.get("executable") or "") if isinstance(python, Mapping) else ""
    return path if is_python(path) and Path(path).is_absolute() and os.access(path, os.X_OK) else ""


def _installed(path: str) -> Mapping[str, Any] | None:
    """What a Python says of itself and of what is installed for it; None where it says nothing."""
    try:
        done = subprocess.run(
            [path, "-c", _ASK], cwd="/", env=callers_variables(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return answer if isinstance(answer, dict) else None


def _lacking(record: RunRecord, here: Mapping[str, Any]) -> Iterator[Lack]:
    version, wanted = packages_of(record)
    if version and here["python"] != version:
        yield Lack(PACKAGES, "Python", version, here["python"], f"--python PATH names a Python {version}")
    installed = {_plain(name): number for name, number in here["packages"].items()}
    for name, number in wanted.items():
        if installed.get(name) != number:
            yield Lack(PACKAGES, name, number, installed.get(name), f"pip install {name}=={number.partition('+')[0]}")


def _lacking_isorun(record: RunRecord, here: Mapping[str, Any], path: str) -> Iterator[Lack]:
    """Trainings that come with isorun (those of the papers) need it in their own interpreter."""
    own = path == sys.executable or any(_plain(name) == "isorun" for name in here["packages"])
    if not own and any(word.startswith("isorun.") for word in record.cell.command):
        yield Lack(PACKAGES, "isorun", "installed", None, "pip install isorun, or --python PATH of one that has it")


def pinned(record: RunRecord) -> tuple[str, list[str]]:
    """The Python and the requirements that an environment of its own is made from for these runs.

    PackageError where a text of the record is none: whoever made it may be an enemy, and an installer fetches from
    wherever a requirement says, and runs what comes.
    """
    version, wanted = packages_of(record)
    pins = {name: number.partition("+")[0] for name, number in sorted(wanted.items())}
    for name, number in pins.items():
        if not (_NAME.fullmatch(name) and _NUMBER.fullmatch(number)):
            found = repr(f"{name}=={number}"[:80])
            raise refused("the package names a package of Python that cannot be one", found, "NAME==VERSION")
    if not _PYTHON.fullmatch(version):
        raise refused("the package names a version of Python that is none", repr(version[:80]), "such as 3.11.4")
    return ".".join(version.split(".")[:2]), [f"{name}=={number}" for name, number in pins.items()]


def lacking_code(working: Path, files: Mapping[str, str], hint: str) -> Iterator[Lack]:
    """Files that the runs were made of and that are other ones in this folder, or not there. files: with digests."""
    missing, differs = compared_files(working, files)
    for path in (*differs, *missing):
        found = file_digest(working / path)
        yield Lack(CODE, path, f"sha256 {files[path][:12]}", f"sha256 {found[:12]}" if found else None, hint)


def bring_data(
    files: Mapping[str, str], working: Path, places: Sequence[Path], *, is_ours: bool = False
) -> Iterator[Lack]:
    """See that data are there by their digests; what lies at one of the places is copied, a large file linked.

    files: by path as recorded, with digests. Only what lies below the study's folder is brought; what lies elsewhere is
    looked at where it is. is_ours: the folder is a copy that was made for this, in which other bytes of the same name
    (those of the commit, or git's pointer to a large file) give way to the recorded ones.
    """
    for path, digest in sorted(files.items()):
        found = file_digest(working / path)
        if found != digest and not _lies_elsewhere(path):
            gives_way = is_ours and not _is_linked(working, path)
            offered = _offered(path, digest, places) if gives_way or not found else None
            if offered is not None and (not found or offered[1] == digest):
                if found:
                    (working / path).unlink()
                source, found = offered
                _bring(source, path, working)
        if found != digest:
            hint = f"--data FOLDER names where the data lie: FOLDER/{' or FOLDER/'.join(_names_of(path))}"
            yield Lack(DATA, path, f"sha256 {digest[:12]}", f"sha256 {found[:12]}" if found else None, hint)


def _bring(source: Path, path: str, working: Path) -> None:
    target = safe_target(working, checked_path(path))
    try:
        if source.stat().st_size > _MOST_COPIED:
            target.symlink_to(source.resolve())
        else:
            shutil.copyfile(source, target)
    except OSError as error:
        raise refused(f"the data {path} cannot be put into {working}", str(error)) from None


def _is_linked(working: Path, path: str) -> bool:
    """Whether the way to a file goes through a link, out of the folder perhaps, to something of the user's own."""
    parts = path.split("/")
    return any((working / "/".join(parts[:count])).is_symlink() for count in range(1, len(parts) + 1))


def _offered(path: str, digest: str, places: Sequence[Path]) -> tuple[Path, str] | None:
    """A file at one of the places that it may be, with its digest: the first with this one, else the first of all."""
    first: tuple[Path, str] | None = None
    for file in (place / name for place in places for name in _names_of(str(checked_path(path)))):
        if found := file_digest(file):
            first = first or (file, found)
            if found == digest:
                return file, found
    return first


def _names_of(path: str) -> list[str]:
    """What a file may be called in a folder of data: its path, and every end of it.

    Whoever is asked where the data lie names the folder that he sees them in. Which file it is, its digest says.
    """
    parts = path.split("/")
    return [path] if _lies_elsewhere(path) else ["/".join(parts[place:]) for place in range(len(parts))]


def _lies_elsewhere(path: str) -> bool:
    """Whether a path leads out of the study's folder: nothing is ever written there."""
    return path.startswith("/") or ".." in path.split("/")


def checked_files(listed: Any) -> dict[str, str]:
    """Paths and digests of a package's list of files; what is none is refused."""
    found: dict[str, str] = {}
    for item in listed if isinstance(listed, list) else ():
        match item:
            case {"path": str(path), "sha256": str(digest)} if re.fullmatch(r"[0-9a-f]{64}", digest):
                found[path if _lies_elsewhere(path) else str(checked_path(path))] = digest
            case _:
                raise refused("the package lists data that are none")
    return found
