"""Where the runs were made, short enough to stand beside a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from isorun.study.records import RunRecord, RunState

__all__ = ["machines"]


def machines(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """The different machines and frameworks of the finished runs, each with how many runs it made, most first."""
    counted = Counter(_facts(record) for record in records if record.state is RunState.FINISHED)
    return [{**dict(facts), "runs": number} for facts, number in counted.most_common()]


def _facts(record: RunRecord) -> tuple[tuple[str, str], ...]:
    effective = record.environment.get("effective", {})
    torch, gpu = effective.get("torch") or {}, effective.get("gpu") or {}
    facts = {
        "os": effective.get("platform", {}).get("os", ""),
        "python": effective.get("python", {}).get("version", ""),
        "torch": torch.get("version", ""),
        "cpu": effective.get("cpu", {}).get("model", ""),
        "gpu": ", ".join(gpu.get("devices", [])),
        "cuda": gpu.get("cuda", ""),
    }
    return tuple((name, str(value)) for name, value in facts.items() if value)
