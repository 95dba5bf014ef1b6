"""Which action to try: the probability that it improves a trial with these symptoms, by counts, and one draw from it.

A prior holds counts from other searches. An estimate starts at the mean of all actions and is refined by what is known
of the parameter, of the way it is changed, of this edit, and of it with symptoms G, C, W and A, each scope
being the next one's prior with the weight of a few trials. What this search itself showed corrects that in turn.

A prior can be wrong for a search. The guard asks what it would have said of the trials that there are, whoever
proposed them, and a proposal is drawn without it as often as it is not to be trusted.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from isorun.diagnose import Symptoms
from isorun.repair.actions import Action, Edit, edit, idle_parameters, jumps, led_to, single_edits, untried
from isorun.repair.bugs import records_above
from isorun.repair.searches import (
    KEEP,
    UNKNOWN_SYMPTOMS,
    Configuration,
    Parameter,
    Search,
    Trial,
    Value,
    configuration_of,
)

__all__ = [
    "UNTESTED",
    "Beliefs",
    "Prior",
    "PriorRow",
    "Proposal",
    "RankedAction",
    "ToldChances",
    "propose",
    "ranked",
    "told_chances",
    "trust_in",
]

Scope = tuple[str, ...]
_ANY: Final = "*"
_BASE: Final = 0.25
"""How often an edit helps where nothing is known: three of four changes to a good configuration make it worse."""
_BACK_OFF: Final = 32.0
"""Tries that a coarser scope is worth. Of 4 to 64 it foretold changes on data sets held out best (build_priors.py)."""
_OWN_BACK_OFF: Final = 4.0
"""The same for tries of this very search, which speak of it better than those of others."""
_WEIGHT: Final = 8.0
_WEIGHT_WITHOUT: Final = 2.0
_TRUST_BEFORE: Final = 3.0
"""Log odds that a prior speaks of this problem before any trial is seen: twenty to one."""
UNTESTED: Final = 1 / (1 + math.exp(-_TRUST_BEFORE))
"""The trust in a prior of which no trial says anything."""
_RECENT: Final = 400
_JUMP: Final = (2.0, 3.0)
_MOST_TOGETHER: Final = 3
_STUCK_AFTER: Final = 8
_MOST_DRAWS: Final = 20
_BLAME: Final = 0.25
"""What a training that got nowhere speaks against each of its values, in failed tries: they are hardly all at fault."""
_LEAST_ABOVE: Final = 0.001
_PROMISES: Final = 2.0
_TELLING: Final = 32.0
"""Tries from which on a scope is named as the reason of a chance."""


def scopes_of(one: Edit, symptoms: Symptoms) -> tuple[Scope, ...]:
    """What an edit is counted under, the finest first: A, W, C and G are let go in this order, then the edit."""
    return _scopes(one.meaning, one.before, one.after, one.rises, symptoms)


@lru_cache(maxsize=4096)  # the same few edits are asked for again and again, in every trial
def _scopes(meaning: str, before: str, after: str, rises: bool | None, symptoms: Symptoms) -> tuple[Scope, ...]:
    a, c, g, w = (_ANY if symptom == "unknown" else symptom for symptom in symptoms)
    way = after if rises is None else ("up" if rises else "down")
    before = _ANY if before == KEEP else before  # what a user built is not known: from wherever to this value
    named = ("edit", meaning, before, after)
    conditions = ((a, c, g, w), (_ANY, c, g, w), (_ANY, c, g, _ANY), (_ANY, _ANY, g, _ANY), (_ANY,) * 4)
    chain = [(*named, *condition) for condition in conditions]
    return (*dict.fromkeys(chain), ("way", meaning, way), ("parameter", meaning), ())


@dataclass(frozen=True, slots=True)
class PriorRow:
    """How often an edit was tried on trials with these symptoms, and how often it improved them.

    data: on which data set, where that is told: so a search on it can be judged by what others taught.
    """

    edit: Edit
    symptoms: Symptoms
    tries: float
    improved: float
    data: str = ""


@dataclass(frozen=True)
class Prior:
    """Counts from other searches, at every scope. source, calibration: as its file tells them. noise: sd of a score."""

    rows: tuple[PriorRow, ...]
    source: str = ""
    noise: float = 0.0
    about: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        counts: dict[Scope, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for row in self.rows:
            anywhere = replace(row.edit, before=KEEP)
            for scope in {*scopes_of(row.edit, row.symptoms), *scopes_of(anywhere, row.symptoms)}:
                counts[scope][0] += row.tries
                counts[scope][1] += row.improved
        object.__setattr__(self, "_counts", {scope: (n, k) for scope, (n, k) in counts.items()})
        object.__setattr__(self, "_known", {})

    def counts(self, scope: Scope) -> tuple[float, float]:
        """Tries and improvements at a scope."""
        found: tuple[float, float] = self._counts.get(scope, (0.0, 0.0))  # type: ignore[attr-defined]
        return found

    def told(self, one: Edit, symptoms: Symptoms) -> tuple[Scope, float, float]:
        """The finest scope with enough tries to be worth telling, its tries and improvements; else the one with any."""
        found = [(scope, *self.counts(scope)) for scope in scopes_of(one, symptoms)[:-1]]
        enough = (entry for entry in found if entry[1] >= _TELLING)
        return next(enough, next((entry for entry in found if entry[1] >= 1), ((), 0.0, 0.0)))

    def probability(self, one: Edit, symptoms: Symptoms) -> float:
        """That the edit improves a trial with these symptoms, by back-off."""
        scopes = scopes_of(one, symptoms)
        known: dict[Scope, float] = self._known  # type: ignore[attr-defined]
        if scopes[0] not in known:
            tries, improved = self.counts(())
            chance = (improved + _BASE) / (tries + 1)
            coarser = (tries, improved)
            for scope in reversed(scopes[:-1]):
                tries, improved = self.counts(scope)
                if (tries, improved) != coarser:  # the very same tries count once, however finely they are told
                    chance = (improved + _BACK_OFF * chance) / (tries + _BACK_OFF)
                    coarser = (tries, improved)
            known[scopes[0]] = chance
        return known[scopes[0]]


NO_PRIOR: Final = Prior(())


@dataclass(frozen=True, slots=True)
class Observation:
    """An edit that this search has made, by whoever: from a trial to another that differs in nothing else."""

    edit: Edit
    symptoms: Symptoms
    improved: bool


def observations(search: Search) -> list[Observation]:
    """All edits that the search has made, forth and back. One to a trial that failed or was pruned helped nobody."""
    over = [trial for trial in search.trials if trial.is_over and (trial.has_score or trial.state != "finished")]
    over = over[-_RECENT:]
    found = []
    idle: dict[int, frozenset[str]] = {}
    for i, j, parameter in _neighbours(search, over):
        if i not in idle:
            idle[i] = idle_parameters(search.space, over[i].parameters)
        if parameter.name in idle[i]:  # and in the other one, for all else is equal there
            continue
        for one, other in ((over[i], over[j]), (over[j], over[i])):
            made = edit(parameter, one.parameters[parameter.name], other.parameters[parameter.name])
            if one.has_score and made.before != made.after:
                found.append(Observation(made, one.symptoms, search.is_better(other, one)))
    return found


def _neighbours(search: Search, trials: Sequence[Trial]) -> Iterator[tuple[int, int, Parameter]]:
    """The places of every two trials that differ in one parameter alone, and that parameter."""
    if len(trials) < 2 or not search.space:
        return
    names = [parameter.name for parameter in search.space]
    codes = np.array([_codes([trial.parameters.get(name, _MISSING) for trial in trials]) for name in names])
    differ = (codes[:, :, None] != codes[:, None, :]) & (codes[:, :, None] >= 0) & (codes[:, None, :] >= 0)
    for i, j in np.argwhere(np.triu(differ.sum(axis=0) == 1)):
        yield int(i), int(j), search.space[int(np.argmax(differ[:, i, j]))]


_MISSING: Final = object()


def _codes(values: Sequence[Any]) -> npt.NDArray[np.int32]:
    """Equal values as equal numbers; -1 where the trial has none."""
    seen: dict[str, int] = {}
    return np.array(
        [-1 if value is _MISSING else seen.setdefault(repr(value), len(seen)) for value in values], dtype=np.int32
    )


class Beliefs:
    """What a prior (or none) and this search's own edits say together.

    At each scope, from all actions down to the edit, what was seen is held against what had been expected up to there:
    an estimate is multiplied by (improved + w) / (expected + w). At the edit itself, counts are added as they are.
    """

    def __init__(self, prior: Prior | None, seen: Sequence[Observation]) -> None:
        self._prior = prior or NO_PRIOR
        self._weight = _WEIGHT if prior is not None else _WEIGHT_WITHOUT
        self._own: dict[Scope, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._ratios: list[dict[Scope, float]] = []
        chances = [self._prior.probability(one.edit, one.symptoms) for one in seen]
        for depth in (1, 2, 3):
            groups: dict[Scope, list[float]] = defaultdict(lambda: [0.0, 0.0])
            keys = [scopes_of(one.edit, one.symptoms)[-depth] for one in seen]
            for one, key, chance in zip(seen, keys, chances, strict=True):
                groups[key][0] += chance
                groups[key][1] += one.improved
            ratios = {key: (k + _OWN_BACK_OFF) / (e + _OWN_BACK_OFF) for key, (e, k) in groups.items()}
            chances = [min(chance * ratios[key], 0.99) for key, chance in zip(keys, chances, strict=True)]
            self._ratios.append(ratios)
        for one in seen:
            self._own[_finest(one.edit)][0] += 1
            self._own[_finest(one.edit)][1] += one.improved

    def own(self, one: Edit) -> tuple[int, int]:
        """How often this search made the edit, and how often that improved a trial."""
        tries, improved = self._own.get(_finest(one), (0.0, 0.0))
        return int(tries), int(improved)

    def shape(self, one: Edit, symptoms: Symptoms) -> tuple[float, float]:
        """The two numbers of the beta distribution of the chance that the edit improves."""
        chance = self._prior.probability(one, symptoms)
        scopes = scopes_of(one, symptoms)
        for depth, ratios in enumerate(self._ratios, start=1):
            chance *= ratios.get(scopes[-depth], 1.0)
        chance = min(max(chance, 0.001), 0.99)
        tries, improved = self._own.get(_finest(one), (0.0, 0.0))
        return self._weight * chance + improved, self._weight * (1 - chance) + tries - improved

    def mean(self, one: Edit, symptoms: Symptoms) -> float:
        """The chance that the edit improves."""
        helps, harms = self.shape(one, symptoms)
        return helps / (helps + harms)


def _finest(one: Edit) -> Scope:
    return one.meaning, one.before, one.after


def trust_in(prior: Prior, search: Search) -> float:
    """The probability that a prior speaks of this search: the guard.

    For any two trials a prior says which should be the better one: the odds of every edit between them against the way
    back, multiplied. The likelihood of the order that was seen, against that by a coin, is tempered to n - 1
    comparisons, for more than those are not independent. An order within noise, and that of two trainings that got
    nowhere, is none.
    """
    trials = search.scored[-_RECENT:]
    if len(trials) < 2:
        return UNTESTED
    odds = np.zeros((len(trials), len(trials)))
    for parameter in search.space:
        values = [trial.parameters.get(parameter.name, _MISSING) for trial in trials]
        if any(value != values[0] for value in values):  # one that nobody changed says nothing
            odds += _odds(prior, parameter, values)
    gains = np.array([search.gain(trial) for trial in trials])
    later, earlier = np.tril_indices(len(trials), -1)
    nowhere = np.array([trial.got_nowhere for trial in trials])
    order = np.sign(gains[later] - gains[earlier])
    told = (np.abs(gains[later] - gains[earlier]) > search.margin) & ~(nowhere[later] & nowhere[earlier])
    if not told.any():
        return UNTESTED
    agree = (odds[earlier, later] * order)[told]
    comparisons = (len(trials) - 1) * float(np.mean(told))
    evidence = float(np.mean(math.log(2) - np.logaddexp(0, -agree))) * comparisons
    return float(1 / (1 + math.exp(-min(max(evidence + _TRUST_BEFORE, -50.0), 50.0))))


def _odds(prior: Prior, parameter: Parameter, values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """By trial and trial: the log odds that going from the value of the one to that of the other improves."""
    labels: dict[str, tuple[int, Value]] = {}
    known = {"": -1}  # that of trials without this parameter
    written = ["" if value is _MISSING else repr(value) for value in values]
    for text, value in zip(written, values, strict=True):
        if text not in known:
            known[text] = labels.setdefault(parameter.label(value), (len(labels), value))[0]
    places = np.array([known[text] for text in written])
    table = np.zeros((len(labels) + 1, len(labels) + 1))  # the last row and column: trials without this parameter
    for i, one in labels.values():
        for j, other in labels.values():
            if i < j:
                there = edit(parameter, one, other)
                forth, back = (prior.probability(way, UNKNOWN_SYMPTOMS) for way in (there, there.reversed))
                table[i, j] = math.log(max(forth, 1e-3) / max(back, 1e-3))
                table[j, i] = -table[i, j]
    found: npt.NDArray[np.float64] = table[places[:, None], places[None, :]]
    return found


@dataclass(frozen=True, slots=True)
class RankedAction:
    """An action with its chance to improve the best trial. tries, improved: of this search itself.

    known_by: the scope of the prior that says most of it, with the tries and improvements there; () where none does.
    """

    action: Action
    probability: float
    tries: int
    improved: int
    known_by: Scope
    prior_tries: float
    prior_improved: float


def ranked(search: Search, prior: Prior | None, rng: np.random.Generator) -> list[RankedAction]:
    """All single edits of the best trial, the most promising first."""
    best = search.best
    if best is None:
        return []
    seen = observations(search)
    trust = trust_in(prior, search) if prior is not None else 0.0
    without = Beliefs(None, seen)
    with_prior = Beliefs(prior, seen) if prior is not None else without
    found = []
    for action in single_edits(search, best, (trial.configuration for trial in search.trials), rng):
        one = action.edits[0]
        chance = _chance(search, best, action, (trust, with_prior, without))
        scope, tries, improved = (prior or NO_PRIOR).told(one, best.symptoms)
        found.append(RankedAction(action, chance, *without.own(one), scope, tries, improved))
    return sorted(found, key=lambda one: -one.probability)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The next trial. origin: the trial that is changed. trust: in the prior. with_prior: whether it was asked.

    chance: the probability that it improves the trial it changes, by all that is known; None where nobody asked.
    """

    action: Action
    origin: int
    trust: float
    with_prior: bool
    chance: float | None = None

    def to_json(self) -> dict[str, Any]:
        """What is kept of it in an engine's storage."""
        configuration = [list(pair) for pair in self.action.configuration]
        return {
            "origin": self.origin,
            "configuration": configuration,
            "trust": round(self.trust, 3),
            **({} if self.chance is None else {"chance": round(self.chance, 4)}),
        }


