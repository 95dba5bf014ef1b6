"""What could not be had, and why: the paper's own environments, and what the machine of the runs has not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from isorun.study.records import RunRecord
from isorun.zoo.paper import Request
from isorun.zoo.studies.tacl18.amounts import AMOUNTS
from isorun.zoo.studies.tacl18.data_needed import has_train_all
from isorun.zoo.studies.tacl18.design import study_names
from isorun.zoo.studies.tacl18.environment_tables import thread_number
from isorun.zoo.studies.tacl18.environments import CPU_PATHS, cpu_paths
from isorun.zoo.studies.tacl18.findings import Findings

__all__ = ["not_had"]

_VERSIONS: Final = (
    "Tables 4 and 5 (versions of the model's code, PyTorch 0.1.9 to 0.2.0): those versions of PyTorch have no packages "
    "for today's Python."
)
_VECTORS: Final = "The paper's word vectors (aquaint+wiki, 50 dimensions) are not published; GloVe vectors stand in."
_LIBRARIES: Final = (
    "Table 6's libraries: one torch package is linked against one math library, so MKL cannot be exchanged for "
    "OpenBLAS; the paths that MKL, oneDNN and ATen offer on the processor are varied instead."
)


_ON_GPU: Final = ("devices", "masks")
"""Parts that are not planned without a GPU."""


def not_had(
    request: Request, parts: Sequence[str], found: Findings, records: Mapping[str, Sequence[RunRecord]]
) -> tuple[str, ...]:
    """A sentence for each thing that is in the paper and not in our tables."""
    always = () if request.only else (_VERSIONS,)
    vectors = (_VECTORS,) if set(found.begun) - {"baseline"} and not found.made_data else ()
    return (
        *always,
        *vectors,
        *_gpu(parts, found),
        *_machine(request.scale, found),
        *_data(request.scale, found),
        *_no_runs(request, parts, records),
    )


def _gpu(parts: Sequence[str], found: Findings) -> Iterator[str]:
    if "devices" in parts and not any(item.side == "GPU" for item in found.conditions["devices"]):
        yield "Table 8: no run was made on a GPU, because the driver shows none here or --device cpu was asked for."
    if "masks" in parts and not found.masks:
        yield "Masks by device: no GPU run, and two CPU paths draw the same masks."
    if found.seeds and not any("GPU" in item.sides for item in found.seeds):
        yield "The GPU side of Figure 2, Table 9 and Figure 3: a second CPU path (oneDNN off) stands in its place."


def _machine(scale: str, found: Findings) -> Iterator[str]:
    if "cpu-paths" in found.begun:
        yield _LIBRARIES
        had = {item.environment for item in found.conditions["cpu-paths"]}
        missing = [path.name for path in CPU_PATHS if path not in cpu_paths() and path.name not in had]
        if missing:
            yield f"CPU paths that this processor has not: {', '.join(missing)}."
    counts = [thread_number(item.environment) for item in found.conditions["threads"]]
    if counts and max(counts) < AMOUNTS[scale].threads:
        yield f"Table 7 beyond {max(counts)} threads: the runs could use no more CPUs."


def _data(scale: str, found: Findings) -> Iterator[str]:
    if not found.versions or any("TRAIN-ALL" in version.name for version in found.versions):
        return
    if scale in {"smoke", "cpu"}:
        yield f"TRAIN-ALL of TrecQA: too long for scale {scale}."
    elif not has_train_all():
        yield "TRAIN-ALL of TrecQA is not in the data folder (isorun data get trecqa brings it)."


def _no_runs(request: Request, parts: Sequence[str], records: Mapping[str, Sequence[RunRecord]]) -> Iterator[str]:
    """Parts that were not begun, by name; a part of which one study was begun, by its other study."""
    missing = []
    for part in (part for part in parts if part not in _ON_GPU):
        names = study_names(part, request.scale)
        empty = [name for name in names if not records.get(name)]
        missing += [part] if names and len(empty) == len(names) else empty
    if missing:
        yield f"No runs yet of: {', '.join(missing)} (isorun reproduce tacl18 --scale {request.scale} makes them)."
