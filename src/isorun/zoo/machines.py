"""Machines: whether this one has a GPU, and where recorded runs were made."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from isorun.study.records import RunRecord, RunState

__all__ = ["gpu_at_hand", "gpu_is_visible", "machines"]

_DRIVER_PATIENCE_S: Final = 10
_FRAMEWORKS: Final = ("jax", "keras", "tensorflow", "tensorflow-cpu")
"""Told where a run imported them, as torch is."""


def gpu_at_hand(device: str = "auto") -> bool:
    """Whether GPU runs are planned, decided without a framework.

    "cpu": never; "cuda": always, since records may come from another machine; "auto": where a GPU is visible.
    """
    return device == "cuda" if device != "auto" else gpu_is_visible()


def gpu_is_visible() -> bool:
    """Whether the driver shows a device (/dev/nvidia0, …, or a line of `nvidia-smi -L`) that no variable hides."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in {"", "-1"}:
        return False
    return any(_device_files()) or _listed_by_the_driver()


def _device_files(folder: Path = Path("/dev")) -> Iterator[Path]:
    return folder.glob("nvidia[0-9]*")


def _listed_by_the_driver() -> bool:
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    try:
        listed = subprocess.run(
            [program, "-L"], capture_output=True, text=True, timeout=_DRIVER_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout


def machines(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """The different machines and frameworks of the finished runs, each with how many runs it made, most first."""
    counted = Counter(_facts(record) for record in records if record.state is RunState.FINISHED)
    return [{**dict(facts), "runs": number} for facts, number in counted.most_common()]


def _facts(record: RunRecord) -> tuple[tuple[str, str], ...]:
    effective = record.environment.get("effective", {})
    torch, gpu = effective.get("torch") or {}, effective.get("gpu") or {}
    imported = effective.get("packages") or {}
    facts = {
        "os": effective.get("platform", {}).get("os", ""),
        "python": effective.get("python", {}).get("version", ""),
        "torch": torch.get("version", ""),
        **{name: imported[name] for name in _FRAMEWORKS if name in imported},
        "cpu": effective.get("cpu", {}).get("model", ""),
        "gpu": ", ".join(gpu.get("devices", [])),
        "cuda": gpu.get("cuda", ""),
    }
    return tuple((name, str(value)) for name, value in facts.items() if value)
