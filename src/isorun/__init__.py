"""isorun: is this training result real, or is it noise, and what made it so?

Inside a training, `log`, `result` and `digest` record what happens; outside isorun they do nothing.
Everything else loads when it is first used, so that importing isorun costs a training next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isorun.deciding import decide
    from isorun.errors import IsorunError
    from isorun.questions import agree, compare, mixed_model, power, rank, summarize
    from isorun.reproducing import reproduce
    from isorun.study.design import Study
    from isorun.workflow import analyse, plan, records, run

__version__ = "0.1.0.dev0"
__all__ = [
    "IsorunError",
    "Study",
    "agree",
    "analyse",
    "compare",
    "decide",
    "digest",
    "log",
    "mixed_model",
    "plan",
    "power",
    "rank",
    "records",
    "reproduce",
    "result",
    "run",
    "summarize",
]

_LAZY = {
    "agree": "isorun.questions",
    "compare": "isorun.questions",
    "decide": "isorun.deciding",
    "mixed_model": "isorun.questions",
    "power": "isorun.questions",
    "rank": "isorun.questions",
    "summarize": "isorun.questions",
    "reproduce": "isorun.reproducing",
    "IsorunError": "isorun.errors",
    "Study": "isorun.study.design",
    "analyse": "isorun.workflow",
    "plan": "isorun.workflow",
    "records": "isorun.workflow",
    "run": "isorun.workflow",
}


def log(
    step: float | None = None,
    *,
    epoch: float | None = None,
    per_class: Any = None,
    predictions: Any = None,
    **metrics: Any,
) -> None:
    """Record one row of metrics, usually once an epoch: `isorun.log(epoch=3, val_loss=0.2, val_acc=0.97)`."""
    worker = _worker()
    if worker is not None:
        worker.log(step, epoch=epoch, per_class=per_class, predictions=predictions, **metrics)


def result(
    *, per_class: Any = None, predictions: Any = None, labels: Any = None, weights: Any = None, **values: Any
) -> None:
    """Record final values: `isorun.result(test_acc=0.97, predictions=predicted, labels=truth, weights=model)`."""
    worker = _worker()
    if worker is not None:
        worker.result(per_class=per_class, predictions=predictions, labels=labels, weights=weights, **values)


def digest(name: str, value: Any) -> None:
    """Record a digest of arrays, a state dict or a model under a name."""
    worker = _worker()
    if worker is not None:
        worker.digest(name, value)


def _worker() -> Any:
    """The worker inside this training process; it was loaded by its path, under a name of its own."""
    return sys.modules.get("isorun_worker.api")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'isorun' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