def propose(
    search: Search,
    prior: Prior | None,
    rng: np.random.Generator,
    *,
    guard: bool = True,
    taken: Iterable[Configuration] = (),
) -> Proposal | None:
    """By Thompson draws: of all actions the one whose drawn chance is largest; none when nothing new is in reach.

    Two or three changes at once are among them where a prior says which ones go well together, and where single ones
    stopped helping. While nothing trains, a whole configuration is drawn instead.

    taken: configurations besides those of its trials that are under way. guard: whether a prior may be let go.
    """
    origin = _origin(search, rng)
    if origin is None:
        return None
    tried = {*(trial.configuration for trial in search.trials), *taken}
    trust = 0.0 if prior is None else (trust_in(prior, search) if guard else 1.0)
    asked = bool(rng.random() < trust)
    seen = observations(search)
    beliefs = Beliefs(prior if asked else None, seen)
    chosen = _afresh(search, origin, beliefs, tried, rng) if search.nothing_trains else None
    chosen = chosen or _drawn(search, origin, beliefs, tried, rng, with_jumps=asked)
    if chosen is None:
        return None
    other = beliefs if prior is None else Beliefs(None if asked else prior, seen)
    with_prior, without = (beliefs, other) if asked else (other, beliefs)
    return Proposal(chosen, origin.number, trust, asked, _chance(search, origin, chosen, (trust, with_prior, without)))


