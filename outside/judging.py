"""What is to be said of a program's runs: pure functions over what isorun told and what is true."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from outside.programs import Program, Truth

COLUMNS: Final = ("first try", "metrics", "fixed-seed", "deterministic", "digest", "direction")
PRINTED_DIGITS: Final = 1e-9
"""Values are printed and read as text: what differs by more was not read right."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One cell of the table. held: yes, no, or None where the question does not arise. said: a word or a sentence."""

    held: bool | None
    said: str

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run left, as isorun tells it: state, final values by name, whole series, digests of the weights."""

    state: str
    reason: str
    values: Mapping[str, float]
    series: Mapping[str, Sequence[float]]
    digests: Mapping[str, str]


def true_value(truth: Truth, output: str, files_kept: Path) -> float | None:
    """The last value of a metric by the program's own word; None where it said none."""
    if not truth.file:
        return _last_match(truth.line, output)
    files = list(files_kept.glob(truth.file))
    if not files:
        return None
    newest = max(files, key=lambda path: path.stat().st_mtime)
    if truth.line:
        return _last_match(truth.line, newest.read_text(errors="replace"))
    if ".tfevents." in newest.name:
        return _last_event(newest, truth.key)
    if truth.key:
        return float(json.loads(newest.read_text())[truth.key])
    with newest.open(newline="") as file:
        values = [row[truth.column] for row in csv.DictReader(file) if row.get(truth.column)]
    return float(values[-1]) if values else None


def _last_match(pattern: str, text: str) -> float | None:
    matches = list(re.finditer(pattern, text))
    return _number_of(matches[-1]) if matches else None


def _last_event(path: Path, tag: str) -> float | None:
    """By TensorBoard's own reader, which isorun does not use."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415  takes a second

    events = EventAccumulator(str(path))
    events.Reload()
    return float(events.Scalars(tag)[-1].value) if tag in events.Tags()["scalars"] else None


def _number_of(match: re.Match[str]) -> float:
    groups = match.groupdict()
    if "of" in groups:
        return float(groups["hits"].replace(",", "")) / float(groups["of"].replace(",", ""))
    return float(groups["value"].replace(",", ""))


def same_value(found: float, true: float, truth: Truth) -> bool:
    """Whether isorun has the value that the program told."""
    scales = (1.0, 0.01, 100.0) if truth.percent else (1.0,)
    return any(math.isclose(found, true * scale, rel_tol=PRINTED_DIGITS, abs_tol=1e-12) for scale in scales) or (
        math.isnan(found) and math.isnan(true)
    )


def judge_first_try(exit_code: int, runs: Sequence[Seen], alone: str) -> Judgement:
    """Whether the command did what it does without isorun; alone: how it failed without, empty where it did not."""
    if exit_code == 0 and [run.state for run in runs] == ["finished"]:
        return Judgement(True, "yes")
    reason = runs[0].reason if runs else f"isorun run ended with {exit_code}"
    return Judgement(None, f"fails without isorun, too: {alone}") if alone else Judgement(False, reason)


def judge_metrics(program: Program, run: Seen, truths: Mapping[str, float | None]) -> Judgement:
    """Whether every metric that the program told was found, with its value."""
    if not program.metrics:
        return Judgement(
            not run.values, "none told, " + (_listed(run.values) + " found" if run.values else "none found")
        )
    wrong, missed = [], []
    for truth in program.metrics:
        true = truths[truth.name]
        found = named_so(truth, run.values)
        if true is None:
            missed.append(f"{truth.name} (the program did not tell it)")
        elif not found:
            missed.append(f"{truth.name} {true:g}")
        elif not any(same_value(run.values[name], true, truth) for name in found):
            wrong.append(f"{found[0]} {run.values[found[0]]:g} for {true:g}")
    said = [*(["wrong: " + "; ".join(wrong)] if wrong else []), *(["missed: " + "; ".join(missed)] if missed else [])]
    return Judgement(not said, ", ".join(said) or f"{len(program.metrics)} of {len(program.metrics)}")


def named_so(truth: Truth, values: Mapping[str, Any]) -> list[str]:
    """The names under which a metric was found."""
    return [name for name in values if re.fullmatch(truth.name, name)]


def beyond(program: Program, run: Seen) -> list[str]:
    """Names that isorun found and the declaration does not have: training losses, rates, or false ones."""
    expected = {name for truth in program.metrics for name in named_so(truth, run.values)}
    return sorted(set(run.values) - expected)


def judge_identical(program: Program, runs: Sequence[Seen]) -> Judgement:
    """Whether runs with the same seed are one training: by their weights where they are known, else by their values."""
    finished = [run for run in runs if run.state == "finished"]
    if len(finished) < 2:
        reasons = [run.reason for run in runs if run.state != "finished"]
        return Judgement(False, f"{len(finished)} of 2 finished" + (f": {reasons[0]}" if reasons else ""))
    final = [{name: digest for name, digest in run.digests.items() if "final" in name} for run in finished]
    names = sorted({name for truth in program.metrics for name in named_so(truth, finished[0].values)})
    differing = [
        name for name in names if not _all_same([[*run.series.get(name, ()), run.values.get(name)] for run in finished])
    ]
    if any(final) and not _all_same(final):
        return Judgement(
            False, "weights differ" + (f"; {_listed(differing)} differ" if differing else ", values do not")
        )
    if differing:
        return Judgement(False, f"{_listed(differing)} differ" + (", weights do not" if any(final) else ""))
    if any(final):
        return Judgement(True, "same weights")
    return Judgement(True if names else None, "same values" if names else "nothing to compare")


def judge_digest(runs: Sequence[Seen]) -> Judgement:
    """Whether the weights at the end have a digest."""
    finished = [run for run in runs if run.state == "finished"]
    if not finished:
        return Judgement(None, "no finished run")
    names = sorted({name for run in finished for name in run.digests if "final" in name})
    return Judgement(bool(names), _listed(names) or "none")


def judge_direction(program: Program, report: Mapping[str, Any]) -> Judgement:
    """Whether the metric that runs are judged by is one of the program's, and its direction right."""
    if not program.metrics:
        return Judgement(None, "no metric")
    if not report.get("metrics"):
        return Judgement(False, "no metric chosen")
    chosen = report["metrics"][0]
    truths = [truth for truth in program.metrics if re.fullmatch(truth.name, chosen["name"])]
    if not truths:
        return Judgement(False, f"judged by {chosen['name']}")
    direction = chosen["direction"] or ""
    said = f"{chosen['name']} {direction or 'unknown'}"
    return Judgement(direction == truths[0].direction, said)


def _all_same(values: Sequence[Any]) -> bool:
    # As text, so that two NaN in the same place are the same.
    return len({repr(value) for value in values}) == 1


def _listed(names: Mapping[str, Any] | Sequence[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
