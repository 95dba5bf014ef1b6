"""Shares of the variance, and the three hypotheses that are judged by them.

How the variance that the fixed effects leave divides into random effects and residual, with profile intervals.

An interval holds every share at which the deviance, minimised over everything else, exceeds its minimum by no more than
the chi-square(1) quantile. It may end at 0 or 1, where the boundary itself is not rejected. The variance of a random
effect with slopes is its mean over the rows (Johnson 2014).

The three hypotheses of a study of repeated, seeded reruns, judged from one mixed model.

H1: repeats with the same configuration and seed are stable (no variance between repeats).
H2: runs that differ in their seed only are stable (no variance between seeds).
H3: rerunning a whole experiment with the same configurations and seeds gives the same mean.
"Not rejected" is not "shown": each sentence also says how large the effect may still be.

The model of the verdict has seed effects particular to each level of the fixed factors wherever the design is
replicated (`interactions.model_that_fits`), whether or not the formula has; what the model as given says stands beside
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from isorun.analysis.mixed.checks import joint_test, model_that_fits
from isorun.analysis.mixed.deviance import Factored, Objective, RestrictedObjective
from isorun.analysis.mixed.fit import Fit
from isorun.analysis.mixed.minimise import descended
from isorun.analysis.mixed.products import gradient_matrices, triangular
from isorun.analysis.mixed.result import Difference, MixedResult, VarianceShare
from isorun.analysis.mixed.slopes import SlopeObjective
from isorun.analysis.samples import CORRECTIONS, adjusted
from isorun.errors import InputError, known_names

__all__ = ["Hypotheses", "Hypothesis", "hypotheses", "variance_shares"]

Floats = NDArray[np.float64]

_VANISHING = 1e-3
"""A ratio below this part of their sum may be on its way to zero."""
_EDGE = 1e-7
"""Shares this near to 0 or 1 stand for the boundary."""


def variance_shares(result: MixedResult, level: float = 0.95) -> tuple[VarianceShare, ...]:
    """The share of each random effect and, last, of the residual; they sum to 1."""
    if not 0.0 < level < 1.0:
        raise InputError("the confidence level is out of range", found=f"{level}", allowed="between 0 and 1, as 0.95")
    fit = result.fit
    total = 1.0 + float(fit.ratios.sum())
    shares = [*(fit.ratios / total).tolist(), 1.0 / total]
    rows = []
    for place, (group, share) in enumerate(zip([*_names(fit), "Residual"], shares, strict=True)):
        profile = _Profile(fit, place if place < len(fit.ratios) else None)
        rows.append(VarianceShare(group, share, *_interval(profile, share, level)))
    return tuple(rows)


def _names(fit: Fit) -> list[str]:
    """The groups; where a group has several random effects, or one with slopes, as the formula writes it."""
    groups = list(fit.problem.groups)
    return [
        item.term.group if item.is_intercept and groups.count(item.term.group) == 1 else item.term.label
        for item in fit.problem.random
    ]


@dataclass(frozen=True, slots=True)
class _Profile:
    """The deviance as a function of one share; place: of the random term, None for the residual.

    known: ratios of lowest deviance by the logit of the share, from which the search for the next starts.
    """

    fit: Fit
    place: int | None
    known: dict[float, Floats] = field(default_factory=dict)

    def rise(self, share: float) -> float:
        """How far the deviance at this share is above its minimum."""
        minimum = self.fit.objective.value(self.fit.point)
        objective = self.fit.objective
        if isinstance(objective, SlopeObjective):
            return max(0.0, self._best_slopes(objective, share) - minimum)
        assert isinstance(objective, Objective)
        point = self._best_ratios(objective, share)
        return float("inf") if point is None else max(0.0, objective.value(point) - minimum)

    def _constraint(self, share: float) -> tuple[Floats, float]:
        """normal, offset such that the ratios with this share satisfy normal @ ratios = offset."""
        count = len(self.fit.ratios)
        if self.place is None:
            return np.ones(count), 1.0 / share - 1.0
        odds = share / (1.0 - share)
        normal = np.full(count, -odds)
        normal[self.place] = 1.0
        return normal, odds

    def _start(self, share: float) -> Floats:
        """Ratios with this share: the others keep their proportions to each other."""
        ratios = np.maximum(self.fit.ratios, 1e-6)
        if self.place is None:
            return np.asarray(ratios * (1.0 / share - 1.0) / ratios.sum())
        start = ratios.copy()
        start[self.place] = share / (1.0 - share) * (1.0 + ratios.sum() - ratios[self.place])
        return start

    def _best_ratios(self, objective: Objective, share: float) -> Factored | None:
        """The model of lowest deviance with this share, from the nearest that is known."""
        if len(self.fit.ratios) == 1:
            return objective.at(self._start(share))
        if not self.known:
            self.known[float(special.logit(share))] = self._start(share)
        place = float(special.logit(share))
        ratios = self.known[min(self.known, key=lambda other: abs(other - place))]
        normal, offset = self._constraint(share)
        follows = int(np.argmax(ratios)) if self.place is None else self.place
        for _ in ratios:
            point = _minimum(objective, normal, offset, ratios, follows)
            if point is None:
                return None
            ratios = self.known[place] = point.ratios
            if self.place is not None or ratios[follows] >= _VANISHING * offset:
                return point
            follows = int(np.argmax(ratios))  # what follows from the others may not be what goes to zero itself
        return point

    def _best_slopes(self, objective: SlopeObjective, share: float) -> float:
        """The lowest deviance with this share, over the covariances' roots, whose square sums are the ratios."""
        normal, offset = self._constraint(share)
        weights = normal[[item.term for item in objective.elements]]
        start = []
        for target, sigma in zip(self._start(share).tolist(), self.fit.point.covariances, strict=True):
            opened = sigma + 1e-3 * max(float(np.trace(sigma)), 1e-6) * np.eye(len(sigma))
            start.append(triangular(opened * target / float(np.trace(opened))))
        found = optimize.minimize(
            _of_roots(objective),
            [start[item.term][item.row, item.column] for item in objective.elements],
            jac=True,
            method="SLSQP",
            constraints={"type": "eq", "fun": lambda x: weights @ x**2 - offset, "jac": lambda x: 2.0 * weights * x},
            options={"ftol": 1e-9, "maxiter": 200},
        )
        return float(found.fun)


