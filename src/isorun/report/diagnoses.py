"""What is wrong inside trainings, as a view: problems, symptoms, what to try, and what could not be looked for."""

from __future__ import annotations

from isorun.diagnose import Diagnosis
from isorun.report import Column, Listing, Table, View

__all__ = ["diagnosis_view"]


def diagnosis_view(result: Diagnosis) -> View:
    """What was found first, then where, what shows it, and what to try."""
    found = [(item.trace, problem) for item in result.examinations for problem in item.problems]
    clock = "step" if found and all(trace.clock == "step" for trace, _ in found) else "epoch"
    problems = Table(
        name="problems",
        title="Problems",
        columns=tuple(
            Column(title, key=title in {"run", "problem"}) for title in ("run", "problem", clock, "evidence")
        ),
        rows=tuple(
            (
                trace.name,
                problem.kind,
                _moment(problem.epoch, trace.clock if trace.clock != clock else ""),
                problem.evidence,
            )
            for trace, problem in found
        ),
    )
    symptoms = Table(
        name="symptoms",
        title="Symptoms",
        columns=(
            Column("run", key=True),
            *(Column(title) for title in ("architecture", "convergence", "gradient", "weight")),
        ),
        rows=tuple((item.trace.name, *item.symptoms) for item in result.examinations),
        notes=("unknown: nothing was watched or told that shows it.",),
    )
    remedies = {problem.kind: f"{problem.kind}: {'; '.join(problem.remedies)}" for _, problem in found}
    missing: dict[str, list[str]] = {}
    for kind, why in result.unexamined.items():
        missing.setdefault(why, []).append(kind)
    listings = [Listing("what to try, the likeliest first", tuple(remedies.values()))] if found else []
    if missing:
        told = tuple(f"{', '.join(kinds)}: {why}" for why, kinds in missing.items())
        listings.append(Listing("what could not be looked for, and what is missing", told))
    return View((_found(result),), (problems, symptoms) if found else (symptoms,), listings=tuple(listings))


def _moment(epoch: float | None, clock: str) -> str:
    """The epoch or step of a problem. clock: which of the two it is, where that has to be said."""
    return "–" if epoch is None else f"{clock} {epoch:g}".lstrip()


def _found(result: Diagnosis) -> str:
    runs = len(result.examinations)
    if not result.problems:
        looked = "no problem found" if result.looked else "nothing could be looked at"
        return f"{result.subject}: {looked}{f' in {runs} runs' if runs > 1 else ''}."
    if runs == 1:
        told = ", ".join(
            problem.kind if problem.epoch is None else f"{problem.kind} ({_moment(problem.epoch, item.trace.clock)})"
            for item in result.examinations
            for problem in item.problems
        )
        return f"{result.subject}: {told}."
    told = ", ".join(f"{kind} in {number} of {runs} runs" for kind, number in result.common.items())
    return f"{result.subject}: {told}."
