"""What may be changed: an action takes one parameter of a trial from a value to another; a jump takes two or three.

A change has a premise: momentum does nothing under Adam, a setting of a block nothing where another block is used. What
names and values tell to be idle in a trial is not changed there.

A parameter is known by its meaning, told from its name, so that what one search learned of learning rates speaks to
another. One whose meaning is not known is called by its name: only this search, or a prior made for this very space,
has anything to say about it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from isorun.repair.searches import (
    KEEP,
    Configuration,
    Parameter,
    Search,
    Trial,
    Value,
    configuration_of,
    is_offered,
    own_names,
)

__all__ = [
    "MEANINGS",
    "Action",
    "Edit",
    "edit",
    "edits_between",
    "idle_parameters",
    "jumps",
    "led_to",
    "meaning",
    "meaning_of",
    "single_edits",
    "size_of",
    "unknown_parameters",
    "untried",
]

MEANINGS: Final = (
    ("end-learning-rate", r"(end|final|min(imum)?|last)_(lr|learning_rate)"),
    ("learning-rate-scale", r"(lr|learning_rate)_(scale|factor|multiplier|mult)|second_(lr|learning_rate)"),
    ("schedule", r"(lr|learning_rate)_(schedule|scheduler|policy|decay)|schedule(r)?|annealing|warm_?up"),
    ("learning-rate", r"(init(ial)?|base|max|peak)?_?(lr|learning_rate)(_(init|initial|max|base))?|eta"),
    ("weight-decay", r"weight_decay|wd|alpha|l2(_.*)?|l1(_.*)?|reg(ulari[sz](ation|er))?(_.*)?|lambda(_.*)?"),
    ("momentum", r"(sgd_)?momentum|beta_?1|nesterov"),
    ("second-moment", r"beta_?2|rho|adam_?eps(ilon)?|epsilon"),
    ("optimizer", r"opti(m|mi[sz]er)(_(name|type|class))?|solver"),
    ("loss", r"loss(_.*)?|criterion|label_smoothing"),
    ("activation", r"act(ivation)?(_?fn|_function)?|non_?linearity"),
    ("initialiser", r"((kernel|weight|bias)_)?init(iali[sz](er|ation))?|init_(scale|std|gain)|gain"),
    ("normalisation", r"(use_)?(batch_?norm|layer_?norm|norm(ali[sz](e|ation|er))?|bn)"),
    ("inputs", r"standardi[sz](e|ation)|(input_)?(scaler|scaling|rescaling)|normali[sz]e_(inputs?|data)"),
    ("clipping", r"(grad(ient)?_)?clip(ping)?(_?(norm|value))?|max_grad_norm"),
    ("dropout", r"(.*_)?drop_?(out|path)?(_(rate|prob|p))?"),
    ("augmentation", r"augment(ation)?|mixup|cutout|translation|rotation|zoom|contrast|(horizontal_|vertical_)?flip"),
    ("batch", r"(mini_?)?batch(_?size)?|bs"),
    ("epochs", r"(max_|n_|num_)?(epochs?|iterations|steps)"),
    (
        "width",
        r"(n_|num_)?(units?|hidden(_(size|units|dim|layer_size))?|neurons|filters?|channels|width|dim|max_units)",
    ),
    ("tree-depth", r"(.*_)?max_depth"),
    ("depth", r"(n_|num_)?(layers?|blocks?|hidden_layers|depth|stages)"),
    ("kernel", r"kernel(_size)?|pool(ing)?(_size)?|stride|max_pooling"),
    ("block", r"block(_?type)?|arch(itecture)?|model(_?type)?|backbone|cell|version|separable"),
    ("reduction", r"reduction(_type)?|head"),
    ("heads", r"(n_|num_)?heads|embed(ding)?(_dim)?|dense_dim"),
    ("freezing", r"freez(e|ing)(_.*)?|trainable|unfreeze(_.*)?"),
    ("transfer", r"pre_?trained|imagenet_size|pretraining"),
    ("fine-tuning", r"fine_?tun(e|ing)(_.*)?|(two|three)_step|step_ratio"),
)
_PATTERNS: Final = tuple((known, re.compile(pattern)) for known, pattern in MEANINGS)
_ADAPTIVE: Final = r".*adam.*|adagrad|adadelta|adafactor|ftrl|lion|l_?bfgs|rprop"
_NOT: Final = r"false|none|no|off|0|keep"
_OPTIMIZER: Final = r"opti(m|mi[sz]er)(_(name|type|class))?|solver"
PREMISES: Final = (
    (r"(sgd_)?momentum|nesterov", _OPTIMIZER, _ADAPTIVE),
    (r"nesterov", r"(sgd_)?momentum", r"0(\.0*)?"),
    (r"(adam_?)?beta_?[12]|adam_?eps(ilon)?", _OPTIMIZER, r"sgd|momentum|rmsprop|adagrad|l_?bfgs|rprop"),
    (r"weight_decay|wd", _OPTIMIZER, r"l_?bfgs|rprop|sparse_?adam|ftrl"),
    (r"learning_rate_init|batch_size", r"solver", r"l_?bfgs"),
    (r"translation|rotation|zoom|contrast|(horizontal_|vertical_)?flip", r"(use_)?augment(ation)?", _NOT),
    (r"imagenet_size", r"pre_?trained", _NOT),
    (r"fine_tuning", r"pre_?trained", r"keep"),
    (r"step_ratio|second_(lr|learning_rate)|freeze", r"fine_?tun(e|ing)", _NOT),
)
"""What is idle, the parameter that this depends on, and the values of it with which it is: as patterns of names."""
_GENERAL_DEPTH: Final = r"(n_|num_)?(layers?|blocks?|hidden_layers|depth)"
_SURELY_FAILS: Final = 3
_FAILS_BY_CHANCE: Final = 0.01
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLACE: Final = re.compile(r"^(layer|block|conv|dense|stage|fc|l|b)_?\d+_|(_(l|layer)?\d+|\d+)+$")
_LOG_STEPS: Final = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
_LINEAR_STEPS: Final = (-0.4, -0.2, 0.2, 0.4)
_PARTS: Final = 6
_MOST_CHOICES: Final = 64
_MOST_JUMPS: Final = 200


@lru_cache(maxsize=4096)
def meaning(name: str) -> str:
    """What a parameter of this name is; "" where that is not known. Where it stands (`units_2`) is no part of it."""
    plain = _plain(name)
    shorter = _PLACE.sub("", plain)
    for candidate in (plain, shorter, shorter.partition("_")[2], shorter.rpartition("_")[2]):
        for known, pattern in _PATTERNS:
            if candidate and pattern.fullmatch(candidate):
                return known
    return ""


def _plain(name: str) -> str:
    return _CAMEL.sub("_", name.rpartition("/")[2].rpartition(".")[2]).casefold().replace("-", "_").replace(" ", "_")


def meaning_of(parameter: Parameter) -> str:
    """The meaning, or the name where there is none."""
    return meaning(parameter.name) or parameter.name


def unknown_parameters(search: Search) -> tuple[str, ...]:
    """The parameters whose meaning is not known."""
    return tuple(parameter.name for parameter in search.space if not meaning(parameter.name))


@dataclass(frozen=True, slots=True)
class Edit:
    """One parameter taken from a value to another. before, after: their labels. rises: for numbers."""

    parameter: str
    meaning: str
    before: str
    after: str
    value: Value
    rises: bool | None = None

    @property
    def reversed(self) -> Edit:
        """The way back, as counts know it."""
        rises = None if self.rises is None else not self.rises
        return Edit(self.parameter, self.meaning, self.after, self.before, self.value, rises)


@dataclass(frozen=True, slots=True)
class Action:
    """What makes the next trial from another one: one edit or several at once. parameters: what it leads to.

    configuration: what the next trial will be known by.
    """

    edits: tuple[Edit, ...]
    parameters: Mapping[str, Value]
    configuration: Configuration


def edit(parameter: Parameter, before: Value, after: Value) -> Edit:
    """The edit between two values of a parameter."""
    rises = float(after) > float(before) if parameter.is_numeric else None  # type: ignore[arg-type]
    return Edit(parameter.name, meaning_of(parameter), parameter.label(before), parameter.label(after), after, rises)


def edits_between(search: Search, one: Trial, other: Trial) -> tuple[Edit, ...]:
    """The edits that lead from one trial to another, over the parameters that both have."""
    return tuple(
        edit(search.parameters[name], value, other.parameters[name])
        for name, value in one.parameters.items()
        if name in search.parameters and name in other.parameters and other.parameters[name] != value
    )


def idle_parameters(space: tuple[Parameter, ...], parameters: Mapping[str, Value]) -> frozenset[str]:
    """The parameters of a configuration that change nothing in it, as far as names and values tell."""
    premises = _premises(space)
    return frozenset(name for name in premises if name in parameters and _is_idle(name, parameters, premises))


def _is_idle(name: str, parameters: Mapping[str, Value], premises: Mapping[str, tuple[_Premise, ...]]) -> bool:
    return any(one.fails(parameters.get(one.on)) for one in premises.get(name, ()))


@dataclass(frozen=True, slots=True)
class _Premise:
    """What a parameter needs. on: the parameter that decides it. idle_with: the values with which it fails, by words.

    below: it fails where the other one is less than this.
    """

    on: str
    idle_with: frozenset[str] = frozenset()
    below: float = -math.inf

    def fails(self, value: Value) -> bool:
        if value is None:
            return False
        return _word(value) in self.idle_with or (isinstance(value, (int, float)) and value < self.below)


@lru_cache(maxsize=1024, typed=True)
def _word(value: Value) -> str:
    return re.sub(r"^([a-z_]\w*\.)+", "", str(value).casefold())  # torch.optim.Adam is adam


@lru_cache(maxsize=64)
def _premises(space: tuple[Parameter, ...]) -> Mapping[str, tuple[_Premise, ...]]:
    """By name, for those that have any."""
    found: dict[str, tuple[_Premise, ...]] = {}
    for one in space:
        told = [(on, values) for idle, on, values in PREMISES if re.fullmatch(idle, _plain(one.name))]
        others = [other for other in space if other is not one]
        by_others = (made for other in others for made in (*_told(told, other), *_of_branch(one, other)))
        found[one.name] = (*by_others, *_of_place(one, space))
    return {name: premises for name, premises in found.items() if premises}


def _words(parameter: Parameter) -> tuple[str, ...]:
    return tuple(map(_word, parameter.choices)) if parameter.kind == "category" else ("0", "0.0")


def _told(told: Sequence[tuple[str, str]], other: Parameter) -> Iterator[_Premise]:
    """told: of the premises of a parameter, the pattern of what it depends on, and that of the values."""
    for on, values in told:
        if re.fullmatch(on, _plain(other.name)):
            yield _Premise(other.name, frozenset(word for word in _words(other) if re.fullmatch(values, word)))


def _of_branch(one: Parameter, other: Parameter) -> Iterator[_Premise]:
    """A setting that is named after another block or optimizer than the trial's (`res_net_block_1/version`)."""
    if other.kind != "category" or meaning(other.name) not in ("block", "optimizer"):
        return
    words = {word: re.sub(r"[^a-z0-9]", "", word) for word in _words(other)}
    parts = [re.sub(r"[^a-z0-9]", "", part.casefold()) for part in one.name.split("/")]
    named = {word for word, bare in words.items() if len(bare) > 2 and any(_begins(part, bare) for part in parts)}
    if named:
        longest = max((words[word] for word in named), key=len)  # of adam and adamw, what adamw_eps is named after
        fitting = {word for word, bare in words.items() if bare.startswith(longest)}
        yield _Premise(other.name, frozenset(words) - fitting)


