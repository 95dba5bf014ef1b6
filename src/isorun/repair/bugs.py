"""What is wrong with a search: six kinds of bugs, each with the trial since which it shows and the evidence.

performance          the target is not reached in the time given for it (the paper's T_r), or hardly will be
ineffective-search   no improvement above noise in too many trials (the paper's t_r), or no training that gets anywhere
stalled-trial        a trial that takes far longer than the others and than the budget allows
duplicates           configurations that were tried before, but for a few repeats of the best one
repeated-failure     the same failure again and again
exhausted-space      nothing new is left to try, or nothing new is proposed

Silence alone says little. Of n trials that are drawn alike each is as likely to be the best as any other, so the next
record comes within k more with chance k / (n + k), whenever the last one came; and a search that is silent since trial
L of n is one of L / n. Where noise is known, fewer records count: those that lie above it. How many do is told by how
far apart the best scores lie (as if they thinned out exponentially).
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Final

from isorun.errors import InputError
from isorun.repair.actions import size_of
from isorun.repair.searches import Configuration, Search, Trial

__all__ = [
    "BUGS",
    "Bug",
    "Limits",
    "Silence",
    "chance_of_gaining",
    "elapsed",
    "failed_silently",
    "find_bugs",
    "guilty_end",
    "is_complete",
    "is_silent",
    "patience_of",
    "records_above",
    "silence_of",
    "stall_limit",
    "stalled_trials",
]

BUGS: Final = (
    "performance",
    "ineffective-search",
    "stalled-trial",
    "duplicates",
    "repeated-failure",
    "exhausted-space",
)
_ENOUGH_TO_JUDGE: Final = 5
_LEAST_PATIENCE: Final = 10
"""Engines draw about ten trials at random before their own strategy begins."""
_MISSED: Final = 0.05
_RARE_SILENCE: Final = 0.2
"""A silence that fewer random searches have is a bug."""
_HARDLY_GAINS: Final = 0.1
_HARDLY_REACHES: Final = 0.15
"""Chances, for as many trials again, below which a gain above noise and a target are called out of reach. Chosen on
searches of tables by other seeds so that of those that came to it at most one in ten had been called so."""
_LOOK_SO: Final = 7
"""Of a hundred such searches by TPE that gained more than noise in as many trials again, on the same tables."""
_LEAST_UPPER: Final = 3
_LONGER: Final = 10.0
_SPREADS: Final = 4.0
_LONGEST: Final = 3.0
_NOTICED: Final = 1.0
"""Seconds. Trials of milliseconds differ by a thousand times, where one of them imports, and nobody waits for them."""
_MOST_LOG: Final = 700.0
_BY_CHANCE: Final = 0.01
_CLUE_BY_CHANCE: Final = 0.2
_SAME_FAILURES: Final = 3
_MOST: Final = 0.5
_FAILURE_SHARE: Final = 0.1
"""Of all trials. Three of two hundred that ran out of memory are what a wide space costs."""
_VARIES: Final = re.compile(
    r"""
    (?<=['"`])(?P<name>[A-Za-z]\w*?)(?:_\d+)?(?=['"`])  # relu6 is not relu2, but Keras numbers: dense, dense_1, dense_2
    | (?:[A-Za-z]:)?[\\/](?:[^\s'"]*[\\/])?(?:tmp|temp|T|folders)[\\/][^\s'",:;)]*  # a path in a temporary folder
    | \b0x[0-9a-fA-F]+
    | (?<!exit\scode\s)(?<!\d)  # how a process ended is what it failed with
      [-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?(?:\s*(?:bytes?|[KMGT]i?B)\b)?  # 980.00 MiB and 1.02 GiB differ no more
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What differs between two messages of the same failure; of a name that is quoted, no more than its last number."""
_NOTHING_NEW: Final = 20
_DUPLICATES: Final = 3
_DUPLICATE_SHARE: Final = 0.1
_TO_KNOW_NOISE: Final = 3
"""As often as the next step on noise that is not known says: more repeats of the best trial are a strategy's own."""
_BASELINE_SHARE: Final = 0.25
"""Where only one configuration comes again: people try a baseline again at each start."""
_PROJECTED_FROM: Final = 20


@dataclass(frozen=True, slots=True)
class Bug:
    """kind: one of BUGS. since_trial: the first trial that shows it. evidence: a sentence with the numbers."""

    kind: str
    since_trial: int
    evidence: str

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {"kind": self.kind, "since_trial": self.since_trial, "evidence": self.evidence}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the user asks of a search. target: a score; time_limit: seconds to reach it; patience: trials."""

    target: float | None = None
    time_limit: float | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        """A limit that nobody can mean is refused where it is given, and not where a search trips over it."""
        if self.target is not None and not (_is_number(self.target) and math.isfinite(self.target)):
            raise InputError("target is not understood", found=repr(self.target), allowed="a number")
        if self.time_limit is not None and not (_is_number(self.time_limit) and self.time_limit >= 0):
            raise InputError(
                "time_limit is not understood", found=repr(self.time_limit), allowed="seconds, more than 0"
            )
        if self.patience is not None and not (_is_number(self.patience, whole=True) and self.patience > 0):
            raise InputError("patience is not understood", found=repr(self.patience), allowed="trials, from 1 on")


def _is_number(value: object, *, whole: bool = False) -> bool:
    return isinstance(value, Integral if whole else Real) and not isinstance(value, bool)


def find_bugs(search: Search, limits: Limits = Limits(), now: float | None = None) -> tuple[Bug, ...]:  # noqa: B008
    """Everything that is wrong with the search, in the order of BUGS. now: for trials that run still."""
    return (
        *_performance(search, limits),
        *_ineffective(search, limits),
        *_stalled(search, limits, now),
        *_duplicates(search),
        *_repeated_failure(search),
        *_exhausted(search),
    )


def _performance(search: Search, limits: Limits) -> Iterator[Bug]:
    best, target = search.best, limits.target
    if target is None or best is None or search.short_of(target) <= 0:
        return
    if limits.time_limit is not None:
        late = [trial for trial, spent in zip(search.trials, elapsed(search), strict=True) if spent > limits.time_limit]
        if late:
            evidence = f"the best score {_number(best.score)} (trial {best.number}) is short of the target "
            evidence += f"{target:g} after {elapsed(search)[-1]:.0f} s; the limit is {limits.time_limit:g} s"
            yield Bug("performance", late[0].number, evidence)
    elif len(search.scored) >= _PROJECTED_FROM:
        yield from _projected(search, best, target)


def _projected(search: Search, best: Trial, target: float) -> Iterator[Bug]:
    """Without a limit: it is not likely to get there in as many trials again as it has had."""
    short = search.short_of(target)
    chance = chance_of_gaining(search, short)
    if chance <= _HARDLY_REACHES:
        half = search.scored[len(search.scored) // 2].number
        evidence = f"the best score {_number(best.score)} (trial {best.number}) is {_number(short)} short of the "
        evidence += f"target {target:g}; by how far apart its best scores lie, as many trials again reach it with a "
        evidence += f"chance of {_percent(chance)}"
        yield Bug("performance", half, evidence)


def chance_of_gaining(search: Search, distance: float) -> float:
    """That as many trials again as it has had beat its best score by so much, if they are drawn as those were."""
    above = records_above(search, distance)
    return above / (1 + above)


def records_above(search: Search, distance: float) -> float:
    """Of the records that a search sets, the part that lies this far above the one before.

    The upper third of the scores lies above the rest by a spread, and scores are that much rarer a spread further on.
    """
    gains = sorted(map(search.gain, search.scored), reverse=True)
    if len(gains) < _ENOUGH_TO_JUDGE or distance <= 0:
        return 1.0
    upper = max(len(gains) // 3, _LEAST_UPPER)
    spread = sum(gain - gains[upper] for gain in gains[:upper]) / upper
    if not math.isfinite(spread):
        return 1.0
    return math.exp(-distance / spread) if spread > 0 else 0.0


def elapsed(search: Search) -> list[float]:
    """Seconds from the start of the search to the end of each trial, as far as engines keep time."""
    start = min((trial.started for trial in search.trials if trial.started is not None), default=0.0)
    total, spent = 0.0, []
    for trial in search.trials:
        total += trial.seconds or 0.0
        spent.append(total if trial.started is None else max(trial.started - start + (trial.seconds or 0.0), 0.0))
    return spent


def patience_of(search: Search, limits: Limits = Limits()) -> int:  # noqa: B008
    """After how many trials without improvement another way is worth a try.

    As many as a search that goes on improving at the rate it had up to its last improvement would miss in one of twenty
    cases; at least 10, for engines draw that many at random before their strategy begins. Most searches grow slower, so
    this alone is no sign of a bug.
    """
    if limits.patience is not None:
        return limits.patience
    improvements = search.improvements
    if not improvements:
        return _LEAST_PATIENCE
    until = sum(trial.number <= improvements[-1].number for trial in search.scored)
    rate = min(max(len(improvements) - 1, 0.5) / (until + 1), 0.9)  # the first trial is no improvement
    return max(_LEAST_PATIENCE, math.ceil(math.log(_MISSED) / math.log1p(-rate)))


@dataclass(frozen=True, slots=True)
class Silence:
    """The trials since the last improvement. as_often: of random searches with such scores, how many are silent so."""

    last: Trial
    trials: int
    as_often: float


def silence_of(search: Search) -> Silence | None:
    """How long nothing has improved above noise; None before the first score."""
    if not search.improvements:
        return None
    last = search.improvements[-1]
    over = sum(trial.is_over for trial in search.trials)
    since = sum(trial.is_over and trial.number > last.number for trial in search.trials)
    return Silence(last, since, ((over - since) / over) ** records_above(search, search.own_margin))


def is_silent(search: Search, limits: Limits = Limits()) -> bool:  # noqa: B008
    """Whether nothing has improved for so long that another way is worth a try; no bug need be told for that."""
    silence = silence_of(search)
    return silence is not None and silence.trials >= patience_of(search, limits)


def _ineffective(search: Search, limits: Limits) -> Iterator[Bug]:
    silence = silence_of(search)
    if silence is None:
        return
    if limits.patience is None and search.nothing_trains and len(search.scored) >= _ENOUGH_TO_JUDGE:
        yield _nowhere(search)
        return
    why = _why_ineffective(search, silence, limits) if is_silent(search, limits) else ""
    if why:
        noise = f" (above noise, sd {_number(search.noise)})" if search.own_margin else ""
        evidence = f"no improvement{noise} in {silence.trials} trials since trial {silence.last.number} "
        evidence += f"({_number(silence.last.score)}); {why}"
        yield Bug("ineffective-search", silence.last.number + 1, evidence)


def _why_ineffective(search: Search, silence: Silence, limits: Limits) -> str:
    """What makes a silence a bug, and what that is worth; nothing where it is none."""
    usual = f"of 100 random searches {100 * silence.as_often:.0f} are silent for so long"
    if limits.patience is not None:
        return f"{limits.patience} are too many, as was asked; {usual}"
    if silence.as_often <= _RARE_SILENCE:
        return usual
    chance = chance_of_gaining(search, search.own_margin)
    if chance <= _HARDLY_GAINS:
        said = "its best scores lie so close together that as many trials again gain more than noise with a chance of "
        return f"{said}{_percent(chance)} ({_LOOK_SO} of 100 searches that did gain looked so too)"
    return ""


def _nowhere(search: Search) -> Bug:
    """Trainings tell by themselves that they get nowhere, long before scores could: five of five are no bad luck."""
    first, best = search.scored[0].number, search.best
    dead = sum(trial.got_nowhere for trial in search.scored)
    others = "" if dead == len(search.scored) else f": {dead} were seen to, and no score stands out from theirs"
    evidence = f"none of {len(search.scored)} trainings since trial {first} got anywhere (slow convergence, or weights "
    evidence += f"that exploded){others}; the best score is {_number(best.score if best is not None else None)}"
    return Bug("ineffective-search", first, evidence)


def stall_limit(search: Search, limits: Limits = Limits(), *, running: bool = False) -> float | None:  # noqa: B008
    """Seconds after which a trial is stalled; None while too few have finished to say.

    Ten times the median, four spreads on the log scale, and a quarter of the time there is, whichever is longest. Of a
    trial that runs still, three times the longest so far do for the spreads: where times differ as models' sizes do,
    spreads are so wide that a hang would go unseen for long.
    """
    taken = _durations(search)
    if len(taken) < _ENOUGH_TO_JUDGE:
        return None
    median = statistics.median(taken)
    spread = 1.4826 * statistics.median(abs(math.log(seconds / median)) for seconds in taken)
    wide = median * math.exp(min(_SPREADS * spread, _MOST_LOG))
    if running and len(taken) >= _LEAST_PATIENCE:
        wide = min(wide, _LONGEST * max(taken))
    return max(_LONGER * median, wide, (limits.time_limit or 0.0) / 4, _NOTICED)


def _durations(search: Search) -> list[float]:
    return [trial.seconds for trial in search.trials if trial.state == "finished" and trial.seconds]


def stalled_trials(search: Search, limits: Limits, now: float | None) -> Iterator[tuple[Trial, str]]:
    """Trials that take longer than that, with the evidence. The first may, once it is over: it compiles and loads.

    So may the first one of each process in which isorun went on with the search.
    """
    taken, ended, hangs = _durations(search), stall_limit(search, limits), stall_limit(search, limits, running=True)
    if ended is None or hangs is None:
        return
    median = statistics.median(taken)
    first = {trial.process: trial.number for trial in reversed(search.trials) if trial.process is not None}
    beginning = {search.trials[0].number, *first.values()}
    for trial in search.trials:
        seconds = trial.seconds
        if trial.state == "running" and trial.started is not None and now is not None:
            seconds = now - trial.started
        limit = hangs if trial.state == "running" else ended
        if trial.state == "finished" and trial.number in beginning:
            continue
        if seconds is not None and seconds > limit and trial.state != "waiting":
            runs = trial.state == "running"
            evidence = f"trial {trial.number} {'has been running for' if runs else 'took'} {seconds:.3g} s; the median "
            evidence += f"of {len(taken)} finished trials is {median:.3g} s"
            evidence += ": it hangs, or its process is gone" if runs else ""
            yield trial, evidence


def _stalled(search: Search, limits: Limits, now: float | None) -> Iterator[Bug]:
    for trial, evidence in stalled_trials(search, limits, now):
        yield Bug("stalled-trial", trial.number, evidence)
        return


def _duplicates(search: Search) -> Iterator[Bug]:
    found = _repeats([trial for trial in search.trials if trial.state in ("finished", "pruned")])
    asked_for = _repeats_of_the_best(search, found)
    repeats = [(trial, original) for trial, original in found if trial.number not in asked_for]
    over = sum(trial.is_over for trial in search.trials)
    several = len({original.number for _, original in repeats}) > 1
    if len(repeats) >= max(_DUPLICATES, (_DUPLICATE_SHARE if several else _BASELINE_SHARE) * over):
        first, original = repeats[0]
        evidence = f"{len(repeats)} of {over} trials repeat a configuration that was tried before; the first is trial "
        evidence += f"{first.number}, which repeats trial {original.number}"
        yield Bug("duplicates", first.number, evidence)


def _repeats(trials: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    """Trials with the first one of the same configuration."""
    first: dict[Configuration, Trial] = {}
    found = []
    for trial in trials:
        original = first.setdefault(trial.configuration, trial)
        if original is not trial and trial.parameters:
            found.append((trial, original))
    return found


def _repeats_of_the_best(search: Search, repeats: Sequence[tuple[Trial, Trial]]) -> set[int]:
    """The first few repeats of what was the best trial when they were made: so noise gets known, as isorun advises."""
    originals = {trial.number: original for trial, original in repeats}
    times: Counter[int] = Counter()
    found: set[int] = set()
    best: Trial | None = None
    for trial in search.trials:
        original = originals.get(trial.number)
        if original is not None and best is not None and best.configuration == original.configuration:
            times[original.number] += 1
            found |= {trial.number} if times[original.number] <= _TO_KNOW_NOISE else set()
        if trial.has_score and (best is None or search.gain(trial) > search.gain(best)):
            best = trial
    return found


def _repeated_failure(search: Search) -> Iterator[Bug]:
    """One failure that comes again: the one with a reason first, for where none is kept only a value can be blamed."""
    over = sum(trial.is_over for trial in search.trials)
    alike: dict[str, list[Trial]] = {}
    for trial in search.trials:
        if trial.state == "failed":
            alike.setdefault(_VARIES.sub(lambda found: found["name"] or "#", _last_line(trial)), []).append(trial)
    for reason, same in sorted(alike.items(), key=lambda one: (not one[0], -len(one[1]))):
        guilty = _guilty(search, same, sure=not reason) if len(same) >= _SAME_FAILURES else ""
        share = _FAILURE_SHARE if reason else _MOST  # without a reason they may have failed in different ways
        if guilty or len(same) >= max(_SAME_FAILURES, share * over):
            evidence = f"{len(same)} of {over} trials failed{_reason(same)}"
            evidence += f", among them {guilty}" if guilty else ""
            yield Bug("repeated-failure", same[0].number, evidence)
            return


def _reason(same: Sequence[Trial]) -> str:
    """What they failed with, or one example where numbers differ."""
    lines = {_last_line(trial) for trial in same}
    if lines == {""}:
        return ""
    return f" with {_last_line(same[0])!r}" if len(lines) == 1 else f" alike, the first with {_last_line(same[0])!r}"


def _last_line(trial: Trial) -> str:
    lines = trial.why_failed.strip().splitlines()
    return lines[-1].strip() if lines else ""


def failed_silently(search: Search) -> tuple[Trial, ...]:
    """The failed trials of which no reason is kept, where they are too many to be passed over."""
    over = sum(trial.is_over for trial in search.trials)
    found = tuple(trial for trial in search.trials if trial.state == "failed" and not trial.why_failed.strip())
    return found if len(found) >= max(_SAME_FAILURES, _FAILURE_SHARE * over) else ()


def _guilty(search: Search, failed: Sequence[Trial], *, sure: bool) -> str:
    """The value that most of its trials fail with, or the end of a range, where there is one.

    sure: beyond chance, of all values there are. Of an end of a range it always is.
    """
    over = [trial for trial in search.trials if trial.is_over]
    found, looked = [], 0
    for parameter in search.space:
        have = [trial for trial in over if parameter.name in trial.parameters]
        among = Counter(parameter.label(trial.parameters[parameter.name]) for trial in have)
        fails = Counter(
            parameter.label(trial.parameters[parameter.name]) for trial in failed if parameter.name in trial.parameters
        )
        looked += len(among)
        for label, times in fails.items():
            if times >= _SAME_FAILURES and times > among[label] / 2:
                chance = _at_least(times, among[label], fails.total(), len(have))
                found.append((chance, -times, f"{times} of {among[label]} with {parameter.name} {label}"))
    chance, _, words = min(found, default=(1.0, 0, ""))
    return (
        words if chance < (_BY_CHANCE / looked if sure else _CLUE_BY_CHANCE) else guilty_end(search, failed, _BY_CHANCE)
    )


def guilty_end(search: Search, failed: Sequence[Trial], by_chance: float = 5 * _BY_CHANCE) -> str:
    """The number whose large or small values fail, by ranks. by_chance: how often any number is blamed wrongly."""
    others = [trial for trial in search.trials if trial.state in ("finished", "pruned")]
    found = []
    for parameter in search.space:
        ill, well = (_numbers_of(trials, parameter.name) for trials in (failed, others))
        if min(len(ill), len(well)) >= _SAME_FAILURES:
            found.append((*_rank_chance(ill, well), parameter.name, ill, well))
    if not found:
        return ""
    chance, rises, name, ill, well = min(found, key=lambda one: one[0])
    return _said_of_end(name, ill, well, rises=rises) if chance < by_chance / len(found) else ""


def _numbers_of(trials: Sequence[Trial], name: str) -> list[float]:
    values = [trial.parameters.get(name) for trial in trials]
    return [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]


def _rank_chance(ill: Sequence[float], well: Sequence[float]) -> tuple[float, bool]:
    """The chance that numbers lie so far to one side of others, and whether they are the larger ones.

    Mann and Whitney's, with ties, by the normal law: of few numbers it says rather too large a chance than too small.
    """
    whole = len(ill) + len(well)
    above = math.fsum((one > other) + (one == other) / 2 for one in ill for other in well)
    off = above - len(ill) * len(well) / 2
    ties = sum(times**3 - times for times in Counter((*ill, *well)).values())
    spread = len(ill) * len(well) / 12 * (whole + 1 - ties / (whole * (whole - 1)))
    chance = math.erfc(max(abs(off) - 0.5, 0.0) / math.sqrt(2 * spread)) if spread > 0 else 1.0
    return chance, off > 0


def _said_of_end(name: str, ill: Sequence[float], well: Sequence[float], *, rises: bool) -> str:
    """Where the two part best."""
    side = 1.0 if rises else -1.0

    def beyond(numbers: Sequence[float], limit: float) -> int:
        return sum(side * (number - limit) >= 0 for number in numbers)

    limit = max(sorted(set(ill)), key=lambda one: beyond(ill, one) / len(ill) - beyond(well, one) / len(well))
    fail, all_there = beyond(ill, limit), beyond(ill, limit) + beyond(well, limit)
    rest = len(ill) + len(well) - all_there
    words = ("or more", "less") if rises else ("or less", "more")
    return f"{fail} of {all_there} with {name} {limit:.4g} {words[0]}, {len(ill) - fail} of {rest} with {words[1]}"


def _at_least(times: int, drawn: int, marked: int, whole: int) -> float:
    """The chance that so many of those drawn are marked ones, if it has nothing to do with being drawn."""
    ways = sum(
        math.comb(marked, some) * math.comb(whole - marked, drawn - some)
        for some in range(times, min(drawn, marked) + 1)
        if drawn - some <= whole - marked
    )
    return ways / math.comb(whole, drawn)


def is_complete(search: Search) -> bool:
    """Whether a grid came to its end: every configuration tried, and none twice. It is finished, which is no bug."""
    over = _with_parameters(search)
    return search.is_grid and len(over) == len({trial.configuration for trial in over}) == _size(search)


def _with_parameters(search: Search) -> list[Trial]:
    return [trial for trial in search.trials if trial.is_over and trial.parameters]


def _size(search: Search) -> float:
    """How many configurations there are; without end where not every trial has every parameter that has a choice."""
    names = {frozenset(trial.parameters.keys() & search.parameters.keys()) for trial in _with_parameters(search)}
    return size_of(search.space) if names == {frozenset(search.parameters)} else math.inf


def _exhausted(search: Search) -> Iterator[Bug]:
    over, size = _with_parameters(search), _size(search)
    first = {trial.configuration: trial.number for trial in reversed(over)}
    distinct = len(first)
    if not over or is_complete(search):
        return
    if distinct >= size:
        evidence = f"all {size:.0f} configurations of the space were tried" if size > 1 else "the space has no choice"
        yield Bug("exhausted-space", max(first.values()), evidence)
        return
    numbers = {trial.number for trial, _ in _repeats(over)}
    latest = over[-_NOTHING_NEW:]
    if len(latest) == _NOTHING_NEW and all(trial.number in numbers for trial in latest):
        evidence = f"the last {_NOTHING_NEW} trials all repeat earlier ones; {distinct} configurations were tried"
        yield Bug("exhausted-space", latest[0].number, evidence)


def _percent(chance: float) -> str:
    return f"{100 * chance:.0f} %" if chance >= 0.01 else "less than 1 %"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