def _origin(search: Search, rng: np.random.Generator) -> Trial | None:
    """The trial to change: that with the best score, where each has its seed noise drawn once more.

    Of many that are equal within noise the best one is so by luck. Where nothing trains, that is all of them, and what
    one of them lacks is not what another lacks.
    """
    best, noise = search.best, search.noise
    if best is None:
        return None
    gains = np.array([search.gain(trial) for trial in search.scored])
    if best.got_nowhere:
        of_those = gains[[trial.got_nowhere for trial in search.scored]]
        noise = max(noise, 1.4826 * float(np.median(np.abs(of_those - np.median(of_those)))))
    return search.scored[int(np.argmax(gains + rng.normal(0.0, noise, len(gains))))] if noise else best


def _afresh(
    search: Search, origin: Trial, beliefs: Beliefs, tried: Set[Configuration], rng: np.random.Generator
) -> Action | None:
    """Another value for every parameter that would rather have one: no part of a dead training is worth preserving.

    A single edit helps only where a single thing is wrong. Each parameter draws a chance for the value it has and for
    all in reach, by what is believed of them, less the more trainings that had it got nowhere, and takes the best.
    """
    by_parameter: dict[str, list[Edit]] = defaultdict(list)
    for action in single_edits(search, origin, (), rng, with_idle=True, anywhere=True):
        by_parameter[action.edits[0].parameter].append(action.edits[0])
    dead = {name: _values_of(search, name) for name in by_parameter}
    for _ in range(_MOST_DRAWS):
        best = (_rather(edits, dead[name], beliefs, origin.symptoms, rng) for name, edits in by_parameter.items())
        wanted = {one.parameter: one for one in best if one is not None}
        idle = idle_parameters(search.space, {**origin.parameters, **{name: one.value for name, one in wanted.items()}})
        edits = tuple(one for name, one in wanted.items() if name not in idle)
        whole = led_to(search, origin, edits)
        made = Action(tuple(one for one in edits if one.parameter in whole), whole, configuration_of(whole))
        if edits and made.configuration not in tried:
            return made
    return None


