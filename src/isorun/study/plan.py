"""The plan: all cells of a study, in the order they are best run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isorun.errors import StudyError
from isorun.study.cells import Cell, ConfigValue
from isorun.study.design import Approach, Config, Environment, Study
from isorun.study.levels import Level
from isorun.worker.redaction import redacted_argv

__all__ = ["cells_of", "drawn_configs"]

MOST_CELLS: Final = 1_000_000


def cells_of(study: Study) -> tuple[Cell, ...]:
    """All cells, first repeats of every group first.

    Groups take turns so that whatever drifts while a study runs (heat, load, other users) hits all of them alike
    instead of one after the other.
    """
    _refuse_too_many(study)
    return tuple(sorted(_all_cells(study), key=lambda cell: cell.repeat))


def drawn_configs(config: Config) -> Iterator[tuple[str, dict[str, ConfigValue]]]:
    """The named settings a config stands for: itself, or one for each draw."""
    for number in range(config.draws):
        drawn = {
            key: distribution.draw(config.draw_seed, config.name, key, number)
            for key, distribution in config.distributions.items()
        }
        name = f"{config.name}-{number + 1}" if config.distributions else config.name
        yield name, {**config.values, **drawn}


def _all_cells(study: Study) -> Iterator[Cell]:
    for approach in study.approaches.values():
        for config in approach.configs or study.configs:
            for setting in drawn_configs(study.configs[config]):
                for environment in study.environments.values():
                    for level in study.levels:
                        yield from _identical(study, approach, setting, environment, level)


def _identical(
    study: Study,
    approach: Approach,
    setting: tuple[str, dict[str, ConfigValue]],
    environment: Environment,
    level: Level,
) -> Iterator[Cell]:
    command, content = tuple(redacted_argv(approach.command, {})), environment.content()
    for seed, repeat in _seeds_and_repeats(study, level):
        yield Cell(
            approach=approach.name,
            command=command,
            config=setting[0],
            config_values=setting[1],
            environment=environment.name,
            environment_content=content,
            level=level,
            seed=seed,
            repeat=repeat,
            take_seeds=study.take_seeds,
        )


def _seeds_and_repeats(study: Study, level: Level) -> Iterator[tuple[int | None, int]]:
    if level.fixes_seed:
        yield from ((seed, repeat) for repeat in range(study.repeats) for seed in study.seeds)
    else:
        yield from ((None, repeat) for repeat in range(study.repeats * len(study.seeds)))


def _refuse_too_many(study: Study) -> None:
    settings = sum(
        sum(study.configs[name].draws for name in approach.configs or study.configs)
        for approach in study.approaches.values()
    )
    count = settings * len(study.environments) * len(study.levels) * len(study.seeds) * study.repeats
    if count > MOST_CELLS:
        raise StudyError(
            f"the study {study.name!r} has {count:,} cells",
            allowed=f"at most {MOST_CELLS:,}",
            hint="lower repeats, seeds or draws, or split the study",
        )
