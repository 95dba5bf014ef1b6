"""The user's own code: which source files it is, and which version of it trained.

Not Python's, not an installed library's, and written by no program: compilers of frameworks write Python as they go,
each run under names of its own, and as the training's source they would make every run another version of the code.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from . import frameworks

if TYPE_CHECKING:
    from .seedsource import SourceFacts

ISORUN = str(Path(__file__).resolve().parents[1]) + os.sep
_LIBRARY_PARTS = ("/site-packages/", "/dist-packages/")
# Where the standard library lies, asked of one of its modules: `sysconfig` takes milliseconds to say the same.
STANDARD_LIBRARY = str(Path(os.__file__).parent) + os.sep
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  nothing is written there: `tempfile` would import half a library
_CACHE_FOLDERS = (".cache", ".triton", "__pycache__", ".isorun")
_CACHE_VARIABLES = ("TRITON_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HF_HOME", "ISORUN_RUN_DIR")
_GENERATED_FOLDERS = ("ipykernel_",)

_WORKER = ISORUN + "worker" + os.sep
_GIT_SECONDS = 20
_BLOCK = 1 << 20
_MOST_KEPT = 1 << 20
# In place of a hash: what was loaded is not known any more.
UNKNOWN = "unknown"
_MOST_VARIABLES = 50
# Untracked files that are code or settings; checkpoints and logs of the training itself must not change its version.
_SOURCE_SUFFIXES = frozenset(
    (".py", ".pyi", ".pyx", ".ipynb", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".sh", ".toml", ".yaml", ".yml")
)
# Where tools leave settings and copies of the code, anew for each run.
_OUTPUT_FOLDERS = frozenset(
    (".hydra", ".ipynb_checkpoints", ".isorun", "__pycache__", "lightning_logs", "mlruns", "wandb", "work_dirs")
)


class _Traces:
    """What the compilers of all frameworks leave on disk."""

    def __init__(self) -> None:
        every = frameworks.every()
        self.files = tuple(name for framework in every for name in framework.generated_files)
        self.folders = (*_GENERATED_FOLDERS, *(name for each in every for name in each.generated_folders))
        self.debug_folders = frozenset(name for framework in every for name in framework.cache_folders)
        self.caches = frozenset((*_CACHE_FOLDERS, *self.debug_folders))
        self.variables = (*_CACHE_VARIABLES, *(name for each in every for name in each.cache_variables))


@functools.lru_cache(maxsize=None)
def _traces() -> _Traces:
    return _Traces()


def is_users_file(filename: str) -> bool:
    """Whether a source file belongs to the user rather than to Python, an installed library, a compiler or isorun."""
    if filename.startswith(ISORUN):
        return bool(_training_room()) and filename.startswith(_training_room())
    return _is_outside_libraries(filename)


@functools.lru_cache(maxsize=4096)
def _is_outside_libraries(filename: str) -> bool:
    if filename.startswith("<") or is_library_file(filename):
        return False
    return not filename.startswith(STANDARD_LIBRARY) and not is_generated(filename)


def _training_room() -> str:
    """Where a training that comes with isorun lies: it is what is run and recorded, so it counts as the user's."""
    main = sys.modules.get("__main__")
    origin = getattr(getattr(main, "__spec__", None), "origin", None) or getattr(main, "__file__", None)
    started = str(origin or (sys.argv[0] if getattr(sys, "argv", None) else ""))
    room = started[len(ISORUN) :].partition(os.sep)[0] if started.startswith(ISORUN) else ""
    return "" if room in ("", "worker") else ISORUN + room + os.sep


def is_library_file(filename: str) -> bool:
    """Whether a file belongs to an installed library, which may lie among Python's own."""
    return any(part in filename for part in _LIBRARY_PARTS)


def is_generated(filename: str) -> bool:
    """Whether a file's name or a folder around it says that a program wrote it."""
    *folders, name = filename.split(os.sep)  # noqa: PTH206  of hundreds of files, several times faster this way
    traces = _traces()
    return name.startswith(traces.files) or any(folder.startswith(traces.folders) for folder in folders)


def users_sources(
    modules: Mapping[str, ModuleType], script: Path | None, folder: Path | None, environ: Mapping[str, str]
) -> list[Path]:
    """The main script and the source files of the user's modules among those that are loaded, by name.

    Files among temporary or cached things count only where the script, or the folder it was started in, lies there,
    too. folder: where the training was started, if that is known.
    """
    found = {str(script)} if script is not None else set()
    below_library: dict[str, bool] = {}
    for name in modules.keys() - _of_server:
        parent, dot, _ = name.partition(".")
        if dot and parent not in below_library:
            below_library[parent] = _is_library(modules.get(parent))
        if dot and below_library[parent]:  # most of thousands: these are not looked at one by one
            continue
        file = _file_of(modules[name])
        if file.endswith(".py") and is_users_file(file):
            found.add(file)
    homes = [_prefix(str(home)) for home in (folder, script.parent if script is not None else None) if home is not None]
    named = [_prefix(environ[name]) for name in _traces().variables if environ.get(name)]
    # A run may work in its own folder: what lies around it is no cache then.
    caches = tuple(cache for cache in named if not any(home != cache and home.startswith(cache) for home in homes))
    variables = (environ[name] for name in ("TMPDIR", "TEMP", "TMP") if environ.get(name))
    temporary = tuple(map(_prefix, (*_TEMPORARY, *variables)))
    return [Path(file) for file in sorted(found) if _is_kept(file, homes, caches, temporary)]


