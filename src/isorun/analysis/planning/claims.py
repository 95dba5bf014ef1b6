"""Claims: is a claimed gain above the noise of single runs, and how many runs would show it?

What runs of a training vary by is known from papers (`published_noise.json`: each number with its table) or from a
study of one's own. A gain is above the noise when two runs of the same training differ by as much, either way, with a
chance of less than alpha: their difference is taken as normal, with a variance of twice that of a run. The chance is
told, so that a reader may hold it against another alpha. How many runs a side show the gain is what `power` says.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, ClassVar, Final

import numpy as np
from scipy import special

from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.judged import MetricKind, kind_of
from isorun.analysis.planning.power import runs_needed
from isorun.analysis.spreads import spread
from isorun.errors import InputError, known_names

__all__ = [
    "MOVED_AGAIN",
    "PERCENT",
    "POINTS",
    "SHARE",
    "JudgedGain",
    "PublishedShift",
    "RunNoise",
    "best_of_bonus",
    "judge_gain",
    "noise_of",
    "published_noise",
    "published_shifts",
    "runs_for",
    "scale_of",
]

POINTS: Final = "points"
SHARE: Final = "share"
PERCENT: Final = "percent"
"""Of the mean, as times are told."""
_IN_POINTS: Final = {POINTS: 1.0, SHARE: 100.0}
_LEVELS: Final = ("default", "fixed-seed")
_ACCURACY: Final = "accuracy"
_OF_WHOLE_MODELS: Final = frozenset((_ACCURACY, "AP"))
MOVED_AGAIN: Final = "moved-without-a-change"
_ALIKE: Final = 0.6
_NEAREST: Final = 5
_BEST_OF: Final = 5
# Without a unit a gain is read in that of its source; beyond these it is more likely that the other one was meant.
_SMALLEST_POINTS: Final = 0.02
_LARGEST_SHARE: Final = 0.3


@dataclass(frozen=True, slots=True)
class RunNoise:
    """What single runs of one training vary by. unit: of sd: points, share, percent, or "" for that of the metric.

    level: "default" where all that differs from run to run does, seeds too; "fixed-seed" where one seed was run again
    and again, so that the noise of a claim is larger. how: where sd comes from, if it is not printed as such. at_most:
    sd is only known to be less. source: the paper with its table, or the study; brief: the same for a table.
    """

    model: str
    data: str
    metric: str
    unit: str
    level: str
    runs: int
    sd: float
    source: str
    brief: str = ""
    sd_interval90: tuple[float, float] | None = None
    max_difference: float | None = None
    how: str = ""
    note: str = ""
    at_most: bool = False
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What was trained, for people."""
        return f"{self.model} on {self.data}" if self.data else self.model

    def in_unit(self, unit: str) -> RunNoise:
        """The same in another unit."""
        if unit == self.unit:
            return self
        if unit not in _IN_POINTS or self.unit not in _IN_POINTS:
            raise InputError(
                f"a gain in {unit} cannot be held against {self.metric}",
                found=f"the scale of {self.metric} is not known" if not self.unit else unit,
                allowed=_allowed_units(self.unit),
            )
        factor = _IN_POINTS[self.unit] / _IN_POINTS[unit]
        interval = self.sd_interval90 and (self.sd_interval90[0] * factor, self.sd_interval90[1] * factor)
        largest = None if self.max_difference is None else self.max_difference * factor
        return replace(self, unit=unit, sd=self.sd * factor, sd_interval90=interval, max_difference=largest)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "model": self.model,
            "data": self.data,
            "metric": self.metric,
            "unit": self.unit,
            "level": self.level,
            "runs": self.runs,
            "sd": self.sd,
            "sd_interval90": None if self.sd_interval90 is None else list(self.sd_interval90),
            "max_difference": self.max_difference,
            "at_most": self.at_most,
            "how": self.how,
            "note": self.note,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class PublishedShift:
    """How far a result moved when one thing of its environment was changed and nothing else."""

    model: str
    data: str
    metric: str
    unit: str
    changed: str
    range: float
    source: str
    brief: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {name: getattr(self, name) for name in ("changed", "range", "unit", "source")}


