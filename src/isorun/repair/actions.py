"""What may be changed: an action takes one parameter of a trial from a value to another; a jump takes two or three.

A parameter is known by its meaning, told from its name, so that what one search learned of learning rates speaks to
another. One whose meaning is not known is called by its name: only this search, or a prior made for this very space,
has anything to say about it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from isorun.repair.searches import Configuration, Parameter, Search, Trial, Value, configuration_of

__all__ = [
    "MEANINGS",
    "Action",
    "Edit",
    "edit",
    "edits_between",
    "jumps",
    "meaning",
    "meaning_of",
    "single_edits",
    "size_of",
    "unknown_parameters",
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
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLACE: Final = re.compile(r"^(layer|block|conv|dense|stage|fc|l|b)_?\d+_|(_(l|layer)?\d+|\d+)+$")
_LOG_STEPS: Final = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
_LINEAR_STEPS: Final = (-0.4, -0.2, 0.2, 0.4)
_MOST_CHOICES: Final = 64
_JUMPS_DRAWN: Final = 200


def meaning(name: str) -> str:
    """What a parameter of this name is; "" where that is not known. Where it stands (`units_2`) is no part of it."""
    plain = _CAMEL.sub("_", name.rpartition("/")[2].rpartition(".")[2]).casefold().replace("-", "_").replace(" ", "_")
    shorter = _PLACE.sub("", plain)
    for candidate in (plain, shorter, shorter.partition("_")[2], shorter.rpartition("_")[2]):
        for known, pattern in _PATTERNS:
            if candidate and pattern.fullmatch(candidate):
                return known
    return ""


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
    """What makes the next trial from another one: one edit, or a jump of two or three. parameters: what it leads to."""

    edits: tuple[Edit, ...]
    parameters: Mapping[str, Value]

    @property
    def configuration(self) -> Configuration:
        """What the next trial will be known by."""
        return configuration_of(self.parameters)


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


def single_edits(
    search: Search, origin: Trial, tried: Iterable[Configuration], rng: np.random.Generator
) -> list[Action]:
    """The actions on one parameter of a trial that lead to configurations nobody has tried or is trying.

    A category goes to each other choice, a number by factors of 3, 10 and 100 on a log scale, by one and two fifths
    of its range on a linear one, by one and two where there are few: each a little off at random, so that a value
    is not tried twice and the space between is reached.
    """
    known = set(tried)
    actions = []
    for name, value in origin.parameters.items():
        parameter = search.parameters.get(name)
        if parameter is None or not parameter.holds(value):
            continue
        for target in _targets(parameter, value, rng):
            made = Action((edit(parameter, value, target),), {**origin.parameters, name: target})
            if made.configuration not in known:
                known.add(made.configuration)
                actions.append(made)
    return actions


def _targets(parameter: Parameter, value: Value, rng: np.random.Generator) -> Iterator[Value]:
    if parameter.kind == "category":
        others = [choice for choice in parameter.choices if choice != value or type(choice) is not type(value)]
        yield from others[:_MOST_CHOICES]
        return
    number = float(value)  # type: ignore[arg-type]
    seen = {parameter.label(value)}
    for target in _numbers(parameter, number, rng):
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


def _within(parameter: Parameter, number: float, target: float) -> float:
    """The limit where a step would go beyond it and the limit itself is far enough to be worth a trial."""
    return min(max(target, parameter.low), parameter.high) if number not in (parameter.low, parameter.high) else target


def jumps(
    origin: Trial, singles: Sequence[Action], tried: Iterable[Configuration], rng: np.random.Generator
) -> list[Action]:
    """Two or three single edits of different parameters at once: some of those that there are, drawn at random."""
    known = set(tried)
    if len({action.edits[0].parameter for action in singles}) < 2:
        return []
    drawn = []
    for _ in range(_JUMPS_DRAWN):
        places = rng.choice(len(singles), size=min(int(rng.integers(2, 4)), len(singles)), replace=False)
        edits = tuple(singles[place].edits[0] for place in sorted(places))
        if len({one.parameter for one in edits}) == len(edits):
            made = Action(edits, {**origin.parameters, **{one.parameter: one.value for one in edits}})
            if made.configuration not in known:
                known.add(made.configuration)
                drawn.append(made)
    return drawn


def size_of(space: Iterable[Parameter]) -> float:
    """How many configurations a space without conditions has."""
    return math.prod(parameter.size for parameter in space)