def _begins(part: str, bare: str) -> bool:
    return part.startswith(bare) and part != bare


def _of_place(one: Parameter, space: tuple[Parameter, ...]) -> Iterator[_Premise]:
    """A setting of the third layer where there are two: KerasTuner fills in what a builder does not ask for."""
    depths = [other for other in space if re.fullmatch(_GENERAL_DEPTH, _plain(other.name)) and other.kind == "int"]
    stem, place = _stem_and_place(one.name)
    if len(depths) != 1 or place is None:
        return
    places = {at for other_stem, at in map(_stem_and_place, (other.name for other in space)) if other_stem == stem}
    first = min(at for at in places if at is not None)
    if first in (0, 1) and places == set(range(first, first + int(depths[0].high))):
        yield _Premise(depths[0].name, below=place - first + 1)


def _stem_and_place(name: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"(.*?)(\d+)", name)
    return (found[1], int(found[2])) if found else (name, None)


def single_edits(
    search: Search,
    origin: Trial,
    tried: Iterable[Configuration],
    rng: np.random.Generator,
    *,
    with_idle: bool = False,
    anywhere: bool = False,
) -> list[Action]:
    """The actions on one parameter of a trial that lead to configurations nobody has tried or is trying.

    None to a choice with which every trial failed.

    A category goes to each other choice, a number by factors of 3, 10 and 100 on a log scale, by one and two fifths
    of its range on a linear one, by one and two where there are few: each a little off at random, so that a value
    is not tried twice and the space between is reached. with_idle: also what changes nothing as long as it is alone.
    anywhere: a number goes to any part of its range instead.
    """
    known = set(tried)
    idle = frozenset() if with_idle else idle_parameters(search.space, origin.parameters)
    failing, acting = _failing(search), _acting_on(search, origin)
    actions = []
    for name, value in origin.parameters.items():
        parameter = search.parameters.get(name)
        if parameter is None or name in idle or not parameter.holds(value):
            continue
        for target in _targets(parameter, value, rng, anywhere=anywhere):
            built = origin.as_built.get(name)
            if built is not None and (target == built or (value == built and target == KEEP)):
                continue  # what the user built, by another name
            if (name, repr(target)) in failing:
                continue
            made = untried(search, origin, acting((edit(parameter, value, target),)), known, rng)
            if made is not None:
                known.add(made.configuration)
                actions.append(made)
    return actions