@dataclass(frozen=True, slots=True)
class JudgedGain(Told):
    """A gain beside the noise of the runs it was seen in.

    gain, noise_sd: in `unit`. runs: the gain is one of means of so many runs a side; 1 for single runs. chance: that
    two such means of the same training differ by as much, either way; chance_ahead: that the second is ahead by as
    much. smallest_above: what would be above the noise. above_noise: None where what is known does not tell.
    runs_needed: a side, for a chance of `power` to see the gain; None where that is more than can be planned for.
    others: what else is known of this training; shifts: what its environment moved.
    """

    told_as: ClassVar[str] = "claim"

    gain: float
    unit: str
    noise: RunNoise
    runs: int
    alpha: float
    chance: float
    smallest_above: float
    above_noise: bool | None
    power: float
    runs_needed: int | None
    runs_needed_interval: tuple[int, int] | None
    others: tuple[RunNoise, ...] = ()
    shifts: tuple[PublishedShift, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def chance_ahead(self) -> float:
        """The chance that an approach that is no better is ahead by as much."""
        return self.chance / 2

    @property
    def best_of(self) -> tuple[int, float]:
        """A number of runs, and by how much the best of so many lies above their mean with no improvement at all."""
        return _BEST_OF, best_of_bonus(_BEST_OF) * self.noise.sd

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        number, bonus = self.best_of
        return {
            "gain": self.gain,
            "unit": self.unit,
            "runs": self.runs,
            "noise_sd": self.noise.sd,
            "source": self.noise.source,
            "above_noise": self.above_noise,
            "runs_needed": self.runs_needed,
            "runs_needed_interval90": None if self.runs_needed_interval is None else list(self.runs_needed_interval),
            "power": self.power,
            "alpha": self.alpha,
            "chance": self.chance,
            "chance_ahead": self.chance_ahead,
            "smallest_above": self.smallest_above,
            "best_of": {"runs": number, "above_mean": bonus},
            "noise": self.noise.to_json(),
            "others": [item.to_json() for item in self.others],
            "shifts": [item.to_json() for item in self.shifts],
            "warnings": [condition.to_json() for condition in self.conditions],
        }


def _allowed_units(unit: str) -> str:
    if unit in _IN_POINTS:
        return f"{POINTS}, {SHARE}"
    return f"a gain in {unit} of the mean" if unit else "a gain in units of the metric, without a unit"


def best_of_bonus(number: int) -> float:
    """How far the best of so many normal runs lies above their mean on average, in sd."""
    return _normal_range(number) / 2


@functools.cache
def _normal_range(number: int) -> float:
    """The mean range of so many normal values, in sd: the d2 of control charts (Tippett, 1925)."""
    places = np.linspace(-9.0, 9.0, 18_001)
    below = special.ndtr(places)
    return float(np.trapezoid(1.0 - below**number - (1.0 - below) ** number, places))


@functools.cache
def _published() -> Mapping[str, Any]:
    text = (resources.files("isorun.analysis.planning") / "published_noise.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@functools.cache
def published_noise() -> tuple[RunNoise, ...]:
    """All spreads that papers published, in the order of the file."""
    return tuple(_read_noise(row) for row in _published()["spreads"])


@functools.cache
def published_shifts() -> tuple[PublishedShift, ...]:
    """All that papers published on single changes of an environment."""
    fields = ("model", "data", "metric", "unit", "changed", "range")
    return tuple(
        PublishedShift(**{name: row[name] for name in fields}, source=_source(row), brief=_brief(row))
        for row in _published()["shifts"]
    )


def _source(row: Mapping[str, Any]) -> str:
    return f"{_published()['papers'][row['paper']][1]}, {row['where']}"


def _brief(row: Mapping[str, Any]) -> str:
    place = re.split(r" \(|, ", row["where"])[0]
    return f"{_published()['papers'][row['paper']][0]}, {place}"


def _read_noise(row: Mapping[str, Any]) -> RunNoise:
    sd, interval, how, runs = row.get("sd"), row.get("sd_interval90"), "", row.get("runs", 0)
    largest = row.get("max_difference")
    if "range" in row:
        largest, sd = row["range"], row["range"] / _normal_range(runs)
        of_one = f"sd is the range over {_normal_range(runs):.2f}, as of normal runs"
        how = f"the paper has the range of {runs} runs alone: {of_one}"
    elif "values" in row:
        seen = spread(row["values"])
        sd, interval, largest, runs = seen.sd, seen.sd_interval, seen.max_difference, seen.n
        how = f"computed here from the {runs} values that the paper prints"
    elif "sd_below" in row:
        printed = "less than" if sd is None else f"{sd:.2f}, a rounded number: less than"
        sd, how = row["sd_below"], f"printed as {printed} {row['sd_below']:g}"
    assert isinstance(sd, float)
    return RunNoise(
        model=row["model"],
        data=row["data"],
        metric=row["metric"],
        unit=row["unit"],
        level=row["level"],
        runs=runs,
        sd=sd,
        source=_source(row),
        brief=_brief(row),
        sd_interval90=None if interval is None else (float(interval[0]), float(interval[1])),
        max_difference=largest,
        how=how,
        note=row.get("note", ""),
        at_most="sd_below" in row,
        names=tuple(_published()["aliases"].get(row["model"], ())),
    )


def scale_of(metric: str, smallest: float, largest: float) -> str:
    """The unit in which differences of a metric are told: that of accuracies only; "" for that of the metric itself."""
    if kind_of(metric) is not MetricKind.ACCURACY or smallest < 0 or largest > 100:
        return ""
    return SHARE if largest <= 1 else POINTS


def _plain(name: str) -> str:
    """A name as people mean it: wrn-28-10 and WRN_28_10 are one."""
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def noise_of(
    model: str, data: str | None = None, *, metric: str | None = None, level: str | None = None, similar: bool = False
) -> tuple[RunNoise, tuple[RunNoise, ...], tuple[Condition, ...]]:
    """The published noise of this training, what else is known of it, and what weakens that.

    level: "default" where that is known, if not said. similar: take the nearest training that is known, and say so;
    without it one that is not known is an error that lists the nearest.
    """
    if level is not None and level not in _LEVELS:
        raise InputError(f"no noise is known at the level {level!r}", allowed=known_names(level, _LEVELS))
    fitting = [item for item in published_noise() if _is_meant(item, model, data)]
    conditions: list[Condition] = []
    if not fitting:
        nearest = _nearest(model, data)
        if not similar or not nearest:
            raise _unknown(model, data, nearest)
        fitting = [item for item in published_noise() if (item.model, item.data) == (nearest[0].model, nearest[0].data)]
        asked = f"{model} on {data}" if data else model
        message = f"nothing is known of {asked}: this is the noise of {nearest[0].label}, which may be quite another"
        conditions.append(Condition("similar-only", message, "measure yours: isorun run -n 10 …, then --study"))
    if len({item.data for item in fitting}) > 1:
        found = ", ".join(dict.fromkeys(item.data for item in fitting))
        raise InputError(f"{fitting[0].model} is known on several data sets", allowed=found, hint="--data says which")
    judged = _of_metric(fitting, metric)
    wanted = [item for item in judged if item.level == (level or "default")] or ([] if level else judged)
    if not wanted:
        allowed = ", ".join(dict.fromkeys(item.level for item in judged))
        raise InputError(f"{judged[0].label} is not known at the level {level!r}", allowed=allowed)
    chosen = max(wanted, key=lambda item: item.sd)  # of two machines the noisier one: the claim's own is not known
    conditions += _on_the_noise(chosen, asked=level is not None)
    return chosen, tuple(item for item in judged if item is not chosen), tuple(conditions)


def _is_meant(item: RunNoise, model: str, data: str | None) -> bool:
    names = {_plain(name) for name in (item.model, *item.names)}
    return _plain(model) in names and (data is None or _plain(data) == _plain(item.data))


def _of_metric(fitting: Sequence[RunNoise], metric: str | None) -> list[RunNoise]:
    """Those of the metric: as asked, else accuracy, else the only one."""
    known = list(dict.fromkeys(item.metric for item in fitting))
    asked = metric or (_ACCURACY if _ACCURACY in known else known[0] if len(known) == 1 else "")
    found = [item for item in fitting if _plain(item.metric) == _plain(asked)]
    if not found:
        what = f"{fitting[0].label}: no noise of {metric!r} is known" if metric else "which metric is meant is not said"
        raise InputError(what, allowed=known_names(metric or "", known), hint=f"--metric {known[0]!r}")
    return found


def _nearest(model: str, data: str | None) -> list[RunNoise]:
    """The trainings that are most alike by name, each once, the same data first; none where none is alike."""

    def likeness(item: RunNoise) -> float:
        names = (item.model, *item.names)
        ratio = max(difflib.SequenceMatcher(None, _plain(model), _plain(name)).ratio() for name in names)
        return ratio + (1.0 if data and _plain(data) == _plain(item.data) else 0.0)

    each: dict[tuple[str, str], RunNoise] = {}
    for item in published_noise():
        if item.metric in _OF_WHOLE_MODELS:
            each.setdefault((item.model, item.data), item)
    ranked = sorted(each.values(), key=likeness, reverse=True)
    return [item for item in ranked if likeness(item) >= _ALIKE][:_NEAREST]


def _unknown(model: str, data: str | None, nearest: Sequence[RunNoise]) -> InputError:
    def named(item: RunNoise) -> str:
        at_most = "less than " if item.at_most else ""
        return f"{item.label} (sd {at_most}{item.sd:.2g} {item.unit}, {item.level})"

    every = dict.fromkeys(item.label for item in published_noise())
    known = f"the nearest that are: {'; '.join(map(named, nearest))}" if nearest else ", ".join(every)
    similar = "; --similar takes the first of these, and says so" if nearest else ""
    return InputError(
        f"the noise of {f'{model!r} on {data!r}' if data else repr(model)} is not known",
        found="no paper that isorun knows has it" + ("" if nearest else ", nor anything like it"),
        allowed=known,
        hint=f"isorun run -n 10 -- COMMAND, then --study NAME takes your own runs{similar}",
    )


def _on_the_noise(noise: RunNoise, *, asked: bool) -> list[Condition]:
    found = []
    if noise.level == "fixed-seed" and not asked:
        message = f"{noise.label} is known for one seed alone, run again and again: other seeds move it further"
        found.append(
            Condition("fixed-seed-noise", message, "runs with several seeds: isorun run -n 10 …, then --study")
        )
    if noise.at_most:
        message = f"the sd is only known to be below {noise.sd:g} {noise.unit}"
        found.append(Condition("noise-at-most", message, "measure it: isorun run -n 10 …, then --study"))
    return found


def judge_gain(
    gain: float,
    noise: RunNoise,
    *,
    unit: str | None = None,
    runs: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    conditions: Sequence[Condition] = (),
    others: Sequence[RunNoise] = (),
) -> JudgedGain:
    """Whether the gain is above the noise of single runs, or of means of so many runs a side, and what would show it.

    unit: of the gain, "points" or "share"; that of the noise where it is not said. conditions: what is known against
    the noise already.
    """
    if not math.isfinite(gain) or gain == 0:
        raise InputError("a gain is needed", found=f"{gain}", allowed="a finite number other than 0")
    if runs < 1 or not 0 < alpha < 0.5:
        raise InputError(
            "the gain cannot be judged", found=f"runs {runs}, alpha {alpha}", allowed="runs from 1, alpha below 0.5"
        )
    chosen = _unit_of(gain, noise, unit)
    own = noise.in_unit(chosen)
    apart = own.sd * math.sqrt(2.0 / runs)
    chance = 2.0 * float(special.ndtr(-abs(gain) / apart)) if apart else 0.0
    limit = float(special.ndtri(1.0 - alpha / 2.0)) * apart
    above: bool | None = abs(gain) > limit
    known_in_part = {condition.code for condition in conditions} & {"fixed-seed-noise", "similar-only"}
    if known_in_part and (above or "similar-only" in known_in_part):
        above = None
    shifts = _shifts_of(noise, chosen)
    again = _moved_without_a_change(gain, shifts) if abs(gain) > limit else ()
    if again or (noise.at_most and not above):
        above = None
    found, ends = (None, None) if again else _runs_needed(gain, own, alpha, power)
    unsure = (*_depends_on_sd(gain, own, runs, alpha), *again)
    return JudgedGain(
        gain=gain,
        unit=chosen,
        noise=own,
        runs=runs,
        alpha=alpha,
        chance=chance,
        smallest_above=limit,
        above_noise=above,
        power=power,
        runs_needed=found,
        runs_needed_interval=ends,
        others=tuple(item.in_unit(chosen) for item in others),
        shifts=shifts,
        conditions=(*conditions, *unsure),
    )


def _unit_of(gain: float, noise: RunNoise, unit: str | None) -> str:
    if unit is not None:
        if unit not in (*_IN_POINTS, noise.unit):
            raise InputError(f"there is no unit {unit!r}", allowed=known_names(unit, _IN_POINTS))
        return unit
    size, likely = abs(gain), ""
    if noise.unit == POINTS and size < _SMALLEST_POINTS:
        likely = SHARE
    elif noise.unit == SHARE and size > _LARGEST_SHARE:
        likely = POINTS
    if likely:
        raise InputError(
            f"a gain of {gain:g} in what? {noise.metric} is known in {noise.unit} there",
            found="no unit",
            allowed=f"{POINTS} (0.8 points are from 80.0 % to 80.8 %), {SHARE} (0.008 is the same)",
            hint=f"--unit {likely}, or --unit {noise.unit} if it is so",
        )
    return noise.unit


def _runs_needed(gain: float, noise: RunNoise, alpha: float, power: float) -> tuple[int | None, tuple[int, int] | None]:
    """Runs a side for this sd, and for the ends of its interval where there is one."""
    found = [
        runs_for(abs(gain) / sd if sd else math.inf, alpha, power) for sd in (noise.sd, *(noise.sd_interval90 or ()))
    ]
    ends = found[1:]
    return found[0], (ends[0], ends[1]) if len(ends) == 2 and ends[0] and ends[1] else None


@functools.cache
def runs_for(effect_size: float, alpha: float, power: float) -> int | None:
    """Runs a side that see a gain of so many sd; None where that cannot be planned for."""
    try:
        return runs_needed(effect_size=effect_size, power=power, alpha=alpha).runs
    except InputError as error:
        if "alpha" in error.what or "the power" in error.what:  # the asked, not the gain, is at fault
            raise
        return None


def _depends_on_sd(gain: float, noise: RunNoise, runs: int, alpha: float) -> list[Condition]:
    """Whether the answer would be another one at an end of the interval of the sd."""
    if noise.sd_interval90 is None:
        return []
    step = float(special.ndtri(1.0 - alpha / 2.0)) * math.sqrt(2.0 / runs)
    low, high = (abs(gain) > step * sd for sd in noise.sd_interval90)
    if low == high:
        return []
    ends = " to ".join(f"{sd:.3g}" for sd in noise.sd_interval90)
    message = f"the sd is known from {noise.runs} runs as {ends} {noise.unit}".rstrip()
    said = f"{message} (90 % interval), and the answer is not the same at both ends"
    return [Condition("noise-hardly-known", said, "more runs: isorun run -n 30 …, then --study")]


def _moved_without_a_change(gain: float, shifts: Sequence[PublishedShift]) -> tuple[Condition, ...]:
    """What is printed cannot be all the noise where the same runs, made again, moved by as much as the gain."""
    moved = [item for item in shifts if item.changed.startswith("nothing") and item.range >= abs(gain)]
    if not moved:
        return ()
    largest = max(moved, key=lambda item: item.range)
    message = f"a second time, with nothing changed, it moved by {largest.range:g} {largest.unit} ({largest.brief})"
    return (Condition(MOVED_AGAIN, message, "measure it: isorun run -n 10 …, then --study"),)


def _shifts_of(noise: RunNoise, unit: str) -> tuple[PublishedShift, ...]:
    same = (noise.model, noise.data, noise.metric)
    if noise.unit not in _IN_POINTS:
        return ()
    return tuple(
        replace(item, unit=unit, range=item.range * _IN_POINTS[item.unit] / _IN_POINTS[unit])
        for item in published_shifts()
        if (item.model, item.data, item.metric) == same
    )
