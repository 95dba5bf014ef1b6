"""Factors: what of an environment is varied, and the design that says in which environments a study trains.

A factor is a switch, the threads, the interpreter, a version of the code, an image, a variable, or packages in a table
by value.
A design is data: it makes environments, each named by what differs from the baseline, so that a design that grows keeps
the cells it had. What is not varied comes from the study's own environment, of which there is at most one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from isorun.errors import StudyError, known_names
from isorun.study import Environment
from isorun.study.code import code_settings, version_in_words
from isorun.study.parsing import (
    CONTAINER,
    INTERPRETER,
    PACKAGES,
    as_list,
    as_mapping,
    as_name,
    as_one_of,
    as_table,
    as_text,
    as_whole,
    refuse_secret,
    shown,
    variables,
)
from isorun.study.parts import image_settings, package_settings, switch_value
from isorun.worker.frameworks.switches import SWITCHES

__all__ = ["BASELINE", "DESIGNS", "FactorDesign", "StudyFactor", "factor_design"]

BASELINE: Final = "baseline"
ONE_AT_A_TIME, FULL, FRACTIONAL = "one-at-a-time", "full", "fractional"
DESIGNS: Final = (ONE_AT_A_TIME, FULL, FRACTIONAL)
MOST_ENVIRONMENTS: Final = 1_000
_MOST_FRACTIONAL: Final = 128
_MEANING: Final = {
    5: "resolution V: main effects and two-way interactions are told apart",
    4: "resolution IV: main effects are told apart from two-way interactions, and these not from each other",
}
_FORMS: Final = (
    'packages as a table by value (LIBRARY = { old = ["NAME==VERSION"], new = […] }), '
    'or a variable ({ variable = "NAME", values = ["0", "1"] })'
)


@dataclass(frozen=True, slots=True)
class StudyFactor:
    """What is varied: by the name of each value, what an environment is told for it, as plain JSON.

    kind: the name of a row of `KINDS`. variable: the name of the variable, where it is one.
    """

    name: str
    kind: str
    values: Mapping[str, Any]
    variable: str = ""

    def put_into(self, environment: Environment, value: str) -> Environment:
        """The environment with this value of the factor."""
        return KINDS[self.kind].put_into(environment, self, self.values[value])

    def to_json(self) -> dict[str, Any]:
        """As a study file says it, each value with what it was resolved to."""
        values = dict(self.values)
        return {"variable": self.variable, "values": values} if self.variable else values


@dataclass(frozen=True, slots=True)
class FactorDesign:
    """A design: its factors, the value that each has in the baseline, and its points.

    points: by the name of each environment the value of every factor, the baseline first. chosen: the factors whose
    baseline is the first value because the study does not say. resolution: of a fractional design; 0 for others, and
    where all combinations are so few that all are there. base: what the environments are made from.
    """

    design: str
    factors: Mapping[str, StudyFactor]
    baseline: Mapping[str, str]
    points: Mapping[str, Mapping[str, str]]
    base: Environment
    resolution: int = 0
    chosen: tuple[str, ...] = field(default=(), compare=False)

    def environments(self) -> dict[str, Environment]:
        """The environments of all points, by name."""
        made = {}
        for name, values in self.points.items():
            environment = replace(self.base, name=name)
            for factor, value in values.items():
                environment = self.factors[factor].put_into(environment, value)
            made[name] = environment
        return made

    def to_json(self) -> dict[str, Any]:
        """As a study file says it."""
        tables = {name: factor.to_json() for name, factor in self.factors.items()}
        return {"design": self.design, BASELINE: dict(self.baseline), **tables}

    def in_words(self) -> Iterator[str]:
        """The design in lines for people: what is varied, from where, and in which environments."""
        yield f"{self.design} design of {_some(len(self.factors), 'factor')}: {_some(len(self.points), 'environment')}"
        if self.resolution:
            yield f"  {_MEANING[self.resolution]}"
        for name, factor in self.factors.items():
            tell = KINDS[factor.kind].tell
            values = (f"{value}{tell(value, meant)}" for value, meant in factor.values.items())
            yield f"  {name}: {', '.join(values)}; baseline {self.baseline[name]}"
        if self.chosen:
            first = self.chosen[0]
            chosen = f"  the baseline is the first value of {', '.join(self.chosen)}"
            yield f'{chosen}; to say another: baseline = {{ {first} = "{self.baseline[first]}" }}'


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _with_packages(environment: Environment, factor: StudyFactor, setting: Mapping[str, Any]) -> Environment:
    """Requirements of several factors, and of the study's own environment, are installed together."""
    if environment.kind not in {"", INTERPRETER, PACKAGES}:
        what = f"factors.{factor.name}: an environment of kind {environment.kind!r} takes no packages"
        raise StudyError(what, hint="take the kind out of [environments]")
    both = [*environment.settings.get("requirements", ()), *setting.get("requirements", ())]
    if "lock" in environment.settings and "lock" in setting:
        raise StudyError(f"factors.{factor.name}: there are two locks", hint="take the lock out of [environments]")
    settings = {**environment.settings, **setting, **({"requirements": sorted(set(both))} if both else {})}
    return replace(environment, kind=PACKAGES, settings=settings)


