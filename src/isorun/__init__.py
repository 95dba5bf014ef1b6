"""isorun: is this training result real, or is it noise, and what made it so?

Inside a training, `log`, `result` and `digest` record what happens; outside isorun they do nothing. `watch` looks into
a model while it trains, there and here.
Everything else loads when it is first used, so that importing isorun costs a training next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isorun import repair, stats
    from isorun.analysis.agreements.shared_runs import AgreementTable
    from isorun.analysis.checks import Check
    from isorun.analysis.comparison import Comparison
    from isorun.analysis.descriptions import EnvironmentDescription
    from isorun.analysis.environments import EnvironmentDiff
    from isorun.analysis.evidence import Condition
    from isorun.analysis.factors import FactorEffects
    from isorun.analysis.leaderboards.leaderboard import Leaderboard
    from isorun.analysis.mixed.result import MixedResult
    from isorun.analysis.planning.claims import JudgedGain
    from isorun.analysis.planning.power import PowerResult
    from isorun.analysis.prices.price import Price
    from isorun.analysis.replications import Replication
    from isorun.analysis.replications.replays import Replay
    from isorun.analysis.sequential import Decision, Verdict
    from isorun.analysis.spreads import GroupSummary, Summaries
    from isorun.analysis.studies.bisection import Bisection
    from isorun.analysis.studies.record_table import Records
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.bisecting import bisect
    from isorun.checking import check
    from isorun.claiming import claim
    from isorun.deciding import StudyDecision, decide
    from isorun.describing import env_describe, env_diff
    from isorun.diagnose import Diagnosis
    from isorun.diagnose.audit import Audit
    from isorun.errors import IsorunError
    from isorun.in_progress import Status, status
    from isorun.pricing import price
    from isorun.questions import agree, compare, factors, mixed_model, power, rank, summarize
    from isorun.repair.diagnosis import SearchDiagnosis
    from isorun.repair.racing import Race
    from isorun.reproducing import Reproduction, reproduce
    from isorun.scheduling import Outcome
    from isorun.share.exporting import Exported, export_runs
    from isorun.share.importing import Imported, import_runs
    from isorun.share.replaying import replay
    from isorun.share.replicating import replicate
    from isorun.study.design import Study
    from isorun.study.records import RunRecord
    from isorun.workflow import analyse, audit, cells, doctor, records, run

__version__ = "0.1.0.dev0"
__all__ = [
    "AgreementTable",
    "Audit",
    "Bisection",
    "Check",
    "Comparison",
    "Condition",
    "Decision",
    "Diagnosis",
    "EnvironmentDescription",
    "EnvironmentDiff",
    "Exported",
    "FactorEffects",
    "GroupSummary",
    "Imported",
    "IsorunError",
    "JudgedGain",
    "Leaderboard",
    "MixedResult",
    "Outcome",
    "PowerResult",
    "Price",
    "Race",
    "Records",
    "Replay",
    "Replication",
    "Reproduction",
    "RunRecord",
    "SearchDiagnosis",
    "Status",
    "Study",
    "StudyDecision",
    "StudyResult",
    "Summaries",
    "Verdict",
    "agree",
    "analyse",
    "audit",
    "bisect",
    "cells",
    "check",
    "claim",
    "compare",
    "decide",
    "digest",
    "doctor",
    "env_describe",
    "env_diff",
    "export_runs",
    "factors",
    "import_runs",
    "log",
    "mixed_model",
    "power",
    "price",
    "rank",
    "records",
    "repair",
    "replay",
    "replicate",
    "reproduce",
    "result",
    "run",
    "stats",
    "status",
    "summarize",
    "watch",
]

_LAZY = {
    "AgreementTable": "isorun.analysis.agreements.shared_runs",
    "Audit": "isorun.diagnose.audit",
    "Bisection": "isorun.analysis.studies.bisection",
    "Check": "isorun.analysis.checks",
    "Comparison": "isorun.analysis.comparison",
    "Condition": "isorun.analysis.evidence",
    "Decision": "isorun.analysis.sequential",
    "Diagnosis": "isorun.diagnose",
    "EnvironmentDescription": "isorun.analysis.descriptions",
    "EnvironmentDiff": "isorun.analysis.environments",
    "Exported": "isorun.share.exporting",
    "FactorEffects": "isorun.analysis.factors",
    "GroupSummary": "isorun.analysis.spreads",
    "Imported": "isorun.share.importing",
    "IsorunError": "isorun.errors",
    "JudgedGain": "isorun.analysis.planning.claims",
    "Leaderboard": "isorun.analysis.leaderboards.leaderboard",
    "MixedResult": "isorun.analysis.mixed.result",
    "Outcome": "isorun.scheduling",
    "PowerResult": "isorun.analysis.planning.power",
    "Price": "isorun.analysis.prices.price",
    "Race": "isorun.repair.racing",
    "Records": "isorun.analysis.studies.record_table",
    "Replay": "isorun.analysis.replications.replays",
    "Replication": "isorun.analysis.replications",
    "Reproduction": "isorun.reproducing",
    "RunRecord": "isorun.study.records",
    "SearchDiagnosis": "isorun.repair.diagnosis",
    "Status": "isorun.in_progress",
    "Study": "isorun.study.design",
    "StudyDecision": "isorun.deciding",
    "StudyResult": "isorun.analysis.studies.study_result",
    "Summaries": "isorun.analysis.spreads",
    "Verdict": "isorun.analysis.sequential",
    "agree": "isorun.questions",
    "analyse": "isorun.workflow",
    "audit": "isorun.workflow",
    "bisect": "isorun.bisecting",
    "cells": "isorun.workflow",
    "check": "isorun.checking",
    "claim": "isorun.claiming",
    "compare": "isorun.questions",
    "decide": "isorun.deciding",
    "doctor": "isorun.workflow",
    "env_describe": "isorun.describing",
    "env_diff": "isorun.describing",
    "export_runs": "isorun.share.exporting",
    "factors": "isorun.questions",
    "import_runs": "isorun.share.importing",
    "mixed_model": "isorun.questions",
    "power": "isorun.questions",
    "price": "isorun.pricing",
    "rank": "isorun.questions",
    "records": "isorun.workflow",
    "replay": "isorun.share.replaying",
    "replicate": "isorun.share.replicating",
    "reproduce": "isorun.reproducing",
    "run": "isorun.workflow",
    "status": "isorun.in_progress",
    "summarize": "isorun.questions",
}
"""A name to the module it is in."""


def log(
    step: float | None = None,
    *,
    epoch: float | None = None,
    per_class: Any = None,
    predictions: Any = None,
    **metrics: Any,
) -> None:
    """Record one row of metrics, usually once an epoch: `isorun.log(epoch=3, val_loss=0.2, val_acc=0.97)`."""
    worker = _worker() or sys.modules.get("isorun.worker.api")  # the latter where `watch` was called outside isorun
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


def watch(model: Any, *, every: int | None = None) -> Any:
    """Watch a model's training from inside: `watcher = isorun.watch(model)` before it begins, and nothing else.

    Under `isorun run` the rows are part of the record, and `isorun doctor` says what is wrong; alone they are in
    `watcher.rows`. every: sample each so-many-th step; by default as many as 0.1 % of the training's time pays for.
    """
    worker = _worker() or importlib.import_module("isorun.worker.api")
    return worker.watch(model, every=every)


def _worker() -> Any:
    """The worker inside this training process; it was loaded by its path, under a name of its own."""
    return sys.modules.get("isorun_worker.api")


def __getattr__(name: str) -> Any:
    if name in ("repair", "stats"):
        return importlib.import_module(f"isorun.{name}")
    if name in _LAZY:
        importlib.import_module("isorun.showing").install()  # results tell themselves
        if "ipykernel" in sys.modules:
            importlib.import_module("isorun.notebooks").install()  # and work is shown as it goes on
        found = getattr(importlib.import_module(_LAZY[name]), name)
        if not isinstance(found, type):
            found = globals()[name] = importlib.import_module("isorun.errors").checked(found, __name__)
        return found
    raise AttributeError(f"module 'isorun' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