def _minimum(objective: Objective, normal: Floats, offset: float, ratios: Floats, follows: int) -> Factored | None:
    """The lowest deviance where normal @ ratios = offset, by Newton's method; follows: the ratio that is not free."""
    count = len(ratios)
    others = np.delete(np.arange(count), follows)
    mapping = np.zeros((count, count - 1))
    mapping[others, np.arange(count - 1)] = 1.0
    mapping[follows] = -normal[others] / normal[follows]
    own = np.zeros(count)
    own[follows] = offset / normal[follows]
    start = ratios[others]
    if normal[others[0]] > 0.0:  # all of them sum to the offset
        start = start * (offset / ratios.sum())
    restricted = RestrictedObjective(objective.data, objective.reml, mapping, own, follows)
    return descended(restricted, start, np.ones(count - 1, dtype=np.bool_))


def _of_roots(objective: SlopeObjective) -> Callable[[Floats], tuple[float, Floats]]:
    """Deviance and gradient by the entries of the covariances' triangular roots."""

    def value_and_gradient(x: Floats) -> tuple[float, Floats]:
        roots = [np.zeros((width, width)) for width in objective.widths]
        for item, entry in zip(objective.elements, x.tolist(), strict=True):
            roots[item.term][item.row, item.column] = entry
        point = objective.at(roots)
        if point is None:
            return float("inf"), np.zeros(len(x))
        slopes = gradient_matrices(objective.widths, objective.second_derivatives(point)[0])
        gradients = [2.0 * slope @ root for slope, root in zip(slopes, roots, strict=True)]
        return objective.value(point), np.array([gradients[i.term][i.row, i.column] for i in objective.elements])

    return value_and_gradient


def _interval(profile: _Profile, share: float, level: float) -> tuple[float, float]:
    limit = float(special.chdtri(1, 1.0 - level))

    def above(logit: float) -> float:
        return profile.rise(float(special.expit(logit))) - limit

    return _end(above, share, _EDGE, 0.0), _end(above, share, 1.0 - _EDGE, 1.0)


def _end(above: Callable[[float], float], share: float, edge: float, boundary: float) -> float:
    """Where the deviance crosses the limit between the estimate and the edge, or the boundary if it does not.

    The way out is taken in growing steps: each search starts from the last, and most ends lie near the estimate.
    """
    inside, edge_logit = float(special.logit(min(max(share, _EDGE), 1.0 - _EDGE))), float(special.logit(edge))
    if abs(inside - edge_logit) < 1e-9:
        return boundary
    step = 1.0
    while True:
        outside = inside + math.copysign(min(step, abs(edge_logit - inside)), edge_logit - inside)
        if above(outside) > 0.0:
            return float(special.expit(optimize.brentq(above, inside, outside, xtol=1e-6)))
        if outside == edge_logit:
            return boundary
        inside, step = outside, 2.0 * step


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