def _with_image(environment: Environment, factor: StudyFactor, setting: Mapping[str, Any]) -> Environment:
    """The image of a value; mounts and all else that it does not say are those of the study's own environment."""
    if environment.kind not in {"", INTERPRETER, CONTAINER}:
        what = f"factors.{factor.name}: an environment of kind {environment.kind!r} has no image"
        raise StudyError(
            what, hint="packages of an image are those that it was made with: make an image for each value"
        )
    return replace(environment, kind=CONTAINER, settings={**environment.settings, **setting})


def _switched(environment: Environment, factor: StudyFactor, value: str) -> Environment:
    return replace(environment, switches=dict(sorted({**environment.switches, factor.name: value}.items())))


@dataclass(frozen=True, slots=True)
class _Declared:
    """What the values of a factor have in common: its name, the keys beside them, and the study's folder."""

    name: str
    beside: Mapping[str, Any]
    folder: Path


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise StudyError("factors: a value is a text or a number, or has a name in a table", found=shown(value))


def _switch_label(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, str) for one in value):
        return "+".join(value)  # several random streams; other switches refuse the value
    return _label(value)


def _variable(declared: _Declared, item: Any, where: str) -> str:
    name = declared.beside["variable"]
    refuse_secret(name, item if isinstance(item, str) else None, where)
    return variables({name: item}, where)[name]


def _packages(declared: _Declared, item: Any, where: str) -> dict[str, Any]:
    return package_settings({"requirements": item} if isinstance(item, (list, tuple)) else item, where, declared.folder)


def _told_packages(_label: str, setting: Mapping[str, Any]) -> str:
    return f" ({', '.join([*setting.get('requirements', ()), *filter(None, [setting.get('lock')])])})"


@dataclass(frozen=True, slots=True)
class FactorKind:
    """One row: something that can be varied.

    parse: what an environment is told for a value, checked as in an environment. put_into: the environment with it.
    tell: behind the name of a value, what it was resolved to. label: what a value without a name of its own is called.
    beside: keys that may stand beside `values`. is_named: whether it is known by its name.
    """

    parse: Callable[[_Declared, Any, str], Any]
    put_into: Callable[[Environment, StudyFactor, Any], Environment]
    tell: Callable[[str, Any], str] = lambda _value, _told: ""
    label: Callable[[Any], str] = _label
    beside: tuple[str, ...] = ()
    is_named: bool = True


