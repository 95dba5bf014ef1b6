"""The three hypotheses of a study of repeated, seeded reruns, judged from one mixed model.

H1: repeats with the same configuration and seed are stable (no variance between repeats).
H2: runs that differ in their seed only are stable (no variance between seeds).
H3: rerunning a whole experiment with the same configurations and seeds gives the same mean.
"Not rejected" is not "shown": each sentence also says how large the effect may still be.

The model of the verdict has seed effects particular to each level of the fixed factors wherever the design is
replicated (`interactions.model_that_fits`), whether or not the formula has; what the model as given says stands beside
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isorun.analysis.inputs.multiplicity import CORRECTIONS, adjusted
from isorun.analysis.mixed.interactions import joint_test, model_that_fits
from isorun.analysis.mixed.result import Difference, MixedResult, VarianceShare
from isorun.analysis.mixed.shares import variance_shares
from isorun.errors import InputError, known_names

__all__ = ["Hypotheses", "Hypothesis", "hypotheses"]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis; rejected and p are None where the model has nothing to test it by."""

    name: str
    statement: str
    rejected: bool | None
    p: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """H1, H2 and H3 with the verdict in one sentence.

    formula: of the model that judged. as_given: what the model as it was given says, None where that is the same model.
    """

    repeats: Hypothesis
    seeds: Hypothesis
    reruns: Hypothesis
    verdict: str
    formula: str = ""
    as_given: Hypotheses | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict, each hypothesis, and the model as given beside them."""
        own = (self.verdict, self.repeats.sentence, self.seeds.sentence, self.reruns.sentence)
        if self.as_given is None:
            return own
        opening, _, parts = self.as_given.verdict.partition(": ")
        same = "the same" if parts == self.verdict.partition(": ")[2] else f"{parts.rstrip('.')} ({opening.lower()})"
        beside = (
            f"Judged with {self.formula}, where seeds may act in each level in their own way. The model as given, "
            f"{self.as_given.formula}, says: {same}."
        )
        return (*own, beside)


def hypotheses(
    result: MixedResult,
    *,
    repeat: str | None = "repeat",
    seed: str | None = "seed",
    reruns: Sequence[tuple[str, str]] = (),
    alpha: float = 0.05,
) -> Hypotheses:
    """Judge H1 by the random effect `repeat`, H2 by `seed`, and H3 by the differences of the level pairs in `reruns`.

    repeat, seed: names of random effects of the model as in `result.random`, None where the study has none.
    Random effects are tested by their likelihood ratio (with the boundary's p); the pairs' p are adjusted by the
    method of `result` over these pairs alone (by Holm's where that method is for other families).
    """
    if not 0.0 < alpha < 1.0:
        raise InputError("alpha is out of range", found=f"{alpha}", allowed="between 0 and 1, as 0.05")
    given = _judged(result, repeat, seed, reruns, alpha)
    wider = model_that_fits(result, seed) if seed is not None else None
    if wider is None:
        return given
    return replace(_judged(wider, repeat, seed, reruns, alpha), as_given=given)


def _judged(
    result: MixedResult, repeat: str | None, seed: str | None, reruns: Sequence[tuple[str, str]], alpha: float
) -> Hypotheses:
    shares = variance_shares(result, result.level)
    stable = "repeats with the same configuration and seed are stable"
    first = _stable("H1", stable, result, shares, group=repeat, alpha=alpha)
    second = _stable("H2", "runs that differ in their seed only are stable", result, shares, group=seed, alpha=alpha)
    third = _rerun("H3", "rerunning an experiment gives the same mean", result, reruns, alpha)
    return Hypotheses(first, second, third, _verdict((first, second, third)), result.formula)


def _stable(
    name: str, statement: str, result: MixedResult, shares: Sequence[VarianceShare], *, group: str | None, alpha: float
) -> Hypothesis:
    if group is None:
        return Hypothesis(name, statement, None, None, f"{name} was not tested: the study has no such effect.")
    groups = [row.group for row in result.random]
    if group not in groups:
        raise InputError(f"the model has no random effect {group!r}", allowed=known_names(group, groups))
    _, p, _ = joint_test(result, group)
    rejected = p < alpha
    words = (
        f"is rejected: results vary with {group}" if rejected else f"is not rejected: no variance of {group} is shown"
    )
    own = [place for place, item in enumerate(result.fit.problem.random) if group in item.term.columns]
    sd = (result.fit.ratios * result.fit.residual_variance) ** 0.5
    size = "; ".join(
        f"{shares[place].group}: sd {sd[place]:.3g}, {shares[place].share:.1%} of the variance, {result.level:.0%} "
        f"interval {shares[place].lower:.1%} to {shares[place].upper:.1%}"
        for place in own
    )
    return Hypothesis(name, statement, rejected, p, f"{name} ({statement}) {words} (p = {p:.3g}; {size}).")


def _rerun(
    name: str, statement: str, result: MixedResult, pairs: Sequence[tuple[str, str]], alpha: float
) -> Hypothesis:
    if not pairs:
        return Hypothesis(name, statement, None, None, f"{name} was not tested: no pairs of reruns were named.")
    rows = [_difference(result, pair) for pair in pairs]
    p = adjusted(np.array([row.p for row in rows]), result.adjust if result.adjust in CORRECTIONS else "holm")
    if np.isnan(p).any():
        unknown = ", ".join(f"{row.a} and {row.b}" for row, own in zip(rows, p.tolist(), strict=True) if np.isnan(own))
        raise InputError("these reruns cannot be compared because of empty cells", found=unknown)
    smallest = float(p.min())
    differing = [row for row, own in zip(rows, p.tolist(), strict=True) if own < alpha]
    if not differing:
        reach = max(max(abs(row.lower), abs(row.upper)) for row in rows)
        words = (
            f"is not rejected: none of {len(rows)} pairs differs "
            f"(smallest p = {smallest:.3g}; a difference of up to {reach:.3g} remains possible)"
        )
        return Hypothesis(name, statement, False, smallest, f"{name} ({statement}) {words}.")
    named = "; ".join(f"{row.a} and {row.b} by {row.estimate:.3g}" for row in differing)
    words = f"is rejected: {len(differing)} of {len(rows)} pairs differ ({named}; smallest p = {smallest:.3g})"
    return Hypothesis(name, statement, True, smallest, f"{name} ({statement}) {words}.")


def _difference(result: MixedResult, pair: tuple[str, str]) -> Difference:
    for row in result.differences:
        if (row.a, row.b) in (pair, pair[::-1]):
            return row
    levels = dict.fromkeys(level for row in result.differences for level in (row.a, row.b))
    wrong = next((level for level in pair if level not in levels), pair[0])
    raise InputError(f"there is no difference between {pair[0]!r} and {pair[1]!r}", allowed=known_names(wrong, levels))


def _verdict(judged: tuple[Hypothesis, ...]) -> str:
    rejected = [row.name for row in judged if row.rejected]
    held = [row.name for row in judged if row.rejected is False]
    untested = [row.name for row in judged if row.rejected is None]
    parts = [f"{' and '.join(rejected)} rejected"] if rejected else []
    parts += [f"{' and '.join(held)} not rejected"] if held else []
    parts += [f"{' and '.join(untested)} not tested"] if untested else []
    opening = "Results are not stable" if rejected else "No instability is shown" if held else "Nothing was tested"
    return f"{opening}: {', '.join(parts)}."
