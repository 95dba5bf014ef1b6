"""Claims: a gain beside the noise of single runs, in words, and the published spreads as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from isorun.analysis.planning.claims import MOVED_AGAIN, PERCENT, POINTS, SHARE, JudgedGain, RunNoise
from isorun.report import UNKNOWN, Column, Listing, Table, View, count, significant

__all__ = ["claim_view", "spreads_view"]

_UNITS: Final = {
    POINTS: "in points (80.0 % to 80.8 % is 0.8)",
    SHARE: "shares (0.800 to 0.808 is 0.008)",
    PERCENT: "in percent of the mean",
}
_WHOLE: Final = {POINTS: 100.0, SHARE: 1.0}
"""How far apart two results can be at most."""


def claim_view(result: JudgedGain) -> View:
    """Whether it stands first, by which noise, and what would show it; then what else is known."""
    listings = [
        Listing("how this is judged", _rules(result)),
        Listing("what one change of the environment moved, and of the version of the code", tuple(_shifts(result))),
    ]
    known = _spreads("noise", "what single runs of this training are known to vary by", (result.noise, *result.others))
    return View(
        (_standing(result), _by_noise(result), _planned(result)),
        (known,),
        result.conditions,
        listings=tuple(item for item in listings if item.items),
    )


def spreads_view(known: Iterable[RunNoise]) -> View:
    """All that is published, for people who look for their training."""
    rows = tuple(known)
    models = len({item.label for item in rows})
    return View(
        (f"{count(len(rows), 'published spread')} of {count(models, 'training')}.",),
        (_spreads("spreads", "published spreads of single runs", rows),),
    )


def _amount(number: float | None, unit: str) -> str:
    return f"{significant(number, 2)}{_named(unit)}"


def _named(unit: str) -> str:
    """The unit behind a number; a share needs none, and what it is is said once."""
    return f" {unit}" if unit in (POINTS, PERCENT) else ""


def _told(result: JudgedGain) -> str:
    kind = "loss" if result.gain < 0 else "gain"
    return f"a {kind} of {abs(result.gain):g}{_named(result.unit)}"


def _compared(result: JudgedGain) -> str:
    return "single runs" if result.runs == 1 else f"means of {result.runs} runs"


def _standing(result: JudgedGain) -> str:
    what = f"{_told(result)} for {result.noise.label} ({result.noise.metric})"
    if result.above_noise is None:
        return f"What is known does not tell whether {what} is above the noise of {_compared(result)}."
    verb = "is" if result.above_noise else "is not"
    return f"{what[0].upper()}{what[1:]} {verb} above the noise of {_compared(result)}."


def _by_noise(result: JudgedGain) -> str:
    sd = _amount(result.noise.sd, result.unit)
    if not result.noise.sd:
        return "The runs that are known did not differ at all."
    at_most = "less than " if result.noise.at_most else ""
    begins = f"above the noise begins at {_amount(result.smallest_above, result.unit)}"
    if result.smallest_above > _WHOLE.get(result.unit, math.inf):
        begins = "no gain that there can be is above the noise"
    return (
        f"Two {_compared(result)} of the same training (sd of a run {at_most}{sd}) differ by as much in "
        f"{_chance(result.chance)} of pairs, and in this direction in {_chance(result.chance_ahead)}; "
        f"{begins} ({100 * result.alpha:g} % of pairs)."
    )


def _chance(chance: float) -> str:
    if chance < 0.001 or chance > 0.999:
        return "less than 0.1 %" if chance < 0.5 else "more than 99.9 %"
    return (
        f"{100 * chance:.2g} %"
        if chance < 0.1
        else f"{100 * chance:.0f} %"
        if chance < 0.99
        else f"{100 * chance:.1f} %"
    )


def _planned(result: JudgedGain) -> str:
    if not result.noise.sd or any(item.code == MOVED_AGAIN for item in result.conditions):
        return "How many runs would show it is not known: that takes the noise over seeds."
    if result.runs_needed is None:
        return "No number of runs that can be planned for would show it."
    ends = result.runs_needed_interval
    between = f" ({ends[0]} to {ends[1]} by the 90 % interval of the sd)" if ends else ""
    return (
        f"{count(result.runs_needed, 'run')} each side would show it with a chance of {100 * result.power:g} %"
        f"{between}: Brunner-Munzel at {100 * result.alpha:g} %, normal runs."
    )


def _rules(result: JudgedGain) -> tuple[str, ...]:
    number, bonus = result.best_of
    own = result.noise
    unit = _UNITS.get(result.unit, f"in units of {own.metric}")
    rules = [f"source: {own.source}"]
    rules += [text for text in (own.how, own.note) if text]
    rules += [
        f"gain and sd are {unit}",
        "the new approach is taken to vary as much as the known one, and runs as normal",
    ]
    side = "below" if result.unit == PERCENT else "above"
    if 4.0 * own.sd > _WHOLE.get(result.unit, math.inf):
        rules.append(
            "an sd this large is that of two kinds of runs, such as some that failed: they are not normal, and what is "
            "said of pairs is rough"
        )
    elif bonus:
        rules.append(
            f"a difference of best-of-n numbers is no difference of means: the best of {number} runs lies about "
            f"{_amount(bonus, result.unit)} {side} their mean with no improvement at all"
        )
    return tuple(rules)


def _shifts(result: JudgedGain) -> Iterable[str]:
    for item in result.shifts:
        yield f"{item.changed}: {item.range:.4g}{_named(item.unit)} ({item.brief})"


def _spreads(name: str, title: str, rows: Iterable[RunNoise]) -> Table:
    texts = ("training", "metric", "level")
    return Table(
        name=name,
        title=title,
        columns=(
            *(Column(text, key=True) for text in texts),
            *(Column(text) for text in ("runs", "sd", "90 % interval of sd", "max diff")),
            Column("unit", key=True),
            Column("source", key=True),
        ),
        rows=tuple(_row(item) for item in rows),
        notes=("level default: all that differs from run to run, seeds too. fixed-seed: one seed again and again.",),
    )


def _row(item: RunNoise) -> tuple[str, ...]:
    interval = item.sd_interval90
    return (
        item.label,
        item.metric,
        item.level or UNKNOWN,
        str(item.runs),
        f"{'< ' if item.at_most else ''}{significant(item.sd, 2)}",
        UNKNOWN if interval is None else "–".join(significant(end, 2) for end in interval),
        significant(item.max_difference, 3),
        item.unit,
        item.brief or item.source,
    )