KINDS: Final[Mapping[str, FactorKind]] = {
    "switch": FactorKind(
        lambda declared, item, where: switch_value(declared.name, item, where),
        _switched,
        label=_switch_label,
        is_named=False,  # each by its own
    ),
    "threads": FactorKind(
        lambda _declared, item, where: as_whole(item, where, 1, 4096),
        lambda environment, _factor, value: replace(environment, threads=value),
    ),
    "python": FactorKind(
        lambda _declared, item, where: as_text(item, where),
        lambda environment, _factor, value: replace(environment, python=value),
    ),
    "code": FactorKind(
        lambda declared, item, where: code_settings(item, declared.beside.get("links"), where, declared.folder),
        lambda environment, _factor, value: replace(environment, code=value),
        tell=lambda _value, code: f" {version_in_words(code).partition(' ')[2]}",
        beside=("links",),
    ),
    "image": FactorKind(
        lambda _declared, item, where: image_settings(item if isinstance(item, Mapping) else {"image": item}, where),
        _with_image,
        tell=lambda value, setting: "" if setting["image"] == value else f" ({setting['image']})",
    ),
    "packages": FactorKind(_packages, _with_packages, tell=_told_packages, is_named=False),
    "variable": FactorKind(
        _variable,
        lambda environment, factor, value: replace(environment, env={**environment.env, factor.variable: value}),
        beside=("variable",),
        is_named=False,
    ),
}
_NAMED: Final = {
    **dict.fromkeys(SWITCHES, "switch"),
    **{name: name for name, row in KINDS.items() if row.is_named},
}
"""Factors that are known by their name, and what each is."""


def factor_design(value: Any, environments: Mapping[str, Environment], folder: Path) -> FactorDesign:
    """The design that a table declares; StudyError for all that is none. environments: the study's own."""
    table = as_mapping(value, "factors")
    design = as_one_of(table.get("design", ONE_AT_A_TIME), "factors.design", DESIGNS)
    declared = {name: item for name, item in table.items() if name not in {"design", BASELINE}}
    factors = {name: _factor(as_name(name, "factors"), item, folder) for name, item in declared.items()}
    if not factors:
        raise StudyError("factors: there are none", allowed=f"{', '.join(_NAMED)}, {_FORMS}")
    if len(environments) > 1:
        hint = "what is varied is a factor; what is the same everywhere is one environment"
        raise StudyError("factors: they vary one environment", found=", ".join(environments), hint=hint)
    given = as_table(table.get(BASELINE, {}), f"factors.{BASELINE}", tuple(factors))
    baseline = {name: _in_baseline(factor, given) for name, factor in factors.items()}
    chosen = tuple(name for name in factors if name not in given)
    points, resolution = _points(design, factors, baseline)
    base = next(iter(environments.values()))
    return FactorDesign(design, factors, baseline, points, base, resolution, chosen)


def _in_baseline(factor: StudyFactor, given: Mapping[str, Any]) -> str:
    if factor.name not in given:
        return next(iter(factor.values))
    label = KINDS[factor.kind].label(given[factor.name])
    if label not in factor.values:
        what = f"factors.{BASELINE}.{factor.name}: {label!r} is not a value of this factor"
        raise StudyError(what, allowed=known_names(label, factor.values))
    return label


def _factor(name: str, value: Any, folder: Path) -> StudyFactor:
    where, kind = f"factors.{name}", _kind_of(name, value)
    row, beside, listed = KINDS[kind], {}, value
    if row.beside and isinstance(value, Mapping) and {"values", "variable"} & set(value):
        table = as_table(value, where, ("values", *row.beside))
        beside, listed = {key: item for key, item in table.items() if key != "values"}, table.get("values", [])
    variable = as_text(beside.get("variable", ""), f"{where}.variable")
    written = _by_label(listed, row, where)
    if len(written) < 2:
        raise StudyError(
            f"{where}: a factor has at least two values",
            found=", ".join(written) or "none",
            hint="what is the same everywhere stands in [environments.NAME]",
        )
    declared = _Declared(name, beside, folder)
    values = {as_name(label, where): row.parse(declared, item, f"{where}.{label}") for label, item in written.items()}
    return StudyFactor(name, kind, values, variable)


def _kind_of(name: str, value: Any) -> str:
    is_variable = isinstance(value, Mapping) and "variable" in value
    if name in _NAMED and is_variable:
        what = f"factors.{name}: it is a factor of isorun's own, and no variable"
        raise StudyError(what, allowed=f"{name} = […]", hint=f"call that of the variable otherwise: my_{name}")
    if name in _NAMED:
        return _NAMED[name]
    if is_variable:
        return "variable"
    if isinstance(value, Mapping) and all(isinstance(item, (list, tuple, Mapping)) for item in value.values()):
        return "packages"
    raise StudyError(f"factors: there is no factor {name!r}", allowed=f"{known_names(name, _NAMED)}; {_FORMS}")


