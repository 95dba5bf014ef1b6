"""Searches as parts of a study: what is searched, by which engine, for how long, and which trials it has had so far.

A trial is an ordinary cell: its config is named after it ("trial-7"), and its config values are the search's parameters
beside those of a declared config. What was proposed is kept by the store, in its documents, so that the cells of
a study with searches are those of its proposals (`with_proposed`).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from isorun import plugins
from isorun.errors import StudyError, known_names
from isorun.study.cells import Cell, ConfigValue, as_known, config_placeholders, recorded_command, withheld_hash
from isorun.study.parsing import (
    as_boolean,
    as_duration,
    as_list,
    as_mapping,
    as_name,
    as_number,
    as_one_of,
    as_table,
    as_text,
    as_whole,
    config_value,
    refuse_secret,
    shown,
)

if TYPE_CHECKING:
    from isorun.study import Metric
    from isorun.study.design import Study

__all__ = [
    "ENGINES",
    "KEEP",
    "OFFERED",
    "Kind",
    "Parameter",
    "Proposed",
    "SearchDesign",
    "Value",
    "check_searches",
    "proposed_cells",
    "search_id",
    "searches",
    "seed_of_repeat",
    "trial_cell",
    "trials_to_come",
]

_T = TypeVar("_T")
Value = str | int | float | bool | None
Kind = Literal["category", "float", "int"]
OFFERED: Final = "isorun."
"""What the names of parameters begin with that isorun offers on top of the user's space."""
KEEP: Final = "keep"
"""The first choice of each of them: the model as the user built it."""
ENGINES: Final = ("optuna:tpe", "optuna:random", "random", "edits", "isorun")
"""Who proposes the trials of a study's search; other distributions bring more, as NAME:STRATEGY."""
_KEYS: Final = (
    "approach",
    "config",
    "space",
    "metric",
    "trials",
    "engine",
    "seed",
    "begin",
    "target",
    "time_limit",
    "patience",
    "prior",
    "guard",
    "repeats",
    "at_once",
    "start",
)
_FEW: Final = 12
_LOG_SPAN: Final = 8.0
_MOST_TRIALS: Final = 100_000
_MOST_REPEATS: Final = 100
_MAX_SEED: Final = 2**63 - 1


@dataclass(frozen=True)
class Parameter:
    """One dimension of a space. step: the distance of neighbouring values; none for a continuous one."""

    name: str
    kind: Kind
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None

    @property
    def size(self) -> float:
        """How many values there are; infinitely many for a continuous one."""
        if self.kind == "category":
            return len(self.choices)
        step = 1.0 if self.kind == "int" and self.step is None else self.step
        if self.low == self.high:
            return 1
        return math.inf if step is None else math.floor((self.high - self.low) / step + 1e-9) + 1

    @cached_property
    def is_numeric(self) -> bool:
        """Whether its values are numbers, so that one is more or less than another."""
        return self.kind != "category" or all(map(_is_number, self.choices))

    @cached_property
    def _is_log(self) -> bool:
        if self.kind != "category":
            return self.log
        positive = [float(choice) for choice in self.choices if float(choice) > 0]  # type: ignore[arg-type]
        return bool(positive) and max(positive) >= _LOG_SPAN * min(positive)

    def holds(self, value: Value) -> bool:
        """Whether the value lies within the space."""
        if self.kind == "category":
            return any(_same(value, choice) for choice in self.choices)
        return _is_number(value) and self.low <= float(value) <= self.high  # type: ignore[arg-type]

    def label(self, value: Value) -> str:
        """The value as counts know it, so that what is told of one search speaks to another.

        On a log scale the nearest half power of ten, of few whole numbers the number, of shares the tenth; otherwise
        the fifth of the range it lies in. Choices that are numbers are on a log scale where they span a factor of 8.
        """
        if not self.is_numeric or not _is_number(value):
            return str(value).strip().casefold()
        number = float(value)  # type: ignore[arg-type]
        if number > 0 and self._is_log:
            halves = round(2 * math.log10(number))
            return f"{10 ** (halves / 2):.0e}".replace("e-0", "e-").replace("e+0", "e")
        if self.kind == "category":
            return f"{number:g}"
        if self.kind == "int" and self.size <= _FEW:
            return f"{number:g}"
        if self.low >= 0 and self.high <= 1:
            return f"{round(10 * number) / 10:g}"
        fifth = min(int(5 * (number - self.low) / (self.high - self.low)), 4) if self.high > self.low else 0
        return f"{fifth + 1}/5"

    def valid(self, number: float) -> Value:
        """The value of the space that is nearest to the number."""
        number = min(max(number, self.low), self.high)
        step = 1.0 if self.kind == "int" and self.step is None else self.step
        if step is not None:
            steps = round((number - self.low) / step)
            number = self.low + min(steps, math.floor((self.high - self.low) / step + 1e-9)) * step
        return round(number) if self.kind == "int" else number

    def to_json(self) -> dict[str, Any]:
        """As a study file says it."""
        if self.kind == "category":
            return {"category": list(self.choices)}
        number = round if self.kind == "int" else float
        scale = {"log": True} if self.log else {}
        return {
            self.kind: [number(self.low), number(self.high)],
            **scale,
            **({} if self.step is None else {"step": number(self.step)}),
        }


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _same(value: Value, choice: Value) -> bool:
    return value is choice or (type(value) is type(choice) and value == choice)


