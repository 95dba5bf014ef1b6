"""How this process really computed: interpreter, machine, frameworks, loaded libraries, packages, variables.

Requests are clamped and ignored silently by the libraries, so they are asked what they did.
Nothing here starts a device or imports a framework. What is expensive to find out is kept between runs.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Pattern

from . import frameworks
from .frameworks import switches
from .redaction import recorded_variables, secret_values
from .runfolder import is_there, write_own
from .usercode import hash_of_file

_WRITTEN_SECONDS = 60.0
_MATH = "mkl|openblas|gomp|iomp|libomp|blas|lapack|dnnl|tbb"
_FOLDER = re.compile(r"^(?P<name>.+?)-(?P<version>[^-]+?)(-py[\d.]+)?\.(dist-info|egg-info)$")


def effective_environment(script: Path | None) -> dict[str, Any]:
    """Everything that says how this process computed; a part that cannot be read says why."""
    imported = list(frameworks.imported())
    parts: dict[str, Callable[[], Any]] = {
        "python": _python,
        "platform": _platform,
        "cpu": _cpu,
        "frameworks": lambda: [framework.name for framework, _ in imported if framework.name in frameworks.PACKAGES],
        **{framework.name: functools.partial(framework.effective, module) for framework, module in imported},
        "switches": switches.answers,
        "gpu": lambda: _gpu(imported),
        "libraries": loaded_math_libraries,
        "packages": imported_packages,
        "variables": lambda: recorded_variables(os.environ),
        "script": lambda: _script(script),
    }
    values = {name: _attempt(part) for name, part in parts.items()}
    return {name: value for name, value in values.items() if value is not None}


def _attempt(part: Callable[[], Any]) -> Any:
    try:
        return part()
    except Exception as error:  # one unreadable part must not cost the others
        return {"unreadable": f"{type(error).__name__}: {error}"}


def _python() -> dict[str, Any]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "compiler": platform.python_compiler(),
        # A number in the variable fixes hashes, whatever it is; Python's flag is on for all but 0.
        "hash_randomization": bool(sys.flags.hash_randomization) and not os.environ.get("PYTHONHASHSEED", "").isdigit(),
        "optimize": sys.flags.optimize,
    }


@functools.lru_cache(maxsize=None)
def _platform() -> dict[str, Any]:
    return {
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else "",
    }


def _os_name() -> str:
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.platform()
    names = [line.partition("=")[2].strip('"') for line in lines if line.startswith("PRETTY_NAME=")]
    return names[0] if names else platform.platform()


def _cpu() -> dict[str, Any]:
    return {"logical": os.cpu_count(), "affinity": len(os.sched_getaffinity(0)), **_cpu_model()}


@functools.lru_cache(maxsize=None)
def _cpu_model() -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            facts["model"] = value.strip()
        elif key.strip() == "flags":
            # Enough to tell CPU paths apart, without a hundred flags in every record.
            facts["vector"] = sorted(flag for flag in value.split() if flag.startswith(("avx", "sse4", "fma", "amx")))
        if not line:
            break
    return facts


def _gpu(imported: list[tuple[Any, Any]]) -> dict[str, Any] | None:
    facts: dict[str, Any] = {}
    driver = Path("/proc/driver/nvidia/version")
    if driver.exists():
        facts["driver"] = driver.read_text(encoding="utf-8").splitlines()[0].strip()
    for framework, module in imported:
        facts.update(framework.devices(module))
    return facts or None


def _script(script: Path | None) -> dict[str, Any] | None:
    path = script or Path(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    return {"path": str(path), "sha256": hash_of_file(path)} if path.is_file() else None


def look_ahead() -> None:
    """In a fork server: find out what is the same for all that it forks, so that they need not, one by one."""
    secrets = functools.partial(secret_values, os.environ)
    for part in (secrets, _python, _platform, _cpu, imported_packages, _math_library_names, _loaded_files):
        _attempt(part)
    Cache("library-hashes")


def _math_library_names() -> Pattern[str]:
    """What the names of math libraries look like."""
    return re.compile("|".join([_MATH, *(each.libraries for each in frameworks.every() if each.libraries)]))


def loaded_math_libraries() -> list[dict[str, Any]]:
    """Name, size and SHA-256 of each math library that is really loaded: package versions do not tell them apart."""
    hashes, named = Cache("library-hashes"), _math_library_names()
    found = [_description(Path(name), hashes) for name in _loaded_files() if named.search(os.path.basename(name))]  # noqa: PTH119
    hashes.save()
    return sorted(found, key=lambda library: (library["name"], library["sha256"]))


def _loaded_files() -> set[str]:
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    names = {line.split(maxsplit=5)[5] for line in maps.splitlines() if ".so" in line}
    return {name for name in names if name.startswith("/") and not name.endswith("(deleted)")}


def _description(path: Path, hashes: Cache) -> dict[str, Any]:
    stat = path.stat()
    return {"name": path.name, "size": stat.st_size, "sha256": _known_hash(path, stat, hashes)}


def _known_hash(path: Path, stat: os.stat_result, hashes: Cache) -> str:
    stamp = f"{stat.st_size}|{stat.st_mtime_ns}"
    known = hashes.get(str(path), stamp)
    if not isinstance(known, str):
        known = hash_of_file(path)
        hashes.put(str(path), stamp, known)
    return known


def imported_packages() -> dict[str, str]:
    """Name to version of each distribution that a top-level module of this process came from.

    `importlib.metadata` reads every distribution's metadata. The names of their folders already hold name and version,
    and which modules they install is kept until the folder around them changes.
    """
    imported = {name.partition(".")[0] for name in list(sys.modules)}
    cache = Cache("installed-modules")
    versions: dict[str, str] = {}
    for entry in dict.fromkeys(sys.path):
        for information, modules in _installed_in(entry or ".", cache).items():
            match = None if imported.isdisjoint(modules) else _FOLDER.match(information)
            if match is not None:
                versions.setdefault(match["name"].lower().replace("_", "-"), match["version"])
    cache.save()
    return dict(sorted(versions.items()))


def _installed_in(folder: str, cache: Cache) -> dict[str, list[str]]:
    """The top-level modules of each distribution in a folder, by the name of its information folder."""
    path = os.path.abspath(folder)  # noqa: PTH100  entries may be zip files or missing
    try:
        stamp = str(os.stat(path).st_mtime_ns)  # noqa: PTH116  as above
        known = {} if _without_any.get(path) == stamp else cache.get(path, stamp)
        if not isinstance(known, dict):
            names = sorted(os.listdir(path))  # noqa: PTH208  thousands of names
            known = {name: _modules_of(Path(path) / name) for name in names if _FOLDER.match(name)}
            if known:  # a training's own folder has none, and changes with every file that a run leaves there
                cache.put(path, stamp, known)
            else:
                _without_any[path] = stamp
    except OSError:
        return {}
    return known


# Folders of modules without a distribution, such as the standard library's, as they were when this process looked.
_without_any: dict[str, str] = {}


def _modules_of(information: Path) -> list[str]:
    match = _FOLDER.match(information.name)
    guess = match["name"].replace("-", "_").replace(".", "_") if match is not None else ""
    return sorted({guess, guess.lower(), *_listed_modules(information)})


def _listed_modules(information: Path) -> set[str]:
    top_level = information / "top_level.txt"
    if top_level.is_file():
        return set(top_level.read_text(encoding="utf-8", errors="replace").split())
    record = information / "RECORD"
    if not record.is_file():
        return set()
    with record.open(encoding="utf-8", errors="replace") as lines:
        first_parts = {re.split(r"[/,]", line, maxsplit=1)[0] for line in lines}
    return {part.partition(".")[0] for part in first_parts if not part.endswith("-info")}


def tell() -> int:
    """Print how this interpreter computes with the frameworks that it has, as JSON; nothing is computed with them.

    What imports print goes to standard error. A framework that cannot be imported is told by its version alone.
    """
    import importlib.metadata

    answer = os.dup(1)
    os.dup2(2, 1)
    installed = {}
    for name in frameworks.names():
        try:
            installed[name] = importlib.metadata.version(frameworks.DISTRIBUTIONS.get(name, name))
        except importlib.metadata.PackageNotFoundError:
            continue
        with suppress(Exception):  # a framework that is installed need not work
            importlib.import_module(name)
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump({"effective": effective_environment(None), "installed": installed}, out)
    return 0


def cache_folder() -> Path:
    """The folder ISORUN_CACHE, else isorun's place among the user's caches."""
    asked = os.environ.get("ISORUN_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  never raises
    return Path(asked) if asked else Path(base) / "isorun"


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed while they wrote left behind; of another machine's, after a while."""
    for left in folder.glob("*.json.*"):
        pid = left.suffix[1:]
        if pid.isdigit() and not is_there(int(pid)) and time.time() - left.stat().st_mtime > _WRITTEN_SECONDS:
            left.unlink()


