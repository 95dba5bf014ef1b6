"""Records of the paper's studies without training: every cell gets the scores that a function gives it."""

from isorun.study.cells import cells_of
from record_builder import make_record

CPU = {"cpu": {"model": "EPYC"}, "torch": {"threads": 1}}
GPU = {**CPU, "gpu": {"devices": ["NVIDIA H200"]}}


def finished(cell, ap, rr, *, weights="w", initial="i", effective=None, **changes):
    """A finished run of a cell; on a GPU where its config asks for one, unless told otherwise."""
    on_gpu = cell.config_values.get("device") == "cuda"
    environment = {"requested": {}, "effective": effective or (GPU if on_gpu else CPU)}
    return make_record(
        cell,
        results={"map": ap, "mrr": rr},
        digests={"weights.initial": initial, "weights.final": weights},
        environment=environment,
        **changes,
    )


def records_of(studies, scores):
    """Study name to records; scores(cell) gives (AP, RR), or None for no run."""
    found = {}
    for study in studies:
        pairs = [(cell, scores(cell)) for cell in cells_of(study)]
        found[study.name] = [finished(cell, *score, weights=cell.id) for cell, score in pairs if score is not None]
    return found