@dataclass(frozen=True, slots=True)
class SearchDesign:
    """What is searched, and how. name: empty for the only search of a study.

    approach: what a trial trains; config: whose values it has beside its parameters. metric, direction: what is judged.
    trials: how many; raising it extends the search. engine: who proposes; `edits` changes one value of the best trial,
    each as likely as the others (a control); `isorun` is its own policy from the start.
    begin: when isorun takes over: at a "bug", at the trial of this number, or "never". target, time_limit (seconds),
    patience (trials): what the search is asked for. prior: "shipped", "none" or a file; guard: whether a prior that
    does not fit is let go. repeats: most trainings of a candidate before it is called better; 1: it is not raced.
    at_once: most of its trials at a time; 0: as many as there is room for. start: the first trial, where it is given.
    """

    name: str
    approach: str
    config: str
    space: tuple[Parameter, ...]
    metric: str
    direction: Literal["higher", "lower"]
    trials: int = 25
    engine: str = ENGINES[0]
    seed: int = 0
    begin: str | int = "bug"
    target: float | None = None
    time_limit: float | None = None
    patience: int | None = None
    prior: str = "shipped"
    guard: bool = True
    repeats: int = 1
    at_once: int = 0
    start: Mapping[str, ConfigValue] | None = None

    def to_come(self, trials: int, configurations: int) -> int:
        """How many trials are left to propose after so many; none where every configuration was tried.

        What isorun offers is a part of the space only where isorun may propose.
        """
        is_own = self.begin == "never"
        space = [one for one in self.space if not (is_own and one.name.startswith(OFFERED))]
        size = math.prod(parameter.size for parameter in space)
        return 0 if configurations >= size else max(self.trials - trials, 0)

    def label(self, number: int) -> str:
        """How the config of a trial is called."""
        return f"{self.name} trial-{number}".strip()

    def to_json(self) -> dict[str, Any]:
        """With the keys of a study file; what is as it is without being said is left out."""
        plain = {name: getattr(self, name) for name in _KEYS if name != "space"}
        usual = {one.name: one.default for one in fields(self)}
        given = {name: value for name, value in plain.items() if value != usual[name]}
        return {**given, "space": {parameter.name: parameter.to_json() for parameter in self.space}}


@dataclass(frozen=True, slots=True)
class Proposed:
    """One training that was proposed: a trial (repeat 0), or a repeat of it.

    by: who proposed it. origin: the trial that it changes; how, the parameters of both say. chance: that it improves
    that one, as it was foretold. declared: the trials and repeats of the search then, where it is raced.
    """

    search: str
    number: int
    parameters: Mapping[str, ConfigValue]
    repeat: int = 0
    by: str = ""
    origin: int | None = None
    chance: float | None = None
    declared: tuple[int, int] | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """As the store keeps it."""
        given: dict[str, Any] = {"by": self.by, "origin": self.origin, "chance": self.chance}
        given["plan"] = list(self.declared or ())
        kept = {name: value for name, value in given.items() if value not in ("", None, [])}
        return {"number": self.number, "repeat": self.repeat, "parameters": dict(self.parameters), **kept}

    @classmethod
    def from_json(cls, search: str, data: Mapping[str, Any]) -> Proposed:
        """What `to_json` wrote."""
        return cls(
            search,
            as_whole(data["number"], "number", 0, _MOST_TRIALS),
            {str(name): config_value(value, "parameters") for name, value in data["parameters"].items()},
            as_whole(data["repeat"], "repeat", 0, _MOST_REPEATS),
            str(data.get("by", "")),
            _if_given(data, "origin", lambda value: as_whole(value, "origin", 0, _MOST_TRIALS)),
            _if_given(data, "chance", lambda value: as_number(value, "chance")),
            _if_given(data, "plan", _declared),
        )