class Cache:
    """What stays true of a file or folder until it changes, kept between runs as JSON. Losing it costs only time.

    There is one value a path, with the stamp of the state it was true of; paths that are gone are forgotten.
    """

    def __init__(self, name: str) -> None:
        self._file = cache_folder() / f"{name}.json"
        self._values = self._load()
        self._changed = False

    def get(self, path: str, stamp: str) -> Any:
        """The value, or None where there is none of this state."""
        known = self._values.get(path)
        return known[1] if isinstance(known, list) and len(known) == 2 and known[0] == stamp else None

    def put(self, path: str, stamp: str, value: Any) -> None:
        """Keep a value from the next `save` on."""
        self._values[path] = [stamp, value]
        self._changed = True

    def save(self) -> None:
        """Write what is new, whole or not at all."""
        if not self._changed:
            return
        kept = {path: known for path, known in self._values.items() if os.path.exists(path)}  # noqa: PTH110
        temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.parent.mkdir(mode=0o700, exist_ok=True)
            write_own(temporary, json.dumps(kept), os.O_NOFOLLOW)
            temporary.replace(self._file)
            _sweep(self._file.parent)
        except OSError:
            with suppress(OSError):
                temporary.unlink()

    def _load(self) -> dict[str, Any]:
        try:
            found = self._file.stat()
            state = (found.st_ino, found.st_size, found.st_mtime_ns)
            if _read.get(self._file, ((), {}))[0] != state:
                _read[self._file] = (state, json.loads(self._file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}
        loaded = _read[self._file][1]
        return dict(loaded) if isinstance(loaded, dict) else {}


# By file: its inode, size and time when it was read, and what it held. What a fork server read, its children know.
_read: dict[Path, tuple[tuple[int, ...], Any]] = {}