def _values_of(search: Search, name: str) -> Counter[str]:
    """How many of the latest trainings had which value of a parameter."""
    having = (trial.parameters for trial in search.scored[-_RECENT:] if name in trial.parameters)
    return Counter(search.parameters[name].label(parameters[name]) for parameters in having)


def _rather(
    edits: Sequence[Edit], dead: Counter[str], beliefs: Beliefs, symptoms: Symptoms, rng: np.random.Generator
) -> Edit | None:
    """The edit of a parameter with the largest drawn chance; none where that of staying is larger."""

    def drawn(chance: float, value: str) -> float:
        return rng.beta(_WEIGHT_WITHOUT * chance, _WEIGHT_WITHOUT * (1 - chance) + dead[value] * _BLAME)

    stays = drawn(0.5, edits[0].before)
    chances = [drawn(beliefs.mean(one, symptoms), one.after) for one in edits]
    return edits[int(np.argmax(chances))] if max(chances) > stays else None


def _drawn(
    search: Search,
    origin: Trial,
    beliefs: Beliefs,
    tried: Set[Configuration],
    rng: np.random.Generator,
    *,
    with_jumps: bool,
) -> Action | None:
    """Two draws: one among the edits of each parameter, and a fresh one of what each parameter chose among them all.

    So a learning rate, which can take many values, has no more tickets than an activation that has two.
    """
    every = single_edits(search, origin, (), rng, with_idle=True)
    idle = idle_parameters(search.space, origin.parameters)
    singles = [action for action in every if action.edits[0].parameter not in idle]
    left = [made for one in singles if (made := untried(search, origin, one, tried, rng)) is not None]
    candidates = _picked(left, beliefs, origin.symptoms, rng)
    if with_jumps or len(left) < len(singles) / 2 or _stuck(search):
        factor = rng.beta(*_jump_shape(search))
        picked = [(action.edits[0], chance) for chance, action in _picked(every, beliefs, origin.symptoms, rng)]
        fails = {one.parameter: 1 - chance for one, chance in picked}

        def worth(some: Sequence[Edit]) -> float:
            return factor * (1 - math.prod([fails[one.parameter] for one in some]))

        best = next(jumps(search, origin, [one for one, _ in picked], tried, rng, worth=worth), None)
        candidates += [(worth(best.edits), best)] if best is not None else []
    if not candidates:  # a small space: what each parameter would rather be was tried together, too
        together = jumps(search, origin, [action.edits[0] for action in every], tried, rng)
        candidates = [(rng.random(), action) for action in together]
    return max(candidates, key=lambda one: one[0])[1] if candidates else None


