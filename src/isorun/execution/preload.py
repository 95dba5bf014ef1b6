"""What a warm fork server should import before it forks: found in the script's source, which is never executed.

Only frameworks that are known to survive a fork after their import are taken: they start no threads and open no
device when imported. Those that do are imported by each run itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isorun.worker.frameworks import preload_with, safe_to_preload

__all__ = ["imports_of_script", "modules_to_preload"]

_MOST_FILES: Final = 500


def modules_to_preload(script: Path, root: Path) -> tuple[str, ...]:
    """The safe modules that a script and the local modules it uses import, in the order in which they come.

    Behind them come the parts of these frameworks that would otherwise be imported at the first training step.

    The order is kept because the first library to load an OpenMP runtime decides which one the others get.
    root: the folder that leads `sys.path` when the script runs.
    """
    found = [name for name in imports_of_script(script, root) if name.partition(".")[0] in safe_to_preload()]
    parts = [part for name in found for part in preload_with(name.partition(".")[0])]
    return tuple(dict.fromkeys([*found, *parts]))


def imports_of_script(script: Path, root: Path) -> tuple[str, ...]:
    """All modules that are imported anywhere in the script or in local modules that it imports, each once."""
    found: dict[str, None] = {}
    seen: set[Path] = set()
    waiting = [script]
    while waiting and len(seen) < _MOST_FILES:
        file = waiting.pop(0)
        if file in seen:
            continue
        seen.add(file)
        for name in _imported_names(file, root):
            local = _local_file(name, root)
            if local is None:
                found[name] = None
            else:
                waiting.append(local)
    return tuple(found)


def _imported_names(file: Path, root: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # the run itself will say what is wrong with it
    for node in _in_source_order(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _names_of_from(node, file, root)


def _in_source_order(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _names_of_from(node: ast.ImportFrom, file: Path, root: Path) -> Iterator[str]:
    """The module itself, and for local packages the names too, since they may be modules."""
    module = _absolute_name(node, file, root)
    if module is None:
        return
    if module:
        yield module
    yield from (name for alias in node.names if _local_file(name := f"{module}.{alias.name}".strip("."), root))


def _absolute_name(node: ast.ImportFrom, file: Path, root: Path) -> str | None:
    """The full name that a relative import stands for; None if it leads out of the root."""
    if node.level == 0:
        return node.module or ""
    folder = file.parent
    for _ in range(node.level - 1):
        folder = folder.parent
    if not folder.is_relative_to(root):
        return None
    parts = [*folder.relative_to(root).parts, *([node.module] if node.module else [])]
    return ".".join(parts)


def _local_file(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    candidates = (base.with_name(base.name + ".py"), base / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)