def _if_given(data: Mapping[str, Any], name: str, read: Callable[[Any], _T]) -> _T | None:
    return None if data.get(name) is None else read(data[name])


def _declared(value: Any) -> tuple[int, int]:
    trials, repeats = value
    return as_whole(trials, "plan", 1, _MOST_TRIALS), as_whole(repeats, "plan", 1, _MOST_REPEATS)


def searches(
    one: Any, several: Any, metrics: Mapping[str, Metric], approaches: Sequence[str], configs: Sequence[str]
) -> dict[str, SearchDesign]:
    """The searches by name, from the table `search` or the tables `searches`."""
    if one is not None and several is not None:
        raise StudyError("a study has either one [search] or several [searches.NAME]", found="both")
    if several is None:
        tables = {"": ("search", one)}
    else:
        tables = {as_name(name, "searches"): (f"searches.{name}", item) for name, item in _several(several).items()}
    made = {}
    for name, (where, table) in tables.items():
        known = _Known(metrics, tuple(approaches), tuple(configs))
        made[name] = table if isinstance(table, SearchDesign) else _design(name, table, where, known)
    return made


def _several(value: Any) -> Mapping[str, Any]:
    tables = as_mapping(value, "searches")
    if not tables:
        raise StudyError("searches: there is none", hint="add [searches.NAME], or leave searches out")
    return tables


@dataclass(frozen=True, slots=True)
class _Known:
    """What the study declares that a search may name."""

    metrics: Mapping[str, Metric]
    approaches: tuple[str, ...]
    configs: tuple[str, ...]


def _design(name: str, value: Any, where: str, known: _Known) -> SearchDesign:
    table = as_table(value, where, _KEYS)
    metric = _metric(table.get("metric"), f"{where}.metric", known.metrics)
    target, prior = table.get("target"), table.get("prior", "shipped")
    patience = table.get("patience")
    return SearchDesign(
        name=name,
        approach=_one_of_its(table.get("approach"), f"{where}.approach", known.approaches),
        config=_one_of_its(table.get("config"), f"{where}.config", known.configs),
        space=_space(table.get("space"), f"{where}.space"),
        metric=metric.name,
        direction="higher" if metric.direction == "higher" else "lower",
        trials=as_whole(table.get("trials", 25), f"{where}.trials", 1, _MOST_TRIALS),
        engine=_engine(table.get("engine", ENGINES[0]), f"{where}.engine"),
        seed=as_whole(table.get("seed", 0), f"{where}.seed", 0, _MAX_SEED),
        begin=_begin(table.get("begin", "bug"), f"{where}.begin"),
        target=None if target is None else as_number(target, f"{where}.target"),
        time_limit=as_duration(table.get("time_limit"), f"{where}.time_limit"),
        patience=None if patience is None else as_whole(patience, f"{where}.patience", 1, _MOST_TRIALS),
        prior=as_text(prior, f"{where}.prior"),
        guard=as_boolean(table.get("guard", True), f"{where}.guard"),
        repeats=as_whole(table.get("repeats", 1), f"{where}.repeats", 1, _MOST_REPEATS),
        at_once=as_whole(table.get("at_once", 0), f"{where}.at_once", 0, _MOST_TRIALS),
        start=_start(table.get("start"), f"{where}.start", table.get("space"), where),
    )


def _engine(value: Any, where: str) -> str:
    """One of isorun's own, or NAME:STRATEGY of one that another distribution brings, which knows its strategies."""
    if value in ENGINES or not isinstance(value, str):
        return as_one_of(value, where, ENGINES)
    brought = [f"{name}:STRATEGY" for name in plugins.brought(plugins.ENGINES)]
    name, _, strategy = value.partition(":")
    return value if strategy and f"{name}:STRATEGY" in brought else as_one_of(value, where, (*ENGINES, *brought))


def _start(value: Any, where: str, space: Any, search: str) -> Mapping[str, ConfigValue] | None:
    """The first trial: a value of the space for each of its parameters."""
    if value is None:
        return None
    parameters = _space(space, f"{search}.space")
    given = as_table(value, where, tuple(parameter.name for parameter in parameters))
    for parameter in parameters:
        if parameter.name not in given or not parameter.holds(given[parameter.name]):
            found = shown(given[parameter.name]) if parameter.name in given else "nothing"
            raise StudyError(f"{where}.{parameter.name}: it is no value of the space", found=found)
    return {name: config_value(given[name], f"{where}.{name}") for name in given}


