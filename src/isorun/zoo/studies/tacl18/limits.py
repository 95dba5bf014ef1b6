"""What could not be had, and why: the paper's own environments, and what this machine has not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from isorun.study.records import RunRecord
from isorun.zoo.paper import Request
from isorun.zoo.studies.tacl18.data_needed import has_train_all
from isorun.zoo.studies.tacl18.design import NAMES
from isorun.zoo.studies.tacl18.environments import CPU_PATHS, MOST_THREADS, cpu_paths, thread_counts
from isorun.zoo.studies.tacl18.measured import runs_of

__all__ = ["not_had"]


def not_had(request: Request, parts: Sequence[str], records: Mapping[str, Sequence[RunRecord]]) -> tuple[str, ...]:
    """A sentence for each thing that is in the paper and not in our tables."""
    empty = [name for part in parts for name in NAMES[part] if not records.get(name)]
    return (*_always(parts), *_gpu(parts, records), *_machine(parts), *_data(request, parts), *_no_runs(empty))


def _always(parts: Sequence[str]) -> Iterator[str]:
    yield (
        "Tables 4 and 5 (versions of the model's code, PyTorch 0.1.9 to 0.2.0): those versions of PyTorch have no "
        "packages for today's Python."
    )
    yield "The paper's word vectors (aquaint+wiki, 50 dimensions) are not published; GloVe vectors stand in."
    if "cpu-paths" in parts:
        yield (
            "Table 6's libraries: one torch package is linked against one math library, so MKL cannot be exchanged for "
            "OpenBLAS; the paths that MKL, oneDNN and ATen offer on this processor are varied instead."
        )


def _gpu(parts: Sequence[str], records: Mapping[str, Sequence[RunRecord]]) -> Iterator[str]:
    on_gpu = {run.side for part in parts for name in NAMES[part] for run in runs_of(records.get(name, ()))}
    if "GPU" in on_gpu:
        return
    if "devices" in parts:
        yield "Table 8: no run was made on a GPU, because the driver shows none here or --device cpu was asked for."
    if "seeds" in parts:
        yield "The GPU side of Figure 2, Table 9 and Figure 3: a second CPU path (oneDNN off) stands in its place."


def _machine(parts: Sequence[str]) -> Iterator[str]:
    most = thread_counts()[-1]
    if "threads" in parts and most < MOST_THREADS:
        yield f"Table 7 beyond {most} threads: this process may use {most} CPUs."
    missing = [path.name for path in CPU_PATHS if path not in cpu_paths()]
    if "cpu-paths" in parts and missing:
        yield f"CPU paths that this processor has not: {', '.join(missing)}."


def _data(request: Request, parts: Sequence[str]) -> Iterator[str]:
    if "data" not in parts:
        return
    if request.scale in {"smoke", "cpu"}:
        yield f"TRAIN-ALL of TrecQA: too long for scale {request.scale}."
    elif not has_train_all():
        yield "TRAIN-ALL of TrecQA is not in the data folder (isorun data get trecqa brings it)."


def _no_runs(empty: Sequence[str]) -> Iterator[str]:
    names = [name for name in empty if name != "tacl18-devices"]
    if names:
        yield f"No runs yet of: {', '.join(names)}."