def _by_label(value: Any, row: FactorKind, where: str) -> dict[str, Any]:
    """The values by what they are called: as they are written, or by the names of a table."""
    if isinstance(value, Mapping):
        return dict(as_mapping(value, where))
    items = as_list(value, where, "a list of values, or a table of them by name")
    labels = [row.label(item) for item in items]
    for label in labels:
        if labels.count(label) > 1:
            raise StudyError(f"{where}: {label} is there more than once", found=", ".join(labels))
    return dict(zip(labels, items, strict=True))


def _points(
    design: str, factors: Mapping[str, StudyFactor], baseline: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], int]:
    """The points of a design by name, the baseline first, and the resolution where some are left out."""
    if design == ONE_AT_A_TIME:
        others = ((name, value) for name, factor in factors.items() for value in factor.values)
        alone = [{**baseline, name: value} for name, value in others if value != baseline[name]]
        return _named_points([dict(baseline), *alone], baseline), 0
    if design == FRACTIONAL:
        return _fractional(factors, baseline)
    count = math.prod(len(factor.values) for factor in factors.values())
    _refuse_too_many(count, MOST_ENVIRONMENTS, 'leave values out, or design = "one-at-a-time"')
    ordered = [sorted(factor.values, key=lambda value: value != baseline[name]) for name, factor in factors.items()]
    every = [dict(zip(factors, values, strict=True)) for values in itertools.product(*ordered)]
    return _named_points(every, baseline), 0


def _refuse_too_many(count: int, most: int, hint: str) -> None:
    if count > most:
        raise StudyError(f"factors: the design has {count:,} environments", allowed=f"at most {most:,}", hint=hint)


def _named_points(points: Sequence[dict[str, str]], baseline: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {_name(point, baseline): point for point in points}


def _name(point: Mapping[str, str], baseline: Mapping[str, str]) -> str:
    """What differs from the baseline, in the order of names: the same point has the same name in every design."""
    return ", ".join(f"{name}={point[name]}" for name in sorted(point) if point[name] != baseline[name]) or BASELINE


def _fractional(
    factors: Mapping[str, StudyFactor], baseline: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], int]:
    """The smallest regular design of resolution V; IV where that would be too large."""
    for name, factor in factors.items():
        if len(factor.values) > 2:
            raise StudyError(
                f"factors.{name}: a fractional design has two values of each factor",
                found=", ".join(factor.values),
                hint='leave values out, or design = "full"',
            )
    for resolution in (5, 4):
        bits, columns = _columns(len(factors), resolution, _MOST_FRACTIONAL.bit_length() - 1)
        if 2**bits <= _MOST_FRACTIONAL:
            break
    _refuse_too_many(2**bits, _MOST_FRACTIONAL, 'leave factors out, or design = "one-at-a-time"')
    values = [sorted(factor.values, key=lambda value: value != baseline[name]) for name, factor in factors.items()]
    points = [
        {name: values[number][(row & columns[number]).bit_count() % 2] for number, name in enumerate(factors)}
        for row in range(2**bits)
    ]
    return _named_points(points, baseline), 0 if bits == len(factors) else resolution


def _columns(count: int, resolution: int, most: int) -> tuple[int, list[int]]:
    """The fewest base factors, and the product of them that each factor follows, as bits.

    A design has resolution R where no R - 1 of its columns, multiplied, are constant: then no column is the product of
    R - 2 or fewer others. Columns are taken greedily, the base factors first. most: no more base factors are tried.
    """
    for bits in range(1, min(count, most) + 1):
        columns = [1 << bit for bit in range(bits)]
        taken = _products(columns, resolution - 2)
        for candidate in range(1, 2**bits if len(columns) < count else 0):
            if candidate not in taken:
                columns.append(candidate)
                taken = _products(columns, resolution - 2)
            if len(columns) == count:
                break
        if len(columns) >= count:
            return bits, columns[:count]
    return most + 1, []


def _products(columns: Sequence[int], most: int) -> set[int]:
    """The products of at most so many of the columns."""
    found = {0}
    for _ in range(most):
        found |= {product ^ column for product in found for column in columns}
    return found