def _failing(search: Search) -> Set[tuple[str, str]]:
    """Choices with which every trial failed, beyond chance: what changes to them would come to is known."""
    over = [trial for trial in search.trials if trial.is_over]
    failed = [trial for trial in over if trial.state == "failed"]
    if len(failed) < _SURELY_FAILS:
        return frozenset()
    had = Counter((name, repr(value)) for trial in over for name, value in trial.parameters.items())
    fails = Counter((name, repr(value)) for trial in failed for name, value in trial.parameters.items())
    return {
        (name, value)
        for (name, value), times in fails.items()
        if times >= _SURELY_FAILS
        and times == had[name, value]
        and name in search.parameters
        and search.parameters[name].kind == "category"
        and math.comb(len(failed), times) / math.comb(len(over), times) < _FAILS_BY_CHANCE
    }


def untried(
    search: Search, origin: Trial, action: Action, tried: Set[Configuration], rng: np.random.Generator
) -> Action | None:
    """The action; none where that was tried. Of a branch that it opens, other values do as well."""
    if action.configuration not in tried:
        return action
    for name in [name for name in action.parameters if name not in origin.parameters]:
        parameter, value = search.parameters.get(name), action.parameters[name]
        if parameter is not None and parameter.holds(value):
            for other in _targets(parameter, value, rng, anywhere=False):
                whole = {**action.parameters, name: other}
                if (configuration := configuration_of(whole)) not in tried:
                    return Action(action.edits, whole, configuration)
    return None


