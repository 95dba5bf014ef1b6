"""From what a user writes (TOML tables or Python values) to the parts of a study, with an error for all else.

Nothing is guessed: an unknown key, a wrong type or an impossible number is refused with what was found, what is
allowed, and what to do. First the checks of single values, then the parts.
"""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from isorun.errors import StudyError, known_names
from isorun.study import (
    FUNCTION,
    KINDS,
    Approach,
    Config,
    Distribution,
    Environment,
    Metric,
    Policy,
    Selection,
    Sources,
)
from isorun.study.cells import ConfigValue, Level, check_placeholders, config_placeholders
from isorun.worker.redaction import redacted_argv

__all__ = [
    "approaches",
    "as_boolean",
    "as_duration",
    "as_list",
    "as_mapping",
    "as_name",
    "as_number",
    "as_one_of",
    "as_size",
    "as_table",
    "as_text",
    "as_texts",
    "as_whole",
    "check_together",
    "config_value",
    "configs",
    "each_once",
    "environments",
    "levels",
    "metrics",
    "policy",
    "refuse_secret",
    "repeats",
    "seeds",
    "selections",
    "shown",
    "sources",
    "study_name",
    "variables",
]

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]i?B)", re.IGNORECASE)
_SIZE_UNITS: Final = {
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)},
}
_LONGEST_SECONDS: Final = 3650 * 86400
"""Ten years: no clock of an operating system waits for longer."""


def as_mapping(value: Any, where: str) -> Mapping[str, Any]:
    """A table with text keys."""
    if not isinstance(value, Mapping):
        raise StudyError(f"{where}: it must be a table", found=shown(value), allowed=f"[{where}]")
    for key in value:
        if not isinstance(key, str):
            raise StudyError(f"{where}: a key must be a text", found=shown(key))
    return value