def _begin(value: Any, where: str) -> str | int:
    if value in ("bug", "never") or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return cast("str | int", value)
    what = f"{value!r} is not known" if isinstance(value, str) else "it is not understood"
    raise StudyError(f"{where}: {what}", found=shown(value), allowed='"bug", "never", or a trial\'s number')


def _one_of_its(value: Any, where: str, names: tuple[str, ...]) -> str:
    """The only one where nothing is said."""
    if value is None and len(names) == 1:
        return names[0]
    if value is None:
        raise StudyError(f"{where}: the study has {len(names)}, and a search trains with one", allowed=", ".join(names))
    return as_one_of(value, where, names)


def _metric(value: Any, where: str, metrics: Mapping[str, Metric]) -> Metric:
    hint = 'declare it: [metrics] accuracy = "higher"'
    if value is None and len(metrics) == 1:
        metric = next(iter(metrics.values()))
    else:
        name = as_text(value, where) if value is not None else ""
        if name not in metrics:
            what = (
                f"{where}: {name!r} is not among the metrics" if name else f"{where}: which metric is to be improved?"
            )
            raise StudyError(what, allowed=known_names(name, metrics) or "a declared metric", hint=hint)
        metric = metrics[name]
    if not metric.direction:
        raise StudyError(f"{where}: whether more of {metric.name!r} is better is not said", hint=hint)
    return metric


def _space(value: Any, where: str) -> tuple[Parameter, ...]:
    if value is None or (isinstance(value, Mapping) and not value):
        hint = "such as lr = { float = [1e-4, 1e-1], log = true }"
        raise StudyError(f"{where}: it has no parameter, so there is nothing to search", hint=hint)
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, Parameter) for item in value):
        return tuple(value)
    return tuple(_parameter(name, item, f"{where}.{name}") for name, item in as_mapping(value, where).items())


def _parameter(name: str, value: Any, where: str) -> Parameter:
    if not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
        raise StudyError(f"{where}: {name!r} cannot be the name of a value", allowed="letters, digits, _, . and -")
    if isinstance(value, (list, tuple)):
        value = {"category": value}
    table = as_table(value, where, ("category", "float", "int", "log", "step"))
    kinds = [kind for kind in ("category", "float", "int") if kind in table]
    if len(kinds) != 1:
        allowed = "[choices], { float = [low, high] }, or { int = [low, high] }; log = true, step = …"
        raise StudyError(f"{where}: it is not a parameter", found=", ".join(table) or "nothing", allowed=allowed)
    if kinds[0] == "category":
        return _category(name, table, where)
    return _number(name, kinds[0], table, where)


def _category(name: str, table: Mapping[str, Any], where: str) -> Parameter:
    if len(table) > 1:
        raise StudyError(f"{where}: choices have neither log nor step", found=", ".join(table))
    choices = tuple(config_value(item, where) for item in as_list(table["category"], where, "a list of choices"))
    if not choices:
        raise StudyError(f"{where}: it has no choices")
    if len({repr(choice) for choice in choices}) < len(choices):
        raise StudyError(f"{where}: a choice is there more than once", found=shown(list(choices)))
    for choice in choices:
        refuse_secret(name, choice, where)
    return Parameter(name, "category", choices)


def _number(name: str, kind: str, table: Mapping[str, Any], where: str) -> Parameter:
    pair = as_list(table[kind], where, "two numbers")
    if len(pair) != 2:
        raise StudyError(f"{where}: {kind} takes two numbers", found=f"{len(pair)}", allowed=f"{kind} = [low, high]")
    whole = kind == "int"
    low, high = (as_whole(item, where, -(2**53), 2**53) if whole else as_number(item, where) for item in pair)
    log = as_boolean(table.get("log", False), f"{where}.log")
    step = table.get("step")
    if step is not None:
        step = as_whole(step, f"{where}.step", 1, 2**53) if whole else as_number(step, f"{where}.step")
    if low >= high:
        raise StudyError(f"{where}: low must be below high", found=f"[{low}, {high}]")
    if log and low <= 0:
        raise StudyError(f"{where}: a log scale needs numbers above 0", found=f"[{low}, {high}]")
    if step is not None and (step <= 0 or step > high - low):
        raise StudyError(f"{where}.step: it must lie above 0 and within the range", found=str(step))
    if log and step is not None and step != 1:
        raise StudyError(f"{where}: on a log scale there are no steps", found=f"step {step}")
    return Parameter(name, "int" if whole else "float", (), float(low), float(high), log, step)


