"""MLflow's folder of files: EXPERIMENT/RUN with meta.yaml, and a file for every parameter, tag and metric."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isorun.errors import InputError
from isorun.share.trackers import Chosen, GrowingSeries, TrackedRun, shown_where
from isorun.share.trackers.foreign_files import plain_files, refuse_missing, small_text
from isorun.share.trackers.mlflow import artifacts_elsewhere, tracked_run
from isorun.sources.trackers import mlflow_row

if TYPE_CHECKING:
    from isorun.share.trackers.mlflow import Mlflow

__all__ = ["read_folder"]

_META: Final = "meta.yaml"
_TRASH: Final = ".trash"
"""Where MLflow moves experiments that are deleted."""
_LINE: Final = re.compile(r"([A-Za-z_]\w*):(?: (.*))?")


def read_folder(folder: Path, tracker: Mlflow, chosen: Chosen) -> Iterator[TrackedRun]:
    """The runs of all experiments there; those that were deleted where it is asked."""
    refuse_missing(folder, "the folder of MLflow")
    kept, gone = _experiments(folder), _experiments(folder / _TRASH)
    if not kept and not gone:
        raise InputError(
            f"there is no experiment of MLflow in {shown_where(str(folder))}",
            found="no folder with a meta.yaml",
            allowed=tracker.where_hint,
        )
    names = {path.name: str(_meta(path / _META).get("name", path.name)) for path in (*gone, *kept)}
    wanted = chosen.only(names, "experiment", shown_where(str(folder)))
    deleted = damaged = 0
    for experiment in sorted((*kept, *gone), key=lambda one: (len(one.name), one.name)):
        if experiment.name not in wanted:
            continue
        found = []
        for path in sorted(experiment.iterdir()):
            if not path.is_dir() or path.is_symlink():
                continue
            meta = _meta(path / _META) if (path / _META).is_file() else {}
            is_deleted = experiment in gone or meta.get("lifecycle_stage") == "deleted"
            if "run_id" not in meta:
                damaged += any((path / part).is_dir() for part in ("metrics", "params"))
                continue
            deleted += is_deleted
            found += [(path, meta, is_deleted)] if chosen.deleted or not is_deleted else []
        for path, meta, is_deleted in sorted(
            found, key=lambda item: (_whole(item[1].get("start_time")) or 0, item[0].name)
        ):
            yield _run(path, meta, names[experiment.name], is_deleted=is_deleted)
    tracker.count_deleted(deleted, chosen)
    tracker.pass_over("folders of runs without a meta.yaml that names one", damaged)


def _experiments(folder: Path) -> list[Path]:
    """The folders of experiments there; that of models is none."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    paths = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]
    return [path for path in paths if (path / _META).is_file() and path.name != "models"]


def _run(folder: Path, meta: dict[str, str], experiment: str, *, is_deleted: bool) -> TrackedRun:
    texts = {
        kind: {_name(path, folder / kind): small_text(path).removesuffix("\n") for path in plain_files(folder / kind)}
        for kind in ("params", "tags")
    }
    left_out = [f"the artifact {_name(path, folder / 'artifacts')}" for path in plain_files(folder / "artifacts")]
    elsewhere = artifacts_elsewhere(meta.get("artifact_uri"))
    left_out += [elsewhere] if elsewhere else []
    points: dict[str, GrowingSeries] = {}
    for path in plain_files(folder / "metrics"):
        name = _name(path, folder / "metrics")
        axis = points[name] = GrowingSeries()
        for number, line in enumerate(small_text(path, 1 << 30).splitlines(), start=1):
            row = mlflow_row(line.split())
            if row is None:
                left_out.append(f"line {number} of the metric {name}, which is no value")
                continue
            axis.add(row[2], round(row[0] * 1_000_000), row[1])
        if not axis.values:
            left_out.append(f"the metric {name}, whose file has no value")
    status = _whole(meta.get("status"))
    return tracked_run(
        run_id=meta["run_id"],
        experiment=experiment,
        name=meta.get("run_name", ""),
        status=meta.get("status") if status is None else status,
        times=(_whole(meta.get("start_time")), _whole(meta.get("end_time"))),
        params=texts["params"],
        tags=texts["tags"],
        points={name: axis for name, axis in points.items() if axis.values},
        left_out=left_out,
        uri=meta.get("artifact_uri"),
        is_deleted=is_deleted,
    )


def _name(path: Path, folder: Path) -> str:
    """A name with a slash is a folder and a file."""
    return path.relative_to(folder).as_posix()


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?\d{1,18}", text) else None


def _meta(path: Path) -> dict[str, str]:
    """The keys of a flat YAML file as MLflow writes it: a key a line, long texts over several."""
    found: dict[str, str] = {}
    last = ""
    for line in small_text(path, 1 << 20).splitlines():
        if line.startswith("  ") and last:
            found[last] += f" {line.strip()}"
        elif match := _LINE.fullmatch(line):
            last = match[1]
            found[last] = match[2] or ""
    return {key: _scalar(text) for key, text in found.items()}


def _scalar(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return "" if text == "null" else text
