"""The findings as plain JSON; the keys are documented in docs/papers/fewshot.md."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from isorun.analysis.mixed.result import Difference
from isorun.zoo.studies.fewshot.findings import Findings
from isorun.zoo.studies.fewshot.hypotheses import Judgement, published_judgements
from isorun.zoo.studies.fewshot.published import TABLE_1, TABLE_2, TABLE_4, TABLE_5
from isorun.zoo.studies.fewshot.tables import random_tests

__all__ = ["numbers_of"]


def numbers_of(found: Findings) -> dict[str, Any]:
    """Ours, and under "published" the paper's."""
    return {
        "scale": found.scale,
        "data": list(found.data),
        "runs": len(found.collected.runs),
        "failed": dict(found.collected.failed),
        "unusable": dict(found.collected.unusable),
        "without_runs": list(found.without_runs),
        "formula": found.model.formula,
        "fitting": _fitting(found),
        "why_no_model": found.model.why_not,
        "table_1": [asdict(row) for row in random_tests(found.model)],
        "table_2": {name: _difference(found.model.rerun(name)) for name in found.experiments},
        "table_4": _f_test(found),
        "table_5": {row.control: asdict(row) for row in found.controls},
        "hypotheses": [_judgement(row) for row in found.judged],
        "identical_settings": asdict(found.identical),
        "each_once": _each_once(found),
        "variance_shares": [asdict(row) for row in found.nested.shares],
        "seed_p": found.nested.seed_p,
        "published": {
            "table_1": [asdict(row) for row in TABLE_1],
            "table_2": {name: asdict(row) for name, row in TABLE_2.items()},
            "table_4": asdict(TABLE_4),
            "table_5": {name: asdict(row) for name, row in TABLE_5.items()},
            "hypotheses": [_judgement(row) for row in published_judgements()],
        },
    }


def _difference(row: Difference | None) -> dict[str, float] | None:
    if row is None:
        return None
    return {key: getattr(row, key) for key in ("estimate", "se", "df", "lower", "upper", "p")}


def _f_test(found: Findings) -> dict[str, Any] | None:
    return None if found.model.f_test is None else asdict(found.model.f_test)


def _fitting(found: Findings) -> dict[str, Any]:
    """The model that fits: formula, results it was fitted to, and the test of every random effect."""
    model = found.fitting
    tests = model.result.ranova if model.result else ()
    return {
        "formula": model.formula,
        "results": model.rows,
        "why_no_model": model.why_not,
        "random": [{"term": row.term, "lrt": row.lrt, "p": row.p_boundary} for row in tests],
        "reruns": {name: _difference(model.rerun(name)) for name in found.experiments},
        "without_noise": None if model.without_noise is None else asdict(model.without_noise),
    }


def _each_once(found: Findings) -> dict[str, Any] | None:
    once = found.once
    return None if once is None else {"runs": once.runs, "results": once.results, "h2": _judgement(once.h2)}


def _judgement(row: Judgement) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if key not in ("words", "fitting_words")}
