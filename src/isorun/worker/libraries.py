"""The math libraries this process has really loaded, with their hashes: package versions do not tell them apart.

Hashing hundreds of megabytes takes a while, so hashes are kept between runs by path, size and time of change.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from .cache import Cache

_MATH = re.compile(
    r"mkl|openblas|gomp|iomp|libomp|blas|lapack|cudnn|cublas|cudart|libcuda\b|cusparse|cusolver|cufft|dnnl|tbb|nccl|"
    r"libtorch_cpu|libtorch_cuda|libtensorflow|xla"
)
_BLOCK = 1 << 20


def loaded_math_libraries() -> list[dict[str, Any]]:
    """Name, size and SHA-256 of each loaded math library, by name."""
    hashes = Cache("library-hashes")
    found = [_description(path, hashes) for path in _loaded_files() if _MATH.search(path.name)]
    hashes.save()
    return sorted(found, key=lambda library: (library["name"], library["sha256"]))


def _loaded_files() -> set[Path]:
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    names = {line.split(maxsplit=5)[5] for line in maps.splitlines() if ".so" in line}
    return {Path(name) for name in names if name.startswith("/") and not name.endswith("(deleted)")}


def _description(path: Path, hashes: Cache) -> dict[str, Any]:
    stat = path.stat()
    return {"name": path.name, "size": stat.st_size, "sha256": _known_hash(path, stat, hashes)}


def _known_hash(path: Path, stat: os.stat_result, hashes: Cache) -> str:
    key = f"{path}|{stat.st_size}|{stat.st_mtime_ns}"
    known = hashes.get(key)
    if not isinstance(known, str):
        known = hash_of_file(path)
        hashes.put(key, known)
    return known


def hash_of_file(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_BLOCK), b""):
            hasher.update(block)
    return hasher.hexdigest()
