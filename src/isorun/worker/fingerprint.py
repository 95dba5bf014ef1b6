"""The environment as it took effect in this process: asked at the end, when everything the training uses is loaded.

Requests for threads and CPU paths are silently clamped or ignored by the libraries, so they are asked what they did.
Nothing here starts a device or imports a framework.
"""

from __future__ import annotations

import os
import platform
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Callable, Sequence

from . import libraries, packages
from .redaction import recorded_variables

_FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "numpy", "sklearn", "xgboost", "lightgbm", "catboost", "paddle")


def effective_environment(script: Path | None) -> dict[str, Any]:
    """Everything that says how this process computed; a part that cannot be read says why."""
    parts: dict[str, Callable[[], Any]] = {
        "python": _python,
        "platform": _platform,
        "cpu": _cpu,
        "frameworks": lambda: [name for name in _FRAMEWORKS if name in sys.modules],
        "torch": _torch,
        "gpu": _gpu,
        "libraries": libraries.loaded_math_libraries,
        "packages": packages.imported_packages,
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
        "hash_randomization": bool(sys.flags.hash_randomization),
        "optimize": sys.flags.optimize,
    }


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
    facts: dict[str, Any] = {"logical": os.cpu_count(), "affinity": len(os.sched_getaffinity(0))}
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


def _torch() -> dict[str, Any] | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    return {
        "version": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "mkldnn": torch.backends.mkldnn.is_available(),
        "mkl": torch.backends.mkl.is_available(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "default_dtype": str(torch.get_default_dtype()),
        "build": sha256(torch.__config__.show().encode()).hexdigest(),
        "blas": _blas_of(torch.__config__.show()),
    }


def _blas_of(config: str) -> str:
    lines = [line.strip(" -") for line in config.splitlines()]
    return next((line for line in lines if "Math Kernel Library" in line or line.startswith("LAPACK")), "")


def _gpu() -> dict[str, Any] | None:
    facts: dict[str, Any] = {}
    driver = Path("/proc/driver/nvidia/version")
    if driver.exists():
        facts["driver"] = driver.read_text(encoding="utf-8").splitlines()[0].strip()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        facts["cuda"] = torch.version.cuda
        facts["cudnn"] = torch.backends.cudnn.version()
        facts["tf32_matmul"] = torch.backends.cuda.matmul.allow_tf32
        facts["devices"] = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return facts or None


def _script(script: Path | None) -> dict[str, Any] | None:
    path = script or Path(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    return {"path": str(path), "sha256": sha256(path.read_bytes()).hexdigest()} if path.is_file() else None


def sources_digest(paths: Sequence[Path]) -> str:
    """One hash of the training's own source files, wherever they lie: a changed module is a changed training."""
    hashes = sorted(f"{path.name} {sha256(path.read_bytes()).hexdigest()}" for path in paths if path.is_file())
    return sha256("\n".join(hashes).encode()).hexdigest() if hashes else ""
