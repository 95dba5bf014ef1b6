"""Cells: the points of a study's design, each with an id derived from its content, in the order they are best run.

Because the id depends on nothing but what the cell says, a study can be resumed, extended and shared: a cell that
is unchanged in the file is the same cell, and a cell that was changed is another one.

Values that look secret are in no cell, and still tell cells apart: by a keyed hash of the whole command and of all
variables, under a key that belongs to the store. Its level says how much nondeterminism is left, and its command may
have placeholders (`{seed}`, `{config.lr}`), which are filled where the run happens.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import itertools
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import StudyError, known_names
from isorun.worker.redaction import REDACTED, redacted_argv

if TYPE_CHECKING:
    from isorun.study.design import Approach, Config, Environment, Study

__all__ = [
    "GROUP_FACTORS",
    "PLACEHOLDERS",
    "UNKEYED",
    "Cell",
    "ConfigValue",
    "IdenticalCells",
    "Level",
    "as_known",
    "cells_of",
    "check_placeholders",
    "config_placeholders",
    "drawn_configs",
    "fill_placeholders",
    "is_cell_id",
    "recorded_command",
    "withheld_hash",
    "withheld_hashes",
]

GROUP_FACTORS: Final = ("approach", "config", "environment", "level")
"""What identical runs share, apart from the seed: a cell and the group it belongs to have an attribute of each name."""


class Level(enum.StrEnum):
    """How much nondeterminism is left.

    The words are the paper's (Pham et al., ASE 2020, section 3.2), with one level more: `deterministic` also fixes
    the implementation-level factors, so that two runs should end with the same bits.
    """

    DEFAULT = "default"
    FIXED_SEED = "fixed-seed"
    DETERMINISTIC = "deterministic"

    @property
    def fixes_seed(self) -> bool:
        """Whether the algorithmic factors (weights, order, dropout, augmentation) are fixed."""
        return self is not Level.DEFAULT

    @property
    def fixes_kernels(self) -> bool:
        """Whether the implementation-level factors (kernels, threads, CPU path) are fixed too."""
        return self is Level.DETERMINISTIC

    @property
    def meaning(self) -> str:
        """One line for people."""
        return {
            Level.DEFAULT: "nothing fixed",
            Level.FIXED_SEED: "same seed; kernels and scheduling free",
            Level.DETERMINISTIC: "same seed, deterministic kernels, fixed threads",
        }[self]


ConfigValue = str | int | float | bool

UNKEYED: Final = "unkeyed"
"""In place of the keyed hash where no store is open: such a cell is shown, and never looked up."""

MOST_CELLS: Final = 1_000_000
_ID: Final = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the design.

    command: the approach's argument vector, or ("function", "file.py:name"), placeholders not yet filled, and without
    values that look secret: a cell is recorded and shared.
    environment_content: what the environment sets (interpreter, env variables, threads), not only its name.
    seed: None at level `default`, where nothing is fixed and the seed given to `{seed}` is drawn anew for each run.
    take_seeds: whether constants that the training seeds with are replaced; part of the id only when they are, so that
    cells from before it was there are still the same.
    withheld: the keyed hash of what is not in command and environment_content; part of the id only when there is some.
    known_as: the id that it had before a value was taken out of its content (`isorun store redact`), and still has.
    ValueError for one that is no id: folders and files are called after it, and whoever made a package may be an enemy.
    """

    approach: str
    command: tuple[str, ...]
    config: str
    config_values: Mapping[str, ConfigValue]
    environment: str
    environment_content: Mapping[str, Any]
    level: Level
    seed: int | None
    repeat: int
    take_seeds: bool = False
    withheld: str = ""
    known_as: str = ""
    id: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if self.known_as and not is_cell_id(self.known_as):
            raise ValueError(f"a cell is known as {self.known_as!r:.60}, which is no id")
        made = self.known_as or _id_from(hashlib.sha256(self.canonical().encode()))
        object.__setattr__(self, "id", made)

    def canonical(self) -> str:
        """The content that the id is derived from, always written in the same way."""
        return json.dumps(self._content(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def _content(self) -> dict[str, Any]:
        content = {
            "approach": self.approach,
            "command": list(self.command),
            "config": self.config,
            "config_values": dict(self.config_values),
            "environment": self.environment,
            "environment_content": dict(self.environment_content),
            "level": str(self.level),
            "seed": self.seed,
            "repeat": self.repeat,
        }
        given = {"take_seeds": self.take_seeds, "withheld": self.withheld, "known_as": self.known_as}
        return {**content, **{name: value for name, value in given.items() if value}}

    def to_json(self) -> dict[str, Any]:
        """The cell as plain JSON, its id first."""
        return {"id": self.id, **self._content()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """The cell that `to_json` wrote."""
        return cls(
            approach=data["approach"],
            command=tuple(data["command"]),
            config=data["config"],
            config_values=dict(data["config_values"]),
            environment=data["environment"],
            environment_content=dict(data["environment_content"]),
            level=Level(data["level"]),
            seed=data["seed"],
            repeat=data["repeat"],
            take_seeds=data.get("take_seeds", False),
            withheld=data.get("withheld", ""),
            known_as=data.get("known_as", ""),
        )

    def sibling(self, seed: int | None, repeat: int, cell_id: str) -> Cell:
        """The cell that differs by nothing but seed and repeat, whose id is known: quick, for those who make many."""
        made, put = object.__new__(Cell), object.__setattr__
        for name, value in zip(_KEPT_BY_SIBLINGS, _kept_by_siblings(self), strict=True):
            put(made, name, value)
        put(made, "seed", seed)
        put(made, "repeat", repeat)
        put(made, "id", cell_id)
        return made

    @property
    def group(self) -> tuple[str, ...]:
        """Its GROUP_FACTORS: what identical runs share, apart from the seed."""
        return tuple(map(str, _group_factors(self)))

    @property
    def label(self) -> str:
        """A short name for progress lines and log messages."""
        parts = [self.approach]
        parts += [self.config] if self.config != "default" else []
        parts += [self.environment] if self.environment != "default" else []
        parts.append(str(self.level))
        parts += [f"seed {self.seed}"] if self.seed is not None else []
        return " ".join([*parts, f"#{self.repeat}"])


_KEPT_BY_SIBLINGS: Final = tuple(name for name in Cell.__slots__ if name not in {"seed", "repeat", "id"})
_group_factors: Final = operator.attrgetter(*GROUP_FACTORS)
_kept_by_siblings: Final = operator.attrgetter(*_KEPT_BY_SIBLINGS)


def _id_from(content: hashlib._Hash) -> str:
    return content.hexdigest()[:16]


def is_cell_id(text: object) -> bool:
    """Whether the text is of the form of a cell's id; no path leads anywhere by such a name."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def cells_of(study: Study, key: bytes | None = None) -> tuple[Cell, ...]:
    """All cells, first repeats of every group first.

    Groups take turns so that whatever drifts while a study runs (heat, load, other users) hits all of them alike
    instead of one after the other. key: that of the store, unless the study was given it (`design.with_key`).
    """
    _refuse_too_many(study)
    cells = _all_cells(study, key)
    known = (as_known(study, cell) for cell in cells) if study.known_as else cells
    return tuple(sorted(known, key=lambda cell: cell.repeat))


def as_known(study: Study, cell: Cell) -> Cell:
    """The cell under the id that the store knows it by, where a value was taken out of the kept study."""
    known_as = study.known_as.get(cell.id, "")
    return replace(cell, known_as=known_as) if known_as else cell


def withheld_hashes(study: Study, key: bytes | None) -> dict[str, dict[str, str]]:
    """By approach and environment, the hashes of those of which something is withheld."""
    environments = study.environments.items()
    hashes = {
        approach: {name: withheld_hash(study, item, environment, key) for name, environment in environments}
        for approach, item in study.approaches.items()
    }
    return {approach: {name: found for name, found in items.items() if found} for approach, items in hashes.items()}


def recorded_command(study: Study, approach: Approach) -> tuple[str, ...]:
    """The command without what is withheld, as records show it; a study that was kept has it so, and it stays."""
    return approach.command if study.kept else tuple(redacted_argv(approach.command, {}))


def withheld_hash(study: Study, approach: Approach, environment: Environment, key: bytes | None) -> str:
    """The keyed hash of the whole command and all variables, where something of them is not recorded; else nothing.

    A variable that is recorded as a hash of its own is told apart by that. A study that was kept without its values
    knows the hashes it had.
    """
    known = study.withheld.get(approach.name, {}).get(environment.name, "")
    if study.kept:
        return known
    recorded = environment.content()["env"]
    hidden = any(REDACTED in recorded[name] and recorded[name] != value for name, value in environment.env.items())
    if not hidden and recorded_command(study, approach) == approach.command:
        return known
    if key is None:
        return known or UNKEYED
    whole = json.dumps({"command": list(approach.command), "env": dict(environment.env)}, sort_keys=True)
    return hmac.new(key, whole.encode(), hashlib.sha256).hexdigest()[:16]


def drawn_configs(config: Config) -> Iterator[tuple[str, dict[str, ConfigValue]]]:
    """The named settings a config stands for: itself, or one for each draw."""
    for number in range(config.draws):
        drawn = {
            key: distribution.draw(config.draw_seed, config.name, key, number)
            for key, distribution in config.distributions.items()
        }
        name = f"{config.name}-{number + 1}" if config.distributions else config.name
        yield name, {**config.values, **drawn}


def _all_cells(study: Study, key: bytes | None) -> Iterator[Cell]:
    if study.imported:
        yield from study.imported.cells()
        return
    if study.searches:
        from isorun.study.searches import proposed_cells  # noqa: PLC0415 - most studies have none

        yield from proposed_cells(study, key)
        return
    for approach in study.approaches.values():
        command = recorded_command(study, approach)
        for config in approach.configs or study.configs:
            for setting in drawn_configs(study.configs[config]):
                for environment in study.environments.values():
                    withheld = withheld_hash(study, approach, environment, key)
                    for level in study.levels:
                        first = Cell(
                            approach=approach.name,
                            command=command,
                            config=setting[0],
                            config_values=setting[1],
                            environment=environment.name,
                            environment_content=environment.content(),
                            level=level,
                            seed=None,
                            repeat=0,
                            take_seeds=study.take_seeds,
                            withheld=withheld,
                        )
                        identical = IdenticalCells(first)
                        yield from itertools.starmap(identical.cell, _seeds_and_repeats(study, first.level))


class IdenticalCells:
    """The cells that are like the first, which has neither seed nor repeat, with seeds and repeats of their own.

    What they share is written and hashed once. The members of the content stand in the order of their names, and behind
    these two there is no text of the user's.
    """

    def __init__(self, first: Cell) -> None:
        self._first = first
        before, _, self._after = first.canonical().rpartition('"repeat":0,"seed":null')
        self._shared = hashlib.sha256(before.encode())

    def cell(self, seed: int | None, repeat: int) -> Cell:
        """The one with this seed and repeat."""
        content = self._shared.copy()
        content.update(f'"repeat":{repeat},"seed":{"null" if seed is None else seed}{self._after}'.encode())
        return self._first.sibling(seed, repeat, self._first.known_as or _id_from(content))


def _seeds_and_repeats(study: Study, level: Level) -> Iterable[tuple[int | None, int]]:
    """What is run at the level; each once, also where several calls asked for it."""
    if not study.asked:
        return _pairs(level, study.seeds, study.repeats)
    asked = [_pairs(level, item.seeds, item.repeats) for item in study.asked if item.level is level]
    return dict.fromkeys(pair for pairs in asked for pair in pairs)


def _pairs(level: Level, seeds: tuple[int, ...], repeats: int) -> Iterator[tuple[int | None, int]]:
    if level.fixes_seed:
        yield from ((seed, repeat) for repeat in range(repeats) for seed in seeds)
    else:
        yield from ((None, repeat) for repeat in range(repeats * len(seeds)))


def _refuse_too_many(study: Study) -> None:
    all_draws = sum(config.draws for config in study.configs.values())
    settings = sum(
        sum(study.configs[name].draws for name in approach.configs) if approach.configs else all_draws
        for approach in study.approaches.values()
    )
    runs = len(study.levels) * len(study.seeds) * study.repeats
    if study.asked:
        runs = sum(len(item.seeds) * item.repeats for item in study.asked if item.level in study.levels)
    count = settings * len(study.environments) * runs
    if count > MOST_CELLS:
        raise StudyError(
            f"the study {study.name!r} has {count:,} cells",
            allowed=f"at most {MOST_CELLS:,}",
            hint="lower repeats, seeds or draws, or split the study",
        )


PLACEHOLDERS: Final = ("seed", "repeat", "level", "run_dir")
_CONFIG = "config."
# Only braces around a name of ours are placeholders, so all other braces in a command stay as they are; `{{seed}}`
# stands for a literal `{seed}`.
_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}")


def _is_ours(name: str) -> bool:
    """Whether the name is a placeholder's, or that of one with its letters in another order or case (`{Run-Dir}`).

    Such a slip would reach the training as it stands, so it is refused; a name that has nothing to do with ours is the
    training's own.
    """
    return name.startswith(_CONFIG) or _letters(name) in _OUR_LETTERS


def _letters(name: str) -> str:
    return "".join(sorted(filter(str.isalpha, name.lower())))


_OUR_LETTERS: Final = frozenset(map(_letters, PLACEHOLDERS))


def placeholder_names(command: tuple[str, ...]) -> set[str]:
    """All placeholders a command has, misspelt ones among them."""
    found = (match.group(2) for part in command for match in _PLACEHOLDER.finditer(part))
    return {name for name in found if name and _is_ours(name)}


def config_placeholders(command: tuple[str, ...]) -> set[str]:
    """The config values a command asks for."""
    return {name.removeprefix(_CONFIG) for name in placeholder_names(command) if name.startswith(_CONFIG)}


def check_placeholders(command: tuple[str, ...], where: str) -> None:
    """Refuse a misspelt placeholder; braces around any other name are the training's own, and stay."""
    for name in sorted(placeholder_names(command)):
        if name not in PLACEHOLDERS and not name.startswith(_CONFIG):
            allowed = ", ".join(f"{{{item}}}" for item in (*PLACEHOLDERS, "config.NAME"))
            hint = f"write {{{{{name}}}}} for a literal {{{name}}}"
            raise StudyError(f"{where}: there is no placeholder {{{name}}}", allowed=allowed, hint=hint)


def fill_placeholders(
    command: tuple[str, ...], fixed: Mapping[str, str], config: Mapping[str, ConfigValue], where: str
) -> tuple[str, ...]:
    """The command with every placeholder replaced; numbers are written so that they read back exactly."""
    return tuple(_PLACEHOLDER.sub(_replacement(fixed, config, where), part) for part in command)


def _replacement(
    fixed: Mapping[str, str], config: Mapping[str, ConfigValue], where: str
) -> Callable[[re.Match[str]], str]:
    def filled(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if not _is_ours(literal or name):
            return match[0]
        if literal:
            return f"{{{literal}}}"
        if not name.startswith(_CONFIG):
            return fixed.get(name, match[0])
        key = name.removeprefix(_CONFIG)
        if key not in config:
            raise StudyError(
                f"{where}: the command asks for {{{name}}}, which the config does not have",
                allowed=known_names(key, sorted(config)),
                hint=f"add {key} to the config, or take the placeholder out",
            )
        return _as_text(config[key])

    return filled


def _as_text(value: ConfigValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