def check_searches(study: Study) -> None:
    """Refuse what only shows when the parts meet: several levels or environments, values that nobody uses or fills."""
    for what, items in (("levels", study.levels), ("environments", study.environments)):
        if len(items) > 1:
            raise StudyError(f"{what}: a study with a search has one", found=", ".join(map(str, items)))
    for design in study.searches.values():
        where = f"searches.{design.name}" if design.name else "search"
        config, command = study.configs[design.config], study.approaches[design.approach].command
        if config.distributions:
            drawn = ", ".join(config.distributions)
            raise StudyError(f"configs.{config.name}: what is searched is drawn by the search", found=drawn)
        for parameter in design.space:
            _check_offered(parameter, where)
        has = {*config.values, *(parameter.name for parameter in design.space)}
        if both := sorted({*config.values} & {parameter.name for parameter in design.space}):
            raise StudyError(f"{where}.space: {both[0]} has a value in configs.{config.name} already")
        asked = config_placeholders(command)
        for name in sorted(asked - has):
            what = f"approaches.{design.approach}: the command asks for {{config.{name}}}, which the search lacks"
            raise StudyError(what, allowed=known_names(name, sorted(has)), hint=f"add {name} to [{where}.space]")
        if not study.approaches[design.approach].is_function:
            for name in sorted(has - asked):
                hint = f"put {{config.{name}}} into the command"
                raise StudyError(f"{where}.space.{name}: the command does not use it", hint=hint)


def _check_offered(parameter: Parameter, where: str) -> None:
    """What is offered beside the user's own space can always be left as it is: at its first choice."""
    if parameter.name.startswith(OFFERED) and not parameter.choices:
        name = parameter.name.removeprefix(OFFERED) or parameter.name
        what = (
            f"{where}.space.{parameter.name}: what begins with {OFFERED} is offered, and its first choice is as it was"
        )
        hint = f"a parameter of your own has another name, such as {name}"
        raise StudyError(what, found=shown(parameter.to_json()), allowed=f"[{KEEP!r}, …]: a list of choices", hint=hint)


def search_id(study: Study, design: SearchDesign, key: bytes | None = None) -> str:
    """What a store knows a search by: what it trains, in which space, for which metric, with which seed.

    How many trials it has and who proposes them may change: it is the same search, and goes on.
    """
    cell = trial_cell(study, design, Proposed(design.name, 0, {}), key)
    content = {
        "trained": cell.to_json(),
        "space": {parameter.name: parameter.to_json() for parameter in design.space},
        "metric": [design.metric, design.direction],
        "seed": design.seed,
        **({} if design.start is None else {"start": dict(design.start)}),
    }
    made = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return study.known_as.get(made, made)


def proposed_cells(study: Study, key: bytes | None) -> Iterator[Cell]:
    """The cells of all trainings that were proposed so far."""
    for one in study.proposed:
        if one.search in study.searches:
            yield trial_cell(study, study.searches[one.search], one, key)


def trials_to_come(study: Study) -> int:
    """How many trials its searches are still to propose, after those that the study is known to have."""
    left = 0
    for design in study.searches.values():
        made = [one for one in study.proposed if one.search == design.name and one.repeat == 0]
        configurations = {repr(sorted(one.parameters.items())) for one in made}
        left += design.to_come(len(made), len(configurations))
    return left


def trial_cell(study: Study, design: SearchDesign, one: Proposed, key: bytes | None = None) -> Cell:
    """The cell of one training."""
    approach = study.approaches[design.approach]
    environment = next(iter(study.environments.values()))
    level = study.levels[0]
    cell = Cell(
        approach=approach.name,
        command=recorded_command(study, approach),
        config=design.label(one.number),
        config_values={**study.configs[design.config].values, **one.parameters},
        environment=environment.name,
        environment_content=environment.content(),
        level=level,
        seed=seed_of_repeat(study, one.repeat) if level.fixes_seed else None,
        repeat=0 if level.fixes_seed else one.repeat,
        take_seeds=study.take_seeds,
        withheld=withheld_hash(study, approach, environment, key),
    )
    return as_known(study, cell)


def seed_of_repeat(study: Study, repeat: int) -> int:
    """The seed of a repeat: those of the study in turn, then the numbers that follow the largest of them."""
    seeds = study.seeds
    return seeds[repeat] if repeat < len(seeds) else max(seeds) + 1 + repeat - len(seeds)