def _picked(
    actions: Sequence[Action], beliefs: Beliefs, symptoms: Symptoms, rng: np.random.Generator
) -> list[tuple[float, Action]]:
    """By parameter: the edit whose drawn chance is largest, with another draw of its chance."""
    drawn: dict[str, tuple[float, Action]] = {}
    for action in actions:
        one = action.edits[0]
        chance = rng.beta(*beliefs.shape(one, symptoms))
        if one.parameter not in drawn or chance > drawn[one.parameter][0]:
            drawn[one.parameter] = chance, action
    return [(rng.beta(*beliefs.shape(action.edits[0], symptoms)), action) for _, action in drawn.values()]


def _chance(search: Search, origin: Trial, action: Action, believed: tuple[float, Beliefs, Beliefs]) -> float:
    """That an action improves its origin: by the prior as far as that is trusted, else by this search alone."""
    trust, with_prior, without = believed
    fails = 1.0
    for one in action.edits:
        mean = trust * with_prior.mean(one, origin.symptoms) + (1 - trust) * without.mean(one, origin.symptoms)
        fails *= 1 - mean
    helped, harmed = _jump_shape(search)
    chance = (1 - fails) * (helped / (helped + harmed) if len(action.edits) > 1 else 1.0)
    return told_chances().told(chance, search, _kept_promises(search))


