"""Which source files are the user's own: not Python's, not an installed library's, and written by no program.

Compilers write Python as they go (torch's inductor, triton, TensorFlow's autograph), each run under names of its own:
as the training's source they would make every run another version of the code.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Iterable, Mapping, Sequence

_ISORUN = str(Path(__file__).resolve().parents[1]) + os.sep
# The papers' trainings are part of isorun's package, and yet what is run and recorded: they count as the user's.
_TRAININGS = _ISORUN + "zoo" + os.sep
_LIBRARY_PARTS = ("/site-packages/", "/dist-packages/")
# Where the standard library lies, asked of one of its modules: `sysconfig` takes milliseconds to say the same.
_STANDARD_LIBRARY = str(Path(os.__file__).parent) + os.sep
_GENERATED_NAMES = ("__autograph_generated_file", "_remote_module_")
_GENERATED_FOLDERS = ("torchinductor_", "ipykernel_")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  nothing is written there: `tempfile` would import half a library
_CACHE_FOLDERS = frozenset((".cache", ".triton", "__pycache__", ".isorun", "torch_compile_debug"))
_CACHE_VARIABLES = (
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "ISORUN_RUN_DIR",
)


@functools.lru_cache(maxsize=4096)
def is_users_file(filename: str) -> bool:
    """Whether a source file belongs to the user rather than to Python, an installed library, a compiler or isorun."""
    if filename.startswith(_TRAININGS):
        return True
    if filename.startswith((_ISORUN, "<")) or any(part in filename for part in _LIBRARY_PARTS):
        return False
    return not filename.startswith(_STANDARD_LIBRARY) and not is_generated(filename)


def is_generated(filename: str) -> bool:
    """Whether a file's name or a folder around it says that a program wrote it."""
    *folders, name = Path(filename).parts
    return name.startswith(_GENERATED_NAMES) or any(folder.startswith(_GENERATED_FOLDERS) for folder in folders)


def users_sources(
    modules: Mapping[str, ModuleType], script: Path | None, folder: Path | None, environ: Mapping[str, str]
) -> list[Path]:
    """The main script and the source files of the user's modules among those that are loaded, by name.

    Files among temporary or cached things count only where the script, or the folder it was started in, lies there,
    too. folder: where the training was started, if that is known.
    """
    found = {str(script)} if script is not None else set()
    for name, module in list(modules.items()):
        file = str(getattr(module, "__file__", None) or "")
        if file.endswith(".py") and is_users_file(file) and not _is_part_of_library(name, modules):
            found.add(file)
    homes = [str(home) for home in (folder, script.parent if script is not None else None) if home is not None]
    return [Path(file) for file in sorted(found) if _is_kept(file, homes, environ)]


def _is_part_of_library(name: str, modules: Mapping[str, ModuleType]) -> bool:
    """Whether the module stands below one of an installed library, as what torch's compiler loads does."""
    parent = name.partition(".")[0]
    file = str(getattr(modules.get(parent), "__file__", None) or "")
    return parent != name and bool(file) and not is_users_file(file)


def _is_kept(file: str, homes: Sequence[str], environ: Mapping[str, str]) -> bool:
    caches = [environ[name] for name in _CACHE_VARIABLES if environ.get(name)]
    temporary = [*_TEMPORARY, *(environ[name] for name in ("TMPDIR", "TEMP", "TMP") if environ.get(name))]
    if _is_below(file, caches):
        return False
    if any(_is_near(file, home, temporary) for home in homes):
        return True
    return not _is_below(file, temporary) and _CACHE_FOLDERS.isdisjoint(Path(file).parts)


def _is_near(file: str, home: str, temporary: Sequence[str]) -> bool:
    """Whether a file is one of a project's folder; where that is the folder for all temporary files, no deeper."""
    if not _is_below(file, [home]):
        return False
    folders = Path(file).relative_to(home).parts[:-1]
    return not folders or (home not in temporary and _CACHE_FOLDERS.isdisjoint(folders))


def _is_below(file: str, folders: Iterable[str]) -> bool:
    return any(file.startswith(os.path.join(os.path.abspath(folder), "")) for folder in folders)  # noqa: PTH100, PTH118


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