# Modules that a fork server loaded and that are not the user's: to touch them costs its children copies of memory.
_of_server: set[str] = set()


def look_ahead() -> None:
    """In a fork server: know what all that it forks have loaded, and need not look at."""
    _traces()
    others = (name for name, module in sys.modules.items() if _is_never_users(_file_of(module)))
    _of_server.update(name for name in others if name != "__main__")


def _is_never_users(file: str) -> bool:
    """Whether it is not the user's, whatever is run: a training that comes with isorun is, where it is run."""
    if file.startswith(ISORUN):
        return file.startswith(_WORKER)
    return not file or not _is_outside_libraries(file)


def _is_library(module: ModuleType | None) -> bool:
    """Whether a module is one of an installed library; what stands below it is none of the user's.

    So is what torch's compiler loads.
    """
    file = _file_of(module)
    return bool(file) and not is_users_file(file)


def _file_of(module: ModuleType | None) -> str:
    return str(getattr(module, "__file__", None) or "")


def _is_kept(file: str, homes: Sequence[str], caches: tuple[str, ...], temporary: tuple[str, ...]) -> bool:
    """All but the file are folders as `_prefix` spells them: a training may have a thousand files."""
    if file.startswith(caches):
        return False
    if any(_is_near(file, home, temporary) for home in homes):
        return True
    return not file.startswith(temporary) and _traces().caches.isdisjoint(file.split(os.sep))  # noqa: PTH206  as above


def _is_near(file: str, home: str, temporary: Sequence[str]) -> bool:
    """Whether a file is one of a project's folder; where that is the folder for all temporary files, no deeper."""
    if not file.startswith(home):
        return False
    folders = file[len(home) :].split(os.sep)[:-1]  # noqa: PTH206  as above
    return not folders or (home not in temporary and _traces().caches.isdisjoint(folders))


def _prefix(folder: str) -> str:
    """What the names of all files below a folder begin with."""
    return os.path.join(os.path.abspath(folder), "")  # noqa: PTH100, PTH118


def started_in() -> Path | None:
    """The folder that the process works in; None where there is none any more, or it is the root of all files."""
    try:
        folder = Path.cwd()
    except OSError:
        return None
    return folder if folder != folder.parent else None


def main_script() -> Path | None:
    """The script that Python was started with; None for `-m`, `-c` and programs of the worker's own."""
    script = Path(sys.argv[0]) if getattr(sys, "argv", None) else None
    return script.absolute() if script is not None and script.is_file() and is_users_file(str(script)) else None


# By path: size, time and inode of a source file when it was loaded, and what it held; None for a large one.
_loaded: dict[str, tuple[tuple[int, int, int], bytes | None]] = {}


def follow_imports() -> None:
    """Keep what the user's source files hold when Python loads them: who edits one changes no run that goes on.

    Its own loader looks at a file just before it reads it. To hash the file there would take a library that most
    programs never load.
    """
    loader: Any = sys.modules["_frozen_importlib_external"].SourceFileLoader
    look = loader.path_stats
    if look.__module__ == __name__:
        return

    def path_stats(self: Any, path: str) -> Any:
        loading(path)
        return look(self, path)

    loader.path_stats = path_stats


def loading(path: str) -> None:
    """Keep what a source file holds now, if it may be the user's and is loaded for the first time."""
    if path in _loaded or path.startswith((STANDARD_LIBRARY, _WORKER)):
        return
    if _LIBRARY_PARTS[0] in path or _LIBRARY_PARTS[1] in path:
        return
    try:
        stamp = _stamp(path)
        _loaded[path] = (stamp, _content(path, stamp[0]) if stamp[0] <= _MOST_KEPT else None)
    except (OSError, ValueError):  # whoever loads it will see the same, and say so
        return


def _stamp(path: str) -> tuple[int, int, int]:
    found = os.stat(path)  # noqa: PTH116  a hundred of them take less than a millisecond this way
    return found.st_size, found.st_mtime_ns, found.st_ino


def _content(path: str, size: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, size + 1)
    finally:
        os.close(file)


