"""Reads the runs of an Aim repository with Aim's own package, and prints each as a line of JSON.

Usage: python aim_reading.py FOLDER. Aim keeps runs in RocksDB, which no other reader knows. What is read is a shadow of
the repository: Aim opens its databases for writing, and it shows no run that its own index does not have yet. Tables of
RocksDB never change once they are written, so that links to them are enough; all else is small, and copied.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

_INDEXES = ("meta/index", "seqs/index")
_OTHERS = ("texts", "images", "audios", "figures", "distributions")
_FOLLOWED = (".sst",)


def main(folder: str) -> None:
    """Print every run; 86 where there is no Aim."""
    try:
        from aim import Repo  # noqa: PLC0415 - whoever only looks at this file need not have it
    except ImportError:
        sys.exit(86)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Aim prints is no answer
    with tempfile.TemporaryDirectory(prefix="aim-shadow-") as shadow:
        _copy(Path(folder), Path(shadow) / ".aim")
        for run in Repo(shadow).iter_runs():
            answers.write(json.dumps(_row(run)) + "\n")
        answers.close()
        sys.stderr.flush()


def _copy(kept: Path, shadow: Path) -> None:
    for place, folders, names in os.walk(kept):
        below = Path(place).relative_to(kept)
        if below.as_posix() in _INDEXES:
            folders.clear()
            continue
        (shadow / below).mkdir(parents=True, exist_ok=True)
        for name in names:
            source = Path(place, name).absolute()
            if source.is_symlink() or not source.is_file():
                continue
            if name.endswith(_FOLLOWED):
                (shadow / below / name).symlink_to(source)
            else:
                shutil.copyfile(source, shadow / below / name)


def _row(run: Any) -> dict[str, Any]:
    series = []
    for metric in run.metrics():
        steps, (values, times) = metric.data.view(("val", "time")).items_list()
        series.append([_name(metric.name, metric.context.to_dict()), *map(_plain, (list(steps), times, values))])
    others = run.collect_sequence_info(_OTHERS, skip_last_value=True)
    left_out = [f"{kind} logged as {_name(item['name'], item['context'])}" for kind in others for item in others[kind]]
    return {
        "run": run.hash,
        "name": run.name or "",
        "experiment": run.experiment or "default",
        "active": run.active,
        "archived": bool(run.archived),
        "created": run.creation_time,
        "ended": run.end_time,
        "params": _plain(run.meta_run_attrs_tree.collect()),
        "tags": [str(tag) for tag in run.tags],
        "description": run.description or "",
        "series": series,
        "left_out": [*left_out, *(f"the artifact {name}" for name in run.artifacts)],
    }


def _name(name: str, context: dict[str, Any]) -> str:
    """A metric with where it was measured before it: val/loss."""
    parts = [str(value) if key == "subset" else f"{key}={value}" for key, value in sorted(context.items())]
    return "/".join([*parts, name])


def _plain(value: Any) -> Any:
    """JSON alone; numbers that it has no sign for are words."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


if __name__ == "__main__":
    main(sys.argv[1])
