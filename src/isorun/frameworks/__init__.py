"""Frameworks, one line each: what tells isorun of epochs, final values and predictions, without a print.

    from isorun.frameworks.lightning import IsorunCallback        Trainer(callbacks=[IsorunCallback()])
    from isorun.frameworks.transformers import IsorunCallback     Trainer(callbacks=[IsorunCallback()])
    from isorun.frameworks.keras import IsorunCallback            model.fit(…, callbacks=[IsorunCallback()])
    from isorun.frameworks.accelerate import IsorunTracker        Accelerator(log_with=IsorunTracker())
    from isorun.frameworks.jax import log                         log(epoch=…, loss=…), also in compiled code
    from isorun.frameworks.optax import logged                    logged(optax.adam(1e-3), every=100)
    from isorun.frameworks.sklearn import cross_validate          cross_validate(estimator, X, y, cv=5, seeds=5)

Every member is a few lines around `isorun.log` and `isorun.result`, and promises:
- Outside isorun it does nothing. `cross_validate`, which is asked for its answer, gives that.
- A metric keeps the name that the framework gives and prints it by. What is logged wins over what is printed, so a
  training that does both has each value once. Epochs are numbered as the framework prints them.
- Where several ranks train, the first one tells.
- A framework that is not installed is named.

Trainings may run in an interpreter without isorun, where the worker serves this folder (`worker/api.py`): nothing here
imports more than `isorun` itself, the standard library and its framework, and all of it runs in Python 3.8.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Iterable, Mapping

__all__ = ["classes_of", "is_recording", "missing", "numbers_of", "stand_for"]


def is_recording() -> bool:
    """Whether this process is part of a run of isorun's."""
    return "isorun_worker.api" in sys.modules and bool(os.environ.get("ISORUN_RUN_DIR"))


def stand_for(names: Iterable[str]) -> None:
    """What is logged stands for these metrics, too, which the framework prints under further names."""
    if is_recording():
        sys.modules["isorun_worker.api"].stand_for(names)


def missing(framework: str, module: str) -> ModuleNotFoundError:
    """What is raised where a framework is not installed. module: the member of this room that needs it.

    An error of Python's own kind: no isorun need be installed beside the training.
    """
    how = f"{module} needs it: {sys.executable} -m pip install {framework}"
    return ModuleNotFoundError(f"No module named {framework!r}; {how}", name=framework)


def numbers_of(metrics: Mapping[Any, Any]) -> dict[str, Any]:
    """The metrics that are one number; texts, lists and what is not there are no metrics."""
    return {str(name): value for name, value in metrics.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return not isinstance(value, bool)
    size = getattr(value, "numel", None)  # a tensor of PyTorch, whose `size` is a method
    size = size() if callable(size) else getattr(value, "size", None)
    return size == 1 and hasattr(value, "item")


def classes_of(predicted: Any, labels: Any = None) -> tuple[Any, Any]:
    """Predicted and true classes as NumPy arrays: of scores by class the largest; numbers stay as they are.

    labels: one number an example, or one by class (one-hot); None where they are not known.
    """
    import numpy as np

    found, true = _array(predicted), None if labels is None else _array(labels)
    if true is not None and true.ndim == 2 and true.shape == found.shape and true.shape[1] > 1:
        true = true.argmax(axis=1)
    if true is not None and true.ndim == 2 and true.shape[1] == 1:
        true = true[:, 0]
    are_classes = true is None or np.array_equal(true, np.asarray(true, dtype=np.int64))
    if found.ndim == 2 and found.shape[1] > 1 and are_classes:
        found = found.argmax(axis=1)
    elif found.ndim == 2 and found.shape[1] == 1:
        found = _of_one_score(found[:, 0], true) if true is not None and are_classes else found[:, 0]
    return found, true.astype(np.int64) if true is not None and are_classes else true


def _of_one_score(scores: Any, labels: Any) -> Any:
    """The class of each of two from one probability; anything else as it is."""
    is_probability = scores.dtype.kind == "f" and scores.size and scores.min() >= 0.0 and scores.max() <= 1.0
    return (scores > 0.5).astype("int64") if is_probability and set(labels.tolist()) <= {0, 1} else scores


def _array(values: Any) -> Any:
    import numpy as np

    for name in ("detach", "cpu"):  # a tensor of PyTorch, perhaps of a device
        values = getattr(values, name)() if hasattr(values, name) else values
    if str(getattr(values, "dtype", "")) in {"torch.bfloat16", "bfloat16"}:  # which NumPy does not know
        values = values.float() if hasattr(values, "float") else values.astype("float32")
    return np.asarray(values)