def tell_as_loaded(effective: dict[str, Any], folder: Path | None) -> list[str]:
    """Give source files that were edited since they were loaded the hashes of what was loaded; the names of these."""
    sources, script = effective.get("sources", []), effective.get("script")
    edited = []
    for item in [*sources, *([script] if isinstance(script, dict) and "path" in script else [])]:
        digest = _digest_as_loaded(os.path.join(str(folder or ""), item["path"]))  # noqa: PTH118  as it was loaded
        if digest and digest != item["sha256"]:
            item["sha256"] = digest
            edited.append(_seen_from(folder, Path(item["path"])))
    if edited and sources:
        effective["sources_sha256"] = _hash_of_all((Path(item["path"]).name, item["sha256"]) for item in sources)
    return list(dict.fromkeys(edited))


def _digest_as_loaded(path: str) -> str:
    """Of a file that is not what it was; empty for all others."""
    stamp, content = _loaded.get(path, (None, None))
    try:
        if stamp is None or stamp == _stamp(path):
            return ""
    except OSError:
        return ""
    from hashlib import sha256

    return UNKNOWN if content is None else sha256(content).hexdigest()


def _hash_of_all(hashes: Iterable[tuple[str, str]]) -> str:
    from hashlib import sha256

    return sha256("\n".join(sorted(f"{name} {digest}" for name, digest in hashes)).encode()).hexdigest()


def code_version(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """commit, dirty and diff_sha256 (empty when clean) of the repository around `folder`; {} where there is none."""
    found = _git(folder, "rev-parse", "--show-toplevel", "HEAD")
    if found is None:
        return {}
    root, _, commit = found.rstrip(b"\n").rpartition(b"\n")
    from hashlib import sha256

    difference = _difference(root.decode(errors="surrogateescape"))
    return {
        "commit": commit.decode().strip(),
        "dirty": bool(difference),
        "diff_sha256": sha256(difference).hexdigest() if difference else "",
    }


def _difference(root: str) -> bytes:
    changed = _git(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color") or b""
    listed = _git(root, "ls-files", "--others", "--exclude-standard", "-z") or b""
    untracked = sorted(name.decode(errors="surrogateescape") for name in listed.split(b"\0") if name)
    return changed + b"".join(_untracked_line(root, name) for name in untracked if _is_source(name))


def _is_source(name: str) -> bool:
    path = Path(name)
    is_output = not (_OUTPUT_FOLDERS | _traces().debug_folders).isdisjoint(path.parts)
    return path.suffix in _SOURCE_SUFFIXES and not is_output and not is_generated(name)


def _untracked_line(root: str, name: str) -> bytes:
    path = Path(root) / name
    content = hash_of_file(path) if path.is_file() else ""
    return f"{name}\0{content}\n".encode(errors="surrogateescape")


# A repository may name programs to run in its settings: none of these is needed here. Filters are: they make the files.
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def git_variables() -> dict[str, str]:
    """The variables to ask git with: inside a hook its own name the hook's repository, whichever folder is meant."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name == "GIT_CEILING_DIRECTORIES"
    }
    return {**own, "GIT_TERMINAL_PROMPT": "0"}


def _git(folder: str | os.PathLike[str], *arguments: str) -> bytes | None:
    import subprocess  # only executors ask for the version, and every child Python starts a worker

    command = [*GIT, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**git_variables(), "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def hash_of_file(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    from hashlib import sha256

    hasher = sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_BLOCK), b""):
            hasher.update(block)
    return hasher.hexdigest()


def sources_read(facts: Mapping[Path, SourceFacts], folder: Path | None) -> dict[str, Any]:
    """The training's own source files: each with its hash, one hash of all, and the variables that they ask for.

    A changed module is a changed training, wherever it lies: the hash of all knows files by their last name alone.
    `sources` says which file it was; those below the folder where the training was started are told from there.
    """
    if not facts:
        return {"sources_sha256": ""}
    asked = {name for said in facts.values() for name in said.variables}
    return {
        "sources_sha256": _hash_of_all((path.name, said.sha256) for path, said in facts.items()),
        "sources": [{"path": _seen_from(folder, path), "sha256": said.sha256} for path, said in facts.items()],
        **({"variables_read": sorted(asked)[:_MOST_VARIABLES]} if asked else {}),
    }


def variables_asked_for(source: bytes) -> set[str]:
    """The names of variables that a source asks the system for, as far as they are written out in it."""
    import re

    text = source[:_BLOCK]
    if b"environ" not in text and b"getenv" not in text:
        return set()
    found = re.findall(rb"""(?:environ|getenv)\s*(?:\.\s*\w+\s*)?[\[(]\s*["']([A-Za-z_]\w*)["']""", text)
    return {name.decode() for name in found}


def _seen_from(folder: Path | None, path: Path) -> str:
    file, home = str(path), _prefix(str(folder)) if folder is not None else ""
    if not home or not file.startswith(home):
        return file
    below = file[len(home) :]
    return os.path.relpath(file, home) if "/." in f"/{below}" else below
