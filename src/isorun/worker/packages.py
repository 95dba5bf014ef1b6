"""The installed distributions behind the modules this process has imported, with their versions.

`importlib.metadata` reads every distribution's metadata. The names of their folders already hold name and version, and
which modules they install is kept between runs until the folder around them changes.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from .cache import Cache

_FOLDER = re.compile(r"^(?P<name>.+?)-(?P<version>[^-]+?)(-py[\d.]+)?\.(dist-info|egg-info)$")


def imported_packages() -> dict[str, str]:
    """Name to version of each distribution that a top-level module of this process came from."""
    imported = {name.partition(".")[0] for name in list(sys.modules)}
    cache = Cache("installed-modules")
    versions: dict[str, str] = {}
    for entry in dict.fromkeys(sys.path):
        for information, modules in _installed_in(entry or ".", cache).items():
            match = _FOLDER.match(information)
            if match is not None and not imported.isdisjoint(modules):
                versions.setdefault(match["name"].lower().replace("_", "-"), match["version"])
    cache.save()
    return dict(sorted(versions.items()))


def _installed_in(folder: str, cache: Cache) -> dict[str, list[str]]:
    """The top-level modules of each distribution in a folder, by the name of its information folder."""
    try:
        key = f"{folder}|{os.stat(folder).st_mtime_ns}"  # noqa: PTH116  entries may be zip files or missing
        names = [] if cache.get(key) is not None else os.listdir(folder)  # noqa: PTH208  thousands of names
    except OSError:
        return {}
    known = cache.get(key)
    if not isinstance(known, dict):
        known = {name: _modules_of(Path(folder) / name) for name in sorted(names) if _FOLDER.match(name)}
        cache.put(key, known)
    return known


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