def as_table(value: Any, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
    """A table with no other keys than these."""
    table = as_mapping(value, where)
    for key in table:
        if key not in keys:
            raise StudyError(f"{where}: there is no key {key!r}", allowed=known_names(key, keys))
    return table


def as_name(value: Any, where: str) -> str:
    """A name people can read."""
    text = as_text(value, where)
    if not text.strip() or len(text) > 100 or not text.isprintable():
        raise StudyError(f"{where}: that is not a usable name", found=repr(text[:40]), allowed="1 to 100 characters")
    return text


def as_list(value: Any, where: str, allowed: str) -> list[Any]:
    """A list."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    raise StudyError(f"{where}: it must be a list", found=shown(value), allowed=allowed)


def as_texts(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(as_text(item, where) for item in as_list(value, where, "a list of texts"))


def as_text(value: Any, where: str) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise StudyError(f"{where}: it must be a text", found=shown(value))


def as_boolean(value: Any, where: str) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise StudyError(f"{where}: it must be true or false", found=shown(value))


def as_number(value: Any, where: str) -> float:
    """A finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    raise StudyError(f"{where}: it must be a finite number", found=shown(value))


def as_whole(value: Any, where: str, low: int, high: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    what = f"{where}: it must be a whole number from {low} to {high}"
    raise StudyError(what, found=shown(value), allowed=f"{low} to {high}")


def as_size(value: Any, where: str) -> int:
    """A number of bytes: a whole number, or text such as "8 GB" or "512 MiB"."""
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = int(float(match[1]) * _SIZE_UNITS[match[2].upper()]) if match else value
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 2**62:
        raise StudyError(f"{where}: it must be a size", found=shown(value), allowed='bytes, or text such as "8 GB"')
    return size


def as_one_of(value: Any, where: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    text = as_text(value, where)
    if text not in allowed:
        raise StudyError(f"{where}: {text!r} is not known", allowed=known_names(text, allowed))
    return text


def as_duration(value: Any, where: str) -> float | None:
    """A duration in seconds: "90s", "10m", "2h", "1d", or a number, which a command line gives as a text."""
    if value is None:
        return None
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(s|m|h|d|)", value.strip())
        if match:
            value = float(match.group(1)) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match.group(2)]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LONGEST_SECONDS:
        return float(value)
    allowed = '"90s", "10m", "2h", or seconds; at most 3650d'
    raise StudyError(f"{where}: it is not a duration", found=shown(value), allowed=allowed)


def each_once(items: list[Any], where: str) -> tuple[Any, ...]:
    """The items, refused when one is there twice."""
    seen = set()
    for item in items:
        if item in seen:
            raise StudyError(f"{where}: {item} is there more than once", hint="to run it more often, raise repeats")
        seen.add(item)
    return tuple(items)


def shown(value: Any) -> str:
    """A value as it is shown in a message: its type and a short form."""
    try:
        shown = repr(value)
    except ValueError:  # Python writes no number of more than some thousand digits
        shown = "with thousands of digits"
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '…'}"


INTERPRETER: Final = "interpreter"
"""The kind of an environment that names none."""
PACKAGES: Final = "packages"
"""The kind of one that has packages of its own."""
CONTAINER: Final = "container"
"""The kind of one that is an image, run by podman or docker."""
_SHELL_WORDS = {"|", "||", "&&", ";", ">", ">>", "<", "&", "2>&1"}
_RESERVED_ENV = "ISORUN_"
_MAX_SEED = 2**63 - 1
_Part = TypeVar("_Part")


def study_name(value: Any) -> str:
    """The study's name."""
    return as_name(value, "name")


def levels(value: Any) -> tuple[Level, ...]:
    """The levels, each once."""
    items = [value] if isinstance(value, str) else as_list(value, "levels", 'a list such as ["default", "fixed-seed"]')
    if not items:
        raise StudyError("levels: the list is empty, so there is nothing to run", allowed=", ".join(Level))
    return each_once([_level(item) for item in items], "levels")


def seeds(value: Any) -> tuple[int, ...]:
    """The seeds: a list, or a count n for the seeds 1 to n."""
    if isinstance(value, int) and not isinstance(value, bool):
        return tuple(range(1, as_whole(value, "seeds", 1, 1_000_000) + 1))
    items = as_list(value, "seeds", "a list of whole numbers such as [1, 2, 3], or a count")
    if not items:
        raise StudyError("seeds: the list is empty, so there is nothing to run", allowed="at least one seed")
    return each_once([as_whole(item, "seeds", 0, _MAX_SEED) for item in items], "seeds")


def repeats(value: Any) -> int:
    """How often each seed is run."""
    return as_whole(value, "repeats", 1, 1_000_000)


def sources(value: Any, where: str) -> Sources:
    """Where metrics are read from besides `isorun.log`."""
    if value is None or isinstance(value, Sources):
        return value or Sources()
    table = as_table(value, where, ("stdout", "patterns", "files", "tensorboard", "installed"))
    installed = as_mapping(table.get("installed", {}), f"{where}.installed")
    return Sources(
        stdout=as_boolean(table.get("stdout", True), f"{where}.stdout"),
        patterns=_regular_expressions(table.get("patterns", []), f"{where}.patterns"),
        files=_paths(table.get("files", []), f"{where}.files"),
        tensorboard=_paths(table.get("tensorboard", []), f"{where}.tensorboard"),
        installed={name: _paths(settings, f"{where}.installed.{name}") for name, settings in installed.items()},
    )


def approaches(value: Any, default_sources: Sources, folder: Path) -> dict[str, Approach]:
    """The approaches by name; at least one."""

    def one(name: str, item: Any) -> Approach:
        return _approach(name, item, default_sources, folder)

    parsed = _named(value, "approaches", Approach, one)
    if not parsed:
        hint = 'add [approaches.NAME] with command = "python train.py"'
        raise StudyError("approaches: there is none, so there is nothing to run", hint=hint)
    return parsed


def configs(value: Any) -> dict[str, Config]:
    """The configs by name; one without values when none is declared."""
    return _named(value or {"default": Config("default")}, "configs", Config, _config)


def environments(value: Any, folder: Path) -> dict[str, Environment]:
    """The environments by name; the caller's own when none is declared. folder: where relative paths start."""

    def one(name: str, item: Any) -> Environment:
        return _environment(name, item, folder)

    return _named(value or {"default": Environment("default")}, "environments", Environment, one)


def metrics(value: Any) -> dict[str, Metric]:
    """The judged metrics by name, the first one first."""
    return _named(value or {}, "metrics", Metric, _metric)


def selections(value: Any) -> dict[str, Selection]:
    """The selections by name."""
    return _named(value or {}, "selections", Selection, _selection)


def policy(value: Any) -> Policy:
    """Limits, and what happens on failure."""
    if value is None or isinstance(value, Policy):
        return value or Policy()
    table = as_table(value, "policy", ("time_limit", "on_failure", "retries", "isolate"))
    return Policy(
        time_limit_seconds=as_duration(table.get("time_limit"), "policy.time_limit"),
        on_failure=as_one_of(table.get("on_failure", "continue"), "policy.on_failure", ("continue", "fail-fast")),
        retries=as_whole(table.get("retries", 0), "policy.retries", 0, 100),
        isolate=as_boolean(table.get("isolate", False), "policy.isolate"),
    )


def check_together(all_approaches: Mapping[str, Approach], all_configs: Mapping[str, Config]) -> None:
    """Refuse what only shows when the parts meet: unknown configs, unused values, placeholders nobody fills.

    Of many approaches that take many configs no pair is looked at that nothing can be wrong with: a file of a
    stranger may have both.
    """
    has = {name: {*config.values, *config.distributions} for name, config in all_configs.items()}
    everywhere = set[str]().union(*has.values()).intersection(*has.values())
    for approach in all_approaches.values():
        for name in approach.configs:
            if name not in all_configs:
                where = f"approaches.{approach.name}.configs: there is no config {name!r}"
                raise StudyError(where, allowed=known_names(name, all_configs))
        asked = config_placeholders(approach.command)
        if approach.configs or not asked <= everywhere:
            for name in dict.fromkeys(approach.configs or all_configs):
                _check_config_values(approach, all_configs[name].name, asked, has[name])
    _check_used(all_approaches, all_configs)


def _check_config_values(approach: Approach, config: str, asked: set[str], has: set[str]) -> None:
    for name in sorted(asked - has):
        raise StudyError(
            f"approaches.{approach.name}: the command asks for {{config.{name}}}, which config {config!r} lacks",
            allowed=known_names(name, sorted(has)),
            hint=f"add {name} to [configs.{config}], or name the configs this approach takes: configs = […]",
        )


def _check_used(all_approaches: Mapping[str, Approach], all_configs: Mapping[str, Config]) -> None:
    """Refuse values of configs that all takers leave alone. A function takes them all."""
    of_all = [approach for approach in all_approaches.values() if not approach.configs]
    of_some: dict[str, list[Approach]] = {}
    for approach in all_approaches.values():
        for name in dict.fromkeys(approach.configs):
            of_some.setdefault(name, []).append(approach)
    if any(approach.is_function for approach in of_all):
        return
    used_by_all = set[str]().union(*(config_placeholders(approach.command) for approach in of_all))
    for name, config in all_configs.items():
        takers = of_some.get(name, [])
        if (takers or of_all) and not any(approach.is_function for approach in takers):
            _refuse_unused(config, used_by_all.union(*(config_placeholders(approach.command) for approach in takers)))


def _refuse_unused(config: Config, used: set[str]) -> None:
    for name in sorted({*config.values, *config.distributions} - used):
        raise StudyError(
            f"configs.{config.name}.{name}: no approach uses it, so it would change nothing",
            found=", ".join(f"{{config.{item}}}" for item in sorted(used)) or "no {config.…} placeholder",
            hint=f"put {{config.{name}}} into the command",
        )


def _approach(name: str, value: Any, default_sources: Sources, folder: Path) -> Approach:
    where = f"approaches.{name}"
    if callable(value) or isinstance(value, (str, list, tuple)):
        value = {"function" if callable(value) else "command": value}
    table = as_table(value, where, ("command", "function", "configs", "sources"))
    if ("command" in table) == ("function" in table):
        raise StudyError(
            f"{where}: it needs either a command or a function",
            found="both" if "command" in table else f"keys: {', '.join(table) or 'none'}",
            allowed='command = "python train.py", or function = "train.py:main"',
        )
    command = _command(table["command"], where) if "command" in table else _function(table["function"], where, folder)
    own = sources(table["sources"], f"{where}.sources") if "sources" in table else default_sources
    return Approach(name, command, as_texts(table.get("configs", []), f"{where}.configs"), own)


def _command(value: Any, where: str) -> tuple[str, ...]:
    words = _split(value, where) if isinstance(value, str) else list(as_texts(value, f"{where}.command"))
    if not words or not words[0]:
        raise StudyError(f"{where}.command: it is empty", allowed='"python train.py", or a list of words')
    shell = [word for word in words if word in _SHELL_WORDS]
    if shell and isinstance(value, str):
        raise StudyError(
            f"{where}.command: {shell[0]!r} belongs to a shell, and commands are started without one",
            found=value,
            hint='put the line into a script, or write command = ["bash", "-c", "…"]',
        )
    _refuse_nul(words, where)
    check_placeholders(tuple(words), f"{where}.command")
    return tuple(words)


def _split(value: str, where: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise StudyError(f"{where}.command: it cannot be split into words ({error})", found=value) from None


def _refuse_nul(words: Iterable[str], where: str) -> None:
    if any("\0" in word for word in words):
        raise StudyError(f"{where}: a NUL character cannot be part of a command or variable")


def _function(value: Any, where: str, folder: Path) -> tuple[str, ...]:
    text = _reference_to(value, where, folder) if callable(value) else as_text(value, f"{where}.function")
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise StudyError(f"{where}.function: it does not name a function", found=text, allowed='"train.py:main"')
    if not (folder / file).is_file():
        raise StudyError(f"{where}.function: there is no file {file}", found=f"looked in {folder.resolve()}")
    return (FUNCTION, text)


def _reference_to(function: Callable[..., Any], where: str, folder: Path) -> str:
    from isorun.study.functions import reference_to  # noqa: PLC0415 - only studies made in Python have functions

    return reference_to(function, where, folder)


def _config(name: str, value: Any) -> Config:
    where = f"configs.{name}"
    table = as_mapping(value, where)
    rest = {key: item for key, item in table.items() if key not in ("draws", "draw_seed")}
    drawn = {key: _distribution(item, f"{where}.{key}") for key, item in rest.items() if isinstance(item, Mapping)}
    fixed = {key: config_value(item, f"{where}.{key}") for key, item in rest.items() if key not in drawn}
    for key in rest:
        if not re.fullmatch(r"[A-Za-z_][\w-]*", key):
            raise StudyError(f"{where}: {key!r} cannot be the name of a value", allowed="letters, digits, _ and -")
        refuse_secret(key, fixed.get(key), f"{where}.{key}")
    draws = as_whole(table.get("draws", 1), f"{where}.draws", 1, 100_000)
    if draws > 1 and not drawn:
        hint = "give a value a distribution, such as lr = { log-uniform = [1e-4, 1e-1] }"
        raise StudyError(f"{where}.draws: nothing is drawn, so all draws would be the same", hint=hint)
    return Config(name, fixed, drawn, draws, as_whole(table.get("draw_seed", 0), f"{where}.draw_seed", 0, _MAX_SEED))


def refuse_secret(key: str, value: ConfigValue | None, where: str) -> None:
    """What is recorded with every run is shared, so that a secret must reach the training in another way."""
    if isinstance(value, str) and redacted_argv([f"--{key}={value}"], {}) != [f"--{key}={value}"]:
        raise StudyError(
            f"{where}: that looks like a secret, and it would be recorded",
            allowed="values that anybody may read",
            hint="set a variable in [environments.NAME.env], or in the shell that isorun is started from",
        )


def config_value(value: Any, where: str) -> ConfigValue:
    """A value that a config may have."""
    if isinstance(value, float) and not math.isfinite(value):
        raise StudyError(f"{where}: it must be a finite number", found=str(value))
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        raise StudyError(f"{where}: the number is too large to compute with", found=shown(value), allowed="up to 1e308")
    if isinstance(value, (str, bool, int, float)):
        return value
    raise StudyError(f"{where}: a value is a text, a number, true or false", found=shown(value))


def _distribution(value: Any, where: str) -> Distribution:
    table = as_mapping(value, where)
    kinds = (*KINDS, "choice")
    if len(table) != 1 or next(iter(table)) not in kinds:
        found = ", ".join(map(str, table)) or "nothing"
        raise StudyError(f"{where}: it is not a distribution", found=found, allowed=known_names(found, kinds))
    kind, numbers = next(iter(table.items()))
    if kind == "choice":
        options = tuple(config_value(item, where) for item in as_list(numbers, where, "a list of options"))
        if not options:
            raise StudyError(f"{where}: choice has no options")
        return Distribution("choice", options=options)
    return _numeric_distribution(kind, numbers, where)


def _numeric_distribution(kind: str, numbers: Any, where: str) -> Distribution:
    pair = as_list(numbers, where, "two numbers")
    if len(pair) != 2:
        raise StudyError(f"{where}: {kind} takes two numbers", found=f"{len(pair)}", allowed=f"{kind} = [low, high]")
    first, second = (as_number(item, where) for item in pair)
    if kind == "normal" and second <= 0:
        raise StudyError(f"{where}: the standard deviation must be above 0", found=str(second))
    if kind != "normal" and first >= second:
        raise StudyError(f"{where}: low must be below high", found=f"[{first}, {second}]")
    if kind == "log-uniform" and first <= 0:
        raise StudyError(f"{where}: log-uniform needs numbers above 0", found=f"[{first}, {second}]")
    if kind == "integer" and not (first.is_integer() and second.is_integer()):
        raise StudyError(f"{where}: integer takes whole numbers", found=f"[{first}, {second}]")
    return Distribution(kind, first, second)


def _environment(name: str, value: Any, folder: Path) -> Environment:
    where = f"environments.{name}"
    table = as_mapping(value, where)
    if not set(table) <= set(_ENVIRONMENT_KEYS):
        from isorun.study.parts import with_parts_apart  # noqa: PLC0415 - most environments have none

        table = with_parts_apart(table, where, _ENVIRONMENT_KEYS)
    kind = as_text(table.get("kind", ""), f"{where}.kind")
    preload, threads = table.get("preload"), table.get("threads")
    devices, memory = table.get("devices_per_run"), table.get("memory")
    return Environment(
        name=name,
        python=as_text(table.get("python", ""), f"{where}.python"),
        env=variables(table.get("env", {}), f"{where}.env"),
        threads=None if threads is None else as_whole(threads, f"{where}.threads", 1, 4096),
        preload=None if preload is None else _module_names(preload, f"{where}.preload"),
        devices_per_run=None if devices is None else as_whole(devices, f"{where}.devices_per_run", 0, 4096),
        memory_bytes=None if memory is None else as_size(memory, f"{where}.memory"),
        kind="" if kind == INTERPRETER else kind,
        settings=_settings(table.get("settings", {}), kind, f"{where}.settings", folder),
        code=_code(table, where, folder),
        switches=table.get("switches", {}),
        steps=None if (steps := table.get("steps")) is None else as_whole(steps, f"{where}.steps", 0, 10**9),
    )


def _code(table: Mapping[str, Any], where: str, folder: Path) -> dict[str, Any]:
    if table.get("code") in (None, {}):
        if "links" in table:
            raise StudyError(f"{where}.links: they are for a checkout", hint='name a version: code = "main"')
        return {}
    from isorun.study.code import code_settings  # noqa: PLC0415 - most studies have none

    return code_settings(table["code"], table.get("links"), f"{where}.code", folder)


_ENVIRONMENT_KEYS: Final = (
    "kind",
    "settings",
    "python",
    "env",
    "threads",
    "preload",
    "devices_per_run",
    "memory",
    "code",
    "links",
    "steps",
)


def _settings(value: Any, kind: str, where: str, folder: Path) -> dict[str, Any]:
    """What an environment of some kind is told: plain JSON, which is recorded. What it means is for the kind to say."""
    settings = dict(as_mapping(value, where))
    if settings and kind in {"", INTERPRETER}:
        hint = (
            'name the kind they are for: kind = "…"; what an interpreter needs stands beside it: python, env, threads'
        )
        raise StudyError(f"{where}: an interpreter has no settings", found=", ".join(settings), hint=hint)
    for key, item in settings.items():
        _check_setting(key, item, f"{where}.{key}")
    if kind not in {PACKAGES, CONTAINER}:
        return settings
    from isorun.study.parts import image_settings, package_settings  # noqa: PLC0415 - most environments have neither

    if kind == PACKAGES:
        return package_settings(settings, where, folder)
    return image_settings(settings, where, whole=False)


def _check_setting(key: str, value: Any, where: str) -> None:
    match value:
        case dict():
            for name, item in as_mapping(value, where).items():
                _check_setting(name, item, f"{where}.{name}")
        case list():
            for item in value:
                _check_setting(key, item, where)
        case _:
            refuse_secret(key, config_value(value, where), where)


def variables(value: Any, where: str) -> dict[str, str]:
    """Variables that a study may set, as texts."""
    checked = {}
    for key, item in as_mapping(value, where).items():
        if not key or "=" in key or "\0" in key or key.startswith(_RESERVED_ENV):
            allowed = f"a name without '=', not starting with {_RESERVED_ENV}"
            raise StudyError(f"{where}: {key!r} cannot be set", allowed=allowed)
        if isinstance(item, bool) or not isinstance(item, (str, int, float)):
            raise StudyError(f"{where}.{key}: it must be a text", found=shown(item), hint=f'write {key} = "…"')
        checked[key] = str(item)
    _refuse_nul(checked.values(), where)
    return checked


def _module_names(value: Any, where: str) -> tuple[str, ...]:
    modules = as_texts(value, where)
    for name in modules:
        if not all(part.isidentifier() for part in name.split(".")):
            raise StudyError(f"{where}: {name!r} is not the name of a module", allowed='such as "package.module"')
    return modules


def _metric(name: str, value: Any) -> Metric:
    where = f"metrics.{name}"
    table = as_table({"direction": value} if isinstance(value, str) else value, where, ("direction", "chance"))
    chance, direction = table.get("chance"), table.get("direction")
    return Metric(
        name=name,
        direction="" if direction is None else as_one_of(direction, f"{where}.direction", ("higher", "lower")),
        chance=None if chance is None else as_number(chance, f"{where}.chance"),
    )


def _selection(name: str, value: Any) -> Selection:
    where = f"selections.{name}"
    table = as_table(value, where, ("metric", "direction"))
    if "metric" not in table or "direction" not in table:
        allowed = 'metric = "val_loss" and direction = "lower"'
        raise StudyError(f"{where}: it needs a metric and a direction", found=", ".join(table), allowed=allowed)
    return Selection(
        name=name,
        metric=as_name(table["metric"], f"{where}.metric"),
        direction=as_one_of(table["direction"], f"{where}.direction", ("higher", "lower")),
    )


def _named(value: Any, where: str, part: type[_Part], parse: Callable[[str, Any], _Part]) -> dict[str, _Part]:
    return {
        as_name(name, where): item if isinstance(item, part) else parse(name, item)
        for name, item in as_mapping(value, where).items()
    }


def _level(value: Any) -> Level:
    text = as_text(value, "levels")
    if text not in list(Level):
        raise StudyError(f"levels: there is no level {text!r}", allowed=known_names(text, Level))
    return Level(text)


def _paths(value: Any, where: str) -> tuple[str, ...]:
    paths = as_texts(value, where)
    if not all(paths):
        raise StudyError(f"{where}: an empty text names no file")
    check_placeholders(paths, where)
    return paths


def _regular_expressions(value: Any, where: str) -> tuple[str, ...]:
    patterns = as_texts(value, where)
    for pattern in patterns:
        try:
            groups = re.compile(pattern).groupindex
        except re.error as error:
            raise StudyError(f"{where}: {pattern!r} is not a regular expression ({error})") from None
        if not groups:
            hint = r"name the metric in it: (?P<val_acc>[\d.]+)"
            raise StudyError(f"{where}: {pattern!r} has no named group", hint=hint)
    return patterns