def _acting_on(search: Search, origin: Trial) -> Callable[[tuple[Edit, ...]], Action]:
    """What makes actions on a trial of edits. There are hundreds, so what they have in common is found once."""
    base = configuration_of(origin.parameters)
    place = {name: at for at, (name, _) in enumerate(base)}

    def action(edits: tuple[Edit, ...]) -> Action:
        whole = led_to(search, origin, edits)
        if search.has_branches:
            return Action(edits, whole, configuration_of(whole))
        pairs = list(base)
        for one in edits:
            pairs[place[one.parameter]] = one.parameter, repr(one.value)
        return Action(edits, whole, tuple(pairs))

    return action


def led_to(search: Search, origin: Trial, edits: Sequence[Edit]) -> dict[str, Value]:
    """What a trial becomes by edits. Where one opens another branch of the space, it is completed here.

    Then it has the parameters of that branch, new ones as the best trial there has them, and none of the branch that
    was left: so it is known before whether it was tried. Which parameters a branch has is told by trials with its
    value, for engines declare no branches. What those trials have, or lack, by another value is no part of the branch.
    """
    whole = {**origin.parameters, **{one.parameter: one.value for one in edits}}
    if not search.has_branches:
        return whole
    changed = {one.parameter for one in edits}
    for one in edits:
        there = [trial for trial in search.trials if trial.state == "finished" and _has(trial, one)]
        names = own_names(whole)
        if one.parameter in names and there and all(own_names(trial.parameters) != names for trial in there):
            best = max(there, key=lambda trial: search.gain(trial) if trial.has_score else -math.inf)
            whole = _in_branch(search, whole, best, changed)
    return whole