@dataclass(frozen=True, slots=True)
class ToldChances:
    """How a counted chance becomes the one that is told: weights of log odds.

    counted: of the chance by counts. trials: of their number, for the best of many is harder to beat. above: of the
    part of all records that lies above noise.
    calibration: by tenths, what was told of searches on tables that had no part in the weights, and what came.
    """

    constant: float
    counted: float
    trials: float
    above: float
    calibration: tuple[Mapping[str, float], ...] = ()

    def told(self, chance: float, search: Search, kept: float = 1.0) -> float:
        """The chance to beat the best of this search. kept: what came of those told before, by what was told."""
        chance = min(max(chance, 1e-4), 1 - 1e-4)
        dead = search.best is not None and search.best.got_nowhere  # how they differ says nothing of one that trains
        above = 1.0 if dead else max(records_above(search, search.margin), _LEAST_ABOVE)
        odds = self.constant + self.counted * math.log(chance / (1 - chance)) + self.above * math.log(above)
        odds += self.trials * math.log(max(len(search.scored), 1)) + math.log(kept)
        return 1 / (1 + math.exp(-odds))


@cache
def told_chances() -> ToldChances:
    """As fitted by benchmarks/repair/build_priors.py, which writes the file."""
    kept = json.loads(Path(__file__).with_name("chances.json").read_text(encoding="utf-8"))
    return ToldChances(**kept["weights"], calibration=tuple(kept["calibration"]))


def _kept_promises(search: Search) -> float:
    """What came of the chances that were told in this search, by what was told; as if two more had come true.

    A search that keeps less than was promised is promised less from then on.
    """
    by_number = {trial.number: trial for trial in search.trials}
    told, came = _PROMISES, _PROMISES
    for trial in search.trials:
        origin = by_number.get(trial.origin) if trial.origin is not None else None
        if trial.chance is not None and trial.is_over and origin is not None and origin.has_score:
            told += trial.chance
            came += search.is_better(trial, origin)
    return came / told


def _stuck(search: Search) -> bool:
    """Whether single edits stopped helping: so many since the best trial, and none was better."""
    since = -1 if search.best is None else search.best.number
    made = (trial for trial in search.trials if trial.origin is not None and trial.number > since)
    return sum(trial.is_over for trial in made) >= _STUCK_AFTER


def _jump_shape(search: Search) -> tuple[float, float]:
    """What is left of the chance that one of several edits helps when all are made: learned from the jumps made."""
    by_number = {trial.number: trial for trial in search.trials}
    helped, harmed = _JUMP
    for trial in search.trials:
        origin = by_number.get(trial.origin) if trial.origin is not None else None
        if origin is None or not trial.is_over or not origin.has_score:
            continue
        changed = sum(origin.parameters.get(name) != value for name, value in trial.parameters.items())
        if 1 < changed <= _MOST_TOGETHER:  # a configuration drawn afresh is no jump
            better = search.is_better(trial, origin)
            helped, harmed = helped + better, harmed + (not better)
    return helped, harmed