def _in_branch(search: Search, whole: dict[str, Value], best: Trial, changed: set[str]) -> dict[str, Value]:
    """A configuration with the parameters that the best trial of a branch has because of what was changed.

    Parameters come in the order in which they were asked for, so that what a new one opens follows it. In doubt
    whatever is there stays: a value that nobody asks for does nothing, and one that lacks is drawn by the engine.
    """
    for name in [*whole, *best.parameters]:
        has, wanted = name in whole, name in best.parameters
        if has == wanted or (has and is_offered(name)):
            continue
        deciders = search.deciders.get(name, {})
        ours = max((times for other, times in deciders.items() if other in changed), default=-1)
        others = max((times for other, times in deciders.items() if other in whole and other not in changed), default=0)
        if others > ours or (has and others == ours > 0):
            continue
        changed.add(name)
        whole = {one: value for one, value in whole.items() if one != name}
        if wanted:
            whole[name] = best.parameters[name]
    return whole


def _has(trial: Trial, one: Edit) -> bool:
    value = trial.parameters.get(one.parameter)
    return (value is one.value or value == one.value) and repr(value) == repr(
        one.value
    )  # True is 1, and no such choice


def _targets(parameter: Parameter, value: Value, rng: np.random.Generator, *, anywhere: bool) -> Iterator[Value]:
    if parameter.kind == "category":
        others = [choice for choice in parameter.choices if choice != value or type(choice) is not type(value)]
        yield from others[:_MOST_CHOICES]
        return
    number = float(value)  # type: ignore[arg-type]
    seen = {parameter.label(value)}
    for target in _spread(parameter, rng) if anywhere else _numbers(parameter, number, rng):
        if parameter.low * (1 - 1e-12) <= target <= parameter.high * (1 + 1e-12):
            valid = parameter.valid(target)
            if parameter.label(valid) not in seen:
                seen.add(parameter.label(valid))
                yield valid


def _numbers(parameter: Parameter, number: float, rng: np.random.Generator) -> Iterator[float]:
    few = parameter.size <= 12
    if few and parameter.step is not None and not parameter.log:
        yield from (number + steps * parameter.step for steps in (-2, -1, 1, 2))
    elif parameter.log:
        for power in _LOG_STEPS:
            yield _within(parameter, number, number * 10 ** (power + (0 if few else rng.uniform(-0.15, 0.15))))
    else:
        width = parameter.high - parameter.low
        for share in _LINEAR_STEPS:
            yield _within(parameter, number, number + width * (share + rng.uniform(-0.07, 0.07)))


def _spread(parameter: Parameter, rng: np.random.Generator) -> Iterator[float]:
    """A value in each sixth of the range."""
    ends = (math.log(parameter.low), math.log(parameter.high)) if parameter.log else (parameter.low, parameter.high)
    for share in (np.arange(_PARTS) + rng.random(_PARTS)) / _PARTS:
        drawn = ends[0] + float(share) * (ends[1] - ends[0])
        yield math.exp(drawn) if parameter.log else drawn


def _within(parameter: Parameter, number: float, target: float) -> float:
    """The limit where a step would go beyond it and the limit itself is far enough to be worth a trial."""
    return min(max(target, parameter.low), parameter.high) if number not in (parameter.low, parameter.high) else target


def jumps(
    search: Search,
    origin: Trial,
    edits: Sequence[Edit],
    tried: Iterable[Configuration],
    rng: np.random.Generator,
    *,
    worth: Callable[[Sequence[Edit]], float] | None = None,
) -> Iterator[Action]:
    """Two or three edits of different parameters at once, none of them idle then: all, or some drawn at random.

    worth: of edits that are made together; those worth most come first, and no more are made than are asked for.
    """
    known = set(tried)
    together = [some for size in (2, 3) for some in combinations(edits, size)]
    if len(together) > _MOST_JUMPS:
        together = [together[place] for place in rng.choice(len(together), size=_MOST_JUMPS, replace=False)]
    if worth is not None:
        together.sort(key=worth, reverse=True)
    premises, acting = _premises(search.space), _acting_on(search, origin)
    for some in together:
        changed = {one.parameter for one in some}
        if len(changed) < len(some):
            continue
        made = acting(some)
        if not changed <= made.parameters.keys() or any(_is_idle(name, made.parameters, premises) for name in changed):
            continue
        if made.configuration not in known:
            known.add(made.configuration)
            yield made


def size_of(space: Iterable[Parameter]) -> float:
    """How many configurations a space without conditions has."""
    return math.prod(parameter.size for parameter in space)
